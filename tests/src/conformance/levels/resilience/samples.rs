//! Programs with injected failures: those of level 3, and some of the corpus.

use std::path::PathBuf;

use xla::{Client, Literal, LoadedExecutable};

use crate::conformance::case::{Check, Stop};
use crate::conformance::launch;
use crate::conformance::levels::Sizes;
use crate::conformance::levels::corpus::Loaded;
use crate::conformance::levels::programs::{Run, files};
use crate::corpus;

/// Models of the corpus that are small enough to run dozens of times.
const MODELS: &[&str] =
    &["mlp_forward", "lenet_forward", "transformer_block_forward", "resnet_block_forward", "lstm_scan", "k_means"];
/// Number of models in quick runs.
const QUICK: usize = 2;

/// Source of a program.
#[derive(Clone, Debug)]
pub enum Sample {
    /// Program file of level 3.
    File(PathBuf),
    /// Model of the corpus.
    Model(String),
}

impl Sample {
    /// Returns the programs to run.
    pub fn all(sizes: &Sizes) -> Vec<Sample> {
        let models = &MODELS[..if sizes.quick { QUICK } else { MODELS.len() }];
        let own = |path: &PathBuf| path.parent().is_some_and(|folder| folder.ends_with("conformance/programs"));
        let files = files().into_iter().filter(own);
        files.map(Sample::File).chain(models.iter().map(|name| Sample::Model(name.to_string()))).collect()
    }

    /// Returns the name for identifiers.
    pub fn name(&self) -> String {
        match self {
            Sample::File(path) => path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
            Sample::Model(name) => name.clone(),
        }
    }

    /// Compiles the program for a client.
    pub fn load(&self, client: &Client) -> Result<Ready, Stop> {
        Ok(match self {
            Sample::File(path) => Ready::File(Box::new(Run::on(client, path)?)),
            Sample::Model(name) => Ready::Model(Box::new(Loaded::new(client, &corpus::case("models", name)?)?)),
        })
    }
}

/// Compiled sample with its expected results.
pub enum Ready {
    File(Box<Run>),
    Model(Box<Loaded>),
}

impl Ready {
    pub fn compiled(&self) -> &LoadedExecutable {
        match self {
            Ready::File(run) => &run.compiled,
            Ready::Model(loaded) => &loaded.compiled,
        }
    }

    pub fn arguments(&self) -> &[Literal] {
        match self {
            Ready::File(run) => &run.program.arguments,
            Ready::Model(loaded) => &loaded.arguments,
        }
    }

    /// Transfers the arguments, runs the program, and reads the results.
    pub fn run(&self) -> xla::Result<Literal> {
        launch::run(self.compiled(), self.arguments(), &launch::keeping(self.compiled()))
    }

    pub fn judge(&self, actual: &Literal) -> Check {
        match self {
            Ready::File(run) => run.judge(actual),
            Ready::Model(loaded) => loaded.judge(actual),
        }
    }

    /// Runs the program and compares the results.
    pub fn works(&self) -> Check {
        self.judge(&self.run()?)
    }
}
