//! Convolutions: sums of products of the input where it is, or of a packed part of it, with packed parts of the kernel.
//!
//! Nothing is multiplied out in memory (no "im2col"): the inner loop (`tile`) walks the input by offsets, a few
//! positions of the window times a few vectors of output channels at once. A chunk of work packs the part of the input
//! it needs only where there is padding or holes, and the part of the kernel that its channels need, a cacheful at a
//! time.
//!
//! In groups of few channels, as in depthwise convolutions, vectors hold channels of several groups side by side.
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

/// Element types that are multiplied here; for others there is a pass.
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
    /// The type for an element type, if it is one of these.
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

/// A plan as numbers that generated code can carry, the element first.
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

/// Bytes of a packed part of the kernel, which stays in the first cache while positions go by.
const KERNEL_BYTES: usize = 24 << 10;
/// Bytes of a packed part of the input, roughly: what the second cache holds.
const INPUT_BYTES: usize = 512 << 10;

/// Number of products looked at together, whose places in the kernel are listed.
const PRODUCTS: usize = 16 << 10;

/// Numbers that a vector of this machine holds.
struct Lanes<T>(PhantomData<T>);

impl<T: Number> WithSimd for Lanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        lanes::<T, S>()
    }
}

/// A convolution as its chunks see it.
struct Call<'a, T> {
    plan: &'a ConvolutionPlan,
    input: *const T,
    kernel: *const T,
    output: *mut T,
    arch: Arch,
    /// Numbers in a vector.
    lanes: usize,
    order: Vec<Role>,
    /// Whether vectors hold channels of several groups.
    side_by_side: bool,
    /// Whether the input can be read as it is.
    direct: bool,
}

// SAFETY: the pointers are into buffers that live until the convolution is done; chunks of it write to disjoint
// results.
unsafe impl<T> Sync for Call<'_, T> {}

/// # Safety
/// `buffers` are three pointers to arrays of the plan's shapes; nobody else uses the third.
unsafe fn convolve<T: Number>(plan: &ConvolutionPlan, buffers: *const *mut u8, threads: usize) {
    // SAFETY: the caller's promise.
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

/// Whether vectors of channels of several groups have fewer lanes without work; their factors take a load each.
fn is_side_by_side(plan: &ConvolutionPlan, lanes: usize) -> bool {
    let (groups, outputs) = (plan.groups.extent, plan.outputs.extent);
    groups > 1 && (groups * outputs).div_ceil(lanes) * 3 / 2 < groups * outputs.div_ceil(lanes)
}

impl<'a, T: Number> Call<'a, T> {
    /// Implementation of a plan with work to do, and its chunks.
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
    /// The call's pointers are to arrays of the plan's shapes, and nobody else uses the chunk's results.
    unsafe fn chunk(&self, chunk: &ConvolutionChunk) {
        let whole = Slab::whole(self.plan);
        let packed = if self.direct { 0 } else { view::packed_size(self.plan, chunk, &whole) };
        let bytes = packed.saturating_mul(self.element_width() * size_of::<T>());
        let slabs = whole.cut(&self.order, bytes.div_ceil(INPUT_BYTES).max(self.plan.k().div_ceil(PRODUCTS)));
        for (number, slab) in slabs.iter().enumerate() {
            let view = self.view(chunk, slab);
            // SAFETY: the caller's promise.
            unsafe { self.slab(chunk, &view, number > 0) };
        }
    }

    fn view(&self, chunk: &ConvolutionChunk, slab: &Slab) -> View {
        match self.direct {
            true => View::direct(self.plan, &self.order, chunk, slab),
            false => View::packed(self.plan, &self.order, chunk, slab, self.element_width()),
        }
    }

    /// Numbers of an element of the packed input.
    fn element_width(&self) -> usize {
        if self.side_by_side { self.lanes * VECTORS } else { 1 }
    }

    /// # Safety
    /// As for [`Call::chunk`]; the view is of the chunk.
    unsafe fn slab(&self, chunk: &ConvolutionChunk, view: &View, adds: bool) {
        let width = self.lanes * VECTORS;
        let panels = KernelPanel::all(view, (KERNEL_BYTES / size_of::<T>() / width).max(1));
        let rows = panels.iter().map(|panel| panel.rows.len()).max().unwrap_or(0);
        let packed = if self.direct { 0 } else { pack::size(&view.packed) * self.element_width() };
        with_memory((rows * width + packed) * size_of::<T>(), |memory| {
            let kernel = memory.cast::<T>();
            // SAFETY: the memory has room for `rows` rows of the kernel and for the packed input after them; the rest
            // is the caller's promise.
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

    /// Packs the input of groups side by side, an element for each of `outputs`.
    ///
    /// # Safety
    /// As for [`Call::chunk`]; there is room for the packed array at `room`.
    unsafe fn pack_groups(&self, view: &View, outputs: &Range<usize>, room: *mut T) {
        let source = |lane: usize| {
            let output = outputs.start + lane;
            let group = output / self.plan.outputs.extent;
            if output < outputs.end { group * self.plan.groups.input } else { pack::HOLE }
        };
        let mut axes = view.packed.clone();
        axes.push((0..self.lanes * VECTORS).map(source).collect());
        // SAFETY: the caller's promise.
        unsafe { pack::pack(self.input, &axes, T::ZERO, room) };
    }

    /// Adds the products of a panel for one block of channels to all positions.
    ///
    /// # Safety As for [`Call::chunk`]; The view's offsets count from `input`, and there is room for the panel at
    /// `kernel`.
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

/// Packs rows of the kernel: `channels` numbers `step` apart, filled up with zeros to `width`.
///
/// # Safety
/// Those numbers exist at `kernel` plus each row's offset; there is room for all rows at `packed`.
unsafe fn pack_rows<T: Number>(
    kernel: *const T,
    rows: &[usize],
    (channels, step): (usize, usize),
    width: usize,
    packed: *mut T,
) {
    // SAFETY: the caller's promise: `i * width + channel` is inside of the room.
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

/// Runs whose rows of the kernel are packed together.
struct KernelPanel {
    runs: Vec<tile::Run>,
    rows: Range<usize>,
}

impl KernelPanel {
    /// The runs of a view, cut where they are long, in panels of up to `most` rows.
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
