"""Lowering: from jaxprs to StableHLO modules, and to programs that run."""
