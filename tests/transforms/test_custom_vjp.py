"""custom_vjp and custom_gradient: reverse mode is the user's, whatever surrounds the function."""

import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import dtypes
from minijax.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_vjp_primal_tree_values,
)
from minijax.errors import UnexpectedTracerError

pytestmark = pytest.mark.feature("AD-03")

XS = np.array([0.5, 1.0, 2.0], np.float32)


@jax.custom_vjp
def double_sin(x):
    """The sine, with twice its derivative."""
    return jnp.sin(x)


def double_sin_fwd(x):
    return jnp.sin(x), jnp.cos(x)


def double_sin_bwd(cosine, ct):
    return (2.0 * cosine * ct,)


double_sin.defvjp(double_sin_fwd, double_sin_bwd)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(low, high, x):
    return x


clip_gradient.defvjp(
    lambda low, high, x: (x, None), lambda low, high, _, ct: (jnp.clip(ct, low, high),)
)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(step, a, guess):
    def is_moving(pair):
        return jnp.abs(pair[0] - pair[1]) > 1e-5

    return lax.while_loop(is_moving, lambda p: (p[1], step(a, p[1])), (guess, step(a, guess)))[1]


def fixed_point_fwd(step, a, guess):
    solution = fixed_point(step, a, guess)
    return solution, (a, solution)


def adjoint_step(step, packed, u):
    a, solution, ct = packed
    return ct + jax.vjp(lambda x: step(a, x), solution)[1](u)[0]


def fixed_point_bwd(step, residuals, ct):
    a, solution = residuals
    u = fixed_point(functools.partial(adjoint_step, step), (a, solution, ct), ct)
    return jax.vjp(lambda a: step(a, solution), a)[1](u)[0], jnp.zeros_like(solution)


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


def newton_sqrt(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-6)


def with_rules(bwd, fwd=lambda x: (x * 2.0, x), function=lambda x: x * 2.0, **options):
    """A function with rules."""
    custom = jax.custom_vjp(function)
    custom.defvjp(fwd, bwd, **options)
    return custom


def repeat(f, times):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=times)[0]


@pytest.mark.feature("AD-02")
def test_custom_vjp_replaces_the_gradient():
    assert float(double_sin(1.0)) == pytest.approx(np.sin(1.0))
    close(jax.grad(double_sin)(1.0), 2 * np.cos(1.0))


def test_custom_vjp_is_left_whole_in_jaxprs():
    assert str(jax.make_jaxpr(double_sin)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = custom_vjp_call[\n"
        "      name=double_sin\n"
        "      bwd=double_sin_bwd\n"
        "      call_jaxpr={ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }\n"
        "      fwd=double_sin_fwd\n"
        "      symbolic_zeros=False\n"
        "    ] a\n"
        "  in (b,) }"
    )


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(double_sin),
        jax.jit(jax.grad(double_sin)),
        jax.grad(jax.jit(double_sin)),
        jax.jacrev(double_sin),
        lambda x: jax.vjp(double_sin, x)[1](1.0)[0],
        lambda x: jax.vjp(jax.jit(double_sin), x)[1](1.0)[0],
        jax.grad(jax.checkpoint(double_sin)),
        jax.jit(jax.grad(jax.checkpoint(repeat(double_sin, 1)))),
        jax.grad(repeat(jax.checkpoint(double_sin), 1)),
        jax.grad(lambda x: lax.cond(x > 0, double_sin, jnp.cos, x)),
        jax.grad(lambda x: lax.switch(1, [jnp.cos, double_sin], x)),
        jax.grad(repeat(double_sin, 1)),
        jax.grad(lambda x: lax.fori_loop(0, 1, lambda _, c: double_sin(c), x)),
    ],
)
def test_custom_vjp_rules_are_used_under_every_transformation(derivative):
    close(derivative(0.7), 2 * np.cos(0.7))


@pytest.mark.parametrize(
    "derivatives",
    [
        jax.vmap(jax.grad(double_sin)),
        jax.jit(jax.vmap(jax.grad(double_sin))),
        jax.vmap(jax.grad(jax.jit(double_sin))),
        jax.grad(lambda x: jax.vmap(double_sin)(x).sum()),
        jax.grad(lambda x: jax.jit(jax.vmap(double_sin))(x).sum()),
        jax.grad(lambda x: jax.vmap(repeat(double_sin, 1))(x).sum()),
        jax.vmap(jax.grad(repeat(double_sin, 1))),
        jax.grad(lambda x: lax.map(double_sin, x).sum()),
        jax.vmap(jax.grad(lambda x: lax.cond(x > 0, double_sin, jnp.cos, x))),
        jax.grad(lambda x: jax.vmap(lambda x: lax.cond(x > 0, double_sin, jnp.cos, x))(x).sum()),
        lambda x: jnp.diagonal(jax.jacrev(jax.vmap(double_sin))(x)),
    ],
)
def test_custom_vjp_rules_are_used_on_batches(derivatives):
    close(derivatives(XS), 2 * np.cos(XS))


def test_custom_vjp_maps_along_other_axes():
    xs = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    f = lambda x: (jax.vmap(double_sin, in_axes=1, out_axes=1)(x) * xs).sum()
    close(jax.grad(f)(xs), 2 * np.cos(xs) * xs)


@pytest.mark.parametrize(
    "second",
    [
        jax.grad(jax.grad(double_sin)),
        jax.hessian(double_sin),
        jax.jit(jax.grad(jax.jit(jax.grad(jax.jit(double_sin))))),
        jax.grad(jax.grad(jax.checkpoint(double_sin))),
        jax.grad(jax.grad(repeat(double_sin, 1))),
        lambda x: jax.jvp(jax.grad(double_sin), (x,), (1.0,))[1],
        lambda x: jax.jvp(jax.grad(repeat(double_sin, 1)), (x,), (1.0,))[1],
    ],
)
def test_custom_vjp_rules_are_differentiated_again(second):
    close(second(0.7), -2 * np.sin(0.7))


def test_custom_vjp_third_derivative():
    close(jax.grad(jax.grad(jax.grad(double_sin)))(0.7), -2 * np.cos(0.7))


def test_custom_vjp_of_a_shared_argument_sums_over_the_batch():
    product = jax.custom_vjp(lambda x, y: x * y)
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1], ct * r[0]))
    for f in (jax.vmap(product, (0, None)), jax.jit(jax.vmap(product, (0, None)))):
        xs_bar, y_bar = jax.grad(lambda x, y, f=f: f(x, y).sum(), (0, 1))(XS, 3.0)
        assert xs_bar.tolist() == [3.0] * 3
        assert float(y_bar) == 3.5


def test_custom_vjp_counts_a_result_that_examples_share_once_for_each_copy():
    pair = jax.custom_vjp(lambda x, y: (x * y, y * 2.0))
    pair.defvjp(
        lambda x, y: ((x * y, y * 2.0), (x, y)),
        lambda r, ct: (ct[0] * r[1], ct[0] * r[0] + 2.0 * ct[1]),
    )

    def loss(x, y):
        a, b = jax.vmap(pair, (0, None))(x, y)
        return a.sum() + b.sum()

    assert float(jax.grad(loss, 1)(XS, 3.0)) == 3.5 + 2.0 * 3


def test_clip_gradient():
    assert float(jax.grad(lambda x: 5.0 * clip_gradient(-0.75, 0.75, x))(1.0)) == 0.75
    slopes = jax.vmap(jax.grad(lambda x: 3.0 * jnp.sin(clip_gradient(-0.75, 0.75, x))))(XS)
    close(slopes, np.clip(3 * np.cos(XS), -0.75, 0.75))


def test_fixed_point_by_implicit_differentiation():
    close(newton_sqrt(2.0), np.sqrt(2.0))
    close(jax.grad(newton_sqrt)(2.0), 0.5 / np.sqrt(2.0))
    close(jax.jit(jax.grad(newton_sqrt))(2.0), 0.5 / np.sqrt(2.0))


def test_fixed_point_maps():
    close(jax.vmap(jax.grad(newton_sqrt))(XS), 0.5 / np.sqrt(XS))


@pytest.mark.slow
def test_fixed_point_differentiates_twice():
    close(jax.grad(jax.grad(newton_sqrt))(2.0), -0.25 * 2.0**-1.5)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(jax.grad(newton_sqrt)))(XS), -0.25 * XS**-1.5, rtol=1e-3
    )


def test_custom_vjp_gradient_agrees_with_finite_differences():
    f = lambda a: float(newton_sqrt(np.float32(a)))
    numeric = (f(2.0 + 1e-2) - f(2.0 - 1e-2)) / 2e-2
    np.testing.assert_allclose(jax.grad(newton_sqrt)(2.0), numeric, rtol=1e-3)


def test_custom_vjp_of_trees():
    f = jax.custom_vjp(lambda point, scales: {"s": point["a"].sum() * scales[0]})
    f.defvjp(
        lambda point, scales: (f(point, scales), {"point": point, "scales": scales}),
        lambda r, ct: (
            {"a": jnp.full(3, ct["s"] * r["scales"][0] * 2.0)},
            [ct["s"] * r["point"]["a"].sum()],
        ),
    )
    a_bar, s_bar = jax.grad(lambda a, s: f({"a": a}, [s])["s"], (0, 1))(XS, 2.0)
    assert a_bar.tolist() == [4.0] * 3
    assert float(s_bar) == 3.5


def test_custom_vjp_resolves_keywords_and_defaults():
    f = jax.custom_vjp(lambda x, y=2.0: x * y)
    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (y * ct, None))
    assert float(jax.grad(f)(3.0)) == 2.0
    assert float(jax.grad(lambda x: f(y=5.0, x=x))(3.0)) == 5.0


def test_custom_vjp_with_arguments_held_by_name():
    f = jax.custom_vjp(lambda x, n: x * n, nondiff_argnames=("n",))
    f.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (10.0 * n * ct,))
    assert float(jax.grad(f)(2.0, n=3.0)) == 30.0


def test_custom_vjp_allows_python_control_flow_on_values():
    f = with_rules(lambda x, ct: (5.0 * ct if x > 0 else 7.0 * ct,))
    assert [float(jax.grad(f)(x)) for x in (1.0, -1.0)] == [5.0, 7.0]


def test_custom_vjp_without_arguments():
    one = with_rules(lambda r, ct: (), lambda: (1.0, None), lambda: 1.0)
    assert float(jax.grad(lambda x: x * one())(2.0)) == 1.0
    assert jax.vmap(lambda x: x * one())(XS).tolist() == XS.tolist()


def test_custom_vjp_closes_over_mapped_values():
    def scaled(c, x):
        return with_rules(lambda r, ct: (100.0 * r * ct,), lambda x: (c * x, c), lambda x: c * x)(x)

    assert jax.vmap(jax.grad(scaled, 1), (0, None))(XS, 1.0).tolist() == (100 * XS).tolist()
    close(jax.grad(lambda x: jax.vmap(scaled)(XS, x).sum())(XS), 100 * XS)


def test_custom_vjp_of_complex_arguments():
    f = with_rules(lambda z, ct: (2.0 * z * ct,), lambda z: (f(z), z), lambda z: (z * z).real)
    assert complex(jax.grad(f)(1 + 2j)) == 2 + 4j


def test_custom_vjp_of_integers_needs_no_cotangent():
    f = jax.custom_vjp(lambda x, n: (x * n, n))
    f.defvjp(lambda x, n: ((x * n, n), n), lambda n, ct: (ct[0] * n, None))
    assert float(jax.grad(lambda x: f(x, 3)[0])(2.0)) == 3.0
    slopes = jax.vmap(jax.grad(lambda x, n: f(x, n)[0]))(XS, np.arange(3))
    assert slopes.tolist() == [0.0, 1.0, 2.0]


def test_custom_vjp_gives_float0_cotangents_of_integer_results():
    seen = []
    f = with_rules(
        lambda r, ct: (seen.append(ct[1].dtype), (ct[0],))[1],
        lambda x: ((x, 1), None),
        lambda x: (x, 1),
    )
    jax.grad(lambda x: f(x)[0])(1.0)
    assert seen == [dtypes.float0]


@pytest.mark.parametrize(
    ("cotangents", "expected"),
    [
        ((None,), (0.0, 0.0)),
        (({"a": 3.0, "b": None},), (3.0, 0.0)),
        ([{"a": 3.0, "b": 4.0}], (3.0, 4.0)),
        ((3.0,), (3.0, 3.0)),
        (({"a": np.float16(3), "b": np.int32(4)},), (3.0, 4.0)),
    ],
)
def test_bwd_may_return_a_prefix_of_the_arguments_tree(cotangents, expected):
    f = with_rules(lambda r, ct: cotangents, lambda p: (p["a"], None), lambda p: p["a"])
    grads = jax.grad(f)({"a": 1.0, "b": 2.0})
    assert (float(grads["a"]), float(grads["b"])) == expected
    assert grads["a"].dtype == np.float32


@pytest.mark.feature("AD-02")
def test_symbolic_zeros_reach_both_rules():
    seen = []

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        x, y = custom_vjp_primal_tree_values((x, y))
        return (x * y, x + y), (x, y)

    def bwd(residuals, cts):
        seen.append(tuple(type(ct) is SymbolicZero for ct in cts))
        return cts[0] * residuals[1], None

    f = jax.custom_vjp(lambda x, y: (x * y, x + y))
    f.defvjp(fwd, bwd, symbolic_zeros=True)
    for whole in (f, jax.jit(f), jax.vmap(f, (0, None))):
        seen.clear()
        jax.grad(lambda x, whole=whole: whole(x, 3.0)[0].sum())(XS)
        assert seen == [(True, False), (False, True)]


def test_primals_of_the_forward_rule_are_no_residuals():
    f = with_rules(
        lambda r, ct: (r.value * ct,), lambda x: (x.value, x), lambda x: x, symbolic_zeros=True
    )
    with pytest.raises(TypeError, match="CustomVJPPrimal"):
        jax.grad(f)(3.0)
    assert CustomVJPPrimal(1.0, True).perturbed


def test_optimize_remat_keeps_the_meaning():
    f = with_rules(double_sin_bwd, double_sin_fwd, jnp.sin, optimize_remat=True)
    for derivative in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.checkpoint(f))):
        close(derivative(0.7), 2 * np.cos(0.7))


def test_optimize_remat_keeps_no_unused_residuals():
    f = with_rules(double_sin_bwd, double_sin_fwd, jnp.sin, optimize_remat=True)
    text = str(jax.make_jaxpr(jax.jit(jax.checkpoint(f)))(1.0))
    assert "cos" not in text


def test_stop_gradient_before_a_custom_function_leaves_no_derivative():
    assert float(jax.grad(lambda x: double_sin(lax.stop_gradient(x)) + x)(1.0)) == 1.0


def test_custom_gradient():
    @jax.custom_gradient
    def f(x):
        return x**2, lambda ct: ct * x * 10.0

    assert float(f(3.0)) == 9.0
    for derivative in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
        assert float(derivative(3.0)) == 30.0


def test_custom_gradient_is_differentiable_again():
    f = jax.custom_gradient(lambda x: (x**2, lambda ct: ct * x * 10.0))
    assert float(jax.grad(jax.grad(f))(3.0)) == 10.0


def test_custom_gradient_of_several_arguments_maps():
    f = jax.custom_gradient(lambda x, y: (x * y, lambda ct: (ct * y, 10.0 * ct * x)))
    x_bar, y_bar = jax.vmap(jax.grad(f, (0, 1)), (0, None))(XS, 2.0)
    assert (x_bar.tolist(), y_bar.tolist()) == ([2.0] * 3, (10 * XS).tolist())
    whole = lambda x, y: jax.vmap(f, (0, None))(x, y).sum()
    assert float(jax.grad(whole, 1)(XS, 2.0)) == 35.0


def test_custom_gradient_of_trees():
    f = jax.custom_gradient(
        lambda p: (
            {"out": p["a"] * p["b"]},
            lambda ct: ({"a": ct["out"] * 3.0, "b": ct["out"] * 4.0},),
        )
    )
    grads = jax.grad(lambda p: f(p)["out"])({"a": 1.0, "b": 2.0})
    assert (float(grads["a"]), float(grads["b"])) == (3.0, 4.0)


def test_custom_gradient_in_a_scan():
    f = jax.custom_gradient(lambda x: (x * 1.0, lambda ct: 10.0 * ct))
    assert float(jax.jit(jax.grad(repeat(f, 3)))(1.0)) == 1000.0


def test_custom_gradient_takes_keywords():
    f = jax.custom_gradient(lambda x, y: (x * y, lambda ct: (ct * y, ct * x)))
    assert float(jax.grad(lambda x: f(x, y=2.0))(1.0)) == 2.0


def test_custom_gradient_must_return_a_pair():
    with pytest.raises(TypeError, match=r"custom_gradient of <lambda>: .* a pair \(out, rule\)"):
        jax.custom_gradient(lambda x: x)(1.0)


def test_custom_gradient_checks_what_its_rule_returns():
    f = jax.custom_gradient(lambda x, y: (x, lambda ct: ct))
    with pytest.raises(TypeError, match=r"custom_gradient of <lambda>: .* another structure"):
        jax.grad(f)(1.0, 2.0)


def test_closure_convert_makes_closed_over_values_arguments():
    def f(y):
        converted, values = closure_convert(lambda x: x * y * y, 2.0)
        return converted(2.0, *values)

    assert float(jax.grad(f)(3.0)) == 12.0


@pytest.mark.parametrize(
    "forward",
    [
        lambda: jax.jvp(double_sin, (1.0,), (1.0,)),
        lambda: jax.jvp(jax.jit(double_sin), (1.0,), (1.0,)),
        lambda: jax.jit(lambda x: jax.jvp(double_sin, (x,), (1.0,)))(1.0),
        lambda: jax.jacfwd(double_sin)(1.0),
        lambda: jax.linearize(double_sin, 1.0)[1](1.0),
        lambda: jax.jvp(lambda x: lax.while_loop(lambda c: c < 1, double_sin, x), (1.0,), (1.0,)),
    ],
)
def test_forward_mode_is_refused(forward):
    with pytest.raises(TypeError, match="custom reverse rules has no forward-mode") as caught:
        forward()
    assert "minijax.custom_jvp" in str(caught.value)


def test_forward_mode_whose_tangent_nobody_reads_is_fine():
    close(jax.jit(lambda x: jax.jvp(double_sin, (x,), (1.0,))[0])(1.0), np.sin(1.0))


def test_call_without_rules_is_refused():
    with pytest.raises(AttributeError, match="custom_vjp of sin: the function has no rules yet"):
        jax.custom_vjp(jnp.sin)(1.0)


def test_rules_that_are_no_functions_are_refused():
    with pytest.raises(TypeError, match="defvjp: expected a function"):
        jax.custom_vjp(jnp.sin).defvjp(None, None)


@pytest.mark.parametrize(
    ("cotangents", "text"),
    [
        (1.0, r"of another structure than the arguments\.\n  got +PyTreeDef\(\*\)"),
        ((1.0, 1.0), "of another structure than the arguments"),
        (({"a": 1.0},), "of another structure than the arguments"),
        (None, "of another structure than the arguments"),
        (("one",), r"is neither an array nor a number\.\n  got +result\[0\]: 'one'"),
        ((1j,), r"a complex cotangent for a real argument\.\n  got +x"),
    ],
)
def test_what_bwd_returns_is_checked(cotangents, text):
    with pytest.raises(TypeError, match=text):
        jax.grad(with_rules(lambda r, ct: cotangents))(1.0)


def test_cotangents_of_the_wrong_shape_are_named():
    f = with_rules(
        lambda r, ct: ({"w": jnp.ones(3), "b": jnp.ones(2)},),
        lambda params: (params["b"], None),
        lambda params: params["b"],
    )
    with pytest.raises(ValueError, match=r"params\['b'\]: f32\[2\], for an argument of type ~f32"):
        jax.grad(f)({"w": XS, "b": 1.0})


@pytest.mark.parametrize(
    ("fwd", "text"),
    [
        (lambda x: x, r"must return a pair \(primal_out, residuals\)"),
        (
            lambda x: (x, "one"),
            r"a residual of the fwd rule <lambda> is neither an array nor a number",
        ),
        (
            lambda x: ("one", x),
            r"a result of the fwd rule <lambda> is neither an array nor a number",
        ),
    ],
)
def test_what_fwd_returns_is_checked(fwd, text):
    with pytest.raises(TypeError, match=text):
        jax.grad(with_rules(lambda r, ct: (ct,), fwd))(1.0)


@pytest.mark.parametrize(
    ("fwd", "text"),
    [
        (lambda x: ((x, x), None), "results of another structure than the function"),
        (lambda x: (jnp.ones(3), None), r"result: f32\[3\] from the rule, ~f32\[\] from the func"),
    ],
)
def test_results_of_fwd_are_checked_against_the_staged_function(fwd, text):
    with pytest.raises(TypeError, match=text):
        jax.grad(jax.jit(with_rules(lambda r, ct: (ct,), fwd)))(1.0)


def test_traced_values_in_held_positions_are_refused():
    f = jax.custom_vjp(lambda x, n: x * n, nondiff_argnums=(1,))
    f.defvjp(lambda x, n: (x * n, None), lambda n, r, ct: (ct * n,))
    assert float(jax.grad(f)(1.0, jnp.float32(2.0))) == 2.0
    with pytest.raises(UnexpectedTracerError, match="passed as an argument of nondiff_argnums"):
        jax.jit(jax.grad(f))(1.0, 2.0)


def closing_over(c, x):
    return with_rules(lambda r, ct: (r * ct,), lambda x: (c * x, c), lambda x: c * x)(x)


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(closing_over),
        jax.grad(closing_over, (0, 1)),
        jax.jit(jax.grad(closing_over)),
        jax.grad(jax.jit(closing_over)),
    ],
)
def test_differentiating_by_a_closed_over_value_is_refused(derivative):
    with pytest.raises(UnexpectedTracerError, match="closes over a value that is being"):
        derivative(2.0, 3.0)
