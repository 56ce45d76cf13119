"""Tests that say which collectives a program may contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core.errors import error
from minijax.explain.communication import KINDS, Collectives, collectives


def assert_collectives(
    function: Callable[..., Any], *, exactly: bool = False, **counts: int
) -> Callable[..., Collectives]:
    """Checks how many collectives of each kind a compiled program contains.

    Counts instructions of the program, however often they run: one in a loop is one, and one that
    works on several arrays together is one.  The result is to be called with the function's
    arguments, arrays or `ShapeDtypeStruct`s with shardings; nothing is run.

        assert_collectives(train_step, all_reduce=1, all_gather=0)(params, batch)

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted.
        exactly: whether kinds that are not named must not occur; by default they are not looked
            at.
        **counts: how many there must be of a kind, such as `all_gather=1`.

    Returns:
        A function of the arguments that gives what `explain.collectives` gives.

    Raises:
        TypeError: there is no such kind of collectives, or `function` is not callable.
        AssertionError: the program contains others; the text lists all, with the user's lines.

    Example:
        >>> from minijax.testing import assert_collectives
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.ones(8), spread)
        >>> _ = assert_collectives(jnp.sum, exactly=True, all_reduce=1)(x)
    """
    strange = [kind for kind in counts if kind not in KINDS]
    if strange:
        error(
            TypeError,
            "testing.assert_collectives",
            f"there are no collectives of kind {strange[0]!r}.",
            got=", ".join(strange),
            expected="kinds among " + ", ".join(KINDS),
        )
    find = collectives(function)

    def check(*args: Any, **kwargs: Any) -> Collectives:
        __tracebackhide__ = True  # pytest shows the line of the test
        found = find(*args, **kwargs)
        kinds = KINDS if exactly else tuple(counts)
        wrong = [k for k in kinds if found.counts.get(k, 0) != counts.get(k, 0)]
        if wrong:
            have = ", ".join(f"{found.counts.get(kind, 0)} {kind}" for kind in wrong)
            want = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in wrong)
            error(
                AssertionError,
                "testing.assert_collectives",
                f"{found.name} contains {have}.",
                got=repr(found),
                expected=want,
            )
        return found

    return check
