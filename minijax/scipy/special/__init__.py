"""Special functions, as `jax.scipy.special` has them."""

from minijax.scipy.special.error_functions import (
    dawsn,
    erf,
    erfc,
    erfcx,
    erfinv,
    wofz,
)
from minijax.scipy.special.exponential_integrals import (
    exp1,
    expi,
    expn,
)
from minijax.scipy.special.normal_distribution import (
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
)
from minijax.scipy.special.oscillating_integrals import (
    fresnel,
    sici,
)

__all__ = [
    "dawsn",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "owens_t",
    "sici",
    "wofz",
]
