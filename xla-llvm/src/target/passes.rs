//! Mid-level passes of LLVM, for targets whose code generation needs them. Most targets need none, and a library that
//! does not link them is a third smaller.

use std::hash::{Hash, Hasher};

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use xla_hlo::{Error, Result};

/// Pipeline of LLVM passes. Only its constructor references the passes, so that they are linked only if it is used.
#[derive(Clone, Debug)]
pub struct Passes {
    pipeline: String,
    run: fn(&Module<'_>, &TargetMachine, &str) -> Result<()>,
}

impl Passes {
    /// Creates a pipeline from LLVM's syntax: `"sroa,early-cse"`, `"default<O2>"`.
    pub fn new(pipeline: &str) -> Passes {
        Passes { pipeline: pipeline.to_string(), run }
    }

    /// Runs the pipeline on a module.
    ///
    /// Fails with [`Error::InvalidArgument`] for a pipeline that LLVM does not know.
    pub(super) fn run(&self, module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
        (self.run)(module, machine, &self.pipeline)
    }
}

impl PartialEq for Passes {
    fn eq(&self, other: &Passes) -> bool {
        self.pipeline == other.pipeline
    }
}

impl Eq for Passes {}

impl Hash for Passes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pipeline.hash(state);
    }
}

fn run(module: &Module<'_>, machine: &TargetMachine, pipeline: &str) -> Result<()> {
    module
        .run_passes(pipeline, machine, PassBuilderOptions::create())
        .map_err(|reason| Error::invalid_argument(format!("LLVM refuses the pass pipeline `{pipeline}`: {reason}")))
}
