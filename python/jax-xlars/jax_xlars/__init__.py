"""What programs may call before they use JAX; the plugin itself is `jax_plugins.xlars`.

>>> import jax_xlars
>>> jax_xlars.replace_cpu()         # our devices are `cpu`
>>> jax_xlars.register("template")  # or: a platform beside XLA's CPU, `jax.devices("xlars_template")`
"""

from jax_plugins.xlars import register, register_platform, replace_cpu

__all__ = ["register", "register_platform", "replace_cpu"]
