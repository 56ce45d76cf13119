"""minijax and JAX in one process, loaded in the order that its argument names."""

import contextlib
import copy
import importlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS = np.arange(8, dtype=np.float32)


def split(jax: Any) -> Any:
    """An array over all devices, whose pieces have been asked for."""
    mesh = jax.make_mesh((len(jax.devices()),), ("x",))
    made = jax.device_put(ROWS, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
    assert [x.data.sum() for x in made.addressable_shards] == [1, 5, 9, 13]
    return made


def load(library: str) -> Any:
    module = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    return module


def as_users_do(jax: Any, x: Any) -> None:
    """Methods, operators, conversions: of an array that holds 0 to 5 in two rows."""
    assert isinstance(x, jax.Array)
    assert repr(x) == "Array([[0., 1., 2.],\n       [3., 4., 5.]], dtype=float32)"
    assert (2 * x - 1)[1, 2] == 9
    assert (x @ x.T).shape == (2, 2)
    assert x.at[0, 0].set(5).sum() == abs(-x).sum() + 5 == 20
    assert (x.shape, x.ndim, x.size, x.weak_type, len(x)) == ((2, 3), 2, 6, False, 2)
    assert [row.tolist() for row in x] == x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (float(x[1, 1]), int(x[1, 0]), bool(x[0, 1] == 1)) == (4, 3, True)
    assert np.asarray(x).sum() == np.from_dlpack(x).sum() == np.asarray(memoryview(x)).sum() == 15
    assert np.asarray(x.astype("bfloat16")).dtype.name == "bfloat16"
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.addressable_data(0)):
        assert type(twin.aval) is type(x.aval)
        assert twin.tolist() == x.tolist()
    x.copy_to_host_async()
    assert x.block_until_ready().is_ready()
    assert x.devices() == {jax.devices()[0]}


def as_programs_do(jax: Any, x: Any) -> None:
    """Calls, derivatives, batches, donation and deletion."""
    double = jax.jit(lambda tree: jax.tree.map(lambda y: 2 * y, tree))
    for _ in range(4):
        found = double({"a": x, "b": [x, x]})
    assert found["b"][1].sum() == 30
    assert type(found["a"].aval) is type(x.aval)
    assert jax.grad(lambda y: (y * y).sum())(x)[1, 2] == 10
    assert jax.vmap(lambda row: row.sum())(x).tolist() == [3, 12]
    given, deleted = 1 * x, 1 * x
    assert jax.jit(lambda y: y + 1, donate_argnums=0)(given).sum() == 21
    deleted.delete()
    for gone in (given, deleted):
        assert gone.is_deleted()
        with contextlib.suppress(RuntimeError, ValueError):
            raise AssertionError(gone + 1)
    assert jax.random.normal(jax.random.key(0), (2,)).shape == (2,)


def as_meshes_do(jax: Any, x: Any) -> None:
    """An array over all devices and its pieces."""
    assert jax.jit(lambda y: 2 * y)(x).tolist() == (2 * ROWS).tolist()
    assert [type(piece.data.aval) for piece in x.addressable_shards] == 4 * [type(x.aval)]
    assert x.sum() == pickle.loads(pickle.dumps(x)).sum() == 28
    assert jax.device_put(x, jax.devices()[-1]).tolist() == ROWS.tolist()
    x.delete()
    assert x.is_deleted()


def refuses(function: Callable[..., Any], x: Any) -> None:
    said = ""
    try:
        function(x)
    except TypeError as error:
        said = str(error)
    assert "an array of another library" in said, function


def main(first: str, second: str) -> None:
    early: dict[str, Any] = {}
    for library in (first, second):
        jax = load(library)
        early[library] = jax.numpy.arange(6.0).reshape(2, 3), split(jax)
    ours, theirs = sys.modules["minijax"], sys.modules["jax"]
    for library, (x, rows) in early.items():
        jax = sys.modules[library]
        for y in (x, jax.numpy.arange(6.0).reshape(2, 3)):
            as_users_do(jax, y)
            as_programs_do(jax, y)
        as_meshes_do(jax, split(jax))
        as_meshes_do(jax, rows)
    mine, other = early["minijax"][0], early["jax"][0]
    assert not isinstance(other, ours.Array)
    for function in (ours.numpy.sin, ours.jit(lambda x: x), ours.device_put, mine.__add__):
        refuses(function, other)
    assert ours.numpy.asarray(np.asarray(other)).sum() == 15
    assert theirs.numpy.asarray(np.asarray(mine)).sum() == 15
    assert ours.dlpack.from_dlpack(other).sum() == 15
    assert theirs.dlpack.from_dlpack(mine).sum() == 15


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.write("fine\n")
