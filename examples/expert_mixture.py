"""A mixture of experts: each device holds one, and tokens travel to the expert that suits them.

A router scores the experts for each token, and the token goes to the best one. Every device sends a
fixed number of places to every expert: one all-to-all takes tokens there, another brings results
back. Tokens that find no place left keep what they have. The gradient travels the same ways.

W. Fedus, B. Zoph and N. Shazeer, "Switch transformers: scaling to trillion parameter models with
simple and efficient sparsity", 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import minijax.numpy as jnp
import placements
from adam import AdamState, adam_init, adam_update
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
TOKENS = 64
"""On each device."""
PLACES = 16
"""For each expert, from each device: twice what a fair share would need."""
WIDTH = 16
HIDDEN = 32
RATE = 0.01
BALANCE = 0.01


class Model(NamedTuple):
    """The router's matrix, which all devices have, and the experts' [expert, …]."""

    router: jax.Array
    up: jax.Array
    down: jax.Array


SPECS = Model(router=P(), up=P("expert"), down=P("expert"))


class Result(NamedTuple):
    """The losses, on all devices and on one; and what share of tokens found a place at the end."""

    losses: list[float]
    alone: list[float]
    placed: float


def main(steps: int = 60) -> Result:
    """Trains on all devices and on one."""
    step, (model, state, batch) = workload()
    # Tokens go there and come back, then what is owed to the results goes there; nothing is owed to
    # the tokens. The loss and its balance are summed up together, and the router's gradient.
    sent = jax.testing.assert_collectives(step, exactly=True, all_to_all=3, all_reduce=2)(
        model, state, batch
    )
    heading(
        "A mixture of experts",
        f"""{DEVICES} devices with an expert and {TOKENS} tokens each; every expert has {PLACES}
        places for the tokens of every device.""",
    )
    show(Panel("the model", placements.table(model)))
    show(Panel("collectives of a training step", placements.sent(sent)))

    losses, share = trained(step, model, state, batch, steps)
    model, batch = problem()
    alone, _ = trained(plain_step, model, adam_init(model), batch, steps)
    np.testing.assert_allclose(losses, alone, rtol=2e-3)
    paragraph(
        f"""The loss falls from {losses[0]:.4f} to {losses[-1]:.4f}, step by step as on one device.
        In the end {share:.1%} of all tokens find a place."""
    )
    return Result(losses, alone, share)


def workload() -> tuple[Callable[..., tuple], tuple[Model, AdamState, tuple[jax.Array, jax.Array]]]:
    """The training step on all devices; a model, the state of Adam, and a batch."""
    mesh = jax.make_mesh((DEVICES,), ("expert",))
    model, batch = problem()
    model = jax.device_put(model, jax.tree.map(lambda spec: NamedSharding(mesh, spec), SPECS))
    batch = jax.device_put(batch, NamedSharding(mesh, P("expert")))
    loss = jax.shard_map(split_loss, mesh=mesh, in_specs=(SPECS, P("expert")), out_specs=(P(), P()))
    return jax.jit(stepping(loss)), (model, adam_init(model), batch)


def trained(
    step: Callable[..., tuple], model: Model, state: AdamState, batch: object, steps: int
) -> tuple[list[float], float]:
    """The loss of each step, and the share of tokens that found a place in the last one."""
    losses, share = [], 0.0
    for _ in range(steps):
        (value, share), model, state = step(model, state, batch)
        losses.append(float(value))
    return losses, float(share)


def stepping(loss: Callable[..., tuple[jax.Array, jax.Array]]) -> Callable[..., tuple]:
    """A step of Adam for a loss that comes with the share of tokens that found a place."""

    def step(model: Model, state: AdamState, batch: object) -> tuple:
        result, gradient = jax.value_and_grad(loss, has_aux=True)(model, batch)
        return result, *adam_update(model, gradient, state, RATE)

    return step


def split_loss(model: Model, batch: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The loss of all devices' tokens, from this device's expert and tokens."""
    x, wanted = batch

    def at_experts(inbox: jax.Array) -> jax.Array:
        # [expert, place, …] of this device's tokens becomes [device, place, …] of this expert's.
        inbox = lax.all_to_all(inbox, "expert", split_axis=0, concat_axis=0)
        out = jnp.maximum(inbox @ model.up[0], 0) @ model.down[0]
        return lax.all_to_all(out, "expert", split_axis=0, concat_axis=0)

    out, route = mixed(model.router, x, at_experts)
    # How many tokens an expert gets, and how much the router likes it, over all devices.
    chosen, liked = lax.pmean((route.chosen.mean(axis=0), route.likes.mean(axis=0)), "expert")
    error, share = lax.pmean((jnp.mean((out - wanted) ** 2), route.share), "expert")
    return error + BALANCE * DEVICES * (chosen * liked).sum(), share


class Route(NamedTuple):
    """Where tokens go.

    Attributes:
        chosen: 1 where [token, expert] go together.
        likes: the router's probabilities [token, expert].
        share: of the tokens, those that found a place.
    """

    chosen: jax.Array
    likes: jax.Array
    share: jax.Array


def mixed(
    router: jax.Array, x: jax.Array, at_experts: Callable[[jax.Array], jax.Array]
) -> tuple[jax.Array, Route]:
    """Tokens [token, feature] of one device, each added to what its expert makes of it."""
    likes = jax.nn.softmax(x @ router)
    best = jnp.argmax(likes, axis=-1)
    chosen = jax.nn.one_hot(best, DEVICES)
    place = (jnp.cumsum(chosen, axis=0) * chosen).sum(axis=-1).astype(jnp.int32) - 1
    # Tokens beyond the last place are in no row of `one_hot`, and so travel nowhere.
    travels = chosen[:, :, None] * jax.nn.one_hot(place, PLACES)[:, None, :]
    back = at_experts(jnp.einsum("tep,td->epd", travels, x))
    weight = jnp.take_along_axis(likes, best[:, None], axis=-1)
    out = x + weight * jnp.einsum("tep,epd->td", travels, back)
    return out, Route(chosen, likes, travels.sum() / len(x))


@jax.jit
@stepping
def plain_step(model: Model, batch: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """The same on one device: tokens in groups, all experts at hand."""
    x, wanted = (each.reshape(DEVICES, TOKENS, WIDTH) for each in batch)

    def at_experts(inbox: jax.Array) -> jax.Array:
        hidden = jnp.maximum(jnp.einsum("epd,edh->eph", inbox, model.up), 0)
        return jnp.einsum("eph,ehd->epd", hidden, model.down)

    out, route = jax.vmap(lambda group: mixed(model.router, group, at_experts))(x)
    chosen, liked = route.chosen.mean(axis=(0, 1)), route.likes.mean(axis=(0, 1))
    error = jnp.mean((out - wanted) ** 2)
    return error + BALANCE * DEVICES * (chosen * liked).sum(), route.share.mean()


def problem() -> tuple[Model, tuple[jax.Array, jax.Array]]:
    """Random parameters, and tokens of eight kinds, each with a map of its own to be learnt."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.normal(size=shape)).astype(np.float32)

    model = Model(
        router=normal(WIDTH, DEVICES, scale=0.1),
        up=normal(DEVICES, WIDTH, HIDDEN, scale=WIDTH**-0.5),
        down=normal(DEVICES, HIDDEN, WIDTH, scale=0.1 * HIDDEN**-0.5),
    )
    kind = rng.integers(0, DEVICES, size=DEVICES * TOKENS)
    x = normal(DEVICES, WIDTH)[kind] + normal(DEVICES * TOKENS, WIDTH, scale=0.5)
    maps = normal(DEVICES, WIDTH, WIDTH, scale=WIDTH**-0.5)
    return model, (x, x + np.einsum("td,tde->te", x, maps[kind]))


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
