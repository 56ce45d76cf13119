"""Layouts of arrays in memory, in and out of programs."""

import itertools

import numpy as np
import pytest

import minijax as jax
from minijax import numpy as jnp
from minijax.experimental import layout, serialize_executable
from minijax.experimental.layout import Format, Layout

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
BY_COLUMNS = Layout((1, 0))


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


def one():
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


def split():
    return jax.NamedSharding(jax.make_mesh((2, 2), ("x", "y")), jax.P("x", None))


@pytest.mark.feature("EX-13")
def test_layouts_are_values():
    assert Layout((1, 0)) == Layout([1, 0], ()) != Layout((0, 1))
    assert hash(Format(BY_COLUMNS, one())) == hash(Format(Layout((1, 0)), one()))
    assert Layout((1, 0)).update(major_to_minor=(0, 1)) == Layout((0, 1))
    text = "Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)"
    assert repr(BY_COLUMNS) == text
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"
    assert Format() == Format(None, None) != Format(Layout.AUTO)


@pytest.mark.feature("EX-13")
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_array_lies_as_asked_and_has_the_same_elements(order):
    x = jax.device_put(X, Format(Layout(order), one()))
    assert x.format.layout.major_to_minor == order
    assert x.sharding == one()
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(x + 1, X + 1)
    np.testing.assert_array_equal(jax.jit(lambda x: x.T @ x.T.mT)(x), X.T @ X.T.mT)
    np.testing.assert_array_equal(x[1], X[1])
    np.testing.assert_array_equal(np.from_dlpack(x), X)
    np.testing.assert_array_equal(jax.device_put(x, jax.devices()[3]), X)
    np.testing.assert_array_equal(x.addressable_shards[0].data, X)
    assert (x + 1).format.layout == Layout((0, 1, 2))


@pytest.mark.feature("EX-13")
@pytest.mark.parametrize("dtype", ["bool", "int4", "bfloat16", "complex64", "float32"])
def test_every_dtype_lies_as_asked(dtype):
    expected = jnp.arange(6).astype(dtype).reshape(2, 3)
    x = jax.device_put(expected, Format(BY_COLUMNS, one()))
    assert x.format.layout == BY_COLUMNS
    np.testing.assert_array_equal(x, np.asarray(expected))
    np.testing.assert_array_equal(x.T, np.asarray(expected).T)


@pytest.mark.feature("EX-13")
def test_split_arrays_have_layouts():
    x = jax.device_put(X, Format(Layout((2, 1, 0)), split()))
    assert x.format.layout.major_to_minor == (2, 1, 0)
    pieces = [piece.data for piece in x.addressable_shards]
    assert {piece.format.layout.major_to_minor for piece in pieces} == {(2, 1, 0)}
    np.testing.assert_array_equal(pieces[-1], X[1:])
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), X * 2)
    moved = jax.device_put(x, jax.NamedSharding(split().mesh, jax.P(None, None, "y")))
    np.testing.assert_array_equal(moved, X)
    whole = jax.device_put(x, jax.devices()[5])
    np.testing.assert_array_equal(whole, X)
    of_pieces = jax.make_array_from_single_device_arrays(x.shape, split(), pieces)
    np.testing.assert_array_equal(of_pieces + 1, X + 1)


@pytest.mark.feature("EX-13")
@pytest.mark.parametrize("where", [one, split])
def test_programs_take_and_give_layouts(where):
    there = Format(BY_COLUMNS, where())
    f = jax.jit(lambda x: x * 2, in_shardings=there, out_shardings=there)
    x = jax.device_put(X[0, :2], where())
    assert 'layout_mode = "{0,1}"' in f.lower(x).as_text()
    for given in (x, jax.device_put(x, there), X[0, :2], x, jax.device_put(x, there)):
        found = f(given)
        assert found.format.layout == BY_COLUMNS
        np.testing.assert_array_equal(found, X[0, :2] * 2)
    compiled = f.lower(x).compile()
    assert compiled.input_formats == ((there,), {})
    assert compiled.output_formats == there
    np.testing.assert_array_equal(compiled(x), X[0, :2] * 2)
    np.testing.assert_array_equal(compiled(f(x)), X[0, :2] * 4)


@pytest.mark.feature("EX-13")
def test_compiler_chooses_layouts_where_asked():
    shapes = jax.ShapeDtypeStruct((2, 3), jnp.float32), jax.ShapeDtypeStruct((3, 2), jnp.float32)
    auto = Format(Layout.AUTO)
    f = jax.jit(lambda x, y, unused: x @ y, in_shardings=auto, out_shardings=auto)
    compiled = f.lower(*shapes, 1.0).compile()
    (first, second, unused), _ = compiled.input_formats
    assert unused is None
    x, y = jax.device_put((X[:, 0, :3], X[0, :, :2]), (first, second))
    np.testing.assert_array_equal(compiled(x, y, 1.0), X[:, 0, :3] @ X[0, :, :2])
    np.testing.assert_array_equal(f(x, y, 1.0), X[:, 0, :3] @ X[0, :, :2])


@pytest.mark.feature("EX-13")
def test_donated_arrays_lie_as_the_program_says():
    there = Format(BY_COLUMNS, one())
    f = jax.jit(lambda x: x + 1, in_shardings=there, out_shardings=there, donate_argnums=0)
    x = jax.device_put(X[0], there)
    for _ in range(3):
        x = f(x)
    np.testing.assert_array_equal(x, X[0] + 3)
    mixed = jax.jit(lambda x: x + 1, out_shardings=there, donate_argnums=0)
    np.testing.assert_array_equal(mixed(jnp.asarray(X[0])), X[0] + 1)


@pytest.mark.feature("EX-13")
def test_descriptions_have_formats():
    there = Format(BY_COLUMNS, one())
    x = jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=there)
    assert x.format == there
    assert x.update(shape=(3, 4)).format == there
    assert jax.ShapeDtypeStruct((2, 3), jnp.float32).format == Format()
    assert jax.new_ref(jnp.ones((2, 3))).format.layout == Layout((0, 1))
    compiled = jax.jit(lambda x: x * 2).lower(x).compile()
    assert compiled.input_formats == ((there,), {})
    np.testing.assert_array_equal(compiled(X[:, 0, :3]), X[:, 0, :3] * 2)


@pytest.mark.feature("EX-13")
def test_constraint_is_the_identity_with_its_derivatives():
    def f(x):
        return layout.with_layout_constraint(jnp.sin(x), BY_COLUMNS)

    x = jnp.asarray(X[0])
    np.testing.assert_array_equal(jax.jit(f)(x), jnp.sin(x))
    assert f(x).format.layout == BY_COLUMNS
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), jnp.cos(x), rtol=1e-6)
    for axis in range(3):
        found = jax.vmap(f, in_axes=axis, out_axes=axis)(jnp.asarray(X))
        np.testing.assert_allclose(found, jnp.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(jax.device_put(x[:2], split())), jnp.sin(x[:2]))
    assert "operand_layouts = [dense<[0, 1]>" in jax.jit(f).lower(x).as_text()


@pytest.mark.feature("EX-13")
def test_memory_of_other_libraries_by_columns_is_read_right():
    raw = np.empty(64 * 32 * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    aligned = raw[start : start + 64 * 32 * 4].view(np.float32).reshape(32, 64)
    aligned[...] = np.arange(64 * 32, dtype=np.float32).reshape(32, 64)
    x = jax.dlpack.from_dlpack(aligned.T)
    assert x.format.layout == BY_COLUMNS
    np.testing.assert_array_equal(x, aligned.T)
    np.testing.assert_array_equal(x + 1, aligned.T + 1)
    np.testing.assert_array_equal(x[3], aligned.T[3])


@pytest.mark.feature("EX-13")
def test_programs_on_disk_have_layouts():
    there = Format(BY_COLUMNS, one())
    compiled = jax.jit(lambda x: x * 2, in_shardings=there, out_shardings=there).lower(X[0])
    stored = serialize_executable.serialize(compiled.compile())
    loaded = serialize_executable.deserialize_and_load(*stored)
    assert loaded.input_formats == ((there,), {})
    np.testing.assert_array_equal(loaded(X[0]), X[0] * 2)


def refusals():
    x = jnp.asarray(X[0])
    return {
        "a layout needs a sharding": (ValueError, lambda: Format(BY_COLUMNS)),
        "layout is no layout": (TypeError, lambda: Format(3, one())),
        "sharding is no sharding": (TypeError, lambda: Format(BY_COLUMNS, 3)),
        "names each dimension of the array once": (
            ValueError,
            lambda: jax.device_put(x, Format(Layout((0,)), one())),
        ),
        r"got +major_to_minor=\(0, 0\)": (
            ValueError,
            lambda: jax.jit(lambda x: x, in_shardings=Format(Layout((0, 0)), one()))(x),
        ),
        "only compiled programs choose": (
            ValueError,
            lambda: jax.device_put(x, Format(Layout.AUTO, one())),
        ),
        "not a place for arrays": (ValueError, lambda: jax.device_put(x, BY_COLUMNS)),
        "takes layouts": (
            ValueError,
            lambda: layout.with_layout_constraint(x, Format(BY_COLUMNS, one())),
        ),
    }


@pytest.mark.feature("EX-13")
@pytest.mark.parametrize("case", range(8))
def test_what_is_no_layout_is_refused(case):
    (text, (kind, call)) = list(refusals().items())[case]
    with pytest.raises(kind, match=text):
        call()
