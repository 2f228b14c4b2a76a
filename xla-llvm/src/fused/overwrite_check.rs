//! Check of kernels that store results over their inputs: they must return the same bits as a run in separate memory.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use xla_hlo::{ArrayShape, ElementKind, Error, Literal, Result, Scalar};

use super::analysis::FusedKernel;
use super::kernel::Kernel;
use super::source::{KernelSource, Overwrite};
use crate::jit::LoadedCode;

/// Maximum bytes of the arrays of a checked kernel.
const MOST_BYTES: usize = 1 << 24;
/// Maximum number of elementary operations of a checked kernel.
const MOST_WORK: f64 = 1e8;

/// Number of calls that one run is split into, if work items run in reverse order.
const CALLS: u64 = 64;

/// `void kernel(ptr pointers, i64 begin, i64 end)`.
type Function = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// Block of memory with the alignment of vectors.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]);

/// Memory of one array.
#[derive(Clone)]
struct Memory {
    lines: Vec<Line>,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize) -> Memory {
        Memory { lines: vec![Line([0x5a; 64]); bytes.div_ceil(64).max(1)], bytes }
    }

    fn holding(bytes: &[u8]) -> Memory {
        let mut memory = Memory::new(bytes.len());
        for (line, piece) in memory.lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..piece.len()].copy_from_slice(piece);
        }
        memory
    }

    fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.lines.iter().flat_map(|line| line.0).take(self.bytes)
    }

    fn pointer(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}

/// Runs a kernel with results that overwrite its inputs, as the program launches it, and with results in separate
/// memory.
///
/// Both runs execute the same code on the same generated inputs, so all results must be equal bit for bit. They differ
/// if the code reads an input that it has already overwritten. A third run executes the work items in reverse order,
/// which detects work items that read elements that others store. Kernels without such results, and those that take
/// much memory or time, pass unchecked.
///
/// The machine must be able to execute the code.
///
/// Fails with `Internal`, naming the kernel and the result, if bits differ.
pub fn check_overwrites(
    source: &KernelSource<'_>,
    overwrites: &[Overwrite],
    kernel: &Kernel,
    code: &LoadedCode,
) -> Result<()> {
    if overwrites.is_empty() || kernel.work_items == 0 || kernel.work > MOST_WORK {
        return Ok(());
    }
    let shapes = Shapes::of(source)?;
    if shapes.byte_size() + kernel.scratch_bytes as usize > MOST_BYTES {
        return Ok(());
    }
    let address = code.address(&kernel.name)?;
    // SAFETY: `Frame::open` declares every kernel for a CPU with this signature.
    let function = unsafe { std::mem::transmute::<*const c_void, Function>(address) };
    let inputs = shapes.inputs.iter().enumerate().map(|(number, shape)| generated(shape, number));
    let inputs: Vec<Memory> = inputs.collect::<Result<_>>()?;
    let run = |overwrites: &[Overwrite], reversed| shapes.run(function, kernel, inputs.clone(), overwrites, reversed);
    let separate = run(&[], false);
    for reversed in [false, true] {
        let shared = run(overwrites, reversed);
        let differs = |(separate, shared): (&Memory, &Memory)| !separate.bytes().eq(shared.bytes());
        if let Some(result) = separate.iter().zip(&shared).position(differs) {
            return Err(wrong(source, overwrites, kernel, (result, reversed)));
        }
    }
    Ok(())
}

fn wrong(
    source: &KernelSource<'_>,
    overwrites: &[Overwrite],
    kernel: &Kernel,
    (result, reversed): (usize, bool),
) -> Error {
    let graph = &source.module[source.computation];
    let order = if reversed { " when work items run in reverse order" } else { "" };
    let over: Vec<String> =
        overwrites.iter().map(|o| format!("result {} over input {} ({:?})", o.result, o.input, o.order)).collect();
    Error::internal(format!(
        "kernel {} of {} reads an input after it was overwritten: result {result} differs{order} ({}; {})",
        kernel.name,
        graph.name(),
        over.join(", "),
        kernel.strategy
    ))
}

/// Shapes of a kernel's arrays.
struct Shapes {
    inputs: Vec<ArrayShape>,
    results: Vec<ArrayShape>,
}

impl Shapes {
    fn of(source: &KernelSource<'_>) -> Result<Shapes> {
        let graph = &source.module[source.computation];
        let inputs = source.inputs.iter().map(|&id| graph[id].shape().expect_array().cloned());
        let results = FusedKernel::new(source)?.outputs.into_iter().map(|output| output.shape).collect();
        Ok(Shapes { inputs: inputs.collect::<Result<_>>()?, results })
    }

    fn byte_size(&self) -> usize {
        self.inputs.iter().chain(&self.results).map(ArrayShape::byte_size).fold(0, usize::saturating_add)
    }

    /// Runs the kernel and returns its results; the ones in `overwrites` use the memory of inputs.
    fn run(
        &self,
        function: Function,
        kernel: &Kernel,
        mut inputs: Vec<Memory>,
        overwrites: &[Overwrite],
        reversed: bool,
    ) -> Vec<Memory> {
        let mut results: Vec<Memory> = self.results.iter().map(|shape| Memory::new(shape.byte_size())).collect();
        let mut scratch = Memory::new(kernel.scratch_bytes as usize);
        let mut pointers: Vec<*mut u8> = inputs.iter_mut().map(Memory::pointer).collect();
        pointers.extend(results.iter_mut().map(Memory::pointer));
        for overwrite in overwrites {
            pointers[inputs.len() + overwrite.result] = pointers[overwrite.input];
        }
        pointers.push(scratch.pointer());
        let items = kernel.work_items as i64;
        let step = if reversed { kernel.work_items.div_ceil(CALLS) as i64 } else { items };
        let starts: Vec<i64> = (0..items).step_by(step as usize).collect();
        for &start in starts.iter().rev() {
            // SAFETY: the pointers are those of arrays of the kernel's shapes and of scratch memory, in the order of
            // the kernel's parameters, and they live until the end of this function. An input and a result that share
            // memory have equal sizes.
            unsafe { function(pointers.as_ptr(), start, (start + step).min(items)) };
        }
        for overwrite in overwrites {
            results[overwrite.result] = inputs[overwrite.input].clone();
        }
        results
    }
}

/// Returns elements for an input that differ by `number`: moderate floats, small integers, both truth values.
fn generated(shape: &ArrayShape, number: usize) -> Result<Memory> {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let ty = shape.element_type();
    let literal = Literal::from_fn(shape, |i| {
        let mixed = ((i as u64) << 8 | number as u64).wrapping_mul(ODD);
        let bits = (mixed ^ mixed >> 29).wrapping_mul(ODD) >> 32;
        let unit = bits as f64 / f64::from(u32::MAX) * 2.0 - 1.0;
        match ty.kind() {
            ElementKind::Pred => Scalar::from_i64(ty, (bits & 1) as i64),
            ElementKind::Float => Scalar::Float(unit).rounded(ty),
            ElementKind::Complex => Scalar::Complex(unit, -unit * 0.5).rounded(ty),
            ElementKind::Signed | ElementKind::Unsigned => Scalar::from_i64(ty, (bits % 97) as i64),
        }
    })?;
    Ok(Memory::holding(literal.bytes()))
}
