//! Custom calls: attributes, rules, and the handlers that evaluate them.
//!
//! A call is implemented by a [`CustomCallHandler`], which is looked up by the call's target in a
//! [`CustomCallRegistry`]. The caller that runs a program passes the registry as an ordinary value. Some targets that
//! frameworks emit are built in.

mod attributes;
mod builtin;
mod call;
mod context;
mod ffi;
mod handler;
mod on_memory;
mod operation;
mod proto;
mod raw;
mod registry;
mod run_context;
mod shape;
mod sharding;
mod states;

pub use call::{CustomCall, CustomCallApi, CustomCallSchedule, DimLabels, PaddingType};
pub use context::{CallState, CustomCallContext};
pub use ffi::{FfiAttributes, FfiValue};
pub use handler::CustomCallHandler;
pub use on_memory::OnMemory;
pub use operation::CustomCallOperation;
pub use raw::{RawCall, RawCustomCall, RawOperand, RawResult};
pub use registry::CustomCallRegistry;
pub use run_context::RunContext;
pub use states::CallStates;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext, checks};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Error, Literal, Result, Shape};

impl ReadAttributes for CustomCall {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let one: Option<CompId> = r.optional("to_apply")?;
        let several: Option<Vec<CompId>> = r.optional("called_computations")?;
        if one.is_some() && several.is_some() {
            return Err(Error::invalid_argument("custom-call takes to_apply or called_computations, not both"));
        }
        Ok(CustomCall {
            target: r.required("custom_call_target")?,
            window: r.optional("window")?,
            dim_labels: r.optional("dim_labels")?,
            feature_group_count: r.optional("feature_group_count")?.unwrap_or(1),
            batch_group_count: r.optional("batch_group_count")?.unwrap_or(1),
            precision: r.optional("operand_precision")?.unwrap_or_default(),
            padding_type: r.optional("padding_type")?,
            operand_layouts: r.optional("operand_layout_constraints")?,
            has_side_effect: r.optional("custom_call_has_side_effect")?.unwrap_or(false),
            literal: r.optional("literal")?,
            aliases: r.optional("output_to_operand_aliasing")?.unwrap_or_default(),
            schedule: r.optional("schedule")?.unwrap_or_default(),
            api: r.optional("api_version")?.unwrap_or_default(),
            computations: several.unwrap_or_else(|| one.into_iter().collect()),
        })
    }
}

impl OpRules for CustomCall {
    fn opcode(&self) -> Opcode {
        Opcode::CustomCall
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::custom_call(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        attributes::write(self, w);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        let instruction =
            ev.instruction().ok_or_else(|| Error::internal("a custom call is evaluated outside of a computation"))?;
        let shapes: Vec<&Shape> = (0..operands.len()).filter_map(|i| ev.operand_shape(i)).collect();
        match self.operation(ev.module(), &shapes, instruction.shape())? {
            Some(CustomCallOperation::Identity) if operands.len() == 1 => {
                checks::operands(operands).map(|[operand]| operand)
            }
            Some(CustomCallOperation::Identity) => Ok(Literal::tuple(operands)),
            Some(CustomCallOperation::Nothing) => Ok(Literal::tuple(Vec::new())),
            Some(CustomCallOperation::TopK(op)) => op.evaluate(ev, operands, shape),
            None => ev.custom_calls().call(instruction, operands),
        }
    }

    fn called_computations(&self) -> Vec<CompId> {
        self.computations.clone()
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        self.computations.iter_mut().for_each(f);
    }
}
