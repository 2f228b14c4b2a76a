//! Products of few results and long sums: sums are cut into parts, which other blocks add up, and a second launch adds
//! those up.
//!
//! What comes before the product is computed in the first launch, what comes after it in the second one. Both add in an
//! order that depends on nothing but the program (split-K, without atomics).

use inkwell::values::PointerValue;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{Error, Result, ResultExt};

use super::skinny::Thin;
use super::tiles::Tiling;
use super::{Product, Side};
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::convolution::zero;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch, Writer, counters};
use crate::fused::loops::affine::{AffineExpr, position, row_major_strides};
use crate::fused::loops::frame::Frame;
use crate::fused::source::KernelSource;
use crate::lanes::Lanes;
use crate::simt::{MULTIPROCESSORS, WARP};
use crate::target::Target;

/// Blocks of tiles that fill a large GPU: two on each multiprocessor, which is what the registers of their threads
/// allow.
pub(crate) const BUSY_BLOCKS: u64 = 2 * MULTIPROCESSORS;
/// Threads that add up parts on a whole device, together.
const MANY_THREADS: u64 = 1 << 16;
/// Parts that a thread adds up, at least: fewer take less time than putting together what threads have.
const LEAST_PARTS: u64 = 4;
/// The most threads that add up the parts of one result.
const MOST_MEMBERS: u64 = 16;

/// How sums are cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// How many, at least one. None is empty.
    pub parts: u64,
    /// Steps of the sum in each but the last, which may have fewer.
    pub size: u64,
}

impl Cut {
    /// Not at all.
    pub fn whole(depth: u64) -> Cut {
        Cut { parts: 1, size: depth }
    }

    /// Into about so many parts, each a multiple of some steps, and of no fewer than `least`.
    pub fn new(depth: u64, wanted: u64, (multiple, least): (u64, u64)) -> Cut {
        let parts = wanted.min(depth / least.max(1)).max(1);
        let size = depth.div_ceil(parts).next_multiple_of(multiple);
        if size >= depth { Cut::whole(depth) } else { Cut { parts: depth.div_ceil(size), size } }
    }

    /// The part and the batch that a number of both stands for.
    pub fn divide(
        self,
        s: &mut FusedEmitter<'_, '_, '_>,
        number: &AffineExpr,
        batches: u64,
    ) -> Result<(AffineExpr, AffineExpr)> {
        match self.parts {
            1 => Ok((AffineExpr::default(), number.clone())),
            _ => s.divide(number, batches as i64),
        }
    }

    /// The first step of a part, and the one after its last, of so many in all; counted in groups of `group`.
    pub fn bounds<'e, 'ctx>(
        self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        part: &AffineExpr,
        (depth, group): (u64, u64),
    ) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let (size, end) = ((self.size / group) as i64, depth.div_ceil(group) as i64);
        if self.parts == 1 {
            return Ok([s.number(0), s.number(end)]);
        }
        let start = s.number_of(&part.clone().scaled(size))?;
        let start = s.lanes_of(start);
        Ok([start, (start + size).smin(end)])
    }
}

/// Where the sums of a unit go.
pub(crate) struct Sink<'a, 'ctx, 'm> {
    pub product: &'a Product<'m>,
    pub batch: &'a [AffineExpr],
    /// What is done with sums of parts: those of whole ones are gone on with.
    pub part: Option<Partial<'ctx>>,
}

/// Scratch memory for sums of parts: parts, then batches, rows and columns.
pub(crate) struct Partial<'ctx> {
    scratch: PointerValue<'ctx>,
    /// The number of the part and of the batch, together.
    number: AffineExpr,
}

impl<'a, 'ctx, 'm> Sink<'a, 'ctx, 'm> {
    /// Of a unit with that number of its part and its batch; the memory is needed for sums of parts.
    pub fn new(
        product: &'a Product<'m>,
        batch: &'a [AffineExpr],
        cut: Cut,
        (number, scratch): (&AffineExpr, Option<PointerValue<'ctx>>),
    ) -> Result<Self> {
        let part = match (cut.parts, scratch) {
            (1, _) => None,
            (_, Some(scratch)) => Some(Partial { scratch, number: number.clone() }),
            (_, None) => return Err(Error::internal("parts of sums without memory for them")),
        };
        Ok(Sink { product, batch, part })
    }
}

impl<'ctx> Partial<'ctx> {
    /// Stores neighbouring sums of a row, of which the row and the first column are given.
    pub fn store<'e, 'm>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        product: &Product<'m>,
        at: &[AffineExpr],
        sum: Value<'e, 'ctx>,
    ) -> Result<()> {
        let [rows, columns] = [Side::Left, Side::Right].map(|side| product.extent(side) as usize);
        let at = [std::slice::from_ref(&self.number), at].concat();
        let at = s.number_of(&position(&at, &row_major_strides(&[1, rows, columns])))?;
        let at = s.lanes_of(at);
        match sum.width() {
            1 => elemental::store(s.emitter, sum, self.scratch, at, None),
            // Its columns are a multiple of the width, and so is the row's beginning.
            _ => elemental::store_aligned(s.emitter, sum, self.scratch, at),
        }
        Ok(())
    }
}

/// How a product is computed in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitProduct {
    way: Way,
    cut: Cut,
    results: u64,
    /// Bytes of a sum.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tiles(Tiling),
    Thin(Thin),
}

/// What a launch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProductPhase {
    /// Adds up the products of each part of the sums. The words: addresses of the inputs, then of scratch memory.
    Parts,
    /// Adds up the parts, and goes on with the sums. The words: addresses of the inputs and the results, then of
    /// scratch memory.
    Results,
}

impl SplitProduct {
    /// The launches.
    pub const PHASES: [ProductPhase; 2] = [ProductPhase::Parts, ProductPhase::Results];

    /// The plan for a kernel with a product of few results and long sums. `None` for others, and for a target without
    /// threads.
    pub fn new(source: &KernelSource<'_>, target: &Target) -> Option<SplitProduct> {
        let writer = Writer::new(source).ok().filter(|writer| !writer.dims.contains(&0))?;
        let product = writer.only_product(target)?;
        let (way, cut) = match Thin::cut(&product) {
            Some(thin) => (Way::Thin(thin), thin.cut),
            None if product.pays() && !Thin::is_thin(&product) => {
                let tiling = Tiling::cut(&product, target)?;
                (Way::Tiles(tiling), tiling.cut)
            }
            None => return None,
        };
        Some(SplitProduct { way, cut, results: product.results(), bytes: product.sum_type.byte_width() as u64 })
    }

    /// Bytes of the parts' sums.
    pub fn scratch_bytes(&self) -> usize {
        (self.cut.parts * self.results * self.bytes) as usize
    }

    /// How many 64-bit words a kernel takes.
    pub fn words(&self, phase: ProductPhase, source: &KernelSource<'_>) -> usize {
        match phase {
            ProductPhase::Parts => source.inputs.len() + 1,
            ProductPhase::Results => source.pointer_count() + 1,
        }
    }

    /// Writes the function of a launch into the emitter's module, which is for a target with threads.
    pub fn emit(
        &self,
        source: &KernelSource<'_>,
        phase: ProductPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let graph = &source.module[source.computation];
        let context = || format!("%{} in {}", graph[source.root].name(), graph.name());
        self.emit_phase(source, phase, emitter, name).context(context)
    }

    fn emit_phase(
        &self,
        source: &KernelSource<'_>,
        phase: ProductPhase,
        emitter: &Emitter<'_>,
        name: &str,
    ) -> Result<Kernel> {
        let frame = Frame::open(emitter, name, self.words(phase, source))?;
        let writer = Writer::new(source)?;
        let product = writer.only_product(emitter.target());
        let product = product.ok_or_else(|| Error::internal("a product that is none"))?;
        let Launch { units, block } = match (phase, self.way) {
            (ProductPhase::Parts, Way::Tiles(tiling)) => writer.emit_product(emitter, frame, &product, tiling)?,
            (ProductPhase::Parts, Way::Thin(thin)) => writer.emit_thin(emitter, frame, &product, thin)?,
            (ProductPhase::Results, _) => self.emit_results(&writer, emitter, frame, &product)?,
        };
        emitter.end_kernel()?;
        let work = match phase {
            ProductPhase::Parts => writer.work(),
            ProductPhase::Results => (self.cut.parts * self.results) as f64,
        };
        Ok(Kernel { name: name.to_string(), units, block, shared_bytes: emitter.shared_bytes(), work })
    }

    /// Threads that add up the parts of one result.
    fn members(&self) -> u32 {
        let wanted = (MANY_THREADS / self.results).min(self.cut.parts / LEAST_PARTS).clamp(1, MOST_MEMBERS);
        1 << wanted.ilog2()
    }

    /// Writes the body of [`ProductPhase::Results`]: a block has as many neighbouring results as a warp has threads.
    fn emit_results<'ctx, 'm>(
        &self,
        writer: &Writer<'_, 'm>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        product: &Product<'m>,
    ) -> Result<Launch> {
        let scratch = frame.pointers.last().copied();
        let scratch = scratch.ok_or_else(|| Error::internal("parts of sums without memory for them"))?;
        let mut s = writer.bind(emitter, frame.pointers)?;
        s.set_rows(0);
        let (team, column) = s.enter_column(self.members())?;
        // Threads beyond the last result add up it, too: all of a block must be there where it waits.
        let number = column.smin(self.results as i64 - 1);
        let zero = zero(emitter, product.sum_type);
        let sum = s.reduced_by_team(team, BinaryOp::Add, zero, &[self.cut.parts], &mut |s, at| {
            let part = s.number_of(&at[0].clone().scaled(self.results as i64))?;
            let at = s.lanes_of(part) + number;
            Ok(elemental::load(emitter, scratch, at, product.sum_type, 1, None))
        })?;
        s.when(team.member.eq(0) & column.ult(self.results as i64), &[], |s| {
            s.unit_level = s.depth();
            // A new symbol: what depends on it must not be computed in front of the test.
            let result = AffineExpr::symbol(s.uniform_symbol(number, Some(self.results)));
            let [rows, columns] = [Side::Left, Side::Right].map(|side| product.extent(side));
            let at = counters(s, &result, &[product.batches(), rows, columns])?;
            let batch = counters(s, &at[0], &product.batch)?;
            writer.store_results(s, (product, &batch), &at[1..], sum).map(|()| Vec::new())
        })?;
        Ok(Launch { units: self.results.div_ceil(WARP.into()), block: Some(WARP * self.members()) })
    }
}
