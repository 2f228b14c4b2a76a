//! Transposes of square blocks in registers.

use super::{Lanes, Scalar};

/// Bits of the units that registers consist of: shuffles within a unit take fewer cycles than shuffles across units.
const UNIT_BITS: u32 = 128;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Transposes a square block in registers: returns the columns of `rows`. The number of rows equals the number of
    /// elements in each, a power of two; an element is `parts` lanes.
    ///
    /// A row consists of units of `per_unit` elements. The first steps interleave elements of two rows within each
    /// unit (`unpcklps` on x86), the others exchange units between rows.
    pub(crate) fn transposed(rows: Vec<Self>, parts: u32) -> Vec<Self> {
        let count = rows.len() as u32;
        let Some(&first) = rows.first() else { return rows };
        let per_unit = (UNIT_BITS / (first.scalar().bits() * parts)).clamp(1, count);
        let block = Block { count, parts, per_unit };
        let rows = block.transpose_units(rows);
        // The combiner of x86 searches all paths through a tree of shuffles, which takes milliseconds for four levels.
        let is_deep = count > per_unit && first.emitter.target().is_x86();
        let rows = if is_deep { rows.into_iter().map(Lanes::fenced).collect() } else { rows };
        block.exchange_units(rows)
    }

    /// `llvm.arithmetic.fence`: returns these lanes, in a form that LLVM's combiners do not look through. Costs no
    /// instruction. The lanes must have at least 32 bits in total.
    fn fenced(self) -> Self {
        let scalar = self.scalar();
        let lanes = (self.width() * scalar.bits()) / Scalar::F32.bits();
        let floats = self.emitter.lane_type(Scalar::F32, lanes);
        let builder = &self.emitter.builder;
        let own_type = self.raw.get_type();
        let bits = self.or_self(builder.build_bit_cast(self.raw, floats, ""));
        let fenced = self.emitter.intrinsic("llvm.arithmetic.fence", &[floats], &[bits.raw]);
        fenced.map_or(self, |raw| self.or_self(builder.build_bit_cast(raw, own_type, "")))
    }
}

/// Square block in registers.
#[derive(Clone, Copy)]
struct Block {
    /// Number of rows, and of elements in a row.
    count: u32,
    /// Number of lanes in an element.
    parts: u32,
    /// Number of elements in a unit.
    per_unit: u32,
}

impl Block {
    /// Transposes the blocks of `per_unit` rows and elements. Step `d` interleaves runs of `d` elements of two rows at
    /// distance `d`, so the columns of a unit result in bit-reversed order.
    fn transpose_units<'e, 'ctx>(self, mut rows: Vec<Lanes<'e, 'ctx>>) -> Vec<Lanes<'e, 'ctx>> {
        let steps = self.per_unit.ilog2();
        for step in 0..steps {
            let distance = 1 << step;
            rows = self.combine(&rows, distance, |half| {
                let units = (0..self.count).step_by(self.per_unit as usize);
                let starts = units.flat_map(|unit| {
                    let first = unit + half * self.per_unit / 2;
                    (first..first + self.per_unit / 2).step_by(distance as usize)
                });
                starts.collect()
            });
        }
        let reversed = |column: u32| if steps == 0 { 0 } else { column.reverse_bits() >> (u32::BITS - steps) };
        let place = |column: u32| column - column % self.per_unit + reversed(column % self.per_unit);
        (0..self.count).filter_map(|column| rows.get(place(column) as usize).copied()).collect()
    }

    /// Transposes the units: step `d` exchanges runs of `d` elements between two rows at distance `d`.
    fn exchange_units<'e, 'ctx>(self, mut rows: Vec<Lanes<'e, 'ctx>>) -> Vec<Lanes<'e, 'ctx>> {
        let mut distance = self.per_unit;
        while distance < self.count {
            let starts = |half: u32| (half * distance..self.count).step_by(2 * distance as usize).collect();
            rows = self.combine(&rows, distance, starts);
            distance *= 2;
        }
        rows
    }

    /// Replaces each pair of rows at distance `distance` by two shuffles. Shuffle `half` concatenates `distance`
    /// elements of the first row and of the second row, from each element of `starts(half)` on.
    fn combine<'e, 'ctx>(
        self,
        rows: &[Lanes<'e, 'ctx>],
        distance: u32,
        starts: impl Fn(u32) -> Vec<u32>,
    ) -> Vec<Lanes<'e, 'ctx>> {
        let mask = |half: u32| -> Vec<u32> {
            let elements = starts(half).into_iter().flat_map(|start| [start, self.count + start]);
            let elements = elements.flat_map(|start| start..start + distance);
            elements.flat_map(|element| element * self.parts..(element + 1) * self.parts).collect()
        };
        let masks = [mask(0), mask(1)];
        let distance = distance as usize;
        let pair = |row: usize| {
            let half = usize::from(row & distance != 0);
            let first = row - half * distance;
            rows[first].shuffle(rows[first + distance], &masks[half])
        };
        (0..rows.len()).map(pair).collect()
    }
}
