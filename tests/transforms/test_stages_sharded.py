"""Stages of functions over several devices: lowered, compiled, called, looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
Struct = jax.ShapeDtypeStruct


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with jax.cpu_devices(8):
        yield Mesh(np.array(jax.devices()[:2]), "x")


SPLIT = P("x")


def struct(mesh: Mesh, spec: P = SPLIT) -> Struct:
    return Struct((8,), np.float32, sharding=NamedSharding(mesh, spec))


def compiled_double(mesh: Mesh, count: int = 1) -> Any:
    return jax.jit(lambda *a: sum(a) * 2).lower(*[struct(mesh)] * count).compile()


@pytest.mark.feature("AO-01", "AO-02")
def test_struct_with_sharding_lowers_like_an_array(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2)
    array = jax.device_put(X, NamedSharding(mesh, P("x")))

    assert f.lower(struct(mesh)).as_text() == f.lower(array).as_text()


def test_struct_with_sharding_compares_hashes_and_prints(mesh: Mesh) -> None:
    one, same = struct(mesh), struct(mesh)

    assert one == same
    assert hash(one) == hash(same)
    assert one != struct(mesh, P())
    assert one != Struct((8,), np.float32)
    assert repr(one) == f"ShapeDtypeStruct(shape=(8,), dtype=float32, sharding={one.sharding})"
    assert one.update(sharding=None) == Struct((8,), np.float32)


def test_struct_takes_a_spec_under_a_mesh(mesh: Mesh) -> None:
    with jax.set_mesh(mesh):
        assert Struct((8,), np.float32, sharding=P("x")) == struct(mesh)
    with pytest.raises(TypeError, match="ShapeDtypeStruct: a PartitionSpec needs a mesh"):
        Struct((8,), np.float32, sharding=P("x"))


def test_struct_refuses_what_is_no_sharding(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"sharding is no placement(.|\n)*'x' of type str"):
        Struct((8,), np.float32, sharding="x")
    with pytest.raises(ValueError, match="more entries than the array has dimensions"):
        Struct((8,), np.float32, sharding=NamedSharding(mesh, P("x", None)))


def test_struct_on_an_explicit_mesh_has_its_spec_in_its_type(mesh: Mesh) -> None:
    explicit = mesh.update(axis_types=(AxisType.Explicit,))

    traced = jax.jit(lambda a: a * 2).trace(struct(explicit))

    assert "f32[8@x]" in str(traced.jaxpr)
    assert traced.out_info.sharding.spec == P("x")
    assert traced.lower().compile().output_shardings == NamedSharding(explicit, P("x"))


def test_call_with_a_struct_is_refused(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2)

    with pytest.raises(TypeError, match="argument a describes an array and is none"):
        f(struct(mesh))
    with pytest.raises(TypeError, match="argument a describes an array and is none"):
        f.lower(struct(mesh)).compile()(struct(mesh))


@pytest.mark.feature("AO-03")
def test_compiled_tells_where_values_live(mesh: Mesh) -> None:
    grid = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    left = NamedSharding(grid, P("x", "y"))
    right = NamedSharding(grid, P("y", None))
    shape = (8, 8)

    compiled = (
        jax.jit(lambda a, *, b: {"r": a @ b})
        .lower(
            Struct(shape, np.float32, sharding=left), b=Struct(shape, np.float32, sharding=right)
        )
        .compile()
    )

    assert compiled.input_shardings == ((left,), {"b": right})
    assert compiled.output_shardings == {"r": NamedSharding(grid, P("x"))}
    assert compiled.out_info["r"].sharding == NamedSharding(grid, P("x"))
    assert compiled.cost_analysis()["flops"] < compiled_whole_flops()
    assert compiled.memory_analysis().output_size_in_bytes == 8 * 8 * 4 // 4


def compiled_whole_flops() -> float:
    whole = Struct((8, 8), np.float32)
    return jax.jit(lambda a, b: a @ b).lower(whole, whole).compile().cost_analysis()["flops"]


def test_out_info_tells_the_sharding_that_is_given(mesh: Mesh) -> None:
    given = NamedSharding(mesh, P("x"))
    f = jax.jit(lambda a: (a * 2, a), out_shardings=(given, None))

    for stage in (f.trace(X), f.lower(X)):
        assert [info.sharding for info in stage.out_info] == [given, None]
    assert f.eval_shape(X)[0] == Struct((8,), np.float32, sharding=given)


@pytest.mark.feature("JT-29")
def test_call_moves_what_is_uncommitted(mesh: Mesh) -> None:
    compiled = compiled_double(mesh)

    for x in (X, jax.numpy.asarray(X)):
        out = compiled(x)
        assert out.sharding == NamedSharding(mesh, P("x"))
        np.testing.assert_array_equal(out, 2 * X)


@pytest.mark.feature("JT-28", "JT-29", "LG-07")
def test_call_refuses_committed_arguments_that_live_elsewhere(mesh: Mesh) -> None:
    whole = jax.device_put(X, NamedSharding(mesh, P()))

    with pytest.raises(ValueError, match=r"placements of arguments differ.*\(7 of 7\)") as caught:
        compiled_double(mesh, 7)(*[whole] * 7)

    text = str(caught.value)
    assert text.count("compiled for NamedSharding") == 5
    assert "a[0]: compiled for NamedSharding" in text
    assert "a[4]: compiled for NamedSharding" in text
    assert "spec=P('x',)" in text
    assert "spec=P()" in text


@pytest.mark.feature("JT-28", "LG-07")
def test_call_lists_five_wrong_types_of_all(mesh: Mesh) -> None:
    with pytest.raises(TypeError, match=r"types of arguments differ.*\(7 of 7\)") as caught:
        compiled_double(mesh, 7)(*[X[:3]] * 7)

    assert str(caught.value).count("compiled with f32[8], called with f32[3]") == 5


@pytest.mark.parametrize("elsewhere", ["one device", "another mesh", "another order"])
def test_call_refuses_other_devices(mesh: Mesh, elsewhere: str) -> None:
    devices = np.array(jax.devices())
    places = {
        "one device": SingleDeviceSharding(devices[0]),
        "another mesh": NamedSharding(Mesh(devices[2:4], "x"), P("x")),
        "another order": NamedSharding(Mesh(devices[[1, 0]], "x"), P("x")),
    }

    with pytest.raises(ValueError, match=r"a\[0\]: compiled for NamedSharding"):
        compiled_double(mesh)(jax.device_put(X, places[elsewhere]))


@pytest.mark.feature("JT-39")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_call_moves_arguments_to_a_device_that_was_named(mesh: Mesh) -> None:
    there, here = jax.devices()[1], jax.devices()[5]
    compiled = jax.jit(lambda a: a * 2, device=there).lower(X).compile()

    assert compiled(jax.device_put(X, here)).devices() == {there}


def test_call_does_not_ask_where_unused_arguments_are(mesh: Mesh) -> None:
    compiled = jax.jit(lambda a, b: a * 2).lower(struct(mesh), struct(mesh)).compile()

    out = compiled(X, jax.device_put(X, jax.devices()[5]))

    assert out.sharding == NamedSharding(mesh, P("x"))


def test_call_refuses_donated_arrays(mesh: Mesh) -> None:
    compiled = jax.jit(lambda a: a * 2, donate_argnums=0).lower(struct(mesh)).compile()
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    compiled(x)

    with pytest.raises(RuntimeError, match="the array has been deleted"):
        compiled(x)


@pytest.mark.feature("AO-05")
def test_compile_remembers_its_result_unless_options_are_given(mesh: Mesh) -> None:
    lowered = jax.jit(lambda a: a * 2).lower(struct(mesh))

    assert lowered.compile() is lowered.compile()
    assert lowered.compile({"xla_embed_ir_in_executable": True}) is not lowered.compile()


def test_abstract_mesh_lowers_without_devices(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2)
    abstract = Struct((8,), np.float32, sharding=NamedSharding(mesh.abstract_mesh, P("x")))

    lowered = f.trace(abstract).lower(lowering_platforms=("cpu",))

    assert lowered.as_text() == f.lower(struct(mesh)).as_text()
    with pytest.raises(ValueError, match="its meshes are abstract"):
        lowered.compile()


def test_abstract_mesh_stands_on_the_mesh_in_force(mesh: Mesh) -> None:
    abstract = Struct((8,), np.float32, sharding=NamedSharding(mesh.abstract_mesh, P("x")))

    with jax.set_mesh(mesh):
        compiled = jax.jit(lambda a: a * 2).lower(abstract).compile()

    assert compiled.input_shardings == ((NamedSharding(mesh, P("x")),), {})


def test_struct_that_contradicts_in_shardings_is_refused(mesh: Mesh) -> None:
    f = jax.jit(lambda a: a * 2, in_shardings=NamedSharding(mesh, P()))
    others = Mesh(np.array(jax.devices()[2:4]), "x")

    for given in (struct(mesh), struct(others)):
        with pytest.raises(
            ValueError, match=r"argument a of <lambda>.*otherwise than in_shardings"
        ):
            f.lower(given)


SPLIT_SUM = {"in_specs": P("x"), "out_specs": P()}


def _summed(block: jax.Array) -> jax.Array:
    return jax.lax.psum(block.sum(), "x")


def _constrained(mesh: Any) -> Any:
    def f(x: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("x")))

    return f


def _inner(mesh: Any) -> Any:
    return lambda x: jax.jit(jax.shard_map(_summed, mesh=mesh, **SPLIT_SUM))(jnp.sin(x))


def _of_other_shape(mesh: Any) -> Any:
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices.reshape(1, -1), ("a", "b"), (AxisType.Auto,) * 2)
    return AbstractMesh((1, 2), ("a", "b"), (AxisType.Auto,) * 2)


def _both(mesh: Any) -> Any:
    other = _constrained(mesh)
    per_device = jax.shard_map(
        jnp.cos, mesh=_of_other_shape(mesh), in_specs=P("b"), out_specs=P("b")
    )
    return lambda x: per_device(other(x))


# Each makes a function for a mesh, and the options that `jit` gets.
PLANNED: dict[str, tuple[Any, Any]] = {
    "shard_map": (lambda m: jax.shard_map(_summed, mesh=m, **SPLIT_SUM), lambda m: {}),
    "shard_map inside": (_inner, lambda m: {}),
    "constraint": (_constrained, lambda m: {}),
    "in_shardings": (lambda m: jnp.sin, lambda m: {"in_shardings": NamedSharding(m, P("x"))}),
    "out_shardings": (lambda m: jnp.sin, lambda m: {"out_shardings": NamedSharding(m, P("x"))}),
    "donated": (
        lambda m: jax.shard_map(jnp.sin, mesh=m, in_specs=P("x"), out_specs=P("x")),
        lambda m: {
            "in_shardings": NamedSharding(m, P("x")),
            "out_shardings": NamedSharding(m, P("x")),
            "donate_argnums": 0,
        },
    ),
    "two meshes": (_both, lambda m: {"out_shardings": NamedSharding(_of_other_shape(m), P("b"))}),
    "gradient": (
        lambda m: jax.grad(jax.shard_map(_summed, mesh=m, **SPLIT_SUM)),
        lambda m: {"in_shardings": NamedSharding(m, P("x"))},
    ),
}


@pytest.mark.feature("UX-07")
@pytest.mark.parametrize("platform", ["cpu", "tpu"])
@pytest.mark.parametrize("case", PLANNED)
def test_text_for_an_abstract_mesh_is_that_with_devices(
    mesh: Mesh, case: str, platform: str
) -> None:
    make, options = PLANNED[case]
    auto = Mesh(mesh.devices, "x", (AxisType.Auto,))

    def text(on: Any) -> str:
        traced = jax.jit(make(on), **options(on)).trace(Struct((8,), np.float32))
        return traced.lower(lowering_platforms=(platform,)).as_text()

    assert text(auto.abstract_mesh) == text(auto)
    assert "num_partitions = 2" in text(auto)


@pytest.mark.feature("UX-07")
def test_program_is_lowered_for_more_devices_than_there_are() -> None:
    planned = AbstractMesh((64,), ("x",), (AxisType.Auto,))
    f = jax.jit(jax.shard_map(_summed, mesh=planned, **SPLIT_SUM))
    lowered = f.trace(np.ones(128, np.float32)).lower(lowering_platforms=("cpu",))

    assert '"x"=64' in lowered.as_text()
    assert "tensor<2xf32>" in lowered.as_text()
    assert lowered.as_text() == f.lower(Struct((128,), np.float32)).as_text()
    assert lowered.out_info == Struct((), np.float32)
    with pytest.raises(ValueError, match=r"its meshes are abstract(.|\n)*make_mesh"):
        lowered.compile()


@pytest.mark.feature("UX-07")
def test_types_on_an_abstract_mesh_place_results_without_devices(mesh: Mesh) -> None:
    explicit = Mesh(mesh.devices, "x", (AxisType.Explicit,))

    def lowered(on: Any) -> str:
        f = jax.jit(lambda x: jax.reshard(jnp.sin(x), NamedSharding(on, P())))
        given = Struct((8,), np.float32, sharding=NamedSharding(on, P("x")))
        return f.trace(given).lower(lowering_platforms=("cpu",)).as_text()

    assert lowered(explicit.abstract_mesh) == lowered(explicit)


@pytest.mark.feature("UX-07")
def test_abstract_meshes_of_different_sizes_are_refused() -> None:
    four, two = (AbstractMesh((n,), ("x",), (AxisType.Auto,)) for n in (4, 2))
    f = jax.jit(_constrained(four), in_shardings=NamedSharding(two, P("x")))
    with pytest.raises(ValueError, match="abstract meshes of the program are of different sizes"):
        f.lower(Struct((8,), np.float32))


@pytest.mark.feature("UX-07")
def test_abstract_mesh_of_one_device_needs_no_other() -> None:
    one = AbstractMesh((1,), ("x",), (AxisType.Auto,))
    f = jax.jit(jax.shard_map(_summed, mesh=one, **SPLIT_SUM))
    assert float(f.lower(X).compile()(X)) == 28.0
