"""What kills or hangs a process that uses jaxlib alone is an exception here, or just works.

Each program runs in a process of its own, where collectives that are not reached give up soon.
A process costs a second or two, which is why samples are small.  What happens without the guard
was seen by running the same program with the guard taken out.
"""

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax.core import config
from minijax.core.primitive import PRIMITIVES
from minijax.lowering import stablehlo
from minijax.runtime import in_flight
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

SOON = (
    "--xla_cpu_collective_call_warn_stuck_timeout_seconds=10 "
    "--xla_cpu_collective_call_terminate_timeout_seconds=30"
)
START = """
import threading
import numpy as np
import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P

def sharded(count=8, size=8):
    mesh = Mesh(np.array(jax.devices()[:count]), ("x",))
    return jax.device_put(np.ones(count * size, np.float32), NamedSharding(mesh, P("x")))

def together(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

@jax.jit
def reduce_often(x):
    for _ in range(5):
        x = x + jnp.sin(x).sum() * 1e-3
    return x

@jax.jit
def scale(x):
    return jnp.sin(x) * 2
"""


def run(program: str, *, before: str = "", flags: str = SOON) -> subprocess.CompletedProcess[str]:
    """Runs a program after `START`."""
    text = textwrap.dedent(before) + START + textwrap.dedent(program)
    return subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def last_line(program: str, **options: str) -> str:
    """The last line that a program prints; it has to come to its end."""
    found = run(program, **options)
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout.splitlines()[-1]


DISPATCH = """
def dispatch(count=8, times=200):
    with jax.cpu_devices(count):
        x = sharded(count)
        for _ in range(times):
            y = {call}
        y.block_until_ready()

together(*[dispatch] * {threads})
print("done")
"""


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("call", ["reduce_often(x)", "scale(x)", "scale(reduce_often(scale(x)))"])
def test_many_programs_in_flight_neither_abort_nor_hang(threads: int, call: str) -> None:
    # Without the window: SIGABRT where there are collectives.  Called by C++, by 4 threads,
    # `scale` alone hangs, without a single collective.
    assert last_line(DISPATCH.format(call=call, threads=threads)) == "done"


@pytest.mark.slow
def test_programs_in_flight_need_no_more_threads_than_devices() -> None:
    # Without the window: SIGABRT, even with one thread.
    program = DISPATCH.format(call="reduce_often(x)", threads=4)
    assert last_line(program, before="import os\nos.environ['NPROC'] = '2'") == "done"


@pytest.mark.slow
def test_clients_with_other_numbers_of_devices_compute_at_once() -> None:
    # With a context that XLA loads a dialect into: SIGSEGV, once in some 30 times.
    program = DISPATCH.partition("together")[0].format(call="reduce_often(x)")
    program += "together(*[lambda n=n: dispatch(n, 50) for n in (2, 3, 4, 8)])\nprint('done')"
    assert last_line(program) == "done"


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
def test_many_pmaps_in_flight_neither_abort_nor_hang(threads: int) -> None:
    program = f"""
    def dispatch():
        with jax.cpu_devices(8):
            f = jax.pmap(lambda v: jax.lax.pmean(jax.lax.psum(v, "i") / 8, "i"), "i")
            x = f(np.ones((8, 4), np.float32))
            for _ in range(200):
                y = f(x)
            y.block_until_ready()

    together(*[dispatch] * {threads})
    print("done")
    """
    assert last_line(program) == "done"


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("call", ["pure_callback", "io_callback", "debug_callback"])
@pytest.mark.parametrize("mapped", ["checked", "unchecked", "pmap"])
def test_a_callback_that_fails_on_one_device_leaves_nobody_waiting(call: str, mapped: str) -> None:
    # Without results of the call that fails the others wait in the sum: SIGABRT.
    program = f"""
    def fail(v):
        if np.asarray(v).ravel()[0] == 3:
            raise KeyError("the third")
        return np.asarray(v)

    def call(v):
        like = jax.ShapeDtypeStruct(v.shape, v.dtype)
        if "{call}" == "pure_callback":
            v = jax.pure_callback(fail, like, v)
        elif "{call}" == "io_callback":
            v = jax.experimental.io_callback(fail, like, v)
        else:
            jax.debug.callback(lambda w: fail(w) and None, v)
        return jax.lax.psum(v, "x")

    with jax.cpu_devices(8):
        x = np.arange(8.0, dtype=np.float32)
        mesh = jax.make_mesh((8,), ("x",))
        f = jax.pmap(call, "x") if "{mapped}" == "pmap" else jax.jit(jax.shard_map(
            call, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma="{mapped}" == "checked"))
        try:
            f(x).block_until_ready()
            jax.effects_barrier()
        except KeyError as error:
            again = jax.pmap(lambda v: jax.lax.psum(v, "x"), "x")(x)
            print(error, again[0])
    """
    assert last_line(program) == "'the third' 28.0"


@pytest.mark.turns(3)
@pytest.mark.slow
def test_process_ends_with_programs_in_flight() -> None:
    program = """
    with jax.cpu_devices(8):
        x = sharded(size=2**16)
        for _ in range(20):
            x = jnp.sort(x) + reduce_often(x)
        print("in flight")
    """
    assert last_line(program) == "in flight"


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["scale", "reduce_often"])
def test_callback_on_several_devices_cannot_run_programs_on_several(inner: str) -> None:
    # Without the check: hangs, as XLA runs such programs one after the other.
    program = f"""
    with jax.cpu_devices(8):
        x = sharded()
        {inner}(x)
        def call(v):
            return np.asarray({inner}(x))
        try:
            jax.jit(lambda x: jax.pure_callback(call, x, x) + x.sum())(x)
        except RuntimeError as error:
            print(str(error).splitlines()[0])
    """
    assert "a callback of a program over several devices cannot run another" in last_line(program)


@pytest.mark.slow
def test_failing_callback_before_a_collective_raises_and_the_process_goes_on() -> None:
    # With callbacks that raise at once: SIGABRT, as the other devices wait for the collective.
    program = """
    with jax.cpu_devices(8):
        x = sharded()
        def call(v):
            raise ZeroDivisionError("in a callback")
        like = jax.ShapeDtypeStruct((), np.float32)
        f = jax.jit(lambda x: x + jax.pure_callback(call, like, x.sum()) + jnp.sin(x).sum())
        found = []
        for _ in range(3):
            try:
                f(x)
            except ZeroDivisionError as error:
                found.append(str(error))
        print(found, float(reduce_often(x)[0]) > 1)
    """
    assert last_line(program) == f"{['in a callback'] * 3} True"


@pytest.mark.slow
def test_threads_may_donate_the_same_array() -> None:
    # With the look at the arguments outside of the lock: SIGSEGV within some 100 calls.
    program = """
    take = jax.jit(lambda x, y: x + y, donate_argnums=0)
    def use(x):
        for _ in range(10):
            try:
                take(x, x * 1)
            except RuntimeError:
                pass
    with jax.cpu_devices(8):
        arrays = [sharded() for _ in range(10)]
    for x in arrays:
        together(*[lambda x=x: use(x)] * 6)
    print(all(x.is_deleted() for x in arrays))
    """
    assert last_line(program) == "True"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["take(x)", "x.delete()"])
def test_array_that_other_threads_take_while_it_is_used(end: str) -> None:
    # With programs called by C++, which takes no lock: SIGSEGV within some 300 rounds.
    program = f"""
    import sys
    sys.setswitchinterval(1e-5)
    take = jax.jit(lambda x: x + 1, donate_argnums=0)
    with jax.cpu_devices(8):
        scale(sharded(size=2)), take(sharded(size=2))
        for _ in range(300):
            x = sharded(size=2)
            thread = threading.Thread(target=lambda x=x: {end})
            thread.start()
            try:
                for _ in range(20):
                    scale(x)
            except RuntimeError:
                pass
            thread.join()
            assert x.is_deleted()
    print("done")
    """
    assert last_line(program) == "done"


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "alias",
    [
        "jax.lax.with_sharding_constraint(x, x.sharding)",
        "jax.make_array_from_single_device_arrays("
        "x.shape, x.sharding, [s.data for s in x.addressable_shards])",
    ],
)
def test_memory_under_two_names_is_not_taken_from_either(alias: str) -> None:
    # Where names of the same memory do not know of one another: SIGSEGV.
    program = f"""
    take = jax.jit(lambda x: x + 1, donate_argnums=0)
    with jax.cpu_devices(8):
        x = sharded()
        scale(x)
        y = {alias}
        take(x)
        try:
            print(np.array_equal(scale(y), scale(sharded())))
        except RuntimeError:
            print(y is x)
    """
    assert last_line(program) == "True"


DEAD_ARGUMENTS = {
    "donated": "take(x); scale(x)",
    "donated, then to Compiled": "take(x); scale.lower(sharded()).compile()(x)",
    "donated by Compiled": "take.lower(x).compile()(x); scale(x)",
    "deleted": "x.delete(); scale(x)",
    "donated under another notation": "y = jax.device_put(x, x.sharding); take(y); take(y)",
    "without a piece": "x.addressable_shards[0].data.delete(); scale(x)",
    "donated with itself": "both(x, x)",
    "donated with itself in a tree": "pair((x, x))",
    "donated to a program that fails": "fail(x)\nexcept ZeroDivisionError: pass\ntry: scale(x)",
}


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DEAD_ARGUMENTS)
def test_dead_arguments_are_refused_on_several_devices(name: str) -> None:
    # With the look at the arguments taken out, and through C++: SIGSEGV.
    lines = DEAD_ARGUMENTS[name].splitlines()
    program = (
        """
def call(v):
    raise ZeroDivisionError

take = jax.jit(lambda x: x + 1, donate_argnums=0)
both = jax.jit(lambda x, y: x + y, donate_argnums=0)
pair = jax.jit(lambda t: (t[0] + 1, t[1] + 2), donate_argnums=0)
fail = jax.jit(lambda x: x + jax.pure_callback(call, x, x), donate_argnums=0)
with jax.cpu_devices(8):
    x = sharded()
    scale(x), scale(x)
    try: """
        + "\n    ".join(lines)
        + """
    except RuntimeError as error:
        print(type(error).__name__)
"""
    )
    assert last_line(program) in ("RuntimeError", "DeletedArrayError", "JaxRuntimeError")


REFUSED_FLAGS = {
    "--xla_no_such_flag=1": "ValueError devices: XLA refuses",
    "--xla_force_host_platform_device_count=many": "ValueError devices: XLA refuses",
    "--xla_cpu_multi_thread_eigen=perhaps": "ValueError devices: XLA refuses",
    "no_such_file": "ValueError devices: XLA refuses",
    "--xla_force_host_platform_device_count=0": "RuntimeError devices: there cannot be",
    "--xla_force_host_platform_device_count=-5": "RuntimeError devices: there cannot be",
    "--xla_force_host_platform_device_count=100000": "RuntimeError devices: there cannot be",
}


@pytest.mark.slow
@pytest.mark.feature("AR-16")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("flags", REFUSED_FLAGS)
def test_flags_that_end_the_process_are_refused(flags: str) -> None:
    # `xla_client.make_cpu_client` alone: XLA ends the process, and makes 100000 devices for hours.
    program = """
    try:
        jax.devices()
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
    """
    assert last_line(program, flags=flags).startswith(REFUSED_FLAGS[flags])


@pytest.mark.slow
def test_harmless_flags_decide_on_the_number_of_devices() -> None:
    flags = "--xla_force_host_platform_device_count=3 --xla_disable_hlo_passes=no-such-pass"
    assert last_line("print(len(jax.devices()))", flags=flags) == "3"


@pytest.mark.parametrize("count", [0, 2049, 100_000])
def test_absurd_number_of_host_devices_is_refused(count: int) -> None:
    with config.num_cpu_devices(count), pytest.raises(RuntimeError, match="1 to 2048"):
        jax.devices()


@pytest.mark.slow
def test_forked_child_refuses_programs_on_several_devices() -> None:
    # Without the check: hangs, as the threads of the pool are not in the child.
    program = """
    import os, warnings
    with jax.cpu_devices(8):
        x = sharded()
        scale(x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            child = os.fork()
        if child == 0:
            try:
                scale(x)
            except RuntimeError as error:
                os._exit(7)
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), caught[0].category.__name__)
    """
    assert last_line(program) == "7 RuntimeWarning"


@pytest.mark.slow
def test_threads_that_lower_first_share_one_context() -> None:
    # Without the lock: several contexts, and "location from a different MLIRContext" or SIGSEGV.
    program = """
    import sys
    from minijax.lowering import stablehlo
    sys.setswitchinterval(1e-6)
    barrier, found = threading.Barrier(8), []
    def ask():
        barrier.wait()
        found.append(id(stablehlo.context()))
    together(*[ask] * 8)
    print(len(set(found)))
    """
    assert last_line(program) == "1"


def test_context_has_the_dialect_that_xla_would_load() -> None:
    # Without it: SIGSEGV in MLIRContext::getOrLoadDialect, once in some 30 times, where threads
    # compile first at the same time.
    assert stablehlo.context().dialects["mhlo"].descriptor.namespace == "mhlo"


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("padding", [(-1, 2, 1), (-2, 5, 2), (-20, 9, 3)])
def test_padding_within_that_takes_elements_off_is_partitioned(
    padding: tuple[int, int, int],
) -> None:
    # stablehlo.pad as it stands: SIGABRT in XLA's partitioner, with JAX 0.10.2 too.
    program = f"""
    from minijax import lax
    with jax.cpu_devices(8):
        x = sharded()
        pad = lambda x: lax.pad(jnp.cumsum(x), np.float32(9), [{padding}])
        print(np.array_equal(jax.jit(pad)(x), jax.jit(pad)(np.asarray(x))))
    """
    assert last_line(program) == "True"


@pytest.fixture
def x():
    with jax.cpu_devices(4):
        mesh = Mesh(np.array(jax.devices()), ("x",))
        yield jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))


@pytest.mark.parametrize("change", [lambda x: x.astype(np.int32), lambda x: x.reshape(2, 4)])
def test_compiled_refuses_types_of_the_same_size(x, change) -> None:
    # XLA compares numbers of bytes only, and takes the bits for the other type.
    compiled = jax.jit(lambda x: x + 1).lower(x).compile()
    with pytest.raises(TypeError, match="compiled with f32"):
        compiled(change(x))


def test_assembling_pieces_of_another_shape_is_refused(x) -> None:
    pieces = [jax.device_put(np.ones((1, 2), np.float32), d) for d in x.sharding.device_assignment]
    with pytest.raises(ValueError, match="make_array_from_single_device_arrays"):
        jax.make_array_from_single_device_arrays((8,), x.sharding, pieces)


def test_assembling_pieces_of_another_dtype_is_refused(x) -> None:
    dtypes = [np.float32, np.float32, np.int32, np.float32]
    pieces = [
        jax.device_put(np.ones(2, dtype), d)
        for d, dtype in zip(x.sharding.device_assignment, dtypes, strict=True)
    ]
    with pytest.raises(ValueError, match="make_array_from_single_device_arrays"):
        jax.make_array_from_single_device_arrays((8,), x.sharding, pieces)


def test_unknown_compiler_option_is_refused(x) -> None:
    function = jax.jit(lambda x: x + 1, compiler_options={"xla_no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="does not know a compiler option"):
        function(x)


def test_interrupted_wait_forgets_no_program(monkeypatch) -> None:
    class Running:
        def block_until_ready(self):
            raise KeyboardInterrupt

    running = [Running() for _ in range(in_flight.MOST_IN_FLIGHT)]
    monkeypatch.setattr(in_flight, "_running", running)
    with pytest.raises(KeyboardInterrupt), in_flight.lock:
        in_flight.admit()
    assert len(running) == in_flight.MOST_IN_FLIGHT


def test_window_does_not_hold_arrays(x) -> None:
    function = jax.jit(lambda x: x + x.sum())
    client = x.sharding.device_assignment[0].client

    def alive() -> int:
        gc.collect()
        return sum(a.aval.shape == (8,) for a in client.live_arrays())

    # Other tests may have left arrays of this shape.
    before = alive()
    for _ in range(4):
        function(x)
    assert alive() == before


def test_no_primitive_waits_for_a_host_that_never_answers() -> None:
    # They compile, and hang: jaxlib's client has nothing to feed or drain them.
    assert not {"infeed", "outfeed"} & PRIMITIVES.keys()


def test_padding_is_one_operation_on_one_device() -> None:
    function = jax.jit(lambda x: lax.pad(x, np.float32(0), [(-1, 2, 1)]))
    assert "stablehlo.slice" not in function.lower(np.ones(4, np.float32)).as_text()
