//! Stages of a compilation: named pipelines that backends put together.

use xla_hlo::Opcode;

use crate::*;

/// All stages in order.
pub fn standard(profile: &TargetProfile) -> Pipeline {
    Pipeline::new("standard")
        .stage(canonicalize(profile))
        .stage(expand(profile))
        .stage(simplify(profile))
        .stage(parallelize(profile))
        .stage(layout(profile))
        .stage(fuse(profile))
        .stage(schedule(profile))
}

/// The stages without which a program cannot run: nothing is simplified or fused.
pub fn needed(profile: &TargetProfile) -> Pipeline {
    Pipeline::new("needed")
        .stage(canonicalize(profile))
        .stage(expand(profile))
        .stage(layout(profile))
        .stage(schedule(profile))
}

/// One form for one meaning: no layouts that matter, nothing asynchronous, no calls, each loop body called from one
/// place.
pub fn canonicalize(_: &TargetProfile) -> Pipeline {
    Pipeline::new("canonicalize")
        .pass(NormalizeLayouts)
        .pass(ExpandAsync)
        .pass(ExpandCollectives)
        .pass(ExpandCustomCalls)
        .pass(InlineCalls)
        .pass(InlineMaps)
        .pass(SimplifyTokens)
        .pass(PadDynamic)
        .pass(SimplifyTuples)
        .pass(DeadCode)
        .pass(FlattenCallGraph)
}

/// Less work for the same result, to a fixed point.
pub fn simplify(profile: &TargetProfile) -> Pipeline {
    let group = Pipeline::fixed_point("simplify-group", 12);
    // Fused slices cost nothing where they are.
    let slices_cost = !profile.fusion.inside.contains(&Opcode::Slice);
    let group = if slices_cost { group.pass(SinkSlices) } else { group };
    let group = group
        .pass(SimplifyTuples)
        .pass(DropZeroSized)
        .pass(SimplifySorts)
        .pass(SimplifyAlgebra)
        .pass(FoldConstants)
        .pass(CommonSubexpressions)
        .pass(SimplifyConditionals)
        .pass(SimplifyLoops)
        .pass(UnrollLoops)
        .pass(HoistInvariants)
        .pass(AssignLayouts)
        .pass(DeadCode);
    Pipeline::new("simplify")
        .stage(group)
        // After the laws, which slice the operands of a sliced dot. Concatenated operands may be constants.
        .pass(MergeDots)
        .pass(FoldConstants)
        // The laws would undo it: to them one order is as good as another. The old order may be dead state of a loop.
        .pass(OrderRightOperands)
        .pass(SimplifyLoops)
        .pass(DeadCode)
        .pass(AnnotateTripCounts)
}

/// Operations that a target lacks, put in terms of those it has; before simplification, which then sees their
/// expansions.
pub fn expand(_: &TargetProfile) -> Pipeline {
    Pipeline::new("expand")
        .pass(ExpandScans)
        .pass(ExpandBatchNorms)
        .pass(ExpandRaggedDots)
        .pass(ExpandScaledDots)
        // Random numbers become random bits.
        .pass(ExpandRng)
        .pass(ExpandBitGenerators)
        .pass(ExpandStochasticConverts)
        .pass(ExpandBitcastConverts)
        .pass(WidenLinalg)
        .pass(UnifyConvolutionTypes)
        .pass(UnifyDotTypes)
        // Before linear algebra becomes dots.
        .pass(AllowTf32)
        // The following passes expand only operations that the target's profile lacks.
        .pass(ExpandCholesky)
        .pass(ExpandTriangularSolves)
        .pass(ExpandTopK)
        .pass(ExpandFfts)
        .pass(ExpandSelectAndScatter)
        .pass(ExpandClamps)
        .pass(ExpandFunctions)
        .pass(NormalizeFloats)
        .pass(SimplifyTuples)
        .pass(DeadCode)
}

/// Operations in parts that run side by side or cost less; after simplification, which would put them together again.
pub fn parallelize(_: &TargetProfile) -> Pipeline {
    Pipeline::new("parallelize").pass(SplitWindows).pass(SplitReductions)
}

/// Every array states its layout.
pub fn layout(_: &TargetProfile) -> Pipeline {
    Pipeline::new("layout").pass(NormalizeLayouts).pass(DeadCode)
}

/// Kernels: operations that a backend compiles as one.
pub fn fuse(_: &TargetProfile) -> Pipeline {
    Pipeline::new("fuse")
        // Before its softmax becomes a kernel.
        .pass(FuseAttention)
        .pass(FuseScores)
        .pass(Fuse)
        .pass(FuseRows)
        .pass(FuseOutputs)
        .pass(FuseEpilogues)
        .pass(FoldKernels)
        // Kernels that were merged may compute the same thing twice.
        .pass(CommonSubexpressions)
        .pass(ReshapeToBitcast)
        .pass(DeadCode)
        .pass(AliasRowOutputs)
}

/// Layouts, the order of instructions, rematerialization for want of memory, the copies that this order needs, and
/// memory spaces. [`assign_buffers`](crate::buffers::assign_buffers) follows.
pub fn schedule(_: &TargetProfile) -> Pipeline {
    Pipeline::new("schedule")
        .pass(TileLayouts)
        .pass(Schedule)
        .pass(Rematerialize)
        .pass(InsertCopies)
        .pass(AssignMemorySpaces)
}
