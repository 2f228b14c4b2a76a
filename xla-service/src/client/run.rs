//! Runs on one device, on buffers or on literals.

use xla_hlo::{Error, Literal, Result};

use super::buffer::Buffer;
use super::loaded::LoadedExecutable;
use super::options::{Dispatch, ExecuteOptions};
use crate::signature::ungroup;

impl LoadedExecutable {
    /// Runs the program on the calling thread without donation. See [`LoadedExecutable::execute_with`].
    pub fn execute(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>> {
        self.execute_with(arguments, &ExecuteOptions::default())
    }

    /// Runs the program on the first of its devices. Takes one argument for each argument of the signature, and returns
    /// one buffer for each result.
    ///
    /// Arguments may be pending. Errors: those of [`LoadedExecutable::launch`]. The program's own errors and those of
    /// its arguments are returned by the call if [`Dispatch::Inline`] runs the program on the host, and otherwise
    /// reported by the result buffers.
    pub fn execute_with(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        let results = self.launch(&[arguments], options)?.pop();
        let results = results.ok_or_else(|| Error::internal("a launch returned no results"))?;
        match results.failure() {
            Some(error) if options.dispatch == Dispatch::Inline => Err(error),
            Some(_) | None => Ok(results.buffers),
        }
    }

    /// Runs the program on literals, one for each parameter, tuples included, and waits for the result.
    pub fn run(&self, parameters: Vec<Literal>) -> Result<Literal> {
        let expected = self.signature().parameters();
        if parameters.len() != expected.len() {
            return Err(self.wrong_count("parameters", expected.len(), parameters.len()));
        }
        for (i, (literal, shape)) in parameters.iter().zip(expected).enumerate() {
            if !literal.shape().compatible(shape) {
                let shown = literal.shape();
                return Err(Error::invalid_argument(format!(
                    "parameter {i} of {} is {shape}, not {shown}",
                    self.name()
                )));
            }
        }
        let leaves = parameters.into_iter().flat_map(ungroup).enumerate();
        let buffers = leaves.map(|(i, leaf)| self.argument_buffer(i, &leaf)).collect::<Result<Vec<_>>>()?;
        // These buffers have no other owner, so all of them can be donated.
        let options = ExecuteOptions { donate: (0..buffers.len()).collect(), ..ExecuteOptions::default() };
        let results = self.execute_with(&buffers.iter().collect::<Vec<_>>(), &options)?;
        let literals = results.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        self.signature().group_results(literals)
    }
}
