"""Configuration states: precedence, validation, threads, names."""

import os
import subprocess
import sys
import timeit

import pytest

import minijax as jax
from minijax.core import config


@pytest.mark.feature("CF-01")
def test_override_beats_the_global_value_and_is_restored():
    assert config.enable_x64.value is False
    with jax.enable_x64(True):
        assert jax.config.enable_x64 is True
        with jax.enable_x64(False):
            assert config.enable_x64.value is False
        assert config.enable_x64.value is True
    assert config.enable_x64.value is False


@pytest.mark.feature("CF-01")
def test_override_is_restored_after_an_exception():
    with pytest.raises(KeyError), jax.enable_x64(True):
        raise KeyError
    assert config.enable_x64.value is False


@pytest.mark.feature("CF-01")
def test_update_by_either_name():
    jax.config.update("jax_debug_nans", True)
    try:
        assert jax.config.debug_nans is jax.config.jax_debug_nans is True
    finally:
        jax.config.update("debug_nans", False)


@pytest.mark.feature("CF-01")
def test_unknown_names_and_bad_values_are_refused():
    with pytest.raises(AttributeError, match="unknown configuration state 'no_such'"):
        jax.config.update("no_such", 1)
    with pytest.raises(AttributeError, match="unknown"):
        _ = jax.config.no_such
    with pytest.raises(ValueError, match="not a boolean"):
        jax.config.update("enable_x64", "perhaps")
    with pytest.raises(ValueError, match="not one of the choices"):
        jax.config.update("numpy_rank_promotion", "sometimes")
    with pytest.raises(ValueError, match="not an integer"):
        jax.config.update("num_cpu_devices", "many")


def test_states_have_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        bool(config.enable_x64)


@pytest.mark.slow
@pytest.mark.feature("CF-01")
def test_environment_variable_sets_the_initial_value():
    done = subprocess.run(
        [sys.executable, "-c", "import minijax; print(minijax.config.enable_x64)"],
        env={**os.environ, "MINIJAX_ENABLE_X64": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stdout.strip() == "True"


@pytest.mark.feature("CF-02")
def test_states_declare_what_they_key():
    before = config.trace_context()
    with jax.enable_x64(True):
        assert config.trace_context() != before
    with config.log_compiles(True):
        assert config.trace_context() == before


@pytest.mark.feature("CF-03")
def test_reading_a_state_is_cheap():
    count = 10_000
    per_read = min(timeit.repeat(lambda: config.enable_x64.value, number=count, repeat=5)) / count
    assert per_read < 2e-6


def test_programs_without_optimization_compute_the_same():
    x = jax.numpy.arange(6.0).reshape(2, 3) / 10
    with config.disable_most_optimizations(False):
        expected = jax.jit(lambda x: jax.numpy.tanh(x @ x.T).sum(axis=0))(x)
        with config.disable_most_optimizations(True):
            quick = jax.jit(lambda x: 1 * jax.numpy.tanh(x @ x.T).sum(axis=0))(x)
        assert jax.config.jax_disable_most_optimizations is False
    assert jax.numpy.allclose(quick, expected, rtol=1e-6)


def test_x64_is_told_by_a_property():
    for enabled in (False, True):
        with config.enable_x64(enabled):
            assert config.config.x64_enabled is enabled
