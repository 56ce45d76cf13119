"""Traced, lowered, compiled: what each stage shows, and the checks of a compiled call."""

import gc
import weakref

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import sharding


@jax.jit
def scaled(params, x):
    return {"y": params["w"] * x}


PARAMS = {"w": np.float32(2.0)}
X = np.arange(3, dtype=np.float32)


@pytest.mark.feature("AO-01")
def test_stages_lead_from_function_to_result():
    traced = scaled.trace(PARAMS, X)
    assert traced.fun_name == "scaled"
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["mul"]
    compiled = traced.lower().compile()
    np.testing.assert_allclose(compiled(PARAMS, X)["y"], 2 * X)


@pytest.mark.feature("AO-01")
def test_stages_take_shapes_in_place_of_arrays():
    shape = jax.ShapeDtypeStruct((3,), jnp.float32)
    compiled = scaled.lower({"w": jax.ShapeDtypeStruct((), jnp.float32)}, shape).compile()
    np.testing.assert_allclose(compiled(PARAMS, X)["y"], 2 * X)


def warm(function, x=X):
    """A compiled program that has answered the same call, so that C++ answers the next one."""
    compiled = jax.jit(function).lower(x).compile()
    for _ in range(3):
        compiled(jnp.asarray(x))
    return compiled


@pytest.mark.feature("AO-03")
def test_known_calls_of_a_compiled_program_are_answered_by_cpp(monkeypatch):
    compiled = warm(lambda x: x + 1)
    monkeypatch.setattr(type(compiled), "_answer", None)
    assert compiled(jnp.asarray(X)).tolist() == [1, 2, 3]


@pytest.mark.feature("AO-03")
def test_a_compiled_program_checks_its_arguments_after_calls_that_cpp_has_answered():
    compiled = warm(lambda x: x + 1)
    deleted = jnp.asarray(X)
    deleted.delete()
    with pytest.raises(jax.errors.DeletedArrayError):
        compiled(deleted)
    with pytest.raises(TypeError, match="types of arguments differ"):
        compiled(jnp.ones(4))
    with pytest.raises(TypeError, match="another tree"):
        compiled([jnp.asarray(X)])
    with pytest.raises(TypeError, match="traced values"):
        jax.jit(lambda x: compiled(x))(X)
    assert compiled(jnp.asarray(X)).tolist() == [1, 2, 3]


@pytest.mark.feature("AO-03")
def test_a_compiled_program_finds_nans_also_where_cpp_would_answer():
    compiled = warm(jnp.log, X + 1)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        compiled(jnp.asarray(-X - 1))


def test_a_compiled_program_dies_with_its_last_reference():
    compiled = warm(lambda x: x + 1)
    gone = weakref.ref(compiled)
    gc.disable()
    del compiled
    gc.enable()
    assert gone() is None


@pytest.mark.feature("AO-02")
def test_lowered_shows_its_module():
    lowered = scaled.lower(PARAMS, X)
    assert "stablehlo.multiply" in lowered.as_text()
    assert "module @jit_scaled" in lowered.as_text()
    assert lowered.as_text("hlo").startswith("HloModule jit_scaled")
    assert lowered.compiler_ir().operation.name == "builtin.module"
    assert "test_stages.py" in lowered.as_text(debug_info=True)


@pytest.mark.feature("AO-02")
def test_lowered_refuses_unknown_dialects():
    with pytest.raises(ValueError, match="unknown dialect 'mhlo-ish'"):
        scaled.lower(PARAMS, X).as_text("mhlo-ish")


@pytest.mark.feature("AO-02")
def test_lowered_tells_trees_and_types():
    lowered = scaled.lower(PARAMS, X)
    assert lowered.in_tree == jax.tree.structure(((PARAMS, X), {}))
    assert lowered.out_info["y"].shape == (3,)
    (params, x), kwargs = lowered.args_info
    assert (params["w"].shape, x.dtype.name, x.donated, kwargs) == ((), "float32", False, {})


@pytest.mark.feature("AO-02")
def test_lowered_estimates_costs():
    assert scaled.lower(PARAMS, X).cost_analysis()["flops"] >= 3


@pytest.mark.feature("AO-03")
def test_compiled_shows_text_costs_and_memory():
    compiled = scaled.lower(PARAMS, X).compile()
    assert "HloModule jit_scaled" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] >= 3
    assert compiled.memory_analysis().output_size_in_bytes >= 12
    assert compiled.input_shardings[0][1].device == jax.devices()[0]
    assert compiled.output_shardings["y"].device == jax.devices()[0]
    assert compiled.runtime_executable() is not None
    (params, _), _ = compiled.in_avals
    assert str(params["w"]) == "f32[]"


@pytest.mark.feature("AO-03", "JT-28")
def test_compiled_lists_arguments_of_other_types():
    compiled = scaled.lower(PARAMS, X).compile()
    with pytest.raises(TypeError, match="types of arguments differ") as caught:
        compiled({"w": np.int32(1)}, np.ones(4, np.float32))
    text = str(caught.value)
    assert "params['w']: compiled with f32[], called with i32[]" in text
    assert "x: compiled with f32[3], called with f32[4]" in text
    assert "(2 of 2)" in text


@pytest.mark.feature("AO-03", "JT-28", "LG-07")
def test_compiled_lists_five_mismatches_at_most():
    many = jax.jit(lambda *xs: sum(xs)).lower(*[1.0] * 8).compile()
    with pytest.raises(TypeError, match=r"\(8 of 8\)") as caught:
        many(*[1j] * 8)
    assert str(caught.value).count("compiled with") == 5


@pytest.mark.feature("AO-03")
def test_compiled_counts_arguments():
    compiled = jax.jit(lambda x: x).lower(1.0).compile()
    with pytest.raises(TypeError, match=r"compiled for 1 positional .* called with 2"):
        compiled(1.0, 2.0)


@pytest.mark.feature("AO-03")
def test_compiled_refuses_other_trees_and_names_the_place():
    compiled = scaled.lower(PARAMS, X).compile()
    with pytest.raises(TypeError, match="arguments of another tree"):
        compiled({"v": 1.0}, X)


@pytest.mark.feature("AO-03")
def test_compiled_without_keyword_arguments_refuses_them():
    compiled = jax.jit(lambda x: x).lower(1.0).compile()
    with pytest.raises(TypeError, match="without keyword arguments"):
        compiled(1.0, y=2.0)


@pytest.mark.feature("AO-03")
def test_compiled_refuses_traced_values():
    compiled = jax.jit(lambda x: x + 1).lower(1.0).compile()
    with pytest.raises(TypeError, match="cannot be called on traced values"):
        jax.jit(lambda x: compiled(x))(1.0)


@pytest.mark.feature("AO-03", "JT-29")
def test_compiled_refuses_arguments_committed_elsewhere_and_moves_others():
    with jax.cpu_devices(2):
        here, there = jax.devices()
        x = jax.device_put(X, here)
        compiled = jax.jit(lambda x: x + 1).lower(x).compile()
        with pytest.raises(ValueError, match="placements of arguments differ"):
            compiled(jax.device_put(X, there))
        assert compiled(X).devices() == {here}


@pytest.mark.feature("AO-05", "JT-27")
def test_compile_without_options_is_remembered():
    lowered = scaled.lower(PARAMS, X)
    assert lowered.compile() is lowered.compile()
    fast = lowered.compile(compiler_options={"xla_cpu_enable_fast_math": True})
    assert fast is not lowered.compile()


@pytest.mark.feature("AO-06")
def test_trivial_functions_still_lower():
    assert "return %arg0" in jax.jit(lambda x: x).lower(1.0).as_text()


@pytest.mark.feature("SD-12")
def test_lowering_for_another_platform_needs_no_device():
    traced = jax.jit(lambda x: jnp.sin(x)).trace(1.0)
    assert "stablehlo.sine" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_static_arguments_in_stages():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    compiled = f.lower(2.0, 3).compile()
    assert float(compiled(2.0)) == 6.0


def test_donation_is_recorded():
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    lowered = f.lower(X, X)
    assert "tf.aliasing_output = 0" in lowered.as_text()
    assert lowered.donate_argnums == (0,)


@pytest.mark.feature("CR-14")
def test_named_scopes_reach_the_compiled_program():
    def f(x):
        with jax.named_scope("layer"):
            return jnp.sin(x)

    text = jax.jit(f).lower(1.0).as_text(debug_info=True)
    assert "jit(f)/layer/sin" in text
    with pytest.raises(TypeError, match="must be a string"):
        jax.named_scope(3)


@pytest.mark.feature("AO-01")
def test_a_described_argument_that_cannot_be_cut_evenly_is_refused():
    with jax.cpu_devices(4):
        mesh = sharding.Mesh(np.array(jax.devices()), ("x",))
        split = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
        described = jax.ShapeDtypeStruct((7,), jnp.float32, sharding=split)
        with pytest.raises(ValueError, match=r"the sharding of a: .*7 cannot be cut into 4"):
            jax.jit(lambda a: a).lower(described)


def test_descriptions_are_made_like_values():
    assert jax.ShapeDtypeStruct.like(jnp.ones(2)) == jax.ShapeDtypeStruct((2,), jnp.float32)
    weak = jax.ShapeDtypeStruct((), jnp.float32, weak_type=True)
    assert jax.ShapeDtypeStruct.like(3.0) == weak
    assert jax.ShapeDtypeStruct.like(weak) == weak
    sharding = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
    placed = jax.device_put(jnp.ones(2), sharding)
    assert jax.ShapeDtypeStruct.like(placed).sharding == sharding
    with pytest.raises(TypeError):
        jax.ShapeDtypeStruct.like("x")


STRUCT = jax.ShapeDtypeStruct((4, 3), jnp.bool_)


@pytest.mark.feature("RB-08")
@pytest.mark.parametrize(
    "used",
    [
        lambda x: jax.lax.map(lambda _: STRUCT, x),
        lambda x: jax.jit(lambda _: STRUCT)(x),
        lambda x: jax.jit(lambda _: jnp.sin(STRUCT))(x),
        lambda x: jax.vmap(lambda _: STRUCT)(x),
        lambda x: jax.pmap(lambda _: STRUCT)(x[:1]),
        lambda x: jax.lax.cond(True, lambda _: STRUCT, lambda _: STRUCT, x),
        lambda x: jax.lax.scan(lambda c, _: (c, STRUCT), 0.0, x),
        lambda _: jax.device_put(STRUCT),
        lambda _: np.asarray(STRUCT),
        lambda _: jnp.asarray(STRUCT),
    ],
)
def test_description_that_a_program_needs_the_values_of_is_refused(used):
    with pytest.raises(TypeError, match=r"describes an array and (has no values|is none)"):
        used(jnp.arange(4.0))
