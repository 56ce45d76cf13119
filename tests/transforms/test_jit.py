"""`jit`: signatures, static and donated arguments, nesting, errors."""

import functools
import gc
import inspect
import threading
import warnings
import weakref

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp


def counted(function):
    """A function that counts how often Python runs it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        call.count += 1
        return function(*args, **kwargs)

    call.count = 0
    return call


@pytest.mark.feature("JT-01", "JT-02")
def test_jit_traces_once_for_each_signature():
    f = counted(lambda x: x * 2)
    g = jax.jit(f)
    for x in (1.0, 2.0, jnp.ones(3), jnp.zeros(3), np.ones(3, np.float32)):
        g(x)
    assert f.count == 2


@pytest.mark.feature("CR-11", "LG-05")
def test_jit_of_one_function_twice_shares_the_trace():
    f = counted(lambda x: x + 1)
    jax.jit(f)(1.0)
    jax.jit(f)(2.0)
    assert f.count == 1


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("CR-11")
def test_staged_programs_die_with_their_function():
    def f(x):
        return x + 1

    jax.jit(f)(1.0)
    jax.jit(f).trace(2)
    reference = weakref.ref(f)
    del f
    gc.collect()
    assert reference() is None


def test_jit_distinguishes_weak_types():
    f = counted(lambda x: x + jnp.ones((), jnp.bfloat16))
    g = jax.jit(f)
    assert g(1.0).dtype == jnp.bfloat16
    assert g(jnp.float32(1.0)).dtype == jnp.float32
    assert f.count == 2


def test_jit_returns_trees():
    out = jax.jit(lambda x: {"a": (x, None), "b": [x + 1]})(2.0)
    assert out["a"][1] is None
    assert float(out["b"][0]) == 3.0


def test_jit_takes_keyword_arguments_in_any_order():
    f = counted(lambda *, a, b: a - b)
    g = jax.jit(f)
    assert float(g(a=3.0, b=1.0)) == float(g(b=1.0, a=3.0)) == 2.0
    assert f.count == 1


def test_jit_as_a_decorator_with_options():
    @jax.jit(static_argnames="n")
    def power(x, n):
        return x**n

    assert float(power(3.0, n=2)) == 9.0
    assert float(power(3.0, 3)) == 27.0


def test_jit_with_partial_as_a_decorator():
    @functools.partial(jax.jit, static_argnums=(1,))
    def repeat(x, n):
        return jnp.stack([x] * n)

    assert repeat(1.0, 3).shape == (3,)


def test_jit_of_a_method_sees_self_as_an_argument():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.factor

    assert float(Scale(3.0)(2.0)) == 6.0


def test_jit_of_a_bound_method():
    class Model:
        weight = 2.0

        def apply(self, x):
            return x * self.weight

    assert float(jax.jit(Model().apply)(3.0)) == 6.0


def test_jit_of_a_partial():
    f = jax.jit(functools.partial(lambda a, b: a - b, 5.0))
    assert float(f(2.0)) == 3.0


def test_jit_keeps_name_doc_and_signature():
    def documented(x, y=2):
        """Says what it does."""
        return x * y

    g = jax.jit(documented)
    assert g.__name__ == "documented"
    assert g.__doc__ == "Says what it does."
    assert list(inspect.signature(g).parameters) == ["x", "y"]


def test_static_arguments_are_part_of_the_signature():
    f = counted(lambda x, n: x * n)
    g = jax.jit(f, static_argnums=1)
    assert [float(g(2.0, n)) for n in (1, 2, 1, 2)] == [2.0, 4.0, 2.0, 4.0]
    assert f.count == 2


def test_negative_static_argnums_count_from_the_end():
    g = jax.jit(lambda x, n: [x] * n, static_argnums=-1)
    assert len(g(1.0, 3)) == 3


@pytest.mark.feature("CR-18")
def test_static_argument_without_hash_is_refused():
    g = jax.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match="static argument 1 is not hashable") as caught:
        g(1.0, [2])
    assert "pass a tuple" in str(caught.value)


def test_static_argnames_must_exist():
    with pytest.raises(ValueError, match="names no parameter: 'missing'"):
        jax.jit(lambda x: x, static_argnames="missing")


@pytest.mark.feature("CR-18")
def test_argument_of_a_wrong_type_is_named_by_its_path():
    with pytest.raises(
        TypeError, match=r"argument params\['w'\] is neither an array nor a number"
    ) as caught:
        jax.jit(lambda params: params["w"])({"w": "text"})
    assert "'text' of type str" in str(caught.value)


def test_result_of_a_wrong_type_is_named_by_its_path():
    with pytest.raises(TypeError, match="result is neither an array nor a number") as caught:
        jax.jit(lambda x: {"a": x, "b": "text"})(1.0)
    assert "result['b']" in str(caught.value)


def test_jit_of_something_not_callable_is_refused():
    with pytest.raises(TypeError, match="expected a function"):
        jax.jit(3)


def test_jit_of_a_generator_function_is_refused():
    def generate(x):
        yield x

    with pytest.raises(TypeError, match="generator"):
        jax.jit(generate)


@pytest.mark.feature("JT-16")
def test_donated_argument_is_deleted():
    x = jnp.arange(4.0)
    out = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert out.tolist() == [1, 2, 3, 4]


@pytest.mark.feature("JT-16")
def test_donated_argument_cannot_be_used_again():
    x = jnp.arange(4.0)
    g = jax.jit(lambda x: x + 1, donate_argnums=0)
    g(x)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="keep the function's result instead"):
        g(x)


@pytest.mark.feature("JT-16")
def test_donation_by_name_and_of_a_tree():
    state = {"a": jnp.ones(3), "b": jnp.ones(2)}
    kept = jnp.ones(3)
    jax.jit(lambda state, x: ({k: v + 1 for k, v in state.items()}, x), donate_argnames="state")(
        state=state, x=kept
    )
    assert state["a"].is_deleted()
    assert state["b"].is_deleted()
    assert not kept.is_deleted()


def test_useless_donation_warns():
    with pytest.warns(UserWarning, match="^Some donated buffers were not usable"):
        jax.jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones(3))


@pytest.mark.feature("JT-03", "PE-08")
def test_unused_arguments_are_dropped_from_the_program():
    lowered = jax.jit(lambda x, y: x + 1).lower(1.0, jnp.ones(1000))
    assert "1000" not in lowered.as_text()
    kept = jax.jit(lambda x, y: x + 1, keep_unused=True).lower(1.0, jnp.ones(1000))
    assert "tensor<1000xf32>" in kept.as_text()


@pytest.mark.feature("JT-40")
def test_nested_jit_is_one_private_function_called_by_name():
    @jax.jit
    def inner(x):
        return jnp.sin(x)

    text = jax.jit(lambda x: inner(inner(x))).lower(jnp.ones(3)).as_text()
    assert text.count("func.func private @inner") == 1
    assert text.count("call @inner") == 2


@pytest.mark.feature("JT-40")
def test_inline_jit_leaves_no_call():
    inner = jax.jit(jnp.sin, inline=True)
    jaxpr = jax.make_jaxpr(lambda x: inner(x) + 1)(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "add"]


def test_repeated_nested_call_is_staged_once():
    f = counted(jnp.sin)
    inner = jax.jit(f)
    jax.make_jaxpr(lambda x: inner(inner(inner(x))))(1.0)
    assert f.count == 1


@pytest.mark.feature("CR-17")
def test_disable_jit_runs_python_each_call():
    f = counted(lambda x: x + 1)
    g = jax.jit(f)
    with jax.disable_jit():
        g(1.0)
        g(1.0)
        with jax.disable_jit(False):
            g(1.0)
            g(1.0)
    assert f.count == 3


@pytest.mark.feature("CR-17")
def test_disable_jit_lets_python_see_values():
    @jax.jit
    def f(x):
        return x if x > 0 else -x

    with jax.disable_jit():
        assert float(f(-2.0)) == 2.0


def test_jit_closing_over_an_array_uses_it():
    table = jnp.arange(5.0)
    assert jax.jit(lambda i: table[i])(3).tolist() == 3.0


def test_jit_closing_over_a_large_array_passes_it_as_an_argument():
    table = jnp.arange(50_000.0)
    f = jax.jit(lambda x: x + table)
    assert len(f.lower(table).as_text()) < 1000
    for _ in range(3):
        assert f(table)[-1].tolist() == 2 * 49_999.0


def test_jit_closing_over_a_tracer_of_an_outer_trace():
    def outer(x):
        @jax.jit
        def inner(y):
            return x * y

        return inner(2.0) + inner(3.0)

    assert float(jax.jit(outer)(5.0)) == 25.0
    assert float(jax.grad(outer)(5.0)) == 5.0
    assert jax.vmap(outer)(jnp.arange(3.0)).tolist() == [0.0, 5.0, 10.0]


def test_jit_sees_changed_configuration():
    f = jax.jit(lambda: jnp.asarray(1.5) * 2)
    assert f().dtype == np.float32
    with jax.enable_x64(True):
        assert f().dtype == np.float64
    assert f().dtype == np.float32


def test_jit_of_no_arguments_and_no_results():
    assert jax.jit(lambda: None)() is None
    assert jax.jit(lambda x: ())(1.0) == ()


def test_jit_returns_arguments_and_constants_unchanged():
    x = jnp.arange(3.0)
    a, b, c = jax.jit(lambda x: (x, 7, jnp.ones(2)))(x)
    assert a.tolist() == x.tolist()
    assert b.tolist() == 7
    assert b.weak_type
    assert c.tolist() == [1, 1]


def test_jit_handles_zero_size_and_scalar_arrays():
    assert jax.jit(lambda x: x + 1)(jnp.zeros((0, 3))).shape == (0, 3)
    assert jax.jit(lambda x: x + 1)(np.float32(2)).shape == ()


def test_clear_cache_forgets_one_function():
    f = counted(lambda x: x + 1)
    g = jax.jit(f)
    g(1.0)
    g.clear_cache()
    g(1.0)
    assert f.count == 2


@pytest.mark.feature("CF-02")
def test_unrelated_settings_keep_cache_hits():
    f = counted(lambda x: x + 1)
    g = jax.jit(f)
    g(1.0)
    jax.config.update("log_compiles", True)
    try:
        g(1.0)
    finally:
        jax.config.update("log_compiles", False)
    assert f.count == 1


@pytest.mark.slow
def test_sixteen_threads_trace_compile_and_call():
    """Same and different functions at once; every result is right."""
    shared = jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 2) + jnp.sum(jnp.cos(x) ** 2))
    problems = []

    def work(i):
        try:
            own = jax.jit(lambda x: x * (i + 1))
            for n in range(1, 6):
                x = jnp.arange(float(n + i % 4))
                np.testing.assert_allclose(shared(x), n + i % 4, rtol=1e-5)
                np.testing.assert_allclose(own(x), np.arange(n + i % 4) * (i + 1))
                slope = jax.grad(lambda v: jnp.sum(own(v) ** 2))(x)
                np.testing.assert_allclose(slope, 2 * x * (i + 1) ** 2, rtol=1e-6)
                rows = jax.vmap(lambda v: v + i)(x)
                np.testing.assert_allclose(rows, np.asarray(x) + i)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


@pytest.mark.feature("CF-01", "CF-02")
def test_threads_have_their_own_settings():
    seen = {}

    def work(name, value):
        with jax.enable_x64(value):
            seen[name] = jnp.asarray(1.0).dtype.name

    threads = [
        threading.Thread(target=work, args=("on", True)),
        threading.Thread(target=work, args=("off", False)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"on": "float64", "off": "float32"}


@pytest.mark.feature("LG-01", "LG-02")
def test_log_compiles_tells_each_step(caplog):
    jax.clear_caches()
    with caplog.at_level("WARNING", logger="minijax"):
        jax.config.update("log_compiles", True)
        try:
            jax.jit(lambda x: x * 3)(jnp.ones(7))
        finally:
            jax.config.update("log_compiles", False)
    text = caplog.text
    assert "Compiling <lambda>" in text
    assert "float32[7]" in text
    for step in ("tracing", "StableHLO lowering", "XLA compilation"):
        assert "Finished" in text
        assert step in text


@pytest.mark.feature("LG-05")
def test_cache_stats_count_hits_and_misses():
    jax.clear_caches()
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    assert jax.cache_stats()["trace"].misses == 1
    f.lower(1.0)
    assert jax.cache_stats()["trace"].hits == 1


@pytest.mark.feature("LG-06", "CF-04")
def test_debug_nans_names_the_function_and_index():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="NaN at index"):
        jax.jit(lambda x: x / x)(jnp.array([1.0, 0.0]))


def test_compiler_options_reach_xla():
    f = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    assert float(f(1.0)) == 2.0
    with pytest.raises(jax.errors.JaxRuntimeError, match="compiler option"):
        jax.jit(lambda x: x + 2, compiler_options={"xla_no_such_option": True})(1.0)


def test_warnings_stay_errors_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda x: jnp.sum(x) * 2)(jnp.ones(3))
