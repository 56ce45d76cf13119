"""Writes programs that JAX 0.10.2 has exported, with their arguments and results.

    export XLA_FLAGS=--xla_force_host_platform_device_count=8
    .venv-jax/bin/python benchmarks/record_exports.py tests/export/recorded

Each program is `<name>.bin`, as JAX's `serialize` gives it, and `<name>.npz`: its flat arguments
`in0`, `in1`, … and its flat results `out0`, `out1`, …
"""

import collections
import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

# No folders of the machine in the files.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
FOLDER = pathlib.Path(sys.argv[1])
MESH = jax.make_mesh((8,), ("x",))
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
V = np.arange(8, dtype=np.float32)


def write(name, function, *args, specs=None, vjp_order=0, run=None, **options):
    """Exports a function and writes it with its results."""
    made = export.export(jax.jit(function), **options)(*(specs or args))
    (FOLDER / f"{name}.bin").write_bytes(made.serialize(vjp_order=vjp_order))
    outs = jax.tree.leaves((run or made.call)(*args))
    values = {f"in{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(args))}
    for i, x in enumerate(outs):
        # Files of NumPy know no bfloat16.
        values[f"out{i}"] = np.asarray(x.astype(np.float32) if x.dtype == jnp.bfloat16 else x)
    np.savez(FOLDER / f"{name}.npz", **values)


def loss(weights, x):
    """The loss of a small network."""
    hidden = jnp.tanh(x @ weights["in"])
    return jnp.mean((hidden @ weights["out"]) ** 2)


def collatz(n):
    """How many steps it takes to come to 1."""
    return lax.while_loop(
        lambda s: s[0] != 1,
        lambda s: (lax.cond(s[0] % 2 == 0, lambda k: k // 2, lambda k: 3 * k + 1, s[0]), s[1] + 1),
        (n, 0),
    )


SPLIT = P("x")


def per_device(function, outs=SPLIT):
    """A function of the pieces on each device."""
    return jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=outs)


def sharded(*shape):
    """The description of an array split over all devices."""
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(MESH, P("x")))


def placed(x):
    """An array split over all devices."""
    return jax.device_put(x, NamedSharding(MESH, P("x")))


def ring(x):
    """Pieces from the neighbour, and from all."""
    there = lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)])
    return there + lax.all_gather(x, "x").sum() + lax.axis_index("x")


def of_one_device():
    """Programs of one device."""
    weights = {"in": np.full((3, 4), 0.3, np.float32), "out": np.full((4, 1), -0.5, np.float32)}
    write("arithmetic", lambda x: jnp.sin(x) * 2 + jnp.exp(-x) / (1 + x**2), X)
    write("gradient", jax.grad(loss), weights, X)
    write("derivatives", lambda x: jnp.sum(jnp.sin(x) * x), X, vjp_order=2)
    write("scan", lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(3), x), X)
    write("while", collatz, np.int32(27))
    write("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(1), X)
    write("update", lambda x, i: x.at[i].add(10.0)[::-1, 1:], X, np.int32(1))
    write(
        "random",
        lambda data: jax.random.normal(jax.random.wrap_key_data(data), (5,)),
        np.array([0, 42], np.uint32),
    )
    key = jax.ShapeDtypeStruct((), jax.random.key(0).dtype)
    write(
        "keys",
        lambda k: jax.random.uniform(jax.random.split(k, 3)[1], (4,)),
        np.array([0, 7], np.uint32),
        specs=(key,),
        run=lambda d: jax.random.uniform(jax.random.split(jax.random.wrap_key_data(d), 3)[1], (4,)),
    )
    write("sort", lambda x: (jnp.sort(x), jnp.argsort(-x), lax.top_k(x, 2)), X)
    square = X.T @ X + np.eye(3, dtype=np.float32)
    write("solve", lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.cholesky(a)), square, X[0])
    write(
        "eigenvalues",
        lambda a: (jnp.linalg.eigvalsh(a), jnp.linalg.svd(a, compute_uv=False)),
        square,
    )
    image = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    write(
        "convolution",
        lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
        image,
        np.ones((3, 2, 2, 2), np.float32),
    )
    write("fourier", lambda x: jnp.abs(jnp.fft.rfft(x)), V)
    write("short_types", lambda x: (x.astype(jnp.bfloat16), x > 0, x.astype(jnp.int8)), X)
    write(
        "trees",
        lambda t: collections.OrderedDict(b=(t["b"], None), a=[t["a"], {"z": t["a"], "y": t["b"]}]),
        collections.OrderedDict(a=X, b=V),
    )


def over_devices():
    """Programs of eight devices."""
    write(
        "psum",
        per_device(lambda x: lax.psum(x, "x"), P()),
        V,
        specs=(sharded(8),),
        run=lambda x: jax.jit(per_device(lambda x: lax.psum(x, "x"), P()))(placed(x)),
    )

    write(
        "ring",
        per_device(ring),
        V,
        specs=(sharded(8),),
        run=lambda x: jax.jit(per_device(ring))(placed(x)),
    )
    abstract = NamedSharding(AbstractMesh((8,), ("x",)), P("x"))
    product = functools.partial(jnp.einsum, "ij,kj->ik")
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    both = jax.ShapeDtypeStruct((8, 3), np.float32, sharding=abstract)
    write("partitioned", product, rows, rows, specs=(both, both), run=product)


def others():
    """Programs with sizes that are symbols, and of several platforms."""
    n, m = export.symbolic_shape("n, m", constraints=["n >= 2"])
    of = jax.ShapeDtypeStruct
    write("symbolic", lambda x: jnp.sin(x).mean(0) + x.shape[0], X, specs=(of((n, 3), X.dtype),))
    write(
        "symbolic_product",
        lambda x, y: (x @ y)[1:] + jnp.arange(y.shape[1]),
        X,
        X.T.copy(),
        specs=(of((n, m), X.dtype), of((m, n), X.dtype)),
    )
    write(
        "symbolic_reshape",
        lambda x: jnp.concatenate([x.reshape(-1), jnp.zeros(x.shape[0])]),
        X,
        specs=(of((n, m), X.dtype),),
        vjp_order=1,
    )
    write(
        "platforms",
        lambda x: lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos),
        X,
        platforms=("cuda", "cpu"),
    )
    inner = export.export(jax.jit(jnp.cos))(X)
    write("nested", lambda x: inner.call(x) * 2, X)


of_one_device()
over_devices()
others()
