"""`checkify` returns what went wrong; the recorded facts are JAX 0.10.2's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.experimental import checkify

pytestmark = pytest.mark.feature("LG-11")


def positive(v: Any) -> Any:
    checkify.check(v > 0, "must be positive, got {v} and {}", jnp.arange(2), v=v)
    return v * 2


ONE = jnp.float32(1.0)


def test_checkify_returns_no_error_and_the_result() -> None:
    error, result = checkify.checkify(positive)(ONE)
    assert (error.get(), result) == (None, 2.0)


def test_checkify_formats_the_message() -> None:
    error, result = checkify.checkify(positive)(-ONE)
    assert error.get().startswith(
        "must be positive, got -1.0 and [0 1] (`check` failed) (check at "
    )
    assert result == -2.0


def test_throw_raises_what_went_wrong() -> None:
    error, _ = checkify.checkify(positive)(-ONE)
    with pytest.raises(checkify.JaxRuntimeError, match=r"must be positive, got -1\.0"):
        error.throw()
    assert isinstance(error.get_exception(), ValueError)


def test_throw_does_nothing_without_an_error() -> None:
    error, _ = checkify.checkify(positive)(ONE)
    assert error.throw() is None
    assert error.get_exception() is None


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        (checkify.user_checks, (True, False, False, False)),
        (checkify.nan_checks, (False, True, False, False)),
        (checkify.div_checks, (False, False, True, False)),
        (checkify.index_checks, (False, False, False, True)),
        (checkify.float_checks, (False, True, True, False)),
        (checkify.automatic_checks, (False, True, True, True)),
        (checkify.all_checks, (True, True, True, True)),
        (checkify.user_checks | checkify.index_checks, (True, False, False, True)),
    ],
)
def test_checkify_looks_for_what_is_asked(errors: Any, found: Any) -> None:
    functions = (
        positive,
        jnp.log,
        lambda v: 1 / (v + 1),
        lambda v: jnp.arange(3)[jnp.int32(v) - 5],
    )
    texts = [checkify.checkify(f, errors=errors)(-ONE)[0].get() for f in functions]
    assert tuple(text is not None for text in texts) == found


def test_infinities_are_no_errors_of_checkify() -> None:
    assert checkify.checkify(jnp.exp, errors=checkify.all_checks)(1000.0)[0].get() is None


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: checkify.checkify(jax.jit(f)),
        lambda f: jax.jit(checkify.checkify(f)),
        lambda f: checkify.checkify(lambda v: lax.scan(lambda c, _: (f(c), None), v, None, 2)[0]),
        lambda f: checkify.checkify(lambda v: lax.cond(v < 9, f, lambda v: v, v)),
        lambda f: checkify.checkify(
            lambda v: lax.while_loop(lambda c: c < 0, lambda c: f(c) + 2, v)
        ),
        lambda f: checkify.checkify(jax.grad(f)),
        lambda f: checkify.checkify(jax.checkpoint(f)),
        lambda f: checkify.checkify(lambda v: jax.vmap(f)(jnp.stack([v + 4, v]))),
    ],
)
def test_checkify_composes(transformed: Any) -> None:
    error, _ = transformed(positive)(-ONE)
    assert error.get().startswith("must be positive, got -1.0 and [0 1]")


def test_an_error_of_a_batch_tells_of_each_example() -> None:
    error, _ = jax.vmap(checkify.checkify(positive))(jnp.array([1.0, -2.0, -3.0]))
    first, second = error.get().splitlines()
    assert first.startswith("at mapped index 1: must be positive, got -2.0")
    assert second.startswith("at mapped index 2: must be positive, got -3.0")


def test_an_error_is_a_tree_of_arrays() -> None:
    error, _ = checkify.checkify(positive)(-ONE)
    leaves, structure = jax.tree.flatten(error)
    assert jax.tree.unflatten(structure, leaves).get() == error.get()


def test_the_first_check_that_fails_wins() -> None:
    def function(v: Any) -> Any:
        checkify.check(v > 0, "one")
        checkify.check(v > 1, "two")
        return v

    texts = [checkify.checkify(function)(v)[0].get()[:3] for v in (-ONE, ONE / 2)]
    assert texts == ["one", "two"]


def test_check_raises_at_once_where_nothing_is_traced() -> None:
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive"):
        positive(-ONE)


def test_check_without_checkify_cannot_be_compiled() -> None:
    with pytest.raises(ValueError, match="nobody looks at"):
        jax.jit(positive)(ONE)


def test_debug_check_does_nothing_without_checkify() -> None:
    def function(v: Any) -> Any:
        checkify.debug_check(v > 0, "debug")
        return v

    assert jax.jit(function)(-ONE) == function(-ONE) == -1.0
    assert checkify.checkify(function)(-ONE)[0].get().startswith("debug")


def test_checked_finds_checks_of_the_user() -> None:
    with pytest.raises(jax.errors.FailedCheckError, match="must be positive"):
        jax.checked(jax.jit(positive))(-ONE)


def test_check_error_raises() -> None:
    error, _ = checkify.checkify(positive)(-ONE)
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive"):
        checkify.check_error(error)
    checkify.check_error(checkify.init_error)


def test_check_error_hands_an_error_on() -> None:
    error, _ = checkify.checkify(positive)(-ONE)
    outer, _ = checkify.checkify(checkify.check_error)(error)
    assert outer.get() == error.get()


@pytest.mark.parametrize("pred", [1.0, jnp.array([True]), jnp.int32(0), None])
def test_check_refuses_a_predicate_that_is_no_boolean_scalar(pred: Any) -> None:
    with pytest.raises(TypeError, match="boolean scalar"):
        checkify.check(pred, "text")


@pytest.mark.parametrize("value", ["s", 1.0, 3, np.float32(1)])
def test_check_refuses_values_that_are_no_arrays(value: Any) -> None:
    with pytest.raises(TypeError, match="trees of arrays"):
        checkify.check(True, "text {x}", x=value)


def test_check_error_refuses_what_is_no_error() -> None:
    with pytest.raises(TypeError, match="expected an Error"):
        checkify.check_error(3)


def test_a_traced_error_has_no_text() -> None:
    def function(v: Any) -> Any:
        error, _ = checkify.checkify(positive)(v)
        return error.get()

    with pytest.raises(ValueError, match="traced error"):
        jax.jit(function)(ONE)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "bool", "complex64"])
def test_messages_show_values_of_any_dtype(dtype: str) -> None:
    values = jnp.array([[1, 0], [1, 1]]).astype(dtype)

    def function(ok: Any) -> None:
        checkify.check(ok, "{x}", x=values)

    error, _ = checkify.checkify(function)(jnp.array(False))
    assert error.get().startswith(f"{np.asarray(values)} (`check` failed) (check")


def test_arguments_that_are_no_arrays_are_static() -> None:
    traced = []

    def scaled(x: Any, how: str, *, by: Any = None) -> Any:
        traced.append(how)
        return x / 2 if how == "half" else x / (0 if by is None else by[0])

    call = checkify.checkify(scaled, errors=checkify.div_checks)
    for _ in range(2):
        assert call(3.0, "half")[0].get() is None
        assert "division by zero" in str(call(3.0, "other")[0].get())
        assert call(3.0, how="other", by=(2.0, "unit"))[1] == 1.5
    assert len(traced) == 3
    with pytest.raises(TypeError, match="neither an array nor a number"):
        call({1, 2}, "half")


def _differs_from_itself(v: Any) -> Any:
    y = jnp.log(v - 1)
    return jnp.not_equal(y, y)


@pytest.mark.parametrize(
    ("inspect", "kinds", "text"),
    [
        (lambda v: jnp.isnan(jnp.sin(1.0 / v)), checkify.float_checks, "division by zero"),
        (
            lambda v: jnp.isnan(jnp.sin(1.0 / v)),
            checkify.nan_checks | checkify.div_checks,
            "division by zero",
        ),
        (lambda v: jnp.isnan(jnp.sin(1.0 / v)), checkify.nan_checks, "produced a NaN"),
        (lambda v: jnp.isfinite(1.0 / v), checkify.div_checks, "division by zero"),
        (lambda v: jnp.nan_to_num(1.0 / v), checkify.all_checks, "division by zero"),
        (lambda v: jnp.isnan(jnp.log(v - 1)), checkify.float_checks, "produced a NaN"),
        (_differs_from_itself, checkify.nan_checks, "produced a NaN"),
        (lambda v: 1.0 / v == jnp.inf, checkify.div_checks, "division by zero"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap])
def test_faults_that_the_program_looks_for_are_reported(
    inspect: Callable[[Any], Any], kinds: frozenset[str], text: str, wrap: Callable[..., Any]
) -> None:
    error, _ = checkify.checkify(wrap(inspect), errors=kinds)(jnp.zeros(2))
    assert text in str(error.get())
    # `checked` takes them to be meant.
    jax.checked(wrap(inspect))(jnp.zeros(2))


def test_faults_that_a_selection_leaves_out_are_none() -> None:
    f = checkify.checkify(lambda v: jnp.where(v == 0, 0.0, jnp.sin(1.0 / v)), checkify.all_checks)
    assert f(jnp.zeros(2))[0].get() is None


def test_loop_goes_on_after_its_first_fault_and_that_is_reported() -> None:
    def body(carry: Any) -> Any:
        i, x = carry
        checkify.check(x != 3, "x is {}", x)
        checkify.check(x != 5, "x was {}", x)
        return i + 1, x + 1

    def loop(n: Any) -> Any:
        return lax.while_loop(lambda carry: carry[0] < n, body, (0, jnp.int32(0)))

    error, out = checkify.checkify(loop)(8)
    assert (error.get() or "").startswith("x is 3 ")
    assert tuple(map(int, out)) == (8, 8)
    errors, out = jax.vmap(checkify.checkify(loop))(jnp.array([8, 2, 5]))
    assert (errors.get() or "").count("x is 3 ") == 2
    assert np.array_equal(out[1], [8, 2, 5])


def test_condition_goes_on_after_its_first_fault() -> None:
    def condition(x: Any) -> Any:
        checkify.check(x != 2, "x is {}", x)
        return x < 5

    error, out = checkify.checkify(lambda: lax.while_loop(condition, lambda x: x + 1, 0))()
    assert ((error.get() or "")[:6], int(out)) == ("x is 2", 5)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_message_can_show_random_keys(wrap: Callable[..., Any]) -> None:
    def drawn(key: Any) -> Any:
        x = jax.random.uniform(key)
        checkify.check(x > 2, "key {k} gives {x}", k=key, x=x)
        return x

    error, x = wrap(checkify.checkify(drawn))(jax.random.key(3))
    shown = "key Array((), dtype=key<fry>) overlaying:\n[0 3] gives "
    assert error.get().startswith(f"{shown}{x}")


def test_messages_of_a_batch_show_the_key_of_each_example() -> None:
    check = checkify.checkify(lambda key, ok: checkify.check(ok, "{}", key))
    keys = jax.random.wrap_key_data(jnp.arange(6, dtype=jnp.uint32).reshape(3, 2))
    error, _ = jax.vmap(check)(keys, jnp.array([False, True, False]))
    first, second = error.get().split("at mapped index ")[1:]
    assert "[0 1]" in first
    assert "[4 5]" in second


@pytest.mark.feature("UX-01")
def test_throw_leaves_no_frame_of_its_own() -> None:
    error, _ = checkify.checkify(positive)(-ONE)
    with pytest.raises(checkify.JaxRuntimeError) as caught:
        error.throw()
    assert len(caught.traceback) == 1
