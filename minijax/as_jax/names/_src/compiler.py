"""Named by chex, which looks whether it may watch what is compiled: it may not."""
