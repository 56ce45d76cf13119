"""`explain.retraces` names each cause of repeated tracing and compilation; `no_retrace` raises."""

import functools
import gc
import re
import threading
import weakref

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.core import history
from minijax.core.cache import CACHES
from minijax.errors import RetraceError

pytestmark = pytest.mark.feature("LG-09")

Cause = explain.Cause


@pytest.fixture(autouse=True)
def _no_shared_programs():
    """Each test compiles what it runs: no earlier one has left an equal program."""
    CACHES["executables by structure"].clear()


def changes(function):
    """What `retraces` says, without the remedies and the lines."""
    return [(x.argument, x.cause, x.before, x.after) for x in explain.retraces(function)]


def causes(function):
    return [(x.argument, x.cause) for x in explain.retraces(function)]


def test_a_shape_is_named_with_the_path_of_the_leaf():
    f = jax.jit(lambda params, x: params["w"][0] * x)
    f({"w": [jnp.ones(3)]}, 1.0)
    f({"w": [jnp.ones(4)]}, 1.0)
    assert changes(f) == [("params['w'][0]", Cause.SHAPE, "f32[3]", "f32[4]")]


def test_a_rank_is_told_apart_from_a_shape():
    f = jax.jit(lambda x: x)
    f(jnp.ones(3))
    f(jnp.ones((3, 1)))
    assert changes(f) == [("x", Cause.RANK, "f32[3]", "f32[3,1]")]


def test_a_dtype_is_a_cause():
    f = jax.jit(lambda x: x)
    f(jnp.ones(3))
    f(jnp.ones(3, jnp.bfloat16))
    assert changes(f) == [("x", Cause.DTYPE, "f32[3]", "bf16[3]")]


def test_shape_and_dtype_of_one_argument_are_two_causes():
    f = jax.jit(lambda x: x)
    f(jnp.ones(3))
    f(jnp.ones(4, jnp.int32))
    assert causes(f) == [("x", Cause.SHAPE), ("x", Cause.DTYPE)]


def test_a_weak_type_is_a_cause():
    f = jax.jit(lambda x: x)
    f(jnp.float32(1))
    f(1.0)
    assert changes(f) == [("x", Cause.WEAK_TYPE, "f32[]", "Python float")]


def test_python_scalars_of_two_types_are_a_cause():
    f = jax.jit(lambda x: x)
    f(1.0)
    f(1)
    assert changes(f) == [("x", Cause.SCALAR, "Python float", "Python int")]


def test_a_static_value_is_a_cause():
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    f(1.0, 2)
    f(1.0, 3)
    assert changes(f) == [("n", Cause.STATIC_VALUE, "2", "3")]


def test_a_type_of_a_static_value_is_a_cause():
    f = jax.jit(lambda x, n: x * n, static_argnames="n")
    f(1.0, n=1)
    f(1.0, n=True)
    assert changes(f) == [("n", Cause.STATIC_TYPE, "1", "True")]


def test_a_static_object_without_equality_is_a_cause():
    class Options:
        pass

    f = jax.jit(lambda x, options: x, static_argnums=1)
    f(1.0, Options())
    f(1.0, Options())
    assert causes(f) == [("options", Cause.STATIC_IDENTITY)]


def test_a_static_function_made_anew_is_a_cause():
    f = jax.jit(lambda x, activation: activation(x), static_argnums=1)
    for _ in range(2):
        f(1.0, lambda x: x)
    ((argument, cause, before, after),) = changes(f)
    assert (argument, cause) == ("activation", Cause.STATIC_FUNCTION)
    assert before == after
    assert before.startswith("<lambda> at test_retraces.py:")


def test_a_type_of_a_container_is_a_cause():
    f = jax.jit(lambda xs: xs[0])
    f([1.0, 2.0])
    f((1.0, 2.0))
    assert changes(f) == [("xs", Cause.CONTAINER, "list", "tuple")]


def test_an_array_in_place_of_a_container_is_a_cause():
    f = jax.jit(lambda xs: xs)
    f([1.0])
    f(jnp.ones(1))
    assert changes(f) == [("xs", Cause.CONTAINER, "list", "f32[1]")]


def test_keys_of_a_dict_are_a_cause():
    f = jax.jit(lambda params: params["w"])
    f({"w": 1.0, "b": 1.0})
    f({"w": 1.0, "c": 1.0})
    assert changes(f) == [("params", Cause.DICT_KEYS, "['b', 'w']", "without 'b', with 'c'")]


def test_a_length_of_a_sequence_is_a_cause():
    f = jax.jit(lambda xs: xs[0])
    f([1.0, 2.0])
    f([1.0, 2.0, 3.0])
    assert changes(f) == [("xs", Cause.LENGTH, "2", "3")]


def test_none_in_place_of_a_value_is_a_cause():
    f = jax.jit(lambda x, mask=None: x)
    f(1.0, None)
    f(1.0, jnp.ones(2))
    assert changes(f) == [("mask", Cause.NONE, "None", "f32[2]")]


def test_static_data_of_a_tree_node_is_a_cause():
    @jax.tree_util.register_pytree_node_class
    class Scaled:
        def __init__(self, value, scale):
            self.value, self.scale = value, scale

        def tree_flatten(self):
            return (self.value,), self.scale

        @classmethod
        def tree_unflatten(cls, scale, children):
            return cls(*children, scale)

    f = jax.jit(lambda x: x.value)
    f(Scaled(1.0, "small"))
    f(Scaled(1.0, "large"))
    assert changes(f) == [("x", Cause.NODE_DATA, "'small'", "'large'")]


def test_an_argument_left_out_is_a_cause():
    f = jax.jit(lambda x, y=1.0: x + y)
    f(1.0)
    f(1.0, 2.0)
    assert changes(f) == [("y", Cause.PRESENCE, "left out", "given")]


def test_a_number_of_arguments_is_a_cause():
    f = jax.jit(lambda *xs: sum(xs))
    f(1.0)
    f(1.0, 2.0)
    assert changes(f) == [("xs[1]", Cause.COUNT, "left out", "given")]


def test_a_keyword_in_place_of_a_position_is_a_cause():
    f = jax.jit(lambda x, y: x + y)
    f(1.0, 2.0)
    f(1.0, y=2.0)
    assert changes(f) == [("y", Cause.KEYWORD, "by position", "by keyword")]


def test_another_choice_of_static_arguments_is_a_cause():
    def f(x, n):
        return x * n

    jax.jit(f)(1.0, 2)
    g = jax.jit(f, static_argnums=1)
    g(1.0, 2)
    assert ("static_argnums", Cause.STATICS, "()", "(1,)") in changes(g)


def test_donation_is_a_cause():
    def f(x):
        return x + 1

    jax.jit(f)(jnp.ones(3))
    g = jax.jit(f, donate_argnums=0)
    g(jnp.ones(3))
    assert ("donate_argnums", Cause.DONATION, "()", "(0,)") in changes(g)


def test_an_option_of_jit_is_a_cause():
    def f(x):
        return x + 1

    jax.jit(f)(1.0)
    g = jax.jit(f, keep_unused=True)
    g(1.0)
    assert changes(g) == [("keep_unused", Cause.OPTION, "False", "True")]


def test_64_bit_types_are_a_cause_by_name():
    f = jax.jit(lambda x: x)
    f(1)
    with jax.enable_x64(True):
        f(1)
    assert changes(f) == [("config.enable_x64", Cause.CONFIGURATION, "False", "True")]


def test_the_precision_of_products_is_a_cause_by_name():
    f = jax.jit(lambda x: x @ x)
    f(jnp.ones((2, 2)))
    with jax.default_matmul_precision("highest"):
        f(jnp.ones((2, 2)))
    name = "config.default_matmul_precision"
    assert changes(f) == [(name, Cause.CONFIGURATION, "None", "'highest'")]


def test_named_axes_in_scope_are_a_cause():
    f = jax.jit(lambda x: x)
    for name in ("i", "j"):
        jax.vmap(f, axis_name=name)(jnp.ones(3))
    assert changes(f) == [("", Cause.AXES, "i=3", "j=3")]


def test_a_new_function_at_the_same_line_is_a_cause():
    for _ in range(2):
        f = jax.jit(lambda x: x + 1)
        f(1.0)
    ((argument, cause, _, after),) = changes(f)
    assert (argument, cause) == ("", Cause.FUNCTION)
    assert after.startswith("jit at test_retraces.py:")


def test_a_captured_value_is_a_cause_by_name():
    for n in (2, 3):
        f = jax.jit(lambda x: x * n)  # noqa: B023  the closure is the point
        f(1.0)
    assert changes(f)[1:] == [("n", Cause.CAPTURED, "2", "3")]


def test_a_new_partial_object_is_a_cause():
    def scale(n, x):
        return x * n

    for n in (2.0, 3.0):
        f = jax.jit(functools.partial(scale, n))
        f(1.0)
    assert causes(f) == [("", Cause.PARTIAL), ("partial argument 0", Cause.CAPTURED)]


def test_a_method_of_another_object_is_a_cause():
    class Model:
        def apply(self, x):
            return x

    for model in (Model(), Model()):
        f = jax.jit(model.apply)
        f(1.0)
    assert causes(f) == [("", Cause.METHOD)]


def test_a_new_callable_object_is_a_cause():
    class Layer:
        def __call__(self, x):
            return x

    for layer in (Layer(), Layer()):
        f = jax.jit(layer)
        f(1.0)
    assert causes(f) == [("", Cause.CALLABLE)]


def test_closing_over_values_of_an_enclosing_trace_is_a_cause():
    held = []
    inner = jax.jit(lambda y: y * held[0])

    def outer(x):
        held[:] = [x]
        return inner(1.0)

    jax.jit(outer)(2.0)
    jax.jit(outer)(2)
    assert causes(inner) == [("", Cause.CLOSED_OVER_TRACER)]


def test_a_cleared_cache_is_a_cause():
    f = jax.jit(lambda x: x)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert causes(f) == [("", Cause.CLEARED)]


def test_clearing_all_caches_is_a_cause():
    f = jax.jit(lambda x: x)
    f(1.0)
    jax.clear_caches()
    f(1.0)
    assert causes(f) == [("", Cause.CLEARED)]


def test_a_device_of_arguments_is_a_cause_of_compilation():
    with jax.cpu_devices(2):
        f = jax.jit(lambda x, y: x["a"] + y)
        for device in jax.devices():
            f({"a": jax.device_put(1.0, device)}, 1.0)
        (retrace,) = explain.retraces(f).retraces
    assert retrace.step == "compiled"
    assert changes(f) == [("x['a']", Cause.DEVICE, "cpu:0", "cpu:1")]


def test_commitment_to_a_device_is_a_cause_of_compilation():
    f = jax.jit(lambda x: x + 1)
    f(jnp.ones(3))
    f(jax.device_put(jnp.ones(3), jax.devices()[0]))
    assert changes(f) == [("x", Cause.COMMITTED, "not committed", "committed")]


def test_the_default_device_is_a_cause_of_compilation():
    with jax.cpu_devices(2):
        f = jax.jit(lambda x: x + 1)
        f(np.ones(3, np.float32))
        with jax.default_device(jax.devices()[1]):
            f(np.ones(3, np.float32))
    assert changes(f) == [("config.default_device", Cause.DEFAULT_DEVICE, "cpu:0", "cpu:1")]


def test_the_nearest_earlier_signature_is_the_one_compared():
    f = jax.jit(lambda x, y: (x, y))
    f(jnp.ones(1), jnp.ones(1))
    f(jnp.ones(2), jnp.ones(2))
    f(jnp.ones(1), jnp.ones(3))
    assert changes(f)[2:] == [("y", Cause.SHAPE, "f32[1]", "f32[3]")]


def test_traces_inside_other_traces_count():
    inner = jax.jit(lambda x: x * 2)

    @jax.jit
    def outer(x):
        return inner(x) + inner(x[:1])

    outer(jnp.ones(3))
    (retrace,) = explain.retraces(inner).retraces
    assert retrace.inside == "outer"


def test_one_trace_is_no_retrace():
    f = jax.jit(lambda x: x)
    f(1.0)
    f(2.0)
    assert not explain.retraces(f)


def test_a_trace_that_failed_is_not_remembered():
    def f(x):
        if fail:
            raise ZeroDivisionError
        return x

    fail = True
    g = jax.jit(f)
    with pytest.raises(ZeroDivisionError):
        g(1.0)
    fail = False
    g(1.0)
    assert not explain.retraces(g)


def test_each_change_names_the_line_of_the_call_and_a_remedy():
    f = jax.jit(lambda x: jnp.sum(x))
    f(jnp.ones(3))
    f(jnp.ones(4))
    (change,) = explain.retraces(f)
    assert change.at.startswith("test_retraces.py:")
    assert "pad the argument" in change.remedy


def test_the_report_reads_as_text():
    f = jax.jit(lambda x: x + 1)
    f(jnp.ones(3))
    f(jnp.ones(4))
    head, again, change, fix = str(explain.retraces(f)).splitlines()
    assert head.startswith("<lambda>: traced 2 times, compiled 2 times; 1 of these")
    assert again.startswith("<lambda> was traced again at test_retraces.py:")
    assert change == "  x: shape, f32[3] -> f32[4]"
    assert fix.startswith("    fix: pad the argument")


def test_the_report_shows_few_leaves_of_many():
    f = jax.jit(lambda xs: xs)
    f([jnp.ones(1)] * 50)
    f([jnp.ones(2)] * 50)
    report = explain.retraces(f)
    assert len(report) == 50
    assert "... and 45 more: shape" in str(report)


def test_the_report_is_a_table_in_notebooks():
    f = jax.jit(lambda x: x)
    f({"<a>": 1.0})
    f({"<a>": 1})
    assert ">x[&#x27;&lt;a&gt;&#x27;]</td>" in explain.retraces(f)._repr_html_()


def test_functions_of_the_library_are_not_listed():
    def f(x):
        return jax.nn.relu(x) + jnp.var(x)

    f(jnp.ones(3))
    f(jnp.ones(4))
    assert not re.search(r"\b(relu|var)\b", str(explain.retraces()))


def test_retraces_of_all_functions_names_each():
    def remarkable(x):
        return x

    f = jax.jit(remarkable)
    f(1.0)
    f(1)
    assert "remarkable was traced again" in str(explain.retraces())


def test_retraces_refuses_what_is_no_function():
    with pytest.raises(TypeError, match=r"explain\.retraces: expected a jitted function"):
        explain.retraces(3)


def test_no_retrace_names_argument_cause_line_and_remedy():
    f = jax.jit(lambda x: x)
    f(jnp.ones(3))
    with jax.no_retrace(), pytest.raises(RetraceError) as caught:
        f(jnp.ones(4))
    text = str(caught.value)
    assert text.startswith("<lambda>: would be traced again inside no_retrace.")
    assert "x: shape, f32[3] -> f32[4]" in text
    assert "pad the argument" in text
    assert "at        test_retraces.py:" in text


def test_no_retrace_allows_first_traces_and_cached_calls():
    f = jax.jit(lambda x: x + 1)
    with jax.no_retrace():
        f(1.0)
        result = f(2.0)
    assert result == 3.0


def test_no_retrace_forgets_a_refused_trace():
    f = jax.jit(lambda x: x)
    f(1.0)
    with jax.no_retrace(), pytest.raises(RetraceError):
        f(1)
    assert not explain.retraces(f)


def test_no_retrace_ends_with_its_block():
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    with jax.no_retrace():
        pass
    assert f(1) == 2


def test_no_retrace_catches_jit_in_a_loop():
    def run(n):
        return jax.jit(lambda x: x * n)(1.0)

    run(2)
    with jax.no_retrace(), pytest.raises(RetraceError, match="n: captured value, 2 -> 3"):
        run(3)


def test_no_retrace_allows_functions_of_one_decorator():
    def logged(function):
        def call(x):
            return function(x)

        return jax.jit(call)

    with jax.no_retrace():
        results = [logged(lambda x: x + 1)(1.0), logged(lambda x: x + 2)(1.0)]
    assert results == [2.0, 3.0]


def test_no_retrace_allows_a_new_function_of_other_arguments():
    def run(x):
        return jax.jit(lambda y: y)(x)

    with jax.no_retrace():
        run(jnp.ones(3))
        assert run(jnp.ones(4)).shape == (4,)


def test_no_retrace_of_a_function_leaves_others_alone():
    f, g = jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)
    f(1.0)
    g(1.0)
    with jax.no_retrace(f):
        assert g(1) == 3
        with pytest.raises(RetraceError):
            f(1)


def test_no_retrace_refuses_a_second_compilation():
    f = jax.jit(lambda x: x + 1)
    f(jnp.ones(3))
    committed = jax.device_put(jnp.ones(3), jax.devices()[0])
    with jax.no_retrace(), pytest.raises(RetraceError, match="would be compiled again"):
        f(committed)


def test_no_retrace_is_a_decorator():
    f = jax.jit(lambda x: x)
    f(1.0)
    with pytest.raises(RetraceError):
        jax.no_retrace()(lambda: f(1))()


def test_no_retrace_leaves_eager_operations_alone():
    jnp.ones(3) + 1
    with jax.no_retrace():
        assert (jnp.ones(4) + jnp.var(jnp.ones(4))).shape == (4,)


def test_no_retrace_holds_in_its_thread_alone():
    f = jax.jit(lambda x: x + 1)
    f(1.0)
    results = []
    with jax.no_retrace():
        thread = threading.Thread(target=lambda: results.append(f(1)))
        thread.start()
        thread.join()
    assert results == [2]


def test_the_memory_of_a_place_is_bounded():
    f = jax.jit(lambda x: x)
    for n in range(history.RECORDS_OF_A_PLACE + 5):
        f.eval_shape(jax.ShapeDtypeStruct((n,), jnp.float32))
    assert len(history.traces_like(f.jit_function.function_record)) == history.RECORDS_OF_A_PLACE


@pytest.mark.usefixtures("young_heap")
def test_the_memory_holds_neither_functions_nor_what_they_capture():
    class Box:
        pass

    def references():
        box, static = Box(), Box()

        def f(x, static):
            return x if box else static

        jax.jit(f, static_argnums=1)(1.0, static)
        return [weakref.ref(x) for x in (f, box, static)]

    found = references()
    gc.collect()
    assert [reference() for reference in found] == [None] * 3


def test_every_cause_has_a_remedy():
    assert all(cause.remedy for cause in Cause)


def test_report_names_the_function_that_a_partial_holds():
    def scaled(scale, x):
        return scale * x

    f = jax.jit(functools.partial(scaled, 2.0))
    f(1.0)
    assert str(explain.retraces(f)).startswith("scaled: traced once")


def test_what_a_transformation_closes_over_is_no_captured_value():
    def loss(x):
        return x * x

    for _ in range(2):
        f = jax.jit(jax.grad(loss))
        f(1.0)
    assert [change.cause for change in explain.retraces(f)] == [Cause.FUNCTION]
