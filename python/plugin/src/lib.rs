//! PJRT plugin of all platforms of a build: the shared library that JAX loads.

#[global_allocator]
static ALLOCATOR: xla::service::Allocator = xla::service::Allocator;

xla_pjrt::plugin!(xla::registry);
