//! Scalar computations (combiners, mapped functions), inlined at their uses.

use std::collections::HashMap;

use xla_hlo::ops::{Family, Op};
use xla_hlo::{CompId, Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::emitter::FusedEmitter;

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Inlines a computation of scalars, lane by lane, and returns its results.
    pub(crate) fn call(&self, computation: CompId, arguments: &[Value<'e, 'ctx>]) -> Result<Vec<Value<'e, 'ctx>>> {
        let graph = &self.module[computation];
        let width = arguments.iter().map(|a| a.width()).max().unwrap_or(1);
        let mut values: HashMap<InstrId, Vec<Value<'e, 'ctx>>> = HashMap::new();
        for id in graph.post_order() {
            let instruction = &graph[id];
            let operands: Vec<Vec<Value<'e, 'ctx>>> =
                instruction.operands().iter().map(|o| values.get(o).cloned().unwrap_or_default()).collect();
            let arg = |i: usize| -> Result<Value<'e, 'ctx>> {
                let value = operands.get(i).and_then(|v| v.first()).copied();
                value.ok_or_else(|| Error::internal(format!("%{} lacks an operand", instruction.name())))
            };
            let e = self.emitter;
            let result = match instruction.op() {
                Op::Parameter(p) => match arguments.get(p.number) {
                    // A parameter accepts narrower elements.
                    Some(&argument) => {
                        let ty = instruction.shape().expect_array()?.element_type();
                        vec![elemental::convert(e, argument, ty)?.splat(width)]
                    }
                    None => {
                        return Err(Error::internal(format!(
                            "computation {} is called with too few arguments",
                            graph.name()
                        )));
                    }
                },
                Op::Constant(c) => {
                    let ty = c.literal.array_shape().element_type();
                    vec![elemental::constant(e, ty, c.literal.get(0)).splat(width)]
                }
                op if op.opcode().family() == Family::Elementwise => {
                    let operands = (0..operands.len()).map(arg).collect::<Result<Vec<_>>>()?;
                    vec![elemental::operation(e, op, &operands, instruction.shape().expect_array()?.element_type())?]
                }
                Op::Tuple(_) => operands.into_iter().flatten().collect(),
                Op::GetTupleElement(gte) => {
                    let value = operands.first().and_then(|v| v.get(gte.index)).copied();
                    vec![value.ok_or_else(|| {
                        Error::internal(format!(
                            "%{} selects tuple element {}, which does not exist",
                            instruction.name(),
                            gte.index
                        ))
                    })?]
                }
                Op::Copy(_)
                | Op::Reshape(_)
                | Op::Bitcast(_)
                | Op::Broadcast(_)
                | Op::OptBarrier(_)
                | Op::Transpose(_) => operands.into_iter().next().unwrap_or_default(),
                Op::Call(c) => self.call(c.computation, &flattened(operands))?,
                Op::Map(m) => self.call(m.computation, &flattened(operands))?,
                Op::Fusion(f) => self.call(f.computation, &flattened(operands))?,
                other => {
                    return Err(Error::internal(format!(
                        "%{} ({}) is not an operation on scalars",
                        instruction.name(),
                        other.opcode()
                    )));
                }
            };
            values.insert(id, result);
        }
        Ok(values.remove(&graph.root()).unwrap_or_default())
    }
}

fn flattened<T>(operands: Vec<Vec<T>>) -> Vec<T> {
    operands.into_iter().flatten().collect()
}
