"""Diffrax: ordinary, controlled and stochastic differential equations, and gradients through the solvers."""

import diffrax
import jax
import jax.numpy as jnp

FIELDS = {
    "lotka_volterra": lambda t, y, p: jnp.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]),
    "lorenz": lambda t, y, p: jnp.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]),
    "pendulum": lambda t, y, p: jnp.stack([y[1], -p[0] * jnp.sin(y[0]) - p[1] * y[1]]),
}


def solve(field, solver, n, steps, adjoint=None, adaptive=False, batch=1):
    def make(random):
        def one(p, y):
            controller = diffrax.PIDController(rtol=1e-3, atol=1e-3) if adaptive else diffrax.ConstantStepSize()
            options = {} if adjoint is None else {"adjoint": adjoint()}
            return diffrax.diffeqsolve(diffrax.ODETerm(field), solver(), 0.0, 0.5, 0.5 / steps, y, args=p, max_steps=64,
                                       saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 0.5, 5)), stepsize_controller=controller, **options).ys
        return jax.vmap(one, (None, 0)), random.uniform(4, low=0.5, high=1.5), [random.uniform(batch, n, low=0.5, high=1.5)]
    return make


def network(solver, batch):
    """Neural differential equation of a small MLP."""
    def make(random):
        p = {"w": random.normal(5, 17, scale=0.4), "v": random.normal(17, 5, scale=0.2)}
        def apply(p, y):
            field = lambda t, y, p: jnp.tanh(y @ p["w"] + t) @ p["v"]
            return diffrax.diffeqsolve(diffrax.ODETerm(field), solver(), 0.0, 1.0, 0.2, y, args=p, max_steps=16).ys
        return apply, p, [random.normal(batch, 5)]
    return make


def stochastic(solver, batch):
    def make(random):
        def one(p, y, key):
            path = diffrax.VirtualBrownianTree(0.0, 0.5, 0.05, shape=(3,), key=jax.random.wrap_key_data(key))
            terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, p: -p[0] * y), diffrax.ControlTerm(lambda t, y, p: p[1] * jnp.diag(jnp.cos(y)), path))
            return diffrax.diffeqsolve(terms, solver(), 0.0, 0.5, 0.1, y, args=p, max_steps=8, adjoint=diffrax.DirectAdjoint()).ys
        keys = lambda random: jnp.stack([random.key() for _ in range(batch)])
        return jax.vmap(one, (None, 0, 0)), random.uniform(2, low=0.3, high=1.0), [random.normal(batch, 3), keys(random)]
    return make


def controlled(batch, length):
    """Neural controlled differential equation of an interpolated path."""
    def make(random):
        p = {"w": random.normal(7, 7 * 3, scale=0.2)}
        def one(p, xs):
            ts = jnp.linspace(0.0, 1.0, length)
            path = diffrax.CubicInterpolation(ts, diffrax.backward_hermite_coefficients(ts, xs))
            term = diffrax.ControlTerm(lambda t, y, p: jnp.tanh(y @ p["w"]).reshape(7, 3), path).to_ode()
            return diffrax.diffeqsolve(term, diffrax.Heun(), 0.0, 1.0, 0.25, jnp.ones(7), args=p, max_steps=8).ys
        return jax.vmap(one, (None, 0)), p, [random.normal(batch, length, 3)]
    return make


def register(zoo):
    sizes = {"lotka_volterra": 2, "lorenz": 3, "pendulum": 2}
    for name, field in FIELDS.items():
        for solver in (diffrax.Euler, diffrax.Tsit5):
            for batch in (1, 3):
                zoo.model(f"{name}_{solver.__name__.lower()}.b{batch}", solve(field, solver, sizes[name], 4, batch=batch), batch)
    pendulum = FIELDS["pendulum"]
    for solver in (diffrax.Dopri5, diffrax.Bosh3, diffrax.Midpoint, diffrax.Ralston, diffrax.Dopri8):
        zoo.model(f"pendulum_{solver.__name__.lower()}.b2", solve(pendulum, solver, 2, 3, batch=2), 2)
    zoo.model("pendulum_adaptive.b1", solve(pendulum, diffrax.Tsit5, 2, 5, adaptive=True), 1)
    zoo.model("pendulum_adaptive.b3", solve(pendulum, diffrax.Tsit5, 2, 5, adaptive=True, batch=3), 3)
    zoo.model("pendulum_backsolve.b1", solve(pendulum, diffrax.Tsit5, 2, 4, adjoint=diffrax.BacksolveAdjoint), 1, kinds=("gradient",))
    # Implicit solvers call LAPACK for small systems; lowered for a TPU, they call LuDecomposition: XLA:CPU is no reference.
    for batch in (1, 2, 3):
        zoo.model(f"network_heun.b{batch}", network(diffrax.Heun, batch), batch)
        zoo.model(f"stochastic_euler_heun.b{batch}", stochastic(diffrax.EulerHeun, batch), batch)
        zoo.model(f"controlled.b{batch}_t{(5, 7, 17)[batch - 1]}", controlled(batch, (5, 7, 17)[batch - 1]), batch)
