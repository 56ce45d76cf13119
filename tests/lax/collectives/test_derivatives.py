"""Derivatives of collectives, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.jaxpr import jaxprs_in_params
from minijax.sharding import PartitionSpec as P
from tests.lax.collectives import stacked

SIZES = {"x": 4}
LINEAR: dict[str, Callable[[Any], Any]] = {
    "psum": lambda v: lax.psum(v, "x"),
    "pmean": lambda v: lax.pmean(v, "x"),
    "all_gather": lambda v: lax.all_gather(v, "x"),
    "all_gather tiled": lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
    "all_gather_invariant": lambda v: lax.all_gather(v, "x", axis=1, to="invarying"),
    "all_gather_invariant tiled": lambda v: lax.all_gather_invariant(v, "x", tiled=True),
    "psum_scatter": lambda v: lax.psum_scatter(v, "x"),
    "psum_scatter tiled": lambda v: lax.psum_scatter(v, "x", tiled=True),
    "all_to_all": lambda v: lax.all_to_all(v, "x", 0, 1),
    "all_to_all tiled": lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True),
    "pswapaxes": lambda v: lax.pswapaxes(v, "x", 0),
    "ppermute": lambda v: lax.ppermute(v, "x", [(0, 1), (1, 3)]),
    "pshuffle": lambda v: lax.pshuffle(v, "x", [2, 0, 3, 1]),
    "pbroadcast": lambda v: lax.pbroadcast(v, "x", 1),
}
STATEFUL: dict[str, Callable[[Any], Any]] = {
    "delayed sum": lambda v: lax.psum(lax.pcast(v, "x", to="unreduced"), "x"),
    "delayed scatter": lambda v: lax.unreduced_psum_scatter(lax.pcast(v, "x", to="unreduced"), "x"),
    "gather to reduced": lambda v: lax.pcast(lax.all_gather_reduced(v, "x"), "x", to="varying"),
}
by_linear = pytest.mark.parametrize("f", LINEAR.values(), ids=LINEAR)
by_checked = pytest.mark.parametrize(
    "f", [*LINEAR.values(), *STATEFUL.values()], ids=[*LINEAR, *STATEFUL]
)


def _same_everywhere(f: Any) -> bool:
    """Whether the types know that the result is the same on all devices."""
    found = []
    mapped = minijax.shard_map(
        lambda v: (found.append(minijax.typeof(f(v)).vma), v)[1],
        mesh=stacked.mesh_of(SIZES),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    minijax.make_jaxpr(mapped)(jnp.zeros((16, 2)))
    return not found[0]


@pytest.mark.feature("CO-28")
@by_checked
def test_checked_transposes_are_adjoint(f: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (4, 4, 2)).astype(np.float32)
    same = _same_everywhere(f)
    out = stacked.by_shard_map(f, SIZES)(x)
    ct = rng.integers(-9, 9, out.shape).astype(np.float32)

    def back(v: Any, c: Any) -> Any:
        if same:
            # Of a value that is the same everywhere there is one copy, and one cotangent.
            c = lax.psum(jnp.where(lax.axis_index("x") == 0, c, 0), "x")
        return minijax.linear_transpose(f, v)(c)[0]

    found = stacked.by_shard_map(back, SIZES)(x, ct)
    copies = 1 if same else 4
    np.testing.assert_allclose(
        np.vdot(np.asarray(out)[:copies], ct[:copies]), np.vdot(x, found), rtol=1e-6
    )


@pytest.mark.feature("CO-28")
@by_linear
@pytest.mark.parametrize("runner", ["unchecked", "pmap", "vmap"])
def test_unchecked_transposes_are_adjoint(f: Any, runner: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (4, 4, 2)).astype(np.float32)
    run = stacked.RUNNERS[runner]
    out = run(f, SIZES)(x)
    ct = rng.integers(-9, 9, out.shape).astype(np.float32)
    if runner != "vmap" and _same_everywhere(f) and "gather" in str(f.__code__.co_names):
        pytest.skip("all_gather_invariant takes cotangents to be the same everywhere")
    if runner == "vmap":
        # vmap differentiates what it has made of the collective, which is exact.
        def back(v: Any, c: Any) -> Any:
            return minijax.linear_transpose(run(f, SIZES), v)(c)[0]

        found = back(x, ct)
    else:
        found = run(lambda v, c: minijax.linear_transpose(f, v)(c)[0], SIZES)(x, ct)
    np.testing.assert_allclose(np.vdot(out, ct), np.vdot(x, found), rtol=1e-6)


@pytest.mark.feature("CO-28")
@by_checked
def test_tangents_are_sent_likewise(f: Any) -> None:
    x = stacked.numbers(SIZES, (4, 2))
    moved = stacked.by_shard_map(lambda v: minijax.jvp(f, (v,), (2 * v,))[1], SIZES)(x)
    np.testing.assert_array_equal(moved, 2 * np.asarray(stacked.by_shard_map(f, SIZES)(x)))


@pytest.mark.feature("CO-28", "CO-01")
@pytest.mark.parametrize(
    ("runner", "expected"), [("checked", 1.0), ("unchecked", 4.0), ("pmap", 4.0), ("vmap", 4.0)]
)
def test_the_derivative_of_a_sum_by_the_own_summand(runner: str, expected: float) -> None:
    x = stacked.numbers(SIZES, ())
    found = stacked.RUNNERS[runner](minijax.grad(lambda v: lax.psum(v, "x")), SIZES)(x)
    np.testing.assert_array_equal(found, [expected] * 4)


@pytest.mark.feature("CO-28", "CO-01")
@pytest.mark.parametrize("check_vma", [True, False])
def test_from_outside_the_derivative_of_a_sum_is_one(check_vma: bool) -> None:
    total = minijax.shard_map(
        lambda v: lax.psum(v.sum(), "x"),
        mesh=stacked.mesh_of(SIZES),
        in_specs=P("x"),
        out_specs=P(),
        check_vma=check_vma,
    )
    np.testing.assert_array_equal(minijax.grad(total)(jnp.arange(8.0)), np.ones(8))


def _names(jaxpr: Any) -> list[str]:
    names = []
    for eqn in jaxpr.eqns:
        names.append(eqn.primitive.name)
        for inner in jaxprs_in_params(eqn.params):
            names += _names(getattr(inner, "jaxpr", inner))
    return names


TRANSPOSES = {
    "psum": (LINEAR["psum"], "pvary"),
    "I to V": (lambda v: lax.pcast(v, "x", to="varying"), "psum_invariant"),
    "I to R": (lambda v: lax.pcast(v, "x", to="reduced"), "unreduced_psum"),
    "R to V": (
        lambda v: lax.pcast(lax.pcast(v, "x", to="reduced"), "x", to="varying"),
        "vary_unreduced_cast",
    ),
    "V to U": (lambda v: lax.pcast(v, "x", to="unreduced"), "reduced_vary_cast"),
    "U to I": (STATEFUL["delayed sum"], "preduced"),
    "U to V": (STATEFUL["delayed scatter"], "all_gather_reduced"),
    "V to R": (STATEFUL["gather to reduced"], "unreduced_reduce_scatter"),
    "V to I": (LINEAR["all_gather_invariant"], "dynamic_slice"),
    "all_gather": (LINEAR["all_gather"], "reduce_scatter"),
    "psum_scatter": (LINEAR["psum_scatter"], "all_gather"),
    "ppermute": (LINEAR["ppermute"], "ppermute"),
    "all_to_all": (LINEAR["all_to_all"], "all_to_all"),
    "pbroadcast": (LINEAR["pbroadcast"], "psum_invariant"),
}


@pytest.mark.feature("CO-28", "VT-04", "VT-05", "VT-06", "VT-07", "AD-06")
@pytest.mark.parametrize(("f", "expected"), TRANSPOSES.values(), ids=TRANSPOSES)
def test_transposes_are_those_of_the_table(f: Any, expected: str) -> None:
    invarying = f in (TRANSPOSES[k][0] for k in ("I to V", "I to R", "R to V"))
    spec = P() if invarying else P("x")

    def body(v: Any) -> Any:
        out, pullback = minijax.vjp(f, v)
        kind = minijax.typeof(out).cotangent_aval().manual_axis_type
        ct = jnp.ones(out.shape)
        if kind.varying or kind.unreduced:
            ct = lax.pcast(ct, "x", to="varying")
        if kind.unreduced:
            ct = lax.pcast(ct, "x", to="unreduced")
        if kind.reduced:
            ct = lax.pcast(ct, "x", to="reduced")
        assert minijax.typeof(pullback(ct)[0]) == minijax.typeof(v).cotangent_aval()
        return v

    mapped = minijax.shard_map(body, mesh=stacked.mesh_of(SIZES), in_specs=spec, out_specs=spec)
    length = 4 if invarying else 16
    assert expected in _names(minijax.make_jaxpr(mapped)(jnp.zeros((length, 2))).jaxpr)


@pytest.mark.feature("CO-28", "AD-06")
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda w, v: (lax.pcast(w, "x", to="varying") * v).sum(), {"psum_invariant": 1}),
        (lambda w, v: (w * v).sum(), {"psum_invariant": 1}),
        (
            lambda w, v: (lax.pcast(lax.pcast(w, "x", to="reduced"), "x", to="varying") * v).sum(),
            {"unreduced_psum": 1},
        ),
    ],
)
def test_gradients_communicate_where_types_ask_for_it(use: Any, expected: Any) -> None:
    mapped = minijax.shard_map(
        lambda w, v: minijax.grad(use)(w, v),
        mesh=stacked.mesh_of(SIZES),
        in_specs=(P(), P("x")),
        out_specs=P(),
    )
    names = _names(minijax.make_jaxpr(mapped)(jnp.ones(3), jnp.ones((4, 3))).jaxpr)
    sums = ("psum_invariant", "unreduced_psum", "psum")
    assert {n: names.count(n) for n in sums if n in names} == expected
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(mapped(np.ones(3, np.float32), x), x.sum(0))


@pytest.mark.feature("CO-28")
@pytest.mark.parametrize("index", [lambda w: w[1], lambda w: lax.dynamic_slice(w, (1,), (1,))[0]])
def test_reduced_parameters_may_be_indexed(index: Any) -> None:
    def loss(w: Any, v: Any) -> Any:
        reduced = lax.pcast(w, "x", to="reduced")
        return (lax.pcast(index(reduced), "x", to="varying") * v).sum()

    mapped = minijax.shard_map(
        minijax.grad(loss), mesh=stacked.mesh_of(SIZES), in_specs=(P(), P("x")), out_specs=P()
    )
    found = mapped(np.ones(3, np.float32), np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(found, [0, 6, 0])


@pytest.mark.feature("CO-28")
def test_finite_differences_agree() -> None:
    def loss(v: Any) -> Any:
        gathered = lax.all_gather(jnp.sin(v), "x", tiled=True)
        scattered = lax.psum_scatter(gathered**2, "x", tiled=True)
        return lax.psum((scattered * lax.ppermute(v, "x", [(0, 1), (1, 2)])).sum(), "x")

    mapped = minijax.jit(
        minijax.shard_map(loss, mesh=stacked.mesh_of(SIZES), in_specs=P("x"), out_specs=P())
    )
    rng = np.random.default_rng(0)
    with minijax.enable_x64(True):
        x, v = rng.standard_normal((2, 8))
        step = 1e-6
        expected = (mapped(x + step * v) - mapped(x - step * v)) / (2 * step)
        np.testing.assert_allclose(minijax.grad(mapped)(x) @ v, expected, rtol=1e-6)
        np.testing.assert_allclose(minijax.jvp(mapped, (x,), (v,))[1], expected, rtol=1e-6)
