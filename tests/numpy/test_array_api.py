"""The Python array API standard 2024.12: names, parameters, and answers that surprise.

`array_api.txt` lists the standard's functions, one to a line.
"""

import inspect
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

LISTED = Path(__file__).with_name("array_api.txt")

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
BITWISE = ("and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
OTHERS = (
    "abs",
    "array_namespace",
    "bool",
    "complex",
    "dlpack",
    "dlpack_device",
    "float",
    "getitem",
    "index",
    "int",
    "invert",
    "neg",
    "pos",
    "setitem",
)

pytestmark = pytest.mark.feature("NP-01")


def listed() -> Iterator[tuple[str, inspect.Signature]]:
    for line in LISTED.read_text(encoding="utf-8").splitlines()[1:]:
        name, _, parameters = line.partition("(")
        scope: dict[str, Any] = {}
        exec(f"def function({parameters}: pass", scope)
        yield name, inspect.signature(scope["function"])


def lacking(name: str, standard: inspect.Signature) -> list[str]:
    """The parameters of the standard that a function of ours does not take so."""
    found = inspect.signature(operator.attrgetter(name)(jnp)).parameters.values()
    by_name = {p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    places = [p for p in found if p.kind <= p.POSITIONAL_OR_KEYWORD]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in found)
    needed = list(standard.parameters.values())
    positional = [p for p in needed if p.kind is p.POSITIONAL_ONLY]
    wrong = [p.name for p in positional[len(places) :] if not takes_more]
    named = [p for p in needed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return wrong + [p.name for p in named if p.name not in by_name]


def test_every_function_takes_the_parameters_of_the_standard() -> None:
    found = {name: lacking(name, standard) for name, standard in listed()}
    assert len(found) > 150
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_arrays_have_the_operators_and_attributes_of_the_standard() -> None:
    x = jnp.ones((2, 3))
    reflected = [f"{side}{name}" for name in ARITHMETIC + BITWISE for side in ("", "r")]
    methods = {f"__{name}__" for name in (*reflected, *COMPARISONS, *OTHERS)}
    attributes = {"T", "mT", "device", "dtype", "ndim", "shape", "size", "to_device"}
    assert {name for name in methods | attributes if not hasattr(x, name)} == set()
    for name in ARITHMETIC[:-1]:
        y = jnp.array([4.0, 9.0])
        expected = getattr(operator, f"i{name}")(np.array([4.0, 9.0]), 2)
        np.testing.assert_array_equal(getattr(operator, f"i{name}")(y, 2), expected)


def test_namespace_tells_its_version() -> None:
    x = jnp.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is jnp
    assert jnp.__array_api_version__ == "2024.12"
    assert {"__array_api_version__", "__array_namespace_info__"}.isdisjoint(dir(jnp))
    with pytest.raises(ValueError, match=r"'1999'(?s:.*)expected  None or '2024.12'"):
        x.__array_namespace__(api_version="1999")
    traced = minijax.jit(lambda x: x.__array_namespace__().sum(x))
    assert traced(x).tolist() == 2


def test_namespace_tells_devices_and_dtypes() -> None:
    info = jnp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": False,
        "data-dependent shapes": False,
        "max dimensions": 64,
    }
    assert info.default_device() is None
    assert info.devices() == [None, *minijax.devices()]
    kinds = ("real floating", "complex floating", "integral", "indexing")
    assert [str(info.default_dtypes()[kind]) for kind in kinds] == [
        "float32",
        "complex64",
        "int32",
        "int32",
    ]
    assert list(info.dtypes(kind=("bool", "unsigned integer"))) == [
        "bool",
        "uint8",
        "uint16",
        "uint32",
    ]
    with minijax.enable_x64():
        assert [str(info.default_dtypes()[kind]) for kind in kinds] == [
            "float64",
            "complex128",
            "int64",
            "int64",
        ]
        assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
        assert len(info.dtypes()) == 13
    with pytest.raises(ValueError, match="'decimal'"):
        info.dtypes(kind="decimal")


def test_unique_functions_keep_every_nan() -> None:
    x = jnp.array([[3.0, np.nan], [1.0, 3.0]])
    values = jnp.unique_values(jnp.array([np.nan, 1.0, np.nan]))
    np.testing.assert_array_equal(values, [1, np.nan, np.nan])
    found = jnp.unique_all(x)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    np.testing.assert_array_equal(found.values, [1, 3, np.nan])
    np.testing.assert_array_equal(found.indices, [2, 0, 1])
    np.testing.assert_array_equal(found.inverse_indices, [[1, 2], [0, 1]])
    np.testing.assert_array_equal(found.counts, [1, 2, 1])
    assert jnp.unique_counts(x)._fields == ("values", "counts")
    assert jnp.unique_inverse(x).inverse_indices.shape == x.shape


def test_cumulative_functions_may_begin_with_nothing() -> None:
    x = jnp.array([[1, 2], [3, 4]])
    found = jnp.cumulative_sum(x, axis=1, include_initial=True)
    np.testing.assert_array_equal(found, [[0, 1, 3], [0, 3, 7]])
    found = jnp.cumulative_prod(x[0], include_initial=True)
    np.testing.assert_array_equal(found, [1, 1, 2])
    with pytest.raises(ValueError, match="several and none is named"):
        jnp.cumulative_sum(x)


def test_answers_of_the_standard() -> None:
    i = jnp.array([1j, 2])
    assert complex(jnp.vecdot(i, i)) == 5
    assert jnp.ones((2, 3, 4)).mT.shape == (2, 4, 3)
    with pytest.raises(ValueError, match="needs two dimensions"):
        _ = jnp.ones(3).mT
    unsorted, order = jnp.array([3, 1, 2]), jnp.array([1, 2, 0])
    places = jnp.searchsorted(unsorted, jnp.array([2, 3]), side="right", sorter=order)
    assert places.tolist() == [2, 3]
    assert jnp.isdtype(jnp.uint8, ("integral", "bool"))
    assert not jnp.isdtype(jnp.float16, jnp.float32)
    assert jnp.argsort(jnp.array([2, 1, 2]), descending=True).tolist() == [0, 2, 1]
    assert [x.tolist() for x in jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)] == [
        [1, 3],
        [2, 4],
    ]
    x = jnp.ones(2)
    assert jnp.astype(x, jnp.float32, copy=False) is x


def test_dlpack_shares_or_copies_as_asked() -> None:
    x = jnp.arange(4.0)
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.unsafe_buffer_pointer()
    assert x.__dlpack_device__() == (1, 0)
    taken = jnp.from_dlpack(_Exporting(x.__dlpack__(copy=True, max_version=(1, 0), stream=None)))
    assert taken.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert taken.tolist() == x.tolist()
    with pytest.raises(BufferError, match="on another device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="no streams"):
        x.__dlpack__(stream=1)
    # Numbers of 64 bits become those that arrays have.
    assert jnp.from_dlpack(np.arange(3)).dtype == np.int32
    unaligned = np.zeros(65, np.int8)[1:]
    assert jnp.from_dlpack(unaligned).shape == (64,)
    with pytest.raises(ValueError, match="must not be copied"):
        jnp.from_dlpack(unaligned, copy=False)


class _Exporting:
    """What speaks DLPack and is no array."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_arrays_move_to_devices_by_method() -> None:
    x = jnp.arange(3)
    assert x.device == minijax.devices()[0]
    with minijax.cpu_devices(2):
        moved = jnp.arange(3).to_device(minijax.devices()[1])
        assert moved.device == minijax.devices()[1]
    with pytest.raises(ValueError, match="not a place for arrays"):
        x.to_device("cpu")
