"""Places where users change how programs are lowered and compiled."""

from minijax.interpreters.module_hooks import set_outfeed_rewriter, set_shape_refinement
from minijax.runtime.client import register_backend_factory
from minijax.runtime.program_store import DirectoryStore, ProgramStore, set_program_store

__all__ = [
    "DirectoryStore",
    "ProgramStore",
    "register_backend_factory",
    "set_outfeed_rewriter",
    "set_program_store",
    "set_shape_refinement",
]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
