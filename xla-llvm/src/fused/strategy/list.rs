//! List of the strategies, and the choice among them.

use std::fmt;

use xla_hlo::{Error, Result};

use super::{Choice, Strategy};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::Frame;
use crate::fused::{contraction, sequential, simt, vector};

/// Strategies, the more general ones after the others: the first one that applies is used.
pub(super) const LIST: &[Entry] = &[
    Entry::of::<sequential::scatter::WindowScatter>(Targets::All),
    Entry::of::<Empty>(Targets::All),
    Entry::of::<sequential::sort::RowSort>(Targets::All),
    Entry::of::<sequential::fibers::Fibers>(Targets::All),
    Entry::of::<vector::fft::Transform>(Targets::Vectors),
    Entry::of::<contraction::attention::plan::RegisterAttention>(Targets::Vectors),
    Entry::of::<contraction::tiling::RegisterTiles>(Targets::Vectors),
    Entry::of::<vector::operand_loops::OperandLoops>(Targets::Vectors),
    Entry::of::<vector::transpose::TileGrid>(Targets::Vectors),
    Entry::of::<vector::loops::VectorLoops>(Targets::Vectors),
    Entry::of::<simt::attention::wgmma::plan::WgmmaAttention>(Targets::Threads),
    Entry::of::<simt::attention::plan::AttentionTiling>(Targets::Threads),
    Entry::of::<simt::attention::backward_plan::BackwardTiling>(Targets::Threads),
    Entry::of::<simt::matmul::skinny::SkinnyMatmul>(Targets::Threads),
    Entry::of::<simt::matmul::tiling::Tiling>(Targets::Threads),
    Entry::of::<simt::row_reduce::RowReduce>(Targets::Threads),
    Entry::of::<simt::row_reduce::ColumnReduce>(Targets::Threads),
    Entry::of::<simt::transpose::SharedTranspose>(Targets::Threads),
    Entry::of::<simt::elementwise::ThreadLoops>(Targets::Threads),
];

/// Returns the names of all strategies.
pub fn strategies() -> impl Iterator<Item = &'static str> {
    LIST.iter().flat_map(|entry| (entry.names)()).copied()
}

/// Entry of the list of strategies.
pub(super) struct Entry {
    targets: Targets,
    names: fn() -> &'static [&'static str],
    choose: fn(&Choice<'_, '_, '_, '_>) -> Result<Option<Chosen>>,
}

/// Targets of a strategy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Targets {
    All,
    /// CPUs, with vectors.
    Vectors,
    /// GPUs, with threads.
    Threads,
}

impl Entry {
    const fn of<S: Strategy + 'static>(targets: Targets) -> Entry {
        let choose = |choice: &Choice<'_, '_, '_, '_>| Ok(S::choose(choice)?.map(Chosen::new));
        Entry { targets, names: S::names, choose }
    }
}

/// Strategy that was chosen for a kernel.
pub(crate) struct Chosen {
    name: &'static str,
    strategy: Box<dyn Strategy>,
}

impl Chosen {
    pub fn new<S: Strategy + 'static>(strategy: S) -> Chosen {
        Chosen { name: strategy.name(), strategy: Box::new(strategy) }
    }

    /// Chooses the strategy of a kernel on the emitter's target.
    pub fn of(kernel: &FusedKernel<'_, '_>, emitter: &Emitter<'_>) -> Result<Chosen> {
        let on = if emitter.target().simt().is_some() { Targets::Threads } else { Targets::Vectors };
        let choice = Choice::new(kernel, emitter);
        for entry in LIST.iter().filter(|entry| entry.targets == Targets::All || entry.targets == on) {
            if let Some(chosen) = (entry.choose)(&choice)? {
                return Ok(chosen);
            }
        }
        Err(Error::internal("the kernel has no strategy"))
    }

    /// Returns the number of tensor maps among the kernel's parameters.
    pub fn maps(&self) -> usize {
        self.strategy.maps()
    }

    /// Emits the body of the function.
    pub fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        self.strategy.emit(kernel, emitter, frame)
    }
}

/// Prints the name and the parameters of the strategy: `vector-loops [128, 1024] x 16 lanes`.
impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.strategy.to_string();
        f.write_str(self.name)?;
        if parameters.is_empty() { Ok(()) } else { write!(f, " {parameters}") }
    }
}

/// Strategy for results without elements.
struct Empty;

impl fmt::Display for Empty {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Strategy for Empty {
    fn names() -> &'static [&'static str] {
        &["empty"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<Empty>> {
        Ok(choice.kernel.dims.contains(&0).then_some(Empty))
    }

    fn emit<'ctx>(&self, _: &FusedKernel<'_, '_>, _: &Emitter<'ctx>, _: Frame<'_, 'ctx>) -> Result<Launch> {
        Ok(Launch::alone(0))
    }
}
