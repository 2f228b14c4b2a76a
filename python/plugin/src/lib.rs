//! PJRT plugin of all platforms of a build: the shared library that JAX loads.

xla_pjrt::plugin!(xla::registry);
