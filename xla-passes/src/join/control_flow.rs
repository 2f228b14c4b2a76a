//! Control flow around collectives: all lanes run it together.

use std::rc::Rc;

use xla_hlo::ops::{BinaryOp, CompareDirection, Conditional, Parameter, While};
use xla_hlo::{CompId, Computation, ElementType, Error, InstrId, Result, Shape};

use super::lanes::{Lanes, Value};
use super::rewrite::Rewriter;
use crate::rewrite::builder::Inserter;

impl Rewriter<'_> {
    /// Emits a loop that runs as long as any lane continues. Lanes that are done keep their state. If the loop counts
    /// to a constant, all lanes run the same number of iterations.
    pub(super) fn while_loop(&mut self, at: CompId, op: &While, operands: &[Value], is_counted: bool) -> Result<Value> {
        let [init] = operands else { return Err(Error::internal("while has no state operand")) };
        let lanes = &init.lanes;
        let may_differ = lanes.devices.len() > 1 && !is_counted;
        if may_differ && self.effects.contains(&op.body) {
            return Err(Error::unimplemented(
                "a loop around collectives has side effects, and its trip count may differ between devices",
            ));
        }
        let start = self.together(at, init)?;
        let shape = self.target[at][start].shape().clone();

        let (condition, states) = self.begin("condition", &shape, lanes)?;
        let wanted = self.write(condition, op.condition, &[states], lanes)?;
        let mut inside = Inserter::new(&mut self.target, condition);
        let mut any = wanted.ids[0];
        for &next in wanted.ids[1..].iter().filter(|_| may_differ && !wanted.is_same()) {
            any = inside.binary(BinaryOp::Or, any, next)?;
        }
        self.target.computation_mut(condition).set_root(any);

        let (body, states) = self.begin("body", &shape, lanes)?;
        let mut next = self.write(body, op.body, std::slice::from_ref(&states), lanes)?;
        if may_differ {
            let wanted = self.write(body, op.condition, std::slice::from_ref(&states), lanes)?;
            if !wanted.is_same() {
                let mut inside = Inserter::new(&mut self.target, body);
                let rows = wanted.ids.iter().zip(next.ids).zip(&states.ids);
                let ids = rows.map(|((&wants, new), &old)| chosen(&mut inside, wants, new, old));
                next = Value { ids: ids.collect::<Result<_>>()?, lanes: lanes.clone() };
            }
        }
        let root = self.together(body, &next)?;
        self.target.computation_mut(body).set_root(root);

        let end = Inserter::new(&mut self.target, at).add_as(While { condition, body }, shape, [start])?;
        self.apart(at, end, lanes)
    }

    /// Emits a branch that all lanes take together. If lanes may differ, emits all branches, and each lane selects its
    /// own result.
    pub(super) fn conditional(&mut self, at: CompId, op: &Conditional, operands: &[Value]) -> Result<Value> {
        let [index, operands @ ..] = operands else { return Err(Error::internal("conditional has no operands")) };
        let lanes = operands.iter().chain([index]).map(|value| &value.lanes).max_by_key(|lanes| lanes.devices.len());
        let lanes = lanes.unwrap_or(&index.lanes).clone();
        if !index.is_same() {
            return self.all_branches(at, op, index, operands, &lanes);
        }
        let mut row = vec![index.ids[0]];
        let mut branches = Vec::with_capacity(op.branches.len());
        for (&branch, operand) in op.branches.iter().zip(operands) {
            let operand = self.together(at, operand)?;
            let shape = self.target[at][operand].shape().clone();
            row.push(operand);
            let (computation, values) = self.begin("branch", &shape, &lanes)?;
            let result = self.write(computation, branch, &[values], &lanes)?;
            let root = self.together(computation, &result)?;
            self.target.computation_mut(computation).set_root(root);
            branches.push(computation);
        }
        let op = Conditional { branches, by_predicate: op.by_predicate };
        let result = Inserter::new(&mut self.target, at).add(op, row)?;
        self.apart(at, result, &lanes)
    }

    fn all_branches(
        &mut self,
        at: CompId,
        op: &Conditional,
        index: &Value,
        operands: &[Value],
        lanes: &Rc<Lanes>,
    ) -> Result<Value> {
        if op.branches.iter().any(|branch| self.effects.contains(branch)) {
            return Err(Error::unimplemented(
                "a branch around collectives has side effects, and the selector may differ between devices",
            ));
        }
        let mut results = Vec::with_capacity(op.branches.len());
        for (&branch, operand) in op.branches.iter().zip(operands) {
            results.push(self.write(at, branch, std::slice::from_ref(operand), lanes)?);
        }
        let mut inside = Inserter::new(&mut self.target, at);
        let mut ids = Vec::with_capacity(lanes.devices.len());
        for lane in 0..lanes.devices.len() {
            let own = index.ids[lane];
            // An index out of range selects the last branch; `false` is branch 1.
            let last = results.len() - 1;
            let mut value = results[last].ids[lane];
            for (number, result) in results[..last].iter().enumerate() {
                let is_it = match inside.element_type(own)? {
                    ElementType::Pred => own,
                    ty => {
                        let number = inside.integer(ty, number as i64)?;
                        inside.compare(CompareDirection::Eq, own, number)?
                    }
                };
                value = chosen(&mut inside, is_it, result.ids[lane], value)?;
            }
            ids.push(value);
        }
        Ok(Value { ids, lanes: lanes.clone() })
    }

    /// Adds a computation with one parameter, which holds the values of all lanes.
    fn begin(&mut self, name: &str, shape: &Shape, lanes: &Rc<Lanes>) -> Result<(CompId, Value)> {
        let id = self.target.add(Computation::new(name));
        let parameter = Inserter::new(&mut self.target, id).add_as(Parameter { number: 0 }, shape.clone(), [])?;
        let values = self.apart(id, parameter, lanes)?;
        Ok((id, values))
    }

    /// Packs the values of all lanes into one value: a tuple if there are several.
    fn together(&mut self, at: CompId, value: &Value) -> Result<InstrId> {
        match value.ids[..] {
            [one] => Ok(one),
            _ => Inserter::new(&mut self.target, at).tuple(&value.ids),
        }
    }

    /// Unpacks the values of all lanes from one value.
    fn apart(&mut self, at: CompId, id: InstrId, lanes: &Rc<Lanes>) -> Result<Value> {
        if lanes.devices.len() == 1 {
            return Ok(Value::same(id, lanes));
        }
        let mut at = Inserter::new(&mut self.target, at);
        let ids = (0..lanes.devices.len()).map(|lane| at.get(id, lane)).collect::<Result<_>>()?;
        Ok(Value { ids, lanes: lanes.clone() })
    }
}

/// Selects `new` if the predicate holds, and `old` otherwise, array by array. Tokens are always the new ones, to keep
/// the order.
fn chosen(at: &mut Inserter<'_>, wants: InstrId, new: InstrId, old: InstrId) -> Result<InstrId> {
    if new == old {
        return Ok(new);
    }
    match at.shape(new).clone() {
        Shape::Array(array) => {
            let wants = at.broadcast(wants, array.dims(), &[])?;
            at.select(wants, new, old)
        }
        Shape::Tuple(elements) => {
            let element = |index: usize| {
                let (new, old) = (at.get(new, index)?, at.get(old, index)?);
                chosen(at, wants, new, old)
            };
            let elements = (0..elements.len()).map(element).collect::<Result<Vec<_>>>()?;
            at.tuple(&elements)
        }
        Shape::Token => Ok(new),
        other => Err(Error::unimplemented(format!("a loop around collectives cannot carry values of shape {other}"))),
    }
}
