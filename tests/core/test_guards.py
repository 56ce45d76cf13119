"""Guards: what transfers, traces and runs may not happen, for a thread or for all."""

import gc

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import config

HOST = np.arange(3, dtype=np.int32)


def test_transfer_guard_refuses_what_was_not_asked_for() -> None:
    x = jnp.array(HOST)
    double = jax.jit(lambda x: 2 * x)
    double(x)
    with jax.transfer_guard("disallow"):
        assert double(x).tolist() == [0, 2, 4]
        assert jax.device_put(HOST).tolist() == [0, 1, 2]
        for implicit in (lambda: double(HOST), lambda: x + 1, lambda: jnp.array([1, 2])):
            with pytest.raises(jax.errors.JaxRuntimeError, match="host-to-device transfer"):
                implicit()
        with jax.transfer_guard_host_to_device("allow"):
            assert double(HOST).tolist() == [0, 2, 4]
        with pytest.raises(jax.errors.JaxRuntimeError):
            double(HOST)
    assert double(HOST).tolist() == [0, 2, 4]


def test_explicit_transfers_have_levels_of_their_own() -> None:
    with (
        jax.transfer_guard_host_to_device("disallow_explicit"),
        pytest.raises(jax.errors.JaxRuntimeError, match="host-to-device transfer"),
    ):
        jax.device_put(HOST)


def test_transfer_guard_is_set_for_all_by_name() -> None:
    jax.config.update("jax_transfer_guard", "disallow")
    try:
        with pytest.raises(jax.errors.JaxRuntimeError):
            jnp.array([1, 2])
    finally:
        jax.config.update("jax_transfer_guard", None)
    assert jnp.array([1, 2]).tolist() == [1, 2]


def test_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="one of 'allow', 'log', 'disallow', 'log_explicit'"):
        jax.transfer_guard("forbid")
    with pytest.raises(TypeError, match="needs a value"):
        jax.transfer_guard()


@pytest.mark.usefixtures("young_heap")
def test_arrays_in_cycles_are_told(capfd: pytest.CaptureFixture[str]) -> None:
    gc.collect()
    with jax.array_garbage_collection_guard("log"):
        cycle = [jnp.arange(3)]
        cycle.append(cycle)  # type: ignore[arg-type]
        del cycle
        gc.collect()
    assert "was deleted by the Python garbage collector" in capfd.readouterr().err


def test_no_tracing_names_the_function() -> None:
    def triple(x: jax.Array) -> jax.Array:
        return 3 * x

    jitted = jax.jit(triple)
    jitted(1)
    with jax.no_tracing():
        assert jitted(2).tolist() == 6
        with pytest.raises(RuntimeError, match="triple would be traced, which `no_tracing`"):
            jitted(2.5)


def test_no_execution_stops_known_programs_too() -> None:
    jitted = jax.jit(lambda x: x + 1)
    jitted(1), jitted(1)
    with jax.no_execution(), pytest.raises(RuntimeError, match="`no_execution` forbids"):
        jitted(1)
    assert jitted(1) == 2


def test_platform_name_chooses_the_default_platform() -> None:
    with config.platform_name("nowhere"), pytest.raises(RuntimeError, match="'nowhere'"):
        jax.devices()
    jax.config.update("jax_platforms", "cpu,nowhere")
    try:
        assert jax.default_backend() == "cpu"
    finally:
        jax.config.update("jax_platforms", "")


def test_states_that_are_on_or_off_are_turned_on_by_a_call() -> None:
    with jax.enable_x64():
        assert jnp.arange(2.0).dtype == np.float64
    with pytest.raises(TypeError, match="numpy_rank_promotion: needs a value"):
        jax.numpy_rank_promotion()


def test_jax_names_are_taken_without_effect() -> None:
    jax.config.update("jax_traceback_filtering", "off")
    assert jax.config.jax_traceback_filtering == "off"
    jax.config.update("jax_traceback_filtering", "auto")
    assert jax.config.values["check"] is jax.config.jax_enable_checks
