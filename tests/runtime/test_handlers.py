"""What places the arguments of programs and wraps their results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core.aval import ShapedArray, abstract_token
from minijax.core.refs import AbstractRef
from minijax.runtime import compile as compilation
from minijax.runtime.array import ExtendedArray, Token
from minijax.runtime.placement import native, native_sharding
from minijax.runtime.transfer import InputsHandler, ResultsHandler, result_types
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
F8 = ShapedArray((8,), np.dtype(np.float32))


@pytest.fixture
def split() -> Iterator[NamedSharding]:
    with jax.cpu_devices(8):
        yield NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x"))


@pytest.mark.feature("AR-09")
def test_inputs_handler_places_used_arguments(split: NamedSharding) -> None:
    target = native(split, 1)
    handler = InputsHandler([F8], [target], kept=[1])

    (buffer,) = handler([3, X])

    assert buffer._sharding is target
    np.testing.assert_array_equal(buffer, X)


@pytest.mark.feature("AR-09")
def test_inputs_handler_leaves_what_lies_right(split: NamedSharding) -> None:
    x = jax.device_put(X, split)

    (buffer,) = InputsHandler([F8], [native(split, 1)])([x])

    assert buffer is x.buffer


@pytest.mark.feature("AR-09")
def test_handlers_print_types_and_places(split: NamedSharding) -> None:
    target = native(split, 1)

    assert repr(InputsHandler([F8], [target])) == f"InputsHandler(f32[8] on {split})"
    assert repr(ResultsHandler([F8], [target], True)) == f"ResultsHandler(f32[8] on {split})"
    constant = InputsHandler([F8], [target], consts=[jnp.ones(3).buffer])
    assert repr(constant).startswith("InputsHandler(1 constants, f32[8] on ")


@pytest.mark.feature("AR-08", "AR-09")
def test_results_handler_makes_an_array_of_pieces(split: NamedSharding) -> None:
    pieces = [jax.device_put(X[i : i + 1], d).buffer for i, d in enumerate(jax.devices())]

    (out,) = ResultsHandler([F8], [native(split, 1)], True)([pieces])

    assert out.sharding == split
    np.testing.assert_array_equal(out, X)


@pytest.mark.feature("AR-08")
def test_results_are_of_the_kind_of_their_aval() -> None:
    one = native_sharding(jax.devices()[0])
    keys = jax.random.key(0)

    key, token = ResultsHandler([keys.aval, abstract_token], [one] * 2, False)(
        [keys.buffer, jnp.zeros(0, bool).buffer]
    )

    assert type(key) is ExtendedArray
    assert type(token) is Token


@pytest.mark.feature("AR-08")
def test_aval_that_programs_do_not_return_is_refused() -> None:
    one = native_sharding(jax.devices()[0])

    with pytest.raises(TypeError, match=r"no array can be made.*\n.*AbstractRef") as caught:
        ResultsHandler([AbstractRef(F8)], [one], True)

    assert "expected  an aval of type ShapedArray, AbstractToken" in str(caught.value)


@pytest.mark.feature("AR-08")
def test_rule_for_a_new_kind_of_aval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(result_types, AbstractRef, lambda aval, target: F8)
    one = native_sharding(jax.devices()[0])

    assert ResultsHandler([AbstractRef(F8)], [one], True).buffer_avals == [F8]


@pytest.mark.feature("JT-26")
@pytest.mark.parametrize(
    ("platform", "count", "tupled"),
    [("tpu", 2000, False), ("tpu", 2001, True), ("cpu", 5000, False), ("cuda", 5000, False)],
)
def test_arguments_are_one_tuple_where_a_tpu_has_too_many(
    platform: str, count: int, tupled: bool
) -> None:
    assert compilation.needs_tuple_arguments(count, platform) is tupled


@pytest.mark.feature("JT-26")
def test_compilation_is_told_of_tuple_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def needs(count: int, platform: str) -> bool:
        asked.append((count, platform))
        return True

    monkeypatch.setattr(compilation, "needs_tuple_arguments", needs)
    compiled = jax.jit(lambda x, y, z: x + z).lower(X, X, X).compile()

    assert asked == [(2, "cpu")]
    np.testing.assert_array_equal(compiled(X, X, X), 2 * X)
