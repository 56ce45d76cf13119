"""Interpreters: jaxpr to jaxpr, and jaxpr to StableHLO.  Each is one trace, one file."""
