"""Checks of derivatives for users: they pass what is right, and tell what is wrong."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.test_util import check_grads, check_jvp, check_vjp


@jax.custom_jvp
def square(x):
    return x * x


square.defjvp(lambda primals, tangents: (square(*primals), 5 * tangents[0]))


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (2 * x**2 * ct,))


def test_check_grads_passes_derivatives_of_trees_and_all_dtypes() -> None:
    def f(tree, count):
        return {"a": jnp.sin(tree["x"]) * tree["y"], "n": count}

    for dtype in (jnp.bfloat16, np.float16, np.float32, np.complex64):
        x = jnp.array([0.5, 1.5], dtype)
        check_grads(f, ({"x": x, "y": x + 1}, 3), order=1)
    check_grads(lambda x: jnp.real(x * x * 1j), (1 + 2j,), order=2)
    with jax.enable_x64():
        check_grads(jnp.exp, (np.array([0.25, 1.0]),), order=3)


def test_check_grads_tells_wrong_rules() -> None:
    with pytest.raises(AssertionError, match=r"check_jvp: the tangent is not the slope"):
        check_grads(square, (3.0,), order=1)
    with pytest.raises(AssertionError, match=r"check_vjp: the cotangent does not belong"):
        check_grads(cube, (3.0,), order=1, modes="rev")
    with pytest.raises(AssertionError, match=r"check_jvp: jvp: the tangent"):
        check_grads(_right_once, (0.3,), order=2, modes=["fwd"])


@jax.custom_jvp
def _right_once(x):
    return jnp.sin(x)


_right_once.defjvp(
    lambda primals, tangents: (
        _right_once(*primals),
        jax.lax.stop_gradient(jnp.cos(primals[0])) * tangents[0],
    )
)


def test_checks_of_rules_compare_values_too() -> None:
    with pytest.raises(AssertionError, match="the result is not the function's"):
        check_jvp(jnp.sin, lambda p, t: (p[0], jnp.cos(p[0]) * t[0]), (1.0,))
    with pytest.raises(AssertionError, match="my rule: the result is not the function's"):
        check_vjp(jnp.sin, lambda x: (x, lambda ct: (ct,)), (1.0,), err_msg="my rule")


def test_check_grads_refuses_unknown_modes() -> None:
    with pytest.raises(ValueError, match="'backward'"):
        check_grads(jnp.sin, (1.0,), order=1, modes=["backward"])
