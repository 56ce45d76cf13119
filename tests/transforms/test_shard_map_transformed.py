"""`shard_map` under transformations: derivatives, batches, checkpoints, checks, effects."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core.errors import NonFiniteError
from minijax.experimental import checkify, io_callback
from minijax.sharding import AxisType, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8) / 10
both_modes = pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def mapped(mesh: Mesh, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return minijax.shard_map(
        function, **{"mesh": mesh, "in_specs": P("x", "y"), "out_specs": P("x", "y"), **options}
    )


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jnp.sum(f(*args))


@pytest.mark.feature("SM-10")
@both_modes
def test_residuals_are_split_over_the_axes_that_they_vary_over(checked: bool, mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * jnp.sin(jnp.sum(lax.psum(a, "y"))), check_vma=checked)
    text = str(minijax.make_jaxpr(lambda x: minijax.vjp(f, x)[0])(X))
    forward = re.search(r"out_specs=\((.*)\)", text)
    assert forward is not None
    scalar = "P('x',)" if checked else "P(('x', 'y'),)"
    assert scalar in forward[1]


@pytest.mark.feature("SM-10")
def test_unused_results_are_not_computed(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: (jnp.sin(a), jnp.cos(a)))
    text = minijax.jit(lambda x: f(x)[0]).lower(X).as_text()
    assert "sine" in text
    assert "cosine" not in text


@pytest.mark.feature("SM-10")
@both_modes
def test_jvp_and_linearize_agree(checked: bool, mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * lax.psum(a, "x"), check_vma=checked)
    t = np.cos(X)
    sums = [np.tile(v.reshape(4, 2, 8).sum(0), (4, 1)) for v in (X, t)]
    expected = t * sums[0] + X * sums[1]
    np.testing.assert_allclose(minijax.jvp(f, (X,), (t,))[1], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(minijax.linearize(f, X)[1](t), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.feature("SM-10")
@both_modes
def test_hessian(checked: bool, mesh: Mesh) -> None:
    f = mapped(
        mesh,
        lambda a: lax.psum(jnp.sum(a**3) * jnp.sum(a), "x"),
        in_specs=P("x"),
        out_specs=P(),
        check_vma=checked,
    )

    def whole(v: Any) -> Any:
        b = v.reshape(4, 2)
        return jnp.sum(jnp.sum(b**3, 1) * jnp.sum(b, 1))

    expected = minijax.hessian(whole)(X[0])
    np.testing.assert_allclose(minijax.hessian(f)(X[0]), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.feature("AD-05")
def test_checked_gradients_sum_only_where_types_ask(mesh: Mesh) -> None:
    f = mapped(mesh, lambda w, a: w * a, in_specs=(P("x"), P("x", "y")))
    text = str(minijax.make_jaxpr(minijax.grad(total(f)))(X[:, :4], X))
    assert re.findall(r"psum\w*\[axes=\(([^)]*)\)", text) == ["'y',"]


@pytest.mark.feature("AD-05")
@pytest.mark.parametrize("checked", [True, False])
def test_psum_inside_grad_counts_as_the_mode_says(checked: bool, mesh: Mesh) -> None:
    f = mapped(mesh, minijax.grad(lambda a: lax.psum(jnp.sum(a), ("x", "y"))), check_vma=checked)
    np.testing.assert_array_equal(f(X), np.full((8, 8), 1.0 if checked else 8.0))


SPECS = [P(), P("x"), P("y"), P("x", "y"), P(None, "x"), P("y", "x"), P(("x", "y")), P(None, "y")]


@pytest.mark.slow
@pytest.mark.feature("AD-05")
@both_modes
@pytest.mark.parametrize("seed", range(12))
def test_transposes_are_adjoint_for_any_specs(seed: int, checked: bool, mesh: Mesh) -> None:
    rng = np.random.default_rng(seed)
    first, second, out = (SPECS[i] for i in rng.integers(len(SPECS), size=3))

    def f(a: Any, b: Any) -> Any:
        weight = 1.0 + lax.axis_index("x") + 5 * lax.axis_index("y")
        block = weight * jnp.sum(a) * jnp.ones((2, 3)) + jnp.sum(b[:1])
        # Along the other axes the result has to be the same.
        return lax.psum(block, tuple(n for n in ("x", "y") if n not in out.names()))

    mapping = minijax.shard_map(
        f, mesh=mesh, in_specs=(first, second), out_specs=out, check_vma=checked
    )
    a, b = rng.normal(size=(2, 8, 8)).astype(np.float32)
    primal = mapping(a, b)
    ct = rng.normal(size=primal.shape).astype(np.float32)
    tangents = rng.normal(size=(2, 8, 8)).astype(np.float32)
    _, moved = minijax.jvp(mapping, (a, b), tuple(tangents))
    _, pullback = minijax.vjp(mapping, a, b)
    expected = np.vdot(ct, moved)
    found = sum(np.vdot(t, g) for t, g in zip(tangents, pullback(ct), strict=True))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.feature("SM-09")
def test_vmap_leaves_the_batch_whole(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * lax.psum(a, "x"))
    text = str(minijax.make_jaxpr(minijax.vmap(f))(np.stack([X, X])))
    assert "in_specs=(P(None, 'x', 'y'),)" in text


@pytest.mark.feature("SM-09")
def test_spmd_axis_name_splits_the_batch(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: a * lax.psum(a, "x"), in_specs=P("x"), out_specs=P("x"))
    xs = np.stack([X, X + 1])
    batched = minijax.vmap(f, spmd_axis_name="y")
    text = str(minijax.make_jaxpr(batched)(xs))
    assert "in_specs=(P('y', 'x'),)" in text
    assert "f32[1,2,8]{V:(x,y)}" in text
    expected = xs * np.tile(xs.reshape(2, 4, 2, 8).sum(1), (1, 4, 1))
    np.testing.assert_allclose(batched(xs), expected, rtol=1e-5)


@pytest.mark.feature("SM-09", "SM-10")
@both_modes
def test_what_a_split_batch_shares_gets_the_gradients_of_all(checked: bool, mesh: Mesh) -> None:
    f = mapped(
        mesh, lambda w, a: w * a, in_specs=(P(), P("x")), out_specs=P("x"), check_vma=checked
    )
    xs = np.stack([X, X + 1])
    batched = minijax.vmap(f, in_axes=(None, 0), spmd_axis_name="y")
    found = minijax.grad(lambda w: jnp.sum(batched(w, xs)))(jnp.ones(8))
    np.testing.assert_allclose(found, xs.sum((0, 1)), rtol=1e-5)


@pytest.mark.feature("SM-09")
def test_vmap_of_some_arguments_along_any_dimension(mesh: Mesh) -> None:
    f = mapped(mesh, lambda a, b: a + b, in_specs=(P("x", "y"), P()))
    xs = np.stack([X, X + 1], 1)
    found = minijax.vmap(f, in_axes=(1, None), out_axes=2)(xs, 2.0)
    np.testing.assert_allclose(found, np.moveaxis(xs, 1, 2) + 2)


@pytest.mark.feature("BT-08")
@both_modes
def test_collectives_over_mapped_and_mesh_axes(checked: bool, mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        def row(r: Any) -> Any:
            both = lax.psum(r, ("x", "i"))
            if checked:
                assert minijax.typeof(both).vma == {"y"}
            return both

        return minijax.vmap(row, axis_name="i", out_axes=None)(a)

    found = mapped(mesh, f, out_specs=P("y"), check_vma=checked)(X)
    np.testing.assert_allclose(found, X.sum(0), rtol=1e-5)


policies = minijax.checkpoint_policies


@pytest.mark.slow
@pytest.mark.feature("SM-10")
@pytest.mark.parametrize(
    ("policy", "products"),
    [(None, 3), (policies.dots_saveable, 2), (policies.nothing_saveable, 3)],
    ids=["none", "dots", "nothing"],
)
def test_policies_see_inside(policy: Any, products: int, mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: jnp.sin(jnp.sin(a) @ jnp.ones((4, 4))) * jnp.sin(jnp.sum(a)))
    kept = minijax.checkpoint(f, policy=policy)
    text = str(minijax.make_jaxpr(minijax.grad(total(kept)))(X))
    assert text.count("dot_general") == products
    expected = minijax.grad(total(f))(X)
    found = minijax.grad(total(kept))(X)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.feature("LG-06")
@pytest.mark.parametrize("under_jit", [False, True])
def test_debug_nans_tells_which_device(under_jit: bool, mesh: Mesh) -> None:
    f = mapped(mesh, lambda a: jnp.log(a - 3.05) + 1, in_specs=P("x"), out_specs=P("x"))
    x = np.where(np.arange(8).reshape(8, 1) == 5, 0, X + 5)
    with (
        minijax.debug_nans(True),
        pytest.raises(FloatingPointError, match=r"log: .*NaN at index \(1, 0\).*\n.*cpu:4 at mesh"),
    ):
        (minijax.jit(f) if under_jit else f)(x)


@pytest.mark.slow
@pytest.mark.feature("SM-01")
def test_checked_finds_faults_inside(mesh: Mesh) -> None:
    f = minijax.checked(mapped(mesh, lambda a: jnp.log(a) + lax.psum(a, "x")))
    np.testing.assert_allclose(
        f(X + 1), np.log(X + 1) + np.tile((X + 1).reshape(4, 2, 8).sum(0), (4, 1)), rtol=1e-5
    )
    with pytest.raises(NonFiniteError, match=r"log: produced a NaN"):
        f(X - 1)


@pytest.mark.slow
@pytest.mark.feature("SM-01")
def test_checkify_finds_faults_inside(mesh: Mesh) -> None:
    f = checkify.checkify(mapped(mesh, lambda a: jnp.log(a)), errors=checkify.nan_checks)
    assert f(X + 1)[0].get() is None
    assert "NaN" in f(X - 1)[0].get()


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("under_jit", [False, True])
def test_every_device_prints(
    under_jit: bool, mesh: Mesh, capfd: pytest.CaptureFixture[str]
) -> None:
    def f(a: Any) -> Any:
        minijax.debug.print("{} {}", lax.axis_index("x"), lax.axis_index("y"))
        return a

    g = mapped(mesh, f)
    (minijax.jit(g) if under_jit else g)(X)
    minijax.effects_barrier()
    lines = capfd.readouterr().out.split("\n")
    assert sorted(filter(None, lines)) == [f"{i} {j}" for i in range(4) for j in range(2)]


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("call", [minijax.pure_callback, io_callback], ids=["pure", "io"])
def test_callbacks_see_blocks(call: Any, mesh: Mesh) -> None:
    shapes = []

    def host(block: Any) -> Any:
        shapes.append(block.shape)
        return np.asarray(block) * 2

    f = minijax.jit(mapped(mesh, lambda a: call(host, a, a)))
    np.testing.assert_array_equal(f(X), X * 2)
    assert shapes == [(2, 4)] * 8


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("under_jit", [False, True])
def test_references_are_cut_by_specs(under_jit: bool, mesh: Mesh) -> None:
    ref = minijax.new_ref(jnp.asarray(X))

    def body(r: Any) -> None:
        assert r.shape == (2, 4)
        r[...] = r[...] * lax.axis_index("x")

    f = mapped(mesh, body, out_specs=None)
    (minijax.jit(f) if under_jit else f)(ref)
    np.testing.assert_allclose(ref[...], X * np.repeat(np.arange(4), 2).reshape(8, 1), rtol=1e-6)


@pytest.mark.feature("SM-01")
@pytest.mark.parametrize("under_jit", [False, True])
def test_references_closed_over_take_what_is_the_same(under_jit: bool, mesh: Mesh) -> None:
    ref = minijax.new_ref(jnp.zeros(()))

    def body(a: Any) -> None:
        ref[...] = ref[...] + lax.psum(jnp.sum(a), ("x", "y"))

    f = mapped(mesh, body, out_specs=None)
    (minijax.jit(f) if under_jit else f)(X)
    np.testing.assert_allclose(ref[...], X.sum(), rtol=1e-5)


@pytest.mark.feature("SM-10")
def test_gradient_through_a_reference_that_blocks_fill(mesh: Mesh) -> None:
    def loss(x: Any) -> Any:
        ref = minijax.new_ref(jnp.zeros((8, 8)))

        def body(a: Any, r: Any) -> None:
            r[...] = a * a

        mapped(mesh, body, in_specs=(P("x", "y"), P("x", "y")), out_specs=None)(x, ref)
        return jnp.sum(ref[...])

    np.testing.assert_allclose(minijax.grad(loss)(X), 2 * X, rtol=1e-6)


@pytest.mark.feature("AO-04")
def test_compiled_programs_are_called(mesh: Mesh) -> None:
    f = minijax.jit(mapped(mesh, lambda a: lax.psum(a, "x"), out_specs=P(None, "y")))
    compiled = f.lower(X).compile()
    split = NamedSharding(mesh, P("x", "y"))
    assert compiled.input_shardings[0] == (split,)
    np.testing.assert_allclose(
        compiled(minijax.device_put(X, split)), X.reshape(4, 2, 8).sum(0), rtol=1e-6
    )


@pytest.mark.feature("AO-04")
def test_explain_counts_the_collectives_inside(mesh: Mesh) -> None:
    f = minijax.jit(mapped(mesh, lambda a: lax.psum(a, "x"), out_specs=P(None, "y")))
    minijax.testing.assert_collectives(f, all_reduce=1)(X)
    assert "all_reduce" in str(minijax.explain.plan(f, mesh)(X))
    assert "shard_map[" in str(minijax.explain.stages(f)(X))
