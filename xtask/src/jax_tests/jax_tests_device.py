"""The device that JAX's tests take theirs for, which their helpers have a flag and no variable for."""

import os

import jax
from jax._src import test_util


def under_test() -> str:
    """Sets it to that of `JAX_TEST_DUT`, if there is one; else it is the platform's name."""
    if told := os.environ.get("JAX_TEST_DUT"):
        jax.config.update("jax_test_dut", told)
    return test_util.device_under_test()
