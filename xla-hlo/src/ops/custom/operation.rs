//! Custom calls that are equivalent to an HLO operation, or to the identity on one device.

use super::CustomCall;
use crate::ops::{CompareDirection, Op, OpRules, ShapeContext, TopK};
use crate::sdy::target;
use crate::{CompId, Error, Module, Result, Shape};

/// Targets that specify the memory or the layout of values. They return their operands, on any number of devices.
const PLACEMENTS: [&str; 4] = ["MoveToHost", "MoveToDevice", "annotate_device_placement", "LayoutConstraint"];

/// Targets that specify the sharding of values. On one device they return their operands.
const IDENTITIES: [&str; 8] = [
    target::CONSTRAINT,
    target::FULL_TO_SHARD,
    target::SHARD_TO_FULL,
    target::FUNCTION_RESULT,
    target::GLOBAL_TO_LOCAL,
    target::LOCAL_TO_GLOBAL,
    target::BARRIER,
    target::DATA_FLOW_EDGE,
];

/// Operation equivalent to a custom call without a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomCallOperation {
    /// Returns its operand, or its operands as a tuple. A declared side effect only concerns partitioners.
    Identity,
    /// Returns the empty tuple. A declared side effect only concerns partitioners.
    Nothing,
    /// Returns the greatest or least elements of the rows of its only operand.
    TopK(TopK),
}

impl CustomCall {
    /// Returns the operation that the target is equivalent to, for operands and a written result of these shapes.
    /// `None` for targets that need a handler. Targets with an operation never use a handler, not even a registered
    /// one.
    ///
    /// Fails with [`Error::Unimplemented`] if the target requires several devices, and with [`Error::InvalidArgument`]
    /// if the operands or the result do not match the target.
    pub fn operation(
        &self,
        module: &Module,
        operands: &[&Shape],
        result: &Shape,
    ) -> Result<Option<CustomCallOperation>> {
        let found = if PLACEMENTS.contains(&&*self.target) {
            CustomCallOperation::Identity
        } else if IDENTITIES.contains(&&*self.target) {
            module.expect_one_device(&format!("custom call {:?}", self.target))?;
            CustomCallOperation::Identity
        } else if self.target == target::GROUP {
            module.expect_one_device(&format!("custom call {:?}", self.target))?;
            CustomCallOperation::Nothing
        } else if self.target == "TopK" {
            CustomCallOperation::TopK(self.top_k(module, result)?)
        } else {
            return Ok(None);
        };
        let named = |error: Error| error.context(format!("custom call {:?}", self.target));
        // The boundary of a manual computation passes any number of values.
        let takes_any = [target::GLOBAL_TO_LOCAL, target::LOCAL_TO_GLOBAL].contains(&&*self.target);
        if operands.len() != 1 && !takes_any {
            return Err(named(Error::invalid_argument(format!("it takes one operand, not {}", operands.len()))));
        }
        let expected = match (&found, operands) {
            (CustomCallOperation::Identity, &[operand]) => operand.clone(),
            (CustomCallOperation::Identity, operands) => Shape::Tuple(operands.iter().copied().cloned().collect()),
            (CustomCallOperation::Nothing, _) => Shape::Tuple(Vec::new()),
            (CustomCallOperation::TopK(op), operands) => {
                op.infer_shape(&ShapeContext::new(module, operands, None)).map_err(named)?
            }
        };
        if expected.compatible(result) {
            return Ok(Some(found));
        }
        let (expected, written) = (expected.without_layout(), result.without_layout());
        Err(named(Error::invalid_argument(format!("it has shape {expected} on one device, not {written}"))))
    }

    /// Converts the custom call `TopK`. `k` follows from the shape of the result, the order from the computation, if
    /// any.
    fn top_k(&self, module: &Module, result: &Shape) -> Result<TopK> {
        let values = result.as_tuple().and_then(|parts| parts.first()).and_then(Shape::as_array);
        let k = values.and_then(|values| values.dims().last().copied()).unwrap_or(0);
        let largest = match self.computations[..] {
            [] => true,
            [comparator] => is_descending(module, comparator)?,
            _ => return Err(Error::invalid_argument("custom call \"TopK\" has more than one computation")),
        };
        Ok(TopK { k, largest, is_stable: false })
    }
}

/// Whether a comparator of parameters 0 and 1 sorts in descending order. Fails for other comparators.
fn is_descending(module: &Module, comparator: CompId) -> Result<bool> {
    let computation = &module[comparator];
    let root = computation.root_if_set().map(|root| &computation[root]);
    let parameter = |i: usize| match root.map(|root| computation[root.operand(i)].op()) {
        Some(Op::Parameter(parameter)) => Some(parameter.number),
        _ => None,
    };
    if let Some(Op::Compare(compare)) = root.map(|root| root.op()) {
        match (compare.direction, parameter(0), parameter(1)) {
            (CompareDirection::Gt, Some(0), Some(1)) | (CompareDirection::Lt, Some(1), Some(0)) => return Ok(true),
            (CompareDirection::Lt, Some(0), Some(1)) | (CompareDirection::Gt, Some(1), Some(0)) => return Ok(false),
            _ => {}
        }
    }
    Err(Error::unimplemented(format!(
        "custom call \"TopK\" uses the computation {}, which is not a comparison of parameters 0 and 1 by GT or LT",
        computation.name()
    )))
}
