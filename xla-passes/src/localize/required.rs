//! Shardings of parameters that a program leaves open: the first manual computation that uses them decides.

use std::collections::HashMap;

use xla_hlo::sdy::{self, DimSharding, Role, TensorSharding};
use xla_hlo::{ArrayShape, CompId, InstrId, Module, Op, Result, ResultExt, Shape};

use super::factors::factors;
use crate::join::entry::is_open;

/// Maximum number of values to follow from one parameter.
const MAX_VALUES: usize = 1 << 12;
/// Maximum number of values on one path.
const MAX_DEPTH: usize = 128;

/// Sharding that a program requires of an array whose sharding it leaves open.
#[derive(Clone, Debug)]
pub(super) struct Requirement {
    /// Number of the parameter.
    pub parameter: usize,
    /// Number of the array among the leaves of the parameter.
    pub leaf: usize,
    pub sharding: TensorSharding,
}

/// Returns the shardings that manual computations and constraints require of open parameters, possibly through calls,
/// loops and operations that keep their dimensions.
pub(super) fn requirements(module: &Module) -> Result<Vec<Requirement>> {
    let (may_choose, entry) = (&module.attributes().allow_spmd_sharding_propagation_to_parameters, module.entry());
    let mut search = Search { module, known: HashMap::new(), values: 0, depth: 0, is_cut: false };
    let mut found = Vec::new();
    for (parameter, &id) in entry.parameters().iter().enumerate() {
        let is_open = may_choose.get(parameter).or(may_choose.first()).copied().unwrap_or_default();
        if !is_open || sdy::shardings(module, module.entry_id(), id)?.is_some() {
            continue;
        }
        for (leaf, (path, shape)) in entry[id].shape().leaves().into_iter().enumerate() {
            (search.values, search.is_cut) = (0, false);
            let sharding = search.of_value(Leaf { computation: module.entry_id(), id, path, callers: Vec::new() });
            let sharding = sharding.context(|| format!("parameter %{}", entry[id].name()))?;
            let sharding = sharding.filter(|_| shape.as_array().is_some());
            found.extend(sharding.map(|sharding| Requirement { parameter, leaf, sharding }));
        }
    }
    Ok(found)
}

/// Array of a value.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Leaf {
    computation: CompId,
    id: InstrId,
    /// Path of the array in the value.
    path: Vec<usize>,
    /// Calls around the computation, outermost first.
    callers: Vec<(CompId, InstrId)>,
}

struct Search<'m> {
    module: &'m Module,
    /// Results for the leaves that were followed.
    known: HashMap<Leaf, Option<TensorSharding>>,
    /// Number of values that were followed.
    values: usize,
    /// Number of values on the current path.
    depth: usize,
    /// Whether the search ended at a limit, and may find more from another value.
    is_cut: bool,
}

impl Search<'_> {
    /// Returns the sharding that the users of a leaf require.
    fn of_value(&mut self, leaf: Leaf) -> Result<Option<TensorSharding>> {
        if let Some(known) = self.known.get(&leaf) {
            return Ok(known.clone());
        }
        if self.values >= MAX_VALUES || self.depth >= MAX_DEPTH {
            self.is_cut = true;
            return Ok(None);
        }
        self.values += 1;
        self.depth += 1;
        let found = self.of_users(&leaf);
        self.depth -= 1;
        if let (Ok(found), false) = (&found, self.is_cut) {
            self.known.insert(leaf, found.clone());
        }
        found
    }

    fn of_users(&mut self, leaf: &Leaf) -> Result<Option<TensorSharding>> {
        let graph = &self.module[leaf.computation];
        for &user in graph[leaf.id].users() {
            for (place, _) in graph[user].operands().iter().enumerate().filter(|(_, operand)| **operand == leaf.id) {
                if let Some(found) = self.of_user(leaf, user, place)? {
                    return Ok(Some(found));
                }
            }
        }
        match &leaf.callers[..] {
            [around @ .., (computation, call)] if graph.root() == leaf.id => {
                let (path, callers) = (leaf.path.clone(), around.to_vec());
                self.of_value(Leaf { computation: *computation, id: *call, path, callers })
            }
            _ => Ok(None),
        }
    }

    /// Returns the sharding that a user requires of a leaf, which is its operand number `place`.
    fn of_user(&mut self, leaf: &Leaf, user: InstrId, place: usize) -> Result<Option<TensorSharding>> {
        let module = self.module;
        let Leaf { computation, path, .. } = leaf;
        match sdy::role(module, *computation, user)? {
            Some(Role::GlobalToLocal(edge)) => return Ok(edge.shardings.into_iter().nth(place)),
            Some(Role::Constraint(sharding) | Role::FunctionResult(sharding)) if !is_open(&sharding) => {
                return Ok(Some(sharding));
            }
            Some(Role::LocalToGlobal(_)) => return Ok(None),
            Some(_) => return self.of_value(Leaf { id: user, ..leaf.clone() }),
            None => {}
        }
        // The leaf as a part of the parameter of a computation that the user calls.
        let inside = |callee: CompId, number: usize, callers: Vec<(CompId, InstrId)>| {
            let id = module[callee].parameters().get(number).copied()?;
            Some(Leaf { computation: callee, id, path: path.clone(), callers })
        };
        match (module[*computation][user].op(), &path[..]) {
            (Op::Tuple(_), _) => {
                let path = [&[place], &path[..]].concat();
                self.of_value(Leaf { id: user, path, ..leaf.clone() })
            }
            (Op::GetTupleElement(op), [index, path @ ..]) if op.index == *index => {
                self.of_value(Leaf { id: user, path: path.to_vec(), ..leaf.clone() })
            }
            (Op::OptBarrier(_), _) => self.of_value(Leaf { id: user, ..leaf.clone() }),
            (Op::Call(op), _) => {
                let callers = [&leaf.callers[..], &[(*computation, user)]].concat();
                inside(op.computation, place, callers).map_or(Ok(None), |own| self.of_value(own))
            }
            (Op::While(op), _) => {
                let state = inside(op.body, 0, Vec::new());
                match state.map_or(Ok(None), |state| self.of_value(state))? {
                    Some(found) => Ok(Some(found)),
                    None => self.of_value(Leaf { id: user, ..leaf.clone() }),
                }
            }
            (Op::Conditional(op), _) => {
                let branch = place.checked_sub(1).and_then(|branch| op.branches.get(branch)).copied();
                let own = branch.and_then(|branch| inside(branch, 0, Vec::new()));
                own.map_or(Ok(None), |own| self.of_value(own))
            }
            (_, []) => self.through(leaf, user, place),
            _ => Ok(None),
        }
    }

    /// Returns the sharding of an operand that leads to the sharding that users require of the result.
    fn through(&mut self, leaf: &Leaf, user: InstrId, place: usize) -> Result<Option<TensorSharding>> {
        let graph = &self.module[leaf.computation];
        let shapes: Option<Vec<&ArrayShape>> = graph.operand_shapes(user).into_iter().map(Shape::as_array).collect();
        let (Some(shapes), Some(result)) = (shapes, graph[user].shape().as_array()) else { return Ok(None) };
        let factors = factors(graph[user].op(), &shapes, result);
        let (operand, is_followed) = (shapes[place], factors.iter().any(|factor| factor.operands[place].is_some()));
        let found = if is_followed { self.of_value(Leaf { id: user, ..leaf.clone() })? } else { None };
        let Some(found) = found.filter(|found| found.unreduced.is_empty() && found.dims.len() == result.rank()) else {
            return Ok(None);
        };
        let mut sharding = TensorSharding::unsplit(found.mesh, operand.rank(), false);
        for factor in &factors {
            if let Some(d) = factor.operands[place] {
                sharding.dims[d] =
                    DimSharding { axes: found.dims[factor.result].axes.clone(), ..DimSharding::default() };
            }
        }
        Ok(Some(sharding))
    }
}
