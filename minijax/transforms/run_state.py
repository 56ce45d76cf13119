"""`run_state`: functions that mutate references, as functions from first values to last ones.

Input: a function of a tree of references.  Output: a function of a tree of arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.core import refs, tree
from minijax.core.errors import error
from minijax.interpreters import eager, flattening
from minijax.lax import references


def run_state(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that puts arrays into references, runs `f` on them, and returns what they hold.

    Derivative: that of `f`, through what it reads and writes.
    Source:     mirrors run_state of JAX (0.10).

    Args:
        f: takes a tree of references, and returns None.

    Returns:
        A function from a tree of first values to the tree of last ones.  References in the tree
        are passed to `f` as they are, and live on.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: `f` returns something; references must not escape.

    Example:
        >>> def count(ref):
        ...     ref[...] += 1
        >>> jax.ref.run_state(count)(jnp.array([10, 20]))
        Array([11, 21], dtype=int32)
    """
    eager.check_callable("run_state", f)
    name = flattening.function_name(f)

    @functools.wraps(f, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def run(state: Any) -> Any:
        leaves, treedef = tree.flatten(state)
        made = [x if refs.is_reference(x) else references.new_ref(x) for x in leaves]
        result = f(tree.unflatten(treedef, made))
        if result is not None:
            error(
                ValueError,
                name,
                "a function run by run_state must return None.",
                got=f"{type(result).__name__}: {result!r}",
                fix="write results to one of the references",
            )
        last = [
            references.get(ref) if ref is x else references.freeze(ref)
            for ref, x in zip(made, leaves, strict=True)
        ]
        return tree.unflatten(treedef, last)

    return run
