"""What `recorded.json` records of JAX's small libraries and solver: calls by name.

A call takes three modules of a library of JAX's API: numpy, random, and what it is about.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[Any], Any]


class Library:
    """A library of JAX's API.

    Attributes:
        jax, numpy, stax, optimizers, ode: its modules.
    """

    def __init__(self, name: str) -> None:
        self.jax = importlib.import_module(name)
        self.numpy = importlib.import_module(f"{name}.numpy")
        self.stax = importlib.import_module(f"{name}.example_libraries.stax")
        self.optimizers = importlib.import_module(f"{name}.example_libraries.optimizers")
        self.ode = importlib.import_module(f"{name}.experimental.ode")


def _applied(make: Callable[[Any], Any], shape: tuple[int, ...], **kwargs: Any) -> Call:
    """A layer's output shape for an open batch, its parameters, its outputs and a gradient."""

    def call(library: Library) -> Any:
        init, apply = make(library.stax)
        out_shape, params = init(library.jax.random.key(3), (-1, *shape[1:]))
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        rng = {"rng": library.jax.random.key(5)} if kwargs.get("rng") else {}
        y = apply(params, x, **rng)
        leaves = library.jax.tree.leaves(params)
        slope = library.jax.grad(
            lambda x: library.numpy.sum(library.numpy.sin(3 * apply(params, x, **rng)))
        )(x)
        # Where windows pass over the batch, JAX answers 0 for its open size.
        return [np.array(out_shape[1:]), *leaves, y, slope]

    return call


def _network(stax: Any) -> Any:
    return stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"),
        stax.BatchNorm(),
        stax.Relu,
        stax.MaxPool((2, 2), strides=(2, 2)),
        stax.FanOut(2),
        stax.parallel(stax.Conv(3, (1, 1)), stax.Identity),
        stax.FanInConcat(),
        stax.Flatten,
        stax.Dropout(0.8),
        stax.Dense(5),
        stax.LogSoftmax,
    )


IMAGES = (2, 6, 5, 3)

LAYERS: dict[str, Call] = {
    "Dense": _applied(lambda s: s.Dense(4), (3, 5)),
    "Dense with initializers": _applied(
        lambda s: s.Dense(4, W_init=s.glorot(), b_init=s.zeros), (3, 5)
    ),
    "Conv": _applied(lambda s: s.Conv(4, (3, 2)), IMAGES),
    "Conv SAME strided": _applied(lambda s: s.Conv(4, (3, 2), (2, 2), "SAME"), IMAGES),
    "Conv pairs": _applied(lambda s: s.Conv(4, (3, 2), padding=((1, 2), (0, 1))), IMAGES),
    "GeneralConv": _applied(
        lambda s: s.GeneralConv(("NCHW", "OIHW", "NHWC"), 4, (3, 3), padding="SAME"), IMAGES
    ),
    "ConvTranspose": _applied(lambda s: s.ConvTranspose(4, (3, 2), (2, 2), "SAME"), IMAGES),
    "ConvTranspose VALID": _applied(lambda s: s.ConvTranspose(4, (3, 2), (2, 1)), IMAGES),
    "Conv1DTranspose": _applied(lambda s: s.Conv1DTranspose(2, (3,), (2,)), (2, 5, 3)),
    "BatchNorm": _applied(lambda s: s.BatchNorm(), IMAGES),
    "BatchNorm bare": _applied(lambda s: s.BatchNorm(0, center=False, scale=False), (4, 3)),
    "BatchNorm scaled": _applied(lambda s: s.BatchNorm(0, center=False), (4, 3)),
    "MaxPool": _applied(lambda s: s.MaxPool((2, 3), (1, 2)), IMAGES),
    "MaxPool NCHW": _applied(lambda s: s.MaxPool((2, 3), spec="NCHW"), IMAGES),
    "SumPool SAME": _applied(lambda s: s.SumPool((2, 3), padding="SAME"), IMAGES),
    "AvgPool SAME": _applied(lambda s: s.AvgPool((2, 3), (2, 2), padding="SAME"), IMAGES),
    "AvgPool": _applied(lambda s: s.AvgPool((2, 2)), IMAGES),
    "Flatten": _applied(lambda s: s.Flatten, IMAGES),
    "Dropout": _applied(lambda s: s.Dropout(0.7), (3, 5), rng=True),
    "Dropout test": _applied(lambda s: s.Dropout(0.7, mode="test"), (3, 5), rng=True),
    **{
        name: _applied(lambda s, name=name: getattr(s, name), (3, 5))
        for name in (
            "Tanh",
            "Relu",
            "Exp",
            "LogSoftmax",
            "Softmax",
            "Softplus",
            "Sigmoid",
            "Elu",
            "LeakyRelu",
            "Selu",
            "Gelu",
            "Identity",
        )
    },
    "elementwise": _applied(lambda s: s.elementwise(s.leaky_relu, negative_slope=0.3), (3, 5)),
    "residual": _applied(
        lambda s: s.serial(
            s.FanOut(2),
            s.parallel(s.serial(s.Dense(5), s.Tanh), s.Identity),
            s.FanInSum,
        ),
        (3, 5),
    ),
    "shape_dependent": _applied(
        lambda s: s.shape_dependent(lambda shape: s.Dense(2 * shape[-1])), (3, 5)
    ),
    "network": _applied(_network, IMAGES, rng=True),
}

_PARAMS = {
    "w": np.array([[0.5, -1.0, 2.0], [0.1, 0.0, -0.3]], np.float32),
    "b": [np.array([1.0, 2.0], np.float32), np.float32(-0.7)],
}


def _stepped(make: Callable[[Any], Any], steps: int = 4) -> Call:
    """The parameters after some steps on a bowl that is steeper in some directions."""

    def call(library: Library) -> Any:
        jnp = library.numpy
        init, update, get_params = make(library.optimizers)

        def loss(params: Any) -> Any:
            bowl = jnp.sum(jnp.array([1.0, 3.0, 0.1]) * params["w"] ** 2)
            return bowl + jnp.sum((params["b"][0] - 1) ** 4) + params["b"][1] ** 2

        state = init(_PARAMS)
        for i in range(steps):
            state = update(i, library.jax.grad(loss)(get_params(state)), state)
        return library.jax.tree.leaves(get_params(state))

    return call


STEPS: dict[str, Call] = {
    "sgd": _stepped(lambda o: o.sgd(0.1)),
    "momentum": _stepped(lambda o: o.momentum(0.1, 0.9)),
    "nesterov": _stepped(lambda o: o.nesterov(0.1, 0.9)),
    "adagrad": _stepped(lambda o: o.adagrad(0.1)),
    "rmsprop": _stepped(lambda o: o.rmsprop(0.1)),
    "rmsprop_momentum": _stepped(lambda o: o.rmsprop_momentum(0.1)),
    "adam": _stepped(lambda o: o.adam(0.1)),
    "adam with other numbers": _stepped(lambda o: o.adam(0.1, 0.8, 0.99, 1e-3)),
    "adamax": _stepped(lambda o: o.adamax(0.1)),
    "sm3": _stepped(lambda o: o.sm3(0.1)),
    "sgd exponential_decay": _stepped(lambda o: o.sgd(o.exponential_decay(0.1, 2, 0.5))),
    "sgd inverse_time_decay": _stepped(lambda o: o.sgd(o.inverse_time_decay(0.1, 2, 0.5))),
    "sgd staircase": _stepped(lambda o: o.sgd(o.inverse_time_decay(0.1, 2, 0.5, True))),
    "sgd polynomial_decay": _stepped(lambda o: o.sgd(o.polynomial_decay(0.1, 2, 0.01, 2.0))),
    "sgd piecewise_constant": _stepped(
        lambda o: o.sgd(o.piecewise_constant([1, 2], [1e-1, 1e-2, 0]))
    ),
    "clip_grads": lambda library: library.jax.tree.leaves(
        library.optimizers.clip_grads(_PARAMS, 1.5)
    ),
    "clip_grads small": lambda library: library.jax.tree.leaves(
        library.optimizers.clip_grads(_PARAMS, 100.0)
    ),
    "l2_norm": lambda library: [library.optimizers.l2_norm(_PARAMS)],
}


def _pendulum(y: Any, t: Any, damping: Any, gravity: Any) -> Any:
    return {"angle": y["speed"], "speed": -damping * y["speed"] - gravity * y["angle"]}


def _followed(library: Library, **options: float) -> Any:
    times = library.numpy.linspace(0.0, 3.0, 5)
    start = {"angle": 1.0, "speed": 0.0}
    return library.ode.odeint(_pendulum, start, times, 0.3, 2.0, **options)


def _hunted(library: Library) -> Any:
    jnp = library.numpy

    def slope(y: Any, t: Any, a: Any, b: Any) -> Any:
        hares, lynxes = y
        return jnp.stack([a * hares - b * hares * lynxes, b * hares * lynxes / 4 - b * lynxes])

    def loss(start: Any, times: Any, a: Any, b: Any) -> Any:
        return jnp.sum(library.ode.odeint(slope, start, times, a, b)[1:] ** 2)

    start, times = jnp.array([1.0, 0.5]), jnp.array([0.0, 1.0, 2.5])
    return library.jax.grad(loss, argnums=(0, 1, 2, 3))(start, times, 1.1, 0.4)


def _many(library: Library) -> Any:
    jnp, odeint = library.numpy, library.ode.odeint
    times = jnp.array([0.0, 0.5, 1.0])
    return library.jax.vmap(lambda rate: odeint(lambda y, t: -rate * y * t, 1.0, times))(
        jnp.array([0.1, 1.0, 10.0])
    )


def _turning(library: Library) -> Any:
    times = library.numpy.array([0.0, 1.0, 2.0])
    return library.ode.odeint(lambda y, t: 1j * y, 1.0 + 0j, times)


SOLUTIONS: dict[str, Call] = {
    "pendulum": _followed,
    "pendulum, coarse": lambda library: _followed(library, rtol=1e-3, atol=1e-3),
    "pendulum, short steps": lambda library: _followed(library, hmax=0.05),
    "gradients": _hunted,
    "batch": _many,
    "complex": _turning,
}

CALLS = {"layers": LAYERS, "steps": STEPS, "solutions": SOLUTIONS}


def outcome(library: Library, call: Call) -> list[np.ndarray]:
    """All arrays that a call returns."""
    return [np.asarray(leaf) for leaf in library.jax.tree.leaves(call(library))]
