//! Sorts of rows, and selections of their best elements: rows are processed sequentially, as items in scratch memory.
//!
//! ```text
//! items.rs   items: integers that represent elements, and their order
//!   radix.rs     radix sort by digits of keys: long rows
//!   merge.rs     merge sort by comparison: short rows, and comparators that are not a key
//!   heap.rs      selection of a few best of many
//! ```
//!
//! All methods are stable. For any results of a comparator, they terminate and lose no item.

mod heap;
mod items;
mod merge;
mod radix;

use std::collections::BTreeMap;
use std::fmt;

use xla_hlo::ops::Op;
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::Frame;
use crate::fused::loops::pointer_table::PointerTable;
use crate::fused::tuning::FEW_OPERANDS;
use crate::fused::tuning::row_sort::{FEW_ITEMS, FEW_OF};
use crate::lanes::Lanes;
use items::{Array, ItemKind, Items, Order};
use xla_passes::analysis::element_order::{Key, key_of_comparator};

/// Sort of rows, or selection of their best elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowSort {
    method: Method,
    /// Number of rows.
    rows: u64,
    /// Number of elements of a row.
    length: u64,
    /// Stride between elements of a row, in elements.
    step: u64,
    /// Number of elements of a row of the results.
    wanted: u64,
    order: Order,
    items: ItemKind,
}

/// Method of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Merge,
    Radix,
    Heap,
}

impl RowSort {
    /// Returns the strategy's name as printed in dumps.
    pub fn name(&self) -> &'static str {
        match self.method {
            Method::Merge => "merge-sort",
            Method::Radix => "radix-sort",
            Method::Heap => "heap-select",
        }
    }
}

/// Prints for example `32 x 1000, elements of 32 bits`: rows, elements of each (`10 of 1000` if only the best are
/// wanted), items.
impl fmt::Display for RowSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x ", self.rows)?;
        if self.wanted < self.length {
            write!(f, "{} of ", self.wanted)?;
        }
        write!(f, "{}, {}", self.length, self.items)
    }
}

impl FusedKernel<'_, '_> {
    /// Returns the strategy of a kernel whose root is a sort or a top-k.
    pub(crate) fn row_sort(&self) -> Result<RowSort> {
        let (graph, root) = (self.graph(), &self.graph()[self.source.root]);
        let shape = |&id: &InstrId| graph[id].shape().expect_array();
        let first = root.operands().first();
        let first = shape(first.ok_or_else(|| Error::internal(format!("%{} has no operand", root.name())))?)?;
        let last = first.rank().saturating_sub(1);
        let (dimension, order, wanted) = match root.op() {
            Op::Sort(op) => {
                let order = match key_of_comparator(self.source.module, op.computation) {
                    Some((array, key)) => Order::Key { array, key },
                    None => Order::Comparator(op.computation),
                };
                (op.dimension, order, None)
            }
            Op::TopK(op) => {
                let key = Key::total_order(first.element_type());
                let key = key.ok_or_else(|| {
                    Error::internal(format!("top-k %{} selects complex numbers, which have no order", root.name()))
                })?;
                let key = if op.largest { key.reversed() } else { key };
                (last, Order::Key { array: 0, key }, Some(op.k as u64))
            }
            _ => return Err(Error::internal(format!("%{} is neither a sort nor a top-k", root.name()))),
        };
        let size = |dims: &[usize]| dims.iter().map(|&d| d as u64).product::<u64>();
        let length = first.dims()[dimension] as u64;
        let key_array = if let Order::Key { array, .. } = order { shape(&root.operand(array))? } else { first };
        let items = ItemKind::new(order, key_array, root.operands().len() == 1 && wanted.is_none(), length);
        Ok(RowSort {
            method: match order {
                Order::Key { .. } if wanted.is_some_and(|k| k * FEW_OF < length) => Method::Heap,
                Order::Key { .. } if length >= FEW_ITEMS => Method::Radix,
                Order::Key { .. } | Order::Comparator(_) => Method::Merge,
            },
            rows: first.element_count() as u64 / length.max(1),
            length,
            step: size(&first.dims()[dimension + 1..]),
            wanted: wanted.unwrap_or(length),
            order,
            items,
        })
    }

    /// Emits the function's body and returns the number of work items, which are rows.
    ///
    /// Calls must not run concurrently, since they share scratch memory.
    pub(crate) fn emit_row_sort<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
        sort: &RowSort,
    ) -> Result<u64> {
        let operands = self.graph()[self.source.root].operands();
        let shapes = operands.iter().map(|&id| self.graph()[id].shape().expect_array()).collect::<Result<Vec<_>>>()?;
        let results: Vec<&ArrayShape> = self.outputs.iter().map(|output| &output.shape).collect();
        let arrays = shapes.into_iter().chain(results).zip(&frame.pointers);
        let mut arrays: Vec<Array<'ctx>> = arrays.map(|(shape, &base)| Array::new(base, shape)).collect();
        let results = arrays.split_off(operands.len());
        let count = if sort.method == Method::Heap { sort.wanted } else { 2 * sort.length };
        if emitter.target().simt().is_some() {
            return Err(Error::internal("a row sort is emitted for a target with threads"));
        }
        let memory = emitter.scratch_array(sort.items.scalar(), count)?;
        let counts = match sort.method {
            Method::Radix => Some(radix::Counts::new(emitter, sort.items.key_bits(), sort.length)?),
            Method::Merge | Method::Heap => None,
        };
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        fused.for_work_items(frame.work_items, sort.rows, &mut |s, row| {
            let row = s.number_of(&AffineExpr::symbol(row))?;
            let row = s.lanes_of(row);
            let items = Items {
                order: sort.order,
                kind: sort.items,
                operands: &operands_of_row(sort, &arrays, row),
                memory,
                count: sort.length as i64,
                compared: sort.compared(self.source.module, operands.len()),
            };
            let here = match (sort.method, &counts) {
                (Method::Heap, _) => {
                    heap::select(s, &items, sort.wanted as i64)?;
                    s.number(0)
                }
                (Method::Radix, Some(counts)) => radix::sort(s, &items, counts)?,
                (Method::Radix | Method::Merge, _) => merge::sort(s, &items),
            };
            match operands.len() {
                0..=FEW_OPERANDS => sort.write(s, &items, here, (&results, row)),
                _ => sort.write_by_array(s, &items, here, (&results, row))?,
            }
            Ok(())
        })?;
        Ok(sort.rows)
    }
}

/// Returns the arrays' lines of elements that form a row.
fn operands_of_row<'e, 'ctx>(
    sort: &RowSort,
    arrays: &[Array<'ctx>],
    row: Lanes<'e, 'ctx>,
) -> Vec<items::Line<'e, 'ctx>> {
    let first = sort.first(row, sort.length);
    arrays.iter().map(|&array| items::Line { array, first, step: sort.step as i64 }).collect()
}

impl RowSort {
    /// Returns the position of the first element of a row, in an array with rows of `length` elements.
    fn first<'e, 'ctx>(&self, row: Lanes<'e, 'ctx>, length: u64) -> Lanes<'e, 'ctx> {
        let (length, step) = (length as i64, self.step as i64);
        match (self.rows, step) {
            (1, _) => row.int(0),
            (_, 1) => row * length,
            (rows, _) if rows == self.step => row,
            _ => {
                // 32-bit processors call a function for wider divisions.
                let bits = if self.rows < 1 << 31 { 32 } else { 64 };
                let outer = row.trunc_to(bits).udiv(step).zext(64);
                outer * (length * step) + (row - outer * step)
            }
        }
    }

    /// Returns whether the comparator reads each array; empty if there is no comparator.
    fn compared(&self, module: &xla_hlo::Module, arrays: usize) -> Vec<bool> {
        match self.order {
            Order::Comparator(comparator) => xla_passes::analysis::element_order::compared(module, comparator, arrays),
            Order::Key { .. } => Vec::new(),
        }
    }

    /// Stores a row of many results sequentially: loops over the arrays of each type. The code of all loads and
    /// stores in one loop would take the scheduler quadratic time.
    fn write_by_array<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        items: &Items<'_, 'e, 'ctx>,
        here: Lanes<'e, 'ctx>,
        (results, row): (&[Array<'ctx>], Lanes<'e, 'ctx>),
    ) -> Result<()> {
        let first = self.first(row, self.wanted);
        let mut numbers: BTreeMap<ElementType, Vec<Vec<u64>>> = BTreeMap::new();
        for (number, result) in results.iter().enumerate() {
            numbers.entry(result.ty).or_default().push(vec![number as u64, (number + results.len()) as u64]);
        }
        for (ty, rows) in numbers {
            let count = rows.len() as u64;
            let table = PointerTable::new(s, &format!("arrays.{ty}"), rows, 2)?;
            let arrays = s.full_range(count, 1);
            s.for_each(arrays, Vec::new(), &mut |s, number, _| {
                let number = s.uniform_value(number)?;
                let [operand, result] = [table.pointer(s, number, 0)?, table.pointer(s, number, 1)?]
                    .map(|base| items::Line { array: Array { base, ty }, first, step: self.step as i64 });
                s.emitter.each([s.number(0), s.number(self.wanted as i64)], 1, |i| {
                    if let Some(place) = items.place(items.get(s.emitter, here + i)) {
                        result.store(s.emitter, i, operand.load(s.emitter, place));
                    }
                });
                Ok(Vec::new())
            })?;
        }
        Ok(())
    }

    /// Stores a row of the results from the items that begin at `here`.
    fn write<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        items: &Items<'_, 'e, 'ctx>,
        here: Lanes<'e, 'ctx>,
        (results, row): (&[Array<'ctx>], Lanes<'e, 'ctx>),
    ) {
        let first = self.first(row, self.wanted);
        let line = |&array: &Array<'ctx>| items::Line { array, first, step: self.step as i64 };
        let results: Vec<items::Line<'e, 'ctx>> = results.iter().map(line).collect();
        s.emitter.each([s.number(0), s.number(self.wanted as i64)], 1, |i| {
            let item = items.get(s.emitter, here + i);
            let Some(place) = items.place(item) else {
                results.iter().for_each(|result| result.store(s.emitter, i, item));
                return;
            };
            for (operand, result) in items.operands.iter().zip(&results) {
                result.store(s.emitter, i, operand.load(s.emitter, place));
            }
            // Top-k has an additional result: the places.
            if let Some(places) = results.get(items.operands.len()) {
                places.store(s.emitter, i, place.trunc(places.array.bits()));
            }
        });
    }
}
