"""`jet`: checked against repeated `jvp` for each primitive, and against known derivatives."""

import functools
import math

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.errors import MissingRule
from minijax.experimental.jet import jet

pytestmark = pytest.mark.feature("AD-08")

ORDER = 4


def derivatives_along(function, x, series):
    """The derivatives of t -> function(x + x't + x''t²/2 + ...) at 0, by differentiating it again
    and again.
    """

    def curve(t):
        return x + sum(
            (term * t ** (k + 1) / math.factorial(k + 1) for k, term in enumerate(series)),
            start=jnp.zeros_like(x),
        )

    def composed(t):
        return function(curve(t))

    found = []
    for _ in series:
        composed = functools.partial(
            lambda f, t: jax.jvp(f, (t,), (jnp.ones_like(t),))[1], composed
        )
        found.append(composed(jnp.zeros((), x.dtype)))
    return found


def check(function, x, order=ORDER, tolerance=1e-8):
    """That `jet` gives what repeated differentiation gives, along a random curve."""
    with jax.enable_x64(True):
        x = jnp.asarray(x, jnp.float64)
        random = np.random.default_rng(0)
        series = [jnp.asarray(random.normal(size=x.shape)) for _ in range(order)]
        out, terms = jet(function, (x,), (series,))
        np.testing.assert_allclose(out, function(x), rtol=tolerance)
        expected = derivatives_along(function, x, series)
        for term, wanted in zip(terms, expected, strict=True):
            np.testing.assert_allclose(term, wanted, rtol=tolerance, atol=tolerance)


X = np.array([0.3, 0.6])
BEYOND_ONE = np.array([1.3, 2.6])
MATRIX = np.array([[0.3, -0.6, 0.2], [1.1, 0.4, -0.7]])

UNARY = {
    "abs": jnp.abs,
    "acos": lax.acos,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "atanh": lax.atanh,
    "cbrt": lax.cbrt,
    "ceil": lax.ceil,
    "cos": lax.cos,
    "cosh": lax.cosh,
    "digamma": lax.digamma,
    "erf": lax.erf,
    "erf_inv": lax.erf_inv,
    "erfc": lax.erfc,
    "exp": lax.exp,
    "exp2": lax.exp2,
    "expm1": lax.expm1,
    "floor": lax.floor,
    "integer_pow": lambda x: lax.integer_pow(x, 5),
    "integer_pow of a negative exponent": lambda x: lax.integer_pow(x, -2),
    "lgamma": lax.lgamma,
    "log": lax.log,
    "log1p": lax.log1p,
    "logistic": lax.logistic,
    "neg": lax.neg,
    "round": lax.round,
    "rsqrt": lax.rsqrt,
    "sign": lax.sign,
    "sin": lax.sin,
    "sinh": lax.sinh,
    "sqrt": lax.sqrt,
    "square": lax.square,
    "tan": lax.tan,
    "tanh": lax.tanh,
}


@pytest.mark.parametrize("name", UNARY)
def test_jet_of_a_unary_primitive_is_repeated_jvp(name):
    check(UNARY[name], X)


def test_jet_of_acosh_is_repeated_jvp():
    check(lax.acosh, BEYOND_ONE)


@pytest.mark.parametrize("function", [lax.bessel_i0e, lax.bessel_i1e])
def test_jet_of_bessel_functions_is_repeated_jvp(function):
    check(function, X, order=3)


BINARY = {
    "add": lambda x: lax.add(lax.sin(x), lax.cos(x)),
    "atan2": lambda x: lax.atan2(lax.sin(x), lax.exp(x)),
    "clamp": lambda x: lax.clamp(0.2, x, 0.5),
    "complex": lambda x: jnp.abs(lax.exp(lax.complex(x, lax.sin(x)))),
    "div": lambda x: lax.div(lax.sin(x), lax.exp(x)),
    "div by a constant": lambda x: lax.div(lax.sin(x), 3.0),
    "div of a constant": lambda x: lax.div(3.0, lax.exp(x)),
    "max": lambda x: lax.max(lax.sin(x), lax.cos(x)),
    "min": lambda x: lax.min(lax.sin(x), lax.cos(x)),
    "mul": lambda x: lax.mul(lax.sin(x), lax.exp(x)),
    "mul by a constant": lambda x: lax.mul(lax.sin(x), 3.0),
    "pow": lambda x: lax.pow(lax.exp(x), lax.sin(x)),
    "pow of a constant": lambda x: lax.pow(2.0, lax.sin(x)),
    "pow by a constant": lambda x: lax.pow(x, 2.5),
    "rem": lambda x: lax.rem(lax.exp(x), 0.7),
    "select_n": lambda x: lax.select(x > 0.5, lax.sin(x), lax.exp(x)),
    "sub": lambda x: lax.sub(lax.sin(x), lax.cos(x)),
}


@pytest.mark.parametrize("name", BINARY)
def test_jet_of_an_elementwise_primitive_is_repeated_jvp(name):
    check(BINARY[name], X)


STRUCTURAL = {
    "broadcast": lambda x: jnp.broadcast_to(x, (4, 2, 3)) * x,
    "concatenate": lambda x: jnp.concatenate([x, jnp.sin(x)]),
    "conv": lambda x: jnp.convolve(jnp.sin(x[0]), jnp.exp(x[1])),
    "cumprod": lambda x: jnp.cumprod(jnp.exp(x), axis=1),
    "cumsum": lambda x: jnp.cumsum(x * x, axis=1),
    "dot_general": lambda x: jnp.sin(x) @ jnp.exp(x).T,
    "dynamic_slice": lambda x: lax.dynamic_slice(x * x, (1, 1), (1, 2)),
    "dynamic_update_slice": lambda x: x.at[1, 1:].set(x[0, 1:] ** 2),
    "gather": lambda x: (x * x)[:, np.array([2, 0])],
    "logsumexp": lambda x: jax.nn.logsumexp(x, axis=1),
    "pad": lambda x: jnp.pad(x * x, 1),
    "reduce_max": lambda x: jnp.max(x * x, axis=1),
    "reduce_prod": lambda x: jnp.prod(x, axis=1),
    "reduce_sum": lambda x: jnp.sum(x * x * x, axis=0),
    "reshape": lambda x: jnp.reshape(x * x, (3, 2)),
    "rev": lambda x: jnp.flip(x * x, 1),
    "scatter-add": lambda x: x.at[0, 1].add(x[1, 0] ** 2),
    "softmax": lambda x: jax.nn.softmax(x, axis=1),
    "sort": lambda x: jnp.sort(x * x, axis=1),
    "split": lambda x: jnp.split(x * x, 3, axis=1)[1],
    "transpose": lambda x: (x * x).T,
    "where": lambda x: jnp.where(x > 0, x * x, 0.0),
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_jet_of_a_structural_primitive_is_repeated_jvp(name):
    check(STRUCTURAL[name], MATRIX, order=3)


HOLDING = {
    "jit": jax.jit(lambda x: jnp.sin(x) * x),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "scan": lambda x: lax.scan(lambda c, y: (c * y, jnp.sin(c)), x[0], x)[0],
    "scan of several carries": lambda x: lax.scan(
        lambda c, y: ((c[0] + 1, c[1] * jnp.sin(x[1]), y), {"a": c[1] * y, "n": c[0]}),
        (0, x[0], 1.0),
        x,
        reverse=True,
    )[1]["a"],
    "switch": lambda x: lax.switch(jnp.int32(1), [jnp.cos, lambda y: y * x, lambda y: 0 * y], x),
    "while_loop that closes over values": lambda x: lax.while_loop(
        lambda c: c[0] < 3 + 0 * x[0], lambda c: (c[0] + 1, c[1] * jnp.sin(x)), (0.0, x)
    )[1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * jnp.sin(c), x),
    "relu": lambda x: jax.nn.relu(x * x),
    "grad": lambda x: jax.grad(lambda y: jnp.sum(jnp.sin(y) * y * y))(x),
    "vmap": lambda x: jax.vmap(lambda y: jnp.sin(y) * y)(x),
    "jet": lambda x: jet(jnp.sin, (x,), ((x, x * x),))[1][1],
}


@pytest.mark.parametrize("name", HOLDING)
def test_jet_of_what_holds_a_function_is_repeated_jvp(name):
    check(HOLDING[name], X, order=3)


def test_jet_gives_all_derivatives_of_a_function_for_a_straight_line():
    _, terms = jet(jnp.sin, (0.5,), ((1.0, 0.0, 0.0, 0.0, 0.0),))
    wanted = [np.cos(0.5), -np.sin(0.5), -np.cos(0.5), np.sin(0.5), np.cos(0.5)]
    np.testing.assert_allclose(terms, wanted, rtol=1e-6)


def test_jet_of_several_arguments_follows_all_curves():
    with jax.enable_x64(True):
        _, terms = jet(lambda x, y: x * y**2, (2.0, 3.0), ((1.0, 0.5), (-1.0, 0.25)))
    # d/dt xy² = x'y² + 2xyy';  d²/dt² = x''y² + 4x'yy' + 2xy'² + 2xyy''.
    np.testing.assert_allclose(terms, [9 - 12, 4.5 - 12 + 4 + 3])


def test_jet_takes_coefficients_of_taylor_polynomials():
    _, terms = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(terms, [1, 1 / 2, 1 / 6], rtol=1e-6)


def test_jet_of_order_zero_is_the_function():
    assert jet(lambda x: x * x, (3.0,), ((),)) == (9.0, [])


def test_jet_gives_lists_of_derivatives_in_the_tree_of_the_result():
    out, terms = jet(lambda x: {"twice": 2 * x, "same": x}, (1.5,), ((1.0, 2.0),))
    assert out == {"twice": 3.0, "same": 1.5}
    assert terms == {"twice": [2.0, 4.0], "same": [1.0, 2.0]}


def test_jet_of_a_constant_gives_zeros():
    _, terms = jet(lambda x: jnp.ones(2), (1.0,), ((1.0, 2.0),))
    np.testing.assert_array_equal(terms, np.zeros((2, 2)))


def test_jet_of_a_power_is_exact_at_zero():
    _, terms = jet(lambda x: x**3, (0.0,), ((1.0, 0.0, 0.0, 0.0),))
    assert terms == [0.0, 0.0, 6.0, 0.0]


def test_jet_lets_python_branch_on_known_values():
    _, terms = jet(lambda x: x * x if x > 1 else x, (2.0,), ((1.0, 0.0),))
    assert terms == [4.0, 2.0]


def test_jet_runs_under_jit_and_vmap():
    def second(x):
        return jet(jnp.sin, (x,), ((1.0, 0.0),))[1][1]

    x = jnp.arange(3.0)
    np.testing.assert_allclose(jax.jit(jax.vmap(second))(x), -np.sin(x), rtol=1e-6)


def test_jet_is_differentiable():
    third = jax.grad(lambda x: jet(jnp.exp, (x,), ((1.0, 0.0),))[1][1])(0.5)
    np.testing.assert_allclose(third, np.exp(0.5), rtol=1e-6)


def test_jet_does_not_double_its_work_with_each_order():
    def equations(order):
        series = ((1.0, *[0.0] * (order - 1)),)
        program = jax.make_jaxpr(lambda x: jet(lambda y: jnp.tanh(jnp.sin(y)), (x,), series))(0.5)
        return len(program.eqns)

    assert equations(16) < 16 * equations(8)


def test_jet_of_a_loop_does_not_double_its_body_with_each_order():
    def size(order):
        series = ((1.0, *[0.0] * (order - 1)),)

        def loop(x):
            return lax.scan(lambda c, _: (jnp.tanh(c), None), x, length=3)[0]

        return len(str(jax.make_jaxpr(lambda x: jet(loop, (x,), series))(0.5)))

    assert size(8) < 16 * size(4)


def test_jet_agrees_with_jax():
    # Recorded from jax.experimental.jet 0.10.2.
    x, series = jnp.array([0.5, 1.5]), (jnp.array([1.0, -2.0]), jnp.array([0.5, 0.25]))
    _, terms = jet(lambda y: jnp.exp(jnp.sin(y)) / jnp.log1p(y @ y) ** 2, (x,), (series,))
    np.testing.assert_allclose(terms, [[3.2502837, 3.6958969], [10.9719296, 2.2999175]], rtol=2e-5)


def test_jet_runs_effects_once(capsys):
    def loud(x):
        jax.debug.print("x = {}", x)
        return x * x

    jet(loud, (2.0,), ((1.0, 0.0, 0.0),))
    jax.effects_barrier()
    assert capsys.readouterr().out == "x = 2.0\n"


def test_jet_names_a_primitive_that_has_no_derivative():
    with pytest.raises(MissingRule, match="nextafter"):
        jet(lambda x: lax.nextafter(x, x), (1.0,), ((1.0,),))


def test_jet_refuses_what_is_no_function():
    with pytest.raises(TypeError, match="jet: expected a function"):
        jet(3, (1.0,), ((1.0,),))


def test_jet_refuses_series_of_different_lengths():
    with pytest.raises(ValueError, match=r"not all sequences of one length[\s\S]*lengths \[1, 2\]"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,), (1.0, 2.0)))


def test_jet_refuses_a_missing_series():
    with pytest.raises(ValueError, match="2 primals and 1 series"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0,),))


def test_jet_refuses_a_tree_by_position():
    with pytest.raises(ValueError, match=r"primals\[0\] is a tree"):
        jet(lambda d: d["x"], ({"x": 1.0},), ([1.0],))


def test_jet_refuses_integers_by_position():
    with pytest.raises(TypeError, match=r"primals\[1\] is of a type that does not change"):
        jet(lambda x, n: x * n, (1.0, 2), ((1.0,), (0,)))


def test_jet_refuses_a_term_of_another_shape():
    with pytest.raises(ValueError, match=r"series\[0\]\[1\] has another shape"):
        jet(jnp.sin, (jnp.ones(3),), ((jnp.ones(3), jnp.ones(4)),))


def test_jet_refuses_primals_that_are_no_sequence():
    with pytest.raises(TypeError, match="primals must be a tuple or a list"):
        jet(jnp.sin, 1.0, ((1.0,),))
