"""Every public function says what it takes and gives; few results are of any type, for a reason."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

ROOMS = (
    "minijax",
    "minijax.numpy",
    "minijax.numpy.linalg",
    "minijax.numpy.fft",
    "minijax.random",
    "minijax.nn",
    "minijax.nn.initializers",
    "minijax.ops",
    "minijax.image",
    "minijax.lax",
    "minijax.lax.linalg",
    "minijax.tree",
    "minijax.tree_util",
    "minijax.flatten_util",
    "minijax.scipy.special",
    "minijax.scipy.linalg",
    "minijax.scipy.signal",
    "minijax.scipy.ndimage",
    "minijax.scipy.fft",
    "minijax.scipy.integrate",
    "minijax.scipy.interpolate",
    "minijax.scipy.stats.norm",
    "minijax.debug",
    "minijax.sharding",
    "minijax.custom_derivatives",
    "minijax.dtypes",
    "minijax.ad_checkpoint",
    "minijax.custom_batching",
    "minijax.stages",
    "minijax.ref",
    "minijax.experimental",
    "minijax.experimental.checkify",
)

_LEAVES = "a tree of the structure of another, with leaves of a type of their own"
_DTYPE = "NumPy's dtype, or an extended one that NumPy does not know"
_NUMPY = "whatever NumPy makes of a file or an iterator"
_TOKEN = "a token, which only this program's own functions know"
_TYPE = "the type of a value, of as many classes as there are kinds of values"
_PICTURE = "nothing, or in a notebook a picture of its own class"
_GENERATOR = "a name, or the generator itself"


def _because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


# Why results are of any type, room by room.
REASONS: dict[str, dict[str, str]] = {
    "minijax": {
        **_because(_LEAVES, "device_get device_put eval_shape pure_callback"),
        **_because(_LEAVES, "make_array_from_process_local_data"),
        **_because(_TYPE, "typeof"),
    },
    "minijax.numpy": _because(_NUMPY, "fromfile fromiter load"),
    "minijax.random": _because(_GENERATOR, "key_impl"),
    "minijax.lax": {
        **_because(_LEAVES, "precv reduce reduce_window"),
        **_because(_TOKEN, "after_all create_token psend"),
    },
    "minijax.tree": _because(_LEAVES, "broadcast map map_with_path static transpose unflatten"),
    "minijax.tree_util": _because(
        _LEAVES, "tree_broadcast tree_map tree_map_with_path tree_transpose tree_unflatten"
    ),
    "minijax.debug": _because(_PICTURE, "visualize_array_sharding visualize_sharding"),
    "minijax.custom_derivatives": _because(
        _LEAVES, "custom_vjp_primal_tree_values zero_from_primal"
    ),
    "minijax.dtypes": _because(_DTYPE, "canonicalize_dtype"),
    "minijax.experimental": _because(_LEAVES, "io_callback"),
}


def _functions(room: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(room)
    for name in sorted(getattr(module, "__all__", None) or dir(module)):
        value = getattr(module, name, None)
        function = inspect.unwrap(value) if callable(value) else None
        is_ours = inspect.isfunction(function) and function.__module__.startswith("minijax")
        if is_ours and not name.startswith("_"):
            yield name, function


@pytest.mark.parametrize("room", ROOMS)
def test_function_is_annotated(room: str) -> None:
    bare = [
        f"{name}({parameter})"
        for name, function in _functions(room)
        for parameter in (*inspect.signature(function).parameters, "return")
        if parameter not in function.__annotations__
    ]
    assert bare == []


@pytest.mark.parametrize("room", ROOMS)
def test_result_of_any_type_has_a_reason(room: str) -> None:
    found = {n for n, function in _functions(room) if function.__annotations__["return"] == "Any"}
    assert sorted(found) == sorted(REASONS.get(room, {}))
