//! Table of all passes: documentation and constructor, in alphabetical order.

use super::pass_info::{Counted, PassInfo};
use crate::*;

/// All passes in alphabetical order.
pub(super) const PASSES: &[PassInfo] = &[
    PassInfo {
        name: "alias-row-outputs",
        summary: "lets row kernels write over operands that end there",
        description: "Adds operand aliases to row kernels: fusions that reduce rows of their operands. Such a kernel \
                      finishes the reductions of a row before it stores an element of the row, so a result of the \
                      same shape may overwrite an operand, for example in `softmax(x)`. Buffer assignment uses an \
                      alias only if the operand is not live afterwards. The pass runs when kernels are complete, \
                      since a fusion with an alias is not merged any more.",
        profile: &["fusion.row_kernels"],
        counted: Counted::Rewrites("kernels with new aliases"),
        aliases: &[],
        make: || Box::new(AliasRowOutputs),
    },
    PassInfo {
        name: "allow-tf32",
        summary: "lets f32 dots round their operands to TF32, where the target allows it",
        description: "Sets `algorithm=dot_tf32_tf32_f32` on `dot` and `convolution` of `f32`. The target may then \
                      round operands to TF32 and use its matrix units. An operation that requests an algorithm, a \
                      higher operand precision or sparsity is kept. The pass runs before linear algebra is expanded \
                      into dots, which keep full precision.",
        profile: &["tf32"],
        counted: Counted::Rewrites("marked dots and convolutions"),
        aliases: &[],
        make: || Box::new(AllowTf32),
    },
    PassInfo {
        name: "annotate-trip-counts",
        summary: "records the trip counts of counting loops",
        description: "Writes `{\"known_trip_count\":{\"n\":\"12\"}}` into the backend configuration of `while` loops \
                      with a known trip count. Backends can read it. A loop that already has a backend configuration \
                      is kept. The annotation is not an edit of the program, so that the pass never reports a \
                      change.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["while-loop-trip-count-annotator"],
        make: || Box::new(AnnotateTripCounts),
    },
    PassInfo {
        name: "assign-layouts",
        summary: "chooses per region the dimension order that needs the fewest transposes",
        description: "Finds regions of connected operations that compute the same elements in any order of \
                      dimensions, and chooses for each region the order that needs the fewest bytes of transposes at \
                      its border. Transposes disappear, move to smaller arrays, or move to operations that absorb \
                      them: dots, convolutions, broadcasts, reductions and constants. Parameters, results and loop \
                      states keep their order. Scheduled computations are not changed.",
        profile: &["layout.convolution", "layout.minor_reductions", "dot.any_operand_order"],
        counted: Counted::Rewrites("reordered regions and convolutions"),
        aliases: &["layout-assignment"],
        make: || Box::new(AssignLayouts),
    },
    PassInfo {
        name: "assign-memory-spaces",
        summary: "places values in small fast memories",
        description: "Sets the memory space in the layouts of values that fit into a small fast memory of the \
                      target, such as a scratchpad. The values with the most accesses are placed first, as long as \
                      all values that are live at any step fit. Operands are then copied into the memory for the \
                      operations that request this. Arguments, results and the operands of custom calls, transfers \
                      and collectives stay in the default memory. The pass requires a schedule and inserted copies, \
                      and skips memory spaces that the program already uses.",
        profile: &["memory_spaces"],
        counted: Counted::Rewrites("placed values and copies into a memory space"),
        aliases: &[],
        make: || Box::new(AssignMemorySpaces),
    },
    PassInfo {
        name: "common-subexpressions",
        summary: "merges equal instructions and computations",
        description: "Replaces an instruction by an earlier one with the same operation, attributes, operands and \
                      shape. Combiners, comparators and mapped functions that differ only in names are merged first, \
                      so that equal reductions are found. Constants are equal if their bits are equal. Parameters, \
                      barriers, asynchronous operations and instructions with side effects or control dependencies \
                      are not merged.",
        profile: &[],
        counted: Counted::Rewrites("merged instructions and redirected calls"),
        aliases: &["cse"],
        make: || Box::new(CommonSubexpressions),
    },
    PassInfo {
        name: "dead-code",
        summary: "removes instructions and computations that no result needs",
        description: "Removes instructions on which neither the root of the computation nor a side effect depends, \
                      and then computations that the entry does not reach. Parameters are kept, since they are the \
                      signature of the computation. The pass removes all dead instructions of a computation at once.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["dce"],
        make: || Box::new(DeadCode),
    },
    PassInfo {
        name: "drop-zero-sized",
        summary: "replaces arrays without elements by constants",
        description: "Replaces an instruction with a static zero-sized result by a constant, so that later passes \
                      and backends see no empty loops. Reductions, scatters, convolutions and `select-and-scatter` \
                      of a zero-sized array are replaced by their result for empty input, such as the initial value. \
                      Instructions with side effects, parameters, barriers, custom calls and communication are kept. \
                      Rules of `simplify-algebra` handle zero-sized operands of dots, concatenations, pads and \
                      updates.",
        profile: &[],
        counted: Counted::Rewrites("replaced instructions"),
        aliases: &["zero_sized_hlo_elimination"],
        make: || Box::new(DropZeroSized),
    },
    PassInfo {
        name: "expand-async",
        summary: "turns async-start/update/done chains into synchronous instructions",
        description: "Replaces the chain from `async-start` to `async-done` by a `call` at the place of the start, \
                      and `copy-start` to `copy-done` by a `copy`. All computations then run on the main thread, and \
                      other passes can inline and fuse them.",
        profile: &[],
        counted: Counted::Rewrites("expanded starts"),
        aliases: &[],
        make: || Box::new(ExpandAsync),
    },
    PassInfo {
        name: "expand-batch-norms",
        summary: "turns batch normalisation into reductions and elementwise operations",
        description: "Expands `batch-norm-training`, `batch-norm-inference` and `batch-norm-grad` into sums over all \
                      dimensions except the feature dimension and elementwise operations, which fuse with their \
                      surroundings. Types narrower than `f32` are computed in `f32` and rounded once. The variance \
                      is the mean of squared differences from the mean, which avoids the cancellation of a \
                      difference of two means.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["batchnorm_expander"],
        make: || Box::new(ExpandBatchNorms),
    },
    PassInfo {
        name: "expand-bit-generators",
        summary: "turns rng-bit-generator into integer arithmetic",
        description: "Expands `rng-bit-generator` into additions, multiplications and shifts of integer arrays with \
                      one element per block of the generator (Philox or ThreeFry). The result is bit-exact. Every \
                      target uses the expansion, which can fuse into the kernels that consume the random bits.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["rng-bit-generator-expander"],
        make: || Box::new(ExpandBitGenerators),
    },
    PassInfo {
        name: "expand-bitcast-converts",
        summary: "turns bitcast-convert between widths into shifts",
        description: "Expands a `bitcast-convert` between types of different widths, which adds or removes a minor \
                      dimension, into shifts of unsigned integers. Narrow elements are ordered from the least \
                      significant bits of a wide element. A conversion between types of equal width, and a type \
                      without an integer of its width (six-bit floats), is kept.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["bitcast_dtypes_expander"],
        make: || Box::new(ExpandBitcastConverts),
    },
    PassInfo {
        name: "expand-cholesky",
        summary: "turns cholesky into a loop over columns, where the target lacks it",
        description: "Expands `cholesky` into a loop over columns: an iteration subtracts the contribution of the \
                      preceding columns by a matrix-vector product and divides by the root of the pivot. If the \
                      target factors small matrices natively, the loop runs over blocks of columns instead. Floats \
                      narrower than `f32` are computed in `f32` and rounded once. The pass does nothing if the \
                      target has the operation, and keeps lower factors of matrices that the target supports \
                      natively and matrices of dynamic size.",
        profile: &["lacks", "small_matrices"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["cholesky_expander"],
        make: || Box::new(ExpandCholesky),
    },
    PassInfo {
        name: "expand-clamps",
        summary: "turns clamp into minimum and maximum, where the target lacks it",
        description: "Expands `clamp(min, x, max)` into `minimum(maximum(min, x), max)`. The result is exact, \
                      including NaN. The pass does nothing if the target has the operation.",
        profile: &["lacks"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandClamps),
    },
    PassInfo {
        name: "expand-collectives",
        summary: "turns collectives over one device into their results, and asynchronous ones into synchronous ones",
        description: "Replaces synchronous and asynchronous collectives in a module for one device by their local \
                      result: an `all-reduce` becomes its operand, and `partition-id` becomes zero. In other modules, \
                      replaces each asynchronous collective by a synchronous one at the place of its start.",
        profile: &[],
        counted: Counted::Rewrites("expanded collectives"),
        aliases: &[],
        make: || Box::new(ExpandCollectives),
    },
    PassInfo {
        name: "expand-custom-calls",
        summary: "turns custom calls that name operations into those",
        description: "Replaces a `custom-call` that has an HLO equivalent by that operation, so that other passes \
                      can optimise it: annotations of sharding and placement become their operands, and `TopK` \
                      becomes `topk`. Calls of other targets, and calls whose operands or results do not fit the \
                      operation, are kept.",
        profile: &[],
        counted: Counted::Rewrites("replaced calls"),
        aliases: &[],
        make: || Box::new(ExpandCustomCalls),
    },
    PassInfo {
        name: "expand-ffts",
        summary: "turns FFTs into stages of dots, where the target lacks them",
        description: "Expands `fft` into matrix products with roots of unity and elementwise operations, as a \
                      sequence of Stockham stages with one stage per radix. A prime radix above 256 is computed as a \
                      convolution (Bluestein). A real transform of even length is computed as a complex one of half \
                      the length. The pass does nothing if the target has the operation, and keeps transforms of \
                      more than 65,536 elements and of dynamic size.",
        profile: &["lacks"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandFfts),
    },
    PassInfo {
        name: "expand-functions",
        summary: "turns elementwise functions into others, where the target lacks them",
        description: "Expands functions of one float that the target lacks, such as `tanh` or `cbrt`, into \
                      arithmetic, selects and a few functions that every target has (`exponential`, `log`, `sine`, \
                      `cosine`, `sqrt`, `atan2`). Roundings, `sign` and `is-finite` are exact; other results are \
                      within 4 units in the last place of `f32` and `f64`. Floats narrower than `f32` are computed \
                      in `f32` and rounded once. Functions of complex numbers are not expanded.",
        profile: &["lacks"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandFunctions),
    },
    PassInfo {
        name: "expand-ragged-dots",
        summary: "turns ragged dots into dots and masks",
        description: "Expands `ragged-dot` into a `dot` over all groups and a mask of the elements of each group. \
                      Every target uses the expansion. Masked elements are replaced, not multiplied by zero, so that \
                      a NaN in one group does not affect another group.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandRaggedDots),
    },
    PassInfo {
        name: "expand-rng",
        summary: "turns rng into random bits and arithmetic on them",
        description: "Expands `rng` into `rng-get-and-update-state`, `rng-bit-generator` and elementwise operations \
                      on the random bits. Uniform numbers are bit-identical to those of the evaluator, normal ones \
                      up to the accuracy of logarithm, sine and cosine. `expand-bit-generators` then expands the \
                      generator.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["rng-expander"],
        make: || Box::new(ExpandRng),
    },
    PassInfo {
        name: "expand-scaled-dots",
        summary: "turns scaled dots into dots of scaled operands",
        description: "Expands `scaled-dot` into a `dot` of operands that are multiplied by their scales. Scaled \
                      elements are computed in `f32`, or in `f64` if an operand or the result is `f64`, which is \
                      exact for the types that scaled dots are designed for, except for products out of range. The \
                      `algorithm` attribute is dropped, since it refers to the types of the original operands.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["scaled-dot-rewriter"],
        make: || Box::new(ExpandScaledDots),
    },
    PassInfo {
        name: "expand-scans",
        summary: "turns scans into loops",
        description: "Expands `scan` into a counted `while` loop. The state of the loop is the counter, the inputs, \
                      the outputs so far and the carries. Each iteration slices the inputs, evaluates the \
                      computation of the scan, and updates the outputs. Every target uses the expansion.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandScans),
    },
    PassInfo {
        name: "expand-select-and-scatter",
        summary: "turns select-and-scatter into reduce-window and scatter, where the target lacks it",
        description: "Expands `select-and-scatter`, the gradient of pooling, into a `reduce-window` that finds the \
                      position of the selected element of each window, and a `scatter` to these positions. The \
                      result is exact if `reduce-window` and `scatter` run in order or the order does not matter. \
                      The pass does nothing if the target has the operation.",
        profile: &["lacks"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &[],
        make: || Box::new(ExpandSelectAndScatter),
    },
    PassInfo {
        name: "expand-stochastic-converts",
        summary: "turns stochastic rounding into elementwise operations",
        description: "Expands `stochastic-convert` into elementwise arithmetic on the whole part and the fraction of \
                      the magnitude. All steps are exact, so that the result is bit-identical. Every target uses the \
                      expansion.",
        profile: &[],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["stochastic_convert_decomposer"],
        make: || Box::new(ExpandStochasticConverts),
    },
    PassInfo {
        name: "expand-top-k",
        summary: "turns topk into a sort, where the target lacks it",
        description: "Expands `topk` into a stable `sort` of elements and positions and a slice of the first `k`. \
                      The result is exact, in the total order of floats. The pass does nothing if the target has the \
                      operation, and keeps the values of `k` and the element types that the target supports \
                      natively, and arrays of dynamic size.",
        profile: &["lacks", "top_k"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["topk-decomposer"],
        make: || Box::new(ExpandTopK),
    },
    PassInfo {
        name: "expand-triangular-solves",
        summary: "turns triangular solves into loops over rows, where the target lacks them",
        description: "Expands `triangular-solve` into a loop over rows: an iteration subtracts the contribution of \
                      the known unknowns by a vector-matrix product and divides by the diagonal. If the target \
                      solves small systems natively, the loop runs over blocks of rows instead. Floats narrower than \
                      `f32` are computed in `f32` and rounded once. The pass does nothing if the target has the \
                      operation, and keeps cases that the target supports natively and matrices of dynamic size.",
        profile: &["lacks", "small_matrices"],
        counted: Counted::Rewrites("expanded operations"),
        aliases: &["triangular_solve_expander"],
        make: || Box::new(ExpandTriangularSolves),
    },
    PassInfo {
        name: "flatten-call-graph",
        summary: "clones computations so that each has one call site",
        description: "Copies computations until each one that runs as a program or a kernel has one call site: \
                      bodies and conditions of loops, branches, called functions and fusions. Buffer assignment, \
                      copy insertion and scheduling require this. Combiners, comparators and mapped functions stay \
                      shared, since they are compiled into their callers. The pass fails if the copies would make \
                      the module too large.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &[],
        make: || Box::new(FlattenCallGraph),
    },
    PassInfo {
        name: "fold-constants",
        summary: "evaluates operations on constants",
        description: "Evaluates operations whose operands are constants, and replaces them by their results. A \
                      result has at most 64 KiB, or is no larger than the constants from which it is computed. \
                      Broadcasts of one element and iotas are kept, since a kernel generates their elements; values \
                      computed from them are folded up to 1024 elements. Loops, branches, side effects and \
                      everything beyond the evaluation budget of the pass are not evaluated.",
        profile: &[],
        counted: Counted::Rewrites("folded instructions"),
        aliases: &["constant_folding"],
        make: || Box::new(FoldConstants),
    },
    PassInfo {
        name: "fold-kernels",
        summary: "evaluates small fusions without operands",
        description: "Evaluates fusions without operands, broadcasts and iotas that remain separate kernels because \
                      their readers need arrays in memory, and replaces them by constants. Up to 1024 elements, a \
                      constant is read as fast as the result of a kernel, and no kernel runs. A value that its \
                      reader overwrites is kept, since a constant would be copied first.",
        profile: &[],
        counted: Counted::Rewrites("folded kernels"),
        aliases: &[],
        make: || Box::new(FoldKernels),
    },
    PassInfo {
        name: "fuse",
        summary: "fuses producers into their consumers",
        description: "Moves producers (elementwise operations, data movement and constants) into the kernels that \
                      read them, if the cost model finds that to be no slower than a store to memory and a load. A \
                      kernel has one root: an elementwise or data-movement operation, a reduction or an elementwise \
                      user of its result, or a `dynamic-update-slice` that writes in place. Expensive operations are \
                      not computed twice, and a kernel stays within the limits of the target on instructions, code, \
                      registers and operands. `xla opt --explain` prints the reason of each decision.",
        profile: &[
            "fusion.inside",
            "fusion.roots",
            "fusion.max_instructions",
            "fusion.max_code",
            "fusion.max_live_registers",
            "fusion.max_operands",
            "fusion.max_transposed_bytes",
            "fusion.reduce_epilogue",
            "fusion.in_place_update",
            "vector_bytes",
            "l2_bytes",
            "l3_bytes",
            "threads",
            "clock_hz",
            "memory_bandwidth",
            "cache_bandwidth",
            "launch_seconds",
        ],
        counted: Counted::Rewrites("formed kernels"),
        aliases: &[],
        make: || Box::new(Fuse),
    },
    PassInfo {
        name: "fuse-attention",
        summary: "puts two dots with a softmax between them into one fusion",
        description: "Fuses two dots with a softmax between them into one kernel that never stores the scores (flash \
                      attention). It applies if the target supports the element types and head sizes, there are \
                      enough queries and keys, and no other instruction reads scores or probabilities. The order of \
                      sums and the place of the division change, so that results may differ by rounding. The pass \
                      runs before the other fusion passes, which would fuse the softmax.",
        profile: &["fusion.attention", "threads"],
        counted: Counted::Rewrites("fused attentions"),
        aliases: &[],
        make: || Box::new(FuseAttention),
    },
    PassInfo {
        name: "fuse-epilogues",
        summary: "fuses elementwise consumers into dots and convolutions",
        description: "Fuses a `dot` or `convolution` with the only kernel that reads it, if that kernel is \
                      elementwise with the same dimensions and element type. The backend applies the epilogue in \
                      place, in the memory of the result. The contraction must be one of the supported operations \
                      and types and have a minimum number of flops. The pass runs after the other fusion passes.",
        profile: &["fusion.epilogues"],
        counted: Counted::Rewrites("fused epilogues"),
        aliases: &[],
        make: || Box::new(FuseEpilogues),
    },
    PassInfo {
        name: "fuse-outputs",
        summary: "merges kernels over the same loop into one with several outputs",
        description: "Merges loop kernels of equal dimensions into one kernel with several results, if they read the \
                      same large array or one reads the result of the other element by element. A shared operand is \
                      read once. Small independent kernels of equal dimensions are merged as well if launches are \
                      expensive (horizontal fusion). Merged kernels stay within the limits of the target on \
                      instructions and operands.",
        profile: &[
            "fusion.multi_output",
            "fusion.horizontal_bytes",
            "fusion.max_instructions",
            "fusion.max_operands",
            "l1_bytes",
            "l2_bytes",
        ],
        counted: Counted::Rewrites("merged pairs of kernels"),
        aliases: &["multi_output_fusion"],
        make: || Box::new(FuseOutputs),
    },
    PassInfo {
        name: "fuse-rows",
        summary: "fuses reductions along rows with their consumers",
        description: "Merges reductions along rows with kernels over the same rows, as in softmax and layer norm. \
                      The merged kernel reads a row again from the L1 cache instead of from memory. Rows of fewer \
                      than 8 elements are kept in separate kernels, which reduce them as fast.",
        profile: &["fusion.row_kernels", "fusion.max_row_instructions"],
        counted: Counted::Rewrites("merged kernels"),
        aliases: &[],
        make: || Box::new(FuseRows),
    },
    PassInfo {
        name: "fuse-scores",
        summary: "puts sums over functions of dots into fusions with these dots",
        description: "Fuses each sum over a function of the scores of an attention, and of their gradients, into one \
                      kernel that computes the scores again and never stores them. The additional dots take less \
                      time on matrix units than the transfer of arrays of that size. The pass applies if the program \
                      computes row maxima and gradients of scores, the target supports all of the sums, and no other \
                      instruction reads an array of the size of the scores. It runs after `fuse-attention` and \
                      before the other fusion passes.",
        profile: &["fusion.attention", "threads"],
        counted: Counted::Rewrites("fused sets of sums over the same scores"),
        aliases: &[],
        make: || Box::new(FuseScores),
    },
    PassInfo {
        name: "hoist-invariants",
        summary: "moves loop-invariant computation out of loops",
        description: "Computes values of the body or the condition of a `while` loop that depend only on invariant \
                      state and constants before the loop, and carries them as further invariant state. A value must \
                      save at least a few hundred operations on elements; it must also be no larger than the arrays \
                      whose reads it saves, or take expensive operations. Values with side effects, values that can \
                      fail, and loops, branches and calls stay in the loop, since it may run zero iterations.",
        profile: &[],
        counted: Counted::Rewrites("hoisted values"),
        aliases: &["while-loop-invariant-code-motion"],
        make: || Box::new(HoistInvariants),
    },
    PassInfo {
        name: "inline-calls",
        summary: "inlines calls and fusions",
        description: "Replaces `call` and the fusions of the input program by the instructions of the called \
                      computation, innermost first. Fusions of the input were chosen for another target; `fuse` \
                      forms new ones. Calls on another execution thread are kept, and so are calls that would make \
                      the module too large. If the inlined module would exceed that limit, equal instructions of a \
                      caller are merged before and after its calls are inlined; these count as rewrites of rule \
                      `common-subexpressions`.",
        profile: &[],
        counted: Counted::Rewrites("inlined calls"),
        aliases: &["call-inliner"],
        make: || Box::new(InlineCalls),
    },
    PassInfo {
        name: "inline-maps",
        summary: "turns map of an elementwise function into array operations",
        description: "Replaces `map` by operations on whole arrays, if the mapped function consists only of \
                      elementwise operations and scalar constants. Other maps are kept. Functions that would make \
                      the module too large are an error.",
        profile: &[],
        counted: Counted::Rewrites("inlined maps"),
        aliases: &[],
        make: || Box::new(InlineMaps),
    },
    PassInfo {
        name: "insert-copies",
        summary: "copies values that need the same buffer at the same time",
        description: "Inserts a `copy` where a value cannot be written directly to the buffer that it must have: the \
                      state of a loop, the result of a branch or the result of the program. This is the case if the \
                      old value of the buffer is still live, or if the memory of the value belongs to a caller, a \
                      constant or another result. Generators (iotas, broadcasts of constants, small fusions without \
                      operands) are computed again instead. All other values share memory without a copy. The pass \
                      requires a schedule.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["copy-insertion"],
        make: || Box::new(InsertCopies),
    },
    PassInfo {
        name: "merge-dots",
        summary: "merges small dots that share an operand",
        description: "Merges small, independent dots that share an operand into one dot of this operand and the \
                      concatenation of the others, followed by slices. It applies if fewer launches and fewer reads \
                      of the shared operand save more than the concatenation and the slices cost. Each element is \
                      the same sum of the same products. Dots of different types, precisions or dimension numbers \
                      are not merged.",
        profile: &["dot.merge_bytes", "fusion.inside", "launch_seconds", "cache_bandwidth"],
        counted: Counted::Rewrites("merged groups of dots"),
        aliases: &["dot-merger"],
        make: || Box::new(MergeDots),
    },
    PassInfo {
        name: "normalize-floats",
        summary: "computes in wider floats where the target only stores a type",
        description: "Computes operations on floats that the target only stores in a wider type, between \
                      conversions. Arithmetic, roundings and comparisons stay bit-identical; other functions, dots \
                      and convolutions may differ in the last place, and reductions round once at the end. Data \
                      movement, conversions and the state of loops, branches and calls are unchanged.",
        profile: &["floats"],
        counted: Counted::Rewrites("widened operations and combiners"),
        aliases: &[],
        make: || Box::new(NormalizeFloats),
    },
    PassInfo {
        name: "normalize-layouts",
        summary: "makes every layout inside the program row major",
        description: "Assigns every array inside of the program a plain row-major layout, so that backends support \
                      only one layout. Copies between layouts are removed, and a `bitcast` between different layouts \
                      becomes the transposes, reshapes and pads that it represents. Parameters and results of the \
                      program and of custom calls keep the layout that their caller or handler requests, and are \
                      converted at the boundary.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["layout_normalization"],
        make: || Box::new(NormalizeLayouts),
    },
    PassInfo {
        name: "order-right-operands",
        summary: "transposes constants and loop invariants on the right of dots, where the target wants it",
        description: "Permutes right operands of dots and filters of convolutions into the order that is fastest on \
                      the target. Constants are transposed at compile time; loop invariants are transposed before \
                      the loop and carried as further state. Other operands are kept, and so are large constants \
                      whose readers disagree and loop invariants above 256 MiB. Each element is the same sum of the \
                      same products. The pass runs after the algebraic rules, which would undo it.",
        profile: &["dot.right_rows", "layout.filters"],
        counted: Counted::Rewrites("permuted operands"),
        aliases: &[],
        make: || Box::new(OrderRightOperands),
    },
    PassInfo {
        name: "pad-dynamic",
        summary: "pads dynamic shapes to their bounds",
        description: "Replaces arrays of dynamic size by arrays of their bounds and scalars with the sizes, so that \
                      backends see only static shapes. Reductions, contractions and pads read a fill value instead \
                      of the undefined elements, concatenations and reshapes compact the elements, and sorts move \
                      them to the end. Sizes pass through loops, branches and calls as additional tuple elements. \
                      Operations without a rule, and parameters of the program with dynamic sizes, are an error.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["dynamic_padder"],
        make: || Box::new(PadDynamic),
    },
    PassInfo {
        name: "rematerialize",
        summary: "recomputes cheap values where memory is scarce",
        description: "Computes cheap values again close to their late uses instead of keeping them in memory, until \
                      the peak of the program is below the memory limit. Candidates are the values that are live at \
                      the peak; those that free the most bytes for the least work come first. The pass does nothing \
                      without a limit, below it, and without a schedule.",
        profile: &["memory_bytes"],
        counted: Counted::Rewrites("recomputed values"),
        aliases: &["rematerialization"],
        make: || Box::new(Rematerialize),
    },
    PassInfo {
        name: "reshape-to-bitcast",
        summary: "turns reshapes between kernels into bitcasts",
        description: "Converts a `reshape` between row-major arrays outside of fusions to a `bitcast`, which shares \
                      the buffer of its operand and costs nothing. Reshapes inside fusions, and all reshapes of \
                      targets with tiled memory, are kept.",
        profile: &["tiles"],
        counted: Counted::Rewrites("converted reshapes"),
        aliases: &[],
        make: || Box::new(ReshapeToBitcast),
    },
    PassInfo {
        name: "schedule",
        summary: "orders instructions so that peak memory is low",
        description: "Orders the instructions of each executed computation, and selects the order with the lowest \
                      simulated peak of memory among a depth-first order, a variant with early results, a list \
                      schedule and the current order. An instruction that updates an operand in place follows the \
                      other readers of the operand if the graph permits it. Control dependencies and the order of \
                      side effects are kept. The complete schedules of a module that is already scheduled are kept.",
        profile: &[],
        counted: Counted::Nothing,
        aliases: &["hlo-memory-scheduler"],
        make: || Box::new(Schedule),
    },
    PassInfo {
        name: "simplify-algebra",
        summary: "applies algebraic laws",
        description: "Applies algebraic rules to every instruction until none matches. Examples are `x + 0`, double \
                      negation, transposes of transposes, slices of concatenations and broadcasts of scalars. Values \
                      stay bit-identical, except that a NaN may become a different NaN, and except for rules whose \
                      documentation states a difference in rounding. Each rule has a name and is counted under it.",
        profile: &["dot.any_operand_order", "layout.convolution"],
        counted: Counted::Rules(rule_names),
        aliases: &["algsimp"],
        make: || Box::new(SimplifyAlgebra),
    },
    PassInfo {
        name: "simplify-conditionals",
        summary: "removes conditionals with a known predicate, equal or cheap branches, and unused operands",
        description: "Replaces a conditional by a branch if the predicate is known or all branches are equal, and \
                      removes a `not` from the predicate by swapping the branches. Results that are equal in all \
                      branches, unused results and unused operands are removed, and constants move into the \
                      branches. A conditional with a few cheap operations on small arrays becomes a `select`. \
                      Branches with other callers keep their interface.",
        profile: &[],
        counted: Counted::Rewrites("simplified conditionals, operands and results"),
        aliases: &["simplify-conditional"],
        make: || Box::new(SimplifyConditionals),
    },
    PassInfo {
        name: "simplify-loops",
        summary: "removes invariant, constant and dead loop state",
        description: "Reduces the state of `while` loops. A loop that never starts becomes its initial state. \
                      Elements that the body passes on unchanged are replaced by their initial value, of equal \
                      elements only the first is used, and elements on which no result and no condition depends are \
                      removed. Loops whose body or condition has other callers keep their state.",
        profile: &[],
        counted: Counted::Rewrites("removed loops and replaced uses of elements"),
        aliases: &["simplify-while-loops"],
        make: || Box::new(SimplifyLoops),
    },
    PassInfo {
        name: "simplify-sorts",
        summary: "removes sorts of at most one element, and operands sorted along without use",
        description: "Removes a `sort` along a dimension of at most one element, with a comparator that is always \
                      false, or of an array that was just sorted in the same total order. An operand that is sorted \
                      along with others is removed if its result is unused and the comparator does not read it. \
                      Arrays of dynamic size are kept.",
        profile: &[],
        counted: Counted::Rewrites("removed sorts and sorts with fewer operands"),
        aliases: &[],
        make: || Box::new(SimplifySorts),
    },
    PassInfo {
        name: "simplify-tokens",
        summary: "removes domain, and add-dependency on tokens without effects",
        description: "Replaces `domain(x)` by `x`, and `add-dependency(x, t)` by `x` if the token `t` is an \
                      `after-all` of nothing but such tokens, so that it orders no side effect. Other tokens, and \
                      instructions with control dependencies, are kept.",
        profile: &[],
        counted: Counted::Rewrites("removed instructions"),
        aliases: &[],
        make: || Box::new(SimplifyTokens),
    },
    PassInfo {
        name: "simplify-tuples",
        summary: "forwards elements of tuples",
        description: "Replaces `get-tuple-element(tuple(..., x, ...))` by `x`, and a `tuple` of all elements of \
                      another tuple, in order, by that tuple. Tuples with control dependencies are kept.",
        profile: &[],
        counted: Counted::Rewrites("forwarded elements and tuples"),
        aliases: &["tuple-simplifier"],
        make: || Box::new(SimplifyTuples),
    },
    PassInfo {
        name: "sink-slices",
        summary: "turns one operation on all slices of an array into one on the array",
        description: "Applies an elementwise operation once to whole arrays instead of to several slices of them, \
                      and slices the result. It applies if the operation reads at least two different slices of the \
                      same arrays, the slices have no other users, and together have at least as many elements as \
                      one array. The pass is part of the pipeline only for targets that do not fuse slices; a fused \
                      slice is free.",
        profile: &["fusion.inside"],
        counted: Counted::Rewrites("merged groups of operations"),
        aliases: &[],
        make: || Box::new(SinkSlices),
    },
    PassInfo {
        name: "solve-counting-loops",
        summary: "replaces loops that only count by their last state",
        description: "Computes the last state of a `while` loop in closed form if each iteration adds a constant to \
                      the elements of the state. The number of iterations is constant, or the counter runs in steps \
                      of 1 to a bound. Sums wrap in their element types, as they do in the loop.",
        profile: &[],
        counted: Counted::Rewrites("solved loops"),
        aliases: &[],
        make: || Box::new(SolveCountingLoops),
    },
    PassInfo {
        name: "split-reductions",
        summary: "splits large reductions with few results for many threads",
        description: "Splits a large reduction with fewer results than the threads of the target need into \
                      reductions of parts and a reduction of their results. Floats may round differently if the \
                      combiner is a single associative and commutative operation, since the order is then \
                      unspecified. Other combiners keep the order, and are split only if the target permits it. \
                      Reductions below the size of the L2 cache, or shorter than a launch, are kept.",
        profile: &["threads", "splits_any_reduction", "l2_bytes", "memory_bandwidth", "launch_seconds"],
        counted: Counted::Rewrites("split reductions"),
        aliases: &[],
        make: || Box::new(SplitReductions),
    },
    PassInfo {
        name: "split-windows",
        summary: "splits reduce-window of several dimensions into one per dimension",
        description: "Splits a `reduce-window` over several dimensions into one per dimension, which takes A + B \
                      instead of A * B steps per result. It applies if that at least halves the estimated number of \
                      steps and the combiner permits it by the rule of the evaluator. Arrays of dynamic size are \
                      kept.",
        profile: &[],
        counted: Counted::Rewrites("split windows"),
        aliases: &[],
        make: || Box::new(SplitWindows),
    },
    PassInfo {
        name: "tile-layouts",
        summary: "assigns the target's tiled layouts",
        description: "Assigns every array with a buffer the tiled layout of the target. Bitcasts, which keep the \
                      bytes of row-major arrays, are expanded into reshapes and `bitcast-convert`, since they would \
                      not keep the bytes of tiled arrays. The pass does nothing for targets with plain row-major \
                      memory.",
        profile: &["tiles"],
        counted: Counted::Nothing,
        aliases: &[],
        make: || Box::new(TileLayouts),
    },
    PassInfo {
        name: "unify-convolution-types",
        summary: "converts convolution operands to one element type",
        description: "Converts operands and result of a `convolution` to one of the types `f32`, `f64`, `c64`, \
                      `c128`, `s32` and `s64`, in which targets accumulate. Narrow floats are accumulated in `f32` \
                      and rounded once, and booleans and integers become floats if their sums are exact in them. \
                      Convolutions of types that the target supports natively, and sparse convolutions, are kept.",
        profile: &["convolution_floats"],
        counted: Counted::Rewrites("converted convolutions"),
        aliases: &[],
        make: || Box::new(UnifyConvolutionTypes),
    },
    PassInfo {
        name: "unify-dot-types",
        summary: "sums dots in the kind of their operands, and converts the sums",
        description: "Changes the element type of a `dot` to the type in which its products are accumulated, and \
                      converts the result, if the result type cannot hold the sums: a dot of floats with an integer \
                      result becomes a dot of floats and a conversion. Dots whose result type has the kind of the \
                      operands and sufficient width are kept.",
        profile: &[],
        counted: Counted::Rewrites("converted dots"),
        aliases: &[],
        make: || Box::new(UnifyDotTypes),
    },
    PassInfo {
        name: "unroll-loops",
        summary: "unrolls short loops of a few iterations",
        description: "Replaces a counting loop of at most 8 iterations by its iterations, which can then fuse with \
                      each other and with the surrounding code. The iterations have at most 512 instructions in \
                      total and contain no loop, branch or call. A loop of one iteration becomes its body whatever \
                      that contains, and a loop without iterations its initial state. Unrolling stops if the module \
                      would become too large.",
        profile: &[],
        counted: Counted::Rewrites("unrolled loops"),
        aliases: &["while_loop_unroller"],
        make: || Box::new(UnrollLoops),
    },
    PassInfo {
        name: "widen-linalg",
        summary: "computes linear algebra on narrow floats in f32",
        description: "Computes `cholesky` and `triangular-solve` on floats narrower than `f32` in `f32`, between \
                      conversions, so that the result is rounded once. Other types are kept.",
        profile: &[],
        counted: Counted::Rewrites("widened operations"),
        aliases: &[],
        make: || Box::new(WidenLinalg),
    },
];
