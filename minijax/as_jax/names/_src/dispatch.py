"""Named by equinox, which looks whether there are tokens to wait for at the end."""
