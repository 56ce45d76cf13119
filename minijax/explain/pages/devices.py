"""What each device of a per-device program holds at each step, by name.

Input: a program with a `shard_map` or a `pmap`.  Output: a row for each device and a column for
each step.  Devices go through the equations side by side; collectives take from all of a group.
What is linear carries terms through, and so do selections that are known; what is not gets a name
that tells its parents.  Where devices go apart, in branches and loops, some stand aside; those that
come to a collective without all of their group stay there for ever.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import vma
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal
from minijax.explain.pages import moving, naming, terms
from minijax.explain.pages.marking import Equation
from minijax.explain.pages.moving import Groups, PerDevice, Step, Unshown
from minijax.explain.pages.naming import Legend
from minijax.explain.pages.terms import Sum, Terms
from minijax.lax.collectives.reductions import AllReduce
from minijax.sharding import rules
from minijax.transforms.vmap import vmap

_SAME = frozenset({"convert_element_type", "copy", "pbroadcast", "pcast", "pvary", "stop_gradient"})
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "add_any": np.add,
    "div": np.true_divide,
    "mul": np.multiply,
    "neg": np.negative,
    "sub": np.subtract,
}
# The operands in which operations are linear; None: in all.
_LINEAR: dict[str, tuple[int, ...] | None] = {
    "broadcast_in_dim": None,
    "concatenate": None,
    "cumsum": None,
    "dot_general": None,
    "dynamic_slice": (0,),
    "dynamic_update_slice": (0, 1),
    "expand_dims": None,
    "gather": (0,),
    "pad": None,
    "reduce_sum": None,
    "reshape": None,
    "rev": None,
    "scatter": (0, 2),
    "scatter-add": (0, 2),
    "scatter_add": (0, 2),
    "select_n": tuple(range(1, 9)),
    "slice": None,
    "split": None,
    "squeeze": None,
    "transpose": None,
}
UNSEEN = _SAME | frozenset(_LINEAR) - {
    "cumsum",
    "dot_general",
    "reduce_sum",
    "scatter-add",
    "scatter_add",
}
"""Operations that only hand on or rearrange what devices hold, and are no steps."""


class Mapped(NamedTuple):
    """A per-device program.

    Attributes:
        jaxpr: what each device runs.
        consts: its constants.
        axes: the sizes of the axes over which it is mapped.
        split: for each argument the axes over which it differs.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    axes: dict[Any, int]
    split: list[frozenset[Any]]


def steps_of(equations: Sequence[Equation], waiting: Sequence[bool] = ()) -> Step | None:
    """The steps of the first per-device program among equations; None if nothing is shown.

    Args:
        equations: the equations.
        waiting: which devices wait for ever, as the oracle says: nothing is shown of others.
    """
    numbers = {id(x.eqn): x.number for x in equations}
    for x in equations:
        if x.eqn.primitive.name in ("shard_map", "pmap"):
            mapped = _mapped(x.eqn)
            try:
                walk = _Walk(mapped, numbers)
                found = walk.result()
            except Unshown:
                return None
            places = range(len(found["names"]))
            return found if walk.stuck() == {d for d in places if any(waiting[d : d + 1])} else None
    return None


def _mapped(eqn: Eqn) -> Mapped:
    held = eqn.params["jaxpr"]
    jaxpr, consts = (held.jaxpr, held.consts) if isinstance(held, ClosedJaxpr) else (held, ())
    if eqn.primitive.name == "pmap":
        name = eqn.params["axis_name"]
        given = eqn.params["in_axes"]
        split = [frozenset(() if axis is None else (name,)) for axis in given]
        return Mapped(jaxpr, consts, {name: eqn.params["axis_size"]}, split)
    mesh = eqn.params["mesh"]
    specs = eqn.params["in_specs"]
    split = [
        frozenset(vma.of(v.aval).varying) or frozenset(s.names())
        for v, s in zip(jaxpr.invars, specs, strict=True)
    ]
    return Mapped(jaxpr, consts, dict(mesh.shape), split)


class _Devices:
    """The devices of a program, and which of them go on.

    Attributes:
        axes: the axes over which it is mapped.
        places: for each device its place along the axes.
        active: the devices that run what is looked at.
        stuck: those that wait for ever.
    """

    def __init__(self, sizes: dict[Any, int]) -> None:
        self._sizes = sizes
        self.axes = list(sizes)
        if math.prod(sizes.values()) > moving.MOST_DEVICES:
            raise Unshown
        self.places = list(itertools.product(*map(range, sizes.values())))
        self.active = set(range(len(self.places)))
        self.stuck: set[int] = set()

    def names(self) -> list[str]:
        """A letter for each device, and its place: `A x=0, y=1`."""
        pairs = (
            (moving.letter(i), zip(self.axes, place, strict=True))
            for i, place in enumerate(self.places)
        )
        return [f"{letter} {', '.join(f'{a}={c}' for a, c in place)}" for letter, place in pairs]

    def begin(self, var: Atom, split: frozenset[Any], name: str, many: bool) -> PerDevice:
        """What devices hold of an argument at first: names of its elements."""
        aval = var.aval
        if getattr(aval, "is_extended", True) or aval.size > moving.MOST_ELEMENTS:
            raise Unshown
        found = []
        for place in self.places:
            own = tuple(c if a in split else 0 for a, c in zip(self.axes, place, strict=True))
            letter = moving.letter(self.places.index(own)) if split else ""
            # What all devices hold has the name of the argument; else a letter for each device.
            text = f"{name}{letter}" if many else letter or name or "x"
            found.append(terms.begun(text or "x", aval.shape))
        return found

    def indices(self, axes: Any) -> Iterator[int]:
        """The place of each device along axes, the outermost first."""
        wanted = axes if isinstance(axes, tuple) else (axes,)
        for place in self.places:
            index = 0
            for axis in wanted:
                at = self.axes.index(axis)
                index = index * self._sizes[axis] + place[at]
            yield index

    def groups(self, axes: Sequence[Any]) -> Iterator[list[int]]:
        """The devices that differ along axes only, in order."""
        if any(axis not in self.axes for axis in axes):
            raise Unshown
        order = list(self.indices(tuple(axes)))
        others: dict[tuple[int, ...], list[int]] = {}
        for device, place in enumerate(self.places):
            key = tuple(c for a, c in zip(self.axes, place, strict=True) if a not in axes)
            others.setdefault(key, []).append(device)
        for group in others.values():
            yield sorted(group, key=order.__getitem__)

    def complete(self, groups: Iterator[list[int]]) -> list[list[int]]:
        """The groups whose devices all came; those that came to others wait for ever."""
        found = []
        for group in groups:
            came = self.active.intersection(group)
            if len(came) == len(group):
                found.append(group)
            else:
                self.stuck |= came
        self.active -= self.stuck
        return found

    def nothing(self, var: Atom) -> PerDevice:
        """What stands for a value on devices that have none."""
        return [np.zeros(var.aval.shape)] * len(self.places)

    def only_active(self, values: PerDevice, others: PerDevice) -> PerDevice:
        """Values on the active devices, and other values on others."""
        pairs = enumerate(zip(values, others, strict=True))
        return [value if d in self.active else other for d, (value, other) in pairs]

    def known(self, values: PerDevice) -> dict[int, int] | None:
        """What is known of an index or a predicate on the active devices; None where it is not."""
        if not all(terms.is_known(values[device]) for device in self.active):
            return None
        return {device: int(values[device]) for device in self.active}


class _Walk:
    """All devices on their way through a program."""

    def __init__(self, mapped: Mapped, numbers: dict[int, int]) -> None:
        self._mapped = mapped
        self._numbers = numbers
        self._devices = _Devices(mapped.axes)
        self._steps: list[Step] = []
        self._legend = Legend(mapped.jaxpr.debug_info.arg_names or ())

    def stuck(self) -> set[int]:
        """The devices that wait for ever."""
        return self._devices.stuck

    def result(self) -> Step:
        """The steps, the first with what devices begin with."""
        jaxpr = self._mapped.jaxpr
        names = jaxpr.debug_info.arg_names or ()
        args = []
        for i, (var, split) in enumerate(zip(jaxpr.invars, self._mapped.split, strict=True)):
            many = len(jaxpr.invars) > 1
            name = names[i] if many and i < len(names) else ""
            args.append(self._devices.begin(var, split, name, many))
            self._add(-1, name or "start", "begins", args[-1], [])
        outs = self._run(jaxpr, self._mapped.consts, args)
        if all(step["kind"] == "begins" for step in self._steps):
            raise Unshown
        for values in outs:
            if self._devices.active:
                self._add(-1, "result", "ends", values, [])
        legend = self._legend.told(self._steps)
        return {"names": self._devices.names(), "legend": legend, "steps": self._steps}

    def _add(
        self, number: int, title: str, kind: str, values: PerDevice, arrows: list[list[int]]
    ) -> None:
        if len(self._steps) >= moving.MOST_STEPS:
            raise Unshown
        busy = {device for arrow in arrows for device in arrow}
        devices = [
            {
                "cells": terms.texts(value, moving.MOST_SHOWN, self._legend.name)
                if device in self._devices.active
                else [],
                "shape": list(value.shape),
                "waits": device not in self._devices.active
                or (bool(arrows) and device not in busy),
                "stuck": device in self._devices.stuck,
            }
            for device, value in enumerate(values)
        ]
        self._steps.append(
            {
                "number": number,
                "title": title,
                "kind": kind,
                "line": "",
                "arrows": arrows,
                "devices": devices,
            }
        )

    def _run(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[PerDevice]
    ) -> list[PerDevice]:
        values: dict[int, PerDevice] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            values[id(var)] = [np.asarray(const)] * len(self._devices.places)
        values.update(zip(map(id, jaxpr.invars), args, strict=True))

        def read(atom: Atom) -> PerDevice:
            if isinstance(atom, Literal):
                return [np.asarray(atom.value)] * len(self._devices.places)
            return values[id(atom)]

        for eqn in jaxpr.eqns:
            outs = self._eqn(eqn, [read(v) for v in eqn.invars])
            values.update(zip(map(id, eqn.outvars), outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def _eqn(self, eqn: Eqn, args: Sequence[PerDevice]) -> list[PerDevice]:
        name = eqn.primitive.name
        number = self._numbers.get(id(eqn), -1)
        if name == "axis_index":
            return [[np.asarray(i) for i in self._devices.indices(eqn.params["axis_name"])]]
        if name in _FLOW and (taken := _FLOW[name](self, eqn, args)) is not None:
            return taken
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if isinstance(inner, ClosedJaxpr) and len(inner.jaxpr.invars) == len(args):
            return self._run(inner.jaxpr, inner.consts, args)
        collective = _collective(eqn, self._legend)
        if collective is not None:
            if eqn.params.get("axis_index_groups") is not None:
                raise Unshown
            outs = []
            for var, values in zip(eqn.outvars, args, strict=True):
                if not self._devices.active:
                    outs.append(self._devices.nothing(var))
                    continue
                groups = self._devices.complete(self._devices.groups(_axes_of(eqn)))
                out, arrows = collective(values, groups, eqn.params)
                out = self._devices.only_active(out, self._devices.nothing(var))
                outs.append(out)
                self._add(number, name, "moves", out, arrows)
            return outs
        outs = self._local(eqn, args)
        known = (terms.is_known(outs[0][device]) for device in self._devices.active)
        if name not in UNSEEN and not all(known):
            for out in outs:
                self._add(number, name, "computes", out, [])
        return outs

    def _apart(
        self,
        devices: set[int],
        outs: Sequence[PerDevice],
        closed: ClosedJaxpr,
        args: Sequence[PerDevice],
    ) -> list[PerDevice]:
        """Lets some of the active devices run a jaxpr; others keep `outs`."""
        others = self._devices.active - devices
        self._devices.active = devices
        found = self._run(closed.jaxpr, closed.consts, args)
        found = [self._devices.only_active(new, old) for new, old in zip(found, outs, strict=True)]
        self._devices.active = self._devices.active | others
        return found

    def _cond(self, eqn: Eqn, args: Sequence[PerDevice]) -> list[PerDevice] | None:
        taken = self._devices.known(args[0])
        if taken is None:
            return None
        branches = eqn.params["branches"]
        outs = [self._devices.nothing(var) for var in eqn.outvars]
        for number, branch in enumerate(branches):
            last = len(branches) - 1
            own = {d for d, index in taken.items() if min(max(index, 0), last) == number}
            if own:
                outs = self._apart(own, outs, branch, args[1:])
        return outs

    def _while(self, eqn: Eqn, args: Sequence[PerDevice]) -> list[PerDevice] | None:
        params = eqn.params
        first, count = params["cond_nconsts"], params["body_nconsts"]
        consts, carry = args[first : first + count], list(args[first + count :])
        test, started = params["cond_jaxpr"], set(self._devices.active)
        for turn in range(moving.MOST_TURNS + 1):
            (goes_on,) = self._run(test.jaxpr, test.consts, [*args[:first], *carry])
            known = self._devices.known(goes_on)
            if known is None and not turn:
                return None
            if known is None or turn == moving.MOST_TURNS:
                raise Unshown
            self._devices.active = {device for device, value in known.items() if value}
            if not self._devices.active:
                break
            carry = self._apart(
                self._devices.active, carry, params["body_jaxpr"], [*consts, *carry]
            )
        self._devices.active = started - self._devices.stuck
        return carry

    def _scan(self, eqn: Eqn, args: Sequence[PerDevice]) -> list[PerDevice]:
        params = eqn.params
        length, body = params["length"], params["jaxpr"]
        if length > moving.MOST_TURNS:
            raise Unshown
        first, count = params["num_consts"], params["num_carry"]
        consts, carry = list(args[:first]), list(args[first : first + count])
        along = args[first + count :]
        stacked: list[list[PerDevice]] = []
        turns = range(length)
        for turn in reversed(turns) if params["reverse"] else turns:
            rows = [[value[turn] for value in xs] for xs in along]
            rows = [[np.asarray(row) for row in xs] for xs in rows]
            outs = self._run(body.jaxpr, body.consts, [*consts, *carry, *rows])
            carry = outs[:count]
            stacked.append(outs[count:])
        if params["reverse"]:
            stacked.reverse()
        ys = [
            [np.stack([turn[i][d] for turn in stacked]) for d in range(len(self._devices.places))]
            for i in range(len(eqn.outvars) - count)
        ]
        return [*carry, *ys]

    def _local(self, eqn: Eqn, args: Sequence[PerDevice]) -> list[PerDevice]:
        """An operation that each device does by itself."""
        if any(getattr(v.aval, "is_extended", True) for v in (*eqn.invars, *eqn.outvars)):
            raise Unshown
        if any(v.aval.size > moving.MOST_ELEMENTS * moving.MOST_DEVICES for v in eqn.outvars):
            raise Unshown
        nothing = [np.zeros(v.aval.shape) for v in eqn.outvars]
        each = []
        for device in range(len(self._devices.places)):
            own = [values[device] for values in args]
            each.append(
                _on_one(eqn, own, self._legend) if device in self._devices.active else nothing
            )
        return [list(values) for values in zip(*each, strict=True)]


_FLOW: dict[str, Callable[..., list[PerDevice] | None]] = {
    "cond": _Walk._cond,
    "scan": _Walk._scan,
    "while": _Walk._while,
}


def _axes_of(eqn: Eqn) -> Sequence[Any]:
    given = eqn.params.get("axes", eqn.params.get("axis_name"))
    return given if isinstance(given, tuple) else (given,)


def _greatest(values: Sequence[Sum]) -> Sum:
    return naming.extreme("max", values, -np.inf, np.inf)


def _least(values: Sequence[Sum]) -> Sum:
    return naming.extreme("min", values, np.inf, -np.inf)


_EXTREMES = {"reduce_max": _greatest, "reduce_min": _least}


def _is_integer(atom: Atom) -> bool:
    return atom.aval.dtype.kind in "iub"


def _on_one(eqn: Eqn, args: Sequence[Terms], legend: Legend) -> list[Terms]:
    """An operation of one device."""
    name = eqn.primitive.name
    rounds = name == "convert_element_type" and not terms.is_known(args[0])
    rounds = rounds and _is_integer(eqn.outvars[0]) and not _is_integer(eqn.invars[0])
    if name in _SAME and not rounds:
        return [args[0]]
    if all(map(terms.is_known, args)):
        return _computed(eqn, args)
    if name in _ARITHMETIC and not (name == "div" and _is_integer(eqn.outvars[0])):
        given = list(map(terms.as_terms, args))
        if name in ("mul", "div") and not any(map(terms.is_known, args)):
            given = [naming.factors(value, legend) for value in args]
        return [terms.simplified(_ARITHMETIC[name](*given))]
    if name in _LINEAR:
        unknown = [i for i, value in enumerate(args) if not terms.is_known(value)]
        data = _LINEAR[name]
        if name == "dot_general" and len(unknown) > 1:
            (left, right), (batch, other) = eqn.params["dimension_numbers"]
            axes = (left, right, batch, other)
            return [naming.contracted(args[0], args[1], axes, legend)]
        if data is None or set(unknown) <= set(data):
            return _linear(eqn, args, unknown)
    if name in _EXTREMES:
        join = _EXTREMES[name]
        return [terms.simplified(naming.along(args[0], eqn.params["axes"], join))]
    return [_named(eqn, i, args, legend) for i in range(len(eqn.outvars))]


def _named(eqn: Eqn, which: int, args: Sequence[Terms], legend: Legend) -> Terms:
    """The elements of a result that is not linear, named after their parents."""
    name, shape = eqn.primitive.name, eqn.outvars[which].aval.shape
    found = np.empty(shape, object)
    numbers = [f"{key}={value}" for key, value in eqn.params.items() if type(value) is int]
    shown_as = f"{name}[{', '.join(numbers)}]" if numbers else name
    shard: Any = type(eqn.primitive).shard
    if shard is rules.elementwise:
        wide = [np.broadcast_to(value, shape) for value in args]
        for index in np.ndindex(*shape):
            own = [value[index] for value in wide]
            found[index] = naming.by_name(shown_as, [terms.sum_of(x) for x in own], legend)
        return found
    every = [str(terms.sum_of(x)) for value in args for x in value.flat]
    parents = dict.fromkeys(every)
    shown = ", ".join(itertools.islice(parents, 8)) + (", …" if len(parents) > 8 else "")
    # Operations along other dimensions have the same text, and so have parents that are left out.
    key = (which, str(eqn.params), *every)
    for index in np.ndindex(*shape):
        place = f"[{', '.join(map(str, index))}]" if shape else ""
        found[index] = terms.named(legend.name(f"{name}({shown}){place}", key))
    return found


def _computed(eqn: Eqn, args: Sequence[Terms]) -> list[Terms]:
    given = [np.asarray(x, v.aval.dtype) for x, v in zip(args, eqn.invars, strict=True)]
    return [np.asarray(x) for x in eqn.primitive.bind_all(*given, **eqn.params)]


def _linear(eqn: Eqn, args: Sequence[Terms], unknown: Sequence[int]) -> list[Terms]:
    """A linear operation: what it makes of each element alone, and the sums of that."""
    sizes = [args[i].size for i in unknown]
    total = sum(sizes)
    if total > moving.MOST_ELEMENTS * moving.MOST_DEVICES:
        raise Unshown
    basis = np.eye(total + 1, total, -1, dtype=np.float32)
    starts = np.cumsum([0, *sizes])
    inputs = [
        basis[:, start : start + args[i].size].reshape(total + 1, *args[i].shape)
        for i, start in zip(unknown, starts, strict=False)
    ]
    fixed = [
        np.asarray(x, v.aval.dtype if v.aval.dtype.kind in "iub" else np.float32)
        for x, v in zip(args, eqn.invars, strict=True)
        if terms.is_known(x)
    ]

    def function(*data: Any) -> Any:
        rest, given = iter(fixed), iter(data)
        own = [next(given) if i in unknown else next(rest) for i in range(len(args))]
        return eqn.primitive.bind_all(*own, **eqn.params)

    symbols = [x for i in unknown for x in args[i].flat]
    outs = []
    for out in vmap(function)(*inputs):
        table = np.asarray(out)
        found = np.empty(table.shape[1:], object)
        for index in np.ndindex(*found.shape):
            column = table[(slice(None), *index)]
            total_sum = terms.sum_of(column[0])
            for which in np.flatnonzero(column[1:] - column[0]):
                total_sum = total_sum + symbols[which] * float(column[1 + which] - column[0])
            found[index] = total_sum
        outs.append(terms.simplified(found))
    return outs


Moved = tuple[PerDevice, list[list[int]]]


def _psum(values: PerDevice, groups: Groups, params: Any) -> Moved:
    return moving.joined(values, groups, terms.added), moving.everybody(groups)


def _ppermute(values: PerDevice, groups: Groups, params: Any) -> Moved:
    pairs = params["perm"]
    arrows = [[group[giver], group[taker]] for group in groups for giver, taker in pairs]
    return moving.permuted(values, arrows), arrows


def _all_gather(values: PerDevice, groups: Groups, params: Any) -> Moved:
    axis, tiled = params["all_gather_dimension"], params["tiled"]
    return moving.gathered(values, groups, axis, tiled=tiled), moving.everybody(groups)


def _reduce_scatter(values: PerDevice, groups: Groups, params: Any) -> Moved:
    axis, tiled = params["scatter_dimension"], params["tiled"]
    total = moving.joined(values, groups, terms.added)
    return moving.scattered(total, groups, axis, tiled=tiled), moving.everybody(groups)


def _all_to_all(values: PerDevice, groups: Groups, params: Any) -> Moved:
    split, concat, tiled = params["split_axis"], params["concat_axis"], params["tiled"]
    found = moving.exchanged(values, groups, split, concat, tiled=tiled)
    return found, moving.everybody(groups)


_COLLECTIVES: dict[str, Callable[..., Moved]] = {
    "all_gather": _all_gather,
    "all_gather_invariant": _all_gather,
    "all_gather_reduced": _all_gather,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "psum_invariant": _psum,
    "reduce_scatter": _reduce_scatter,
}
"""The collectives that are no `AllReduce`, by the names of their primitives."""

_COMBINED: dict[str, Callable[[Sequence[Sum]], Sum]] = {
    "stablehlo.add": terms.added,
    "stablehlo.maximum": _greatest,
    "stablehlo.minimum": _least,
}


def _collective(eqn: Eqn, legend: Legend) -> Callable[..., Moved] | None:
    """Returns the function that computes a collective on names; None for other operations."""
    primitive = eqn.primitive
    if not isinstance(primitive, AllReduce):
        return _COLLECTIVES.get(primitive.name)

    def all_reduce(values: PerDevice, groups: Groups, params: Any) -> Moved:
        def named(operands: Sequence[Sum]) -> Sum:
            return naming.by_name(primitive.name, operands, legend)

        join = _COMBINED.get(primitive.combiner, named)
        return moving.joined(values, groups, join), moving.everybody(groups)

    return all_reduce
