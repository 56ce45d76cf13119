"""Jaxprs transformed: evaluated, split, transposed, batched, cleaned and checked."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.aval import ShapedArray
from minijax.core.check import check_jaxpr
from minijax.core.errors import InternalError
from minijax.core.jaxpr import ClosedJaxpr, Literal, Var, subjaxprs
from minijax.interpreters import batching, jvp, partial_eval, passes, staging, transpose


def stage(f, *args):
    return jax.make_jaxpr(f)(*args)


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


@pytest.mark.feature("PE-02")
def test_partial_evaluation_splits_and_recombines():
    f = lambda x, y: (jnp.sin(x), jnp.cos(x) * y, y + 1)
    closed = stage(f, 1.0, 2.0)
    split = partial_eval.partial_eval_jaxpr(closed, [False, True])
    assert split.out_unknown == [False, True, True]
    assert names(split.known) == ["sin", "cos"]
    known = staging.eval_closed_jaxpr(split.known, 1.0)
    residuals = split.residuals([1.0], known[1:])
    staged = staging.eval_closed_jaxpr(split.staged, *residuals, 2.0)
    np.testing.assert_allclose([known[0], *staged], f(1.0, 2.0), rtol=1e-6)


@pytest.mark.feature("PE-02")
def test_residuals_that_are_arguments_are_not_computed():
    split = partial_eval.partial_eval_jaxpr(stage(lambda x, y: x * y, 1.0, 2.0), [False, True])
    assert split.sources == [0]
    assert split.known.jaxpr.outvars == []


def test_jvp_jaxpr_is_remembered_with_the_jaxpr():
    closed = stage(jnp.sin, 1.0)
    assert jvp.jvp_jaxpr(closed, [True]) is jvp.jvp_jaxpr(closed, [True])


def test_jvp_jaxpr_has_no_tangent_for_constant_results():
    closed = stage(lambda x, y: (x * 2, y * 3), 1.0, 1.0)
    derivative, nonzero = jvp.jvp_jaxpr(closed, [True, False])
    assert nonzero == [True, False]
    assert len(derivative.jaxpr.outvars) == 3


@pytest.mark.feature("AD-01")
def test_rules_are_given_a_tangent_that_is_not_zero(monkeypatch):
    interpret = jvp.JVPTrace.interpret
    seen = {}

    def watched(trace, primitive, args, params):
        tangents = [trace.split(x)[1] for x in args]
        moves = any(type(t) is not jvp.Zero for t in tangents)
        seen[primitive.name] = seen.get(primitive.name, True) and moves
        return interpret(trace, primitive, args, params)

    monkeypatch.setattr(jvp.JVPTrace, "interpret", watched)

    def f(x, held, n):
        held = jnp.sort(jnp.cos(held))[n]
        total, _ = lax.scan(lambda c, y: (c * y, jnp.floor(held)), x, jnp.stack([x, held]))
        total = lax.cond(n > 0, lambda t: t + held, jax.jit(jnp.sin), total)
        return lax.fori_loop(0, n, lambda i, t: t * held + lax.stop_gradient(x), total)

    _, dot = jax.jit(lambda n: jax.jvp(lambda x: f(x, jnp.arange(3.0), n), (2.0,), (1.0,)))(2)
    assert float(dot) == pytest.approx(4.0, rel=1e-6)
    assert {"scan", "cond", "while", "mul"} <= seen.keys()
    assert all(seen.values()), seen


def test_transpose_jaxpr_of_a_linear_function():
    closed = stage(lambda a, x: a * x, 3.0, 1.0)
    backward, nonzero = transpose.transpose_jaxpr(closed, [False, True], [True])
    assert nonzero == [True]
    assert float(staging.eval_closed_jaxpr(backward, 3.0, 2.0)[0]) == 6.0


def test_batch_jaxpr_maps_what_depends_on_a_mapped_argument():
    closed = stage(lambda x, y: (x + 1, y + 1), 1.0, 1.0)
    whole, batched = batching.batch_jaxpr(closed, 4, [True, False])
    assert batched == [True, False]
    assert [v.aval.shape for v in whole.jaxpr.outvars] == [(4,), ()]


@pytest.mark.feature("PE-06")
def test_dead_code_goes_also_inside_calls():
    inner = jax.jit(lambda x, y: (jnp.sin(x), jnp.exp(y)))
    closed = stage(lambda x, y: inner(x, y)[0], 1.0, 2.0)
    clean, kept = passes.dce_jaxpr(closed.jaxpr)
    assert kept == [True, False]
    (call,) = clean.eqns
    (body,) = subjaxprs(clean)
    assert names(body) == ["sin"]
    assert len(call.invars) == len(call.outvars) == 1


@pytest.mark.feature("CR-03")
def test_check_accepts_transformed_programs():
    f = lambda x: jnp.sum(jnp.tanh(x @ x))
    for g in (f, jax.grad(f), jax.jit(jax.grad(f)), jax.vmap(jax.grad(f))):
        x = jnp.ones((2, 2, 2)) if g is not f and "vmap" in str(g) else jnp.ones((2, 2))
        if g.__name__ == "<lambda>" and x.ndim == 2:
            check_jaxpr(stage(g, x))


@pytest.mark.feature("CR-03")
def test_check_refuses_a_wrong_type():
    closed = stage(lambda x: jnp.sin(x) * 2, jnp.ones(3))
    closed.jaxpr.eqns[0].outvars[0].aval = jax.typeof(jnp.ones(4))
    with pytest.raises(InternalError, match=r"gives f32\[3\] but binds .* f32\[4\]"):
        check_jaxpr(closed)


@pytest.mark.feature("CR-03")
def test_check_refuses_a_variable_used_before_it_is_bound():
    closed = stage(lambda x: jnp.sin(x), 1.0)
    closed.jaxpr.eqns[0].invars[0] = Var(jax.typeof(1.0))
    with pytest.raises(InternalError, match="before it is bound"):
        check_jaxpr(closed)


@pytest.mark.feature("CR-03")
def test_check_refuses_double_binding_and_missing_constants():
    closed = stage(lambda x: (jnp.sin(x), jnp.cos(x)), 1.0)
    first, second = closed.jaxpr.eqns
    second.outvars[0] = first.outvars[0]
    with pytest.raises(InternalError, match="a second time"):
        check_jaxpr(closed)
    with pytest.raises(InternalError, match="constvars"):
        check_jaxpr(ClosedJaxpr(stage(lambda x: x + np.ones(3), 1.0).jaxpr, []))


@pytest.mark.feature("CR-03")
def test_scalars_are_literals_and_arrays_are_constants():
    closed = stage(lambda x: x * 2 + np.arange(3), 1.0)
    assert len(closed.consts) == 1
    literals = [a for e in closed.jaxpr.eqns for a in e.invars if isinstance(a, Literal)]
    assert any(float(a.val) == 2.0 for a in literals)


@pytest.mark.feature("CR-19")
def test_inner_jaxprs_are_found():
    closed = stage(jax.jit(lambda x: x + 1), 1.0)
    assert [names(j) for j in subjaxprs(closed.jaxpr)] == [["add"]]


@pytest.mark.feature("CR-04")
def test_avals_are_interned():
    assert ShapedArray((2,), np.float32) is ShapedArray([2], "float32")
    assert ShapedArray((2,), np.float32) is not ShapedArray((2,), np.float32, weak_type=True)
    assert str(ShapedArray((2, 3), np.float32)) == "f32[2,3]"
    assert repr(ShapedArray((), np.int32, True)) == "ShapedArray(int32[], weak_type=True)"
    assert ShapedArray((2,), np.int32).tangent_aval().str_short() == "float0[2]"
    with pytest.raises(TypeError, match="must not be negative"):
        ShapedArray((-1,), np.float32)


@pytest.mark.feature("CR-01")
def test_users_primitive_runs_eagerly_and_under_jit():
    triple = jax.extend.core.Primitive("triple_for_tests")
    triple.def_impl(lambda x: np.asarray(x) * 3)
    triple.def_abstract_eval(lambda x: x)
    jax.extend.mlir.register_lowering(triple, jax.extend.mlir.lower_fun(lambda x: x * 3, False))
    assert float(triple.bind(2.0)) == 6.0
    assert jax.jit(triple.bind)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 6.0]


@pytest.mark.feature("AD-02")
def test_users_primitive_with_registered_derivatives():
    power = jax.extend.core.Primitive("cube_for_tests")
    power.def_impl(lambda x: x * x * x)
    power.def_abstract_eval(lambda x: x)
    jax.extend.ad.defjvp(power, lambda t, x: t * 3 * x * x)
    assert float(jax.grad(power.bind)(2.0)) == 12.0
    scale = jax.extend.core.Primitive("scale_for_tests")
    scale.def_impl(lambda x: x * 2)
    scale.def_abstract_eval(lambda x: x)
    jax.extend.ad.deflinear2(scale, lambda ct, x: (ct * 2,))
    assert float(jax.grad(scale.bind)(5.0)) == 2.0
    assert scale in jax.extend.ad.primitive_transposes


@pytest.mark.feature("CR-01")
def test_missing_rules_name_the_primitive_and_the_remedy():
    bare = jax.extend.core.Primitive("bare_for_tests")
    with pytest.raises(NotImplementedError, match="bare_for_tests: the primitive has no rule"):
        jax.jit(bare.bind)(1.0)
    bare.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="lowering to StableHLO"):
        jax.jit(bare.bind)(1.0)
