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
    let mut search = Search { module, known: HashMap::new(), values: 0, depth: 0 };
    let mut found = Vec::new();
    for (parameter, &id) in entry.parameters().iter().enumerate() {
        let is_open = may_choose.get(parameter).or(may_choose.first()).copied().unwrap_or_default();
        if !is_open || sdy::shardings(module, module.entry_id(), id)?.is_some() {
            continue;
        }
        for (leaf, (path, shape)) in entry[id].shape().leaves().into_iter().enumerate() {
            search.values = 0;
            let sharding = search.of_value(module.entry_id(), id, &path, &[]);
            let sharding = sharding.context(|| format!("parameter %{}", entry[id].name()))?;
            let sharding = sharding.filter(|_| shape.as_array().is_some());
            found.extend(sharding.map(|sharding| Requirement { parameter, leaf, sharding }));
        }
    }
    Ok(found)
}

/// Leaf of a value: computation, instruction, path, and the calls around the computation.
type Leaf = (CompId, InstrId, Vec<usize>, Vec<(CompId, InstrId)>);

struct Search<'m> {
    module: &'m Module,
    /// Results for the leaves that were followed.
    known: HashMap<Leaf, Option<TensorSharding>>,
    /// Number of values that were followed.
    values: usize,
    /// Number of values on the current path.
    depth: usize,
}

impl Search<'_> {
    /// Returns the sharding that the users of a leaf of a value require. The last of `callers` calls the computation.
    fn of_value(
        &mut self,
        computation: CompId,
        id: InstrId,
        path: &[usize],
        callers: &[(CompId, InstrId)],
    ) -> Result<Option<TensorSharding>> {
        let leaf = (computation, id, path.to_vec(), callers.to_vec());
        if let Some(known) = self.known.get(&leaf) {
            return Ok(known.clone());
        }
        if self.values >= MAX_VALUES || self.depth >= MAX_DEPTH {
            return Ok(None);
        }
        self.values += 1;
        self.depth += 1;
        let found = self.of_users(computation, id, path, callers);
        self.depth -= 1;
        // A search that ended at the limit may find more from another value.
        if let (Ok(found), true) = (&found, self.values < MAX_VALUES) {
            self.known.insert(leaf, found.clone());
        }
        found
    }

    fn of_users(
        &mut self,
        computation: CompId,
        id: InstrId,
        path: &[usize],
        callers: &[(CompId, InstrId)],
    ) -> Result<Option<TensorSharding>> {
        let graph = &self.module[computation];
        for &user in graph[id].users() {
            for (place, _) in graph[user].operands().iter().enumerate().filter(|(_, operand)| **operand == id) {
                if let Some(found) = self.of_user(computation, user, place, path, callers)? {
                    return Ok(Some(found));
                }
            }
        }
        match callers {
            [around @ .., (computation, call)] if graph.root() == id => {
                self.of_value(*computation, *call, path, around)
            }
            _ => Ok(None),
        }
    }

    /// Returns the sharding that a user requires of a leaf of an operand.
    fn of_user(
        &mut self,
        computation: CompId,
        user: InstrId,
        place: usize,
        path: &[usize],
        callers: &[(CompId, InstrId)],
    ) -> Result<Option<TensorSharding>> {
        match sdy::role(self.module, computation, user)? {
            Some(Role::GlobalToLocal(edge)) => return Ok(edge.shardings.into_iter().nth(place)),
            Some(Role::Constraint(sharding) | Role::FunctionResult(sharding)) if !is_open(&sharding) => {
                return Ok(Some(sharding));
            }
            Some(Role::LocalToGlobal(_)) => return Ok(None),
            Some(_) => return self.of_value(computation, user, path, callers),
            None => {}
        }
        let parameter = |callee: CompId, number: usize| self.module[callee].parameters().get(number).copied();
        match (self.module[computation][user].op(), path) {
            (Op::Tuple(_), _) => self.of_value(computation, user, &[&[place], path].concat(), callers),
            (Op::GetTupleElement(op), [index, path @ ..]) if op.index == *index => {
                self.of_value(computation, user, path, callers)
            }
            (Op::OptBarrier(_), _) => self.of_value(computation, user, path, callers),
            (Op::Call(op), _) => match parameter(op.computation, place) {
                Some(own) => self.of_value(op.computation, own, path, &[callers, &[(computation, user)]].concat()),
                None => Ok(None),
            },
            (Op::While(op), _) => {
                let inside = match parameter(op.body, 0) {
                    Some(state) => self.of_value(op.body, state, path, &[])?,
                    None => None,
                };
                match inside {
                    Some(found) => Ok(Some(found)),
                    None => self.of_value(computation, user, path, callers),
                }
            }
            (Op::Conditional(op), _) => {
                let branch = place.checked_sub(1).and_then(|branch| op.branches.get(branch)).copied();
                match branch.and_then(|branch| Some((branch, parameter(branch, 0)?))) {
                    Some((branch, own)) => self.of_value(branch, own, path, &[]),
                    None => Ok(None),
                }
            }
            (_, []) => self.through(computation, user, place, callers),
            _ => Ok(None),
        }
    }

    /// Returns the sharding of an operand that leads to the sharding that users require of the result.
    fn through(
        &mut self,
        computation: CompId,
        user: InstrId,
        place: usize,
        callers: &[(CompId, InstrId)],
    ) -> Result<Option<TensorSharding>> {
        let graph = &self.module[computation];
        let shapes: Option<Vec<&ArrayShape>> = graph.operand_shapes(user).into_iter().map(Shape::as_array).collect();
        let (Some(shapes), Some(result)) = (shapes, graph[user].shape().as_array()) else { return Ok(None) };
        let factors = factors(graph[user].op(), &shapes, result);
        let (operand, is_followed) = (shapes[place], factors.iter().any(|factor| factor.operands[place].is_some()));
        let found = if is_followed { self.of_value(computation, user, &[], callers)? } else { None };
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
