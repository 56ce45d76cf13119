"""Dtypes of results and classes of errors, as JAX 0.10.2 has them, and what errors say."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.scipy import special
from tests.scipy.special import record

FACTS = json.loads(Path(__file__).with_name("recorded.json").read_text())


@pytest.mark.parametrize("name", FACTS["types"])
def test_types_equal_those_of_jax(name):
    assert record.types_of(jax, name) == FACTS["types"][name] | record.DIFFERENCES.get(name, {})


def test_signatures_equal_those_of_jax():
    actual = {name: record.signature(getattr(special, name)) for name in FACTS["signatures"]}
    assert actual == FACTS["signatures"]
    assert sorted(special.__all__) == sorted(FACTS["signatures"])


@pytest.mark.parametrize("name", ["dawsn", "expi", "hyp1f1", "ndtri", "owens_t", "zeta"])
def test_function_is_one_operation(name):
    count = len(record.required(getattr(special, name)))
    jaxpr = jax.make_jaxpr(getattr(special, name))(*[np.float32(0.5)] * count)
    assert len(jaxpr.eqns) == 1


def test_batches_broadcast_with_what_is_not_mapped():
    a, x = np.float32([0.5, 2.0]), np.float32([[-1.0, 0.5, 3.0], [1.0, 2.0, 4.0]])
    mapped = jax.vmap(special.hyp1f1, in_axes=(0, None, 1))(a, np.float32(1.5), x[:, :2])
    expected = special.hyp1f1(a[:, None], np.float32(1.5), x[:, :2].T)
    np.testing.assert_array_equal(mapped, expected)


def test_narrow_floats_are_computed_with_in_single_precision():
    x = np.linspace(0.1, 5, 50)
    for dtype in (jnp.float16, jnp.bfloat16):
        narrow = jnp.asarray(x).astype(dtype)
        expected = special.expi(narrow.astype(np.float32)).astype(dtype)
        np.testing.assert_array_equal(special.expi(narrow), expected)


MESSAGES = [
    (lambda: special.factorial(3, exact=True), NotImplementedError, "factorial: integers of any"),
    (lambda: special.zeta(2.0), NotImplementedError, "zeta: q must be given"),
    (lambda: special.polygamma(1.5, 2.0), ValueError, "n is not of an integer dtype"),
    (lambda: special.ndtri(np.int32(1)), TypeError, "only float32 and float64"),
    (lambda: special.log_ndtr(1.0, 1.5), TypeError, "series_order must be a Python integer"),
    (lambda: special.log_ndtr(1.0, 31), ValueError, "series_order is out of range"),
    (lambda: special.dawsn(1j), ValueError, "scipy.special.dawsn: complex numbers"),
    (lambda: special.bernoulli(-1), ValueError, "n is negative"),
    (lambda: jax.jit(special.bernoulli)(3), TypeError, "n must be known"),
    (lambda: jax.jit(special.multigammaln)(3.0, 2), TypeError, "the dimension must be known"),
    (lambda: special.bessel_jn(1.0, v=1.5), TypeError, "v is no integer"),
    (lambda: special.sph_harm_y(1, 0, 0.1, 0.2, diff_n=1), NotImplementedError, "jacfwd"),
    (lambda: special.sph_harm_y(1.5, 0, 0.1, 0.2), TypeError, "n is not of integers"),
    (lambda: jax.jit(special.sph_harm_y)(1, 0, 0.1, 0.2), TypeError, "n_max="),
    (lambda: special.betaln([1.0], 2.0), TypeError, "scipy.special.betaln"),
    (lambda: jax.grad(special.polygamma, 0)(2.0, 1.0), ValueError, "integer dtype"),
    (lambda: jax.grad(special.betainc)(0.5, 0.5, 0.5), ValueError, "derivative with respect to a"),
]


@pytest.mark.parametrize(("call", "error", "text"), MESSAGES, ids=[t for _, _, t in MESSAGES])
def test_error_says_what_is_wrong(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
    assert "\n  " in str(caught.value)


def test_examples_are_shown():
    for name in special.__all__:
        assert "Example:" in inspect.getdoc(getattr(special, name))
