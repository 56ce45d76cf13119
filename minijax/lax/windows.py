"""Windows that slide across an array: where they lie, and what elements they hold.

The primitives are in `window_reduction.py` and `window_selection.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error
from minijax.interpreters import structural
from minijax.interpreters.hlo_build import i64_matrix
from minijax.lax.arguments import int_tuple, padtype_to_pads
from minijax.lax.folding import Combine, halves
from minijax.lax.padding import pad, unpad

Pads = tuple[tuple[int, int], ...]


class Window(NamedTuple):
    """Where windows lie: the parameters of all primitives of this file, under JAX's names.

    Attributes:
        window_dimensions: the size of the window.
        window_strides: how far apart windows start.
        padding: how much is put before and after the operand.
        base_dilation: the operand's elements are this far apart.
        window_dilation: the window's elements are this far apart.
    """

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    @staticmethod
    def of(
        window_dimensions: Shape,
        window_strides: Shape,
        padding: Pads,
        base_dilation: Shape | None = None,
        window_dilation: Shape | None = None,
    ) -> Window:
        """A window whose dilations are 1 where none are given."""
        ones = (1,) * len(window_dimensions)
        return Window(
            window_dimensions,
            window_strides,
            padding,
            base_dilation or ones,
            window_dilation or ones,
        )

    @property
    def extent(self) -> Shape:
        """How many places of the dilated operand a window spans."""
        return tuple(
            (n - 1) * d + 1
            for n, d in zip(self.window_dimensions, self.window_dilation, strict=True)
        )

    @property
    def is_dilated(self) -> bool:
        """Whether the operand's or the window's elements are further apart than 1."""
        return any(d != 1 for d in (*self.base_dilation, *self.window_dilation))

    def padded_shape(self, shape: Shape) -> Shape:
        """The shape of a dilated and padded operand."""
        return tuple(
            low + (max((n - 1) * d + 1, 0) if n else 0) + high
            for n, d, (low, high) in zip(shape, self.base_dilation, self.padding, strict=True)
        )

    def result_shape(self, shape: Shape) -> Shape:
        """How many windows fit into an operand of `shape`."""
        return tuple(
            max((size - extent) // stride + 1, 0)
            for size, extent, stride in zip(
                self.padded_shape(shape), self.extent, self.window_strides, strict=True
            )
        )

    def with_batch(self, dim: int) -> Window:
        """The window for a batch along `dim`: one element of it at a time."""

        def insert(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
            return (*values[:dim], value, *values[dim:])

        return Window(
            insert(self.window_dimensions, 1),
            insert(self.window_strides, 1),
            insert(self.padding, (0, 0)),
            insert(self.base_dilation, 1),
            insert(self.window_dilation, 1),
        )

    def attributes(self, ctx: Any) -> dict[str, Any]:
        """The attributes of `stablehlo.reduce_window`."""
        return {
            "window_dimensions": ctx.i64_array(self.window_dimensions),
            "window_strides": ctx.i64_array(self.window_strides),
            "base_dilations": ctx.i64_array(self.base_dilation),
            "window_dilations": ctx.i64_array(self.window_dilation),
            "padding": i64_matrix(self.padding, 2),
        }

    def elements(self, padded: Any, shape: Shape) -> Iterator[Any]:
        """For each place in the window, the elements that all windows have there.

        Args:
            padded: the dilated and padded operand.
            shape: the operand's shape before.
        """
        count, sizes = self.result_shape(shape), aval_of(padded).shape
        for place in itertools.product(*map(range, self.window_dimensions)):
            config = []
            for d, k in enumerate(place):
                start, stride = k * self.window_dilation[d], self.window_strides[d]
                used = start + (count[d] - 1) * stride + 1 if count[d] else start
                config.append((start, sizes[d] - used, stride - 1))
            yield unpad(padded, count, tuple(config))

    def pad(self, x: Any, value: Any) -> Any:
        """`x` dilated and padded with a scalar."""
        config = [
            (low, high, d - 1)
            for (low, high), d in zip(self.padding, self.base_dilation, strict=True)
        ]
        return pad(x, value, config)


def check_window(name: str, shape: Shape, window: Window) -> None:
    """Refuses windows that do not fit an operand.

    Raises:
        TypeError: a parameter has not one positive number for each dimension.
    """
    for argument, values in window._asdict().items():
        wrong = len(values) != len(shape)
        if argument != "padding":
            wrong = wrong or any(v < 1 for v in values)
        if wrong:
            error(
                TypeError,
                name,
                f"{argument} does not fit the operand.",
                got={"operand": f"of shape {shape}", argument: values},
                expected="one pair for each dimension"
                if argument == "padding"
                else "one number of at least 1 for each dimension",
            )


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Sequence[tuple[int, int]],
    base_dilation: Shape | None = None,
    window_dilation: Shape | None = None,
) -> Shape:
    """The shape of the result of `reduce_window`.

    Source:     mirrors jax.lax.reduce_window_shape_tuple (0.10).

    Example:
        >>> lax.reduce_window_shape_tuple((10, 10), (3, 3), (2, 2), [(1, 1), (0, 0)])
        (5, 4)
    """
    window = Window.of(
        tuple(window_dimensions),
        tuple(window_strides),
        tuple((low, high) for low, high in padding),
        base_dilation and tuple(base_dilation),
        window_dilation and tuple(window_dilation),
    )
    return window.result_shape(tuple(operand_shape))


def place_by_place(combine: Combine, window: Window) -> Callable[..., list[Any]]:
    """A window reduction as a composition: one combination for each place in the window."""

    def function(*args: Any) -> list[Any]:
        operands, inits = halves(args)
        shape = aval_of(operands[0]).shape
        padded = [window.pad(x, init) for x, init in zip(operands, inits, strict=True)]
        count = window.result_shape(shape)
        results = [structural.broadcast_in_dim(init, count, ()) for init in inits]
        for elements in zip(*[window.elements(x, shape) for x in padded], strict=True):
            results = list(combine(*results, *elements))
        return results

    return function


def window_of(
    name: str,
    shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Window:
    """The window that the arguments of a public function describe, for an operand of `shape`.

    Raises:
        TypeError: an argument is not made of integers.
        RuntimeError: the name of the padding is not known.
    """

    def ints(values: Sequence[int] | None, argument: str) -> Shape:
        return (1,) * len(shape) if values is None else int_tuple(values, name, argument)

    dims = ints(window_dimensions, "window_dimensions")
    strides = ints(window_strides, "window_strides")
    base = ints(base_dilation, "base_dilation")
    dilation = ints(window_dilation, "window_dilation")
    if isinstance(padding, str):
        unpadded = Window(dims, strides, ((0, 0),) * len(dims), base, dilation)
        check_window(name, shape, unpadded)
        padding = padtype_to_pads(unpadded.padded_shape(shape), unpadded.extent, strides, padding)
    pads = tuple(int_tuple(pair, name, "padding") for pair in padding)
    return Window(dims, strides, pads, base, dilation)  # type: ignore[arg-type]
