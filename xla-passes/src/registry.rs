//! Every pass by name, for `xla opt --passes a,b,c`.

use xla_hlo::{Error, Result};

use crate::*;
use xla_hlo::text::did_you_mean;

/// A name, a sentence, and how to make the pass.
type Entry = (&'static str, &'static str, fn() -> Box<dyn Pass>);

/// All passes: name, what they do, constructor.
const PASSES: &[Entry] = &[
    ("allow-tf32", "products of f32 may round factors to TF32, where the target is told so", || Box::new(AllowTf32)),
    ("annotate-trip-counts", "notes how often counting loops run", || Box::new(AnnotateTripCounts)),
    ("assign-layouts", "regions compute in the order of dimensions that needs the fewest transposes", || {
        Box::new(AssignLayouts)
    }),
    ("assign-memory-spaces", "values live in small fast memories", || Box::new(AssignMemorySpaces)),
    ("common-subexpressions", "equal operations and computations become one", || Box::new(CommonSubexpressions)),
    ("dead-code", "removes what no result needs", || Box::new(DeadCode)),
    ("drop-dependencies", "borders and orders that mean nothing", || Box::new(DropDependencies)),
    ("drop-zero-sized", "arrays without elements become constants", || Box::new(DropZeroSized)),
    ("expand-async", "what is begun and awaited becomes a call or a copy", || Box::new(ExpandAsync)),
    ("expand-batch-norms", "batch normalisations become sums and elementwise operations", || {
        Box::new(ExpandBatchNorms)
    }),
    ("expand-bit-generators", "random bits become integer arithmetic", || Box::new(ExpandBitGenerators)),
    ("expand-bitcast-converts", "bitcasts between widths become shifts", || Box::new(ExpandBitcastConverts)),
    ("expand-cholesky", "cholesky becomes a loop over columns, where the target lacks it", || Box::new(ExpandCholesky)),
    ("expand-clamps", "clamps become minima and maxima, where the target lacks them", || Box::new(ExpandClamps)),
    ("expand-collectives", "collectives of one device become what they give", || Box::new(ExpandCollectives)),
    ("expand-custom-calls", "custom calls that stand for operations become those", || Box::new(ExpandCustomCalls)),
    ("expand-ffts", "Fourier transforms become products of matrices, where the target lacks them", || {
        Box::new(ExpandFfts)
    }),
    ("expand-functions", "functions of one element become others, where the target lacks them", || {
        Box::new(ExpandFunctions)
    }),
    ("expand-ragged-dots", "ragged dots become dots and masks", || Box::new(ExpandRaggedDots)),
    ("expand-rng", "random numbers become random bits made into numbers", || Box::new(ExpandRng)),
    ("expand-scaled-dots", "scaled dots become dots of scaled arrays", || Box::new(ExpandScaledDots)),
    ("expand-scans", "scans become loops", || Box::new(ExpandScans)),
    ("expand-select-and-scatter", "becomes reduce-window and scatter, where the target lacks it", || {
        Box::new(ExpandSelectAndScatter)
    }),
    ("expand-stochastic-converts", "stochastic rounding becomes elementwise operations", || {
        Box::new(ExpandStochasticConverts)
    }),
    ("expand-top-k", "topk becomes a sort, where the target lacks it", || Box::new(ExpandTopK)),
    ("expand-triangular-solves", "triangular solves become loops over rows, where the target lacks them", || {
        Box::new(ExpandTriangularSolves)
    }),
    ("flatten-call-graph", "gives each call site its own computation", || Box::new(FlattenCallGraph)),
    ("fold-constants", "evaluates operations on constants", || Box::new(FoldConstants)),
    ("fold-kernels", "small kernels that read nothing become constants", || Box::new(FoldKernels)),
    ("free-reshapes", "reshapes between kernels become bitcasts", || Box::new(FreeReshapes)),
    ("fuse", "producers go into the kernels that consume them", || Box::new(Fuse)),
    ("fuse-epilogues", "elementwise operations go with the contraction whose result they read", || {
        Box::new(FuseEpilogues)
    }),
    ("fuse-outputs", "kernels over the same loop become one", || Box::new(FuseOutputs)),
    ("fuse-rows", "folds along rows and their uses become one kernel", || Box::new(FuseRows)),
    ("hoist-invariants", "what every round of a loop computes alike is computed before it", || {
        Box::new(HoistInvariants)
    }),
    ("inline-calls", "calls and fusions become the instructions they call", || Box::new(InlineCalls)),
    ("inline-maps", "mapped elementwise functions become array operations", || Box::new(InlineMaps)),
    ("insert-copies", "values that need one buffer at the same time are copied", || Box::new(InsertCopies)),
    ("merge-dots", "small dots that share an operand become one", || Box::new(MergeDots)),
    ("normalize-floats", "arithmetic on floats that the target only stores is done in wider ones", || {
        Box::new(NormalizeFloats)
    }),
    ("normalize-layouts", "every array becomes row major", || Box::new(NormalizeLayouts)),
    ("pad-dynamic", "arrays of sizes known when running become arrays of their bounds", || Box::new(PadDynamic)),
    ("rematerialize", "cheap values are computed again where memory is scarce", || Box::new(Rematerialize)),
    ("schedule", "an order that keeps memory low", || Box::new(Schedule)),
    ("share-rows", "kernels of rows say what they may write over", || Box::new(ShareRows)),
    ("simplify-algebra", "applies algebraic laws", || Box::new(SimplifyAlgebra)),
    (
        "simplify-conditionals",
        "conditionals with a known choice, equal or cheap branches, and what goes in and out",
        || Box::new(SimplifyConditionals),
    ),
    ("simplify-loops", "invariant, constant and dead loop state", || Box::new(SimplifyLoops)),
    ("simplify-sorts", "sorts of nothing to sort, arrays sorted along without need", || Box::new(SimplifySorts)),
    ("simplify-tuples", "elements of tuples just put together", || Box::new(SimplifyTuples)),
    ("sink-slices", "the same operation on all slices of an array is done on the array", || Box::new(SinkSlices)),
    ("split-folds", "large folds into few results become work for many threads", || Box::new(SplitFolds)),
    ("split-windows", "windows of several dimensions are reduced one dimension after the other", || {
        Box::new(SplitWindows)
    }),
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
        let hint = did_you_mean(name, list().map(|(n, _)| n));
        Error::not_found(format!("there is no pass {name:?}{hint}; there are {}", names.join(", ")))
    })
}

/// A pipeline of the named passes in that order.
pub fn pipeline<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Pipeline> {
    names.into_iter().try_fold(Pipeline::new("custom"), |pipeline, name| Ok(pipeline.boxed(pass(name)?)))
}

/// Rounds of a group with a star.
const ROUNDS: usize = 12;

/// Groups in groups, at most.
const DEPTH: usize = 32;

/// A pipeline as text: names of passes with commas between, groups in brackets, with a star if they are to be run until a
/// round changes nothing (at most 12 times): `inline-calls,[simplify-tuples,dead-code]*,fuse`.
pub fn parse(text: &str) -> Result<Pipeline> {
    let mut reader = Reader { rest: text, text };
    let (pipeline, end) = reader.list(0)?;
    if end.is_some() {
        return Err(reader.wrong("there is a ] without a ["));
    }
    Ok(pipeline(Pipeline::new("custom")))
}

/// Adds what was read to a pipeline.
type Steps = Box<dyn FnOnce(Pipeline) -> Pipeline>;

struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
}

impl Reader<'_> {
    /// Reads a list up to its end; gives what it is ended by, a bracket or nothing.
    fn list(&mut self, depth: usize) -> Result<(Steps, Option<char>)> {
        let mut steps: Vec<Steps> = Vec::new();
        loop {
            steps.push(self.item(depth)?);
            let end = self.rest.chars().next();
            self.rest = self.rest.get(1..).unwrap_or_default();
            match end {
                Some(',') => {}
                Some(']') | None => {
                    let all = move |pipeline| steps.into_iter().fold(pipeline, |pipeline, step| step(pipeline));
                    return Ok((Box::new(all), end));
                }
                Some(_) => return Err(self.wrong("after a group there is a comma, or the end")),
            }
        }
    }

    fn item(&mut self, depth: usize) -> Result<Steps> {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix('[') {
            if depth == DEPTH {
                return Err(self.wrong("groups are nested too deep"));
            }
            self.rest = rest;
            let (steps, end) = self.list(depth + 1)?;
            if end.is_none() {
                return Err(self.wrong("there is a [ without a ]"));
            }
            let star = self.rest.strip_prefix('*');
            self.rest = star.unwrap_or(self.rest).trim_start();
            let group = if star.is_some() { Pipeline::fixed_point("group", ROUNDS) } else { Pipeline::new("group") };
            return Ok(Box::new(|pipeline| pipeline.stage(steps(group))));
        }
        let end = self.rest.find([',', '[', ']']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let name = name.trim_end();
        if name.is_empty() {
            return Err(self.wrong("a name of a pass is missing"));
        }
        if name.ends_with('*') {
            return Err(self.wrong("a star follows a group in brackets"));
        }
        let pass = pass(name)?;
        Ok(Box::new(|pipeline| pipeline.boxed(pass)))
    }

    fn wrong(&self, what: &str) -> Error {
        Error::invalid_argument(format!("in the list of passes {:?}: {what}; such as a,[b,c]*,d", self.text))
    }
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
    fn lists_have_groups() {
        let text = parse("inline-calls, [simplify-tuples,[dead-code ]* ]*,fuse").expect("a list").to_string();
        let group =
            "  group (at most 12 rounds):\n    simplify-tuples\n    group (at most 12 rounds):\n      dead-code\n";
        assert_eq!(text, format!("custom:\n  inline-calls\n{group}  fuse\n"));
        assert_eq!(parse("[fuse]").expect("a list").to_string(), "custom:\n  group:\n    fuse\n");
    }

    #[test]
    fn wrong_lists_are_refused() {
        let deep = "[".repeat(100);
        for (text, what) in [
            ("", "a name of a pass is missing"),
            ("fuse,", "a name of a pass is missing"),
            ("[fuse", "a [ without a ]"),
            ("fuse]", "a ] without a ["),
            ("fuse*", "a star follows a group"),
            ("[fuse]fuse", "after a group there is a comma"),
            ("[]*", "a name of a pass is missing"),
            ("fuse[dead-code]", "after a group there is a comma"),
            ("[fuse]\u{e4}", "after a group there is a comma"),
            (&deep, "nested too deep"),
        ] {
            let error = parse(text).err().expect(text);
            assert!(error.message().contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_a_list() {
        let error = pipeline(["dead-code", "dead-cod"]).err().expect("there is no such pass");
        assert!(
            error.message().contains("\"dead-cod\"; did you mean dead-code?")
                && error.message().contains("simplify-tuples"),
            "{error}"
        );
    }
}
