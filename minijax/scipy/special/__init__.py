"""Special functions, as `jax.scipy.special` has them."""

from minijax.numpy.normalized_exponentials import logsumexp
from minijax.scipy.special.bessel import (
    bessel_jn,
    i0,
    i0e,
    i1,
    i1e,
)
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
from minijax.scipy.special.gamma_functions import (
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
)
from minijax.scipy.special.harmonics import (
    sph_harm_y,
)
from minijax.scipy.special.hypergeometric_functions import (
    hyp1f1,
    hyp2f1,
)
from minijax.scipy.special.information import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    log_softmax,
    logit,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
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
from minijax.scipy.special.zeta_functions import (
    bernoulli,
    polygamma,
    spence,
    zeta,
)

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    """The public names, without the modules that define them."""
    return sorted(__all__)
