//! Registry of all passes by name, for `xla opt --passes a,b,c`.

use xla_hlo::text::did_you_mean;
use xla_hlo::{Error, Result};

use crate::*;

/// Name, description and constructor of a pass.
type Entry = (&'static str, &'static str, fn() -> Box<dyn Pass>);

/// All passes: name, description, constructor.
const PASSES: &[Entry] = &[
    ("alias-row-outputs", "lets row kernels write over operands that end there", || Box::new(AliasRowOutputs)),
    ("allow-tf32", "lets f32 dots round their operands to TF32, where the target allows it", || Box::new(AllowTf32)),
    ("annotate-trip-counts", "records the trip counts of counting loops", || Box::new(AnnotateTripCounts)),
    ("assign-layouts", "chooses per region the dimension order that needs the fewest transposes", || {
        Box::new(AssignLayouts)
    }),
    ("assign-memory-spaces", "places values in small fast memories", || Box::new(AssignMemorySpaces)),
    ("common-subexpressions", "merges equal instructions and computations", || Box::new(CommonSubexpressions)),
    ("dead-code", "removes instructions and computations that no result needs", || Box::new(DeadCode)),
    ("drop-zero-sized", "replaces arrays without elements by constants", || Box::new(DropZeroSized)),
    ("expand-async", "turns async-start/update/done chains into synchronous instructions", || Box::new(ExpandAsync)),
    ("expand-batch-norms", "turns batch normalisation into reductions and elementwise operations", || {
        Box::new(ExpandBatchNorms)
    }),
    ("expand-bit-generators", "turns rng-bit-generator into integer arithmetic", || Box::new(ExpandBitGenerators)),
    ("expand-bitcast-converts", "turns bitcast-convert between widths into shifts", || Box::new(ExpandBitcastConverts)),
    ("expand-cholesky", "turns cholesky into a loop over columns, where the target lacks it", || {
        Box::new(ExpandCholesky)
    }),
    ("expand-clamps", "turns clamp into minimum and maximum, where the target lacks it", || Box::new(ExpandClamps)),
    ("expand-collectives", "turns collectives over one device into their results", || Box::new(ExpandCollectives)),
    ("expand-custom-calls", "turns custom calls that name operations into those", || Box::new(ExpandCustomCalls)),
    ("expand-ffts", "turns FFTs into stages of dots, where the target lacks them", || Box::new(ExpandFfts)),
    ("expand-functions", "turns elementwise functions into others, where the target lacks them", || {
        Box::new(ExpandFunctions)
    }),
    ("expand-ragged-dots", "turns ragged dots into dots and masks", || Box::new(ExpandRaggedDots)),
    ("expand-rng", "turns rng into random bits and arithmetic on them", || Box::new(ExpandRng)),
    ("expand-scaled-dots", "turns scaled dots into dots of scaled operands", || Box::new(ExpandScaledDots)),
    ("expand-scans", "turns scans into loops", || Box::new(ExpandScans)),
    (
        "expand-select-and-scatter",
        "turns select-and-scatter into reduce-window and scatter, where the target lacks it",
        || Box::new(ExpandSelectAndScatter),
    ),
    ("expand-stochastic-converts", "turns stochastic rounding into elementwise operations", || {
        Box::new(ExpandStochasticConverts)
    }),
    ("expand-top-k", "turns topk into a sort, where the target lacks it", || Box::new(ExpandTopK)),
    ("expand-triangular-solves", "turns triangular solves into loops over rows, where the target lacks them", || {
        Box::new(ExpandTriangularSolves)
    }),
    ("flatten-call-graph", "clones computations so that each has one call site", || Box::new(FlattenCallGraph)),
    ("fold-constants", "evaluates operations on constants", || Box::new(FoldConstants)),
    ("fold-kernels", "evaluates small fusions without operands", || Box::new(FoldKernels)),
    ("fuse", "fuses producers into their consumers", || Box::new(Fuse)),
    ("fuse-attention", "puts two dots with a softmax between them into one fusion", || Box::new(FuseAttention)),
    ("fuse-epilogues", "fuses elementwise consumers into dots and convolutions", || Box::new(FuseEpilogues)),
    ("fuse-outputs", "merges kernels over the same loop into one with several outputs", || Box::new(FuseOutputs)),
    ("fuse-rows", "fuses reductions along rows with their consumers", || Box::new(FuseRows)),
    ("fuse-scores", "puts sums over functions of dots into fusions with these dots", || Box::new(FuseScores)),
    ("hoist-invariants", "moves loop-invariant computation out of loops", || Box::new(HoistInvariants)),
    ("inline-calls", "inlines calls and fusions", || Box::new(InlineCalls)),
    ("inline-maps", "turns map of an elementwise function into array operations", || Box::new(InlineMaps)),
    ("insert-copies", "copies values that need the same buffer at the same time", || Box::new(InsertCopies)),
    ("merge-dots", "merges small dots that share an operand", || Box::new(MergeDots)),
    ("normalize-floats", "computes in wider floats where the target only stores a type", || Box::new(NormalizeFloats)),
    ("normalize-layouts", "makes every layout inside the program row major", || Box::new(NormalizeLayouts)),
    (
        "order-right-operands",
        "transposes constants and loop invariants on the right of dots, where the target wants it",
        || Box::new(OrderRightOperands),
    ),
    ("pad-dynamic", "pads dynamic shapes to their bounds", || Box::new(PadDynamic)),
    ("rematerialize", "recomputes cheap values where memory is scarce", || Box::new(Rematerialize)),
    ("reshape-to-bitcast", "turns reshapes between kernels into bitcasts", || Box::new(ReshapeToBitcast)),
    ("schedule", "orders instructions so that peak memory is low", || Box::new(Schedule)),
    ("simplify-algebra", "applies algebraic laws", || Box::new(SimplifyAlgebra)),
    (
        "simplify-conditionals",
        "removes conditionals with a known predicate, equal or cheap branches, and unused operands",
        || Box::new(SimplifyConditionals),
    ),
    ("simplify-loops", "removes invariant, constant and dead loop state", || Box::new(SimplifyLoops)),
    ("simplify-sorts", "removes sorts of at most one element, and operands sorted along without use", || {
        Box::new(SimplifySorts)
    }),
    ("simplify-tokens", "removes domain, and add-dependency on tokens without effects", || Box::new(SimplifyTokens)),
    ("simplify-tuples", "forwards elements of tuples", || Box::new(SimplifyTuples)),
    ("sink-slices", "turns one operation on all slices of an array into one on the array", || Box::new(SinkSlices)),
    ("split-reductions", "splits large reductions with few results for many threads", || Box::new(SplitReductions)),
    ("split-windows", "splits reduce-window of several dimensions into one per dimension", || Box::new(SplitWindows)),
    ("tile-layouts", "assigns the target's tiled layouts", || Box::new(TileLayouts)),
    ("unify-convolution-types", "converts convolution operands to one element type", || {
        Box::new(UnifyConvolutionTypes)
    }),
    ("unify-dot-types", "sums dots in the kind of their operands, and converts the sums", || Box::new(UnifyDotTypes)),
    ("unroll-loops", "unrolls short loops of a few iterations", || Box::new(UnrollLoops)),
    ("widen-linalg", "computes linear algebra on narrow floats in f32", || Box::new(WidenLinalg)),
];

/// Former names of renamed passes.
const RENAMED: &[(&str, &str)] = &[
    ("drop-dependencies", "simplify-tokens"),
    ("free-reshapes", "reshape-to-bitcast"),
    ("share-rows", "alias-row-outputs"),
    ("split-folds", "split-reductions"),
];

/// Iterates over the names and descriptions of all passes in alphabetical order.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    PASSES.iter().map(|(name, what, _)| (*name, *what))
}

/// Returns the pass with this name. The error names the replacement of a renamed pass, or lists all passes.
pub fn pass(name: &str) -> Result<Box<dyn Pass>> {
    if let Some((old, new)) = RENAMED.iter().find(|(old, _)| *old == name) {
        return Err(Error::not_found(format!("pass {old:?} is called {new:?} now")));
    }
    PASSES.iter().find(|(n, ..)| *n == name).map(|(.., make)| make()).ok_or_else(|| {
        let names: Vec<&str> = list().map(|(n, _)| n).collect();
        let hint = did_you_mean(name, list().map(|(n, _)| n));
        Error::not_found(format!("unknown pass {name:?}{hint}; the passes are {}", names.join(", ")))
    })
}

/// Returns a pipeline of the named passes in this order.
pub fn pipeline<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Pipeline> {
    names.into_iter().try_fold(Pipeline::new("custom"), |pipeline, name| Ok(pipeline.boxed(pass(name)?)))
}

/// Maximum number of iterations of a group with a star.
const ROUNDS: usize = 12;

/// Maximum nesting depth of groups.
const DEPTH: usize = 32;

/// Parses a pipeline: names of passes separated by commas, and groups in brackets. A group with a star runs until an
/// iteration changes nothing (at most 12 times): `inline-calls,[simplify-tuples,dead-code]*,fuse`.
pub fn parse(text: &str) -> Result<Pipeline> {
    let mut reader = PipelineParser { rest: text, text };
    let (pipeline, end) = reader.list(0)?;
    if end.is_some() {
        return Err(reader.wrong("there is a ] without a ["));
    }
    Ok(pipeline(Pipeline::new("custom")))
}

/// Appends the parsed passes to a pipeline.
type Steps = Box<dyn FnOnce(Pipeline) -> Pipeline>;

struct PipelineParser<'t> {
    text: &'t str,
    rest: &'t str,
}

impl PipelineParser<'_> {
    /// Parses a list up to its end. Returns the steps and the closing bracket, if any.
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
        let group = "  group (at most 12 iterations):\n    simplify-tuples\n    group (at most 12 iterations):\n      dead-code\n";
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
