"""Records of special functions.  The oracle is SciPy, on which jaxlib depends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as scipy_special

from minijax.lax import incomplete_gamma, special
from tests.lax.records import Arg, ErrorSample, Record

_STEP = 1e-6


def _function(
    call: Callable[..., Any],
    oracle: Callable[..., Any],
    *bounds: tuple[float, float],
    grad: tuple[int, ...] = (),
    order: int = 2,
    tolerance: float = 0.0,
    errors: tuple[ErrorSample, ...] = (),
    name: str = "",
) -> Record:
    return Record(
        name=name or call.__name__,
        call=call,
        oracle=lambda *args: oracle(*(x.astype("float64") for x in args)),
        args=tuple(Arg((2, 3), low=low, high=high) for low, high in bounds),
        dtypes=("float32", "float64", "float16"),
        grad=grad,
        order=order,
        tolerance={"float32": max(tolerance, 2e-5), "float64": 1e-8, "float16": 4e-3},
        errors=(
            ErrorSample(call, tuple([np.arange(3)] * len(bounds)), TypeError, "dtype int32"),
            *errors,
        ),
    )


def _slope_of_gammainc(a: Any, x: Any) -> Any:
    ahead, behind = scipy_special.gammainc(a + _STEP, x), scipy_special.gammainc(a - _STEP, x)
    return (ahead - behind) / (2 * _STEP)


def _slope_of_samples(a: Any, x: Any) -> Any:
    density = np.exp((a - 1) * np.log(x) - x - scipy_special.gammaln(a))
    return -_slope_of_gammainc(a, x) / density


RECORDS = [
    _function(special.erf, scipy_special.erf, (-2, 2), grad=(0,)),
    _function(special.erfc, scipy_special.erfc, (-2, 2), grad=(0,)),
    _function(special.erf_inv, scipy_special.erfinv, (-0.9, 0.9), grad=(0,)),
    _function(special.lgamma, scipy_special.gammaln, (0.5, 4), grad=(0,)),
    _function(special.digamma, scipy_special.digamma, (0.5, 4), grad=(0,)),
    _function(special.bessel_i0e, scipy_special.i0e, (-20, 20), grad=(0,)),
    _function(special.bessel_i1e, scipy_special.i1e, (-20, 20), grad=(0,)),
    _function(special.zeta, scipy_special.zeta, (1.5, 4), (0.5, 4), tolerance=1e-4),
    Record(
        name="polygamma",
        call=special.polygamma,
        oracle=lambda m, x: scipy_special.polygamma(m.astype(int), x),
        args=(np.array([0.0, 1.0, 2.0], "float32"), Arg((3,), low=0.5, high=4)),
        grad=(1,),
        tolerance=1e-4,
    ),
    _function(
        incomplete_gamma.igamma, scipy_special.gammainc, (0.5, 9), (0.1, 12), grad=(0, 1), order=1
    ),
    _function(incomplete_gamma.igammac, scipy_special.gammaincc, (0.5, 9), (0.1, 12), grad=(1,)),
    _function(
        incomplete_gamma.igamma_grad_a, _slope_of_gammainc, (0.5, 9), (0.1, 12), tolerance=1e-4
    ),
    _function(
        incomplete_gamma.random_gamma_grad, _slope_of_samples, (0.5, 9), (0.1, 12), tolerance=1e-4
    ),
    _function(
        special.betainc,
        scipy_special.betainc,
        (0.5, 9),
        (0.5, 9),
        (0.05, 0.95),
        name="regularized_incomplete_beta",
        grad=(2,),
        tolerance=1e-4,
    ),
]
