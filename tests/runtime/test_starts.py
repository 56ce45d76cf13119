"""Who starts programs over several host devices: C++ while there is one thread, else Python."""

import pytest

from tests.runtime.test_guards import last_line

COUNTED = """
from minijax.runtime import in_flight
from minijax.runtime.execute import Executable

through_python = 0
original = Executable._run_on_mesh

def counted(*args):
    global through_python
    through_python += 1
    return original(*args)

Executable._run_on_mesh = counted

def calls(times=100):
    before = through_python
    for _ in range(times):
        y = reduce_often(x)
    assert len(in_flight._running) + in_flight.starts.unmarked <= in_flight.MOST_IN_FLIGHT
    np.testing.assert_allclose(y, 1.0, atol=1)
    return through_python - before
"""


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_programs_start_in_cpp_while_there_is_one_thread() -> None:
    program = f"""{COUNTED}
with jax.cpu_devices(8):
    x = sharded()
    calls(4)
    alone = calls()
    other = threading.Thread(target=jax.cpu_devices(8)(calls))
    other.start()
    beside = calls()
    other.join()
    print(alone, beside >= 100, calls())
"""
    assert last_line(program) == "0 True 100"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_programs_start_in_python_beside_a_thread_that_sleeps() -> None:
    program = f"""{COUNTED}
end = threading.Event()
sleeper = threading.Thread(target=end.wait)
sleeper.start()
with jax.cpu_devices(8):
    x = sharded()
    calls(4)
    beside = calls()
    end.set()
    sleeper.join()
    calls(4)
    print(beside, calls())
"""
    assert last_line(program) == "100 0"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
@pytest.mark.parametrize("beside", ["", "threading.Thread(target=end.wait).start()"])
def test_calls_on_one_device_stay_known_while_others_start_over_several(beside: str) -> None:
    program = f"""
from minijax.runtime.execute import Executable

through_python = []
original = Executable.__call__

def counted(self, *args):
    through_python.append(len(self.devices))
    return original(self, *args)

Executable.__call__ = counted
end = threading.Event()
{beside}
with jax.cpu_devices(8):
    x, y = sharded(), jnp.ones(4)
    for _ in range(3):
        reduce_often(x), scale(y)
    through_python.clear()
    for _ in range(50):
        reduce_often(x), scale(y)
end.set()
print(through_python.count(1))
"""
    assert last_line(program) == "0"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_programs_of_threads_that_python_has_not_started_end_starts_in_cpp() -> None:
    program = f"""import _thread
{COUNTED}
ended = threading.Lock()
ended.acquire()

def other():
    with jax.cpu_devices(8):
        calls()
    ended.release()

with jax.cpu_devices(8):
    x = sharded()
    calls(4)
    _thread.start_new_thread(other, ())
    ended.acquire()
    # C++ starts one program more, and tells of it.
    print(calls(), calls())
"""
    assert last_line(program) == "99 100"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_results_of_programs_that_cpp_started_may_be_donated_or_deleted() -> None:
    program = f"""{COUNTED}
take = jax.jit(lambda x: x * 2, donate_argnums=0)
with jax.cpu_devices(8):
    x = sharded()
    calls(4)
    for turn in range(60):
        y = reduce_often(x)
        if turn % 3 == 0:
            z = take(y)
        elif turn % 3 == 1:
            y.delete()
    print(np.asarray(z)[0] > 2, through_python < 30, calls())
"""
    assert last_line(program) == "True True 0"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_pmap_starts_in_cpp_unless_it_runs_eagerly() -> None:
    program = f"""{COUNTED}
with jax.cpu_devices(8):
    f = jax.pmap(lambda v: v / jax.lax.psum(v, "i"), "i")
    x = np.ones(8, np.float32)
    f(x), f(x)
    before = through_python
    assert f(x).tolist() == [0.125] * 8
    after = through_python
    with jax.disable_jit():
        assert f(x).tolist() == [0.125] * 8
    print(after - before, through_python > after)
"""
    assert last_line(program) == "0 True"


@pytest.mark.slow
@pytest.mark.feature("CW-02")
def test_programs_with_large_results_start_in_cpp_and_nothing_keeps_these() -> None:
    program = f"""{COUNTED}
import gc
import weakref

large = jax.jit(lambda x, y: x + y.sum())
with jax.cpu_devices(8):
    y = sharded()
    spec = jax.sharding.PartitionSpec("x")
    x = jax.device_put(np.ones((8, 1 << 16), np.float32), y.sharding.update(spec=spec))
    for _ in range(4):
        x = large(x, y)
    # Threads copy this to the devices; they start no programs.
    host = np.ones((8, 1 << 20), np.float32)
    put = jax.device_put(host, x.sharding)
    host[:] = 2
    assert put.sum() == host.size
    before, results = through_python, []
    for _ in range(100):
        x = large(x, y)
        results.append(weakref.ref(x))
        assert len(in_flight._running) + in_flight.starts.unmarked <= in_flight.MOST_IN_FLIGHT
    gc.collect()
    print(through_python - before, sum(r() is not None for r in results))
"""
    assert last_line(program) == "0 1"
