//! Boundaries of manual computations: splits global values into parts for the lanes, and joins them again.

use std::rc::Rc;

use xla_hlo::sdy::ManualEdge;
use xla_hlo::{CompId, Error, InstrId, Result};

use super::lanes::{ByHand, Lanes, Value};
use super::rewrite::Rewriter;
use crate::rewrite::builder::Inserter;

impl Rewriter<'_> {
    /// Splits values of the outer lanes into the parts of the inner lanes.
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

    /// Joins the parts of the inner lanes into values of the outer lanes.
    pub(super) fn unite(
        &mut self,
        at: CompId,
        edge: &ManualEdge,
        operands: &[Value],
        lanes: &Rc<Lanes>,
    ) -> Result<Value> {
        let outer = lanes.outer.clone();
        let outer =
            outer.ok_or_else(|| Error::invalid_argument("it ends a manual computation that was not started"))?;
        let by_hand = ByHand::new(edge, &self.meshes)?;
        if by_hand.inside(&outer)? != *lanes {
            return Err(Error::unimplemented("the manual computation starts and ends over different devices"));
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
                    // Among copies of a part, the first one is used.
                    all[number].get_or_insert(id);
                }
                let all: Option<Vec<InstrId>> = all.into_iter().collect();
                let all = all.ok_or_else(|| Error::internal("no device has a part of the global value"))?;
                column.push(grid.whole(&mut at, all)?);
            }
        }
        let ids = self.packed(at, columns)?;
        Ok(Value { ids, lanes: outer })
    }

    /// Returns one value per lane: the values of its column, as a tuple if there are several. Equal columns share it.
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
