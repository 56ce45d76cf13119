"""Configuration states: precedence, validation, threads, names."""

import logging
import os
import subprocess
import sys
import threading
import timeit
import types

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import random
from minijax.core import capabilities, config
from minijax.runtime.compile import options_for, set_efforts

STATES = {state.name: state for state in config.config}


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
        assert jax.config.x64_enabled is jax.config.enable_x64 is False
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


@pytest.mark.feature("UX-02")
def test_default_device_is_a_device_or_a_platform():
    with pytest.raises(ValueError, match="default_device: no device"):
        jax.default_device(3)
    for chosen in (jax.devices()[0], "cpu", None):
        with jax.default_device(chosen):
            assert jax.numpy.ones(2).device == jax.devices()[0]


def test_programs_without_optimization_compute_the_same():
    x = jax.numpy.arange(6.0).reshape(2, 3) / 10
    with config.disable_most_optimizations(False):
        expected = jax.jit(lambda x: jax.numpy.tanh(x @ x.T).sum(axis=0))(x)
        with config.disable_most_optimizations(True):
            quick = jax.jit(lambda x: 1 * jax.numpy.tanh(x @ x.T).sum(axis=0))(x)
        assert jax.config.jax_disable_most_optimizations is False
    assert jax.numpy.allclose(quick, expected, rtol=1e-6)


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize("name", STATES)
def test_context_is_a_decorator_too(name):
    state = STATES[name]
    refused = any(f" {name}" in f" {settings}" for settings in config._REFUSED.values())
    value = not state.value if isinstance(state.value, bool) and not refused else state.value

    @state(value)
    def read():
        return state.value

    before = state.value
    assert (read.__name__, read(), read()) == ("read", value, value)
    assert state.value == before


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize("name", STATES)
def test_state_is_read_and_updated_by_each_of_its_names(name):
    native = STATES[name].native
    global_value = native.get_global()
    for prefix in ("", "jax_"):
        assert jax.config.read(prefix + name) == getattr(jax.config, prefix + name)
        value = jax.config.values[prefix + name]
        jax.config.update(prefix + name, value)
        assert jax.config.read(name) == value
    # `value` can be that of a context, such as the one in which a sample compiles.
    native.set_global(global_value)
    assert STATES[name].env_name == f"MINIJAX_{name.upper()}"


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("jax_error_checking_behavior_nan", "raise", "debug_nans"),
        ("jax_xla_backend", "tpu", "platforms"),
        ("jax_serialization_version", 1, "one format"),
        ("jax_dump_ir_modes", "jaxpr", "StableHLO"),
        ("jax_cross_host_transfer_socket_address", "host:1", "collectives"),
    ],
)
def test_what_cannot_be_set_is_refused_with_a_reason(name, value, reason):
    default = jax.config.read(name)
    with pytest.raises(ValueError, match=reason):
        jax.config.update(name, value)
    jax.config.update(name, default)
    assert jax.config.read(name) == default


@pytest.mark.feature("UX-02")
def test_indices_that_are_known_can_be_checked():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x[5].shape == (3,)
    with config.check_static_indices(True):
        for read in (lambda x: x[2], lambda x: x[-3], lambda x: x[1, 3], lambda x: x[np.int32(2)]):
            for call in (read, jax.jit(read)):
                with pytest.raises(IndexError, match="out of bounds"):
                    call(x)
        assert x[-2].shape == (3,)
        assert (x[1:9].shape, x[jnp.array([7])].shape) == ((1, 3), (1, 3))
        assert x.at[5].set(1.0).sum() == x.sum()
        assert jnp.isnan(x.at[5].get(mode="fill")).all()


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize("make", [random.key, random.PRNGKey, jax.jit(random.key)])
def test_seeds_have_an_offset(make):
    def words(seed):
        return jnp.asarray(random.key_data(make(seed))).tolist()

    with config.random_seed_offset(4):
        moved = words(3)
    assert moved == words(7) != words(3)


@pytest.mark.feature("UX-02")
def test_gumbel_numbers_have_a_mode_where_none_is_named():
    key = random.key(0)
    high = random.gumbel(key, (4,), mode="high")
    with config.high_dynamic_range_gumbel(True):
        assert (random.gumbel(key, (4,)) == high).all()
    assert (random.gumbel(key, (4,)) != high).any()


@pytest.mark.feature("UX-02")
def test_dtypes_of_64_bits_can_be_refused():
    with config.explicit_x64_dtypes("error"), pytest.raises(ValueError, match="not available"):
        jnp.zeros(3, "float64")


@pytest.mark.feature("UX-02")
def test_entering_a_mesh_can_be_refused():
    with config.disallow_mesh_context_manager(True), pytest.raises(RuntimeError, match="set_mesh"):
        jax.make_mesh((1,), ("x",)).__enter__()


@pytest.mark.feature("UX-02")
def test_cache_misses_are_explained(caplog):
    f = jax.jit(lambda x: x + 1)
    with jax.explain_cache_misses(True):
        f(jnp.ones(3))
        assert "traced again" not in caplog.text
        f(jnp.ones(4))
    assert "f32[4]" in caplog.text
    assert "f32[3]" in caplog.text
    caplog.clear()
    f(jnp.ones(5))
    assert "traced again" not in caplog.text


@pytest.mark.feature("UX-02")
def test_loggers_have_levels(capfd):
    logger = logging.getLogger("minijax")
    with config.logging_level("ERROR"):
        assert not logger.isEnabledFor(logging.WARNING)
    assert logger.level == logging.NOTSET
    with config.debug_log_modules("minijax"):
        assert logger.isEnabledFor(logging.DEBUG)
        assert len(logger.handlers) == 1
    assert (logger.level, logger.handlers) == (logging.NOTSET, [])


@pytest.mark.feature("UX-02")
def test_modules_are_dumped(tmp_path):
    with config.dump_ir_to(str(tmp_path / "folder")):
        jax.jit(lambda x: jnp.sin(x) * 3.25)(jnp.ones(7))
    (path,) = [p for p in (tmp_path / "folder").iterdir() if "lambda" in p.name]
    assert path.suffix == ".mlir"
    text = path.read_text()
    assert "stablehlo.sine" in text
    assert "loc(" in text


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize(
    ("name", "value", "number"),
    [("optimization_level", "O1", 19), ("memory_fitting_level", "O0", 9)],
)
def test_levels_of_optimization_are_passed_to_the_compiler(name, value, number):
    with STATES[name](value):
        options = options_for(tuple(jax.devices()[:1]))
        assert getattr(options.executable_build_options, name) == number
        assert jax.jit(lambda x: x * 2.5)(jnp.ones(3)).sum() == 7.5


@pytest.mark.feature("UX-02")
@pytest.mark.parametrize(
    ("name", "value"), [("exec_time_optimization_effort", -0.5), ("memory_fitting_effort", 0.5)]
)
@pytest.mark.parametrize("has_efforts", [True, False])
def test_efforts_are_passed_to_compilers_that_have_them(name, value, has_efforts, monkeypatch):
    monkeypatch.setattr(capabilities, "has_compilation_efforts", lambda build: has_efforts)
    build = types.SimpleNamespace()
    with STATES[name](value):
        if has_efforts:
            set_efforts(build)
            assert getattr(build, name) == value
        else:
            with pytest.warns(UserWarning, match=f"{name}: has no effect"):
                set_efforts(build)
            assert vars(build) == {}


@pytest.mark.feature("UX-02")
def test_values_are_computed_again_only_where_that_is_allowed():
    with config.compiler_enable_remat_pass(False):
        options = options_for(tuple(jax.devices()[:1]))
        assert ("xla_disable_hlo_passes", "rematerialization") in options.env_option_overrides
        assert jax.jit(lambda x: x * 1.25)(jnp.ones(4)).sum() == 5


@pytest.mark.feature("UX-02")
def test_threads_of_one_process_are_free():
    found = []
    with jax.thread_guard(True):
        thread = threading.Thread(target=lambda: found.append(float(jnp.sqrt(4.0))))
        thread.start()
        thread.join()
    assert found == [2.0]


def test_x64_is_told_by_a_property():
    for enabled in (False, True):
        with config.enable_x64(enabled):
            assert config.config.x64_enabled is enabled
