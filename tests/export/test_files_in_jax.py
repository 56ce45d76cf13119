"""Files of ours run in JAX, in a process of its own."""

import pathlib
import subprocess

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import export, lax

_PYTHON = pathlib.Path(__file__).parents[2] / ".venv-jax/bin/python"
_PROGRAM = """
import pathlib, sys
import jax, numpy as np
from jax import export
for name in sys.argv[2:]:
    folder = pathlib.Path(sys.argv[1], name)
    program = export.deserialize(bytearray((folder / "program").read_bytes()))
    with np.load(folder / "arguments.npz") as given:
        leaves = [given[key] for key in given]
    if program.nr_devices > 1:
        mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        leaves = list(map(jax.device_put, leaves, program.in_shardings_jax(mesh)))
    args, kwargs = jax.tree.unflatten(program.in_tree, leaves)
    outs = jax.tree.leaves(program.call(*args, **kwargs))
    if program.has_vjp():
        cts = [np.ones(x.shape, x.dtype) for x in outs]
        outs += [x for x in program.vjp().call(*leaves, *cts) if x.dtype == np.float32]
    np.savez(folder / "results.npz", *map(np.asarray, outs))
"""

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
S = X.T @ X + np.eye(3, dtype=np.float32)
(N,) = export.symbolic_shape("n", constraints=["n >= 2"])


def loss(weights, x):
    return jnp.mean(jnp.tanh(x @ weights["in"]) ** 2)


def collatz(n):
    step = lambda k: lax.cond(k % 2 == 0, lambda k: k // 2, lambda k: 3 * k + 1, k)
    return lax.while_loop(lambda s: s[0] != 1, lambda s: (step(s[0]), s[1] + 1), (n, 0))


def draws(data):
    return jax.random.normal(jax.random.wrap_key_data(data), (5,))


def per_device(x):
    mesh = jax.sharding.AbstractMesh((8,), ("x",))
    there = lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]) + lax.psum(x, "x")
    return jax.shard_map(there, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))(x)


def described(*shape):
    return jax.ShapeDtypeStruct(shape, np.float32)


SPLIT = jax.NamedSharding(jax.sharding.AbstractMesh((8,), ("x",)), jax.P("x"))
V = np.arange(8, dtype=np.float32)
PROGRAMS = {
    "arithmetic": (lambda x: jnp.sin(x) * 2 + jnp.exp(-x), (X,), None),
    "gradient": (jax.grad(loss), ({"in": np.full((3, 4), 0.3, np.float32)}, X), None),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(3), x), (X,), None),
    "while": (collatz, (np.int32(27),), None),
    "random": (draws, (np.array([0, 42], np.uint32),), None),
    "sort": (lambda x: (jnp.sort(x), jnp.argmax(x, 1)), (X,), None),
    "solve": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.eigvalsh(a)), (S,), None),
    "updates": (lambda x: jnp.asarray(x).at[1].add(2.0)[::-1, 1:], (X,), None),
    "trees": (lambda t: {"b": (t["a"], None), "a": [t["a"]]}, ({"a": X},), None),
    "collectives": (per_device, (V,), (jax.ShapeDtypeStruct((8,), np.float32, sharding=SPLIT),)),
    "hessian": (jax.hessian(lambda x: jnp.sum(jnp.cos(x) * x**2)), (X[0],), None),
    "batch": (jax.vmap(lambda x, y: jnp.dot(x, y), in_axes=(0, None)), (X, X[0]), None),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (np.int32(2), X), None),
    "convolution": (lambda x: jnp.convolve(x.ravel(), x[0], mode="same"), (X,), None),
    "fourier": (lambda x: jnp.abs(jnp.fft.rfft(x)), (X,), None),
    "gather": (lambda x, i: jnp.take(x, i, axis=1), (X, np.array([2, 0, 0])), None),
    "attention": (lambda x: jax.nn.softmax(x @ x.T / 2.0) @ x, (X,), None),
    "integers": (lambda n: (n // 3, n % 5, n << 2, n.astype(np.uint8)), (np.arange(9),), None),
    "symbols": (lambda x: (jnp.sin(x) * x.shape[0])[1:].reshape(-1), (X,), (described(N, 3),)),
    "symbolic_sums": (lambda x: (jnp.cumsum(x, 0), jnp.var(x, 0)), (X,), (described(N, 3),)),
}


@pytest.mark.feature("EX-02")
@pytest.mark.slow
def test_programs_run_in_jax(tmp_path):
    if not _PYTHON.exists():
        pytest.skip("needs JAX and flatbuffers in .venv-jax: make bench installs it")
    check_in_jax(_PYTHON, tmp_path)


def check_in_jax(python, tmp_path):
    """Writes all programs, and compares what JAX makes of them with what is computed here."""
    expected = {}
    for name, (function, args, specs) in PROGRAMS.items():
        folder = tmp_path / name
        folder.mkdir()
        program = export.export(jax.jit(function))(*(specs or args))
        is_smooth = name in {"arithmetic", "symbols"}
        (folder / "program").write_bytes(program.serialize(vjp_order=int(is_smooth)))
        leaves = jax.tree.leaves(args)
        np.savez(folder / "arguments.npz", *leaves)
        with jax.cpu_devices(8):
            if name == "collectives":
                mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
                leaves = [jax.device_put(V, program.in_shardings_jax(mesh)[0])]
            given = jax.tree.unflatten(jax.tree.structure(args), leaves)
            outs = jax.tree.leaves(jax.jit(function)(*given))
            cts = [np.ones(x.shape, x.dtype) for x in outs]
            outs += list(program.vjp().call(*leaves, *cts)) if is_smooth else []
            expected[name] = list(map(np.asarray, outs))
    done = subprocess.run(
        [str(python), "-c", _PROGRAM, str(tmp_path), *PROGRAMS],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"},
    )
    if "install 'flatbuffers'" in done.stderr:
        pytest.skip("needs flatbuffers: .venv-jax/bin/pip install flatbuffers")
    assert done.returncode == 0, done.stderr[-3000:]
    for name, outs in expected.items():
        with np.load(tmp_path / name / "results.npz") as found:
            for i, out in enumerate(outs):
                np.testing.assert_allclose(found[f"arr_{i}"], out, rtol=1e-5, atol=1e-5)
