"""Named by orbax, which looks how random keys are sent."""
