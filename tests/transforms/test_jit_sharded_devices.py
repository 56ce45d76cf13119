"""On which devices a jitted function runs, and what happens where that is contradictory."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax.lowering.device_assignment import DeviceAssignmentMismatchError, MismatchType
from minijax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)
WHOLE = P()


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


def mesh_of(*ids: int) -> Mesh:
    return Mesh(np.array(jax.devices())[list(ids)], "x")


def placed(mesh: Mesh, spec: P = WHOLE) -> NamedSharding:
    return NamedSharding(mesh, spec)


def put(mesh: Mesh, spec: P = WHOLE) -> Any:
    return jax.device_put(X, placed(mesh, spec))


ARG = MismatchType.ARG_SHARDING
IN = MismatchType.IN_SHARDING
OUT = MismatchType.OUT_SHARDING
INSIDE = MismatchType.SHARDING_INSIDE_COMPUTATION
CONTEXT = MismatchType.CONTEXT_DEVICES
TEXTS = {
    ARG: r"argument (a|b) of scaled, f32\[8\], on device ids",
    IN: r"explicit input sharding of argument (a|b) of scaled, f32\[8\], on device ids",
    OUT: r"explicit output sharding of result\['(p|q)'\] of scaled, f32\[8\], on device ids",
    INSIDE: r"sharding_constraint inside jit of scaled, at .*test_jit_sharded_devices.py:\d+",
    CONTEXT: r"jit's context mesh, which set_mesh has put in force around scaled, on device ids",
}


def demand(kinds: tuple[MismatchType, MismatchType], meshes: tuple[Mesh, Mesh]) -> None:
    """Calls a function that one kind wants on the first mesh, and the other on the second."""
    inside = [mesh for kind, mesh in zip(kinds, meshes, strict=True) if kind is INSIDE]

    def scaled(a: Any, b: Any) -> Any:
        for mesh in inside:
            a = jax.lax.with_sharding_constraint(a * 2, placed(mesh, P("x")))
        return {"p": a, "q": b + 1}

    args: list[Any] = [X, X]
    ins: list[Any] = [None, None]
    outs: list[Any] = [None, None]
    context: Any = contextlib.nullcontext()
    for i, (kind, mesh) in enumerate(zip(kinds, meshes, strict=True)):
        if kind is ARG:
            args[i] = put(mesh)
        elif kind is IN:
            ins[i] = placed(mesh)
        elif kind is OUT:
            outs[i] = placed(mesh)
        elif kind is CONTEXT:
            context = jax.set_mesh(mesh)
    options: dict[str, Any] = {}
    if IN in kinds:
        options["in_shardings"] = tuple(ins)
    if OUT in kinds:
        options["out_shardings"] = dict(zip("pq", outs, strict=True))
    f = jax.jit(scaled, **options)
    with context:
        f(*args)


PAIRS = [
    pair
    for pair in itertools.combinations_with_replacement(MismatchType, 2)
    if pair != (CONTEXT, CONTEXT)
]


@pytest.mark.feature("JT-05")
@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_kinds_that_agree_run(kinds: Any) -> None:
    demand(kinds, (mesh_of(0, 1), mesh_of(0, 1)))


@pytest.mark.feature("JT-05", "JT-06")
@pytest.mark.parametrize("kinds", PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
@pytest.mark.parametrize("other", [(2, 3), (1, 0), (0, 1, 2, 3)], ids=str)
def test_kinds_that_disagree_are_both_named(kinds: Any, other: tuple[int, ...]) -> None:
    with pytest.raises(DeviceAssignmentMismatchError) as caught:
        demand(kinds, (mesh_of(0, 1), mesh_of(*other)))

    error = caught.value
    text = str(error)
    assert set(error.kinds) == set(kinds)
    for kind in kinds:
        assert re.search(TEXTS[kind], text)
    assert "device ids [0, 1] of platform CPU" in text
    assert f"device ids {list(other)} of platform CPU" in text


def test_mismatch_is_a_value_error_and_shows_the_users_line() -> None:
    with pytest.raises(ValueError, match=r"at +test_jit_sharded_devices.py:\d+ in "):
        jax.jit(lambda a, b: a + b)(put(mesh_of(0, 1)), put(mesh_of(2, 3)))


def test_mismatch_names_paths_in_trees() -> None:
    def f(a: Any, *rest: Any, tree: Any) -> Any:
        return a + rest[1] + tree["k"]

    with pytest.raises(ValueError, match=r"argument a of f(.|\n)*argument tree\['k'\] of f"):
        jax.jit(f)(put(mesh_of(0, 1)), X, X, tree={"k": put(mesh_of(2, 3))})
    with pytest.raises(ValueError, match=r"argument a of f(.|\n)*argument rest\[1\] of f"):
        jax.jit(f)(put(mesh_of(0, 1)), X, put(mesh_of(2, 3)), tree={"k": X})


def test_mismatch_in_an_eager_operation_names_it() -> None:
    with pytest.raises(ValueError, match="argument x of add, f32"):
        put(mesh_of(0, 1)) + put(mesh_of(2, 3))


def test_placement_inside_an_inner_function_is_found() -> None:
    @jax.jit
    def inner(a: Any) -> Any:
        return jax.lax.with_sharding_constraint(a, placed(mesh_of(2, 3), P("x")))

    def body(carry: Any, _: Any) -> Any:
        return inner(carry), None

    with pytest.raises(ValueError, match=r"sharding_constraint inside jit of .* in .*inner"):
        jax.jit(lambda a: jax.lax.scan(body, a, None, length=2)[0])(put(mesh_of(0, 1)))


@pytest.mark.feature("JT-03")
def test_nobody_asks_where_unused_arguments_are() -> None:
    f = jax.jit(lambda a, b: a * 2)

    out = f(put(mesh_of(0, 1)), put(mesh_of(2, 3)))

    assert out.sharding.mesh is mesh_of(0, 1)
    assert not f(X, put(mesh_of(2, 3))).committed


@pytest.mark.feature("JT-03")
def test_keep_unused_asks_where_all_arguments_are() -> None:
    f = jax.jit(lambda a, b: a * 2, keep_unused=True)

    with pytest.raises(ValueError, match="argument b"):
        f(put(mesh_of(0, 1)), put(mesh_of(2, 3)))


@pytest.mark.feature("JT-07")
def test_default_device_is_where_nobody_says_where() -> None:
    device = jax.devices()[3]

    with jax.default_device(device):
        out = jax.jit(lambda a: a * 2)(X)

    assert out.devices() == {device}
    assert not out.committed


COMMITTED: list[tuple[str, Callable[[], Any], bool]] = [
    ("host values", lambda: jax.jit(lambda a: a * 2)(X), False),
    ("committed", lambda: jax.jit(lambda a: a * 2)(jax.device_put(X, jax.devices()[0])), True),
    ("several devices", lambda: jax.jit(lambda a: a * 2)(put(mesh_of(0, 1))), True),
    (
        "in_shardings",
        lambda: jax.jit(lambda a: a * 2, in_shardings=SingleDeviceSharding(jax.devices()[1]))(X),
        True,
    ),
    (
        "out_shardings",
        lambda: jax.jit(lambda a: a * 2, out_shardings=SingleDeviceSharding(jax.devices()[1]))(X),
        True,
    ),
]


@pytest.mark.feature("JT-08")
@pytest.mark.parametrize(
    ("call", "is_committed"), [c[1:] for c in COMMITTED], ids=[c[0] for c in COMMITTED]
)
def test_results_are_committed_where_somebody_said_where(
    call: Callable[[], Any], is_committed: bool
) -> None:
    assert call().committed == is_committed


def test_set_mesh_runs_on_all_its_devices() -> None:
    mesh = mesh_of(4, 5, 6, 7)

    with jax.set_mesh(mesh):
        out = jax.jit(lambda a: a * 2)(X)

    assert out.sharding == NamedSharding(mesh, P())
    assert out.committed


@pytest.mark.feature("JT-12")
def test_abstract_mesh_of_another_size_is_refused() -> None:
    abstract = mesh_of(0, 1, 2, 3).abstract_mesh

    with pytest.raises(ValueError, match="the mesh has 4 devices, the program runs on 2"):
        jax.jit(lambda a: jax.lax.with_sharding_constraint(a, NamedSharding(abstract, P("x"))))(
            put(mesh_of(0, 1))
        )
    with pytest.raises(ValueError, match="another number of devices than an abstract mesh"):
        jax.jit(lambda a: a * 2, out_shardings=NamedSharding(abstract, P("x")))(put(mesh_of(0, 1)))
