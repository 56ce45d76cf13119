"""Files that JAX has written run here, and ours run there."""

import pathlib

import numpy as np
import pytest

import minijax as jax
from minijax import export

_FOLDER = pathlib.Path(__file__).parent / "recorded"
_NAMES = sorted(path.stem for path in _FOLDER.glob("*.bin"))


@pytest.fixture(autouse=True, scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


def recorded(name, folder=_FOLDER):
    """A recorded program, its arguments and its results."""
    exported = export.deserialize((folder / f"{name}.bin").read_bytes())
    with np.load(folder / f"{name}.npz") as values:
        ins, outs = (
            [values[f"{role}{i}"] for i in range(len(values)) if f"{role}{i}" in values]
            for role in ("in", "out")
        )
    return exported, ins, outs


def arguments(exported, leaves):
    """The arguments of a recorded program, placed as it expects."""
    if exported.in_avals[0].dtype.name.startswith("key"):
        leaves = [jax.random.wrap_key_data(leaves[0])]
    if exported.nr_devices > 1:
        kinds = exported._in_named_shardings[0].mesh.axis_types
        mesh = jax.make_mesh((exported.nr_devices,), ("x",), axis_types=kinds)
        leaves = map(jax.device_put, leaves, exported.in_shardings_jax(mesh))
    return jax.tree.unflatten(exported.in_tree, leaves)


def compare(found, expected):
    for one, two in zip(jax.tree.leaves(found), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one).astype(two.dtype), two, rtol=2e-6, atol=2e-6)


def check_results(folder, name):
    exported, ins, outs = recorded(name, folder)
    args, kwargs = arguments(exported, ins)
    compare(exported.call(*args, **kwargs), outs)


@pytest.mark.feature("EX-02")
@pytest.mark.parametrize("name", _NAMES)
def test_program_of_jax_gives_the_results_of_jax(name):
    check_results(_FOLDER, name)


@pytest.mark.feature("EX-02")
@pytest.mark.parametrize("name", _NAMES)
def test_program_of_jax_is_written_as_it_was_read(name):
    first, ins, outs = recorded(name)
    again = export.deserialize(first.serialize(vjp_order=int(first.has_vjp())))
    for field in ("fun_name", "in_avals", "out_avals", "in_tree", "out_tree", "nr_devices"):
        assert str(getattr(first, field)) == str(getattr(again, field))
    args, kwargs = arguments(again, ins)
    compare(jax.jit(again.call)(*args, **kwargs), outs)
