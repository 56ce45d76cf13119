"""`jit`: a function becomes a program, which is compiled once for each signature."""
