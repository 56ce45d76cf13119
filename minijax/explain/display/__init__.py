"""What notebooks and terminals show of programs, arrays, meshes and reports."""
