"""A decorator that gives meshes to tests of per-device programs.

A test of a collective is five lines:

    @given_mesh("x", x=per_device_inputs)
    def test_ring_sum_is_the_sum(mesh, x):
        f = shard_map(lambda x: ring_sum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        expected = np.broadcast_to(x.sum(0, keepdims=True, dtype=x.dtype), x.shape)
        np.testing.assert_allclose(f(x), expected, rtol=1e-5)
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from minijax.core.errors import error
from minijax.runtime import client
from minijax.sharding.mesh import Mesh
from minijax.testing.strategies.placements import SHAPES_OF_MESHES


def given_mesh(
    *axis_names: str,
    shapes: Sequence[tuple[int, ...]] | None = None,
    max_devices: int = 8,
    **strategies: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: Hypothesis calls the test with meshes of devices on the host.

    The first argument of the test is a mesh; failures shrink to small ones.

    Source: of the project; JAX has nothing like it.

    Args:
        *axis_names: the names of axes; one to three axes called x, y and z by default.
        shapes: the sizes that axes may have; from one to eight devices by default.
        max_devices: how many devices a mesh has at most.
        **strategies: further arguments of the test: Hypothesis strategies, or functions that make
            one for the sizes of the mesh, such as `per_device_inputs`.

    Returns:
        A decorator of tests.

    Raises:
        ValueError: no mesh has such axes.
        TypeError: the test takes no argument.

    Example:
        >>> from minijax.testing import given_mesh
        >>> @given_mesh("x")
        ... def test_that_a_sum_of_ones_counts_devices(mesh):
        ...     count = jax.shard_map(
        ...         lambda: lax.psum(np.int32(1), "x"), mesh=mesh, in_specs=(), out_specs=jax.P()
        ...     )
        ...     assert count() == mesh.size
        >>> test_that_a_sum_of_ones_counts_devices()
    """
    known = SHAPES_OF_MESHES if shapes is None else tuple(shapes)
    fitting = [
        shape
        for shape in known
        if math.prod(shape) <= max_devices and len(shape) in (len(axis_names) or len(shape),)
    ]
    if not fitting:
        error(
            ValueError,
            "given_mesh",
            "no mesh has such axes.",
            got=f"axes {axis_names}, max_devices={max_devices}",
            expected=f"axes as in one of the shapes {list(known)}",
            fix="shapes=[...], with the sizes that the axes may have",
        )

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        first = next(iter(inspect.signature(test).parameters), None)
        if first is None:
            error(
                TypeError,
                "given_mesh",
                "the test takes no argument.",
                got=f"{getattr(test, '__name__', test)}()",
                expected="a mesh as the first argument",
            )

        @given(data=st.data())
        def drawn(data: Any) -> None:
            shape = data.draw(st.sampled_from(fitting), label="shape of the mesh")
            names = axis_names or tuple("xyz"[: len(shape)])
            with client.cpu_devices(max_devices):
                mesh = _mesh_of(shape, names)
                found: dict[str, Any] = {}
                for name, strategy in strategies.items():
                    if not isinstance(strategy, SearchStrategy):
                        strategy = strategy(dict(mesh.shape))  # noqa: PLW2901  one per mesh
                    found[name] = data.draw(strategy, label=name)
                test(**{first: mesh}, **found)

        @functools.wraps(test)
        def wrapped() -> None:
            drawn()

        # What pytest takes for fixtures are the arguments that it sees.
        wrapped.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        wrapped.hypothesis = drawn.hypothesis  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _mesh_of(shape: Sequence[int], names: Sequence[str]) -> Mesh:
    own = client.devices("cpu")[: math.prod(shape)]
    box = np.empty(len(own), object)
    box[:] = own
    return Mesh(box.reshape(tuple(shape)), tuple(names))
