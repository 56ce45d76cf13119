"""What each collective computes, in NumPy, written from its definition alone.

Input: the operands of the members of an axis, in the order of the axis.  Output: their results.
Nothing here knows how collectives are staged, typed or lowered: compiled programs are judged by it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Block = np.ndarray[Any, Any]
# For each member of a group its operands, or its results.
Group = Sequence[Sequence[Block]]


def _sum(blocks: Sequence[Block]) -> Block:
    """The sum, of booleans as integers; added one by one, so that the dtype stays."""
    numbers = [b.astype(np.int32) if b.dtype == np.bool_ else b for b in blocks]
    return functools.reduce(np.add, numbers)


def reduced(combine: Callable[[Sequence[Block]], Block]) -> Callable[..., Group]:
    """A reduction of blocks; positions among the axes are reduced within each block first."""

    def model(group: Group, *, axes: Sequence[Any] = (), **_: Any) -> Group:
        blocks = [x for (x,) in group]
        for d in sorted((a for a in axes if type(a) is int), reverse=True):
            blocks = [combine([np.take(x, i, d) for i in range(x.shape[d])]) for x in blocks]
        return [(combine(blocks),)] * len(blocks)

    return model


def _all_gather(group: Group, *, all_gather_dimension: int, tiled: bool, **_: Any) -> Group:
    join = np.concatenate if tiled else np.stack
    return [(join([x for (x,) in group], all_gather_dimension),)] * len(group)


def _reduce_scatter(group: Group, *, scatter_dimension: int, tiled: bool, **_: Any) -> Group:
    total = _sum([x for (x,) in group])
    if tiled:
        return [(part,) for part in np.split(total, len(group), scatter_dimension)]
    return [(np.take(total, j, scatter_dimension),) for j in range(len(group))]


def _all_to_all(group: Group, *, split_axis: int, concat_axis: int, **_: Any) -> Group:
    parts = [np.split(x, len(group), split_axis) for (x,) in group]
    return [(np.concatenate([own[j] for own in parts], concat_axis),) for j in range(len(group))]


def _ppermute(group: Group, *, perm: Sequence[tuple[int, int]], **_: Any) -> Group:
    outs = [np.zeros_like(x) for (x,) in group]
    for source, destination in perm:
        outs[destination] = group[source][0]
    return [(out,) for out in outs]


def _pbroadcast(group: Group, *, source: int, **_: Any) -> Group:
    return [group[source]] * len(group)


def _ragged_all_to_all(group: Group, **_: Any) -> Group:
    """Each member's operands: the array to send from, the one to write to, where slices start,
    how long they are, where they go on the receiver, and how long those received are.
    """
    outs = [operands[1].copy() for operands in group]
    for operand, _output, starts, sizes, targets, _received in group:
        per_member = len(sizes) // len(group)
        for k, (start, size, target) in enumerate(zip(starts, sizes, targets, strict=True)):
            outs[k // per_member][target : target + size] = operand[start : start + size]
    return [(out,) for out in outs]


_maximum = reduced(functools.partial(functools.reduce, np.maximum))
_minimum = reduced(functools.partial(functools.reduce, np.minimum))
_psum = reduced(_sum)

MODELS: dict[str, Callable[..., Group]] = {
    "psum": _psum,
    "psum_invariant": _psum,
    "unreduced_psum": _psum,
    "pmax": _maximum,
    "pmin": _minimum,
    "all_gather": _all_gather,
    "all_gather_invariant": _all_gather,
    "all_gather_reduced": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "unreduced_reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "pbroadcast": _pbroadcast,
    "ragged_all_to_all": _ragged_all_to_all,
}
"""The collectives, by the names of their primitives."""

STARTS = {**{f"{name}_start": name for name in MODELS}, "psend": "ppermute"}
"""Collectives of which the result is asked for later, and those that give it at once."""

ENDS = frozenset({*(f"{name}_done" for name in MODELS), "precv"})
"""Operations that give what a collective, of which they take the promise, has brought."""

PUBLIC = {
    "psum_invariant": "psum",
    "unreduced_psum": "psum",
    "all_gather_invariant": "all_gather",
    "all_gather_reduced": "all_gather",
    "reduce_scatter": "psum_scatter",
    "unreduced_reduce_scatter": "psum_scatter",
}
"""The functions of `lax` that apply collectives of other names: what a program says."""

IN_MESH_ORDER = frozenset({"ppermute"})
"""Collectives that count the members of several axes in the order of the mesh, not of the names."""

CASTS = {
    "pvary": "varying",
    "preduced": "reduced",
    "reduced_vary_cast": "varying",
    "vary_unreduced_cast": "unreduced",
}
"""Operations that change what types say, and no value; and the state they give to their axes."""

RESULT_STATES = {
    **CASTS,
    "psum_invariant": "invarying",
    "unreduced_psum": "invarying",
    "pmax": "invarying",
    "pmin": "invarying",
    "all_gather_invariant": "invarying",
    "all_gather_reduced": "reduced",
}
"""How results stand to the axes of an operation; those of the others vary over them."""


def result_state(name: str, params: Mapping[str, Any]) -> str:
    """How the result stands to the axes: with groups, members of different ones differ."""
    if params.get("axis_index_groups") is not None:
        return "varying"
    return RESULT_STATES.get(name, "varying")


def apply(name: str, params: Mapping[str, Any], members: Group) -> list[Sequence[Block]]:
    """What each member of an axis gets; groups within the axis work each for themselves.

    Args:
        name: the collective.
        params: its parameters.
        members: the operands of each member, in the order of the axis.
    """
    groups = params.get("axis_index_groups") or [range(len(members))]
    outs: list[Any] = [None] * len(members)
    with np.errstate(all="ignore"):
        for group in groups:
            results = MODELS[name]([members[i] for i in group], **params)
            for i, result in zip(group, results, strict=True):
                outs[i] = result
    return outs


def fault(name: str, params: Mapping[str, Any], members: Group) -> str | None:
    """What is wrong with a collective in which all members agree; None where nothing is."""
    size = len(members)
    groups = params.get("axis_index_groups")
    if groups is not None and sorted(i for g in groups for i in g) != list(range(size)):
        return f"axis_index_groups {groups} do not name each of {size} members once"
    if name == "ppermute" and (found := _permutation_fault(params["perm"], size)):
        return found
    if name == "pbroadcast" and not 0 <= params["source"] < size:
        return f"source {params['source']} is none of {size} members"
    return None


def _permutation_fault(perm: Sequence[tuple[int, int]], size: int) -> str | None:
    for what, ends in (("source", [s for s, _ in perm]), ("destination", [d for _, d in perm])):
        for end in ends:
            if not 0 <= end < size:
                return f"{what} {end} in perm {tuple(perm)} is none of {size} members"
            if ends.count(end) > 1:
                return f"{what} {end} appears twice in perm {tuple(perm)}"
    return None
