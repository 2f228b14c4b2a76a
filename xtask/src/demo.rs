//! `cargo xtask demo`: a transformer encoder block and its training step, from nothing to checked results.

use std::time::Instant;

use anyhow::Result;
use pico_args::Arguments;

use crate::bench::{Measurement, Programs};
use crate::corpus::{checked_run, unpack};
use crate::shell::run as run_program;
use crate::{build, finish, packages};

pub const HELP: &str = "\
Sets the machine up, builds the `xla` command, compiles a transformer encoder block and its training step (traced from
JAX) for this machine's CPU, runs them, compares their outputs with the expected ones, and reports their speed.
";

/// Small programs with every element of their outputs on file.
const SMALL: &[&str] = &["transformer_block_forward", "transformer_block_gradient"];

/// The model at working size; the sums of XLA's outputs are on file.
const LARGE: &[&str] = &["encoder_block", "transformer_train_step"];

pub fn run(args: Arguments) -> Result<()> {
    finish(args)?;
    let start = Instant::now();
    packages::ensure()?;
    println!("Building the `xla` command (minutes the first time, seconds afterwards).");
    let xla = build::xla()?;

    println!("\nA small transformer block and its gradient, every output element compared with the expected one:");
    let models = unpack("models")?;
    for name in SMALL {
        run_program(checked_run(&xla, "cpu", &models.join(name))?)?;
    }

    println!("\nThe same at working size, compiled and run on this machine's CPU:");
    let programs = Programs::unpack()?;
    for name in LARGE {
        println!("  {name}: {}", programs.get(name)?.description);
    }
    println!("\n{}", Measurement::HEAD);
    for name in LARGE {
        let program = programs.get(name)?;
        println!("{}", program.measure(&xla, &[])?.row(program));
    }
    println!(
        "\nAll outputs are as expected ({:.0} s in all). Next: `cargo xtask test`, and README.md.",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
