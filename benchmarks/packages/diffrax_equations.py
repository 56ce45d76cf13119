"""Differential equations: adaptive, stiff and stochastic ones, and gradients by three adjoints."""

import diffrax
import equinox as eqx
import figures
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_enable_x64", True)


def field(t, y, args):
    prey, hunters = y
    a, b, c, d = args
    return jnp.stack([a * prey - b * prey * hunters, -c * hunters + d * prey * hunters])


def solved(args, adjoint, solver=None, saveat=None):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5() if solver is None else solver,
        t0=0.0,
        t1=5.0,
        dt0=0.1,
        y0=jnp.array([1.0, 0.5]),
        args=args,
        saveat=saveat or diffrax.SaveAt(ts=jnp.linspace(0, 5, 6)),
        stepsize_controller=diffrax.PIDController(rtol=1e-7, atol=1e-9),
        adjoint=adjoint,
    )


class Neural(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, ts, y0):
        out = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: self.mlp(y)),
            diffrax.Heun(),
            ts[0],
            ts[-1],
            0.25,
            y0,
            saveat=diffrax.SaveAt(ts=ts),
        )
        return out.ys


def main():
    args = jnp.array([1.1, 0.4, 0.4, 0.1])
    told = {}
    adjoints = {
        "checkpointed": diffrax.RecursiveCheckpointAdjoint(),
        "direct": diffrax.DirectAdjoint(),
        "backsolve": diffrax.BacksolveAdjoint(),
    }
    for name, adjoint in adjoints.items():
        value, grads = jax.jit(
            jax.value_and_grad(lambda args, adjoint=adjoint: solved(args, adjoint).ys[-1].sum())
        )(args)
        told[name] = [value, grads]
    usual = diffrax.RecursiveCheckpointAdjoint()
    told["implicit"] = solved(args, usual, diffrax.Kvaerno5()).ys
    told["batch"] = jax.vmap(lambda s: solved(s * args, usual).ys[-1])(jnp.array([0.9, 1.1]))
    steps = solved(args, usual, diffrax.Dopri5(), diffrax.SaveAt(t1=True)).stats["num_steps"]
    told["steps"] = steps
    dense = solved(args, usual, saveat=diffrax.SaveAt(dense=True))
    told["dense"] = jax.vmap(dense.evaluate)(jnp.array([0.3, 2.2]))

    motion = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(0))
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, args: -y),
        diffrax.ControlTerm(lambda t, y, args: 0.3 * y, motion),
    )
    told["stochastic"] = diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.05, 1.0).ys

    model = Neural(eqx.nn.MLP(2, 2, 8, 1, jnp.tanh, key=jax.random.key(1)))
    ts = jnp.linspace(0, 2, 5)
    aim = jnp.stack([jnp.cos(ts), jnp.sin(ts)], 1)
    optimizer = optax.adam(3e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state):
        value, grads = eqx.filter_value_and_grad(
            lambda model: jnp.mean((model(ts, aim[0]) - aim) ** 2)
        )(model)
        updates, state = optimizer.update(grads, state)
        return eqx.apply_updates(model, updates), state, value

    losses = []
    for _ in range(10):
        model, state, value = step(model, state)
        losses.append(value)
    told["neural"] = losses
    return told


figures.show(main)
