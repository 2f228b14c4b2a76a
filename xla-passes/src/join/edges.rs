//! Borders of manual computations: global values in parts for each lane, and back.

use std::rc::Rc;

use xla_hlo::sdy::ManualEdge;
use xla_hlo::{CompId, Error, InstrId, Result};

use super::lanes::{ByHand, Lanes, Value};
use super::rewrite::Rewriter;
use crate::rewrite::builder::Inserter;

impl Rewriter<'_> {
    /// The parts that the lanes inside have of values of those around.
    pub(super) fn split(
        &mut self,
        at: CompId,
        edge: &ManualEdge,
        operands: &[Value],
        outer: &Rc<Lanes>,
    ) -> Result<Value> {
        let by_hand = ByHand::new(edge, &self.meshes)?;
        let lanes = by_hand.inside(outer)?;
        let inner = lanes.devices.len() / outer.devices.len();
        let mut columns: Vec<Vec<InstrId>> = vec![Vec::new(); lanes.devices.len()];
        for (operand, sharding) in operands.iter().zip(&edge.shardings) {
            let (grid, numbers) = by_hand.parts(sharding)?;
            let mut at = Inserter::new(&mut self.target, at);
            let mut seen: Vec<(InstrId, usize, InstrId)> = Vec::new();
            for (lane, column) in columns.iter_mut().enumerate() {
                let (x, number) = (operand.ids[lane / inner], numbers[lane % inner]);
                let known = seen.iter().find(|(of, part, _)| *of == x && *part == number).map(|&(_, _, id)| id);
                // Tokens have no parts.
                let id = match known {
                    Some(id) => id,
                    None if at.shape(x).as_array().is_none() => x,
                    None => grid.part(&mut at, x, number)?,
                };
                seen.push((x, number, id));
                column.push(id);
            }
        }
        let ids = self.packed(at, columns)?;
        Ok(Value { ids, lanes })
    }

    /// The values that lanes around have of parts of those inside.
    pub(super) fn unite(
        &mut self,
        at: CompId,
        edge: &ManualEdge,
        operands: &[Value],
        lanes: &Rc<Lanes>,
    ) -> Result<Value> {
        let outer = lanes.outer.clone();
        let outer = outer.ok_or_else(|| Error::invalid_argument("it ends a manual computation that did not begin"))?;
        let by_hand = ByHand::new(edge, &self.meshes)?;
        if by_hand.inside(&outer)? != *lanes {
            return Err(Error::unimplemented("a manual computation that ends over other devices than it began over"));
        }
        let inner = lanes.devices.len() / outer.devices.len();
        let mut columns: Vec<Vec<InstrId>> = vec![Vec::new(); outer.devices.len()];
        for (operand, sharding) in operands.iter().zip(&edge.shardings) {
            let (grid, numbers) = by_hand.parts(sharding)?;
            let mut at = Inserter::new(&mut self.target, at);
            for (lane, column) in columns.iter_mut().enumerate() {
                let own = &operand.ids[lane * inner..][..inner];
                if at.shape(own[0]).as_array().is_none() {
                    column.push(own[0]);
                    continue;
                }
                let mut all = vec![None; grid.count()];
                for (&id, &number) in own.iter().zip(&numbers) {
                    // Of copies the first one counts.
                    all[number].get_or_insert(id);
                }
                let all: Option<Vec<InstrId>> = all.into_iter().collect();
                let all = all.ok_or_else(|| Error::internal("no lane has a part of a global value"))?;
                column.push(grid.whole(&mut at, all)?);
            }
        }
        let ids = self.packed(at, columns)?;
        Ok(Value { ids, lanes: outer })
    }

    /// One value for each lane: the values of its column, in a tuple where they are several. Equal columns share it.
    pub(super) fn packed(&mut self, at: CompId, columns: Vec<Vec<InstrId>>) -> Result<Vec<InstrId>> {
        let mut seen: Vec<(Vec<InstrId>, InstrId)> = Vec::new();
        let mut ids = Vec::with_capacity(columns.len());
        for column in columns {
            let known = seen.iter().find(|(other, _)| *other == column).map(|&(_, id)| id);
            let id = match (known, &column[..]) {
                (Some(id), _) => id,
                (None, &[one]) => one,
                (None, several) => Inserter::new(&mut self.target, at).tuple(several)?,
            };
            seen.push((column, id));
            ids.push(id);
        }
        Ok(ids)
    }
}
