//! Compilation stages: named pipelines that backends combine.

use xla_hlo::Opcode;

use crate::*;

/// Returns all stages in order.
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

/// Returns only the stages that a program needs to run, without simplification and fusion.
pub fn needed(profile: &TargetProfile) -> Pipeline {
    Pipeline::new("needed")
        .stage(canonicalize(profile))
        .stage(expand(profile))
        .stage(layout(profile))
        .stage(schedule(profile))
}

/// Converts a program to canonical form: no significant layouts, no asynchronous operations, no calls, and one call
/// site per loop body.
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

/// Reduces the work of a program, to a fixpoint.
pub fn simplify(profile: &TargetProfile) -> Pipeline {
    let group = Pipeline::fixed_point("simplify-group", 12);
    // A fused slice is free.
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
        .pass(SolveCountingLoops)
        .pass(UnrollLoops)
        .pass(HoistInvariants)
        .pass(AssignLayouts)
        .pass(DeadCode);
    Pipeline::new("simplify")
        .stage(group)
        // Runs after the algebraic rules, which slice the operands of a sliced dot. Concatenated operands may be
        // constant.
        .pass(MergeDots)
        .pass(FoldConstants)
        // Runs last, since the algebraic rules would undo it. The array in the old order may become dead state of a
        // loop.
        .pass(OrderRightOperands)
        .pass(SimplifyLoops)
        .pass(DeadCode)
        .pass(AnnotateTripCounts)
}

/// Expands operations that a target lacks. Runs before simplification, which then simplifies the expansions.
pub fn expand(_: &TargetProfile) -> Pipeline {
    Pipeline::new("expand")
        .pass(ExpandScans)
        .pass(ExpandBatchNorms)
        .pass(ExpandRaggedDots)
        .pass(ExpandScaledDots)
        // Expands random numbers into random bits first.
        .pass(ExpandRng)
        .pass(ExpandBitGenerators)
        .pass(ExpandStochasticConverts)
        .pass(ExpandBitcastConverts)
        .pass(WidenLinalg)
        .pass(UnifyConvolutionTypes)
        .pass(UnifyDotTypes)
        // Runs before linear algebra is expanded into dots.
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

/// Splits operations into parts that run in parallel or cost less. Runs after simplification, which would merge them
/// again.
pub fn parallelize(_: &TargetProfile) -> Pipeline {
    Pipeline::new("parallelize").pass(SplitWindows).pass(SplitReductions)
}

/// Assigns an explicit layout to each array.
pub fn layout(_: &TargetProfile) -> Pipeline {
    Pipeline::new("layout").pass(NormalizeLayouts).pass(DeadCode)
}

/// Forms kernels: groups of operations that a backend compiles as one.
pub fn fuse(_: &TargetProfile) -> Pipeline {
    Pipeline::new("fuse")
        // Runs before other passes fuse the softmax of an attention.
        .pass(FuseAttention)
        .pass(FuseScores)
        .pass(Fuse)
        .pass(FuseRows)
        .pass(FuseOutputs)
        .pass(FuseEpilogues)
        .pass(FoldKernels)
        // Merged kernels may contain equal instructions.
        .pass(CommonSubexpressions)
        .pass(ReshapeToBitcast)
        .pass(DeadCode)
        .pass(AliasRowOutputs)
}

/// Assigns tiles, an instruction order, rematerialization if memory is short, the copies that this order needs, and
/// memory spaces. [`assign_buffers`](crate::buffers::assign_buffers) follows.
pub fn schedule(_: &TargetProfile) -> Pipeline {
    Pipeline::new("schedule")
        .pass(TileLayouts)
        .pass(Schedule)
        .pass(Rematerialize)
        .pass(InsertCopies)
        .pass(AssignMemorySpaces)
}
