//! Operand loops: a concatenation of many operands on a CPU, with a loop nest per kind of operand.
//!
//! Each operand is a part of the result that loops of its own compute, without a branch per element. Operands with
//! equal code share it: the code runs in a loop over a constant table of their pointers and of their offsets in the
//! result.

use std::collections::HashMap;
use std::fmt;

use xla_hlo::ops::Op;
use xla_hlo::{Error, InstrId, Result};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::address::strides_of;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::pointer_table::PointerTable;
use crate::fused::loops::range::Range;
use crate::fused::source::KernelSource;
use crate::fused::strategy::list::Chosen;
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::{CHUNK, FEW_OPERANDS, operand_loops};
use crate::fused::vector::loops::VectorLoops;
use crate::fused::vector::transpose::TileGrid;
use crate::lanes::Lanes;

/// Operands of a concatenation, grouped by their code.
pub(crate) struct OperandLoops {
    groups: Vec<Group>,
}

/// Operands with equal code.
struct Group {
    members: Vec<Member>,
    /// Loop nest of one member.
    nest: Chosen,
    /// Number of work items of the loop nest.
    nest_items: u64,
    /// Number of work items of one member: that of the loop nest, or 1.
    member_items: u64,
}

/// Operand that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    operand: InstrId,
    /// Numbers of the kernel's inputs that it is computed from.
    inputs: Vec<usize>,
    /// Offset of its first element in the result, in elements.
    offset: u64,
}

impl Group {
    fn work_items(&self) -> u64 {
        self.member_items * self.members.len() as u64
    }
}

/// Prints the number of loop nests, and of operands.
impl fmt::Display for OperandLoops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: usize = self.groups.iter().map(|group| group.members.len()).sum();
        write!(f, "{} for {operands} operands", self.groups.len())
    }
}

impl Strategy for OperandLoops {
    fn names() -> &'static [&'static str] {
        &["operand-loops"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<OperandLoops>> {
        choice.kernel.operand_loops(choice.emitter)
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_operand_loops(emitter, &frame, self).map(Launch::alone)
    }
}

/// Returns a loop nest with a vectorized innermost loop, which can compute every kernel on a CPU, and its number of
/// work items.
fn nest(choice: &Choice<'_, '_, '_, '_>) -> Result<(Chosen, u64)> {
    if let Some(grid) = TileGrid::choose(choice)? {
        let tiles = grid.tiles();
        return Ok((Chosen::new(grid), tiles));
    }
    let loops = VectorLoops::of(choice)?;
    let items = loops.work_items();
    Ok((Chosen::new(loops), items))
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the loops of a concatenation of many operands, which must be the only result; `None` for other kernels,
    /// and if the result consists of many short runs of different operands.
    pub(crate) fn operand_loops(&self, emitter: &Emitter<'_>) -> Result<Option<OperandLoops>> {
        let Some(members) = self.members()? else { return Ok(None) };
        let numbers = self.input_numbers();
        let mut known = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for (operand, offset) in members {
            let source = self.source.part(operand, &numbers);
            let group = *known.entry(source.key()).or_insert(groups.len());
            if group == groups.len() {
                let kernel = self.member_kernel(&source)?;
                let (nest, nest_items) = nest(&Choice::new(&kernel, emitter))?;
                let elements: usize = kernel.dims.iter().product();
                let member_items = if elements as u64 <= CHUNK { 1 } else { nest_items };
                groups.push(Group { members: Vec::new(), nest, nest_items, member_items });
            }
            let inputs = source.inputs.iter().map(|input| numbers[input]).collect();
            groups[group].members.push(Member { operand, inputs, offset });
        }
        Ok(Some(OperandLoops { groups }))
    }

    /// Returns the kernel of an operand, which stores it to its part of the result.
    fn member_kernel<'s>(&self, source: &'s KernelSource<'m>) -> Result<FusedKernel<'s, 'm>> {
        Ok(FusedKernel { container: Some(self.outputs[0].shape.clone()), ..FusedKernel::new(source)? })
    }

    /// Returns the non-empty operands of a concatenation, with the offsets of their first elements in the result;
    /// `None` if loops over each operand would be slower than a loop over the result.
    fn members(&self) -> Result<Option<Vec<(InstrId, u64)>>> {
        let (graph, root) = (self.graph(), self.source.root);
        let (Op::Concatenate(op), [output]) = (graph[root].op(), &self.outputs[..]) else { return Ok(None) };
        let stride = strides_of(&output.shape)[op.dimension] as u64;
        let (mut members, mut start) = (Vec::new(), 0);
        for &operand in graph[root].operands() {
            let size = graph[operand].shape().expect_array()?.dims()[op.dimension] as u64;
            if size > 0 {
                members.push((operand, start * stride));
            }
            start += size;
        }
        let (count, row) = (members.len() as u64, start * stride);
        let rows = output.shape.element_count() as u64 / row.max(1);
        let run_bytes = row * output.shape.element_type().byte_width() as u64 / count.max(1);
        let is_near = rows <= operand_loops::MOST_ROWS || run_bytes >= operand_loops::RUN_BYTES;
        let has_many = members.len() > FEW_OPERANDS;
        Ok((has_many && is_near && self.source.overwrites.is_empty()).then_some(members))
    }

    fn input_numbers(&self) -> HashMap<InstrId, usize> {
        // An operand with several positions has its address in each.
        self.source.inputs.iter().enumerate().map(|(number, &input)| (input, number)).collect()
    }

    /// Emits the function's body and returns the number of work items: all of group 0, then of group 1, and so on.
    pub(crate) fn emit_operand_loops<'ctx>(
        &self,
        emitter: &Emitter<'ctx>,
        frame: &Frame<'_, 'ctx>,
        loops: &OperandLoops,
    ) -> Result<u64> {
        let WorkItems::Range { begin, end } = frame.work_items else {
            return Err(Error::internal("operands of a concatenation are not computed by threads"));
        };
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        let numbers = self.input_numbers();
        let result = frame.pointers[self.source.inputs.len()];
        let mut first = 0;
        for (number, group) in loops.groups.iter().enumerate() {
            let count = group.work_items() as i64;
            // The items of this call that belong to the group.
            let [start, end] = [begin, end].map(|item| (item - first).smax(0).smin(count));
            let range = Range { start, end, extent: Some(count as u64), width: 1, step: 1, whole: true };
            let source = self.source.part(group.members[0].operand, &numbers);
            let kernel = self.member_kernel(&source)?;
            let inputs = source.inputs.len();
            let rows = group.rows(self.outputs[0].shape.element_type().byte_width());
            let table = PointerTable::new(&fused, &format!("operands.{number}"), rows, inputs)?;
            fused.for_each(range, Vec::new(), &mut |s, item, _| {
                let (member, work_items) = group.member(s, s.uniform_value(item)?);
                let mut pointers = (0..inputs).map(|i| table.pointer(s, member, i)).collect::<Result<Vec<_>>>()?;
                let offset = table.word(s, member, inputs);
                pointers.push(emitter.byte_address(result, offset)?);
                emitter.with_scratch(|| group.nest.emit(&kernel, emitter, Frame { pointers, work_items }))?;
                Ok(Vec::new())
            })?;
            first += count;
        }
        Ok(first as u64)
    }
}

impl Group {
    /// Returns the number of the member of a work item, and the items of its loop nest.
    fn member<'e, 'ctx>(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        item: Lanes<'e, 'ctx>,
    ) -> (Lanes<'e, 'ctx>, WorkItems<'e, 'ctx>) {
        match self.member_items as i64 {
            1 => (item, WorkItems::Range { begin: s.number(0), end: s.number(self.nest_items as i64) }),
            items => {
                let begin = item.urem(items);
                (item.udiv(items), WorkItems::Range { begin, end: begin + 1 })
            }
        }
    }

    /// Returns the numbers of the pointers of each member, and the offset of its part of the result in bytes.
    fn rows(&self, byte_width: usize) -> Vec<Vec<u64>> {
        let row = |member: &Member| {
            let inputs = member.inputs.iter().map(|&input| input as u64);
            inputs.chain([member.offset * byte_width as u64]).collect()
        };
        self.members.iter().map(row).collect()
    }
}
