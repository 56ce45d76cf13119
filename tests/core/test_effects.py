"""Effects, axis names in jaxprs, and tokens."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import axes, effects
from minijax.core.aval import abstract_token
from minijax.core.effects import NamedAxisEffect
from minijax.core.primitive import PRIMITIVES


def axis_primitive(name):
    """An operation that refers to an axis, as collectives do."""
    primitive = jax.extend.core.Primitive(name)
    axes.axis_params.set(("axis_name",), primitive)
    primitive.def_effectful_abstract_eval(lambda x, *, axis_name: (x, {NamedAxisEffect(axis_name)}))
    return primitive


@pytest.mark.feature("CR-09", "EF-01")
def test_axis_effects_show_inside_and_refuse_to_lower_unbound():
    use = axis_primitive("uses_axis_for_tests")
    with axes.extend("i", 3):
        closed = jax.make_jaxpr(lambda x: use.bind(x, axis_name="i"))(1.0)
    assert closed.effects == {NamedAxisEffect("i")}
    assert effects.without_axis(closed.effects, "i") == frozenset()
    with pytest.raises(NameError, match="unbound axis name 'i'"):
        jax.jit(lambda x: use.bind(x, axis_name="i"))(1.0)


@pytest.mark.feature("CR-09")
def test_mapping_over_the_axis_discharges_its_effect():
    use = axis_primitive("sums_axis_for_tests")
    jax.extend.batching.fancy_primitive_batchers[use] = lambda size, args, dims, **_: (
        jnp.sum(args[0], dims[0]),
        None,
    )
    mapped = jax.vmap(lambda x: use.bind(x, axis_name="i"), axis_name="i")
    closed = jax.make_jaxpr(mapped)(jnp.arange(3.0))
    assert closed.effects == frozenset()
    assert mapped(jnp.arange(3.0)).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.feature("EF-01", "PE-06")
def test_equations_with_effects_are_not_dead_and_unknown_ones_refuse_to_lower():
    class Note(effects.Effect):
        pass

    note = jax.extend.core.Primitive("notes_for_tests")
    note.def_effectful_abstract_eval(lambda x: (x, {Note()}))
    function = jax.jit(lambda x: (note.bind(x), x + 1)[1])
    with pytest.raises(NotImplementedError, match="cannot be lowered"):
        function(1.0)
    effects.lowerable_effects.add_type(Note)
    jax.extend.mlir.register_lowering(note, lambda ctx, x: [x])
    assert float(function(1.0)) == 2.0


@pytest.mark.feature("CR-10")
def test_axis_names_are_substituted_but_not_where_they_are_bound():
    use = axis_primitive("renames_axis_for_tests")
    with axes.extend("i", 2):
        inner = jax.make_jaxpr(lambda x: use.bind(x, axis_name="i"))(1.0)
    mapper = jax.extend.core.Primitive("maps_axis_for_tests")
    axes.binds_axis.set("axis_name", mapper)
    mapper.def_abstract_eval(lambda x, *, axis_name, jaxpr: x)

    def outer(x):
        x = mapper.bind(x, axis_name="i", jaxpr=inner)
        x = mapper.bind(x, axis_name="k", jaxpr=inner)
        return use.bind(x, axis_name="i")

    with axes.extend("i", 2):
        closed = jax.make_jaxpr(outer)(1.0)
    shadowed, free, used = axes.substitute(closed.jaxpr, {"i": "j"}).eqns
    assert shadowed.params["jaxpr"].eqns[0].params["axis_name"] == "i"
    assert free.params["jaxpr"].eqns[0].params["axis_name"] == "j"
    assert used.params["axis_name"] == "j"
    assert used.effects == {NamedAxisEffect("j")}


@pytest.mark.feature("CR-05", "EF-07", "EF-08")
def test_tokens_flow_through_jit():
    token = jax.lax.create_token()
    assert jax.typeof(token) is abstract_token
    assert (str(abstract_token), abstract_token.str_short()) == ("Token()", "Tok")

    @jax.jit
    def f(token, x):
        return jax.lax.after_all(token, jax.lax.create_token()), x + 1

    for _ in range(3):
        token, y = f(token, 1.0)
    assert float(y) == 2.0
    assert repr(token.block_until_ready()) == "Token()"
    text = f.lower(token, 1.0).as_text()
    assert "stablehlo.after_all" in text
    assert "!stablehlo.token" in text
    with pytest.raises(TypeError, match="operands must be tokens"):
        jax.lax.after_all(jnp.ones(2))


def test_primitives_of_users_can_be_declared_again():
    first = jax.extend.core.Primitive("declared_twice_for_tests")
    second = jax.extend.core.Primitive("declared_twice_for_tests")
    assert PRIMITIVES["declared_twice_for_tests"] is second is not first
