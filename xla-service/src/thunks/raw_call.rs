//! In-place custom calls and collectives: operands and results are slices of the memory of the program's thunks.
#![expect(unsafe_code, reason = "one call reads and writes disjoint parts of the same allocations")]

use std::ops::Range;
use std::ptr::NonNull;

use xla_hlo::ops::{CallState, CustomCallContext, RawCall, RawCustomCall, RawOperand, RawResult};
use xla_hlo::{Error, Result, Shape};

use super::{ArraySlice, ExecutionBuffers, Thunk};
use crate::collective::{Source, Target};
use crate::executable::ExecutionContext;
use crate::host::HostMemory;

/// Array or token of a custom call.
pub(super) struct Leaf {
    /// Shape; for an array with its layout in memory.
    shape: Shape,
    /// Address in host memory, not yet borrowed; dangling for tokens.
    start: *mut u8,
    bytes: usize,
}

/// Operands and results of a custom call in host memory.
pub(super) struct InPlace {
    /// Leaves of the operands.
    pub operands: Vec<Leaf>,
    /// Leaves of the results.
    pub results: Vec<Leaf>,
    /// Pairs of an operand and the result that aliases it.
    pub aliases: Vec<(usize, usize)>,
}

impl Leaf {
    /// Returns the leaves of shapes whose arrays have these slices; `None` if one is not in host memory.
    pub fn of(shapes: &[&Shape], arrays: &[ArraySlice], buffers: &ExecutionBuffers) -> Result<Option<Vec<Leaf>>> {
        let mut arrays = arrays.iter();
        let mut leaves = Vec::new();
        for (_, shape) in shapes.iter().flat_map(|shape| shape.leaves()) {
            match shape.as_array().and_then(|_| arrays.next()) {
                Some(array) => match Leaf::array(array, buffers)? {
                    Some(leaf) => leaves.push(leaf),
                    None => return Ok(None),
                },
                None => leaves.push(Leaf { shape: shape.clone(), start: std::ptr::dangling_mut(), bytes: 0 }),
            }
        }
        Ok(Some(leaves))
    }

    fn array(array: &ArraySlice, buffers: &ExecutionBuffers) -> Result<Option<Leaf>> {
        let (slice, memory) = (array.slice, buffers.memory(array.slice.allocation)?);
        let Ok(host) = memory.downcast::<HostMemory>() else { return Ok(None) };
        let bytes = array.shape.byte_size();
        if slice.offset.checked_add(bytes).is_none_or(|end| end > memory.byte_size()) {
            return Err(Error::internal(format!("an array {} is outside of its allocation", array.shape)));
        }
        // SAFETY: the allocation has at least `offset + bytes` bytes (checked above), so the offset is inside of it.
        let start = unsafe { host.as_ptr().add(slice.offset) };
        Ok(Some(Leaf { shape: Shape::Array(array.shape.clone()), start, bytes }))
    }

    /// Returns the shape; for an array with its layout in memory.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    fn range(&self) -> Range<usize> {
        self.start.addr()..self.start.addr() + self.bytes
    }

    fn overlaps(&self, other: &Leaf) -> bool {
        let (a, b) = (self.range(), other.range());
        a.start < b.end && b.start < a.end
    }
}

/// Executes a custom call on the memory of its operands and results, which are leaves of the thunk in `buffers`.
pub(super) fn execute_in_place(
    thunk: &Thunk,
    context: &ExecutionContext<'_>,
    buffers: &mut ExecutionBuffers,
    InPlace { operands, results, aliases: aliased }: &InPlace,
    (handler, call, state): (&dyn RawCustomCall, CustomCallContext<'_>, &CallState),
) -> Result<()> {
    // `memory_mut` fails for shared memory, so the results have no other readers.
    thunk.results.iter().try_for_each(|array| buffers.memory_mut(array.slice.allocation).map(drop))?;
    check_disjoint(thunk, operands, results)?;
    let mut aliases = vec![None; operands.len()];
    for &(operand, result) in aliased {
        if let (Some(from), Some(to)) = (operands.get(operand), results.get(result))
            && from.bytes == to.bytes
        {
            // SAFETY: both locations are valid for `from.bytes` bytes, which equals `to.bytes`, and do not overlap;
            // neither has been borrowed yet.
            unsafe { std::ptr::copy_nonoverlapping(from.start, to.start, from.bytes) };
            aliases[operand] = Some(result);
        }
    }
    let mut inputs = Vec::with_capacity(operands.len());
    for (leaf, &alias) in operands.iter().zip(&aliases) {
        let (start, bytes) = if alias.is_some() { (std::ptr::dangling_mut(), 0) } else { (leaf.start, leaf.bytes) };
        // SAFETY: the memory is initialised and lives in `buffers`, which is borrowed here, and no result overlaps it
        // (`check_disjoint`).
        let bytes = unsafe { std::slice::from_raw_parts(start, bytes) };
        inputs.push(RawOperand { shape: &leaf.shape, bytes, alias });
    }
    let mut outputs = Vec::with_capacity(results.len());
    for leaf in results {
        // SAFETY: as above, and the results own their memory (`memory_mut`), each location once (`check_disjoint`).
        let bytes = unsafe { std::slice::from_raw_parts_mut(leaf.start, leaf.bytes) };
        outputs.push(RawResult { shape: &leaf.shape, bytes });
    }
    handler.execute(&mut RawCall {
        context: call,
        state,
        device: context.executor.description().ordinal,
        operands: inputs,
        results: outputs,
    })
}

/// Returns the memory of a collective's operands and results; `None` if an array is not in host memory.
///
/// The communicator checks which of them overlap, before it accesses them.
pub(super) fn regions<'b>(
    operands: &[ArraySlice],
    results: &[ArraySlice],
    buffers: &'b mut ExecutionBuffers,
) -> Result<Option<(Vec<Source<'b>>, Vec<Target<'b>>)>> {
    // `memory_mut` fails for shared memory, so the results have no other readers.
    results.iter().try_for_each(|array| buffers.memory_mut(array.slice.allocation).map(drop))?;
    let leaves = |arrays: &[ArraySlice]| -> Result<Option<Vec<Leaf>>> {
        arrays.iter().map(|array| Leaf::array(array, buffers)).collect()
    };
    let Some((operands, results)) = leaves(operands)?.zip(leaves(results)?) else { return Ok(None) };
    let start = |leaf: &Leaf| NonNull::new(leaf.start).unwrap_or(NonNull::dangling());
    // SAFETY: the memory is initialised and lives in `buffers`, which is borrowed for `'b`. Only results are written
    // in that time, and `CollectiveCall::check` refuses an overlap that is not permitted.
    let source = |leaf: &Leaf| unsafe { Source::from_raw(start(leaf), leaf.bytes) };
    // SAFETY: as above, and the results own their memory (`memory_mut`).
    let target = |leaf: &Leaf| unsafe { Target::from_raw(start(leaf), leaf.bytes) };
    Ok(Some((operands.iter().map(source).collect(), results.iter().map(target).collect())))
}

/// Returns an error if a result overlaps another result or an operand.
fn check_disjoint(thunk: &Thunk, operands: &[Leaf], results: &[Leaf]) -> Result<()> {
    for (i, result) in results.iter().enumerate() {
        if results[..i].iter().chain(operands).any(|other| other.overlaps(result)) {
            return Err(Error::internal(format!("operands and results of %{} overlap in memory", thunk.name)));
        }
    }
    Ok(())
}
