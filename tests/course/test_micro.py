"""`micro` gives the programs of minijax, computes what NumPy computes, and stays small."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from tools.size import ParsedFile

PATH = Path(__file__).parents[2] / "docs" / "course" / "micro.py"

pytestmark = pytest.mark.feature("PG-05")


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("micro", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["micro"] = module
    spec.loader.exec_module(module)
    return module


micro = _loaded()
whole = SimpleNamespace(
    **{name: getattr(jnp, name) for name in ("sin", "cos", "exp", "log", "tanh", "sum")},
    **{name: getattr(minijax, name) for name in ("jit", "grad", "value_and_grad", "vmap", "jvp")},
    make_jaxpr=minijax.make_jaxpr,
    psum=lax.psum,
)

S = np.float32(2)
V = np.arange(1, 4, dtype=np.float32)
W = np.linspace(0, 1, 3, dtype=np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def _wave(m):
    return lambda w, x: x * m.sin(w * x)


def _centered(m):
    return lambda x: x - m.psum(x, "i") / 3.0


def _by_hand(m):
    @m.jit
    def inner(x, y):
        return m.sin(x) * y

    return lambda x, y: m.tanh(inner(x, y)) + inner(y, x)


# Each is written once, and given to micro and to minijax.
PROGRAMS = {
    "arithmetic": (lambda m: lambda x, y: (2.0 * x - y) / (1.0 + y * y), (S, S)),
    "functions": (lambda m: lambda x: m.exp(m.sin(x)) + m.log(m.cos(x) + 2.0) - m.tanh(-x), (V,)),
    "sum": (lambda m: lambda x: m.sum(m.sum(x, 0) * 2.0), (M,)),
    "several results": (lambda m: lambda x: (x, x + 1.0, 2.0), (S,)),
    "unused": (lambda m: lambda x: (m.sin(x), x * 2.0)[1], (S,)),
    "jit": (lambda m: m.jit(_wave(m)), (S, V)),
    "jit in jit": (lambda m: m.jit(lambda x: m.jit(m.sin)(x) * 2.0), (S,)),
    "jvp": (lambda m: lambda x, t: m.jvp(lambda x: m.sin(x) / x, (x,), (t,)), (S, S)),
    "jvp of jit": (lambda m: lambda x, t: m.jvp(m.jit(_wave(m)), (x, x), (t, t)), (S, S)),
    "grad": (lambda m: m.grad(lambda x: m.exp(x) * x - m.cos(x) / x), (S,)),
    "grad of a sum": (lambda m: m.grad(lambda x: m.sum(m.tanh(m.sum(x, 0)))), (M,)),
    "grad of a stretched scalar": (lambda m: m.grad(lambda w, x: m.sum(m.sin(x + w))), (S, V)),
    "value and grad": (lambda m: m.value_and_grad(lambda w, x: m.sum(w * x)), (S, V)),
    "second derivative": (lambda m: m.grad(m.grad(lambda x: m.sin(x) * x)), (S,)),
    "grad of jit": (lambda m: m.grad(lambda x: m.jit(lambda x: m.sin(x) * x)(x) * 2.0), (S,)),
    "grad of two jits": (lambda m: m.grad(_by_hand(m)), (S, S)),
    "vmap": (lambda m: m.vmap(lambda x, y: x * y, in_axes=(0, None)), (M, V)),
    "vmap in vmap": (
        lambda m: m.vmap(m.vmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(None, 0)),
        (V, W),
    ),
    "vmap of grad": (lambda m: m.vmap(m.grad(_wave(m)), in_axes=(None, 0)), (S, V)),
    "vmap of jit": (lambda m: m.vmap(m.jit(_wave(m)), in_axes=(0, None)), (V, S)),
    "vmap of grad of jit": (lambda m: m.vmap(m.grad(m.jit(lambda x: m.sin(x) * x))), (V,)),
    "psum": (lambda m: m.vmap(_centered(m), axis_name="i"), (V,)),
    "psum of rows": (lambda m: m.vmap(lambda x: x - m.psum(x * x, "i"), axis_name="i"), (M,)),
    "psum in jit": (lambda m: m.vmap(m.jit(_centered(m)), axis_name="i"), (V,)),
    "grad of psum": (
        lambda m: m.grad(lambda v: m.sum(m.vmap(lambda x: x * m.psum(x, "i"), axis_name="i")(v))),
        (V,),
    ),
    "psum of grad": (
        lambda m: m.vmap(m.grad(lambda x: m.sin(x) * m.psum(x, "i")), axis_name="i"),
        (V,),
    ),
}


def test_micro_is_compared_on_twenty_functions_and_more() -> None:
    assert len(PROGRAMS) >= 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_micro_gives_the_jaxpr_of_minijax(name: str) -> None:
    make, args = PROGRAMS[name]
    # The one parameter that micro has no use for: it knows no shardings.
    expected = str(minijax.make_jaxpr(make(whole))(*args)).replace(" out_sharding=None", "")

    assert str(micro.make_jaxpr(make(micro))(*args)) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_micro_computes_what_minijax_computes(name: str) -> None:
    make, args = PROGRAMS[name]
    expected = make(whole)(*args)
    actual = make(micro)(*args)

    pairs = zip(micro.several(expected), micro.several(actual), strict=True)
    assert all(np.allclose(x, y, rtol=1e-5, atol=1e-6) for x, y in pairs)


def test_micro_has_at_most_five_hundred_lines_of_code() -> None:
    assert ParsedFile(PATH, PATH.name).code_lines <= 500


def test_jit_of_micro_runs_the_function_once_for_each_shape() -> None:
    seen = []
    double = micro.jit(lambda x: (seen.append(x.shape), x * 2.0)[1])
    for x in (V, V, W, M, S):
        double(x)

    assert seen == [(3,), (2, 3), ()]


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (lambda x: micro.jit(lambda x: x if x else -x)(x), TypeError, "its truth is not known"),
        (lambda x: micro.psum(x, "i"), NameError, "names an axis 'i'"),
        (
            lambda x: micro.grad(lambda x: micro.jit(lambda y: x * y)(2.0))(x),
            TypeError,
            "a tracer from outside",
        ),
    ],
)
def test_micro_refuses_what_it_cannot_do(program, error, words) -> None:
    with pytest.raises(error, match=words):
        program(S)
