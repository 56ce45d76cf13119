from minijax.core.refs import AbstractRef as AbstractRef
from minijax.lax.reference_indexing import ds as ds
from minijax.lax.references import (
    Ref as Ref,
    addupdate as addupdate,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
from minijax.experimental.cores.core_map import run_state as run_state
