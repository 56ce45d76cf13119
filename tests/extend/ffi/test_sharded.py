"""Foreign functions over several devices: what is gathered, and what each device computes."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import P, ffi
from minijax.core import config
from minijax.extend import core, mlir
from minijax.lowering import stablehlo
from minijax.sharding import AxisType, Mesh, NamedSharding
from tests.extend.ffi.conftest import PREFIX

pytestmark = pytest.mark.usefixtures("kernels")

SHAPE = (8, 4, 8)
X = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
EXPECTED = X / np.linalg.norm(X, axis=-1, keepdims=True)
MARKED, UNMARKED = PREFIX + "normalize_batches", PREFIX + "normalize_rows"
SPECS = [P("x"), P("x", "y"), P(None, "x"), P(None, None, "x"), P("x", None, "y")]


@pytest.fixture
def mesh(devices: Callable[[int], list[Any]]) -> Mesh:
    devices(8)
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def normalize(target: str, batch: int | None = None, **options: Any) -> Any:
    return ffi.ffi_call(
        target, jax.ShapeDtypeStruct(SHAPE, np.float32), num_batch_dims=batch, **options
    )


def program(f: Any, x: Any) -> tuple[bool, tuple[int, ...]]:
    """Whether the compiled program gathers, and the shape that the kernel gets on each device."""
    text = jax.jit(f).lower(x).compile().as_text()
    (shape,) = re.findall(r"f32\[([\d,]+)\]\S* custom-call\([^\n]*normalize", text)
    return "all-gather" in text, tuple(map(int, shape.split(",")))


def share(spec: P, batch: int) -> tuple[int, ...]:
    """What a device has of SHAPE whose first dimensions stay split."""
    entries = (*spec, None, None, None)[:3]
    parts = {"x": 4, "y": 2, None: 1}
    return tuple(
        size // (parts[name] if d < batch else 1)
        for d, (size, name) in enumerate(zip(SHAPE, entries, strict=True))
    )


@pytest.mark.slow
@pytest.mark.feature("FF-07")
@pytest.mark.feature("FF-08")
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_batch_dimensions_stay_split_and_others_are_gathered(mesh: Mesh, batch: int) -> None:
    f = normalize(MARKED, batch)
    for spec in SPECS:
        x = jax.device_put(X, NamedSharding(mesh, spec))
        out = jax.jit(f)(x)
        kept = P(*spec[:batch])

        assert program(f, x) == (any(spec[batch:]), share(spec, batch)), spec
        np.testing.assert_allclose(out, EXPECTED, rtol=1e-5, err_msg=str(spec))
        assert out.sharding.is_equivalent_to(NamedSharding(mesh, kept), 3), spec


@pytest.mark.feature("FF-07")
def test_call_of_a_function_that_is_not_marked_gets_the_whole(mesh: Mesh) -> None:
    x = jax.device_put(X, NamedSharding(mesh, P("x")))

    assert program(normalize(UNMARKED, 1), x) == (True, SHAPE)
    assert program(normalize(UNMARKED), x) == (True, SHAPE)
    assert program(normalize(MARKED), x) == (True, SHAPE)


RULE = "#sdy.op_sharding_rule<([i, j, k])->([i, j, l]) {i=8, j=4, k=8, l=8}, custom>"


def operation(*, frontend: bool, rule: bool) -> Any:
    """A primitive that calls the marked kernel and says so much of its batch."""
    extra: dict[str, Any] = {}
    if frontend:
        count = stablehlo.dictionary({"num_batch_dims": stablehlo.string("2")})
        extra["mhlo.frontend_attributes"] = count
    if rule:
        extra["sdy.sharding_rule"] = stablehlo.attribute(RULE)
    made = core.Primitive(f"{PREFIX}normalize_{frontend}_{rule}")
    made.def_abstract_eval(lambda x: x)
    mlir.register_lowering(made, ffi.ffi_lowering(MARKED, extra_attributes=extra))
    return made.bind


@pytest.mark.slow
@pytest.mark.feature("FF-02")
@pytest.mark.feature("FF-08")
def test_mark_attribute_and_rule_are_all_needed(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x", "y"))
    x = jax.device_put(X, sharding)
    whole, part = (True, SHAPE), (False, (2, 2, 8))

    assert program(operation(frontend=False, rule=False), x) == whole
    assert program(operation(frontend=False, rule=True), x) == whole
    assert program(operation(frontend=True, rule=True), x) == part
    # Without the rule the result is gathered, unless somebody asks for its parts.
    without_rule = operation(frontend=True, rule=False)
    assert program(without_rule, x) == (True, (2, 2, 8))
    text = jax.jit(without_rule, out_shardings=sharding).lower(x).compile().as_text()
    assert "all-gather" not in text


@pytest.mark.feature("FF-08")
def test_older_partitioner_needs_no_rule(mesh: Mesh) -> None:
    f = normalize(MARKED, 2)
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))

    with config.use_shardy_partitioner(False):
        assert "sdy" not in jax.jit(f).lower(x).as_text()
        assert program(f, x) == (False, (2, 2, 8))


@pytest.mark.feature("FF-07")
def test_eager_call_keeps_what_it_may(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x"))
    x = jax.device_put(X, sharding)
    kept, gathered = normalize(MARKED, 1)(x), normalize(UNMARKED)(x)

    assert kept.sharding.is_equivalent_to(sharding, 3)
    assert gathered.is_fully_replicated
    for out in (kept, gathered):
        np.testing.assert_allclose(out, EXPECTED, rtol=1e-5)


@pytest.mark.feature("FF-08")
def test_types_on_explicit_axes_show_the_batch(devices: Callable[[int], Sequence[Any]]) -> None:
    devices(8)
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x = jax.device_put(X, NamedSharding(mesh, P("x", None, "y")))
    promised = jax.ShapeDtypeStruct(SHAPE, np.float32, sharding=NamedSharding(mesh, P(None, "y")))
    row = jax.ShapeDtypeStruct(SHAPE[1:], np.float32)
    by_row = ffi.ffi_call(MARKED, row, num_batch_dims=0, vmap_method="broadcast_all")

    calls = normalize(MARKED, 1), jax.vmap(by_row), ffi.ffi_call(MARKED, promised)

    with jax.set_mesh(mesh):
        specs = [jax.eval_shape(call, x).sharding.spec for call in calls]
        out = jax.jit(normalize(MARKED, 1))(x)

    assert specs == [P("x", None, None), P("x", None, None), P(None, "y", None)]
    assert out.sharding.spec == P("x", None, None)
    np.testing.assert_allclose(out, EXPECTED, rtol=1e-5)


@pytest.mark.feature("FF-01")
def test_results_per_device_vary_as_operands_do(mesh: Mesh) -> None:
    add = ffi.ffi_call(PREFIX + "weigh", jax.ShapeDtypeStruct((2, 4, 8), np.float32))
    seen = []

    def f(x: Any, w: Any) -> Any:
        out = add(x, w)
        seen.append((jax.typeof(out).vma, jax.typeof(add(w, w)).vma))
        return out

    mapped = jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    w = np.ones((2, 4, 8), np.float32)
    text = jax.jit(mapped).lower(X, w).compile().as_text()

    np.testing.assert_array_equal(mapped(X, w), X)
    assert seen[0] == (frozenset({"x"}), frozenset())
    assert "all-gather" not in text


@pytest.mark.feature("FF-10")
def test_side_effects_happen_on_each_device(mesh: Mesh, kernels: Any) -> None:
    note = ffi.ffi_call(
        PREFIX + "note", jax.ShapeDtypeStruct((8,), np.float32), has_side_effect=True
    )
    x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
    before = kernels.sum_of_notes()

    assert jax.jit(lambda x: (note(x), x)[1])(x).tolist() == [1] * 8
    assert kernels.sum_of_notes() - before == 8 * 8


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["cholesky", "eigh", "lu", "qr", "svd"])
def test_factors_of_a_split_batch_are_computed_where_it_lies(mesh: Mesh, name: str) -> None:
    factor = getattr(jax.lax.linalg, name)
    a = X @ X.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
    expected = jax.tree.leaves(factor(a))
    by_batch = jax.device_put(a, NamedSharding(mesh, P("x")))
    by_row = jax.device_put(a, NamedSharding(mesh, P(None, "x")))

    assert "all-gather" not in jax.jit(factor).lower(by_batch).compile().as_text()
    for x, spec in ((by_batch, P("x")), (by_row, P())):
        outs = jax.tree.leaves(jax.jit(factor)(x))
        for out, known in zip(outs, expected, strict=True):
            assert out.sharding.is_equivalent_to(NamedSharding(mesh, spec), out.ndim)
            np.testing.assert_allclose(out, known, rtol=1e-4, atol=1e-5)
