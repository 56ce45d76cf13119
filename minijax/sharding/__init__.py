"""Where data lives: devices, meshes and specs as plain data."""
