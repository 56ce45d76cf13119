"""A regression in numpyro: NUTS over several chains, predictions, and variational inference."""

import figures
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

jax.config.update("jax_enable_x64", True)


def model(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
    offset = numpyro.sample("offset", dist.Normal(0, 2))
    noise = numpyro.sample("noise", dist.HalfCauchy(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ slope + offset, noise), obs=y)


def main():
    x = jax.random.normal(jax.random.key(0), (50, 3))
    y = x @ jnp.array([0.5, -1.0, 0.2]) + 0.3 + 0.1 * jax.random.normal(jax.random.key(1), (50,))
    chains = MCMC(
        NUTS(model),
        num_warmup=100,
        num_samples=100,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    chains.run(jax.random.key(2), x, y)
    samples = chains.get_samples()
    predicted = Predictive(model, samples)(jax.random.key(3), x[:3])["y"]
    guide = AutoNormal(model)
    fit = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    result = fit.run(jax.random.key(4), 200, x, y, progress_bar=False)
    density, _ = numpyro.infer.util.log_density(
        model, (x, y), {}, {"slope": jnp.ones(3), "offset": 0.1, "noise": 0.5}
    )
    return {
        "means": {name: value.mean(0) for name, value in samples.items()},
        "predicted": predicted.mean(0),
        "divergences": chains.get_extra_fields()["diverging"].sum(),
        "loss": result.losses[-1],
        "median": guide.median(result.params),
        "density": density,
    }


figures.show(main)
