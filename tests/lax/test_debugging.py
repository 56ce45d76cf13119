"""`debug.print`, `debug.callback`, `debug.log` and `debug.breakpoint`."""

import logging

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp

X = np.arange(3, dtype=np.float32)
ORDERS = pytest.mark.parametrize("ordered", [False, True])


@pytest.fixture
def printed(capsys):
    """`printed()` waits for effects and gives the lines printed since."""

    def lines():
        jax.effects_barrier()
        return capsys.readouterr().out.splitlines()

    return lines


def show(ordered):
    """A function that prints its argument and returns it."""

    def function(x):
        jax.debug.print("{}", x, ordered=ordered)
        return x

    return function


@ORDERS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_print_shows_the_value(printed, wrap, ordered):
    wrap(show(ordered))(X)
    assert printed() == ["[0. 1. 2.]"]


def test_print_formats_as_str_format_does(printed):
    jax.debug.print("{:.2f} {name:>4} {{}} {pair}", 1.5, name=jnp.int32(3), pair=("a", None))
    jax.jit(lambda x: jax.debug.print("{x.shape} {x[1]}", x=x))(X)
    assert printed() == ["1.50    3 {} ('a', None)", "(3,) 1.0"]


def test_print_uses_numpys_options_of_the_call(printed):
    with np.printoptions(precision=2):
        function = jax.jit(lambda x: jax.debug.print("{}", x))
        function(X / 3)
    function(X / 3)
    assert printed() == ["[0.   0.33 0.67]"] * 2


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (IndexError, "more places", lambda x: jax.debug.print("{} {}", x)),
        (ValueError, "does not use argument 1", lambda x: jax.debug.print("{}", x, x)),
        (ValueError, "does not use argument 'b'", lambda x: jax.debug.print("{a}", a=x, b=x)),
        (KeyError, "names an argument 'a'", lambda x: jax.debug.print("{a}", x)),
        (TypeError, "formats one number", lambda x: jax.debug.print("{:.2f}", x)),
        (ValueError, "Unknown format code", lambda x: jax.debug.print("{:d}", x[0])),
        (ValueError, "Single '{'", lambda x: jax.debug.print("{")),
        (TypeError, "must be a string", lambda x: jax.debug.print(x)),
    ],
)
def test_wrong_formats_are_errors_of_the_call(error, text, call):
    with pytest.raises(error, match=f"debug.print: .*{text}") as caught:
        jax.make_jaxpr(call)(X)
    assert "\n" in str(caught.value)


def test_format_check_can_be_skipped():
    jax.make_jaxpr(lambda x: jax.debug.print("{} {}", x, skip_format_check=True))(X)


def test_print_without_format_is_a_print_with_options(printed):
    jax.debug.print(ordered=True)("{}", 3)
    assert printed() == ["3"]


@ORDERS
def test_print_under_vmap_shows_every_example(printed, ordered):
    jax.vmap(show(ordered))(X)
    assert printed() == ["0.0", "1.0", "2.0"]


@ORDERS
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda f: jax.jvp(f, (2.0,), (1.0,)),
        lambda f: jax.grad(f)(2.0),
        lambda f: jax.grad(jax.jit(f))(2.0),
        lambda f: jax.jit(jax.grad(f))(2.0),
        lambda f: jax.linearize(f, 2.0)[1](1.0),
        lambda f: jax.hessian(f)(2.0),
    ],
)
def test_print_under_differentiation_shows_primal_values_once(printed, differentiate, ordered):
    differentiate(lambda x: show(ordered)(x) ** 3)
    assert printed() == ["2.0"]


def test_transposition_drops_prints_of_linear_values(printed):
    out = jax.linear_transpose(lambda x: show(False)(x) * 2, 1.0)(3.0)
    assert (float(out[0]), printed()) == (6.0, [])


@ORDERS
def test_print_in_scan_shows_every_step(printed, ordered):
    jax.jit(lambda xs: jax.lax.scan(lambda c, x: (c + show(ordered)(x), None), 0.0, xs))(X)
    assert printed() == ["0.0", "1.0", "2.0"]


@ORDERS
def test_print_in_while_body_and_condition_shows_every_step(printed, ordered):
    def condition(i):
        jax.debug.print("test {}", i, ordered=ordered)
        return i < 2

    def body(i):
        jax.debug.print("step {}", i, ordered=ordered)
        return i + 1

    assert int(jax.lax.while_loop(condition, body, 0)) == 2
    assert printed() == ["test 0", "step 0", "test 1", "step 1", "test 2"]


@ORDERS
def test_print_in_cond_shows_the_branch_taken(printed, ordered):
    function = jax.jit(
        lambda p: jax.lax.cond(
            p,
            lambda: jax.debug.print("yes", ordered=ordered),
            lambda: jax.debug.print("no", ordered=ordered),
        )
    )
    function(True)
    function(False)
    assert printed() == ["yes", "no"]


def test_ordered_prints_keep_their_order_through_nested_control_flow(printed):
    def inner(carry, y):
        jax.lax.cond(
            y > 0,
            lambda: jax.debug.print("inner {} {}", carry, y, ordered=True),
            lambda: jax.debug.print("zero", ordered=True),
        )
        return carry, None

    def outer(carry, x):
        jax.debug.print("outer {}", x, ordered=True)
        jax.jit(lambda c: jax.lax.scan(inner, c, jnp.arange(2)))(x)
        return carry + x, None

    jax.jit(lambda xs: jax.lax.scan(outer, 0, xs))(jnp.arange(2))
    jax.debug.print("end", ordered=True)
    expected = ["outer 0", "zero", "inner 0 1", "outer 1", "zero", "inner 1 1", "end"]
    assert printed() == expected


@ORDERS
def test_print_in_scan_under_grad_shows_the_primal_pass(printed, ordered):
    def loss(xs):
        return jax.lax.scan(lambda c, x: (c * show(ordered)(x), None), 1.0, xs)[0]

    assert jax.grad(loss)(X + 1).tolist() == [6.0, 3.0, 2.0]
    assert printed() == ["1.0", "2.0", "3.0"]


def test_print_in_unused_scan_stays(printed):
    jax.jit(lambda xs: (jax.lax.scan(lambda c, x: (c, show(False)(x)), 0.0, xs), 1)[1])(X)
    assert printed() == ["0.0", "1.0", "2.0"]


def test_batched_cond_prints_in_all_branches(printed):
    function = jax.vmap(lambda p: jax.lax.cond(p > 1, show(False), lambda x: x, p))
    assert function(X).tolist() == [0.0, 1.0, 2.0]
    assert printed() == ["0.0", "1.0", "2.0"]


def test_batched_while_prints_until_all_examples_are_done(printed):
    def count(n):
        return jax.lax.while_loop(lambda i: i < n, lambda i: show(False)(i) + 1, 0)

    assert jax.vmap(count)(jnp.arange(3)).tolist() == [0, 1, 2]
    assert printed() == ["0", "0", "0", "0", "1", "1"]


@ORDERS
def test_print_in_custom_rules(printed, ordered):
    function = jax.custom_jvp(show(ordered))
    function.defjvp(lambda primals, tangents: (function(*primals), 3 * tangents[0]))
    assert float(jax.jit(jax.grad(function))(2.0)) == 3.0
    assert printed() == ["2.0"]


@ORDERS
def test_print_in_checkpoint_is_repeated_with_the_computation(printed, ordered):
    function = jax.checkpoint(lambda x: jnp.sin(show(ordered)(x)))
    np.testing.assert_allclose(jax.grad(function)(2.0), np.cos(2.0), rtol=1e-6)
    assert printed() == ["2.0", "2.0"]


def test_callback_gets_arrays_and_anything_else():
    seen = []
    jax.jit(
        lambda x: jax.debug.callback(lambda *args, **kw: seen.append((args, kw)), x, "a", b=None)
    )(X)
    jax.effects_barrier()
    ((x, text), named), *_ = seen
    assert isinstance(x, jax.Array)
    assert (x.tolist(), text, named) == ([0.0, 1.0, 2.0], "a", {"b": None})


def test_callback_ignores_what_the_function_returns():
    assert jax.jit(lambda: jax.debug.callback(lambda: 3))() is None


def test_callback_must_be_callable():
    with pytest.raises(TypeError, match=r"debug\.callback: expected a function"):
        jax.debug.callback(3)


def test_keys_are_shown_as_keys(printed):
    for wrap in (lambda f: f, jax.jit, jax.vmap):
        key = jax.random.split(jax.random.key(0), 1)
        wrap(lambda k: jax.debug.print("{}", k))(key)
        assert "key<fry>" in printed()[0]


def test_log_goes_to_the_logger(caplog):
    with caplog.at_level(logging.INFO, "minijax.debug"):
        jax.jit(lambda x: jax.debug.log("x is {} %d", x))(X)
        jax.effects_barrier()
    assert caplog.messages == ["x is [0. 1. 2.] %d"]


def test_breakpoint_prints_local_variables_and_goes_on(printed):
    @jax.jit
    def function(x):
        doubled = x * 2
        jax.debug.breakpoint()
        return doubled

    assert function(X).tolist() == [0.0, 2.0, 4.0]
    place, *values = printed()
    assert place.startswith("breakpoint at test_debugging.py:")
    assert place.endswith(" in function")
    assert values == [
        "  x = Array([0., 1., 2.], dtype=float32)",
        "  doubled = Array([0., 2., 4.], dtype=float32)",
    ]


def test_breakpoint_shows_more_frames_where_asked(printed):
    def inner(y):
        jax.debug.breakpoint(num_frames=2, extra=y)

    def outer(x):
        inner(x + 1)

    outer(jnp.float32(1))
    lines = printed()
    assert [line.split()[0] for line in lines] == ["breakpoint", "y", "extra", "breakpoint", *"x"]


def test_a_branch_not_taken_prints_nothing(printed):
    function = jax.jit(lambda x: jax.lax.cond(x > 0, show(False), lambda x: x, x))
    assert float(function(-1.0)) == -1.0
    assert printed() == []
