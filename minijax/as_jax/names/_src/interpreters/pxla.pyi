"""Named by flax."""
