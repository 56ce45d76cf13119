"""custom_jvp: the rule is what differentiation sees, whatever surrounds the function."""

import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import dtypes
from minijax.custom_derivatives import SymbolicZero, zero_from_primal
from minijax.errors import UnexpectedTracerError

pytestmark = pytest.mark.feature("AD-03")

XS = np.array([0.5, 1.0, 2.0], np.float32)


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return log1pexp(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * dx


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def sigmoid_prime(x):
    return sigmoid(x) * (1 - sigmoid(x))


@jax.custom_jvp
def tenfold(x):
    """The identity, with ten times its derivative."""
    return x * 1.0


@tenfold.defjvp
def tenfold_jvp(primals, tangents):
    return tenfold(*primals), 10.0 * tangents[0]


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-6)


def with_rule(rule, function=lambda x: x * 2.0, **options):
    """A function with a rule."""
    custom = jax.custom_jvp(function)
    custom.defjvp(rule, **options)
    return custom


@pytest.mark.feature("AD-02")
def test_custom_jvp_replaces_the_derivative():
    assert np.isnan(jax.grad(lambda x: jnp.log(1.0 + jnp.exp(x)))(100.0))
    close(jax.grad(log1pexp)(100.0), 1.0)


def test_custom_jvp_calls_the_function_itself_outside_of_differentiation():
    close(log1pexp(3.0), np.log1p(np.exp(3.0)))
    close(jax.jit(log1pexp)(XS), np.log1p(np.exp(XS)))
    close(jax.vmap(log1pexp)(XS), np.log1p(np.exp(XS)))


def test_custom_jvp_is_left_whole_in_jaxprs():
    assert str(jax.make_jaxpr(log1pexp)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = custom_jvp_call[\n"
        "      name=log1pexp\n"
        "      call_jaxpr={ lambda ; a:f32[]. let\n"
        "          b:f32[] = exp a\n"
        "          c:f32[] = add 1.0:f32[] b\n"
        "          d:f32[] = log c\n"
        "        in (d,) }\n"
        "      jvp=log1pexp_jvp\n"
        "      symbolic_zeros=False\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_custom_jvp_of_a_closure_takes_its_constants_as_operands():
    eqn = jax.make_jaxpr(lambda c, x: with_rule(lambda p, t: (p[0], t[0]), lambda x: c * x)(x))(
        2.0, 3.0
    ).eqns[0]
    assert len(eqn.invars) == 2
    assert eqn.params["num_consts"] == 1


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(log1pexp),
        jax.jit(jax.grad(log1pexp)),
        jax.grad(jax.jit(log1pexp)),
        jax.jacfwd(log1pexp),
        jax.jacrev(log1pexp),
        lambda x: jax.linearize(log1pexp, x)[1](1.0),
        lambda x: jax.jvp(jax.jit(log1pexp), (x,), (1.0,))[1],
        lambda x: jax.vjp(log1pexp, x)[1](1.0)[0],
        jax.grad(jax.checkpoint(log1pexp)),
        jax.grad(lambda x: lax.cond(x > 0, log1pexp, jnp.sin, x)),
        jax.grad(lambda x: lax.switch(1, [jnp.sin, log1pexp], x)),
        jax.grad(lambda x: lax.scan(lambda c, _: (log1pexp(c), None), x, None, length=1)[0]),
        jax.grad(lambda x: lax.fori_loop(0, 1, lambda _, c: log1pexp(c), x)),
        jax.jacfwd(lambda x: lax.fori_loop(0, jnp.int32(1), lambda _, c: log1pexp(c), x)),
    ],
)
def test_custom_jvp_rule_is_used_under_every_transformation(derivative):
    close(derivative(0.7), sigmoid(0.7))


@pytest.mark.parametrize(
    "derivatives",
    [
        jax.vmap(jax.grad(log1pexp)),
        jax.jit(jax.vmap(jax.grad(log1pexp))),
        jax.vmap(jax.jit(jax.grad(log1pexp))),
        jax.vmap(jax.grad(jax.jit(log1pexp))),
        jax.grad(lambda x: jax.vmap(log1pexp)(x).sum()),
        jax.grad(lambda x: jax.jit(jax.vmap(log1pexp))(x).sum()),
        jax.grad(lambda x: lax.map(log1pexp, x).sum()),
        jax.vmap(jax.grad(lambda x: lax.cond(x > 0, log1pexp, jnp.sin, x))),
        jax.vmap(jax.grad(lambda x: lax.fori_loop(0, 1, lambda _, c: log1pexp(c), x))),
        lambda x: jnp.diagonal(jax.jacfwd(jax.vmap(log1pexp))(x)),
        lambda x: jax.vmap(lambda x, t: jax.jvp(log1pexp, (x,), (t,))[1])(x, jnp.ones(3)),
    ],
)
def test_custom_jvp_rule_is_used_on_batches(derivatives):
    close(derivatives(XS), sigmoid(XS))


@pytest.mark.parametrize(
    "second",
    [
        jax.grad(jax.grad(log1pexp)),
        jax.hessian(log1pexp),
        jax.jacrev(jax.jacfwd(log1pexp)),
        jax.jit(jax.grad(jax.jit(jax.grad(jax.jit(log1pexp))))),
        jax.grad(jax.grad(jax.checkpoint(log1pexp))),
        lambda x: jax.jvp(jax.grad(log1pexp), (x,), (1.0,))[1],
        jax.grad(jax.grad(lambda x: lax.fori_loop(0, 1, lambda _, c: log1pexp(c), x))),
    ],
)
def test_custom_jvp_rule_is_differentiated_again(second):
    close(second(0.7), sigmoid_prime(0.7))


def test_custom_jvp_third_derivative():
    third = jax.grad(jax.grad(jax.grad(log1pexp)))(0.7)
    s = sigmoid(0.7)
    close(third, s * (1 - s) * (1 - 2 * s))


def test_custom_jvp_gradient_agrees_with_finite_differences():
    f = lambda x: float(log1pexp(np.float32(x)))
    numeric = (f(0.7 + 1e-2) - f(0.7 - 1e-2)) / 2e-2
    np.testing.assert_allclose(jax.grad(log1pexp)(0.7), numeric, rtol=1e-3)


def test_custom_jvp_in_a_scan_multiplies_the_rule_at_each_step():
    f = lambda x: lax.scan(lambda c, _: (tenfold(c), None), x, None, length=3)[0]
    assert float(f(2.0)) == 2.0
    assert float(jax.grad(f)(2.0)) == 1000.0


def test_custom_jvp_runs_without_jit():
    with jax.disable_jit():
        close(jax.grad(jax.jit(log1pexp))(0.7), sigmoid(0.7))


def test_custom_jvp_allows_python_control_flow_on_values():
    @jax.custom_jvp
    def f(x):
        return x if x > 0 else -x

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (dx,) = primals, tangents
        return f(x), 5.0 * dx if x > 0 else 7.0 * dx

    assert [float(jax.grad(f)(x)) for x in (1.0, -1.0)] == [5.0, 7.0]


def test_custom_jvp_of_trees():
    @jax.custom_jvp
    def f(point):
        return {"area": point["x"] * point["y"][0]}

    @f.defjvp
    def f_jvp(primals, tangents):
        (p,), (t,) = primals, tangents
        return f(p), {"area": 2.0 * t["x"] * p["y"][0] + p["x"] * t["y"][0]}

    grads = jax.grad(lambda p: f(p)["area"])({"x": 3.0, "y": (5.0,)})
    assert (float(grads["x"]), float(grads["y"][0])) == (10.0, 3.0)


def test_custom_jvp_resolves_keywords_and_defaults():
    @jax.custom_jvp
    def f(x, y=2.0):
        return x * y

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(*primals), len(primals) * tangents[0]

    assert float(jax.grad(f)(3.0)) == 2.0
    assert float(jax.grad(lambda x: f(y=4.0, x=x))(3.0)) == 2.0
    assert float(f(3.0)) == 6.0


def test_custom_jvp_keeps_the_name_and_the_documentation():
    assert tenfold.__name__ == "tenfold"
    assert tenfold.__doc__.startswith("The identity")


def test_custom_jvp_with_function_arguments_held():
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    @apply.defjvp
    def apply_jvp(f, primals, tangents):
        return f(primals[0]), 10.0 * tangents[0]

    assert float(jax.grad(lambda x: apply(jnp.sin, x))(1.0)) == 10.0
    assert jax.vmap(jax.grad(lambda x: apply(jnp.sin, x)))(XS).tolist() == [10.0] * 3


def test_custom_jvp_with_arguments_held_by_name():
    f = jax.custom_jvp(lambda x, n: x * n, nondiff_argnames="n")
    f.defjvp(lambda n, p, t: (p[0] * n, 10.0 * n * t[0]))
    assert float(jax.grad(f)(2.0, n=3.0)) == 30.0


def test_custom_jvp_holds_traced_values_constant():
    f = jax.custom_jvp(lambda x, n: x * n, nondiff_argnums=(1,))
    f.defjvp(lambda n, p, t: (p[0] * n, n * t[0]))
    assert [float(g) for g in jax.jit(jax.grad(f, (0, 1)))(5.0, 2.0)] == [2.0, 0.0]


def test_custom_jvp_closes_over_mapped_values():
    def scaled(c, x):
        f = with_rule(lambda p, t: (c * p[0], 100.0 * c * t[0]), lambda x: c * x)
        return f(x)

    assert jax.vmap(scaled)(XS, XS).tolist() == (XS * XS).tolist()
    assert jax.vmap(jax.grad(scaled, 1), (0, None))(XS, 1.0).tolist() == (100 * XS).tolist()
    through = jax.jit(jax.grad(lambda x: jax.vmap(scaled, (0, None))(XS, x).sum()))
    close(through(1.0), 100 * XS.sum())


def test_custom_jvp_of_integers_passes_them_by():
    @jax.custom_jvp
    def f(x, n):
        return x * n, n

    @f.defjvp
    def f_jvp(primals, tangents):
        x, n = primals
        assert tangents[1].dtype == dtypes.float0
        return f(x, n), (3.0 * tangents[0], np.zeros((), dtypes.float0))

    assert float(jax.grad(lambda x: f(x, 4)[0])(1.0)) == 3.0


def test_custom_jvp_of_random_keys():
    f = with_rule(lambda p, t: (f(*p), 7.0 * t[1]), lambda k, x: x * jax.random.uniform(k))
    keys = jax.random.split(jax.random.key(0), 3)
    assert jax.vmap(jax.grad(f, 1), (0, None))(keys, 2.0).tolist() == [7.0] * 3


def test_custom_jvp_of_a_linear_rule_is_transposed():
    triple = with_rule(lambda p, t: (triple(*p), triple(*t)), lambda x: 3.0 * x)
    assert float(jax.grad(triple)(1.0)) == 3.0
    assert float(jax.linear_transpose(triple, 1.0)(2.0)[0]) == 6.0


def test_custom_jvp_rule_sees_numpy_arrays_as_arrays():
    f = with_rule(lambda p, t: (p[0].at[0].get(), t[0].at[0].get()), lambda x: x.at[0].get())
    assert float(f(XS)) == 0.5
    assert jax.grad(f)(XS).tolist() == [1.0, 0.0, 0.0]


def test_defjvps_sums_a_rule_for_each_argument():
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda dx, out, x, y: 10.0 * dx * y, lambda dy, out, x, y: dy * out)
    assert [float(g) for g in jax.grad(f, (0, 1))(3.0, 2.0)] == [20.0, 6.0]


def test_defjvps_takes_none_for_a_constant_argument():
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(None, lambda dy, out, x, y: dy * x)
    assert [float(g) for g in jax.grad(f, (0, 1))(3.0, 2.0)] == [0.0, 3.0]


def product_rule(primals, tangents):
    """Of x·y; a symbolic zero counts as a hundred, to be seen."""
    x, y = primals
    dx, dy = (100.0 if isinstance(t, SymbolicZero) else t for t in tangents)
    return x * y, dx * y + x * dy


@pytest.mark.feature("AD-02")
def test_symbolic_zeros_reach_the_rule():
    seen = []

    def rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        return product_rule(primals, tangents)

    f = with_rule(rule, lambda x, y: x * y, symbolic_zeros=True)
    jax.grad(f)(2.0, 3.0)
    jax.grad(f, (0, 1))(2.0, 3.0)
    jax.grad(jax.jit(f))(2.0, 3.0)
    jax.grad(lambda x: jax.vmap(f, (0, None))(x, 3.0).sum())(XS)
    assert seen == [[False, True], [False, False], [False, True], [False, True]]


def test_symbolic_zeros_may_be_returned():
    rule = lambda p, t: (p[0], SymbolicZero.from_primal_value(p[0]))
    assert float(jax.grad(with_rule(rule, symbolic_zeros=True))(1.0)) == 0.0


def test_symbolic_zero_tells_its_type():
    zero = zero_from_primal(jnp.ones((2, 3)), symbolic_zeros=True)
    assert (zero.shape, zero.dtype, zero.ndim, zero.size) == ((2, 3), np.float32, 2, 6)
    assert zero_from_primal(jnp.ones(2)).tolist() == [0.0, 0.0]


def test_stop_gradient_holds_inside_a_rule_at_every_order():
    f = with_rule(lambda p, t: (f(*p), lax.stop_gradient(p[0]) * t[0]), lambda x: x * x)
    assert float(jax.grad(f)(3.0)) == 3.0
    assert float(jax.grad(jax.grad(f))(3.0)) == 0.0


def test_stop_gradient_before_a_custom_function_leaves_no_derivative():
    assert float(jax.grad(lambda x: tenfold(lax.stop_gradient(x)) * x)(3.0)) == 3.0


def test_call_without_a_rule_is_refused():
    with pytest.raises(AttributeError, match=r"custom_jvp of sin: the function has no rule yet"):
        jax.custom_jvp(jnp.sin)(1.0)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="custom_jvp: expected a function"):
        jax.custom_jvp(3)


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        tenfold()


def test_keyword_only_arguments_are_refused():
    f = jax.custom_jvp(lambda x, *, a: x * a)
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match=r"can only be given by name\.\n  got +a"):
        f(1.0, a=2.0)


def test_an_argument_that_is_no_array_is_named():
    with pytest.raises(TypeError, match="the argument x is neither an array nor a number"):
        tenfold("one")


def test_unknown_nondiff_argnames_are_refused():
    with pytest.raises(ValueError, match=r"nondiff_argnames names no parameter\.\n  got +z"):
        jax.custom_jvp(lambda x: x, nondiff_argnames="z")


def test_nondiff_argnums_out_of_range_are_refused():
    f = jax.custom_jvp(lambda x: x, nondiff_argnums=(3,))
    f.defjvp(lambda n, p, t: (p[0], t[0]))
    with pytest.raises(IndexError, match="nondiff_argnums 3 is out of range"):
        f(1.0)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda p, t: p[0], r"must return a pair \(primal_out, tangent_out\)"),
        (lambda p, t: (p[0], (t[0], t[0])), "a tangent of another structure than its result"),
        (lambda p, t: (p[0], None), "a tangent of another structure than its result"),
        (lambda p, t: (p[0], jnp.ones(3)), r"tangent of result: f32\[3\], .* asks for f32\[\]"),
        (lambda p, t: (p[0], jnp.int32(1)), r"tangent of result: i32\[\]"),
        (
            lambda p, t: (p[0], "one"),
            "a tangent of the rule <lambda> is neither an array nor a number",
        ),
        (
            lambda p, t: ("one", t[0]),
            "a result of the rule <lambda> is neither an array nor a number",
        ),
    ],
)
def test_what_the_rule_returns_is_checked(rule, text):
    with pytest.raises(TypeError, match=text):
        jax.jvp(with_rule(rule), (1.0,), (1.0,))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda p, t: ((p[0],), (t[0],)), "results of another structure than the function"),
        (lambda p, t: (p[0][None], t[0][None]), r"result: ~f32\[1\] from the rule, ~f32\[\] from"),
        (
            lambda p, t: (p[0].astype("float16"), t[0].astype("float16")),
            r"result: f16\[\] from the rule",
        ),
    ],
)
def test_results_of_the_rule_are_checked_against_the_staged_function(rule, text):
    with pytest.raises(TypeError, match=text):
        jax.jvp(jax.jit(with_rule(rule)), (1.0,), (1.0,))


def test_results_of_the_rule_may_be_of_another_weak_type():
    f = with_rule(lambda p, t: (jnp.float32(3.0), t[0]))
    assert jax.jvp(jax.jit(f), (1.0,), (1.0,))[0].weak_type


def test_defjvps_is_refused_with_held_arguments():
    with pytest.raises(TypeError, match="defjvps cannot be used with nondiff_argnums"):
        jax.custom_jvp(lambda f, x: x, nondiff_argnums=(0,)).defjvps(None)


def test_defjvps_must_have_a_rule_for_each_argument():
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(None)
    with pytest.raises(TypeError, match=r"one rule for each argument\.\n  got +rules: 1"):
        jax.grad(f)(1.0, 2.0)


def closing_over(c, x):
    return with_rule(lambda p, t: (c * p[0], c * t[0]), lambda x: c * x)(x)


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(closing_over),
        jax.grad(closing_over, (0, 1)),
        jax.jit(jax.grad(closing_over)),
        jax.grad(jax.jit(closing_over)),
        lambda c, x: jax.jvp(closing_over, (c, x), (1.0, 0.0)),
    ],
)
def test_differentiating_by_a_closed_over_value_is_refused(derivative):
    with pytest.raises(UnexpectedTracerError, match="closes over a value that is being") as caught:
        derivative(2.0, 3.0)
    assert "as an argument" in str(caught.value)


def test_returning_a_closed_over_value_is_refused():
    with pytest.raises(UnexpectedTracerError, match="closes over a value that is being"):
        jax.grad(lambda c: with_rule(lambda p, t: (c, t[0]), lambda x: c)(1.0))(2.0)


def test_closing_over_a_stopped_value_is_allowed():
    f = lambda c, x: closing_over(lax.stop_gradient(c), x)
    assert [float(g) for g in jax.grad(f, (0, 1))(2.0, 3.0)] == [0.0, 2.0]


def test_a_rule_that_closes_over_a_finished_trace_is_told_so():
    with pytest.raises(UnexpectedTracerError) as caught:
        jax.grad(jax.jit(closing_over), 1)(2.0, 3.0)
    notes = "\n".join(caught.value.__notes__)
    assert "must not use traced values other than its arguments" in notes


@pytest.mark.usefixtures("young_heap")
def test_custom_jvp_leaks_nothing():
    with jax.checking_leaks():
        assert float(jax.grad(jax.jit(tenfold))(1.0)) == 10.0
        assert float(jax.jit(jax.grad(tenfold))(1.0)) == 10.0
        assert jax.jit(jax.vmap(jax.grad(tenfold)))(XS).tolist() == [10.0] * 3
