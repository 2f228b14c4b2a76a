//! Constant tables of a kernel's pointers, for loops over many arrays whose code is equal.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use crate::fused::emitter::FusedEmitter;
use crate::lanes::{Lanes, Scalar};

/// Table with a row for each iteration of a loop: the numbers of some of the kernel's pointers, and other numbers.
pub(crate) struct PointerTable<'ctx> {
    /// The kernel's pointers.
    array: PointerValue<'ctx>,
    /// The words of all rows in constant memory; `None` if there is one row.
    memory: Option<PointerValue<'ctx>>,
    /// Words of the first row.
    first: Vec<u64>,
}

impl<'ctx> PointerTable<'ctx> {
    /// Adds a table to the function that is being emitted. Each row has the numbers of `pointers` pointers, and then
    /// other words. `name` identifies the table in the function.
    pub fn new(s: &FusedEmitter<'_, 'ctx, '_>, name: &str, mut rows: Vec<Vec<u64>>, pointers: usize) -> Result<Self> {
        let function = s.current_block()?.get_parent();
        let parameter = function.and_then(|function| function.get_first_param());
        let (Some(function), Some(BasicValueEnum::PointerValue(array))) = (function, parameter) else {
            return Err(Error::internal("a kernel lacks its pointers"));
        };
        let bytes = u64::from(s.emitter.target().pointer_bytes());
        rows.iter_mut().flat_map(|row| &mut row[..pointers]).for_each(|number| *number *= bytes);
        let name = format!("{}.{name}", function.get_name().to_string_lossy());
        let memory = (rows.len() > 1).then(|| s.emitter.constant_table(&name, &rows.concat()));
        Ok(PointerTable { array, memory, first: rows.into_iter().next().unwrap_or_default() })
    }

    /// Loads a word of a row.
    pub fn word<'e>(&self, s: &FusedEmitter<'e, 'ctx, '_>, row: Lanes<'e, 'ctx>, column: usize) -> Lanes<'e, 'ctx> {
        match self.memory {
            Some(memory) => {
                let at = row * self.first.len() as i64 + column as i64;
                s.emitter.load_lanes(memory, at, Scalar::Int(64), 1, None)
            }
            None => s.number(self.first[column] as i64),
        }
    }

    /// Loads the pointer whose number is in a row.
    pub fn pointer<'e>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        row: Lanes<'e, 'ctx>,
        column: usize,
    ) -> Result<PointerValue<'ctx>> {
        s.emitter.load_pointer_at(self.array, self.word(s, row, column))
    }
}
