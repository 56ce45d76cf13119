"""`export`, `Exported` and their files."""

import collections
import typing

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import export, lax

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


def exported(function, *args, **options):
    return export.export(jax.jit(function), **options)(*args)


def through_file(program, vjp_order=0):
    return export.deserialize(program.serialize(vjp_order=vjp_order))


@pytest.mark.feature("EX-01")
def test_fields_say_what_was_exported():
    def scale(x, *, unused, by):
        return {"y": x * by}

    program = export.export(jax.jit(scale))(X, unused=np.int32(1), by=2.0)
    assert program.fun_name == "scale"
    assert [str(a) for a in program.in_avals] == ["f32[2,3]", "~f32[]", "i32[]"]
    assert program.in_tree == jax.tree.structure(((0,), {"unused": 0, "by": 0}))
    assert program.out_tree == jax.tree.structure({"y": 0})
    assert program.module_kept_var_idx == (0, 1)
    assert program.platforms == (export.default_export_platform(),) == ("cpu",)
    assert (program.nr_devices, program.calling_convention_version) == (1, 10)
    assert not program.uses_global_constants
    assert program.ordered_effects == program.unordered_effects == ()
    assert program.in_shardings_hlo == (None, None, None)
    assert "stablehlo.multiply" in program.mlir_module()
    assert str(program) == "Exported(fun_name=scale, ...)"
    low = export.minimum_supported_calling_convention_version
    assert low <= program.calling_convention_version
    np.testing.assert_array_equal(program.call(X, unused=np.int32(3), by=3.0)["y"], X * 3)


@pytest.mark.feature("EX-01")
def test_call_stands_inside_of_other_programs():
    program = through_file(exported(lambda x: jnp.sin(x) * 2, X), 2)
    expected = np.sin(X) * 2
    np.testing.assert_allclose(jax.jit(lambda x: program.call(x) + 1)(X), expected + 1, rtol=1e-6)
    slope = jax.grad(lambda x: program.call(x).sum())
    np.testing.assert_allclose(slope(X), np.cos(X) * 2, rtol=1e-6)
    bend = jax.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(bend(X), -np.sin(X) * 2, rtol=1e-5, atol=1e-6)
    outer = through_file(exported(lambda x: program.call(program.call(x)), X))
    np.testing.assert_allclose(outer.call(X), np.sin(expected) * 2, rtol=1e-6)
    _, total = lax.scan(lambda c, x: (c, program.call(x)), 0, jnp.stack([X, X]))
    np.testing.assert_allclose(total[1], expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="cannot be batched"):
        jax.vmap(program.call)(jnp.stack([X, X]))
    with pytest.raises(TypeError, match=r"custom_vjp of .*no forward-mode"):
        jax.jvp(through_file(program).call, (X,), (X,))


@pytest.mark.feature("EX-01")
def test_derivatives_reach_as_far_as_the_file():
    program = exported(lambda x, n: x**2 * n, X, np.int32(3))
    assert not through_file(program).has_vjp()
    once = through_file(program, 1)
    x_bar, n_bar = once.vjp().call(X, np.int32(3), np.ones_like(X))
    np.testing.assert_allclose(x_bar, 6 * X, rtol=1e-6)
    assert n_bar.dtype == jax.dtypes.float0
    with pytest.raises(ValueError, match="has no derivative"):
        through_file(program).vjp()
    with pytest.raises(ValueError, match="no derivative of order 1"):
        once.vjp().serialize(vjp_order=1)


@pytest.mark.feature("EX-01")
def test_large_constants_keys_and_random_numbers():
    table = jnp.asarray(np.arange(5000, dtype=np.float32))
    program = through_file(exported(lambda i: table[i], np.int32(0)))
    assert program.call(np.int32(4321)) == 4321
    draw = lambda key: jax.random.normal(key, (3,))
    key = jax.random.key(7)
    np.testing.assert_array_equal(through_file(exported(draw, key)).call(key), draw(key))


@pytest.mark.feature("EX-01")
def test_program_of_several_platforms_takes_the_one_where_it_runs():
    function = lambda x: lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)
    program = through_file(exported(function, X, platforms=("cuda", "cpu")))
    assert program.platforms == ("cuda", "cpu")
    assert program.uses_global_constants
    np.testing.assert_allclose(program.call(X), np.sin(X), rtol=1e-6)
    alone = exported(jnp.sin, X, platforms=("tpu",))
    with pytest.raises(ValueError, match=r"exported for platforms '\('tpu',\)'"):
        alone.call(X)
    check = export.DisabledSafetyCheck.platform()
    anywhere = through_file(exported(jnp.sin, X, platforms=("tpu",), disabled_checks=[check]))
    assert anywhere.disabled_safety_checks == (check,)
    np.testing.assert_allclose(anywhere.call(X), np.sin(X), rtol=1e-6)


@pytest.mark.feature("EX-01")
@pytest.mark.parametrize("is_abstract", [False, True])
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_program_over_a_mesh(is_abstract, kind):
    kinds = (getattr(jax.sharding.AxisType, kind),)
    mesh = jax.make_mesh((8,), ("x",), axis_types=kinds)
    given = mesh.abstract_mesh if is_abstract else mesh
    spread = jax.NamedSharding(given, jax.P("x"))
    rows = np.arange(16, dtype=np.float32).reshape(8, 2)
    spec = jax.ShapeDtypeStruct(rows.shape, rows.dtype, sharding=spread)
    program = through_file(exported(lambda x: x * 2, spec))
    assert program.nr_devices == 8
    backwards = jax.sharding.Mesh(jax.devices()[::-1], ("x",), axis_types=kinds)
    (place,) = program.in_shardings_jax(backwards)
    assert place.is_equivalent_to(jax.NamedSharding(backwards, jax.P("x")), 2)
    out = program.call(jax.device_put(rows, place))
    np.testing.assert_array_equal(out, rows * 2)
    assert out.sharding.is_equivalent_to(place, 2)
    with pytest.raises(ValueError, match="exported for 8 devices"):
        program.call(rows)
    other = jax.make_mesh((4, 2), ("x", "y"))
    with pytest.raises(ValueError, match="other axes"):
        program.in_shardings_jax(other)


@pytest.mark.feature("EX-01")
def test_collectives_and_their_derivative():
    mesh = jax.make_mesh((8,), ("x",))
    total = jax.shard_map(
        lambda x: lax.psum(x**2, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P()
    )
    place = jax.NamedSharding(mesh, jax.P("x"))
    x = np.arange(8, dtype=np.float32)
    spec = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
    program = through_file(exported(total, spec), 1)
    placed = jax.device_put(x, place)
    np.testing.assert_array_equal(program.call(placed), [np.sum(x**2)])
    slope = jax.jit(jax.grad(lambda x: program.call(x).sum()))(placed)
    np.testing.assert_array_equal(slope, 2 * x)


class Pair(typing.NamedTuple):
    left: object
    right: object


class Point:
    def __init__(self, x, y, name):
        self.x, self.y, self.name = x, y, name


jax.tree_util.register_pytree_node(
    Point, lambda p: ((p.x, p.y), p.name), lambda name, xy: Point(*xy, name)
)
export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")
export.register_pytree_node_serialization(
    Point,
    serialized_name="tests.Point",
    serialize_auxdata=str.encode,
    deserialize_auxdata=bytes.decode,
)


@pytest.mark.feature("EX-01")
def test_trees_of_every_kind_come_back():
    def function(pair, points, *, empty):
        assert empty is None
        return Point(pair.left, points[0].x, "made"), collections.OrderedDict(b=pair, a=[])

    args = (Pair(X, 1.0), [Point(X, 2.0, "given")])
    program = through_file(export.export(jax.jit(function))(*args, empty=None))
    point, rest = program.call(*args, empty=None)
    assert isinstance(point, Point)
    assert point.name == "made"
    assert list(rest) == ["b", "a"]
    assert isinstance(rest["b"], Pair)
    with pytest.raises(ValueError, match="another structure"):
        program.call(args[0], [Point(X, 2.0, "another")], empty=None)


@pytest.mark.feature("EX-01")
def test_registrations_are_checked():
    register = export.register_pytree_node_serialization
    forms = {"serialize_auxdata": str.encode, "deserialize_auxdata": bytes.decode}
    with pytest.raises(ValueError, match=r"has the name 'tests\.Point' in files already"):
        register(Point, serialized_name="another", **forms)
    with pytest.raises(ValueError, match=r"'tests\.Point' stands for"):
        register(int, serialized_name="tests.Point", **forms)
    with pytest.raises(ValueError, match="no node of trees"):
        register(int, serialized_name="tests.int", **forms)
    with pytest.raises(ValueError, match="no named tuple"):
        export.register_namedtuple_serialization(Point, serialized_name="tests.other")

    class Unknown(typing.NamedTuple):
        x: object

    with pytest.raises(ValueError, match="nothing says how"):
        exported(lambda x: Unknown(x), X).serialize()
    with pytest.raises(TypeError, match="keys that are strings"):
        exported(lambda x: {1: x}, X).serialize()


@pytest.mark.feature("EX-01")
def test_what_cannot_leave_is_refused():
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(jnp.sin)
    with pytest.raises(NotImplementedError, match="calls Python"):
        exported(lambda x: jax.debug.print("{}", x), X)
    kernel = jax.ffi.ffi_call("a_kernel_of_mine", jax.ShapeDtypeStruct(X.shape, X.dtype))
    with pytest.raises(ValueError, match="by names that other versions need not have"):
        exported(kernel, X)
    check = export.DisabledSafetyCheck.custom_call("a_kernel_of_mine")
    assert check.is_custom_call() == "a_kernel_of_mine"
    assert check != export.DisabledSafetyCheck.platform()
    program = through_file(exported(kernel, X, disabled_checks=[check]))
    assert set(program.disabled_safety_checks) == {check}


@pytest.mark.feature("EX-01")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((3, 3), np.float32), r"Shape mismatch for args\[0\]\.shape\[0\]"),
        (np.ones(3, np.float32), r"Rank mismatch for args\[0\]"),
        (np.ones((2, 3), np.int32), r"Dtype mismatch for args\[0\]"),
    ],
)
def test_arguments_of_other_types_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        exported(jnp.sin, X).call(given)
