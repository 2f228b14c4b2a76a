//! Plan of an attention with few queries.

use std::fmt;

use xla_hlo::{ElementType, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::attention::kernel::AttentionKernel;
use crate::fused::kernel::Kernel;
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::loops::frame::Frame;
use crate::fused::simt::matmul::cut::Cut;
use crate::fused::source::KernelSource;
use crate::fused::tuning::attention_decode::{LEAST_TURNS, MOST_KEYS, MOST_QUERIES, MOST_REGISTERS, WARPS};
use crate::fused::tuning::device::busy_blocks;
use crate::fused::tuning::threads::ACCESS_BITS;
use crate::simt::WARP;
use crate::target::Target;

/// Maximum number of queries per head that threads, rather than tensor cores, compute.
pub const ATTENTION_DECODE_QUERIES: usize = MOST_QUERIES as usize;

/// Plan of an attention with few queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionDecode {
    /// Number of queries per head.
    pub(super) queries: u64,
    /// Number of elements of a query (or key), and of a value.
    pub(super) heads: [u64; 2],
    /// Number of elements per memory access.
    pub(super) access: u64,
    /// Number of threads per group, which share a key: a power of two, at most a warp.
    pub(super) group: u64,
    /// Number of keys per group and iteration.
    pub(super) keys: u64,
    pub(super) batches: u64,
    /// Split of the keys over blocks.
    pub(super) cut: Cut,
}

/// Launch of an attention with few queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionPhase {
    /// Computes the whole attention. The words are addresses of inputs and results.
    Whole,
    /// Computes the softmax of each part of the keys, and its products with the values. The words are addresses of the
    /// inputs, then of scratch memory.
    Parts,
    /// Combines the parts. The words are addresses of inputs and results, then of scratch memory.
    Results,
}

impl KernelPlan for AttentionDecode {
    type Phase = AttentionPhase;

    const NAME: &'static str = "attention-decode";
    const READS_SOURCE: bool = true;

    /// Returns the plan for a kernel that is an attention with few queries.
    fn new(source: &KernelSource<'_>, target: &Target) -> Option<AttentionDecode> {
        target.simt()?;
        let kernel = FusedKernel::of_elements(source)?;
        let kernel = kernel.attention_kernel()?;
        let (keys, values) = (kernel.sides()[1], kernel.sides()[2]);
        let bytes = kernel.scores.bytes[keys as usize];
        let ty = kernel.operand_type()?;
        let queries = kernel.queries();
        let known = matches!(ty, ElementType::F16 | ElementType::BF16 | ElementType::F32);
        if !known || !(1..=MOST_QUERIES).contains(&queries) || !kernel.lies() {
            return None;
        }
        let access = u64::from(ACCESS_BITS / 8) / bytes;
        let heads = [kernel.scores.k(), kernel.result.extent(values)];
        let group = heads.map(|head| head.div_ceil(access)).into_iter().max()?.next_power_of_two();
        if group > u64::from(WARP) || heads.iter().any(|head| *head == 0 || !head.is_multiple_of(access)) {
            return None;
        }
        // Registers of each query's elements, sums and scores, and of the keys and values of an iteration.
        let registers = |keys: u64| queries * (2 * access + keys) + keys * 2 * u64::from(ACCESS_BITS / 32);
        let mut keys = MOST_KEYS;
        while keys > 1 && registers(keys) > MOST_REGISTERS {
            keys /= 2;
        }
        let batches = kernel.scores.batches();
        let mut plan = AttentionDecode { queries, heads, access, group, keys, batches, cut: Cut::whole(kernel.keys()) };
        let (wanted, step) = (busy_blocks(target) / batches.max(1), plan.keys_per_iteration());
        plan.cut = Cut::new(kernel.keys(), wanted, (step, LEAST_TURNS * step));
        Some(plan)
    }

    fn phases(&self) -> Vec<AttentionPhase> {
        match self.cut.parts {
            1 => vec![AttentionPhase::Whole],
            _ => vec![AttentionPhase::Parts, AttentionPhase::Results],
        }
    }

    fn commands(&self, source: &KernelSource<'_>) -> Vec<PlanCommand<AttentionPhase>> {
        let (inputs, arrays) = (source.inputs.len(), source.pointer_count());
        let launch = |phase| match phase {
            AttentionPhase::Whole => PlanCommand::launch(phase, PlanArgument::arrays(arrays, None)),
            AttentionPhase::Parts => PlanCommand::launch(phase, PlanArgument::arrays(inputs, Some(0))),
            AttentionPhase::Results => PlanCommand::launch(phase, PlanArgument::arrays(arrays, Some(0))),
        };
        self.phases().into_iter().map(launch).collect()
    }

    fn scratch_bytes(&self) -> Vec<usize> {
        let rows = self.cut.parts * self.batches * self.queries;
        (self.cut.parts > 1).then_some((rows * self.row()) as usize * size_of::<f32>()).into_iter().collect()
    }

    fn describe(&self, phase: AttentionPhase) -> String {
        format!("attention-decode {phase:?}: {self}")
    }

    fn emit(
        &self,
        source: &KernelSource<'_>,
        phase: AttentionPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = Frame::open(emitter, name, self.words(phase, source))?;
        let kernel = FusedKernel::new(source)?;
        let launch = match phase {
            AttentionPhase::Whole | AttentionPhase::Parts => kernel.emit_attention_decode(emitter, frame, *self)?,
            AttentionPhase::Results => kernel.emit_attention_results(emitter, frame, *self)?,
        };
        Kernel::end(emitter, name, launch, self.describe(phase))
    }
}

impl AttentionDecode {
    /// Returns the number of 64-bit words that a launch takes.
    fn words(&self, phase: AttentionPhase, source: &KernelSource<'_>) -> usize {
        match phase {
            AttentionPhase::Whole => source.pointer_count(),
            AttentionPhase::Parts => source.inputs.len() + 1,
            AttentionPhase::Results => source.pointer_count() + 1,
        }
    }

    /// Number of threads per block.
    pub(super) const THREADS: u64 = WARPS * WARP as u64;

    /// Returns the number of groups per block.
    pub(super) fn groups(&self) -> u64 {
        AttentionDecode::THREADS / self.group
    }

    /// Returns the number of keys of a block per iteration.
    pub(super) fn keys_per_iteration(&self) -> u64 {
        self.groups() * self.keys
    }

    /// Returns the number of numbers in the state of a query: sums for each element of a value, the largest logit, and
    /// the sum of exponentials.
    pub(super) fn row(&self) -> u64 {
        self.heads[1] + 2
    }
}

impl AttentionKernel<'_> {
    /// Returns the element type that all operands have in memory; `None` if they differ.
    fn operand_type(&self) -> Option<ElementType> {
        let [queries, keys, values] = self.sides();
        let types = [(&self.scores, queries), (&self.scores, keys), (&self.result, values)]
            .map(|(matmul, side)| matmul.types[side as usize]);
        (types[0] == types[1] && types[1] == types[2]).then_some(types[0])
    }
}

impl fmt::Display for AttentionDecode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttentionDecode { queries, heads: [head, value], group, keys, cut, .. } = self;
        write!(
            f,
            "{queries} queries, heads of {head} and {value}, {group} threads for each of {keys} keys an iteration, \
             {} parts of {} keys",
            cut.parts, cut.size
        )
    }
}
