"""Gaussian processes: kernels and marginal likelihoods of GPJax, and its predictions."""

import gpjax as gpx
import jax.numpy as jnp
import numpy as np

KERNELS = {
    "rbf": lambda p: gpx.kernels.RBF(lengthscale=p[0], variance=p[1]), "matern12": lambda p: gpx.kernels.Matern12(lengthscale=p[0], variance=p[1]),
    "matern32": lambda p: gpx.kernels.Matern32(lengthscale=p[0], variance=p[1]), "matern52": lambda p: gpx.kernels.Matern52(lengthscale=p[0], variance=p[1]),
    "periodic": lambda p: gpx.kernels.Periodic(lengthscale=p[0], variance=p[1], period=p[2]),
    "rational": lambda p: gpx.kernels.RationalQuadratic(lengthscale=p[0], variance=p[1], alpha=p[2]),
    "linear": lambda p: gpx.kernels.Linear(variance=p[1]), "polynomial": lambda p: gpx.kernels.Polynomial(degree=3, variance=p[1], shift=p[2]),
}


def positive(random):
    return random.uniform(3, low=0.6, high=1.4)


def gram(build, n, m):
    def make(random):
        apply = lambda p, x, y: build(p).cross_covariance(x, y)
        return apply, positive(random), [random.normal(n, 2), random.normal(m, 2)]
    return make


def posterior(p):
    prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Constant(jnp.asarray([0.1])), kernel=KERNELS["matern52"](p))
    return prior * gpx.likelihoods.Gaussian(obs_stddev=p[2])


def likelihood(n):
    def make(random):
        def apply(p, x, y):
            return gpx.objectives.conjugate_mll(posterior(p), gpx.Dataset(X=x, y=y))
        return apply, positive(random), [random.normal(n, 2), random.normal(n, 1)]
    return make


def prediction(n, m):
    def make(random):
        def apply(p, x, y, new):
            latent = posterior(p).predict(new, train_data=gpx.Dataset(X=x, y=y))
            return latent.mean, latent.variance
        return apply, positive(random), [random.normal(n, 2), random.normal(n, 1), random.normal(m, 2)]
    return make


def register(zoo):
    for i, (name, build) in enumerate(KERNELS.items()):
        for n, m in [(1, 7), ((17, 31, 33)[i % 3], (10, 5, 97)[i % 3])]:
            zoo.model(f"{name}.n{n}_m{m}", gram(build, n, m))
    for n in (1, 7, 17, 31):
        zoo.model(f"likelihood.n{n}", likelihood(n))
        zoo.model(f"prediction.n{n}_m5", prediction(n, 5))
