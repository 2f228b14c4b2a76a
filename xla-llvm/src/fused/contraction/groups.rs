//! Groups of K: steps that one 32-bit lane multiplies at once, by the dot-product instructions of a target.
//!
//! `vpdpbusd` multiplies unsigned by signed integers, and `sdot` signed ones. If a target has no instruction for the
//! operands' signedness, the rows are offset by 128, which inverts their highest bits, and the sums of the columns
//! times 128 are subtracted from the results.

use xla_hlo::{Computation, ElementType, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::axes::Axis;
use crate::fused::contraction::matmul::Matmul;
use crate::lanes::Lanes;
use crate::target::Target;

/// Minimum number of lanes of the instructions.
pub(crate) const LEAST_LANES: u64 = 4;

/// Dot-product instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DotInstruction {
    /// `vdpbf16ps`: pairs of bf16.
    Bf16,
    /// `vpdpbusd`, `sdot` and the like: groups of four 8-bit integers.
    Bytes {
        /// Whether rows and columns are signed.
        signed: [bool; 2],
        /// Whether rows are offset by 128, which changes their signedness.
        offset: bool,
    },
}

impl DotInstruction {
    /// Returns the instruction for the operands and sums of a GEMM, if the target has one. Code may flush subnormals if
    /// `flush_denormals` is set.
    pub fn of(matmul: &Matmul<'_>, target: &Target, flush_denormals: bool) -> Option<DotInstruction> {
        let dots = target.abilities().dots;
        let types = matmul.exact_types;
        match matmul.accumulator_type {
            ElementType::F32 => {
                let is_allowed = flush_denormals && matmul.allows_bf16_products();
                (dots.bf16 && is_allowed).then_some(DotInstruction::Bf16)
            }
            ElementType::S32 | ElementType::U32 => {
                let is_byte = |ty| [ElementType::S8, ElementType::U8].contains(ty);
                let signed = types.map(|ty| ty == ElementType::S8);
                let has = |equal: bool| if equal { dots.bytes.equal } else { dots.bytes.mixed };
                let equal = signed[0] == signed[1];
                let is_usable = types.iter().all(is_byte) && (has(equal) || has(!equal));
                is_usable.then_some(DotInstruction::Bytes { signed, offset: !has(equal) })
            }
            _ => None,
        }
    }

    /// Returns the number of K steps in a group.
    pub fn size(self) -> u64 {
        match self {
            DotInstruction::Bf16 => 2,
            DotInstruction::Bytes { .. } => 4,
        }
    }

    /// Returns the element type of rows (`which` is 0) or columns (1) in a group.
    fn element_type(self, which: usize) -> ElementType {
        match self {
            DotInstruction::Bf16 => ElementType::BF16,
            DotInstruction::Bytes { signed, .. } if signed[which] => ElementType::S8,
            DotInstruction::Bytes { .. } => ElementType::U8,
        }
    }

    /// Whether rows are offset by 128.
    pub fn offsets_rows(self) -> bool {
        matches!(self, DotInstruction::Bytes { offset: true, .. })
    }

    /// Adds the products of groups to sums.
    pub fn add<'e, 'ctx>(
        self,
        total: Value<'e, 'ctx>,
        row: Lanes<'e, 'ctx>,
        column: Lanes<'e, 'ctx>,
    ) -> Value<'e, 'ctx> {
        let (ty, lanes, row) = (total.element_type(), total.lanes(), row.splat(total.width()));
        let sums = match self {
            DotInstruction::Bf16 => lanes.add_bf16_products(row, column),
            DotInstruction::Bytes { signed: [rows, columns], offset } => {
                lanes.add_byte_products([row, column], [rows != offset, columns])
            }
        };
        Value::new(ty, sums)
    }

    /// Adds the offset of the rows, -128 or 128, times the sum of each column's group to totals.
    pub fn add_offset<'e, 'ctx>(self, total: Value<'e, 'ctx>, column: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        self.add(total, self.row_offset(column), column)
    }

    /// Returns groups of the offset of the rows, with the lanes of `column`.
    pub fn row_offset<'e, 'ctx>(self, column: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        column.int(OFFSET)
    }

    /// Returns an operand's elements as groups: joins neighbouring lanes.
    pub fn joined<'e, 'ctx>(self, which: usize, elements: Value<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let lanes = self.stored(which, elements)?.joined(self.size() as u32);
        Ok(self.offset(which, lanes))
    }

    /// Returns an operand's elements as groups: element `i` of each group is from `elements[i]`; missing ones are 0.
    pub fn combined<'e, 'ctx>(self, which: usize, elements: &[Value<'e, 'ctx>]) -> Result<Option<Lanes<'e, 'ctx>>> {
        let mut group: Option<Lanes<'e, 'ctx>> = None;
        for (number, &element) in (0..).zip(elements) {
            let lanes = self.stored(which, element)?;
            let bits = i64::from(lanes.scalar().bits());
            let wide = lanes.zext(32);
            group = Some(match group {
                Some(group) => group | (wide << (number * bits)),
                None => wide,
            });
        }
        Ok(group.map(|group| self.offset(which, group)))
    }

    fn stored<'e, 'ctx>(self, which: usize, value: Value<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        if self == DotInstruction::Bf16 && value.element_type() == ElementType::F32 {
            return Ok(value.lanes().x86_bf16_bits());
        }
        // Integers of a wider type are in the range of the narrow one.
        Ok(elemental::convert(value.lanes().emitter(), value, self.element_type(which))?.stored_lanes())
    }

    fn offset<'e, 'ctx>(self, which: usize, groups: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if which == 0 && self.offsets_rows() { groups ^ OFFSET } else { groups }
    }
}

/// Whether kernels compute a dot or convolution by a dot-product instruction of the target; `flush_denormals` as in
/// [`EmitOptions`](crate::emitter::EmitOptions).
pub fn has_dot_instruction(graph: &Computation, id: InstrId, target: &Target, flush_denormals: bool) -> bool {
    let instruction = Matmul::new(graph, id).and_then(|matmul| DotInstruction::of(&matmul, target, flush_denormals));
    instruction.is_some()
}

/// Highest bit of each byte of a group: four times 128, or -128 as signed integers.
const OFFSET: i64 = 0x8080_8080;

/// Grouping of K. Steps of a tile are groups, which are formed in the innermost loop over K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    pub instruction: DotInstruction,
    /// Number of elements of the innermost loop over K; the last group is filled with zeros.
    pub extent: u64,
}

impl Groups {
    /// Returns the number of elements of a group.
    pub fn size(self) -> u64 {
        self.instruction.size()
    }

    /// Returns the number of full groups of the innermost loop.
    pub fn full(self) -> u64 {
        self.extent / self.size()
    }

    /// Returns the number of elements of the last group, if it is not full.
    pub fn rest(self) -> u64 {
        self.extent % self.size()
    }

    /// Returns the loops over K in groups.
    pub fn axis(self, elements: &Axis) -> Axis {
        elements.part(elements.extent.div_ceil(self.size()))
    }
}

/// Returns the type of packed rows and columns: groups, or elements converted to the accumulator type.
pub(crate) fn packed_type(groups: Option<Groups>, matmul: &Matmul<'_>) -> ElementType {
    if groups.is_some() { ElementType::S32 } else { matmul.accumulator_type }
}
