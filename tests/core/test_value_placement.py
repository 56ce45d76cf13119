"""The placement of a type: None for plain values, and the same type whichever way it is made."""

import pickle

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import value_placement
from minijax.core.aval import ShapedArray, shaped_array
from minijax.core.value_placement import ManualAxisType, ValuePlacement, make_placement, manual_type
from minijax.sharding import AbstractMesh, AxisType, NamedSharding

P = jax.P
MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
SPLIT = NamedSharding(MESH, P("x", None))
VARYING = manual_type({"y"})

PLACED = {
    "f32[8@x,2]": {"sharding": SPLIT},
    "f32[8,2]{V:y}": {"manual_axis_type": VARYING},
    "f32<host>[8,2]": {"memory_kind": "pinned_host"},
    "f32<host>[8@x,2]{V:y}": {
        "sharding": SPLIT,
        "manual_axis_type": VARYING,
        "memory_space": jax.memory.Space.Host,
    },
}


def test_plain_types_have_no_placement() -> None:
    empty = NamedSharding(AbstractMesh((), ()), P())
    plain = shaped_array((8, 2), jnp.dtype("float32"))
    assert plain.placement is None
    assert plain.is_plain
    for facts in (
        {"sharding": empty},
        {"manual_axis_type": ManualAxisType()},
        {"memory_space": jax.memory.Space.Device, "memory_kind": "pinned_host"},
    ):
        assert ShapedArray((8, 2), jnp.float32, **facts) is plain
        assert make_placement(**facts) is None


@pytest.mark.parametrize("text", PLACED)
def test_placed_type_is_printed_and_pickled(text: str) -> None:
    aval = ShapedArray((8, 2), jnp.float32, **PLACED[text])
    assert str(aval) == text
    assert not aval.is_plain
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert ShapedArray((8, 2), jnp.float32, **PLACED[text]) is aval


@pytest.mark.parametrize("text", PLACED)
def test_parts_of_a_placement_are_attributes_of_the_type(text: str) -> None:
    aval = ShapedArray((8, 2), jnp.float32, **PLACED[text])
    assert isinstance(aval.placement, ValuePlacement)
    assert aval.placement == (aval.split, aval.manual_axis_type, aval.memory_kind)
    assert aval.vma == aval.placement.manual_axis_type.varying


def test_update_keeps_the_other_parts_of_a_placement() -> None:
    aval = ShapedArray((8, 2), jnp.float32, sharding=SPLIT, memory_kind="pinned_host")
    assert str(aval.update(dtype=jnp.int32)) == "i32<host>[8@x,2]"
    assert str(aval.update(sharding=None)) == "f32<host>[8,2]"
    assert aval.update(sharding=None, memory_space=jax.memory.Space.Device).is_plain


def test_dimensions_keep_their_axes() -> None:
    aval = ShapedArray((8, 2), jnp.float32, sharding=SPLIT, manual_axis_type=VARYING)
    assert str(aval.without_dim(1)) == "f32[8@x]{V:y}"
    assert str(aval.without_dim(0)) == "f32[2]{V:y}"
    assert str(aval.with_dim(0, 3)) == "f32[3,8@x,2]{V:y}"
    assert str(aval.with_dim(2, 4, "y")) == "f32[8@x,2,4@y]{V:y}"
    assert str(aval.with_shape((5,))) == "f32[5]{V:y}"


def test_cotangents_of_sums_are_reduced() -> None:
    aval = ShapedArray((), jnp.float32, manual_axis_type=manual_type({"x"}, {"y"}))
    assert str(aval.cotangent_aval()) == "f32[]{V:x, R:y}"
    assert aval.cotangent_aval().cotangent_aval() is aval


def test_unknown_facts_are_rejected() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'layout'"):
        ShapedArray((8, 2), jnp.float32).update(layout=None)


def test_axis_in_two_sets_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"varying \['x'\], unreduced \['x'\]"):
        ShapedArray((), jnp.float32, manual_axis_type=ManualAxisType({"x"}, {"x"}))


def test_a_type_without_sharding_answers_with_the_current_mesh() -> None:
    aval = ShapedArray((8, 2), jnp.float32)
    with jax.sharding.use_abstract_mesh(MESH):
        assert aval.sharding == value_placement.semantics.replicated_sharding(2)
        assert aval.sharding == NamedSharding(MESH, P(None, None))
