"""What a function was made of by `grad` and `vmap`, and the arguments that this gets.

Input: a function that a transformation gave, and arguments.  Output: the function that was given to
the transformation, with its arguments as types.  Wrappers are read, as they keep no such record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.core import tree
from minijax.core.aval import aval_of, has_aval
from minijax.transforms.jit.stages import ShapeDtypeStruct

Function = Callable[..., Any]


class Layer(NamedTuple):
    """A transformation, and what it was given.

    Attributes:
        kind: "grad" or "vmap".
        function: what was transformed.
        args: its positional arguments.
        kwargs: its keyword arguments.
        argnums: of `grad` the positions of the arguments by which it differentiates.
        dims: of `vmap` the dimension of each leaf that runs over the batch.
        size: of `vmap` how many examples there are.
    """

    kind: str
    function: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: Any = None
    dims: tuple[int | None, ...] = ()
    size: int = 0


def layers(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Layer]:
    """The transformations of a function, the outermost first, as far as they are known."""
    found: list[Layer] = []
    while (layer := _layer(function, args, kwargs)) is not None:
        found.append(layer)
        function, args, kwargs = layer.function, layer.args, layer.kwargs
    return found


def _layer(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layer | None:
    if hasattr(function, "trace"):  # It is jitted.
        function = getattr(function, "__wrapped__", function)
    held = _held_by(function)
    if "both" in held:
        held = _held_by(held["both"])
    if {"argnums", "fun", "has_aux"} <= held.keys() and not held["has_aux"]:
        return Layer("grad", held["fun"], args, kwargs, held["argnums"])
    mapped: Any = held.get("mapped")
    if not hasattr(mapped, "spmd_axis_name") or mapped.axis_name is not None:
        return None  # With a name, the function of one example cannot be traced alone.
    leaves, in_tree = tree.flatten((args, kwargs))
    if not all(map(_is_array, leaves)):
        return None
    dims = tree.flatten_in_axes("vmap in_axes", in_tree, mapped.in_axes)
    pairs = list(zip(leaves, dims, strict=True))
    sizes = [aval_of(x).shape[dim] for x, dim in pairs if dim is not None]
    own_args, own_kwargs = tree.unflatten(in_tree, [_example(x, dim) for x, dim in pairs])
    size = sizes[0] if sizes else mapped.axis_size
    return Layer("vmap", mapped.function, own_args, own_kwargs, dims=tuple(dims), size=size)


def _held_by(function: Function) -> dict[str, Any]:
    """What a function closes over, by name; that of the function which a boundary holds."""
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    cells = getattr(function, "__closure__", None) or ()
    held = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    return _held_by(held["inner"]) if {"inner", "leave_out"} <= held.keys() else held


def _is_array(x: Any) -> bool:
    return isinstance(x, ShapeDtypeStruct) or has_aval(x)


def _example(x: Any, dim: int | None) -> Any:
    """What a function that is mapped sees of an argument: its type."""
    aval = aval_of(x)
    if dim is None:
        return x
    inner = aval.without_dim(dim % len(aval.shape))
    return ShapeDtypeStruct(inner.shape, inner.dtype, weak_type=inner.weak_type)
