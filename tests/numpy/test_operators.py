"""Operators, methods and properties of arrays and tracers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

F = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]], np.float32)
G = np.array([[2.0, 1.0, -0.5], [1.5, 4.0, 2.0]], np.float32)
I = np.array([[1, -2, 3], [4, 5, -6]], np.int32)  # noqa: E741  integers, beside F and G
J = np.array([[2, 3, 1], [2, -2, 4]], np.int32)

ON_FLOATS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge"]
ON_INTEGERS = ["and_", "or_", "xor", "lshift", "rshift"]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ON_FLOATS)
def test_operator_is_that_of_numpy(name: str) -> None:
    apply = getattr(operator, name)
    np.testing.assert_allclose(apply(jnp.array(F), jnp.array(G)), apply(F, G), rtol=1e-6)


@pytest.mark.parametrize("name", ON_INTEGERS)
def test_operator_on_integers_is_that_of_numpy(name: str) -> None:
    apply, y = getattr(operator, name), np.abs(J)
    np.testing.assert_array_equal(apply(jnp.array(I), jnp.array(y)), apply(I, y))


@pytest.mark.parametrize("scalar", [2, 2.5, True, np.float32(2), np.int8(2)], ids=repr)
@pytest.mark.parametrize("name", [*ON_FLOATS, "pow"])
def test_operator_takes_scalars_on_both_sides(name: str, scalar: Any) -> None:
    apply, x = getattr(operator, name), np.abs(F)
    np.testing.assert_allclose(apply(jnp.array(x), scalar), apply(x, scalar), rtol=1e-5)
    np.testing.assert_allclose(apply(scalar, jnp.array(x)), apply(scalar, x), rtol=1e-5)


@pytest.mark.parametrize("name", [*ON_FLOATS, "pow"])
def test_numpy_array_on_the_left_gives_an_array_of_ours(name: str) -> None:
    found = getattr(operator, name)(np.abs(F), jnp.array(np.abs(G)))
    assert isinstance(found, minijax.Array)
    assert isinstance(found.aval, minijax.core.ShapedArray)


@pytest.mark.parametrize("name", [*ON_FLOATS, "pow"])
def test_operator_gives_the_same_within_jit(name: str) -> None:
    apply, x, y = getattr(operator, name), np.abs(F), np.abs(G)
    np.testing.assert_allclose(minijax.jit(apply)(x, y), apply(jnp.array(x), y), rtol=1e-5)


@pytest.mark.parametrize(
    "apply", [operator.neg, operator.pos, operator.abs, lambda x: divmod(x, 2), round]
)
def test_unary_operator_is_that_of_numpy(apply: Callable[[Any], Any]) -> None:
    wanted = np.round(F) if apply is round else apply(F)
    np.testing.assert_allclose(apply(jnp.array(F)), wanted)


def test_round_without_digits_gives_integers() -> None:
    assert round(jnp.array(F)).dtype == jnp.int32


def test_invert_flips_bits() -> None:
    np.testing.assert_array_equal(~jnp.array(I), ~I)


@pytest.mark.parametrize("exponent", [2, 3, -1, 0, 0.5])
def test_power_by_scalar_is_that_of_numpy(exponent: float) -> None:
    x = np.abs(F)
    np.testing.assert_allclose(jnp.array(x) ** exponent, x**exponent, rtol=1e-5)


def test_matmul_is_that_of_numpy() -> None:
    np.testing.assert_allclose(jnp.array(F) @ G.T, F @ G.T, rtol=1e-6)


class Wins:
    """An operand of another library, which knows what to do with our arrays."""

    def __radd__(self, other: Any) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_unknown_operand_decides_itself() -> None:
    assert jnp.array(F) + Wins() == "mine"


def test_unknown_operand_decides_on_comparison() -> None:
    assert jnp.array(F) == Wins()


@pytest.mark.parametrize("other", [None, "a"])
def test_comparison_with_no_array_is_false(other: Any) -> None:
    assert operator.eq(jnp.array(F), other) is False


@pytest.mark.parametrize("other", [[1, 2, 3], (1, 2, 3), None, "a"])
def test_sum_with_no_array_is_refused(other: Any) -> None:
    with pytest.raises(TypeError):
        operator.add(jnp.array(F), other)


@pytest.mark.parametrize("apply", [operator.eq, operator.lt])
def test_comparison_with_list_is_refused(apply: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"numpy\.asarray"):
        apply(jnp.array(F), [1, 2, 3])


def test_assignment_to_elements_is_refused() -> None:
    x: Any = jnp.array(F)
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        x[0] = 1.0


METHODS: list[tuple[str, tuple[Any, ...]]] = [
    ("all", ()),
    ("any", (0,)),
    ("argmax", ()),
    ("argmin", (1,)),
    ("argsort", (1,)),
    ("clip", (0, 1)),
    ("conj", ()),
    ("copy", ()),
    ("cumprod", (0,)),
    ("cumsum", (1,)),
    ("diagonal", (1,)),
    ("flatten", ()),
    ("max", (0,)),
    ("mean", (1,)),
    ("min", ()),
    ("nonzero", ()),
    ("prod", ()),
    ("ravel", ()),
    ("repeat", (2, 0)),
    ("reshape", (3, 2)),
    ("reshape", ((3, -1),)),
    ("round", (1,)),
    ("squeeze", ()),
    ("std", ()),
    ("sum", (0,)),
    ("swapaxes", (0, 1)),
    ("take", (np.array([0, 2]), 1)),
    ("trace", ()),
    ("transpose", ()),
    ("transpose", (1, 0)),
    ("transpose", ((1, 0),)),
    ("var", (1,)),
    ("item", (4,)),
    ("tolist", ()),
]


@pytest.mark.parametrize(("name", "args"), METHODS)
def test_method_is_that_of_numpy(name: str, args: tuple[Any, ...]) -> None:
    found, wanted = getattr(jnp.array(F), name)(*args), getattr(F, name)(*args)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sort_returns_a_sorted_copy() -> None:
    np.testing.assert_array_equal(jnp.array(F).sort(), np.sort(F))


def test_ptp_is_the_range() -> None:
    assert jnp.array(F).ptp() == 5.0


def test_dot_is_that_of_numpy() -> None:
    np.testing.assert_allclose(jnp.array(F).dot(G.T), F.dot(G.T), rtol=1e-6)


@pytest.mark.parametrize("name", ["T", "real", "imag", "nbytes", "itemsize"])
def test_property_is_that_of_numpy(name: str) -> None:
    np.testing.assert_array_equal(getattr(jnp.array(F), name), getattr(F, name))


def test_matrix_transpose_swaps_the_last_two_dimensions() -> None:
    assert jnp.ones((2, 3, 4)).mT.shape == (2, 4, 3)


def test_flat_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="ravel"):
        _ = jnp.array(F).flat


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "bool", "complex64"])
def test_view_reads_the_same_bits_as_numpy(dtype: str) -> None:
    x = np.ascontiguousarray(F[:, :2])
    np.testing.assert_array_equal(jnp.array(x).view(dtype), x.view(dtype))


@pytest.mark.feature("RB-12")
@pytest.mark.parametrize("new", ["float32", "complex64", "uint8", "int32", "bool"])
@pytest.mark.parametrize("old", ["float32", "complex64", "int8", "bool"])
def test_views_of_scalars_are_those_of_numpy(old: str, new: str) -> None:
    x = np.asarray(1, old)
    if x.dtype.itemsize != np.dtype(new).itemsize:
        with pytest.raises(ValueError, match="of the same width alone"):
            jnp.asarray(x).view(new)
    else:
        np.testing.assert_array_equal(jnp.asarray(x).view(new), x.view(new), strict=True)


def test_view_of_complex_numbers_is_their_parts() -> None:
    x = (F + 1j * G).astype(np.complex64)
    np.testing.assert_array_equal(jnp.array(x).view("float32"), x.view(np.float32))


def test_astype_converts() -> None:
    np.testing.assert_array_equal(jnp.array(F).astype(int), F.astype(np.int32))


def test_namespace_is_the_room() -> None:
    assert jnp.array(F).__array_namespace__() is jnp


def test_iteration_gives_rows() -> None:
    np.testing.assert_array_equal(np.stack([np.asarray(row) for row in jnp.array(F)]), F)


def test_iteration_over_a_tracer_gives_rows() -> None:
    np.testing.assert_allclose(minijax.jit(lambda x: sum(row for row in x))(F), F.sum(0))


def test_iteration_over_a_scalar_tracer_is_refused() -> None:
    with pytest.raises(TypeError, match="scalar"):
        minijax.jit(list)(1.0)


def test_in_searches_vectors() -> None:
    assert 2.0 in jnp.arange(3.0)


def test_in_refuses_matrices() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        operator.contains(jnp.array(F), 2.0)


def test_arrays_have_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(jnp.array(F))


def test_tracers_have_the_methods_of_arrays() -> None:
    function = minijax.jit(lambda x: (x.T @ x).sum(0).astype("int32").reshape(-1, 1))
    np.testing.assert_array_equal(function(F), (F.T @ F).sum(0).astype(np.int32)[:, None])


@pytest.mark.feature("AD-01")
def test_gradient_through_operators() -> None:
    gradient = minijax.grad(lambda x: (x * x / 2 - x[0] ** 3 + 3 * x).sum())(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(gradient, [1 - 6 + 3, 2 + 3])


def test_operators_leave_no_call_in_the_jaxpr() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: -(x + 1) * x)(F)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["add", "neg", "mul"]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("wrap", [minijax.jit, minijax.vmap, minijax.grad, minijax.linearize])
@pytest.mark.parametrize("name", ["trace", "var"])
def test_traced_array_has_the_methods_whose_names_tracers_could_use(
    wrap: Callable[..., Any], name: str
) -> None:
    seen = []

    def function(x: Any) -> Any:
        seen.append(getattr(x @ x.T, name)())
        return seen[-1]

    square = np.broadcast_to(F, (2, *F.shape)) if wrap is minijax.vmap else F
    wrap(function, square) if wrap is minijax.linearize else wrap(function)(square)
    assert seen[0].shape == ()
