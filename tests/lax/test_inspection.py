"""`debug.inspect_array_sharding` tells how values are placed, also inside `jit`."""

import numpy as np
import pytest

import minijax as jax
from minijax import debug
from minijax.core import config
from minijax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from tests import children

P = PartitionSpec


@pytest.fixture(scope="module")
def mesh():
    with jax.cpu_devices(8):
        yield Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


@pytest.fixture
def x(mesh):
    return jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x", "y")))


def test_an_array_is_inspected_at_once(x):
    seen = []
    debug.inspect_array_sharding(x, callback=seen.append)
    assert seen == [x.sharding]


def test_every_leaf_of_a_tree_is_inspected(x):
    seen = []
    debug.inspect_array_sharding({"a": x, "b": [x]}, callback=seen.append)
    assert len(seen) == 2


def test_the_compiler_tells_how_it_places_a_value(mesh, x):
    seen = []

    @jax.jit
    def f(x):
        y = x.T
        debug.inspect_array_sharding(y, callback=seen.append)
        return y + 1

    np.testing.assert_array_equal(f(x), np.full((8, 8), 2, np.float32))
    assert seen == [NamedSharding(mesh, P("y", "x"))]


def test_a_program_tells_once_for_each_compilation(x):
    seen = []

    @jax.jit
    def f(x):
        debug.inspect_array_sharding(x, callback=seen.append)
        return x

    f(x)
    f(x)
    assert len(seen) == 1


def test_the_partitioner_before_shardy_tells_as_well(mesh, x):
    seen = []

    @jax.jit
    def f(x):
        debug.inspect_array_sharding(x.T, callback=seen.append)
        return x

    with config.use_shardy_partitioner(False):
        f(x)
    assert seen == [NamedSharding(mesh, P("y", "x"))]


def test_values_that_types_split_are_inspected(mesh):
    seen = []
    explicit = mesh.update(axis_types=AxisType.Explicit)
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(explicit, P("x")))

    @jax.jit
    def f(x):
        debug.inspect_array_sharding(x * 2, callback=seen.append)
        return x

    f(x)
    assert [s.spec for s in seen] == [P("x")]


def test_bodies_of_loops_are_inspected(mesh, x):
    seen = []

    def body(carry, _):
        debug.inspect_array_sharding(carry, callback=seen.append)
        return carry + 1, None

    jax.jit(lambda x: jax.lax.scan(body, x, None, length=3))(x)
    assert set(seen) == {NamedSharding(mesh, P("x", "y"))}


def test_programs_of_one_device_have_whole_values(mesh):
    seen = []

    @jax.jit
    def f(x):
        debug.inspect_array_sharding(x + 1, callback=seen.append)
        return x

    f(jax.device_put(np.ones(3), mesh.flat_devices[2]))
    assert seen == [SingleDeviceSharding(mesh.flat_devices[2])]


def test_primal_values_are_inspected_under_differentiation(mesh, x):
    seen = []

    def f(x):
        debug.inspect_array_sharding(x, callback=seen.append)
        return (x**2).sum()

    jax.jit(jax.grad(f))(x)
    assert seen == [NamedSharding(mesh, P("x", "y"))]


def test_batches_are_inspected_whole(mesh, x):
    seen = []

    def f(x):
        debug.inspect_array_sharding(x, callback=seen.append)
        return x

    jax.jit(jax.vmap(f))(x)
    assert seen == [NamedSharding(mesh, P("x", "y"))]


def test_an_error_of_the_callback_reaches_the_caller(x):
    def refuse(sharding):
        raise LookupError(str(sharding.spec))

    @jax.jit
    def f(x):
        debug.inspect_array_sharding(x, callback=refuse)
        return x

    with pytest.raises(LookupError, match=r"P\('x', 'y'\)"):
        f(x)


def test_a_callback_that_cannot_be_called_is_refused(x):
    with pytest.raises(TypeError, match=r"debug.inspect_array_sharding: expected a function"):
        debug.inspect_array_sharding(x, callback=3)


NESTED = """
import faulthandler, threading
import numpy as np
import minijax as jax
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P

faulthandler.dump_traceback_later(60, exit=True)
x = np.arange(8, dtype=np.float32)
x = jax.device_put(x, NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x")))
seen = []

def inspected(callback, factor):
    def scale(x):
        jax.debug.inspect_array_sharding(x, callback=callback)
        return factor * x
    return jax.jit(scale)(x)

def nest(sharding):
    thread = threading.Thread(target=inspected, args=(seen.append, 3))
    thread.start()
    thread.join()
    inspected(seen.append, 4)
    seen.append(sharding)

inspected(nest, 2)
print(len(seen), {found.spec for found in seen})
"""


@pytest.mark.slow
@pytest.mark.feature("RB-11")
def test_inspected_programs_compile_while_one_is_inspected() -> None:
    # With one compilation of an inspected program at a time: hangs.
    found = children.run("-c", NESTED, devices=4, timeout=120)
    assert found.stdout == "3 {P('x',)}\n", found.stderr[-2000:]
