"""Named shardings in the notation of Shardy, the partitioner's dialect."""

from __future__ import annotations

import string
from typing import Any
from urllib import parse

from minijax.core.meshes import MeshAxes
from minijax.core.specs import UNCONSTRAINED, PartitionSpec, names_of

# MLIR prints other characters as escapes, and XLA ends the process over some of these.
_PLAIN = "".join(set(string.punctuation + " ") - set('%"\\'))


def mesh_text(mesh: MeshAxes) -> str:
    """The attribute that holds a mesh's axes: `#sdy.mesh<["x"=4, "y"=2]>`."""
    axes = ", ".join(f"{axis_text(name)}={size}" for name, size in mesh.shape_tuple)
    return f"#sdy.mesh<[{axes}]>"


def axis_text(name: Any) -> str:
    """The name of an axis as Shardy writes it."""
    return f'"{parse.quote(str(name), safe=_PLAIN)}"'


def axis_name(text: str) -> str:
    """The name that `axis_text` has written, without the quotes."""
    return parse.unquote(text)


def sharding_text(symbol: str, spec: PartitionSpec, ndim: int) -> str:
    """The attribute that places a value: `#sdy.sharding<@mesh, [{"x"}, {?}]>`."""
    entries = [*spec, *[None] * (ndim - len(spec))]
    dims = ", ".join(map(_dim_text, entries))
    unreduced = ""
    if spec.unreduced:
        axes = ", ".join(sorted(map(axis_text, spec.unreduced)))
        unreduced = f", unreduced={{{axes}}}"
    return f"#sdy.sharding<@{symbol}, [{dims}]{unreduced}>"


def _dim_text(entry: Any) -> str:
    if entry is UNCONSTRAINED:
        return "{?}"
    return "{" + ", ".join(map(axis_text, names_of(entry))) + "}"
