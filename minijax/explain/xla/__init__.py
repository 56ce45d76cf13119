"""What XLA made of a program: its kernels, its memory, its time.  Shown by `minijax.explain`."""
