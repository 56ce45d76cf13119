"""Checkpoints of orbax: a training loop on 8 devices that ends and goes on, placed otherwise."""

import tempfile

import figures
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)


def trained(state, optimizer, x, y, steps):
    @jax.jit
    def step(state):
        def loss(params):
            return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)

        value, grads = jax.value_and_grad(loss)(state["params"])
        updates, memory = optimizer.update(grads, state["memory"])
        params = optax.apply_updates(state["params"], updates)
        return {"params": params, "memory": memory, "count": state["count"] + 1}, value

    for _ in range(steps):
        state, value = step(state)
    return state, value


def main():
    axis_types = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=axis_types)
    by_rows, by_columns = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y", "x"))
    x = jax.random.normal(jax.random.key(0), (32, 8))
    y = jnp.sin(x[:, 0])
    params = {
        "w": jax.device_put(jax.random.normal(jax.random.key(1), (8, 16)) / 3, by_rows),
        "v": jnp.ones(16) / 16,
    }
    optimizer = optax.adam(1e-2)
    state = {"params": params, "memory": optimizer.init(params), "count": 0}
    state, before = trained(state, optimizer, x, y, 5)

    folder = tempfile.mkdtemp()
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=1)
    with ocp.CheckpointManager(folder, options=options) as manager:
        for number in range(3):
            manager.save(number, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        kept = manager.all_steps()

        def elsewhere(leaf):
            if getattr(leaf, "shape", None) != (8, 16):
                return leaf
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=by_columns)

        template = jax.tree.map(elsewhere, state)
        read = manager.restore(2, args=ocp.args.StandardRestore(template))
    same = jax.tree.map(lambda a, b: bool((jnp.asarray(a) == jnp.asarray(b)).all()), state, read)
    on = read["params"]["w"].sharding
    read, after = trained(read, optimizer, x, y, 5)
    return {
        "losses": [before, after],
        "kept": sorted(kept),
        "same": all(jax.tree.leaves(same)),
        "placed": on.is_equivalent_to(by_columns, 2),
        "count": read["count"],
    }


figures.show(main)
