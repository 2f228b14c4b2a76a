"""NumPyro, BlackJAX and Distrax: densities of models and their gradients, distributions, a few steps of samplers."""

import blackjax
import distrax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import log_density


def density(model, parameters, *inputs):
    """`make` of the log density of a NumPyro model at given latent values."""

    def make(random):
        values = [value(random) for value in inputs]
        latent = {name: value(random) for name, value in parameters.items()}
        return lambda latent, *values: log_density(model, values, {}, latent)[0], latent, values

    return make


def rows(*shape, scale=1.0):
    return lambda random: random.normal(*shape, scale=scale)


def positive(*shape):
    return lambda random: random.uniform(*shape, low=0.3, high=2.0)


def schools(sigma, y):
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(y)):
        numpyro.sample("obs", dist.Normal(numpyro.sample("theta", dist.Normal(mu, tau)), sigma), obs=y)


def logistic(x, y):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    numpyro.sample("obs", dist.Bernoulli(logits=x @ w), obs=y)


def classes(x, y):
    w = numpyro.sample("w", dist.Normal(jnp.zeros((x.shape[1], 10)), 1.0).to_event(2))
    numpyro.sample("obs", dist.Categorical(logits=x @ w), obs=y)


def counts(x, y):
    w = numpyro.sample("w", dist.StudentT(4.0, jnp.zeros(x.shape[1]), 1.0).to_event(1))
    numpyro.sample("obs", dist.NegativeBinomial2(jnp.exp(x @ w), 2.5), obs=y)


def mixture(y):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    mean = numpyro.sample("mean", dist.Normal(jnp.zeros(3), 3.0).to_event(1))
    numpyro.sample("obs", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(mean, 0.7)), obs=y)


def chain(y):
    """Hidden Markov model, by the forward algorithm in a scan."""
    rows = numpyro.sample("rows", dist.Dirichlet(jnp.ones((5, 5))).to_event(1))
    mean = numpyro.sample("mean", dist.Normal(jnp.zeros(5), 2.0).to_event(1))
    emit = dist.Normal(mean, 1.0).log_prob(y[:, None])
    step = lambda a, e: (jax.scipy.special.logsumexp(a[:, None] + jnp.log(rows), 0) + e, 0.0)
    numpyro.factor("evidence", jax.scipy.special.logsumexp(jax.lax.scan(step, emit[0] - jnp.log(5.0), emit[1:])[0]))


def covariance(y):
    factor = numpyro.sample("factor", dist.LKJCholesky(5, 1.5))
    numpyro.sample("obs", dist.MultivariateNormal(jnp.zeros(5), scale_tril=factor), obs=y)


def simplex(*shape):
    def value(random):
        raw = random.uniform(*shape, low=0.2, high=1.0)
        return (raw / raw.sum(-1, keepdims=True)).astype(np.float32)
    return value


def cholesky(n):
    def value(random):
        raw = np.tril(random.normal(n, n, scale=0.3).astype(np.float64), -1) + np.eye(n)
        return (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)
    return value


DISTRIBUTIONS = {
    "normal": (lambda p: dist.Normal(p, 1.3), False), "laplace": (lambda p: dist.Laplace(p, 0.7), False),
    "cauchy": (lambda p: dist.Cauchy(p, 1.1), False), "gumbel": (lambda p: dist.Gumbel(p, 0.9), False),
    "logistic": (lambda p: dist.Logistic(p, 0.8), False), "student_t": (lambda p: dist.StudentT(3.5, p, 1.2), False),
    "gamma": (lambda p: dist.Gamma(p, 1.3), True), "beta": (lambda p: dist.Beta(p, 2.3), True),
    "exponential": (lambda p: dist.Exponential(p), True), "weibull": (lambda p: dist.Weibull(p, 1.7), True),
    "pareto": (lambda p: dist.Pareto(p, 3.0), True), "von_mises": (lambda p: dist.VonMises(0.3, p), True),
    "inverse_gamma": (lambda p: dist.InverseGamma(p + 1, 1.5), True), "chi2": (lambda p: dist.Chi2(p), True),
    "poisson": (lambda p: dist.Poisson(p), True), "dirichlet": (lambda p: dist.Dirichlet(p), True),
}


def sample_and_density(build, n, positive_parameter):
    def make(random):
        parameter = random.uniform(n, low=0.4, high=2.5) if positive_parameter else random.normal(n)
        def apply(parameter, key):
            value = build(parameter).sample(jax.random.wrap_key_data(key))
            # Samplers that reject depend on decisions; the density at the sample has a gradient.
            return value, build(parameter).log_prob(jax.lax.stop_gradient(value))
        return apply, parameter, [random.key()]
    return make


def sampler(kind, steps, n):
    """A few steps of a sampler of BlackJAX on a banana-shaped density."""

    def make(random):
        target = lambda x: -0.5 * jnp.sum(x**2) - 0.1 * jnp.sum((x[1:] - x[:-1] ** 2) ** 2)
        def run(start, key):
            builders = {
                "hmc": lambda: blackjax.hmc(target, 0.05, jnp.ones(n), 5), "nuts": lambda: blackjax.nuts(target, 0.05, jnp.ones(n), max_num_doublings=3),
                "mala": lambda: blackjax.mala(target, 0.02), "sgld": lambda: None,
                "rmh": lambda: blackjax.additive_step_random_walk(target, blackjax.mcmc.random_walk.normal(0.1 * jnp.ones(n))),
                "slice": lambda: blackjax.elliptical_slice(lambda x: -0.1 * jnp.sum(x**4), mean=jnp.zeros(n), cov=jnp.eye(n)),
            }
            kernel = builders[kind]()
            step = lambda state, key: (kernel.step(key, state)[0], 0.0)
            state, _ = jax.lax.scan(step, kernel.init(start), jax.random.split(jax.random.wrap_key_data(key), steps))
            return state.position
        return run, (random.normal(n, scale=0.5), random.key())

    return make


BIJECTORS = {
    "sigmoid": lambda: distrax.Sigmoid(), "tanh": lambda: distrax.Tanh(), "affine": lambda: distrax.ScalarAffine(0.3, 1.7),
    "chain": lambda: distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.1, 0.5)]),
    "spline": None,
}


def flow(name, batch, n):
    def make(random):
        if name == "spline":
            apply = lambda p, x: distrax.RationalQuadraticSpline(p, -3.0, 3.0).forward_and_log_det(x)
            return apply, random.normal(n, 3 * 5 + 1), [random.normal(batch, n)]
        bijector = BIJECTORS[name]()
        apply = lambda p, x: bijector.forward_and_log_det(x * p)
        return apply, random.uniform(n, low=0.5, high=1.5), [random.normal(batch, n, scale=0.7)]
    return make


def labels(high, *shape):
    return lambda random: random.integers(high, *shape)


def register(zoo):
    for n in (1, 7, 33):
        zoo.model(f"schools.n{n}", density(schools, {"mu": rows(), "tau": positive(), "theta": rows(n)}, positive(n), rows(n)))
        zoo.model(f"logistic.n{n}", density(logistic, {"w": rows(5)}, rows(n, 5), labels(2, n)))
        zoo.model(f"classes.n{n}", density(classes, {"w": rows(7, 10)}, rows(n, 7), labels(10, n)))
        zoo.model(f"counts.n{n}", density(counts, {"w": rows(5, scale=0.3)}, rows(n, 5), labels(9, n)))
        zoo.model(f"mixture.n{n}", density(mixture, {"weights": simplex(3), "mean": rows(3)}, rows(n)))
        zoo.model(f"covariance.n{n}", density(covariance, {"factor": cholesky(5)}, rows(n, 5)))
    for n in (5, 33):
        zoo.model(f"hidden_markov.n{n}", density(chain, {"rows": simplex(5, 5), "mean": rows(5)}, rows(n)))
    for i, (name, (build, positive_parameter)) in enumerate(DISTRIBUTIONS.items()):
        # The Bessel functions of its density are computed in loops without a reverse mode.
        kinds = ("forward",) if name == "von_mises" else ("forward", "gradient")
        zoo.model(f"{name}.n{(7, 31, 100)[i % 3]}", sample_and_density(build, (7, 31, 100)[i % 3], positive_parameter), kinds=kinds)
    for kind, steps in [("hmc", 3), ("nuts", 2), ("mala", 5), ("rmh", 5), ("slice", 3)]:
        for n in (2, 7):
            zoo.function(f"{kind}.n{n}", sampler(kind, steps, n))
    for name in BIJECTORS:
        for batch, n in [(1, 7), (3, 31)]:
            zoo.model(f"flow_{name}.b{batch}_n{n}", flow(name, batch, n), batch)
