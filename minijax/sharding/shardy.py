"""Named shardings in the notation of Shardy, the partitioner's dialect."""

from __future__ import annotations

import string
from collections.abc import Collection
from typing import Any
from urllib import parse

from minijax.core.cache import Cache
from minijax.core.meshes import MeshAxes
from minijax.core.specs import UNCONSTRAINED, PartitionSpec, names_of
from minijax.sharding.tiling import Tiling

# MLIR prints other characters as escapes, and XLA ends the process over some of these.
_PLAIN = "".join(set(string.punctuation + " ") - set('%"\\'))

EMPTY_MESH = "#sdy.mesh<[]>"
"""A mesh without axes, for values that are replicated on any mesh."""

FIRST_DEVICE = "#sdy.mesh<[], device_ids=[0]>"
"""The mesh of the first device alone."""


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


def sharding_text(
    symbol: str,
    spec: PartitionSpec,
    ndim: int,
    *,
    is_open: bool = False,
    replicated: Collection[Any] = (),
) -> str:
    """The attribute that places a value: `#sdy.sharding<@mesh, [{"x"}, {?}]>`.

    Where it `is_open`, the partitioner may split every dimension over further axes, but not over
    those that are `replicated`.
    """
    dims = _dims_text(spec, ndim, is_open)
    closed = ""
    if replicated:
        closed = f", replicated={{{', '.join(sorted(map(axis_text, replicated)))}}}"
    unreduced = ""
    if spec.unreduced:
        axes = ", ".join(sorted(map(axis_text, spec.unreduced)))
        unreduced = f", unreduced={{{axes}}}"
    return f"#sdy.sharding<@{symbol}, [{dims}]{closed}{unreduced}>"


def of_tiling(tiling: Tiling) -> tuple[str, PartitionSpec]:
    """A mesh, as an attribute, and a spec on it that cut arrays like this.

    The mesh lists its devices where they do not go from the first to the last.
    """
    order = tiling.devices_by_tile()
    axes = [(f"dim{d}", size) for d, size in enumerate(tiling.factors) if size > 1]
    spec = PartitionSpec(
        *(f"dim{d}" if size > 1 else None for d, size in enumerate(tiling.factors))
    )
    if order.shape[-1] > 1:
        axes.append(("copies", order.shape[-1]))
    text = ", ".join(f'"{name}"={size}' for name, size in axes)
    ids = order.ravel().tolist()
    listed = "" if ids == sorted(ids) else f", device_ids={ids}"
    return f"#sdy.mesh<[{text}]{listed}>", spec


_texts = Cache(
    "Shardy texts",
    "specs as Shardy writes them",
    key="spec, rank, whether they are open",
    most=1024,
)


@_texts.function
def _dims_text(spec: PartitionSpec, ndim: int, is_open: bool) -> str:
    return ", ".join(_dim_text(entry, is_open) for entry in spec.padded(ndim))


def _dim_text(entry: Any, is_open: bool) -> str:
    axes = list(map(axis_text, names_of(entry)))
    if is_open or entry is UNCONSTRAINED:
        axes.append("?")
    return "{" + ", ".join(axes) + "}"
