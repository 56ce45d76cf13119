"""`Array`: NumPy's protocols, conversion, copying, deletion, DLPack, placement."""

import copy
import os
import pickle
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import dtypes, native


@pytest.mark.feature("AR-01")
def test_array_describes_itself():
    x = jnp.ones((2, 3), jnp.int8)
    assert (x.shape, x.ndim, x.size, x.dtype, x.weak_type) == ((2, 3), 2, 6, np.int8, False)
    assert x.devices() == {x.device} == {jax.devices()[0]}
    assert x.sharding.device_set == x.devices()
    assert not x.committed
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert x.addressable_shards[0].data.shape == (2, 3)


def test_isinstance_holds_for_tracers_too():
    assert isinstance(jnp.ones(2), jax.Array)
    assert jax.jit(lambda x: jnp.asarray(isinstance(x, jax.Array)))(1.0)
    assert not isinstance(np.ones(2), jax.Array)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.itemsize <= 4], ids=lambda d: d.name)
def test_array_round_trips_through_numpy(dtype):
    values = np.array([0, 1, 1, 0]).astype(dtype)
    back = np.asarray(jnp.asarray(values))
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.astype(np.float32), values.astype(np.float32))


def test_numpy_view_is_read_only():
    view = np.asarray(jnp.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 2


def test_array_from_numpy_does_not_follow_later_changes():
    source = np.zeros(1024, np.float32)
    x = jnp.asarray(source)
    source[:] = 1
    assert float(x.sum()) == 0.0


def test_conversions_to_python_scalars():
    x = jnp.float32(2.5)
    assert (float(x), int(x), bool(x), complex(x)) == (2.5, 2, True, 2.5 + 0j)
    assert x.item() == 2.5
    assert jnp.arange(3).tolist() == [0, 1, 2]
    assert [10, 20, 30][jnp.int32(1)] == 20


def test_conversions_of_larger_arrays_are_refused():
    with pytest.raises(TypeError, match="only scalar arrays can become a Python float"):
        float(jnp.ones(2))
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        [1, 2][jnp.float32(1)]
    with pytest.raises(ValueError, match="only an array of one element is true or false"):
        bool(jnp.ones(2))


def test_arrays_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(jnp.ones(2))


def test_iteration_and_length():
    assert [float(v) for v in jnp.arange(3.0)] == [0, 1, 2]
    assert len(jnp.ones((4, 2))) == 4
    with pytest.raises(TypeError, match="no dimensions"):
        len(jnp.float32(1))
    with pytest.raises(TypeError, match="no elements"):
        iter(jnp.float32(1)).__next__()


def test_repr_is_readable():
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(jnp.asarray(1.0)) == "Array(1., dtype=float32, weak_type=True)"
    assert repr(jnp.zeros((0, 2))) == "Array([], shape=(0, 2), dtype=float32)"
    assert str(jnp.arange(3)) == "[0 1 2]"
    assert f"{jnp.float32(1.5):.3f}" == "1.500"


def test_numpy_defers_to_our_operators():
    out = np.ones(3, np.float32) + jnp.ones(3)
    assert isinstance(out, jax.Array)
    assert isinstance(np.float32(2) * jnp.ones(3), jax.Array)


def test_pickle_and_copy():
    x = jnp.asarray([1.0, 2.0])
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        np.testing.assert_array_equal(y, x)
        assert y is not x
    assert pickle.loads(pickle.dumps(jnp.asarray(1.0))).weak_type


@pytest.mark.feature("AR-01")
def test_deleted_array_says_so():
    x = jnp.ones(3)
    x.delete()
    assert x.is_deleted()
    assert "deleted" in repr(x)
    with pytest.raises(RuntimeError, match="the array has been deleted"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_dlpack_round_trip_with_numpy():
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    y = jnp.from_dlpack(np.arange(4, dtype=np.float32))
    assert y.tolist() == [0, 1, 2, 3]
    assert float((y + 1).sum()) == 10.0
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="does not speak DLPack"):
        jnp.from_dlpack([1.0])


def test_bfloat16_values_survive():
    x = jnp.asarray([1.5, -2.25], jnp.bfloat16)
    assert np.asarray(x).dtype == ml_dtypes.bfloat16
    assert x.tolist() == [1.5, -2.25]


def test_block_until_ready_and_readiness():
    x = jnp.ones(3) + 1
    assert x.block_until_ready() is x
    assert x.is_ready()
    x.copy_to_host_async()


@pytest.mark.feature("CR-13")
def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError, match="does not fit"):
        jnp.asarray(2**40)
    with jax.enable_x64(True):
        assert jnp.asarray(2**40).dtype == np.int64


@pytest.mark.feature("AR-03")
def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for use in (jnp.sin, jax.jit(lambda x: x), jax.device_put):
        with pytest.raises(ValueError, match=r"x.filled\(value\)"):
            use(masked)


def test_float0_results_of_jit_are_float0_in_numpy():
    def of_int(x):
        return jax.jvp(lambda v: v.astype(np.int32), (x,), (x,))[1]

    found = np.asarray(jax.jit(of_int)(np.ones((2, 3), np.float32)))
    assert (found.dtype, found.shape) == (dtypes.float0, (2, 3))


@pytest.mark.feature("AR-04")
def test_float0_values_pass_through_jit():
    zero = np.zeros((3,), dtypes.float0)
    assert jax.jit(lambda z, x: x + 1)(zero, 1.0).tolist() == 2.0


def test_devices_on_demand_in_a_running_process():
    before = jax.device_count()
    with jax.cpu_devices(3):
        assert jax.device_count() == jax.local_device_count() == 3
        x = jax.device_put(np.ones(2, np.float32), jax.devices()[2])
        assert x.committed
        assert (x + 1).devices() == {jax.devices()[2]}
    assert jax.device_count() == before
    assert (x * 2).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="at least one device"):
        jax.cpu_devices(0)


@pytest.mark.feature("AR-15", "JT-06")
def test_arguments_committed_to_different_devices_are_refused():
    with jax.cpu_devices(2):
        a, b = (jax.device_put(np.ones(2, np.float32), d) for d in jax.devices())
        with pytest.raises(ValueError, match="cannot run on different devices") as caught:
            jax.jit(lambda x, y: x + y)(a, b)
        assert "minijax.device_put" in str(caught.value)


@pytest.mark.feature("AR-15", "JT-08")
def test_uncommitted_arguments_follow_committed_ones():
    with jax.cpu_devices(2):
        there = jax.devices()[1]
        out = jnp.ones(2) + jax.device_put(np.ones(2, np.float32), there)
        assert out.devices() == {there}
        assert out.committed


@pytest.mark.feature("JT-07", "CF-04")
def test_default_device_places_computations():
    with jax.cpu_devices(2):
        there = jax.devices()[1]
        with jax.default_device(there):
            assert jnp.ones(2).devices() == {there}
            assert jax.jit(lambda x: x + 1)(1.0).devices() == {there}


def test_jit_on_a_device():
    with jax.cpu_devices(2):
        there = jax.devices()[1]
        assert jax.jit(lambda x: x + 1, device=there)(1.0).devices() == {there}


@pytest.mark.feature("AR-10")
def test_device_put_of_trees_and_donation():
    with jax.cpu_devices(2):
        here, there = jax.devices()
        x = jax.device_put({"a": np.ones(2), "b": 3}, there)
        assert x["a"].devices() == x["b"].devices() == {there}
        moved = jax.device_put(x, {"a": here, "b": there})
        assert moved["a"].devices() == {here}
        y = jax.device_put(x["a"], here, donate=True)
        assert x["a"].is_deleted()
        assert y.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="not a place for arrays"):
        jax.device_put(1.0, "nowhere")
    with pytest.raises(TypeError, match="not a valid type"):
        jax.device_put("text")


@pytest.mark.feature("AR-16")
def test_unknown_platforms_are_refused():
    with pytest.raises(RuntimeError, match="unknown platform 'abacus'"):
        jax.devices("abacus")
    assert jax.default_backend() == "cpu"
    assert (jax.process_index(), jax.process_count()) == (0, 1)


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
    )


@pytest.mark.slow
def test_unknown_xla_flag_is_an_exception_not_an_abort():
    code = (
        "import minijax as jax\n"
        "try: jax.devices()\n"
        "except ValueError as error: print('refused:', error)"
    )
    done = run_python(code, XLA_FLAGS="--xla_no_such_flag=1")
    assert done.returncode == 0, done.stderr
    assert "refused: devices: XLA refuses the environment variable XLA_FLAGS" in done.stdout


@pytest.mark.slow
def test_forced_host_device_count_is_honoured():
    done = run_python(
        "import minijax as jax; print(jax.device_count())",
        XLA_FLAGS="--xla_force_host_platform_device_count=5",
    )
    assert done.stdout.strip() == "5"


@pytest.mark.slow
def test_import_starts_no_client():
    code = (
        "import minijax\nfrom minijax.runtime import client\n"
        "assert not client._cpu_clients, 'a client was started'\nprint('quiet')"
    )
    assert run_python(code).stdout.strip() == "quiet"


@pytest.mark.slow
@pytest.mark.feature("NP-04")
def test_jax_is_never_imported_even_if_installed(tmp_path):
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('jax was imported')\n")
    code = (
        "import minijax as jax, minijax.numpy as jnp, numpy as np, sys\n"
        "x = jnp.ones((2, 2), jnp.bfloat16)\n"
        "np.asarray(x); np.from_dlpack(jnp.ones(3)); x.copy_to_host_async()\n"
        "jax.device_get(jax.jit(jax.grad(lambda x: jnp.sum(x @ x)))(x))\n"
        "print(jax.random.normal(jax.random.key(0), (2,)))\n"
        "assert 'jax' not in sys.modules\nprint('clean')"
    )
    done = run_python(code, PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}")
    assert done.stdout.strip().endswith("clean"), done.stderr


@pytest.mark.feature("CW-01")
def test_arrays_are_objects_of_jaxlibs_class() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert type(x) is native.Buffer
    assert issubclass(type(x), jax.Array)
    assert x.buffer is x
    assert jax.tree.leaves({"a": x})[0] is x
    reference = weakref.ref(x)
    assert reference() is x
    view = memoryview(x)
    assert (view.shape, view.format, view.readonly) == ((2, 3), "=f", True)
    assert np.asarray(view).ctypes.data == x.unsafe_buffer_pointer()
    del x, view
    assert reference() is None


@pytest.mark.feature("CW-01")
def test_arrays_give_no_memory_unasked_while_functions_are_called() -> None:
    x = jnp.arange(3.0)
    with native.memory_hidden():
        np.testing.assert_array_equal(np.asarray(x), [0, 1, 2])
        with pytest.raises(TypeError):
            memoryview(x)
    assert memoryview(x).shape == (3,)


@pytest.mark.feature("CW-01")
def test_names_of_the_same_memory_are_deleted_apart() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    data = jax.random.key_data(keys)
    assert data.unsafe_buffer_pointer() == jax.random.key_data(keys).unsafe_buffer_pointer()
    data.delete()
    assert jax.random.key_data(keys).shape == (3, 2)
    assert not keys.is_deleted()
