"""Sending and receiving by operations of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.effects import SingleSideCollectiveEffect
from minijax.sharding import PartitionSpec as P
from minijax.testing import simulate
from tests.lax.collectives import stacked
from tests.lax.collectives.test_lowering import lowered, operation

PERM = [(0, 1), (2, -1)]


def passed(v: Any) -> Any:
    """What the neighbour sent."""
    return lax.precv(lax.psend(v, "x", PERM), v, "x", PERM)


@pytest.mark.feature("CO-10", "CO-11")
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_gpus_send_and_receive(check_vma: bool, platform: str) -> None:
    text = lowered(passed, check_vma=check_vma, platform=platform)
    pairs = "source_target_pairs = dense<[[0, 2], [4, 6], [1, 3], [5, 7]]>"
    handle = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
    for name in ("send", "recv"):
        line = operation(text, name)
        assert pairs in line
        assert handle in line
    assert "(tensor<4x2xf32>, !stablehlo.token) -> !stablehlo.token" in operation(text, "send")
    assert "stablehlo.create_token" in text


@pytest.mark.feature("CO-10", "CO-11")
@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_other_platforms_do_not(platform: str) -> None:
    words = rf"lax.psend: is implemented for GPUs only(.|\n)*program for {platform}"
    with pytest.raises(NotImplementedError, match=words):
        lowered(passed, platform=platform)


@pytest.mark.feature("CO-10", "CO-11")
def test_replicas_do_not() -> None:
    with minijax.cpu_devices(8):
        devices = minijax.devices()[:4]
    mapped = minijax.pmap(passed, axis_name="x", devices=devices)
    with pytest.raises(NotImplementedError, match=r"GPUs only|inside of shard_map only"):
        mapped.lower(np.zeros((4, 4, 2), np.float32))


@pytest.mark.feature("CO-10", "CO-11", "EF-05")
def test_both_ends_survive_when_nobody_uses_them() -> None:
    def f(v: Any) -> Any:
        passed(v)
        return v

    text = lowered(f, platform="cuda")
    assert "stablehlo.send" in text
    assert "stablehlo.recv" in text


@pytest.mark.feature("EF-05")
def test_effects_of_one_sided_communication_are_equal() -> None:
    first, second = SingleSideCollectiveEffect(), SingleSideCollectiveEffect()
    assert first == second
    assert hash(first) == hash(second)
    mapped = minijax.shard_map(
        passed, mesh=stacked.mesh_of({"x": 4}), in_specs=P("x"), out_specs=P("x")
    )
    assert minijax.make_jaxpr(mapped)(jnp.zeros(4)).effects == {first}


@pytest.mark.feature("EF-05")
def test_control_flow_may_send() -> None:
    def f(v: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: passed(x), v)

    assert "stablehlo.send" in lowered(f, platform="cuda")


@pytest.mark.feature("CO-11")
def test_what_is_received_varies_over_the_axes() -> None:
    def f(v: Any) -> Any:
        found = lax.precv(lax.psend(v, "x", PERM), minijax.ShapeDtypeStruct((2,), "f4"), "x", PERM)
        assert str(minijax.typeof(found)) == "f32[2]{V:x}"
        assert str(minijax.typeof(passed(v))) == "f32[4,2]{V:(x,y)}"
        return v

    lowered(f, platform="cuda")


@pytest.mark.feature("CO-11")
def test_one_receives_after_a_token_only() -> None:
    with pytest.raises(TypeError, match=r"lax.precv(.|\n)*must be a token(.|\n)*f32\[4,2\]"):
        lowered(lambda v: lax.precv(v, v, "x", PERM))


@pytest.mark.feature("CO-10", "CO-11")
def test_what_is_sent_is_received_as_by_ppermute() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = simulate(passed, {"x": 4}, P("x"), P("x"))(x)
    np.testing.assert_array_equal(found, stacked.permute(x, [(0, 1), (2, 3)]))


@pytest.mark.feature("CO-10")
@pytest.mark.parametrize("transform", ["jvp", "vmap"])
def test_messages_have_no_derivative_and_no_batch(transform: str) -> None:
    def f(v: Any) -> Any:
        if transform == "jvp":
            return minijax.jvp(passed, (v,), (v,))[0]
        return minijax.vmap(passed)(jnp.stack([v, v]))[0]

    with pytest.raises(NotImplementedError, match="psend: the primitive has no rule"):
        lowered(f, platform="cuda")
