//! Profiles of targets for the passes.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::{ElementType, Opcode};
use xla_llvm::fused::{
    ATTENTION_BACKWARD_HEADS, ATTENTION_DECODE_QUERIES, ATTENTION_HEADS, ATTENTION_ROWS, SmallMatrixPlan, TopKPlan,
};
use xla_llvm::target::Target;
use xla_passes::{AttentionProfile, DotProfile, EpilogueProfile, FusionProfile, HeadSizes, TargetProfile, TopKProfile};

/// Returns the profile of a target for the passes: of a CPU, or of a GPU.
pub fn profile(target: &Target) -> TargetProfile {
    let types = || ElementType::ALL.iter().copied();
    let epilogues = EpilogueProfile::contractions(types(), 1 << 14);
    let fusion = FusionProfile { epilogues, ..FusionProfile::reductions() };
    let generic = TargetProfile::generic();
    if target.simt().is_none() {
        let vector_bytes = (target.abilities().vector_bits as usize / 8).max(4);
        let dot = DotProfile { right_rows: true, ..generic.dot };
        return TargetProfile { vector_bytes, threads: 8, fusion, dot, ..generic };
    }
    let sizes = |heads: [(usize, usize, usize); 2]| {
        BTreeMap::from(heads.map(|(bytes, step, most)| (bytes, HeadSizes { step, most })))
    };
    let attention = AttentionProfile {
        types: BTreeSet::from([ElementType::F16, ElementType::BF16, ElementType::F32]),
        full_precision: false,
        any_head_order: false,
        head_sizes: sizes(ATTENTION_HEADS),
        sum_head_sizes: sizes(ATTENTION_BACKWARD_HEADS),
        least_queries: 16,
        least_keys: 64,
        few_queries: ATTENTION_DECODE_QUERIES,
        tile: ATTENTION_ROWS,
        few_keys: 1024,
        excess_precision: false,
    };
    TargetProfile {
        threads: target.multiprocessors() as usize,
        launch_seconds: 3e-6,
        splits_any_reduction: true,
        fusion: FusionProfile { attention, horizontal_bytes: 1 << 20, ..fusion },
        lacks: BTreeSet::from([Opcode::Cholesky, Opcode::TriangularSolve, Opcode::TopK, Opcode::Fft]),
        top_k: TopKProfile { most: TopKPlan::MOST, elements: types().filter(|&ty| TopKPlan::takes(ty)).collect() },
        small_matrices: types().filter_map(|ty| Some((ty, SmallMatrixPlan::most_rows(ty)?))).collect(),
        ..generic
    }
}
