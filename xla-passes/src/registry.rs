//! Every pass by name, for `xla opt --passes a,b,c`.

use xla_hlo::{Error, Result};

use crate::{
    DeadCode, FlattenCallGraph, FreeReshapes, Fuse, InlineCalls, InlineMaps, NormalizeLayouts, Pass, Pipeline,
    SimplifyTuples,
};

/// A name, a sentence, and how to make the pass.
type Entry = (&'static str, &'static str, fn() -> Box<dyn Pass>);

/// All passes: name, what they do, constructor.
const PASSES: &[Entry] = &[
    ("dead-code", "removes what no result needs", || Box::new(DeadCode)),
    ("flatten-call-graph", "gives each call site its own computation", || Box::new(FlattenCallGraph)),
    ("free-reshapes", "reshapes between kernels become bitcasts", || Box::new(FreeReshapes)),
    ("fuse", "producers go into the kernels that consume them", || Box::new(Fuse)),
    ("inline-calls", "calls become the instructions they call", || Box::new(InlineCalls)),
    ("inline-maps", "mapped elementwise functions become array operations", || Box::new(InlineMaps)),
    ("normalize-layouts", "every array becomes row major", || Box::new(NormalizeLayouts)),
    ("simplify-tuples", "elements of tuples just put together", || Box::new(SimplifyTuples)),
];

/// Names and descriptions of all passes, in alphabetical order.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    PASSES.iter().map(|(name, what, _)| (*name, *what))
}

/// The pass of that name. The error lists the names there are.
pub fn pass(name: &str) -> Result<Box<dyn Pass>> {
    PASSES.iter().find(|(n, ..)| *n == name).map(|(.., make)| make()).ok_or_else(|| {
        let names: Vec<&str> = list().map(|(n, _)| n).collect();
        Error::not_found(format!("there is no pass {name:?}; there are {}", names.join(", ")))
    })
}

/// A pipeline of the named passes in that order.
pub fn pipeline<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Pipeline> {
    names.into_iter().try_fold(Pipeline::new("custom"), |pipeline, name| Ok(pipeline.boxed(pass(name)?)))
}
