"""Effects of programs: order, waiting, and exceptions of the functions that programs call."""

import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import effects
from minijax.experimental import io_callback
from minijax.lax import debugging
from minijax.runtime import effect_tokens, in_flight

X = np.arange(3, dtype=np.float32)
LIKE_X = jax.ShapeDtypeStruct((3,), np.float32)


class RefusedError(Exception):
    """What the callbacks of these tests raise."""


def refuse(*_):
    raise RefusedError("the user's text")


CALLS = {
    "pure": lambda x: jax.pure_callback(refuse, LIKE_X, x),
    "io": lambda x: io_callback(refuse, LIKE_X, x),
    "ordered io": lambda x: io_callback(refuse, LIKE_X, x, ordered=True),
    "debug": lambda x: (jax.debug.callback(refuse, x), x)[1],
    "ordered debug": lambda x: (jax.debug.callback(refuse, x, ordered=True), x)[1],
}
ALL_CALLS = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


slow = jax.jit(lambda x, m: x + (m @ m @ m @ m)[0, 0] * 0)


def late(function, x=X):
    """The result of a program that starts when the call has returned, on another thread.

    That is how programs run whose arguments are still being computed.
    """
    compiled = jax.jit(function).lower(x).compile()
    return compiled(slow(x, jnp.ones((1200, 1200))))


@pytest.fixture(autouse=True)
def effects_are_over():
    """No effect of one test reaches into another."""
    yield
    while effect_tokens._pending:
        in_flight.failure_of(effect_tokens._pending.popleft())


@pytest.mark.feature("EF-02")
def test_tokens_are_first_among_arguments_and_results():
    lowered = jax.jit(lambda x: jax.debug.print("{}", x, ordered=True)).lower(X)
    assert "main(%arg0: !stablehlo.token, %arg1: tensor<3xf32>) -> !stablehlo.token" in (
        lowered.as_text().replace("(!stablehlo.token) {", "!stablehlo.token {")
    )


@pytest.mark.feature("EF-02")
def test_inner_functions_take_and_return_tokens():
    inner = jax.jit(lambda x: io_callback(lambda y: y, LIKE_X, x, ordered=True))
    text = jax.jit(lambda x: inner(inner(x))).lower(X).as_text()
    signature = "(!stablehlo.token, tensor<3xf32>) -> (!stablehlo.token, tensor<3xf32>)"
    assert text.count(f": {signature}\n") == 3
    assert text.count("func.func private") == 1


@pytest.mark.feature("EF-02")
def test_donation_counts_results_after_tokens():
    function = jax.jit(lambda x: (jax.debug.print("", ordered=True), x + 1)[1], donate_argnums=0)
    assert "tf.aliasing_output = 1" in function.lower(X).as_text()
    assert function(jnp.asarray(X)).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.feature("EF-02")
def test_ordered_effects_keep_their_order_between_programs():
    seen = []

    def note(x):
        io_callback(lambda y: seen.append(float(y)), None, x, ordered=True)

    late(note, jnp.float32(0))
    jax.jit(note)(1.0)
    note(2.0)
    jax.jit(lambda x: (note(x), note(x + 1)))(3.0)
    jax.effects_barrier()
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.feature("EF-02")
def test_large_constants_come_after_tokens():
    table = np.arange(5000, dtype=np.float32)
    seen = []

    @jax.jit
    def function(i):
        io_callback(lambda y: seen.append(float(y)), None, i, ordered=True)
        return jnp.asarray(table)[i]

    assert float(function(4000)) == 4000.0
    assert seen == [4000.0]


@pytest.mark.feature("EF-04")
def test_barrier_waits_for_unordered_effects():
    may_go, seen = threading.Event(), []

    def wait(x):
        may_go.wait(10)
        seen.append(float(x))

    late(lambda x: jax.debug.callback(wait, x), jnp.float32(5))
    may_go.set()
    jax.effects_barrier()
    assert seen == [5.0]


@pytest.mark.feature("EF-04")
def test_pending_programs_are_bounded():
    function = jax.jit(lambda x: jax.debug.callback(lambda y: None, x))
    for _ in range(200):
        function(1.0)
    assert len(effect_tokens._pending) <= 64


@pytest.mark.feature("EF-01")
def test_unknown_effects_are_refused_in_control_flow():
    class Unheard(effects.Effect):
        def __repr__(self):
            return "Unheard"

    primitive = jax.extend.core.Primitive("unheard_for_tests")
    primitive.def_effectful_abstract_eval(lambda x: (x, {Unheard()}))
    with pytest.raises(NotImplementedError, match="effect Unheard is not allowed"):
        jax.make_jaxpr(
            lambda x: jax.lax.scan(lambda c, _: (primitive.bind(c), None), x, None, length=2)
        )(1.0)


@ALL_CALLS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_exceptions_of_callbacks_reach_the_caller(call, wrap):
    with pytest.raises(RefusedError, match=r"^the user's text$") as caught:
        wrap(call)(X).block_until_ready()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert (names[-1], caught.value.__context__) == ("refuse", None)


@pytest.mark.feature("EF-02")
def test_ordered_effects_go_on_after_a_failure_that_is_kept_no_longer():
    old = late(CALLS["ordered io"])
    with pytest.raises(RefusedError):
        np.asarray(old)
    failing = jax.jit(CALLS["pure"])
    for _ in range(in_flight._MOST_KEPT + 1):
        with pytest.raises(RefusedError):
            failing(X).block_until_ready()
    seen = []
    jax.jit(lambda x: io_callback(lambda y: seen.append(y.tolist()), None, x, ordered=True))(X)
    jax.effects_barrier()
    assert seen == [[0.0, 1.0, 2.0]]
    with pytest.raises(RuntimeError, match="its exception is gone"):
        np.asarray(old)


@ALL_CALLS
def test_exceptions_reach_the_caller_on_every_call(call):
    function = jax.jit(call)
    lengths = set()
    for _ in range(3):
        with pytest.raises(RefusedError) as caught:
            function(X).block_until_ready()
        lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(lengths) <= 2


@ALL_CALLS
@pytest.mark.parametrize(
    "use",
    [np.asarray, lambda y: y.block_until_ready(), lambda y: np.asarray(y * 2), float, str],
    ids=["numpy", "block", "numpy of another", "float", "str"],
)
def test_exceptions_surface_where_late_results_are_used(call, use):
    y = late(lambda x: call(x)[0])
    with pytest.raises(RefusedError, match="the user's text"):
        use(y)


def test_exceptions_without_results_surface_at_the_barrier():
    late(lambda x: jax.debug.callback(refuse, x))
    with pytest.raises(RefusedError):
        jax.effects_barrier()
    assert jax.effects_barrier() is None


def test_exceptions_already_raised_do_not_return_at_the_barrier():
    y = late(CALLS["ordered io"])
    with pytest.raises(RefusedError):
        y.block_until_ready()
    assert jax.effects_barrier() is None


def test_ordered_programs_go_on_after_an_exception():
    y = late(CALLS["ordered io"])
    with pytest.raises(RefusedError):
        y.block_until_ready()
    after = jax.jit(lambda x: io_callback(lambda y: np.asarray(y) + 1, LIKE_X, x, ordered=True))
    assert after(X).tolist() == [1.0, 2.0, 3.0]


def test_exceptions_nobody_saw_surface_at_the_next_ordered_program():
    late(lambda x: jax.debug.callback(refuse, x, ordered=True))
    token = effect_tokens._last.of[debugging.ordered_debug_effect, (jax.devices()[0],)]
    assert in_flight.failure_of(token) is not None
    effect_tokens._pending.clear()
    after = jax.jit(lambda x: jax.debug.callback(lambda y: None, x, ordered=True))
    with pytest.raises(RefusedError):
        after(X)
    assert after(X) is None


def test_exceptions_leave_loops():
    seen = []

    def check(i):
        seen.append(int(i))
        if i == 2:
            raise RefusedError

    def body(i):
        jax.debug.callback(check, i)
        return i + 1

    with pytest.raises(RefusedError):
        jax.lax.while_loop(lambda i: i < 5, body, 0).block_until_ready()
    assert seen[:3] == [0, 1, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration, KeyError("key")])
def test_any_exception_reaches_the_caller(error):
    def callback(_):
        raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        jax.jit(lambda x: jax.debug.callback(callback, x))(X)


def test_exceptions_keep_their_causes():
    def callback(_):
        raise RefusedError from KeyError("cause")

    with pytest.raises(RefusedError) as caught:
        jax.jit(lambda x: jax.pure_callback(callback, LIKE_X, x))(X).block_until_ready()
    assert isinstance(caught.value.__cause__, KeyError)


def test_kept_exceptions_are_bounded():
    for _ in range(200):
        in_flight.keep(in_flight.Failure(RefusedError()))
    assert len(in_flight._kept) == 64


def test_programs_with_callbacks_run_inside_callbacks():
    inner = jax.jit(lambda x: jax.pure_callback(lambda y: np.asarray(y) + 1, LIKE_X, x))
    outer = jax.jit(lambda x: jax.pure_callback(lambda y: inner(y) * 2, LIKE_X, x))
    assert outer(X).tolist() == [2.0, 4.0, 6.0]


def test_other_errors_of_programs_pass_unchanged():
    def fails():
        raise ValueError("not XLA's")

    with pytest.raises(ValueError, match="not XLA's"):
        in_flight.surfacing(fails)


def test_compiled_programs_with_effects_run():
    seen = []
    compiled = (
        jax.jit(lambda x: io_callback(lambda y: seen.append(float(y)), None, x, ordered=True))
        .lower(1.0)
        .compile()
    )
    compiled(2.0)
    jax.effects_barrier()
    assert seen == [2.0]


@pytest.mark.turns(3)
@pytest.mark.slow
def test_effects_happen_before_the_process_ends(tmp_path):
    program = tmp_path / "late.py"
    program.write_text(
        "import minijax as jax, minijax.numpy as jnp\n"
        "slow = jax.jit(lambda m: (m @ m @ m @ m)[0, 0])\n"
        "show = jax.jit(lambda x: jax.debug.print('shown {}', x > 0))\n"
        "show(slow(jnp.ones((2000, 2000))))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("shown True\n", "")
