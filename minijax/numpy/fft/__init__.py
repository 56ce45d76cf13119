"""Discrete Fourier transforms as NumPy has them.  Mirrors jax.numpy.fft."""
