"""The runtime: XLA clients, arrays, compilation, execution."""
