"""Optimizers as triples of functions: of the first state, of the next one, and of its parameters.

What jax.example_libraries.optimizers has.

    opt_init, opt_update, get_params = optimizers.adam(1e-3)
    opt_state = opt_init(params)
    opt_state = opt_update(step, gradients, opt_state)
    params = get_params(opt_state)

An optimizer of one array is made one of trees by `optimizer`.  States are trees, so that `jit` and
`scan` take them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.tree import leaves as tree_leaves
from minijax.core.tree_registry import register_pytree_node
from minijax.numpy.creation import array, asarray, zeros, zeros_like
from minijax.numpy.elementary import absolute, floor, sqrt, square
from minijax.numpy.reductions import max as largest
from minijax.numpy.reductions import sum as total
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import maximum, minimum
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_NAME = "example_libraries.optimizers"

Params: TypeAlias = Any
State: TypeAlias = Any
Updates: TypeAlias = Any
Step = int
Schedule: TypeAlias = Callable[[Any], Any]
InitFn: TypeAlias = Callable[[Any], "OptimizerState"]
UpdateFn: TypeAlias = Callable[[Step, Any, "OptimizerState"], "OptimizerState"]
ParamsFn: TypeAlias = Callable[["OptimizerState"], Any]
_OfArrays: TypeAlias = tuple[
    Callable[[Any], Any], Callable[[Any, Any, Any], Any], Callable[[Any], Any]
]


class Optimizer(NamedTuple):
    """An optimizer of trees.

    Attributes:
        init_fn: the first state, for parameters.
        update_fn: the next state, for the number of the step, gradients and the state.
        params_fn: the parameters of a state.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizer = optimizers.sgd(0.5)
        >>> float(optimizer.params_fn(optimizer.update_fn(0, 2.0, optimizer.init_fn(3.0))))
        2.0
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


class OptimizerState(NamedTuple):
    """The state of an optimizer: for each parameter, the leaves and the form of its own state.

    Attributes:
        packed_state: for each parameter the leaves of its state.
        tree_def: the form of the parameters.
        subtree_defs: for each parameter the form of its state.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.sgd(0.5).init_fn({"w": 3.0}).packed_state
        ([3.0],)
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda forms, children: OptimizerState(children[0], *forms),
)


def _packed(states: Sequence[Any], tree_def: Any) -> OptimizerState:
    pairs = [tree.flatten(state) for state in states]
    return OptimizerState(tuple(p[0] for p in pairs), tree_def, tuple(p[1] for p in pairs))


def _states(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree.unflatten(form, leaves) for form, leaves in pairs]


def optimizer(opt_maker: Callable[..., _OfArrays]) -> Callable[..., Optimizer]:
    """Decorator: makes an optimizer of trees of one that is written for a single array.

    Args:
        opt_maker: returns `init(x)`, `update(step, gradient, state)` and `get_params(state)`, where
            a state is any tree.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> @optimizers.optimizer
        ... def descent(rate):
        ...     return lambda x: x, lambda i, g, x: x - rate * g, lambda x: x
        >>> opt_init, opt_update, get_params = descent(0.5)
        >>> get_params(opt_update(0, {"w": 2.0}, opt_init({"w": 3.0})))
        {'w': 2.0}
    """

    @functools.wraps(opt_maker)
    def of_trees(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_of_tree(x0_tree: Any) -> OptimizerState:
            leaves, tree_def = tree.flatten(x0_tree)
            return _packed([init(leaf) for leaf in leaves], tree_def)

        def update_of_tree(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            grads, grads_def = tree.flatten(grad_tree)
            if grads_def != opt_state.tree_def:
                problem = "the gradients form another tree than the parameters."
                got, expected = str(grads_def), str(opt_state.tree_def)
                error(TypeError, f"{_NAME}.update", problem, got=got, expected=expected)
            pairs = zip(grads, _states(opt_state), strict=True)
            after = _packed([update(i, grad, state) for grad, state in pairs], opt_state.tree_def)
            if after.subtree_defs != opt_state.subtree_defs:
                problem = "an update returns a state of another form than it was given."
                pairs_of_forms = zip(after.subtree_defs, opt_state.subtree_defs, strict=True)
                got, expected = next((str(a), str(b)) for a, b in pairs_of_forms if a != b)
                error(TypeError, f"{_NAME}.update", problem, got=got, expected=expected)
            return after

        def params_of_tree(opt_state: OptimizerState) -> Any:
            params = [get_params(state) for state in _states(opt_state)]
            return tree.unflatten(opt_state.tree_def, params)

        return Optimizer(init_of_tree, update_of_tree, params_of_tree)

    return of_trees


@optimizer
def sgd(step_size: Any) -> _OfArrays:
    """Gradient descent.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.sgd(0.1)
        >>> float(get_params(opt_update(0, 1.0, opt_init(2.0))))
        1.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, x: Array) -> Array:
        return x - rate(i) * grad

    return lambda x0: x0, update, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> _OfArrays:
    """Gradient descent with a velocity, of which `mass` is kept from step to step.

    Source: B. T. Polyak, Some methods of speeding up the convergence of iteration methods, 1964.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        mass: the share of the velocity that is kept.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.momentum(0.5, mass=0.9)
        >>> float(get_params(opt_update(0, 1.0, opt_init(2.0))))
        1.5
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + grad
        return x - rate(i) * velocity, velocity

    return lambda x0: (x0, zeros_like(x0)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: float) -> _OfArrays:
    """Gradient descent with a velocity that looks a step ahead.

    Source: Y. Nesterov, A method for solving the convex programming problem, 1983.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        mass: the share of the velocity that is kept.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.nesterov(0.1, mass=0.9)
        >>> round(float(get_params(opt_update(0, 1.0, opt_init(2.0)))), 4)
        1.81
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + grad
        return x - rate(i) * (mass * velocity + grad), velocity

    return lambda x0: (x0, zeros_like(x0)), update, lambda state: state[0]


def _root_inverse(x: Array) -> Array:
    """x to the power -1/2; 0 for 0."""
    return where(x > 0, 1 / sqrt(where(x > 0, x, 1)), 0)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> _OfArrays:
    """Steps divided by the root of the sum of all squares so far, with momentum.

    Source: J. Duchi, E. Hazan and Y. Singer, Adaptive subgradient methods, 2011.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        momentum: the share of the mean of directions that is kept.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.adagrad(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.99
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + square(grad)
        mean = (1 - momentum) * (grad * _root_inverse(squares)) + momentum * mean
        return x - rate(i) * mean, squares, mean

    return lambda x0: (x0, zeros_like(x0), zeros_like(x0)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> _OfArrays:
    """Steps divided by the root of a running mean of squares.

    Source: T. Tieleman and G. Hinton, Neural networks for machine learning, lecture 6.5, 2012.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        gamma: the share of the mean that is kept.
        eps: is added to the mean.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.rmsprop(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.6838
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1 - gamma) * square(grad)
        return x - rate(i) * grad / sqrt(squares + eps), squares

    return lambda x0: (x0, zeros_like(x0)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> _OfArrays:
    """`rmsprop`, whose steps are added to a share of the one before.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        gamma: the share of the mean of squares that is kept.
        eps: is added to the mean.
        momentum: the share of the last step that is added.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.rmsprop_momentum(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.6838
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, squares, last = state
        squares = gamma * squares + (1 - gamma) * square(grad)
        last = momentum * last + rate(i) * grad / sqrt(squares + eps)
        return x - last, squares, last

    return lambda x0: (x0, zeros_like(x0), zeros_like(x0)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _OfArrays:
    """Steps along a running mean of gradients, divided by the root of one of squares.

    Source: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, 2014.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        b1: the share of the mean of gradients that is kept.
        b2: the share of the mean of squares that is kept.
        eps: is added to the root.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.adam(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * grad + b1 * mean
        squares = (1 - b2) * square(grad) + b2 * squares
        # Means that begin with zero are too small at first.
        unbiased = mean / (1 - asarray(b1, mean.dtype) ** (i + 1))
        spread = sqrt(squares / (1 - asarray(b2, mean.dtype) ** (i + 1)))
        return x - rate(i) * unbiased / (spread + eps), mean, squares

    return lambda x0: (x0, zeros_like(x0), zeros_like(x0)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _OfArrays:
    """Adam with the largest gradient so far, which fades, in place of the mean of squares.

    Source: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, 2014, section 7.1.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        b1: the share of the mean of gradients that is kept.
        b2: the share of the largest gradient that is kept.
        eps: is added to the largest gradient.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.adamax(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.9
    """
    rate = make_schedule(step_size)

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, mean, most = state
        mean = (1 - b1) * grad + b1 * mean
        most = maximum(b2 * most, absolute(grad))
        unbiased = rate(i) / (1 - asarray(b1, mean.dtype) ** (i + 1))
        return x - unbiased * mean / (most + eps), mean, most

    return lambda x0: (x0, zeros_like(x0), zeros_like(x0)), update, lambda state: state[0]


def _along(x: Array, axis: int, ndim: int) -> Array:
    """A vector as an array of more dimensions, of which one is its own."""
    return x.reshape(tuple(-1 if i == axis else 1 for i in range(ndim)))


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> _OfArrays:
    """Adagrad that remembers a number for each row and column, not for each element.

    Source: R. Anil, V. Gupta, T. Koren and Y. Singer, Memory-efficient adaptive optimization, 2019.

    Args:
        step_size: the length of a step, or a function from the number of the step to that.
        momentum: the share of the mean of directions that is kept.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.sm3(0.1)
        >>> round(float(get_params(opt_update(0, 4.0, opt_init(2.0)))), 4)
        1.99
    """
    rate = make_schedule(step_size)

    def init(x0: Array) -> Any:
        x0 = asarray(x0)
        sums = [zeros(size, x0.dtype) for size in x0.shape]
        return x0, zeros_like(x0), sums or [zeros_like(x0)]

    def update(i: Any, grad: Array, state: Any) -> Any:
        x, mean, sums = state
        cover = zeros_like(x)
        for axis, one in enumerate(sums):
            spread = _along(one, axis, x.ndim)
            cover = minimum(cover, spread) if axis else cover + spread
        cover = cover + square(grad)
        mean = (1 - momentum) * (grad * _root_inverse(cover)) + momentum * mean
        rest = [tuple(a for a in range(x.ndim) if a != axis) for axis in range(len(sums))]
        return x - rate(i) * mean, mean, [largest(cover, axes) for axes in rest]

    return init, update, lambda state: state[0]


def constant(step_size: ArrayLike) -> Schedule:
    """The same length of all steps.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.constant(0.1)(7)
        0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Steps that shrink by `decay_rate` in every `decay_steps` steps.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
        0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Steps of `step_size / (1 + decay_rate * i / decay_steps)`.

    Args:
        step_size: the length of the first step.
        decay_steps: the unit in which steps are counted.
        decay_rate: how fast steps shrink.
        staircase: whether only whole units count.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.inverse_time_decay(1.0, 10, 1.0)(30)
        0.25
    """

    def schedule(i: Any) -> Any:
        count = i / decay_steps
        return step_size / (1 + decay_rate * (floor(count) if staircase else count))

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """Steps that shrink from one length to another, and stay that long.

    Args:
        step_size: the length of the first step.
        decay_steps: when the last length is reached.
        final_step_size: the last length.
        power: of the share of steps that are left.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> float(optimizers.polynomial_decay(1.0, 10, 0.5)(5))
        0.75
    """

    def schedule(i: Any) -> Any:
        left = (1 - minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """`values[0]` up to and with step `boundaries[0]`, then `values[1]`, and so on.

    Raises:
        ValueError: there is not one value more than boundaries, or they are no vectors.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> schedule = optimizers.piecewise_constant([10, 20], [1.0, 0.5, 0.25])
        >>> float(schedule(15))
        0.5
    """
    ends, lengths = array(boundaries), array(values)
    if not ends.ndim == lengths.ndim == 1 or ends.shape[0] != lengths.shape[0] - 1:
        problem = "there has to be one value more than boundaries, both vectors."
        got = {"boundaries": ends.shape, "values": lengths.shape}
        error(ValueError, f"{_NAME}.piecewise_constant", problem, got=got)
    return lambda i: lengths[total(i > ends)]


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """A function from the number of a step to its length, from one or from a length.

    Raises:
        TypeError: it is neither a function nor a number.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.make_schedule(0.1)(3)
        0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    is_number = not isinstance(scalar_or_schedule, str | None) and np.ndim(scalar_or_schedule) == 0
    if is_number:
        return constant(scalar_or_schedule)
    problem = "the length of steps is a number, or a function from the number of the step to one."
    error(TypeError, f"{_NAME}.make_schedule", problem, got=repr(scalar_or_schedule))


def l2_norm(tree: Any) -> Array:
    """The root of the sum of the squares of all elements of a tree of arrays.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> float(optimizers.l2_norm({"a": 3.0, "b": 4.0}))
        5.0
    """
    return sqrt(sum(total(square(absolute(x))) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: ArrayLike) -> Any:
    """Gradients whose norm, over all of them, is at most `max_norm`.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> float(optimizers.clip_grads([6.0, 8.0], 5.0)[1])
        4.0
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Where the state of a parameter begins in what `unpack_optimizer_state` returns.

    Attributes:
        subtree: the state of the parameter.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> optimizers.JoinPoint((1.0, 0.0)).subtree
        (1.0, 0.0)
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state as the tree of the parameters, with a `JoinPoint` for each, to be written to a file.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.momentum(0.1, 0.9)
        >>> state = opt_init({"w": 1.0})
        >>> optimizers.unpack_optimizer_state(state)["w"].subtree
        (1.0, Array(0., dtype=float32, weak_type=True))
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state that `unpack_optimizer_state` took apart.

    Raises:
        TypeError: a leaf of the tree is no `JoinPoint`.

    Example:
        >>> from minijax.example_libraries import optimizers
        >>> opt_init, opt_update, get_params = optimizers.sgd(0.1)
        >>> unpacked = optimizers.unpack_optimizer_state(opt_init({"w": 1.0}))
        >>> get_params(optimizers.pack_optimizer_state(unpacked))
        {'w': 1.0}
    """
    points, tree_def = tree.flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            problem = "the leaves of the tree have to be JoinPoints."
            fix = "what unpack_optimizer_state returned"
            error(TypeError, f"{_NAME}.pack_optimizer_state", problem, got=repr(point), fix=fix)
    return _packed([point.subtree for point in points], tree_def)
