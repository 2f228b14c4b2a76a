//! Call graph of a serialized module, read without decoding the rest.

use std::collections::HashMap;

use prost::Message;
use prost::bytes::Bytes;

use super::undecodable;
use crate::{Error, Result};

/// Computation of which only the calls are decoded.
#[derive(Clone, PartialEq, Message)]
struct ComputationOutline {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    instructions: Vec<InstructionOutline>,
    #[prost(int64, tag = "5")]
    id: i64,
}

/// Instruction of which only the calls are decoded.
#[derive(Clone, PartialEq, Message)]
struct InstructionOutline {
    #[prost(int64, repeated, tag = "38")]
    called_computation_ids: Vec<i64>,
}

/// Returns positions of encoded computations with callees before callers, otherwise in the order of the message.
pub(super) fn callees_first(computations: &[Bytes]) -> Result<Vec<usize>> {
    let mut outlines = Vec::with_capacity(computations.len());
    let mut positions = HashMap::with_capacity(computations.len());
    for (i, bytes) in computations.iter().enumerate() {
        let outline = ComputationOutline::decode(&bytes[..])
            .map_err(|e| undecodable(&format!("entry {i} of computations"), e))?;
        if positions.insert(outline.id, i).is_some() {
            let id = outline.id;
            return Err(Error::invalid_argument(format!("two computations have the id {id}")));
        }
        outlines.push(outline);
    }
    let callees = outlines.iter().map(|outline| resolve(outline, &positions)).collect::<Result<Vec<_>>>()?;
    sort(&callees).map_err(|i| {
        let name = &outlines[i].name;
        Error::invalid_argument(format!(
            "computation {name} calls itself, perhaps through others; HLO has no recursion"
        ))
    })
}

fn resolve(outline: &ComputationOutline, positions: &HashMap<i64, usize>) -> Result<Vec<usize>> {
    let ids = outline.instructions.iter().flat_map(|instruction| &instruction.called_computation_ids);
    ids.map(|id| {
        let position = positions.get(id).copied();
        position.ok_or_else(|| {
            let name = &outline.name;
            Error::invalid_argument(format!(
                "computation {name}: called_computation_ids names computation {id}, which does not exist"
            ))
        })
    })
    .collect()
}

/// State of a computation in the depth-first search.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

/// Sorts positions with callees first; the error is a position on a cycle. Takes linear time, without recursion.
fn sort(callees: &[Vec<usize>]) -> Result<Vec<usize>, usize> {
    let mut order = Vec::with_capacity(callees.len());
    let mut states = vec![State::New; callees.len()];
    for start in 0..callees.len() {
        let mut stack = vec![(start, 0)];
        while let Some((i, next)) = stack.last_mut() {
            let i = *i;
            if states[i] == State::Done {
                stack.pop();
                continue;
            }
            states[i] = State::Open;
            match callees[i].get(*next).copied() {
                Some(callee) => {
                    *next += 1;
                    match states[callee] {
                        State::New => stack.push((callee, 0)),
                        State::Open => return Err(callee),
                        State::Done => {}
                    }
                }
                None => {
                    states[i] = State::Done;
                    order.push(i);
                    stack.pop();
                }
            }
        }
    }
    Ok(order)
}
