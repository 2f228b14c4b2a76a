"""MJX and JAX MD: energies, forces and steps of rigid bodies and particles."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax_md import energy, simulate, space
from mujoco import mjx

PENDULUM = """<mujoco><option timestep="0.01" iterations="3" ls_iterations="4"/><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" contype="0" conaffinity="0"/><body pos="0 0 -0.5"><joint name="b" axis="0 1 0" damping="0.1"/>
<geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.4" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><motor joint="a" gear="2"/></actuator></mujoco>"""
ARM = """<mujoco><option timestep="0.005" iterations="2" ls_iterations="3"/><worldbody><body><joint type="ball"/>
<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" contype="0" conaffinity="0"/><body pos="0.3 0 0"><joint type="slide" axis="1 0 0" range="-0.1 0.1" limited="true"/>
<geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body></body></worldbody></mujoco>"""


def kinematics(xml, batch):
    def make(random):
        model = mujoco.MjModel.from_xml_string(xml)
        device, data = mjx.put_model(model), mjx.make_data(model)
        def one(q, v):
            out = mjx.kinematics(device, data.replace(qpos=q, qvel=v))
            return out.xpos, mjx.com_pos(device, out).subtree_com
        q = random.normal(batch, model.nq, scale=0.3)
        return lambda q, v: jax.vmap(one)(q, v), q, [random.normal(batch, model.nv, scale=0.5)]
    return make


def dynamics(xml, batch):
    """One step of the simulation."""
    def make(random):
        model = mujoco.MjModel.from_xml_string(xml)
        device, data = mjx.put_model(model), mjx.make_data(model)
        def one(q, v):
            out = mjx.step(device, data.replace(qpos=q, qvel=v))
            return out.qpos, out.qvel
        q = random.normal(batch, model.nq, scale=0.3)
        return lambda q, v: jax.vmap(one)(q, v), q, [random.normal(batch, model.nv, scale=0.5)]
    return make


ENERGIES = {
    "lennard_jones": lambda d: energy.lennard_jones_pair(d), "soft_sphere": lambda d: energy.soft_sphere_pair(d),
    "morse": lambda d: energy.morse_pair(d), "gupta": None,
}


def lattice(random, n, dimension):
    """Particles on a grid with noise, so that none are close."""
    side = int(np.ceil(n ** (1 / dimension)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * dimension), -1).reshape(-1, dimension)[:n]
    return (1.1 * grid + random.normal(n, dimension, scale=0.05)).astype(np.float32), np.float32(1.1 * side)


def potential(name, n, dimension, forces):
    def make(random):
        positions, box = lattice(random, n, dimension)
        displacement, _ = space.periodic(box)
        total = ENERGIES[name](displacement)
        apply = lambda r: (total(r), jax.grad(total)(r)) if forces else total(r)
        return lambda p, r: apply(r * p), np.float32(1.0), [positions]
    return make


def simulation(kind, n, steps):
    def make(random):
        positions, box = lattice(random, n, 2)
        displacement, shift = space.periodic(box)
        total = energy.soft_sphere_pair(displacement)
        def run(r, key):
            builders = {
                "nve": lambda: simulate.nve(total, shift, 1e-3), "langevin": lambda: simulate.nvt_langevin(total, shift, 1e-3, 0.1),
                "nose_hoover": lambda: simulate.nvt_nose_hoover(total, shift, 1e-3, 0.1), "brownian": lambda: simulate.brownian(total, shift, 1e-3, 0.1),
            }
            start, step = builders[kind]()
            options = {} if kind == "brownian" else {"kT": 0.1} if kind == "nve" else {}
            state = start(jax.random.wrap_key_data(key), r, **options)
            return jax.lax.fori_loop(0, steps, lambda _, s: step(s), state).position
        return run, (positions, random.key())
    return make


def register(zoo):
    for batch in (1, 3):
        for name, xml in [("pendulum", PENDULUM), ("arm", ARM)]:
            zoo.model(f"mjx_kinematics_{name}.b{batch}", kinematics(xml, batch), batch)
            zoo.model(f"mjx_step_{name}.b{batch}", dynamics(xml, batch), batch, kinds=("forward",))
    for name in ("lennard_jones", "soft_sphere", "morse"):
        for n, dimension in [(7, 2), (17, 3), (33, 2)]:
            zoo.model(f"{name}.n{n}_d{dimension}", potential(name, n, dimension, False))
            zoo.model(f"{name}_forces.n{n}_d{dimension}", potential(name, n, dimension, True), kinds=("forward",))
    for kind in ("nve", "langevin", "nose_hoover", "brownian"):
        for n in (7, 31):
            zoo.function(f"{kind}.n{n}", simulation(kind, n, 3))
