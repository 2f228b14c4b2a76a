//! Compiles the network for the target that Cargo builds for.

fn main() {
    xla_build::Program::new("../digits.hlo").compile();
}
