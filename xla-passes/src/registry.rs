//! Every pass by name, for `xla opt --passes a,b,c`.

use xla_hlo::{Error, Result};

use crate::*;

/// A name, a sentence, and how to make the pass.
type Entry = (&'static str, &'static str, fn() -> Box<dyn Pass>);

/// All passes: name, what they do, constructor.
const PASSES: &[Entry] = &[
    ("annotate-trip-counts", "notes how often counting loops run", || Box::new(AnnotateTripCounts)),
    ("common-subexpressions", "equal operations and computations become one", || Box::new(CommonSubexpressions)),
    ("dead-code", "removes what no result needs", || Box::new(DeadCode)),
    ("drop-dependencies", "borders and orders that mean nothing", || Box::new(DropDependencies)),
    ("expand-async", "what is begun and awaited becomes a call or a copy", || Box::new(ExpandAsync)),
    ("expand-batch-norms", "batch normalisations become sums and elementwise operations", || {
        Box::new(ExpandBatchNorms)
    }),
    ("expand-bit-generators", "random bits become integer arithmetic", || Box::new(ExpandBitGenerators)),
    ("expand-bitcast-converts", "bitcasts between widths become shifts", || Box::new(ExpandBitcastConverts)),
    ("expand-collectives", "collectives of one device become what they give", || Box::new(ExpandCollectives)),
    ("expand-ragged-dots", "ragged dots become dots and masks", || Box::new(ExpandRaggedDots)),
    ("expand-rng", "random numbers become random bits made into numbers", || Box::new(ExpandRng)),
    ("expand-scaled-dots", "scaled dots become dots of scaled arrays", || Box::new(ExpandScaledDots)),
    ("expand-scans", "scans become loops", || Box::new(ExpandScans)),
    ("expand-stochastic-converts", "stochastic rounding becomes elementwise operations", || {
        Box::new(ExpandStochasticConverts)
    }),
    ("flatten-call-graph", "gives each call site its own computation", || Box::new(FlattenCallGraph)),
    ("fold-constants", "evaluates operations on constants", || Box::new(FoldConstants)),
    ("free-reshapes", "reshapes between kernels become bitcasts", || Box::new(FreeReshapes)),
    ("fuse", "producers go into the kernels that consume them", || Box::new(Fuse)),
    ("fuse-outputs", "kernels over the same loop become one", || Box::new(FuseOutputs)),
    ("fuse-rows", "folds along rows and their uses become one kernel", || Box::new(FuseRows)),
    ("inline-calls", "calls and fusions become the instructions they call", || Box::new(InlineCalls)),
    ("inline-maps", "mapped elementwise functions become array operations", || Box::new(InlineMaps)),
    ("insert-copies", "values that need one buffer at the same time are copied", || Box::new(InsertCopies)),
    ("normalize-layouts", "every array becomes row major", || Box::new(NormalizeLayouts)),
    ("pad-dynamic", "arrays of sizes known when running become arrays of their bounds", || Box::new(PadDynamic)),
    ("schedule", "an order that keeps memory low", || Box::new(Schedule)),
    ("simplify-algebra", "applies algebraic laws", || Box::new(SimplifyAlgebra)),
    ("simplify-conditionals", "conditionals with a known choice", || Box::new(SimplifyConditionals)),
    ("simplify-loops", "invariant, constant and dead loop state", || Box::new(SimplifyLoops)),
    ("simplify-tuples", "elements of tuples just put together", || Box::new(SimplifyTuples)),
    ("split-folds", "large folds into few results become work for many threads", || Box::new(SplitFolds)),
    ("tile-layouts", "arrays lie in the target's tiles", || Box::new(TileLayouts)),
    ("unify-convolution-types", "convolutions have one of a few element types", || Box::new(UnifyConvolutionTypes)),
    ("unroll-loops", "loops of a few short rounds become their rounds", || Box::new(UnrollLoops)),
    ("widen-linalg", "linear algebra on narrow floats is done in f32", || Box::new(WidenLinalg)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_makes_the_pass_of_that_name() {
        for (name, _, make) in PASSES {
            assert_eq!(*name, make().name());
        }
    }

    #[test]
    fn names_are_in_alphabetical_order() {
        assert!(PASSES.iter().map(|(name, ..)| name).is_sorted());
    }

    #[test]
    fn unknown_names_are_refused_with_a_list() {
        let error = pipeline(["dead-code", "dead-cod"]).err().expect("there is no such pass");
        assert!(error.message().contains("\"dead-cod\"") && error.message().contains("simplify-tuples"), "{error}");
    }
}
