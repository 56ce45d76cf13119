"""Layers are those of JAX's stax: shapes, parameters, outputs and gradients of recorded figures."""

from __future__ import annotations

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.example_libraries import optimizers, stax
from tests.experimental.example_libraries import recorded, samples

pytestmark = pytest.mark.feature("EX-11")


@pytest.mark.parametrize("name", samples.LAYERS)
def test_layer_equals_that_of_jax(name: str) -> None:
    recorded.check("layers", name, rtol=1e-4, atol=2e-5)


def test_every_name_of_jax_is_there() -> None:
    also = ("elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax")
    more = ("normal", "ones", "randn", "relu", "selu", "sigmoid", "softmax", "softplus", "zeros")
    wanted = {*recorded.FIGURES["names"]["stax"], *also, *more, "Conv", "ConvTranspose"}

    assert not [name for name in sorted(wanted) if not hasattr(stax, name)]


def test_open_batch_stays_open_through_a_network() -> None:
    network = samples._network(stax)

    shape, _ = network[0](jax.random.key(0), (-1, 28, 28, 3))

    assert shape == (-1, 5)


def test_layers_unpack_as_pairs() -> None:
    init_fun, apply_fun = stax.Dense(2)
    _, params = init_fun(jax.random.PRNGKey(0), (-1, 3))

    assert apply_fun(params, np.ones((4, 3), np.float32)).shape == (4, 2)


@pytest.mark.feature("EX-12")
def test_network_learns_under_jit_and_scan() -> None:
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    _, params = init(jax.random.key(0), (-1, 1))
    x = jnp.linspace(-2, 2, 64)[:, None]
    opt_init, opt_update, get_params = optimizers.adam(3e-2)

    def loss(params):
        return jnp.mean((apply(params, x) - jnp.sin(2 * x)) ** 2)

    def step(state, i):
        value, grads = jax.value_and_grad(loss)(get_params(state))
        return opt_update(i, grads, state), value

    _, values = jax.jit(lambda state: jax.lax.scan(step, state, jnp.arange(400)))(opt_init(params))

    assert values[-1] < 0.02 * values[0]


def test_dropout_without_a_key_names_the_remedy() -> None:
    _, apply = stax.Dropout(0.5)

    with pytest.raises(ValueError, match=r"stax\.Dropout: .*no key.[\s\S]*rng=key"):
        apply((), jnp.ones(3))


def test_what_is_no_layer_is_named() -> None:
    with pytest.raises(TypeError, match=r"stax\.serial: layer 1 is no pair"):
        stax.serial(stax.Dense(3), stax.Dense)
    with pytest.raises(TypeError, match=r"stax\.parallel: layer 0 is no pair"):
        stax.parallel([stax.Relu])


@pytest.mark.parametrize("make", [stax.Conv, stax.ConvTranspose])
def test_unknown_padding_is_refused(make) -> None:
    with pytest.raises(ValueError, match=r"unknown padding 'CIRCULAR'[\s\S]*'SAME', 'VALID'"):
        make(3, (2, 2), padding="CIRCULAR")


def test_inputs_of_another_rank_are_refused() -> None:
    init, _ = stax.Conv(3, (2, 2))

    with pytest.raises(ValueError, match="another rank than the dimension numbers"):
        init(jax.random.key(0), (-1, 28, 28))
