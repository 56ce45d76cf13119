"""Over which mesh axes results vary: rules of all primitives, and of the local ones a law."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.lax
import minijax.random
from minijax import lax
from minijax.core import axes, vma
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Literal, jaxprs_in_params
from minijax.core.meshes import AbstractMesh
from minijax.core.primitive import PRIMITIVES
from minijax.core.refs import AbstractRef
from minijax.interpreters import checking, confinement, remat, staging
from minijax.lowering import diagnosis
from minijax.transforms.per_device.region import Region
from tests.lax.records import Record
from tests.lax.test_laws import RECORDS, by_record, wide_if

REGION = Region(AbstractMesh((4, 2), ("x", "y")), frozenset({"x", "y"}), True)


@contextlib.contextmanager
def inside() -> Iterator[None]:
    """As inside of a shard_map over x and y."""
    with REGION.entered():
        yield


EXEMPT = {
    "check": "holds no program, though it is checked inside",
    "pmap": "cannot be lowered inside of shard_map",
}
"""Primitives that look as if they were not local."""


def _needs_a_rule(primitive: Any) -> bool:
    """Whether results may vary over other axes than the operands do."""
    return bool(
        axes.axis_params.of(primitive)
        or axes.communicates.of(primitive)
        or axes.binds_axis.of(primitive)
        or confinement.stage_functions.of(primitive) is not None
        or diagnosis.walk.of(primitive) is not None
        or remat.division.of(primitive) is not None
        or checking.check_inside.of(primitive) is not None
    )


@pytest.mark.feature("VT-02", "VT-09")
@pytest.mark.parametrize(
    "name", sorted(n for n, p in PRIMITIVES.items() if "minijax" in p.declared_at)
)
def test_primitives_that_are_not_local_say_over_what_results_vary(name: str) -> None:
    primitive = PRIMITIVES[name]
    assert vma.vary.of(primitive) is not None or not _needs_a_rule(primitive) or name in EXEMPT


def _holders(closed: ClosedJaxpr) -> set[str]:
    """The primitives of a program whose equations hold jaxprs."""
    found = set()
    for eqn in closed.jaxpr.eqns:
        inner = list(jaxprs_in_params(eqn.params))
        if inner and not eqn.primitive.name.startswith(("scatter", "reduce", "select_and")):
            found.add(eqn.primitive.name)
    return found


@pytest.mark.feature("VT-02")
@by_record(RECORDS)
def test_operations_that_hold_programs_say_over_what_results_vary(record: Record) -> None:
    with wide_if(record.dtypes[0]):
        closed = minijax.make_jaxpr(record.call)(*record.make_args(record.dtypes[0]))
    for name in _holders(closed):
        assert vma.vary.of(PRIMITIVES[name]) is not None


def _staged(record: Record, varying: tuple[frozenset[str], ...]) -> ClosedJaxpr:
    """The record's call inside of a shard_map, whose arguments vary as is said."""
    dtype = record.dtypes[0]
    with wide_if(dtype), inside():
        args = record.make_args(dtype)
        avals = [
            aval_of(x).with_manual_type(vma.manual_type(over))
            for x, over in zip(args, varying, strict=True)
        ]
        outs: list[Any] = []

        def function(*xs: Any) -> Any:
            outs[:] = minijax.tree.leaves(record.call(*xs))
            return outs

        return staging.stage_closed(function, avals)


def _eqns(closed: ClosedJaxpr) -> list[Eqn]:
    return [eqn for eqn in closed.jaxpr.eqns if vma.vary.of(eqn.primitive) is None]


_SPLIT = frozenset({"x"})
SAME_TYPES = {"custom_linear_solve"}
"""Operations of which functions given by the user must keep the type, which a matrix may change."""


@pytest.mark.feature("VT-02", "VT-09")
@by_record(RECORDS)
def test_results_vary_where_operands_do(record: Record) -> None:
    count = len(record.args)
    closed = _staged(record, (_SPLIT,) * count)
    for eqn in _eqns(closed):
        operands = [a.aval for a in eqn.invars if not isinstance(a, Literal)]
        given = frozenset().union(*(vma.of(aval).varying for aval in operands))
        assert all(vma.of(out.aval).varying == given for out in eqn.outvars)
    if count and not _is_constant(record):
        outs = [aval for aval in closed.out_avals if not isinstance(aval, AbstractRef)]
        assert any(vma.of(aval).varying == _SPLIT for aval in outs)


def _is_constant(record: Record) -> bool:
    """Whether results do not follow the arguments, but their types only."""
    dtype = record.dtypes[0]
    with wide_if(dtype):
        closed = minijax.make_jaxpr(record.call)(*record.make_args(dtype))
    reached = set(closed.jaxpr.invars)
    for eqn in closed.jaxpr.eqns:
        if any(not isinstance(a, Literal) and a in reached for a in eqn.invars):
            reached.update(eqn.outvars)
    return not any(not isinstance(a, Literal) and a in reached for a in closed.jaxpr.outvars)


@pytest.mark.feature("VT-02", "VT-09")
@by_record(RECORDS)
def test_what_is_the_same_everywhere_stays_so(record: Record) -> None:
    closed = _staged(record, (frozenset(),) * len(record.args))
    assert all(not vma.of(aval).varying for aval in closed.out_avals)


@pytest.mark.feature("VT-02", "VT-09")
@by_record([r for r in RECORDS if len(r.args) > 1 and r.name not in SAME_TYPES])
def test_operands_that_vary_less_are_cast(record: Record) -> None:
    # References vary as their first values do, and take nothing that varies more.
    mixed = (frozenset({"x", "y"}), *[_SPLIT, frozenset()] * len(record.args))[: len(record.args)]
    closed = _staged(record, mixed)
    for eqn in _eqns(closed):
        kinds = {
            vma.of(a.aval)
            for a in eqn.invars
            if not isinstance(a, Literal) and isinstance(a.aval, ShapedArray)
        }
        if not any(isinstance(a.aval, AbstractRef) for a in eqn.invars):
            assert len(kinds) <= 1


def test_axes_are_typed_inside_only() -> None:
    assert not axes.are_typed()
    with inside():
        assert axes.are_typed()


@pytest.mark.feature("VT-02")
def test_references_vary_as_their_first_values() -> None:
    def f(v: Any) -> Any:
        ref = minijax.new_ref(v)
        ref[...] = lax.full((4,), 1.0)
        ref[0] = 2.0
        return ref[...]

    with inside():
        aval = ShapedArray((4,), np.float32, manual_axis_type=vma.manual_type("x"))
        closed = staging.stage_closed(lambda v: [f(v)], [aval])
    assert str(closed.out_avals[0]) == "f32[4]{V:x}"


STATES = {
    "V": vma.manual_type("x"),
    "I": vma.manual_type(),
    "U": vma.manual_type((), "x"),
    "R": vma.manual_type((), (), "x"),
}


def _write(held: str, given: str, how: str) -> str:
    def f(a: Any, b: Any) -> Any:
        ref = minijax.new_ref(a)
        if how == "swap":
            ref[...] = b
        else:
            minijax.ref.addupdate(ref, ..., b)
        return ref[...]

    with inside():
        avals = [ShapedArray((4,), np.float32, manual_axis_type=STATES[s]) for s in (held, given)]
        closed = staging.stage_closed(lambda a, b: [f(a, b)], avals)
    return str(closed.out_avals[0])


@pytest.mark.feature("VT-02", "VT-03")
@pytest.mark.parametrize("how", ["swap", "addupdate"])
@pytest.mark.parametrize("pair", ["VV", "VI", "VR", "II", "UU", "RR"])
def test_references_take_what_can_be_cast_to_their_state(pair: str, how: str) -> None:
    expected = "f32[4]" + {"I": ""}.get(pair[0], f"{{{pair[0]}:x}}")
    assert _write(*pair, how) == expected


@pytest.mark.feature("VT-02", "VT-03")
@pytest.mark.parametrize("how", ["swap", "addupdate"])
@pytest.mark.parametrize("held", ["I", "R", "U"])
def test_references_refuse_what_varies_more(held: str, how: str) -> None:
    with pytest.raises(
        ValueError, match=r"varies over 'x', and the reference does not(.|\n)*pcast"
    ):
        _write(held, "V", how)


@pytest.mark.feature("VT-03")
@pytest.mark.parametrize("how", ["swap", "addupdate"])
@pytest.mark.parametrize("pair", ["IU", "IR", "RI", "RU", "UI", "UR"])
def test_references_refuse_values_of_another_state(pair: str, how: str) -> None:
    with pytest.raises(TypeError, match=r"not unreduced, or reduced, over the same axes"):
        _write(*pair, how)


@pytest.mark.feature("VT-03")
def test_numbers_may_be_written_to_what_is_reduced() -> None:
    def f(v: Any) -> Any:
        ref = minijax.new_ref(v)
        ref[0] = 2.0
        return ref[...]

    with inside():
        aval = ShapedArray((4,), np.float32, manual_axis_type=STATES["R"])
        closed = staging.stage_closed(lambda v: [f(v)], [aval])
    assert str(closed.out_avals[0]) == "f32[4]{R:x}"


@pytest.mark.feature("VT-02")
def test_reads_at_varying_places_vary() -> None:
    with inside():
        avals = [
            ShapedArray((4,), np.float32),
            ShapedArray((), np.int32, manual_axis_type=STATES["V"]),
        ]
        closed = staging.stage_closed(lambda a, i: [minijax.new_ref(a)[i]], avals)
    assert str(closed.out_avals[0]) == "f32[]{V:x}"
