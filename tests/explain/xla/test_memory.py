"""`explain.memory` tells what is alive where a program holds most."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.xla import buffers
from minijax.explain.xla.memory import Memory
from minijax.runtime.hlo_text import HloModule
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("EX-07")

ROWS, SIZE, LAYERS = 256, 16, 4
ACTIVATIONS = 4 * ROWS * SIZE


def network(ws: Any, x: Any) -> Any:
    for w in ws:
        x = jnp.tanh(x @ w)
    return jnp.sum(x * x)


def weights() -> list[Any]:
    return [np.ones((SIZE, SIZE), np.float32)] * LAYERS


def batch() -> Any:
    return np.ones((ROWS, SIZE), np.float32)


def test_parts_are_those_that_xla_counts() -> None:
    found = explain.memory(jax.grad(network))(weights(), batch())
    stats = jax.jit(jax.grad(network)).lower(weights(), batch()).compile().memory_analysis()

    assert found.by_xla
    assert found.parts["argument"] == stats.argument_size_in_bytes
    assert found.parts["temporary"] == stats.temp_size_in_bytes
    assert found.parts["argument"] == ACTIVATIONS + LAYERS * 4 * SIZE**2
    assert found.parts["result"] == stats.output_size_in_bytes >= LAYERS * 4 * SIZE**2
    assert found.bytes == sum(found.parts.values())
    assert found.alive <= found.bytes


def test_peak_of_reverse_mode_holds_what_each_layer_has_kept() -> None:
    found = explain.memory(jax.grad(network))(weights(), batch())
    kept = [x for x in found.values if x.bytes == ACTIVATIONS and "tanh" in x.operations]
    line = network.__code__.co_firstlineno + 2

    # The last one has been used up by its derivative, in whose kernel it is.
    assert len(kept) >= LAYERS
    assert {x.lines[0].line for x in kept} == {line}
    assert {x.part for x in kept} == {"temporary"}
    assert [x.name for x in found.values if x.type == "f32[256,16]" and x.part == "argument"] == [
        "x"
    ]
    assert found.line is not None
    assert found.line.function_name == "network"


def test_checkpoint_keeps_less() -> None:
    def scanned(layer: Any) -> Any:
        return lambda ws, x: jax.lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0].sum()

    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(jnp.sin(jnp.tanh(x @ w)))

    ws = np.stack(weights())
    less, more = (
        explain.memory(jax.grad(scanned(f)))(ws, batch()) for f in (jax.checkpoint(layer), layer)
    )
    assert more.alive - less.alive >= LAYERS * ACTIVATIONS


def test_a_scan_keeps_one_array_for_all_steps() -> None:
    def scanned(ws: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0].sum()

    found = explain.memory(jax.grad(scanned))(np.stack(weights()), batch())
    stacked = [x for x in found.values if x.type == f"f32[{LAYERS},{ROWS},{SIZE}]"]

    assert stacked
    assert stacked[0].bytes == LAYERS * ACTIVATIONS
    assert stacked[0].lines


def test_a_loop_reuses_its_memory() -> None:
    def function(x: Any, n: int) -> Any:
        return jax.lax.fori_loop(0, n, lambda i, v: jnp.sin(v) @ v, x)

    few, many = (explain.memory(functools.partial(function, n=n))(batch()[:16]) for n in (3, 300))
    assert few.alive == many.alive


def test_memory_that_was_given_away_is_counted_once() -> None:
    x = jax.ShapeDtypeStruct((1024,), np.float32)
    kept = explain.memory(jax.jit(jnp.sin))(x)
    given = explain.memory(jax.jit(jnp.sin, donate_argnums=0))(x)

    assert kept.bytes == 2 * 4096
    assert given.bytes == 4096


def test_branches_do_not_hold_memory_together() -> None:
    def branch(x: Any) -> Any:
        return (jnp.sin(x) @ x) @ x

    def function(p: Any, x: Any) -> Any:
        return jax.lax.cond(p, branch, lambda x: branch(x + 1), x)

    one = explain.memory(branch)(batch()[:16])
    both = explain.memory(function)(True, batch()[:16])
    assert both.alive < 2 * one.alive


@pytest.mark.parametrize("over", ["jit", "shard_map", "pmap"])
def test_memory_of_many_devices_is_that_of_each(over: str) -> None:
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()), "i")
        x: Any = np.ones((8, 1000), np.float32)
        function: Any = jnp.sin
        if over == "jit":
            x = jax.device_put(x, NamedSharding(mesh, P("i")))
        elif over == "pmap":
            function = jax.pmap(jnp.sin)
        else:
            function = jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        found = explain.memory(function)(x)

    assert found.devices == 8
    assert found.parts["argument"] == found.parts["result"] == 4000
    assert "on each of 8 devices" in str(found)


def test_report_shows_parts_peak_and_values() -> None:
    lines = str(explain.memory(jax.grad(network))(weights(), batch())).splitlines()

    assert lines[0].startswith("network: ")
    assert lines[1].startswith("arguments 20 KiB, results 4")
    assert "temporaries" in lines[1]
    assert lines[2].startswith("at the peak ")
    assert lines[4].split() == ["value", "type", "bytes", "part", "operations", "line"]
    assert len(lines) < 24


def test_a_large_report_fits_a_screen() -> None:
    def sums(xs: Any) -> Any:
        return sum(xs)

    lines = str(explain.memory(sums)([np.ones(3, np.float32)] * 30)).splitlines()
    assert len(lines) < 24
    assert lines[-1].startswith("and ")


def test_without_xla_s_assignment_each_value_has_memory_of_its_own() -> None:
    module = HloModule(jax.jit(jax.grad(network)).lower(weights(), batch()).compile().as_text())
    found = Memory("network", module, buffers.assignment_of(None, module))
    told = explain.memory(jax.grad(network))(weights(), batch())

    assert not found.by_xla
    assert found.parts["argument"] == told.parts["argument"]
    assert told.alive <= found.alive < 2 * told.alive
    assert "each is taken to have memory of its own" in str(found)


def test_a_compiled_program_is_asked_without_arguments() -> None:
    compiled = jax.jit(network).lower(weights(), batch()).compile()
    assert explain.memory(compiled)().bytes == explain.memory(network)(weights(), batch()).bytes


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match=r"explain\.memory"):
        explain.memory(3)  # type: ignore[arg-type]


def test_values_that_look_alike_share_a_row() -> None:
    step = lambda c, w: (jnp.tanh(jnp.sin(c) @ w), None)
    f = lambda ws, x: jnp.sum(jax.lax.scan(step, x, ws)[0])
    found = explain.memory(jax.grad(f))(np.ones((3, SIZE, SIZE), np.float32), batch())
    kept = [x for x in found.values if x.type == f"f32[3,{ROWS},{SIZE}]" and "scan" in x.name]
    rows = str(found).split("\n\n")[1].splitlines()

    assert len(kept) > len(set(kept)) == 1
    assert sum(row.startswith(f"{kept[0].name} x{len(kept)} ") for row in rows) == 1
