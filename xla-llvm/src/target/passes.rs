//! LLVM's mid-level passes, for targets whose emission counts on them: most count on none, and a library that names
//! none is a third smaller.

use std::hash::{Hash, Hasher};

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use xla_hlo::{Error, Result};

/// A pipeline of LLVM's passes. Whoever makes one links them all: nobody else mentions them.
#[derive(Clone, Debug)]
pub struct Passes {
    pipeline: String,
    run: fn(&Module<'_>, &TargetMachine, &str) -> Result<()>,
}

impl Passes {
    /// A pipeline as LLVM writes it: `"sroa,early-cse"`, `"default<O2>"`.
    pub fn new(pipeline: &str) -> Passes {
        Passes { pipeline: pipeline.to_string(), run }
    }

    /// Runs them over a module; [`Error::InvalidArgument`] for a pipeline that LLVM does not know.
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
