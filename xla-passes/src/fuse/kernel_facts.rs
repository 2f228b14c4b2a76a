//! Facts about kernels for output fusion: loop dimensions, resource needs, and operands read at the loop's index.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Computation, InstrId, Instruction, Module, Op, Shape};

use super::access::{ElementAccess, accesses, is_elementwise};
use super::rules;
use crate::TargetProfile;
use crate::analysis::kernel_needs::Needs;
use crate::rewrite::graph;

/// Caches facts about the kernels of one program, each computed once.
///
/// Entries stay valid: passes do not edit the body of a kernel, and a merged kernel is a new instruction with a new id.
#[derive(Default)]
pub(super) struct KernelFacts {
    loops: Cache<Option<Rc<[usize]>>>,
    needs: Cache<Needs>,
    in_place: Cache<Rc<[bool]>>,
}

/// A fact for each instruction.
struct Cache<T>(RefCell<HashMap<InstrId, T>>);

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache(RefCell::default())
    }
}

impl<T: Clone> Cache<T> {
    fn get(&self, id: InstrId, compute: impl FnOnce() -> T) -> T {
        self.0.borrow_mut().entry(id).or_insert_with(compute).clone()
    }
}

impl KernelFacts {
    /// Returns the loop dimensions of an elementwise kernel; `None` for other instructions.
    pub(super) fn loop_dims(
        &self,
        module: &Module,
        program: CompId,
        id: InstrId,
        profile: &TargetProfile,
    ) -> Option<Rc<[usize]>> {
        let instruction = module[program].get(id).filter(|instruction| graph::is_free(instruction))?;
        self.loops.get(id, || {
            let plain = match instruction.op() {
                Op::Fusion(fusion) => {
                    fusion.aliases.is_empty() && reduces_at_loop(&module[fusion.computation], profile)
                }
                op => is_elementwise(op),
            };
            if !plain {
                return None;
            }
            let leaves = instruction.shape().leaves();
            let mut outputs = leaves.iter().map(|(_, s)| s.as_array().map(|a| a.dims()));
            let first = outputs.next()??;
            outputs.all(|o| o == Some(first)).then(|| first.into())
        })
    }

    /// Returns the resource needs of a kernel.
    pub(super) fn needs(&self, module: &Module, program: CompId, id: InstrId) -> Needs {
        self.needs.get(id, || Needs::of(module, &module[program], id))
    }

    /// Whether a kernel reads an operand only at the index of the current loop iteration.
    pub(super) fn reads_in_place(&self, module: &Module, program: CompId, kernel: InstrId, operand: InstrId) -> bool {
        let graph = &module[program];
        let in_place = self.in_place.get(kernel, || operands_in_place(module, graph, kernel));
        in_place_everywhere(&graph[kernel], &in_place, operand)
    }
}

/// Whether a kernel reads an operand only at the index of the current loop iteration.
pub(super) fn reads_in_place(module: &Module, graph: &Computation, kernel: InstrId, operand: InstrId) -> bool {
    in_place_everywhere(&graph[kernel], &operands_in_place(module, graph, kernel), operand)
}

fn in_place_everywhere(kernel: &Instruction, in_place: &[bool], operand: InstrId) -> bool {
    kernel.operands().iter().zip(in_place).all(|(&o, &in_place)| o != operand || in_place)
}

/// Returns for each operand of a kernel whether the kernel reads it only at the index of the current loop iteration.
fn operands_in_place(module: &Module, graph: &Computation, kernel: InstrId) -> Rc<[bool]> {
    let instruction = &graph[kernel];
    let Op::Fusion(fusion) = instruction.op() else {
        return instruction.operands().iter().map(|&o| graph[o].shape().compatible(instruction.shape())).collect();
    };
    let body = &module[fusion.computation];
    let accesses = accesses(body);
    body.parameters().iter().map(|&p| accesses[p].iter().all(ElementAccess::is_loop_index)).collect()
}

/// Whether a kernel computes each element independently.
pub(super) fn reduces_nothing(body: &Computation) -> bool {
    body.iter().all(|(_, i)| is_of_elements(i.op()))
}

fn is_of_elements(op: &Op) -> bool {
    op.call_context() == CallContext::None && !matches!(op, Op::Dot(_) | Op::Convolution(_))
}

/// Whether a kernel has no reductions, or only reductions that run once, for the element of the current loop iteration.
fn reduces_at_loop(body: &Computation, profile: &TargetProfile) -> bool {
    let reductions: Vec<InstrId> = body.ids().filter(|&id| matches!(body[id].op(), Op::Reduce(_))).collect();
    if reductions.is_empty() || !body.ids().all(|id| reductions.contains(&id) || is_of_elements(body[id].op())) {
        return reduces_nothing(body);
    }
    let accesses = accesses(body);
    let small = body.result_shape().byte_size() <= profile.l1_bytes;
    reductions.into_iter().all(|id| {
        rules::reads_in_order(body, id, profile)
            && (rules::is_long_reduction(body, id) || small)
            && matches!(body[id].shape(), Shape::Array(_))
            && rules::reduces_once(body, body.root(), id, &accesses[id])
    })
}
