"""Collectives that start and are done later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.aval import AbstractTodo, ShapedArray
from minijax.lax.collectives import asynchronous
from minijax.sharding import PartitionSpec as P
from tests.lax.collectives import stacked
from tests.lax.collectives.test_lowering import lowered

SIZES = {"x": 4}
PERM = [(0, 1), (1, 2), (3, 0)]
Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
PAIRS: dict[str, Pair] = {
    "all_gather": (lambda v: lax.all_gather_start(v, "x"), lambda v: lax.all_gather(v, "x")),
    "all_gather tiled": (
        lambda v: lax.all_gather_start(v, "x", axis=1, tiled=True),
        lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
    ),
    "psum": (lambda v: lax.psum_start(v, "x"), lambda v: lax.psum(v, "x")),
    "psum_scatter": (
        lambda v: lax.psum_scatter_start(v, "x", tiled=True),
        lambda v: lax.psum_scatter(v, "x", tiled=True),
    ),
    "all_to_all in place": (
        lambda v: lax.all_to_all_start(v, "x", 0, 0, tiled=True),
        lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True),
    ),
    "all_to_all tiled": (
        lambda v: lax.all_to_all_start(v, "x", 0, 1, tiled=True),
        lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True),
    ),
    "all_to_all": (
        lambda v: lax.all_to_all_start(v, "x", 0, 1),
        lambda v: lax.all_to_all(v, "x", 0, 1),
    ),
    "ppermute": (
        lambda v: lax.ppermute_start(v, "x", PERM),
        lambda v: lax.ppermute(v, "x", PERM),
    ),
}
by_pair = pytest.mark.parametrize(("start", "whole"), PAIRS.values(), ids=PAIRS)


def staged(f: Callable[[Any], Any], *, check_vma: bool = True) -> Any:
    """The jaxpr of `f` of a block f32[4,2] inside of shard_map."""
    mapped = minijax.shard_map(
        lambda v: (f(v), v)[1],
        mesh=stacked.mesh_of(SIZES),
        in_specs=P("x"),
        out_specs=P("x"),
        check_vma=check_vma,
    )
    closed = minijax.make_jaxpr(mapped)(jnp.zeros((16, 2)))
    return closed.jaxpr.eqns[0].params["jaxpr"].jaxpr


@pytest.mark.feature("AS-01", "AS-02", "AS-03", "AS-04", "AS-06", "AS-07", "AS-09")
@by_pair
@pytest.mark.parametrize("check_vma", [True, False])
def test_what_is_started_gives_the_same_when_it_is_done(
    start: Any, whole: Any, check_vma: bool
) -> None:
    x = stacked.numbers(SIZES, (4, 2))
    found, expected = (
        stacked.by_shard_map(f, SIZES, check_vma=check_vma)(x)
        for f in (lambda v: start(v).done(), whole)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.feature("AS-07")
@by_pair
def test_work_in_between_changes_no_result(start: Any, whole: Any) -> None:
    def late(v: Any) -> Any:
        todo = start(v)
        busy = lax.sin(v).sum()
        return todo.done() + busy

    def early(v: Any) -> Any:
        return whole(v) + lax.sin(v).sum()

    x = stacked.numbers(SIZES, (4, 2))
    found, expected = (stacked.by_shard_map(f, SIZES)(x) for f in (late, early))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.feature("AS-09")
@pytest.mark.parametrize("name", ["all_gather", "psum", "psum_scatter", "ppermute"])
def test_one_operation_is_started(name: str) -> None:
    text = lowered(lambda v: PAIRS[name][0](v).done().sum() + v, check_vma=False)
    assert '"stablehlo.async_start"' in text
    assert "!stablehlo.future<tensor<" in text
    assert '"stablehlo.async_done"' in text
    region = text.partition("async_start")[2].partition("!stablehlo.future")[0]
    assert "broadcast_in_dim" not in region
    assert "reshape" not in region


@pytest.mark.feature("AS-09")
def test_the_text_of_a_started_sum(golden: Any) -> None:
    golden("psum_start.mlir", lowered(lambda v: lax.psum_start(v, "x").done(), check_vma=False))


@pytest.mark.feature("AS-04", "AS-09")
@pytest.mark.parametrize(("platform", "starts"), [("cpu", False), ("cuda", True)])
def test_exchanges_between_dimensions_start_where_xla_takes_it(platform: str, starts: bool) -> None:
    text = lowered(
        lambda v: lax.all_to_all_start(v, "x", 0, 1, tiled=True).done().sum() + v,
        check_vma=False,
        platform=platform,
    )
    assert ("stablehlo.future" in text) == starts


@pytest.mark.feature("AS-05", "AS-11")
def test_broadcasts_start_on_gpus_only() -> None:
    def f(v: Any) -> Any:
        return lax.pbroadcast_start(v, "x", 1).done()

    assert "collective_broadcast" in lowered(f, platform="cuda")
    with pytest.raises(NotImplementedError, match=r"lax.pbroadcast_start(.|\n)*program for cpu"):
        lowered(f)


@pytest.mark.feature("AS-10")
@pytest.mark.parametrize("state", ["varying", "unreduced"])
def test_untiled_scatters_do_not_start(state: str) -> None:
    def f(v: Any) -> Any:
        x = v if state == "varying" else lax.pcast(v, "x", to="unreduced")
        return lax.psum_scatter_start(x, "x").done().sum() + v

    with pytest.raises(NotImplementedError, match=r"lax.psum_scatter_start(.|\n)*tiled=True"):
        lowered(f)


STARTS = [
    ("all_gather_start", "all_gather_done", lambda v: lax.all_gather_start(v, "x"), True),
    (
        "all_gather_reduced_start",
        "all_gather_done",
        lambda v: lax.all_gather_start(v, "x", to="reduced"),
        True,
    ),
    ("psum_invariant_start", "psum_done", lambda v: lax.psum_start(v, "x"), True),
    ("psum_start", "psum_done", lambda v: lax.psum_start(v, "x"), False),
    (
        "unreduced_psum_start",
        "psum_done",
        lambda v: lax.psum_start(lax.pcast(v, "x", to="unreduced"), "x"),
        True,
    ),
    ("reduce_scatter_start", "reduce_scatter_done", lambda v: lax.psum_scatter_start(v, "x"), True),
    (
        "unreduced_reduce_scatter_start",
        "reduce_scatter_done",
        lambda v: lax.psum_scatter_start(lax.pcast(v, "x", to="unreduced"), "x"),
        True,
    ),
    ("all_to_all_start", "all_to_all_done", lambda v: lax.all_to_all_start(v, "x", 0, 0), True),
    ("pbroadcast_start", "pbroadcast_done", lambda v: lax.pbroadcast_start(v, "x", 1), True),
    ("ppermute_start", "ppermute_done", lambda v: lax.ppermute_start(v, "x", PERM), True),
]


@pytest.mark.feature("AS-08", "CR-05")
@pytest.mark.parametrize(("start", "done", "f", "check_vma"), STARTS, ids=[s[0] for s in STARTS])
def test_types_wrap_and_unwrap(start: str, done: str, f: Any, check_vma: bool) -> None:
    eqns = staged(lambda v: f(v).done(), check_vma=check_vma).eqns
    (begin,) = [eqn for eqn in eqns if eqn.primitive.name == start]
    (end,) = [eqn for eqn in eqns if eqn.primitive.name == done]
    todo = begin.outvars[0].aval
    assert isinstance(todo, AbstractTodo)
    assert todo.inner_aval is end.outvars[0].aval
    assert end.params == {}


@pytest.mark.feature("AS-08")
@pytest.mark.parametrize(("start", "f"), [(s[0], s[2]) for s in STARTS if s[3]])
def test_starting_has_the_effects_of_the_whole(start: str, f: Any) -> None:
    eqns = staged(lambda v: f(v).done()).eqns
    (begin,) = [eqn for eqn in eqns if eqn.primitive.name == start]
    silent = start in ("ppermute_start", "pbroadcast_start")
    assert str(begin.effects) == ("frozenset()" if silent else "frozenset({NamedAxis(x)})")


@pytest.mark.feature("CR-05")
def test_types_of_what_has_started_are_printed_and_shared() -> None:
    todo = AbstractTodo(ShapedArray((2,), np.float32))
    assert str(todo) == "AbstractTodo{f32[2]}"
    assert todo is AbstractTodo(ShapedArray((2,), np.float32))
    assert hash(todo) == hash(AbstractTodo(ShapedArray((2,), np.float32)))


@pytest.mark.feature("AS-07")
@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda v: lax.psum_start(1.0, "x"), "lax.psum_done: nothing has started"),
        (lambda v: lax.psum_start(v, ()), "lax.psum_done: nothing has started"),
        (
            lambda v: lax.all_gather_start(v, "x", to="invarying"),
            "lax.all_gather_done: nothing has started",
        ),
    ],
)
def test_what_has_not_started_cannot_be_done(f: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        staged(lambda v: f(v).done())


@pytest.mark.feature("AS-07")
def test_trees_start_leaf_by_leaf() -> None:
    def f(v: Any) -> Any:
        found = lax.psum_start({"a": v, "b": [2 * v]}, "x").done()
        return found["a"] + found["b"][0]

    x = stacked.numbers(SIZES, (3,))
    np.testing.assert_array_equal(stacked.by_shard_map(f, SIZES)(x), 3 * stacked.psum(x))


@pytest.mark.feature("AS-07", "CR-05")
@pytest.mark.parametrize("name", ["psum", "all_to_all"])
def test_what_has_started_passes_through_jit(name: str) -> None:
    start, whole = PAIRS[name]

    def f(v: Any) -> Any:
        todo = minijax.jit(start)(v)
        return minijax.jit(lambda t: t.done())(todo)

    x = stacked.numbers(SIZES, (4, 2))
    found, expected = (stacked.by_shard_map(g, SIZES)(x) for g in (f, whole))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.feature("AS-12", "AD-07")
@pytest.mark.parametrize(("start", "f"), [(s[0], s[2]) for s in STARTS if s[3]])
@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (lambda g: lambda v: minijax.jvp(g, (v,), (v,)), "forward-mode differentiation"),
        (lambda g: lambda v: minijax.vmap(g)(jnp.stack([v, v])), "batching"),
    ],
    ids=["jvp", "vmap"],
)
def test_what_starts_has_no_derivative_and_no_batch(
    start: str, f: Any, transform: Any, words: str
) -> None:
    with pytest.raises(
        NotImplementedError, match=rf"{start}: the primitive has no rule for {words}"
    ):
        staged(transform(lambda v: f(v).done()))


@pytest.mark.feature("AS-07")
def test_futures_are_todos() -> None:
    assert asynchronous.Future is asynchronous.Todo


@pytest.mark.feature("AS-02")
def test_replicas_start_sums_too() -> None:
    x = stacked.numbers(SIZES, (3,))
    found = stacked.by_pmap(lambda v: lax.psum_start(v, "x").done(), SIZES)(x)
    np.testing.assert_array_equal(found, stacked.psum(x))


@pytest.mark.feature("AS-07")
def test_what_has_started_does_not_leave_the_devices() -> None:
    mapped = minijax.shard_map(
        lambda v: lax.psum_start(v, "x"),
        mesh=stacked.mesh_of(SIZES),
        in_specs=P("x"),
        out_specs=P(),
    )
    with pytest.raises(TypeError, match=r"has started only(.|\n)*\.done\(\)"):
        minijax.make_jaxpr(mapped)(jnp.zeros(4))
