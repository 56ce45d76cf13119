"""What types know over which mesh axes values vary: states, how they change, and how they mix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import config
from minijax.core.aval import ShapedArray
from minijax.core.value_placement import ManualAxisType, manual_type
from minijax.errors import ShardingTypeError
from minijax.sharding import PartitionSpec as P
from tests.lax.collectives import stacked

SIZES = {"x": 4, "y": 2}
OVER_X = P("x")
STATES: dict[str, Callable[[Any], Any]] = {
    "V": lambda v: v,
    "I": lambda v: jnp.full(v.shape, 2.0, v.dtype),
    "U": lambda v: lax.pcast(v, "x", to="unreduced"),
    "R": lambda v: lax.pcast(jnp.full(v.shape, 2.0, v.dtype), "x", to="reduced"),
}


def type_of(f: Callable[[Any], Any], spec: Any = OVER_X, *, check_vma: bool = True) -> str:
    """The type of `f` of a block f32[4,2] that varies over x, on a mesh of 4 x 2 devices."""
    found = []

    def body(v: Any) -> Any:
        found.append(str(minijax.typeof(f(v))))
        return v

    count = 4 if spec == OVER_X else 8 if spec == P(("x", "y")) else 1
    mapped = minijax.shard_map(
        body,
        mesh=stacked.mesh_of(SIZES),
        in_specs=spec,
        out_specs=spec,
        check_vma=check_vma,
    )
    minijax.make_jaxpr(mapped)(minijax.ShapeDtypeStruct((4 * count, 2), np.float32))
    return found[0]


def jaxpr_of(f: Callable[[Any], Any], *, check_vma: bool = True) -> str:
    """The jaxpr of `f` inside of shard_map."""
    mapped = minijax.shard_map(
        f, mesh=stacked.mesh_of(SIZES), in_specs=P("x"), out_specs=P("x"), check_vma=check_vma
    )
    closed = minijax.make_jaxpr(mapped)(minijax.ShapeDtypeStruct((16, 2), np.float32))
    return str(closed.jaxpr.eqns[0].params["jaxpr"])


CHANGES = [
    ("psum", lambda v: lax.psum(v, "x"), "f32[4,2]"),
    ("pmean", lambda v: lax.pmean(v, "x"), "f32[4,2]"),
    ("pmax", lambda v: lax.pmax(v, "x"), "f32[4,2]"),
    ("pmin", lambda v: lax.pmin(v, "x"), "f32[4,2]"),
    ("pargmax", lambda v: lax.pargmax(v, "x"), "i32[4,2]"),
    ("all_gather", lambda v: lax.all_gather(v, "x"), "f32[4,4,2]{V:x}"),
    ("to varying", lambda v: lax.all_gather(v, "x", to="varying"), "f32[4,4,2]{V:x}"),
    ("to invarying", lambda v: lax.all_gather(v, "x", to="invarying"), "f32[4,4,2]"),
    ("to reduced", lambda v: lax.all_gather(v, "x", to="reduced"), "f32[4,4,2]{R:x}"),
    ("psum_scatter", lambda v: lax.psum_scatter(v, "x"), "f32[2]{V:x}"),
    ("all_to_all", lambda v: lax.all_to_all(v, "x", 0, 1), "f32[2,4]{V:x}"),
    ("ppermute", lambda v: lax.ppermute(v, "x", [(0, 1)]), "f32[4,2]{V:x}"),
    ("pbroadcast", lambda v: lax.pbroadcast(v, "x", 1), "f32[4,2]{V:x}"),
    ("axis_index", lambda v: lax.axis_index("x"), "i32[]{V:x}"),
    ("axis_index of two", lambda v: lax.axis_index(("x", "y")), "i32[]{V:(x,y)}"),
    ("precv", lambda v: lax.precv(lax.psend(v, "x", []), v, "x", []), "f32[4,2]{V:x}"),
    ("unreduced psum", lambda v: lax.psum(STATES["U"](v), "x"), "f32[4,2]"),
    ("unreduced_psum", lambda v: lax.unreduced_psum(STATES["U"](v), "x"), "f32[4,2]"),
    ("unreduced scatter", lambda v: lax.psum_scatter(STATES["U"](v), "x"), "f32[2]{V:x}"),
    (
        "unreduced_psum_scatter",
        lambda v: lax.unreduced_psum_scatter(STATES["U"](v), "x"),
        "f32[2]{V:x}",
    ),
    ("I to V", lambda v: lax.pcast(jnp.zeros(3), "x", to="varying"), "f32[3]{V:x}"),
    ("pvary", lambda v: lax.pvary(jnp.zeros(3), ("y", "x")), "f32[3]{V:(x,y)}"),
    ("I to R", lambda v: lax.pcast(jnp.zeros(3), "x", to="reduced"), "f32[3]{R:x}"),
    ("V to U", lambda v: lax.pcast(v, "x", to="unreduced"), "f32[4,2]{U:x}"),
    ("R to V", lambda v: lax.pcast(STATES["R"](v), "x", to="varying"), "f32[4,2]{V:x}"),
]


@pytest.mark.feature("CO-01", "CO-15", "CO-16", "CO-17", "CO-19", "CO-20", "VT-08")
@pytest.mark.parametrize(("f", "expected"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_collectives_change_the_state_as_the_table_says(f: Any, expected: str) -> None:
    assert type_of(f) == expected


KEPT = [
    (lambda v: lax.psum(v, "x"), "f32[4,2]{V:y}"),
    (lambda v: lax.pmax(v, "y"), "f32[4,2]{V:x}"),
    (lambda v: lax.psum(v, ("y", "x")), "f32[4,2]"),
    (lambda v: lax.all_gather(v, "y", to="reduced"), "f32[2,4,2]{V:x, R:y}"),
    (lambda v: lax.all_gather(v, "y", to="invarying"), "f32[2,4,2]{V:x}"),
    (lambda v: lax.pcast(v, "y", to="unreduced"), "f32[4,2]{V:x, U:y}"),
    (lambda v: lax.ppermute(v, "y", [(0, 1)]), "f32[4,2]{V:(x,y)}"),
]


@pytest.mark.feature("VT-01", "CO-01")
@pytest.mark.parametrize(("f", "expected"), KEPT)
def test_other_axes_keep_their_state(f: Any, expected: str) -> None:
    assert type_of(f, P(("x", "y"))) == expected


@pytest.mark.feature("VT-01")
@pytest.mark.parametrize("f", [c[1] for c in CHANGES[:5]])
def test_without_checks_types_know_nothing(f: Any) -> None:
    assert "{" not in type_of(f, check_vma=False)


@pytest.mark.feature("VT-09")
@pytest.mark.parametrize(
    "f",
    [
        lambda v: lax.psum(v, "x"),
        lambda v: lax.pmax(v, "x"),
        lambda v: lax.all_gather(v, "x"),
        lambda v: lax.all_gather(v, "x", to="invarying"),
        lambda v: lax.psum_scatter(v, "x"),
        lambda v: lax.all_to_all(v, "x", 0, 0),
        lambda v: lax.ppermute(v, "x", [(0, 1)]),
        lambda v: lax.precv(lax.psend(v, "x", []), v, "x", []),
    ],
)
def test_invarying_operands_are_cast_first(f: Any) -> None:
    mapped = minijax.shard_map(
        lambda v: (f(v), v)[1], mesh=stacked.mesh_of({"x": 4}), in_specs=P(), out_specs=P()
    )
    closed = minijax.make_jaxpr(mapped)(jnp.zeros((4, 2)))
    inner = closed.jaxpr.eqns[0].params["jaxpr"]
    assert inner.jaxpr.eqns[0].primitive.name == "pvary"


@pytest.mark.feature("CO-03", "VT-09")
def test_extremes_accept_operands_that_vary_over_some_axes() -> None:
    assert type_of(lambda v: lax.pmax(v, ("x", "y"))) == "f32[4,2]"


def _mixed(op: Callable[[Any, Any], Any], a: str, b: str) -> Callable[[Any], Any]:
    return lambda v: op(STATES[a](v), STATES[b](v))


def _contract(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())))


ADDITIVE = [lax.add, lax.sub]
PRODUCTS = [lax.mul, _contract]
OTHER = [lax.max, lax.pow, lax.atan2]
# For two states the state of the result, or the exception and what its text says.
COMMON: dict[str, Any] = {
    "VV": "V",
    "VI": "V",
    "IV": "V",
    "VR": "V",
    "RV": "V",
    "II": "I",
    "RR": "R",
    "IR": (ShardingTypeError, "reduced over 'x', another is the same everywhere"),
    "RI": (ShardingTypeError, "reduced over 'x', another is the same everywhere"),
    "UV": (ValueError, "unreduced over 'x', another varies over it"),
    "VU": (ValueError, "unreduced over 'x', another varies over it"),
}
WHOLE = (ShardingTypeError, "another is whole: it would be counted once for each device")
SUMS = {**COMMON, "UU": "U", "UI": WHOLE, "IU": WHOLE, "UR": WHOLE, "RU": WHOLE}
FACTOR = (ShardingTypeError, "the other factor must be reduced over 'x'")
BILINEAR = {
    **COMMON,
    "UR": "U",
    "RU": "U",
    "UI": FACTOR,
    "IU": FACTOR,
    "UU": (ShardingTypeError, "both factors are unreduced over 'x'"),
}
NOT_LINEAR = (NotImplementedError, "which the operation cannot work on")
NONLINEAR = {**COMMON, **dict.fromkeys(["UU", "UI", "IU", "UR", "RU"], NOT_LINEAR)}
QUOTIENT = {**NONLINEAR, "UR": "U", "UI": FACTOR}
TABLE = [
    pytest.param(op, pair, expected, id=f"{getattr(op, '__name__', op)}-{pair}")
    for ops, table in (
        (ADDITIVE, SUMS),
        (PRODUCTS, BILINEAR),
        (OTHER, NONLINEAR),
        ([lax.div], QUOTIENT),
    )
    for op in ops
    for pair, expected in table.items()
]


@pytest.mark.feature("VT-02", "VT-03")
@pytest.mark.parametrize(("op", "pair", "expected"), TABLE)
def test_arithmetic_mixes_states_as_the_table_says(op: Any, pair: str, expected: Any) -> None:
    if isinstance(expected, str):
        found = type_of(_mixed(op, *pair))
        assert found.partition("{")[2] == {"I": ""}.get(expected, f"{expected}:x}}")
    else:
        error, words = expected
        with pytest.raises(error, match=words):
            type_of(_mixed(op, *pair))


@pytest.mark.feature("VT-03")
def test_the_mixed_states_and_the_way_out_are_named() -> None:
    with pytest.raises(ShardingTypeError) as caught:
        type_of(_mixed(lax.mul, "U", "I"))
    text = str(caught.value)
    assert "mul:" in text
    assert "f32[4,2]{U:x}, f32[4,2]" in text
    assert "lax.pcast(x, 'x', to='reduced')" in text


UNARY = {
    "neg": lax.neg,
    "scaling": lambda v: v * 2.0,
    "scaling back": lambda v: 2.0 * v,
    "division": lambda v: v / 2.0,
    "sum": lambda v: v.sum(),
    "reshape": lambda v: v.reshape(-1),
    "transpose": lambda v: v.T,
    "broadcast": lambda v: jnp.broadcast_to(v, (3, 4, 2)),
    "slice": lambda v: v[:1],
    "dynamic slice": lambda v: lax.dynamic_slice(v, (0, 0), (1, 1)),
    "gather": lambda v: v[np.array([1, 0])],
    "cumsum": lambda v: lax.cumsum(v),
    "rev": lambda v: v[::-1],
    "concatenate": lambda v: lax.concatenate([v, v], 0),
    "pad with zeros": lambda v: lax.pad(v, np.float32(0), [(1, 1, 0), (0, 0, 0)]),
    "select": lambda v: lax.select(np.ones((4, 2), bool), v, v),
    "update": lambda v: lax.dynamic_update_slice(v, v[:1], (0, 0)),
    "copy": jnp.copy,
    "convert": lambda v: lax.convert_element_type(v, jnp.bfloat16),
}


@pytest.mark.feature("VT-03")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", UNARY)
def test_linear_operations_keep_the_state(name: str, state: str) -> None:
    found = type_of(lambda v: UNARY[name](STATES[state](v)))
    assert found.partition("{")[2] == {"I": ""}.get(state, f"{state}:x}}")


@pytest.mark.feature("VT-03")
@pytest.mark.parametrize("op", [lax.sin, lax.exp, jnp.square, lax.abs, lambda v: v**2, jnp.max])
def test_nonlinear_operations_refuse_summands(op: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"unreduced over 'x'(.|\n)*lax.psum"):
        type_of(lambda v: op(STATES["U"](v)))


@pytest.mark.feature("VT-03")
@pytest.mark.parametrize("op", [lax.sin, jnp.max, lambda v: v + 1.0])
def test_all_operations_keep_what_is_reduced(op: Any) -> None:
    assert type_of(lambda v: op(STATES["R"](v))).endswith("{R:x}")


@pytest.mark.feature("VT-03")
def test_numbers_other_than_zero_are_no_summands() -> None:
    with pytest.raises(ShardingTypeError, match="another is whole"):
        type_of(lambda v: STATES["U"](v) + 1.0)


@pytest.mark.feature("VT-03")
def test_sums_of_summands_are_the_sums_of_values() -> None:
    def delayed(v: Any) -> Any:
        parts = STATES["U"](v) * lax.pcast(jnp.full((3,), 3.0), "x", to="reduced") - 2 * STATES[
            "U"
        ](v)
        return lax.psum(parts, "x")

    x = stacked.numbers({"x": 4}, (3,))
    np.testing.assert_array_equal(stacked.by_shard_map(delayed, {"x": 4})(x), stacked.psum(x))


@pytest.mark.feature("VT-01")
def test_an_axis_is_in_one_set_only() -> None:
    with pytest.raises(ValueError, match="varying, unreduced, reduced, or none of these"):
        ShapedArray((2,), np.float32, manual_axis_type=ManualAxisType(*[frozenset("x")] * 2))


@pytest.mark.feature("VT-01")
def test_states_can_be_updated() -> None:
    aval = ShapedArray((2,), np.float32, manual_axis_type=manual_type("x"))
    assert str(aval.update(manual_axis_type=manual_type("y", "x"))) == "f32[2]{V:y, U:x}"


@pytest.mark.feature("AD-06")
@pytest.mark.parametrize(
    ("state", "expected"),
    [("V", "{V:x}"), ("I", ""), ("U", "{R:x}"), ("R", "{U:x}")],
)
def test_cotangents_are_of_the_dual_state(state: str, expected: str) -> None:
    def cotangent_type(v: Any) -> Any:
        x = STATES[state](v)
        out, pullback = minijax.vjp(lambda z: z * 2.0, x)
        wanted = minijax.typeof(out).cotangent_aval()
        assert str(wanted) == f"f32[4,2]{expected}"
        made = {"{R:x}": STATES["R"], "{U:x}": STATES["U"], "{V:x}": STATES["V"], "": STATES["I"]}
        return pullback(made[expected](v))[0]

    assert type_of(cotangent_type) == f"f32[4,2]{expected}"


@pytest.mark.feature("VT-04", "VT-05", "VT-06", "VT-07")
def test_casts_are_nothing_in_programs() -> None:
    def f(v: Any) -> Any:
        r = lax.pcast(jnp.zeros((4, 2)), "x", to="reduced")
        u = lax.pcast(lax.pcast(r, "x", to="varying"), "x", to="unreduced")
        return v + lax.pcast(jnp.zeros((4, 2)), "x", to="varying"), u

    def body(v: Any) -> Any:
        return f(v)[0]

    mapped = minijax.shard_map(
        body, mesh=stacked.mesh_of({"x": 4}), in_specs=P("x"), out_specs=P("x")
    )
    text = minijax.jit(mapped).lower(jnp.zeros((16, 2))).as_text()
    assert "all_reduce" not in text
    assert "custom_call" not in text


@pytest.mark.feature("VT-08")
def test_casts_without_checks_change_nothing() -> None:
    def f(v: Any) -> Any:
        return lax.pcast(lax.pcast(v, "x", to="reduced"), "x", to="varying")

    assert jaxpr_of(f, check_vma=False) == "{ lambda ; a:f32[4,2]. let in (a,) }"


@pytest.mark.feature("VT-08")
def test_no_axes_are_no_cast() -> None:
    assert type_of(lambda v: lax.pcast(v, (), to="varying")) == "f32[4,2]{V:x}"


@pytest.mark.feature("CO-23", "CO-04")
def test_sums_of_constants_are_not_communicated() -> None:
    text = jaxpr_of(lambda v: lax.psum(1, "x") * lax.psum(np.ones(2), ("x", "y")) * v)
    assert "psum" not in text


@pytest.mark.feature("CO-23")
@pytest.mark.parametrize(
    ("given", "expected"),
    [(1, 4), (2.5, 10.0), (True, 4), (np.float32(2), 8.0), (np.array([1, 2], np.int8), [4, 8])],
)
def test_sums_of_constants_are_multiples(given: Any, expected: Any) -> None:
    found = stacked.by_vmap(lambda v: lax.psum(given, "x"), {"x": 4})(np.zeros(4))
    np.testing.assert_array_equal(found, [expected] * 4)


@pytest.mark.feature("CO-23")
def test_sums_of_boolean_constants_are_integers() -> None:
    flags = np.array([True, False])
    found = stacked.by_vmap(lambda v: lax.psum(flags, "x"), {"x": 4})(np.zeros(4))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [[4, 0]] * 4)


@pytest.mark.feature("CO-23", "CO-24")
def test_sums_of_constants_over_groups_count_a_group() -> None:
    def f(v: Any) -> Any:
        return v + lax.psum(1, "x", axis_index_groups=[[0, 1], [2, 3]])

    found = stacked.unchecked(f, {"x": 4})(np.zeros(4, np.float32))
    np.testing.assert_array_equal(found, [2, 2, 2, 2])


@pytest.mark.feature("CO-26")
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize(
    "f", [lambda v: lax.psum(v, "y"), lambda v: lax.psum_scatter(v, "y", tiled=True)]
)
def test_axes_of_size_one_may_be_skipped(f: Any, check_vma: bool) -> None:
    mapped = minijax.shard_map(
        f,
        mesh=stacked.mesh_of({"x": 4, "y": 1}),
        in_specs=P("x"),
        out_specs=P("x"),
        check_vma=check_vma,
    )
    with config.remove_size_one_mesh_axis_from_type(True):
        closed = minijax.make_jaxpr(mapped)(jnp.zeros((4, 1)))
    assert closed.jaxpr.eqns[0].params["jaxpr"].jaxpr.eqns == []


@pytest.mark.feature("CO-25")
@pytest.mark.parametrize("runner", ["unchecked", "vmap", "pmap"])
@pytest.mark.parametrize(
    ("call", "oracle"),
    [(lax.psum, np.sum), (lax.pmax, np.max), (lax.pmin, np.min)],
)
def test_dimensions_are_reduced_with_the_named_axes(call: Any, oracle: Any, runner: str) -> None:
    x = stacked.numbers({"x": 4}, (2, 3))
    found = stacked.RUNNERS[runner](lambda v: call(v, ("x", -1)), {"x": 4})(x)
    np.testing.assert_array_equal(found, [oracle(x, (0, 2))] * 4)


@pytest.mark.feature("CO-25")
def test_dimensions_alone_are_a_plain_reduction() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(minijax.jit(lambda v: lax.psum(v, 0))(x), x.sum(0))


@pytest.mark.feature("CO-25", "CO-28")
def test_sums_over_dimensions_transpose_to_repetition() -> None:
    x = stacked.numbers({"x": 4}, (2, 3))

    def f(v: Any) -> Any:
        return minijax.grad(lambda z: (lax.psum(z, ("x", 1)) * np.array([1.0, 2.0])).sum())(v)

    found = stacked.unchecked(f, {"x": 4})(x)
    np.testing.assert_array_equal(found, np.broadcast_to([[4.0], [8.0]], (4, 2, 3)))
