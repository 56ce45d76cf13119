"""Mutable references to arrays.  Mirrors jax.ref."""

from minijax.core.refs import AbstractRef
from minijax.lax.reference_indexing import ds
from minijax.lax.references import (
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)
from minijax.transforms.run_state import run_state

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "ds",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "run_state",
    "set",
    "swap",
]
