"""Hooks of lowering: symbolic shapes, outfeeds, and back ends that compile for themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir

import minijax as jax
import minijax.numpy as jnp
from minijax.core import effects
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.extend import hooks
from minijax.lowering import compilation, program
from minijax.lowering.call_plan import ProgramOptions, RequestedPlacement
from minijax.runtime import client
from minijax.runtime.compile import ForeignProgram
from minijax.runtime.transfer import InputsHandler, ResultsHandler
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.arange(4, dtype=np.float32)

SYMBOLIC = """
func.func private @double(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<?xf32>
  %1 = func.call @double(%0) : (tensor<?xf32>) -> tensor<?xf32>
  %2 = stablehlo.convert %1 : (tensor<?xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""


def compiled_symbolic() -> Callable[..., Any]:
    """A program whose module has a function of a dimension of unknown size."""
    traced = jax.jit(lambda x: x + x).trace(X)
    closed = ClosedJaxpr(traced.jaxpr.jaxpr, [])
    requested = RequestedPlacement(device=jax.devices("cpu")[0])
    plan = program.plan_call(closed, [X], ProgramOptions("double"), requested)
    lowered = program.lower(closed, plan.abstract)
    with lowered.module.context:
        module = ir.Module.parse(SYMBOLIC)
    return compilation.compile_lowered(lowered._replace(module=module), plan)


@pytest.fixture
def refinement() -> Iterator[list[Any]]:
    """Installs jaxlib's refinement; gives the modules that it was called with."""
    seen: list[Any] = []

    def refine(module: Any) -> Any:
        seen.append(module)
        return _jax.mlir.refine_polymorphic_shapes(
            str(module).encode(), enable_shape_assertions=True, validate_static_shapes=True
        )

    hooks.set_shape_refinement(refine)
    yield seen
    hooks.set_shape_refinement(None)


@pytest.mark.feature("JT-36")
def test_unknown_sizes_are_refused_by_default() -> None:
    with pytest.raises(NotImplementedError, match="dimensions of unknown size") as caught:
        compiled_symbolic()

    assert "set_shape_refinement" in str(caught.value)


@pytest.mark.feature("JT-36")
def test_refinement_is_called_for_unknown_sizes(refinement: list[Any]) -> None:
    (out,) = compiled_symbolic()([X])

    assert len(refinement) == 1
    np.testing.assert_array_equal(out, 2 * X)


@pytest.mark.feature("JT-36")
def test_refinement_is_not_called_for_known_sizes(refinement: list[Any]) -> None:
    jax.clear_caches()

    jax.jit(lambda x: x - 3)(X)

    assert refinement == []


class OutfeedEffect(effects.Effect):
    """What an outfeed does."""

    __slots__ = ()


effects.lowerable_effects.add_type(OutfeedEffect)


class SentAway(Primitive):
    """Stands for an outfeed, which nobody would read here."""

    name = "test_outfeed"
    multiple_results = True
    lowered = 0

    def abstract_eval(self, *avals: Any) -> list[Any]:
        return []

    def lower(self, ctx: Any, *values: Any) -> Any:
        self.lowered += 1
        return []


@pytest.fixture
def outfeed() -> Iterator[SentAway]:
    """A primitive that a rewriter appends to every program."""
    sent = SentAway()

    def rewrite(closed: ClosedJaxpr) -> ClosedJaxpr:
        old = closed.jaxpr
        effect = OutfeedEffect()
        eqn = Eqn(old.invars, [], sent, {}, effects=frozenset({effect}))
        new = Jaxpr(
            old.constvars, old.invars, old.outvars, [*old.eqns, eqn], {effect}, old.debug_info
        )
        return ClosedJaxpr(new, closed.consts)

    hooks.set_outfeed_rewriter(rewrite)
    yield sent
    hooks.set_outfeed_rewriter(None)
    del PRIMITIVES["test_outfeed"]
    jax.clear_caches()


def compilations(call: Callable[[], Any]) -> int:
    before = jax.cache_stats()["compile"].misses
    call()
    return jax.cache_stats()["compile"].misses - before


@pytest.mark.feature("JT-36")
def test_rewritten_program_is_lowered(outfeed: SentAway) -> None:
    out = jax.jit(lambda x: x * 7)(X)

    assert outfeed.lowered == 1
    np.testing.assert_array_equal(out, 7 * X)


@pytest.mark.feature("JT-36", "JT-13")
def test_program_with_an_outfeed_is_not_trivial(outfeed: SentAway) -> None:
    forward = jax.jit(lambda x: x)

    assert compilations(lambda: forward(X)) == 1
    assert outfeed.lowered == 1


@pytest.mark.feature("JT-36")
def test_programs_are_not_rewritten_by_default() -> None:
    jax.clear_caches()

    assert compilations(lambda: jax.jit(lambda x: x)(X)) == 0


class ForeignBackend:
    """A back end that compiles for the devices of a client of its own."""

    platform = "foreign"

    def __init__(self) -> None:
        self.client = xla_client.make_cpu_client(num_devices=2)
        self.given: list[ForeignProgram] = []
        self.runs = 0

    def devices(self) -> list[Any]:
        return list(self.client.devices())

    local_devices = devices

    def compile_replicated(self, wanted: ForeignProgram) -> Callable[..., Any]:
        self.given.append(wanted)
        there = xla_client.DeviceList(wanted.devices)
        loaded = self.client.compile_and_load(wanted.module, there, wanted.options)

        def run(args: Sequence[Any]) -> Sequence[Any]:
            self.runs += 1
            results = loaded.execute_sharded(wanted.place(args))
            return wanted.build(results.consume_with_handlers(wanted.build.native))

        return run


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ForeignBackend:
    """The back end as the default one of the process."""
    for name in ("_factories", "_clients", "_compiling_for"):
        monkeypatch.setattr(client, name, copy.copy(getattr(client, name)))
    jax.clear_caches()
    hooks.register_backend_factory("foreign", ForeignBackend)
    return client.get_backend()  # type: ignore[no-any-return]


@pytest.mark.feature("JT-37")
def test_foreign_back_end_is_handed_the_program(backend: ForeignBackend) -> None:
    f = jax.jit(lambda x, unused: jnp.sin(x) + 1, device=backend.devices()[1])

    out = [f(X, 0) for _ in range(2)][1]

    (given,) = backend.given
    assert backend.runs == 2
    assert given.name == "<lambda>"
    assert "stablehlo.sine" in str(given.module)
    assert given.devices == (backend.devices()[1],)
    assert given.in_indices == (((slice(None),),),)
    assert not given.is_trivial
    assert type(given.place) is InputsHandler
    assert type(given.build) is ResultsHandler
    assert out.devices() == {backend.devices()[1]}
    np.testing.assert_allclose(out, np.sin(X) + 1, rtol=1e-6)


@pytest.mark.feature("JT-37")
def test_foreign_back_end_is_handed_trivial_programs(backend: ForeignBackend) -> None:
    out = jax.jit(lambda x: x)(X)

    assert [given.is_trivial for given in backend.given] == [True]
    np.testing.assert_array_equal(out, X)


@pytest.mark.feature("JT-37")
def test_foreign_back_end_is_told_which_device_holds_what(backend: ForeignBackend) -> None:
    sharding = NamedSharding(Mesh(np.array(backend.devices()), "x"), P("x"))
    x = jax.device_put(X, sharding)

    out = jax.jit(lambda x: x * 2, out_shardings=sharding)(x)

    (given,) = backend.given
    assert given.in_indices == (((slice(0, 2),), (slice(2, 4),)),)
    assert given.options.num_partitions == 2
    assert out.sharding == sharding
    np.testing.assert_array_equal(out, 2 * X)


@pytest.mark.feature("JT-37")
def test_foreign_program_has_no_executable_to_look_at(backend: ForeignBackend) -> None:
    compiled = jax.jit(lambda x: x * 2).lower(X).compile()

    assert compiled.runtime_executable() is None
    for look in (compiled.as_text, compiled.cost_analysis, compiled.memory_analysis):
        with pytest.raises(NotImplementedError, match="the back end has compiled for itself"):
            look()
