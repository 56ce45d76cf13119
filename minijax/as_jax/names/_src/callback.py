"""Named by equinox, for the logger of this name."""
