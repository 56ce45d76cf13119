"""Places where users change how programs are lowered and compiled."""

from minijax.core import deferral
from minijax.lowering.module_hooks import (
    set_outfeed_rewriter as set_outfeed_rewriter,
    set_shape_refinement as set_shape_refinement,
)
from minijax.runtime.client import register_backend_factory as register_backend_factory
from minijax.runtime.program_store import (
    DirectoryStore as DirectoryStore,
    ProgramStore as ProgramStore,
    set_program_store as set_program_store,
)

deferral.publish(globals())
