"""`checked` finds what is planted, says where, and is silent about correct programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import errors, lax
from minijax import numpy as jnp

pytestmark = pytest.mark.feature("LG-10")

X = np.arange(5.0, dtype=np.float32)
X_JAX = jnp.asarray(X)
TABLE = jnp.arange(12.0).reshape(3, 4)


def caught(function: Callable[..., Any], *args: Any) -> errors.CheckError:
    """The error that a checked function raises."""
    with pytest.raises(errors.CheckError) as info:
        jax.checked(function)(*args)
    return info.value


def planted(v: Any) -> Any:
    # Its first two derivatives need the logarithm, too.
    return v * v * jnp.log(v)


LINE = f"test_checked.py:{planted.__code__.co_firstlineno + 2} in planted"


# Transformations of a function of one number into another; at 2 nothing goes wrong.


def by_vmap(g: Any) -> Any:
    return lambda v: jnp.sum(jax.vmap(g)(jnp.stack([jnp.ones_like(v) * 2, v, v + 3])))


def by_grad(g: Any) -> Any:
    return jax.grad(g)


def by_scan(g: Any) -> Any:
    return lambda v: lax.scan(lambda c, a: (g(c) + a, c), v, jnp.ones(2))[0]


def by_while(g: Any) -> Any:
    return lambda v: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, g(s[1])), (1, v))[1]


def by_cond(g: Any) -> Any:
    return lambda v: lax.cond(v > -100.0, g, lambda v: v, v)


def by_custom_jvp(g: Any) -> Any:
    @jax.custom_jvp
    def function(v: Any) -> Any:
        return g(v)

    function.defjvp(lambda primals, tangents: jax.jvp(g, primals, tangents))
    return function


def by_forward_mode(g: Any) -> Any:
    return lambda v: jax.jvp(g, (v,), (jnp.ones_like(v),))[1]


TRANSFORMATIONS = {
    "jit": jax.jit,
    "vmap": by_vmap,
    "grad": by_grad,
    "scan": by_scan,
    "while": by_while,
    "cond": by_cond,
    "checkpoint": jax.checkpoint,
    "custom_jvp": by_custom_jvp,
}
PAIRS = [(outer, inner) for outer in TRANSFORMATIONS for inner in TRANSFORMATIONS]


def nested(outer: str, inner: str, function: Any = planted) -> Any:
    # A while loop has no reverse mode.
    outermost = by_forward_mode if (outer, inner) == ("grad", "while") else TRANSFORMATIONS[outer]
    return outermost(TRANSFORMATIONS[inner](function))


@pytest.mark.feature("LG-10")
@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_checked_finds_a_fault_under_two_transformations(outer: str, inner: str) -> None:
    error = caught(nested(outer, inner), -1.0)
    batches = (outer, inner).count("vmap")
    found = (type(error), error.primitive, error.line, error.example)
    assert found == (errors.NonFiniteError, "log", LINE, (1,) * batches)


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_checked_is_silent_under_two_transformations(outer: str, inner: str) -> None:
    function = nested(outer, inner)
    np.testing.assert_allclose(jax.checked(function)(2.0), function(2.0), rtol=1e-5)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_checked_finds_an_index_under_a_transformation(name: str) -> None:
    error = caught(TRANSFORMATIONS[name](lambda v: v * X_JAX[jnp.int32(v) + 7]), -1.0)
    # The first example of the batch has another index.
    index = 9 if name == "vmap" else 6
    assert type(error) is errors.OutOfBoundsError
    assert error.primitive == "dynamic_slice"
    assert error.detail == f"index {index} is out of bounds for axis 0 with size 5"


@pytest.mark.feature("LG-10")
@pytest.mark.parametrize(
    ("function", "argument", "kind", "primitive", "index"),
    [
        (lambda v: jnp.log(v), X - 2, errors.NonFiniteError, "log", (0,)),
        (lambda v: jnp.exp(v), X * 50, errors.NonFiniteError, "exp", (2,)),
        (lambda v: 1 / v, X, errors.DivisionByZeroError, "div", (0,)),
        (lambda v: v**-2, X, errors.DivisionByZeroError, "integer_pow", (0,)),
        (lambda v: 7 // v, np.arange(3) - 1, errors.DivisionByZeroError, "div", (1,)),
        (lambda v: 7 % v, np.arange(3) - 1, errors.DivisionByZeroError, "rem", (1,)),
        (lambda v: v @ (v * 1e30), X * 1e30, errors.NonFiniteError, "mul", (1,)),
        (lambda v: jnp.sum(v * 1e38), X, errors.NonFiniteError, "mul", (4,)),
        (lambda v: jnp.cumsum(v), X * 6e37, errors.NonFiniteError, "cumsum", (3,)),
        (
            lambda v: v.astype(jnp.float16),
            X * 3e4,
            errors.NonFiniteError,
            "convert_element_type",
            (3,),
        ),
        (lambda v: jnp.full(5, jnp.inf) - v * jnp.inf, X + 1, errors.NonFiniteError, "sub", (0,)),
        (lambda i: X_JAX[i], np.array([0, 9, -5]), errors.OutOfBoundsError, "gather", (1,)),
        (lambda i: X_JAX[i], np.array([0, 4, -6]), errors.OutOfBoundsError, "gather", (2,)),
        (lambda i: X_JAX[i], np.int32(5), errors.OutOfBoundsError, "dynamic_slice", ()),
        (lambda i: X_JAX[5] + i, np.int32(5), errors.OutOfBoundsError, "dynamic_slice", ()),
        (lambda i: TABLE[:, i], np.array([1, 4]), errors.OutOfBoundsError, "gather", (1,)),
        (
            lambda i: X_JAX.at[i].set(1.0),
            np.array([1, 5]),
            errors.OutOfBoundsError,
            "scatter",
            (1,),
        ),
        (lambda i: X_JAX.at[i].add(1.0), np.int32(9), errors.OutOfBoundsError, "scatter_add", ()),
        (lambda i: jnp.take(X_JAX, i), np.array([1, 5]), errors.OutOfBoundsError, "gather", (1,)),
        (
            lambda i: jnp.take_along_axis(TABLE, i, 1),
            np.array([[0], [4], [1]]),
            errors.OutOfBoundsError,
            "gather",
            (1, 0),
        ),
        (
            lambda i: lax.dynamic_slice(X_JAX, (i,), (3,)),
            np.int32(3),
            errors.OutOfBoundsError,
            "dynamic_slice",
            (),
        ),
        (
            lambda i: lax.dynamic_update_slice(X_JAX, X_JAX[:3], (i,)),
            np.int32(3),
            errors.OutOfBoundsError,
            "dynamic_update_slice",
            (),
        ),
    ],
)
def test_checked_names_operation_and_element(
    function: Any, argument: Any, kind: Any, primitive: str, index: Any
) -> None:
    error = caught(function, argument)
    assert (type(error), error.primitive, error.index) == (kind, primitive, index)


@pytest.mark.feature("LG-10")
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        # Selections leave the faulty elements out.
        (lambda v: jnp.where(v > 0, jnp.log(v), 0.0), X - 2),
        (lambda v: jnp.where(v > 0, 2 * jnp.sqrt(1 / v) + 1, 0.0), X - 2),
        (lambda v: jnp.where(v != 0, 7 % v, 0), np.arange(3)),
        (lambda v: jnp.where(v != 0, 7 // v, 0), np.arange(3)),
        (lambda v: jnp.where((v > 0)[:, None], jnp.log(v)[:, None], jnp.ones((5, 2))), X - 2),
        (lambda v: jnp.nan_to_num(jnp.log(v) / 2), X - 2),
        (lambda v: jnp.where(jnp.isfinite(jnp.log(v)), jnp.log(v), 0.0), X - 2),
        # Examples that do not take a branch, or are done, have no faults.
        (jax.vmap(lambda v: lax.cond(v > 0, jnp.log, lambda v: v, v)), X - 2),
        (jax.vmap(lambda v: lax.while_loop(lambda c: c > 0, lambda c: c - 1 / c, v)), X),
        (jax.vmap(lambda v: lax.switch(v, [lambda: 1 / (1.0 - v), lambda: 0.0])), np.arange(2)),
        # Infinities that are given, and results that hold them.
        (lambda v: jnp.max(jnp.where(v > 2, v, -jnp.inf)), X),
        (lambda v: jax.nn.softmax(jnp.where(v > 2, v, -jnp.inf)), X),
        (lambda v: jnp.logaddexp(-jnp.inf, v), X),
        (lambda v: jnp.logaddexp(-jnp.inf, -jnp.inf) * jnp.ones(2), X),
        (lambda v: jnp.max(v, initial=-jnp.inf, where=v > 9), X),
        (lambda v: jnp.sort(v / 0.5) + jnp.nan, X),
        (lambda v: jnp.minimum(v, jnp.inf), X),
        # Modes say what is meant.
        (lambda i: X_JAX.at[i].get(mode="clip"), np.array([0, 9])),
        (lambda i: X_JAX.at[i].get(mode="fill", fill_value=0.0), np.array([0, 9])),
        (lambda i: X_JAX.at[i].set(0.0, mode="drop"), np.array([0, 9])),
        (lambda i: jnp.take(X_JAX, i, mode="wrap"), np.array([0, 9])),
        (lambda i: jnp.take(X_JAX, i, mode="clip"), np.array([0, 9])),
        (lambda i: X_JAX[i], np.array([0, -5])),
        # Library functions whose insides are careful.
        (lambda v: jnp.nonzero(v, size=8)[0], X),
        (lambda v: jnp.interp(v, X_JAX, X_JAX), X * 3),
        (lambda v: jnp.roll(v, 7), X),
        (lambda v: jnp.searchsorted(v, 9.0), X),
        (lambda v: jnp.sinc(v), X),
        (lambda v: jnp.linalg.norm(v) if hasattr(jnp, "linalg") else v, X),
        (lambda v: jax.nn.log_softmax(v) + jax.nn.sigmoid(v) + jax.nn.gelu(v), X - 2),
        (lambda v: jnp.median(v) + jnp.quantile(v, 0.3), X),
        (lambda v: jnp.histogram(v, bins=3)[0], X),
    ],
)
def test_checked_is_silent_about_correct_programs(function: Any, argument: Any) -> None:
    argument = jnp.asarray(argument)
    expected, actual = function(argument), jax.checked(function)(argument)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


OUTER = {
    "jit": jax.jit,
    "vmap": lambda f: lambda v: jax.vmap(f)(jnp.stack([v + 3, v])),
    "grad": jax.grad,
    "scan": lambda f: lambda v: lax.scan(lambda c, _: (f(c), None), v, None, 2)[0],
    "while": by_while,
    "cond": by_cond,
    "checkpoint": jax.checkpoint,
    "custom_jvp": by_custom_jvp,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "jit of vmap": lambda f: jax.jit(lambda v: jax.vmap(f)(jnp.stack([v + 3, v]))),
    "vmap of grad": lambda f: lambda v: jax.vmap(jax.grad(f))(jnp.stack([v + 3, v])),
    "checked": jax.checked,
}


@pytest.mark.feature("LG-10")
@pytest.mark.parametrize("name", OUTER)
def test_transformations_of_a_checked_function_report(name: str) -> None:
    with pytest.raises(errors.NonFiniteError) as info:
        jax.block_until_ready(OUTER[name](jax.checked(planted))(-1.0))
    example = (1,) if "vmap" in name else ()
    assert (info.value.line, info.value.example) == (LINE, example)


@pytest.mark.parametrize("name", OUTER)
def test_transformations_of_a_checked_function_keep_its_value(name: str) -> None:
    expected, actual = OUTER[name](planted)(2.0), OUTER[name](jax.checked(planted))(2.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_checked_names_the_example_and_the_element() -> None:
    batch = np.array([[1.0, 2.0, 3.0], [1.0, 0.0, -1.0]], np.float32)
    error = caught(jax.vmap(lambda row: jnp.sum(jnp.log(row))), batch)
    assert (error.example, error.index) == ((1,), (1,))


def test_checked_counts_nested_batches_from_outside() -> None:
    batch = np.ones((2, 3, 4), np.float32)
    batch[1, 2, 3] = -1
    error = caught(jax.vmap(jax.vmap(jnp.log, in_axes=1), in_axes=2), batch)
    assert (error.example, error.index) == ((3, 2), (1,))


def test_checked_reports_the_first_fault_of_the_program() -> None:
    def function(v: Any) -> Any:
        # The selection decides on the division only after the logarithm.
        quotient = 1 / v
        return jnp.log(v - 1) + jnp.where(v > -9, quotient, 0.0)

    assert caught(function, 0.0).primitive == "div"


def test_checked_reports_the_first_step_of_a_loop() -> None:
    error = caught(lambda v: lax.scan(lambda c, i: (c + X_JAX[i], c), v, jnp.arange(3, 9))[0], 0.0)
    assert error.detail == "index 5 is out of bounds for axis 0 with size 5"


def test_checked_ends_a_loop_that_would_not_end() -> None:
    error = caught(lambda v: lax.while_loop(lambda c: ~(c > 5), lambda c: jnp.log(c), v), -1.0)
    assert error.primitive == "log"


def test_checked_finds_faults_of_a_condition() -> None:
    error = caught(lambda v: lax.while_loop(lambda c: jnp.log(c) > 0, lambda c: c - 2, v), 3.5)
    assert error.primitive == "log"


def test_checked_finds_faults_of_derivatives() -> None:
    error = caught(jax.grad(lambda v: jnp.sum(jnp.sqrt(v))), X)
    assert (error.primitive, error.index) == ("div", (0,))


def test_checked_leaves_out_what_nobody_reads() -> None:
    assert jax.checked(lambda v: (jnp.log(v), v)[1])(-1.0) == -1.0


def test_checked_finds_faults_of_a_solver() -> None:
    def solve(matvec: Any, b: Any) -> Any:
        return b / X_JAX[0]

    error = caught(
        lambda b: lax.custom_linear_solve(lambda v: v * 2, b, solve, symmetric=True), jnp.ones(2)
    )
    assert error.primitive == "div"


def test_checked_takes_and_returns_trees() -> None:
    result = jax.checked(lambda tree, *, scale: {"out": tree["a"] * scale})({"a": X}, scale=2.0)
    np.testing.assert_array_equal(result["out"], X * 2)


def test_checked_is_staged_once_for_a_signature() -> None:
    calls = []
    function = jax.checked(lambda v: (calls.append(1), v + 1)[1])
    function(1.0), function(2.0)
    assert len(calls) == 1


def test_errors_of_checks_have_a_common_base_and_the_class_of_python() -> None:
    assert issubclass(errors.OutOfBoundsError, (errors.CheckError, IndexError))
    assert issubclass(errors.NonFiniteError, FloatingPointError)
    assert issubclass(errors.DivisionByZeroError, ZeroDivisionError)
    assert issubclass(errors.CheckedKeyReuseError, errors.KeyReuseError)
    assert issubclass(errors.NonFiniteError, errors.CheckError)


def test_error_text_has_all_facts() -> None:
    text = str(caught(jax.vmap(planted), np.array([1.0, -1.0], np.float32)))
    assert text == (
        "log: produced a NaN.\n"
        "  got       example [1] of the batch [2]\n"
        "  fix       guard the operand: numpy.where(ok, f(numpy.where(ok, x, 1)), 0)\n"
        f"  at        {LINE}"
    )


def test_checked_refuses_what_cannot_be_called() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        jax.checked(3)


def test_vmap_under_check_keeps_results_that_all_examples_share() -> None:
    function = jax.vmap(lambda a: (a, 2.0), out_axes=(0, None))
    whole, shared = jax.checked(function)(X)
    assert (whole.shape, shared) == ((5,), 2.0)


def test_vmap_under_check_sums_cotangents_of_shared_values() -> None:
    def loss(w: Any) -> Any:
        return jnp.sum(jax.vmap(lambda a: a * w)(X_JAX))

    assert jax.checked(jax.grad(loss))(3.0) == 10.0


def test_vmap_under_check_works_under_hessian() -> None:
    function = lambda v: jnp.sum(jax.vmap(lambda a: a**3)(v))
    expected = np.diag(6 * X)
    np.testing.assert_allclose(jax.checked(jax.hessian(function))(X_JAX), expected)


def test_checked_names_the_line_of_a_backward_rule() -> None:
    @jax.custom_vjp
    def function(v: Any) -> Any:
        return v * v

    def backward(v: Any, ct: Any) -> Any:
        return (ct / (v - 1),)

    function.defvjp(lambda v: (v * v, v), backward)
    line = f"test_checked.py:{backward.__code__.co_firstlineno + 1} in "
    error = caught(jax.grad(jax.jit(function)), 1.0)
    assert error.line is not None
    assert error.line.startswith(line)
    assert error.line.endswith("backward")


def written_at(x: Any, i: Any) -> Any:
    ref = jax.new_ref(x)
    ref[i] = 1.0
    return ref[...].sum()


def read_from(x: Any, i: Any) -> Any:
    return jax.new_ref(x)[jax.ds(i, 2)].sum()


def added_at(x: Any, i: Any) -> Any:
    ref = jax.new_ref(x)
    jax.ref.addupdate(ref, i, 1.0)
    return ref[...].sum()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.grad, lambda f: jax.grad(jax.jit(f))])
@pytest.mark.parametrize(
    ("function", "outside", "text"),
    [
        (written_at, 5, "swap: index 5 is out of bounds for axis 0 with size 5"),
        (written_at, -6, "swap: index -6"),
        (read_from, 4, "get: index 5"),
        (added_at, 7, "addupdate: index 7"),
    ],
)
def test_index_of_a_reference_out_of_bounds_is_found(
    wrap: Any, function: Any, outside: int, text: str
) -> None:
    with pytest.raises(errors.OutOfBoundsError, match=text):
        jax.checked(wrap(function))(X_JAX, outside)


@pytest.mark.parametrize("i", [-5, 0, 3])
def test_index_of_a_reference_in_bounds_is_no_fault(i: int) -> None:
    assert float(jax.checked(written_at)(X_JAX, i)) == float(X_JAX.at[i].set(1.0).sum())


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_references_that_a_checked_function_closes_over_are_written(wrap: Any) -> None:
    ref = jax.new_ref(jnp.zeros(3))

    def write_and_divide(x: Any) -> Any:
        ref[...] = x
        return 1.0 / ref[...]

    function = wrap(jax.checked(wrap(write_and_divide)))
    for value in (2.0, 4.0):
        np.testing.assert_array_equal(function(jnp.full(3, value)), 1.0 / value)
        np.testing.assert_array_equal(ref[...], value)
    with pytest.raises(errors.DivisionByZeroError, match="element \\[1\\]"):
        jax.block_until_ready(function(jnp.array([1.0, 0.0, 1.0])))


def picked(x: Any, i: Any) -> Any:
    return jnp.sum(jnp.log(x)[i] * x[i])


@pytest.mark.parametrize(
    "function",
    [
        jax.checked(jax.grad(jax.checkpoint(picked))),
        jax.grad(jax.checkpoint(jax.checked(picked))),
        jax.jit(jax.grad(jax.checkpoint(jax.checked(picked)))),
    ],
    ids=["checked outside", "checked inside", "jit"],
)
def test_index_in_a_checkpointed_function_is_checked(function: Any) -> None:
    with pytest.raises(errors.OutOfBoundsError, match="index 9 is out of bounds"):
        jax.block_until_ready(function(X_JAX + 1, jnp.array([0, 9])))


def test_logarithm_of_no_probability_at_all_is_no_fault() -> None:
    logits = jnp.array([[-jnp.inf, -jnp.inf], [0.0, 0.0]])
    found = jax.checked(lambda x: jax.nn.logsumexp(x, axis=1))(logits)
    np.testing.assert_allclose(found, [-np.inf, np.log(2)], rtol=1e-6)
