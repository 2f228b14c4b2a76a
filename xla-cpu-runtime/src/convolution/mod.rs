//! Direct convolution: multiplies the input, in place or packed, with packed panels of the kernel.
//!
//! No im2col matrix is materialized: the micro-kernel (`tile`) addresses the input by offsets and computes a register
//! tile of a few positions times a few vectors of output channels. A chunk of work packs the part of the input that it
//! needs only if there is padding or there are holes. It packs the part of the kernel for its channels, in panels that
//! fit the cache.
//!
//! If groups have few channels, as in depthwise convolutions, a vector holds channels of several adjacent groups.
#![expect(unsafe_code, reason = "convolutions work on raw buffers of generated code")]

mod edges;
mod number;
mod pack;
mod scratch;
mod tile;
mod view;

use std::marker::PhantomData;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd, c32, c64};
use xla_hlo::ElementType;

use self::number::{Number, lanes};
use self::scratch::with_memory;
use self::tile::{Tiles, VECTORS};
use self::view::{Role, Slab, View, memory_order};
use crate::kernel::KernelFn;
use crate::plans::convolution::{ConvolutionChunk, ConvolutionChunks, ConvolutionPlan};
use crate::pool;

/// Element types that the library multiplies; a pass replaces the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum ConvolutionElement {
    F32 = 0,
    F64 = 1,
    C64 = 2,
    C128 = 3,
    S32 = 4,
    S64 = 5,
}

impl ConvolutionElement {
    /// Returns the variant for an element type, if there is one.
    pub(crate) fn of(ty: ElementType) -> Option<ConvolutionElement> {
        match ty {
            ElementType::F32 => Some(ConvolutionElement::F32),
            ElementType::F64 => Some(ConvolutionElement::F64),
            ElementType::C64 => Some(ConvolutionElement::C64),
            ElementType::C128 => Some(ConvolutionElement::C128),
            ElementType::S32 => Some(ConvolutionElement::S32),
            ElementType::S64 => Some(ConvolutionElement::S64),
            _ => None,
        }
    }
}

/// Encodes a plan as numbers that generated code can carry, the element type first.
pub(crate) fn convolution_descriptor(element: ConvolutionElement, plan: &ConvolutionPlan) -> Vec<i64> {
    std::iter::once(element as i64).chain(plan.numbers()).collect()
}

/// Computes the convolution that `length` numbers at `descriptor` describe; `buffers` are input, kernel and result.
pub(crate) unsafe extern "C" fn xla_cpu_convolution(
    buffers: *const *mut u8,
    _: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    let threads = threads as usize;
    // SAFETY: the generated caller passes a constant of `length` numbers made by `convolution_descriptor`, and three
    // buffers that hold the shapes the plan was made from.
    unsafe {
        let numbers = std::slice::from_raw_parts(descriptor, length as usize);
        let plan = ConvolutionPlan::from_numbers(&numbers[1..]);
        match numbers[0] {
            0 => convolve::<f32>(&plan, buffers, threads),
            1 => convolve::<f64>(&plan, buffers, threads),
            2 => convolve::<c32>(&plan, buffers, threads),
            3 => convolve::<c64>(&plan, buffers, threads),
            4 => convolve::<i32>(&plan, buffers, threads),
            _ => convolve::<i64>(&plan, buffers, threads),
        }
    }
}

/// Size in bytes of a packed panel of the kernel, which stays in the L1 cache during the loop over positions.
const KERNEL_BYTES: usize = 24 << 10;
/// Approximate size in bytes of a packed part of the input, which should fit the L2 cache.
const INPUT_BYTES: usize = 512 << 10;

/// Maximum number of products per result in a slab; their offsets in the kernel are listed in memory.
const PRODUCTS: usize = 16 << 10;

/// Query for the number of elements of a vector register of this machine.
struct Lanes<T>(PhantomData<T>);

impl<T: Number> WithSimd for Lanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        lanes::<T, S>()
    }
}

/// Convolution with the state that its chunks share.
struct Call<'a, T> {
    plan: &'a ConvolutionPlan,
    input: *const T,
    kernel: *const T,
    output: *mut T,
    arch: Arch,
    /// Number of elements of a vector register.
    lanes: usize,
    order: Vec<Role>,
    /// Whether a vector holds channels of several groups.
    side_by_side: bool,
    /// Whether the input can be read in place, without packing.
    direct: bool,
}

// SAFETY: the pointers are into buffers that live until the convolution is done; its chunks write to disjoint results.
unsafe impl<T> Sync for Call<'_, T> {}

/// # Safety
/// `buffers` must be three pointers to arrays of the plan's shapes. No other code may access the third during the call.
unsafe fn convolve<T: Number>(plan: &ConvolutionPlan, buffers: *const *mut u8, threads: usize) {
    // SAFETY: guaranteed by the caller.
    let [input, kernel, output] = [0, 1, 2].map(|i| unsafe { *buffers.add(i) }.cast::<T>());
    let phases = if plan.results() * plan.k() == 0 { Vec::new() } else { plan.without_holes() };
    if phases.iter().map(ConvolutionPlan::results).sum::<usize>() < plan.results() {
        // SAFETY: the result has `plan.results()` elements.
        (0..plan.results()).for_each(|i| unsafe { output.add(i).write(T::ZERO) });
    }
    for phase in &phases {
        // SAFETY: a phase begins inside the kernel and the result.
        let (kernel, output) = unsafe { (kernel.add(phase.kernel_first), output.add(phase.output_first)) };
        let (call, chunks) = Call::new(phase, (input, kernel, output), threads);
        // SAFETY: chunks are parts of the phase, and disjoint.
        pool::parallel_for(threads, chunks.count(), &|number| unsafe { call.chunk(&chunks.get(number)) });
        // SAFETY: as above, and all chunks are done.
        unsafe { edges::mend(phase, input.cast_const(), kernel.cast_const(), output) };
    }
}

/// Whether vectors that span several groups need less than two thirds of the number of vectors. In exchange, each of
/// them needs a load of input elements instead of a broadcast.
fn is_side_by_side(plan: &ConvolutionPlan, lanes: usize) -> bool {
    let (groups, outputs) = (plan.groups.extent, plan.outputs.extent);
    groups > 1 && (groups * outputs).div_ceil(lanes) * 3 / 2 < groups * outputs.div_ceil(lanes)
}

impl<'a, T: Number> Call<'a, T> {
    /// Creates the implementation of a non-empty plan, and its chunks.
    fn new(
        plan: &'a ConvolutionPlan,
        (input, kernel, output): (*const T, *const T, *mut T),
        threads: usize,
    ) -> (Call<'a, T>, ConvolutionChunks) {
        let arch = Arch::new();
        let lanes = arch.dispatch(Lanes::<T>(PhantomData));
        let side_by_side = is_side_by_side(plan, lanes);
        let width = lanes * VECTORS;
        let in_line = plan.outputs.extent == 1 && plan.groups.input == 1 && plan.groups.extent.is_multiple_of(width);
        let direct = plan.reaches_no_padding() && (!side_by_side || in_line);
        let (groups, outputs) = match side_by_side {
            true => (1, plan.groups.extent * plan.outputs.extent),
            false => (plan.groups.extent, plan.outputs.extent),
        };
        let packed = if direct { 0 } else { plan.channels.extent * if side_by_side { width } else { 1 } };
        let chunks = ConvolutionChunks::new(plan, threads, (groups, outputs, width, packed));
        (Call { plan, input, kernel, output, arch, lanes, order: memory_order(plan), side_by_side, direct }, chunks)
    }

    /// # Safety
    /// The call's pointers must point to arrays of the plan's shapes. No other code may access the chunk's results.
    unsafe fn chunk(&self, chunk: &ConvolutionChunk) {
        let whole = Slab::whole(self.plan);
        let packed = if self.direct { 0 } else { view::packed_size(self.plan, chunk, &whole) };
        let bytes = packed.saturating_mul(self.element_width() * size_of::<T>());
        let slabs = whole.cut(&self.order, bytes.div_ceil(INPUT_BYTES).max(self.plan.k().div_ceil(PRODUCTS)));
        for (number, slab) in slabs.iter().enumerate() {
            let view = self.view(chunk, slab);
            // SAFETY: guaranteed by the caller.
            unsafe { self.slab(chunk, &view, number > 0) };
        }
    }

    fn view(&self, chunk: &ConvolutionChunk, slab: &Slab) -> View {
        match self.direct {
            true => View::direct(self.plan, &self.order, chunk, slab),
            false => View::packed(self.plan, &self.order, chunk, slab, self.element_width()),
        }
    }

    /// Returns the number of values of an element of the packed input.
    fn element_width(&self) -> usize {
        if self.side_by_side { self.lanes * VECTORS } else { 1 }
    }

    /// # Safety
    /// The requirements of [`Call::chunk`]; the view must belong to the chunk.
    unsafe fn slab(&self, chunk: &ConvolutionChunk, view: &View, adds: bool) {
        let width = self.lanes * VECTORS;
        let panels = KernelPanel::all(view, (KERNEL_BYTES / size_of::<T>() / width).max(1));
        let rows = panels.iter().map(|panel| panel.rows.len()).max().unwrap_or(0);
        let packed = if self.direct { 0 } else { pack::size(&view.packed) * self.element_width() };
        with_memory((rows * width + packed) * size_of::<T>(), |memory| {
            let kernel = memory.cast::<T>();
            // SAFETY: the memory has room for `rows` rows of the kernel and for the packed input after them; the rest
            // is guaranteed by the caller.
            unsafe {
                let room = kernel.add(rows * width);
                let first = self.input.add(chunk.group * self.plan.groups.input + view.first);
                if !self.direct && !self.side_by_side {
                    pack::pack(first, &view.packed, T::ZERO, room);
                }
                for start in chunk.outputs.clone().step_by(width) {
                    let outputs = start..(start + width).min(chunk.outputs.end);
                    let input = match (self.direct, self.side_by_side) {
                        (true, true) => first.add(outputs.start),
                        (true, false) => first,
                        (false, true) => {
                            self.pack_groups(view, &outputs, room);
                            room.cast_const()
                        }
                        (false, false) => room.cast_const(),
                    };
                    for (number, panel) in panels.iter().enumerate() {
                        let adds = adds || number > 0;
                        self.block(chunk.group, outputs.clone(), (view, panel), (input, kernel), adds);
                    }
                }
            }
        });
    }

    /// Packs the input of adjacent groups, with one lane for each of `outputs`.
    ///
    /// # Safety
    /// The requirements of [`Call::chunk`]; `room` must have space for the packed array.
    unsafe fn pack_groups(&self, view: &View, outputs: &Range<usize>, room: *mut T) {
        let source = |lane: usize| {
            let output = outputs.start + lane;
            let group = output / self.plan.outputs.extent;
            if output < outputs.end { group * self.plan.groups.input } else { pack::HOLE }
        };
        let mut axes = view.packed.clone();
        axes.push((0..self.lanes * VECTORS).map(source).collect());
        // SAFETY: guaranteed by the caller.
        unsafe { pack::pack(self.input, &axes, T::ZERO, room) };
    }

    /// Adds the products of a panel for one block of channels to all positions.
    ///
    /// # Safety
    /// The requirements of [`Call::chunk`]; the view's offsets must be relative to `input`, and `kernel` must have
    /// space for the panel.
    unsafe fn block(
        &self,
        group: usize,
        outputs: Range<usize>,
        (view, panel): (&View, &KernelPanel),
        (input, kernel): (*const T, *mut T),
        adds: bool,
    ) {
        let plan = self.plan;
        let channels = outputs.len();
        let width = if channels <= self.lanes { self.lanes } else { self.lanes * VECTORS };
        // SAFETY: the block's channels of the kernel and of the result exist, as do the panel's rows.
        unsafe {
            let from = self.kernel.add(group * plan.groups.kernel + outputs.start * plan.outputs.kernel);
            pack_rows(from, &view.kernel[panel.rows.clone()], (channels, plan.outputs.kernel), width, kernel);
            let output = self.output.add(group * plan.groups.output + outputs.start * plan.outputs.output);
            macro_rules! tiles {
                ($side_by_side:literal) => {
                    Tiles::<T, $side_by_side> {
                        places: &view.places,
                        runs: &panel.runs,
                        step: view.step,
                        input,
                        kernel,
                        width,
                        output,
                        channels,
                        channel_step: plan.outputs.output,
                        adds,
                    }
                    .run(self.arch)
                };
            }
            if self.side_by_side { tiles!(true) } else { tiles!(false) }
        }
    }
}

/// Packs rows of the kernel: `channels` values with stride `step`, zero-padded to `width`.
///
/// # Safety
/// These values must exist at `kernel` plus each row's offset; `packed` must have space for all rows.
unsafe fn pack_rows<T: Number>(
    kernel: *const T,
    rows: &[usize],
    (channels, step): (usize, usize),
    width: usize,
    packed: *mut T,
) {
    // SAFETY: guaranteed by the caller: `i * width + channel` is inside `packed`.
    unsafe {
        for channel in channels..width {
            (0..rows.len()).for_each(|i| packed.add(i * width + channel).write(T::ZERO));
        }
        if step == 1 {
            for (i, &row) in rows.iter().enumerate() {
                std::ptr::copy_nonoverlapping(kernel.add(row), packed.add(i * width), channels);
            }
            return;
        }
        for channel in 0..channels {
            let from = kernel.add(channel * step);
            for (i, &row) in rows.iter().enumerate() {
                packed.add(i * width + channel).write(*from.add(row));
            }
        }
    }
}

/// Runs whose kernel rows are packed together.
struct KernelPanel {
    runs: Vec<tile::Run>,
    rows: Range<usize>,
}

impl KernelPanel {
    /// Splits the runs of a view into panels of up to `most` rows; long runs are cut.
    fn all(view: &View, most: usize) -> Vec<KernelPanel> {
        let mut panels: Vec<KernelPanel> = Vec::new();
        let mut row = 0;
        for run in &view.runs {
            let length = run.length.div_ceil(run.length.div_ceil(most).max(1)).max(1);
            for start in (0..run.length).step_by(length) {
                let length = length.min(run.length - start);
                let part = tile::Run { offset: run.offset + start * view.step, length };
                match panels.last_mut() {
                    Some(panel) if panel.rows.len() + length <= most => {
                        panel.runs.push(part);
                        panel.rows.end += length;
                    }
                    _ => panels.push(KernelPanel { runs: vec![part], rows: row..row + length }),
                }
                row += length;
            }
        }
        panels
    }
}
