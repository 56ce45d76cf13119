"""Every public function says what it takes and gives; few results are of any type, for a reason."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

ROOMS = (
    *("minijax", "minijax.numpy", "minijax.numpy.linalg", "minijax.numpy.fft", "minijax.random"),
    *("minijax.nn", "minijax.nn.initializers", "minijax.ops", "minijax.image"),
    *("minijax.lax", "minijax.lax.linalg", "minijax.tree", "minijax.tree_util"),
    *("minijax.flatten_util", "minijax.scipy.special", "minijax.scipy.linalg"),
    *("minijax.scipy.signal", "minijax.scipy.ndimage", "minijax.scipy.fft"),
    *("minijax.scipy.integrate", "minijax.scipy.interpolate", "minijax.scipy.stats.norm"),
)

_TREE = "a tree like that of arguments, or what users' functions return"
_DTYPE = "NumPy's dtype, or an extended one that NumPy does not know"
_NUMPY = "whatever NumPy makes of a file or an iterator"
_TOKEN = "a token, which only this program's own functions know"
_TYPE = "the type of a value, of as many classes as there are kinds of values"
_REFERENCE = "a reference, or what stands behind it"
_GENERATOR = "a name, or the generator itself"


def _because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


# Why results are of any type, room by room.
REASONS: dict[str, dict[str, str]] = {
    "minijax": {
        **_because(_TREE, "block_until_ready copy_to_host_async device_get device_put eval_shape"),
        **_because(_TREE, "jit jvp linear_transpose linearize pmap pure_callback reshard vjp"),
        **_because(_TREE, "make_array_from_process_local_data"),
        **_because(_REFERENCE, "empty_ref freeze new_ref"),
        **_because(_TYPE, "typeof"),
    },
    "minijax.numpy": {
        **_because(_DTYPE, "promote_types result_type"),
        **_because(_NUMPY, "fromfile fromiter load"),
    },
    "minijax.random": {**_because(_DTYPE, "key_dtype"), **_because(_GENERATOR, "key_impl")},
    "minijax.lax": {
        **_because(_TREE, "all_gather all_gather_invariant all_gather_reduced all_to_all"),
        **_because(_TREE, "associative_scan cond custom_linear_solve custom_root"),
        **_because(_TREE, "fori_loop map optimization_barrier pargmax pargmin pbroadcast pcast"),
        **_because(_TREE, "platform_dependent pmax pmean pmin ppermute psend precv pshuffle psum"),
        **_because(_TREE, "psum_scatter pswapaxes pvary ragged_all_to_all reduce reduce_window"),
        **_because(_TREE, "sort stage stop_gradient switch unreduced_psum unreduced_psum_scatter"),
        **_because(_TREE, "while_loop with_sharding_constraint"),
        **_because(_DTYPE, "dtype"),
        **_because(_TOKEN, "after_all create_token"),
    },
    "minijax.tree": _because(
        _TREE, "broadcast map map_with_path reduce reduce_associative static transpose unflatten"
    ),
    "minijax.tree_util": {
        **_because(_TREE, "tree_broadcast tree_map tree_map_with_path tree_reduce"),
        **_because(_TREE, "tree_reduce_associative tree_transpose tree_unflatten"),
    },
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
