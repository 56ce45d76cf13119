"""What a worker sees of one random program: for each statement, its value to the bit, or its error.

Input: statements `name = expression` in the order of their execution.  Output: for each of them a
dictionary, which `tools/fuzz/compare.py` reads.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

import numpy as np

_SETTINGS = ("jax_enable_x64", "jax_disable_most_optimizations")


def observe(
    jax: Any,
    statements: list[str],
    settings: dict[str, bool],
    *,
    mode: str = "eager",
    nudged: bool = False,
) -> list[dict[str, Any]]:
    """What the statements of a program give.

    Args:
        jax: the library.
        statements: of the program.
        mode: "eager" runs statement by statement; "jit" runs all that are no literals in one
            compiled function; "types" only traces that.
        settings: the values of settings of the library while it runs.
        nudged: whether each result is changed by a few units in the last place before others use
            it, which shows what of a program is rounding.
    """
    for name in _SETTINGS:
        jax.config.update(name, settings.get(name, False))
    scope = names(jax)
    count = len(statements)
    if mode != "eager":
        count = next((i for i, s in enumerate(statements) if not s.startswith("x")), count)
    seen = []
    for number, statement in enumerate(statements[:count]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(_run(jax, statement, scope))
        name = statement.partition(" = ")[0]
        if nudged and name in scope:
            with contextlib.suppress(Exception):
                scope[name] = jax.tree.map(lambda x, n=number: _nudged(jax, x, n), scope[name])
    return seen + _traced(jax, statements[count:], scope, run=mode == "jit")


def _traced(
    jax: Any, statements: list[str], scope: dict[str, Any], *, run: bool
) -> list[dict[str, Any]]:
    """What statements give in one traced function of the literals before them."""
    if not statements:
        return []
    arrays = {k: v for k, v in scope.items() if isinstance(v, (jax.Array, np.ndarray))}
    trees: list[Any] = []

    def whole(given: dict[str, Any]) -> list[list[Any]]:
        trees.clear()
        inner = {**scope, **given}
        results: list[list[Any]] = []
        for statement in statements:
            found = _run(jax, statement, inner, observed=False)
            leaves = found.pop("leaves", [])
            is_array = [isinstance(x, (jax.Array, np.ndarray, np.generic)) for x in leaves]
            results.append([x for x, is_one in zip(leaves, is_array, strict=True) if is_one])
            others = [
                None if one else _leaf(jax, x) for x, one in zip(leaves, is_array, strict=True)
            ]
            trees.append((found, others))
        return results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = (jax.jit(whole) if run else lambda x: jax.eval_shape(whole, x))(arrays)
            shown = [[_leaf(jax, x) for x in each] for each in results]
        except Exception as error:
            return [_error(error)] * len(statements)
    seen = []
    for (found, others), each in zip(trees, shown, strict=True):
        arrays_left = iter(each)
        leaves = [next(arrays_left) if x is None else x for x in others]
        seen.append({**found, "leaves": leaves} if "tree" in found else found)
    return seen


def names(jax: Any) -> dict[str, Any]:
    """What programs name."""
    for room in ("image", "ops", "scipy", "scipy.special", "scipy.linalg", "scipy.stats", "nn"):
        importlib.import_module(f"{jax.__name__}.{room}")
    axis_types = jax.sharding.AxisType
    scope = {
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "np": np,
        "random": jax.random,
        "nn": jax.nn,
        "scipy": jax.scipy,
        "P": jax.sharding.PartitionSpec,
        "NamedSharding": jax.sharding.NamedSharding,
        "nan": np.nan,
        "inf": np.inf,
    }
    if len(jax.devices()) >= 4:
        devices = np.array(jax.devices()[:4]).reshape(2, 2)
        for name, kind in (("mesh", axis_types.Auto), ("typed_mesh", axis_types.Explicit)):
            scope[name] = jax.sharding.Mesh(devices, ("a", "b"), axis_types=(kind,) * 2)
    return scope


def _run(
    jax: Any, statement: str, scope: dict[str, Any], *, observed: bool = True
) -> dict[str, Any]:
    """What one statement gives; its leaves as they are unless they are `observed`."""
    name = statement.partition(" = ")[0]
    try:
        exec(compile(statement, "random_program.py", "exec"), scope)
        leaves, tree = jax.tree.flatten(scope[name])
        leaves = [_leaf(jax, each) for each in leaves] if observed else leaves
        return {"tree": str(tree), "leaves": leaves}
    except NameError:
        return {"skipped": True}
    except Exception as error:
        scope.pop(name, None)
        return _error(error)


def _error(error: Exception) -> dict[str, Any]:
    classes = [each.__name__ for each in type(error).__mro__]
    return {"error": classes, "message": str(error)[:400]}


def _leaf(jax: Any, x: Any) -> dict[str, Any]:
    """The type of a value, and its bytes."""
    if not hasattr(x, "dtype"):
        told = {"repr": repr(x)} if isinstance(x, (bool, int, float, complex, str)) else {}
        return {"dtype": type(x).__name__, **told}
    leaf = {"dtype": str(x.dtype), "shape": list(x.shape)}
    if isinstance(x, jax.ShapeDtypeStruct):
        return {**leaf, "weak": bool(x.weak_type)}
    if isinstance(x, jax.Array):
        leaf["weak"] = bool(getattr(jax.typeof(x), "weak_type", False))
        spec = tuple(jax.typeof(x).sharding.spec)
        leaf["spec"] = str(spec) if any(spec) else ""
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    if x.dtype != jax.dtypes.float0:
        leaf["data"] = np.ascontiguousarray(np.asarray(x)).tobytes().hex()
    return leaf


def _nudged(jax: Any, x: Any, number: int) -> Any:
    """An array whose elements differ in the last places; other values as they are."""
    if not isinstance(x, jax.Array) or not jax.dtypes.issubdtype(x.dtype, np.inexact):
        return x
    unit = 2 * float(jax.numpy.finfo(x.dtype).eps)
    if jax.typeof(x).weak_type:
        return x * (1 + unit)
    pattern = 1 + unit * np.cos(np.arange(x.size) * 2.0 + number).reshape(x.shape)
    return x * jax.numpy.asarray(pattern, x.dtype)
