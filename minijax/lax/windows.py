"""Reductions over windows that slide across an array, and what pooling needs besides.

The primitives that choose one element per window (`select_and_...`) are in `window_selection.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.aval import Shape, ShapedArray, aval_of
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.interpreters import structural
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.hlo_build import i64_matrix
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.tangents import Zero
from minijax.lax.arguments import int_tuple, padtype_to_pads
from minijax.lax.families import operand
from minijax.lax.folding import Combine, elementwise, halves
from minijax.lax.reducers import (
    as_initial_value,
    check_reducer,
    check_same_structure,
    monoid_of,
    region_of_jaxpr,
    stage_reducer,
)
from minijax.lax.shape import pad, unpad

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
            window_dimensions, window_strides, padding, base_dilation or ones, window_dilation or ones
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

    def count(self, shape: Shape) -> Shape:
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
        count, sizes = self.count(shape), aval_of(padded).shape
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
            (low, high, d - 1) for (low, high), d in zip(self.padding, self.base_dilation, strict=True)
        ]
        return pad(x, value, config)


def check_window(name: str, x: ShapedArray, window: Window) -> None:
    """Refuses windows that do not fit an operand.

    Raises:
        TypeError: a parameter has not one positive number for each dimension.
    """
    for argument, values in window._asdict().items():
        wrong = len(values) != x.ndim
        if argument != "padding":
            wrong = wrong or any(v < 1 for v in values)
        if wrong:
            raise TypeError(
                message(
                    name,
                    f"{argument} does not fit the operand.",
                    got={"operand": x, argument: values},
                    expected="one pair for each dimension"
                    if argument == "padding"
                    else "one number of at least 1 for each dimension",
                )
            )


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Sequence[tuple[int, int]],
    base_dilation: Shape | None = None,
    window_dilation: Shape | None = None,
) -> Shape:
    """The shape of the result of `reduce_window`.  Mirrors jax.lax.reduce_window_shape_tuple."""
    window = Window.of(
        tuple(window_dimensions),
        tuple(window_strides),
        tuple((low, high) for low, high in padding),
        base_dilation and tuple(base_dilation),
        window_dilation and tuple(window_dilation),
    )
    return window.count(tuple(operand_shape))


class ReduceWindow(Primitive):
    """Combines the elements of each window by a function of the user, given as a jaxpr.

    Shapes: operands: T_i[s], then init_values: T_i[] -> T_i[number of windows].
    """

    name = "reduce_window"
    multiple_results = True

    def abstract_eval(
        self, *avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[ShapedArray]:
        operands, inits = halves(avals)
        check_reducer("lax.reduce_window", operands, inits, jaxpr)
        window = Window(**params)
        check_window("lax.reduce_window", operands[0], window)
        shape = window.count(operands[0].shape)
        return [x.strip_weak_type().with_shape(shape) for x in operands]

    def lower(self, ctx: Any, *values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return ctx.ops(  # type: ignore[no-any-return]
            "stablehlo.reduce_window",
            values,
            Window(**params).attributes(ctx),
            regions=[region_of_jaxpr(ctx, jaxpr)],
        )

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, jaxpr=jaxpr, **params)
            return outs, [Zero.like(x) for x in outs]
        return jvp_flat(place_by_place(elementwise(jaxpr), Window(**params)), primals, tangents)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        (operands, inits), (operand_dims, init_dims) = halves(args), halves(dims)
        window = Window(**params)
        if any(d is not None for d in init_dims):
            return batch_flat(place_by_place(elementwise(jaxpr), window), size, args, dims)
        aligned = [
            structural.to_batch_dim(x, d, 0, size)
            for x, d in zip(operands, operand_dims, strict=True)
        ]
        outs = self.bind(*aligned, *inits, jaxpr=jaxpr, **window.with_batch(0)._asdict())
        return outs, [0] * len(outs)


reduce_window_p = ReduceWindow()


def place_by_place(combine: Combine, window: Window) -> Callable[..., list[Any]]:
    """A window reduction as a composition: one combination for each place in the window."""

    def function(*args: Any) -> list[Any]:
        operands, inits = halves(args)
        shape = aval_of(operands[0]).shape
        padded = [window.pad(x, init) for x, init in zip(operands, inits, strict=True)]
        count = window.count(shape)
        results = [structural.broadcast_in_dim(init, count, ()) for init in inits]
        for elements in zip(*[window.elements(x, shape) for x in padded], strict=True):
            results = list(combine(*results, *elements))
        return results

    return function


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Shape,
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combines the elements of each window by an associative function.

    Shapes:     operand: a tree of T_i[s] -> T_i[number of windows].
    Dtypes:     any.
    Derivative: a known operation has its own rule; any other is applied place by place.
    Lowers to:  stablehlo.reduce_window.
    Source:     mirrors jax.lax.reduce_window.

    Args:
        operand: arrays of one shape.
        init_value: for each array a scalar, an identity of the computation; padding has it too.
        computation: takes two trees of scalars, and returns one.
        window_dimensions: the size of the window.
        window_strides: how far apart windows start; 1 by default.
        padding: what is put before and after, or "VALID", "SAME", "SAME_LOWER".
        base_dilation: how far apart the operand's elements are put; 1 by default.
        window_dilation: how far apart the window's elements are; 1 by default.

    Raises:
        TypeError: the window does not fit the operand.
        ValueError: trees or shapes do not fit together.
        RuntimeError: the name of the padding is not known.
        NotImplementedError: the computation uses values of a surrounding trace.
    """
    name = "lax.reduce_window"
    leaves, structure = tree.flatten(operand)
    init_leaves, init_structure = tree.flatten(init_value)
    check_same_structure(name, "init_value", init_structure, structure)
    arrays = [as_array(x) for x in leaves]
    inits = [as_initial_value(x, like) for x, like in zip(init_leaves, arrays, strict=True)]
    if any(aval_of(x).shape for x in inits):
        raise TypeError(
            message(name, "initial values must be scalars.", got=", ".join(map(str, inits)))
        )
    shape = aval_of(arrays[0]).shape
    window = _window_of(
        name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    jaxpr = stage_reducer(name, computation, arrays, structure)
    primitive = _SPECIAL.get(monoid_of(jaxpr, inits))
    if primitive is not None:
        outs = [primitive.bind(arrays[0], **window._asdict())]
    else:
        outs = reduce_window_p.bind(*arrays, *inits, jaxpr=jaxpr, **window._asdict())
    return tree.unflatten(structure, outs)
