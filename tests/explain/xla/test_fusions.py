"""`explain.fusions` tells what became one kernel, and what each kernel costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.xla import bandwidth, costs
from minijax.runtime.hlo_text import HloModule
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = [
    pytest.mark.feature("EX-06"),
    # A type that jaxlib 0.11 makes at its first use; the warning as an error would end the process.
    pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning"),
]

M, K, N = 64, 32, 48


@pytest.fixture(autouse=True)
def known_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_BYTES", 1 << 20)


def dense(x: Any, w: Any, b: Any) -> Any:
    return jnp.tanh(x @ w + b)


def arguments() -> tuple[Any, ...]:
    return np.ones((M, K), np.float32), np.ones((K, N), np.float32), np.ones(N, np.float32)


def kernel_with(found: explain.Fusions, operation: str) -> explain.Kernel:
    (kernel,) = [x for x in found if operation in x.operations]
    return kernel


def test_a_product_costs_two_operations_for_each_of_its_terms() -> None:
    found = explain.fusions(dense, measure=False)(*arguments())
    product = kernel_with(found, "dot_general")

    assert product.flops == 2 * M * N * K
    assert product.bytes == 4 * (M * K + K * N + M * N)
    assert [str(x) for x in product.reads] == ["x f32[64,32]", "w f32[32,48]"]
    assert [str(x) for x in product.writes] == ["f32[64,48]"]
    assert product.times == 1
    assert product.by_xla


def test_elementwise_operations_become_one_kernel_with_the_lines_of_the_user() -> None:
    found = explain.fusions(dense, measure=False)(*arguments())
    kernel = kernel_with(found, "tanh")

    assert set(kernel.operations) == {"add", "tanh"}
    assert kernel.kind == "fusion"
    assert kernel.flops == M * N
    assert kernel.transcendentals == M * N
    assert kernel.bytes == 4 * (2 * M * N + N)
    assert [(x.function_name, x.line) for x in kernel.lines] == [
        ("dense", dense.__code__.co_firstlineno + 1)
    ]


def loss(x: Any, w: Any, b: Any) -> Any:
    return jnp.mean(dense(x, w, b) ** 2)


def test_kernels_add_up_to_what_xla_says_of_the_program() -> None:
    found = explain.fusions(jax.grad(loss, 1), measure=False)(*arguments())
    whole = jax.jit(jax.grad(loss, 1)).lower(*arguments()).compile().cost_analysis()

    assert found.flops == whole["flops"]
    assert found.bytes == whole["bytes accessed"]
    assert sum(x.transcendentals for x in found) == whole["transcendentals"]


X = np.ones((32, 32), np.float32)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: jnp.sort(x),
    "fft": lambda x: jnp.fft.fft(x),
    "complex": lambda x: (x + 1j * x) @ x,
    "bfloat16": lambda x: x.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "einsum": lambda x: jnp.einsum("ij,jk,kl->il", x, x, x),
    "while": lambda x: jax.lax.while_loop(lambda v: v.sum() < 1e4, lambda v: v * 2 + 1, x),
    "constant": lambda x: jnp.ones(3),
    "hessian": lambda x: jax.hessian(lambda v: jnp.sum(jnp.tanh(x @ v) ** 2))(x[0]),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_figures_are_those_of_xla(name: str) -> None:
    compiled = jax.jit(PROGRAMS[name]).lower(X).compile()
    found, held = explain.fusions(compiled)(), explain.memory(compiled)()
    costs, sizes = compiled.cost_analysis(), compiled.memory_analysis()

    assert found.flops == costs.get("flops", 0)
    assert found.bytes == costs["bytes accessed"]
    assert held.parts["argument"] == sizes.argument_size_in_bytes
    assert held.parts["result"] == sizes.output_size_in_bytes
    assert held.parts["temporary"] == sizes.temp_size_in_bytes
    assert held.alive <= held.bytes


def test_libraries_have_bytes_and_no_flops() -> None:
    found = explain.fusions(lambda x: jax.lax.top_k(x, 3), measure=False)(X)
    (call,) = [x for x in found if x.kind == "custom_call"]

    assert call.flops is None
    assert call.bytes == 4 * (32 * 32 + 2 * 32 * 3)
    assert "?" in str(found)


def test_kernels_of_xla_are_called_by_its_operations() -> None:
    f = lambda xs: jnp.sum(jax.lax.scan(lambda c, x: (jnp.sin(c) @ x, None), xs[0], xs)[0])
    found = explain.fusions(jax.grad(f), measure=False)(np.stack([X] * 3))

    assert ("broadcast",) in [x.operations for x in found if not x.lines]
    assert not any("fusion" in x.operations for x in found)


def test_what_a_loop_runs_counts_as_often_as_it_runs() -> None:
    def function(x: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda i, v: jnp.sin(v) @ v, x)

    found = explain.fusions(function, measure=False)(np.ones((32, 32), np.float32))
    (product,) = [x for x in found if x.flops == 2 * 32**3]

    assert product.times == 5
    assert product.inside == ("while x5",)
    assert found.flops >= 5 * 2 * 32**3


def test_kernels_have_their_times_and_the_part_of_the_bandwidth() -> None:
    x = np.ones((256, 256), np.float32)
    found = explain.fusions(lambda x: jnp.tanh(x @ x))(x)
    product = kernel_with(found, "dot_general")

    assert product.seconds is not None
    assert found.seconds is not None
    assert 0 < product.seconds <= found.seconds
    assert product.of_bandwidth == pytest.approx(product.bytes / product.seconds / found.bandwidth)


def test_arguments_are_not_given_away_while_a_function_is_measured() -> None:
    x = jnp.ones((16, 16))
    found = explain.fusions(jax.jit(jnp.sin, donate_argnums=0))(x)

    assert found.seconds is not None
    assert x.sum() == 256


def test_structs_are_compiled_for_and_not_run() -> None:
    def function(x: Any) -> Any:
        jax.debug.callback(calls.append, x[0])
        return 2 * x

    calls: list[Any] = []
    found = explain.fusions(function)(jax.ShapeDtypeStruct((4,), np.float32))

    assert found.seconds is None
    assert not calls


def test_a_compiled_program_is_asked_without_arguments() -> None:
    compiled = jax.jit(dense).lower(*arguments()).compile()
    found = explain.fusions(compiled)()
    assert kernel_with(found, "dot_general").flops == 2 * M * N * K


def per_device(over: str) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        return jax.lax.psum(jnp.sin(x), "i")

    if over == "pmap":
        return jax.pmap(function, "i")
    mesh = Mesh(np.array(jax.devices()), "i")
    return jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P())


@pytest.mark.parametrize("over", ["shard_map", "pmap"])
def test_kernels_of_many_devices_are_those_of_each(over: str) -> None:
    with jax.cpu_devices(8):
        found = explain.fusions(per_device(over))(np.ones((8, 100), np.float32))

    (total,) = [x for x in found if x.kind == "all_reduce"]
    assert found.devices == 8
    assert total.writes[0].bytes == 400
    assert total.seconds is not None


def test_kernels_of_a_mesh_see_the_parts_of_arrays() -> None:
    with jax.cpu_devices(8):
        split = NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x"))
        x = jax.device_put(np.ones((8 * M, K), np.float32), split)
        found = explain.fusions(lambda x: x @ np.ones((K, N), np.float32))(x)

    assert kernel_with(found, "dot_general").flops == 2 * M * N * K


def test_report_fits_a_screen() -> None:
    def many(x: Any) -> Any:
        for _ in range(20):
            x = jnp.tanh(x @ x)
        return x

    found = explain.fusions(many, measure=False)(np.ones((8, 8), np.float32))
    lines = str(found).splitlines()

    assert len(found) == 40
    assert len(lines) < 32
    assert lines[0].startswith("many: 40 kernels, ")
    assert lines[1].startswith("memory: ")
    assert "at least" in lines[3]
    assert lines[-1].startswith("and 28 smaller kernels: ")


def test_report_of_a_measured_program_shows_each_kernel_with_what_it_moves() -> None:
    text = str(explain.fusions(dense)(*arguments()))
    line = dense.__code__.co_firstlineno + 1
    for part in ("time  of memory", "dot_general", "197 kflop", f"test_fusions.py:{line} in dense"):
        assert part in text
    assert "x f32[64,32], w f32[32,48] -> f32[64,48]" in text


@pytest.mark.parametrize("measure", [True, False])
def test_a_program_without_kernels(measure: bool) -> None:
    found = explain.fusions(lambda x: x, measure=measure)(1.0)
    assert found.flops == 0
    assert str(found).startswith("<lambda>: ")


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match=r"explain\.fusions"):
        explain.fusions(3)  # type: ignore[arg-type]


def test_without_xla_s_analysis_costs_are_counted_from_the_text() -> None:
    text = jax.jit(dense).lower(*arguments()).compile().as_text()
    module = HloModule(text)
    neighbours = module.computations[module.entry]
    found = [
        costs.cost_of(module, neighbours, x, None)
        for x in neighbours.values()
        if x.opcode in ("fusion", "dot")
    ]

    assert [x.flops for x in found] == [2 * M * N * K, 2 * M * N]
    assert found[0].bytes == 4 * (M * K + K * N + M * N)
    assert not found[0].by_xla


def test_bandwidth_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    device = jax.devices()[0]
    first = bandwidth.bandwidth_of(device)
    monkeypatch.setattr(bandwidth, "jit", None)
    assert bandwidth.bandwidth_of(device) == first > 1e6
