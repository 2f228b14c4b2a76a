//! Loops and branches on global values: all devices run the same iterations and branches, each on its own parts.

use xla_hlo::ops::{Conditional, While};
use xla_hlo::sdy::{self, TensorSharding};
use xla_hlo::{CompId, Error, InstrId, Op, Result, Shape};

use super::parts::local_shape;
use super::place::{Form, Place, Value, found};
use super::rewrite::{Rewriter, is_any_split};

impl Rewriter<'_> {
    /// Emits a loop. The split of each element of the state is a fixed point of the body: starting with the splits of
    /// the initial state, elements whose next value is split become split.
    pub(super) fn while_loop(&mut self, computation: CompId, id: InstrId, op: &While, init: &Value) -> Result<Value> {
        let instruction = &self.source[computation][id];
        let shape = instruction.shape();
        let stated = self.stated(computation, id, op)?;
        let start = self.start(shape, init, stated.as_deref())?;
        let key = (computation, id);
        let known = found(self.states.get(&key), &start);
        let is_new = known.is_none();
        let mut places = known.unwrap_or_else(|| start.clone());
        let body = loop {
            self.pass_on(op.body, &mut places);
            let known = self.known_form(op.body, &places);
            let is_new = known.is_none();
            let body = known.map_or_else(|| self.new_form(op.body, shape, &places), Ok)?;
            let joined = self.joined(&places, &body.result.places).map_err(|i| {
                let cause = "is split in another way after an iteration than before, which needs a partitioner";
                Error::unimplemented(format!("element {i} of its state {cause}"))
            })?;
            if joined == places {
                if is_new {
                    self.share_form(op.body, &places, &body);
                }
                break body;
            }
            if is_new {
                self.target.remove(body.id)?;
            }
            places = joined;
        };
        self.check_stated(shape, &places, stated.as_deref())?;
        if is_new {
            self.states.entry(key).or_default().push((start.into(), places.clone()));
        }
        let body = self.form_to(&body, shape, &places)?;
        let condition = self.form(op.condition, shape, &places)?;
        let condition = match self.gathers && is_any_split(std::slice::from_ref(&condition.result)) {
            true => {
                let graph = &self.source[op.condition];
                let shape = graph[graph.root()].shape();
                let whole = self.whole_places(shape, &condition.result.places)?;
                self.form_to(&condition, shape, &whole)?
            }
            false if condition.result.places.iter().all(Place::is_whole) => condition.id,
            false => {
                return Err(Error::unimplemented("its condition differs between devices, which needs a partitioner"));
            }
        };
        let init = self.placed(init, shape, &places)?;
        let local = local_shape(shape, &places);
        Ok(Value { id: self.emit(instruction, While { condition, body }, local, vec![init]), places: places.into() })
    }

    /// Converts places of a state to places after iterations of the body: elements that the body only passes on to
    /// others are found without emitting it. Elements whose places have no common one remain.
    fn pass_on(&mut self, body: CompId, places: &mut [Place]) {
        let graph = &self.source[body];
        let (root, Some(&state)) = (graph.root(), graph.parameters().first()) else { return };
        if !matches!(graph[root].op(), Op::Tuple(_)) {
            return;
        }
        let starts = self.leaf_starts(body, root);
        let mut to: Vec<Vec<usize>> = vec![Vec::new(); graph[root].operands().len()];
        for (i, &operand) in graph[root].operands().iter().enumerate() {
            match graph[operand].op() {
                Op::GetTupleElement(op) if graph[operand].operand(0) == state && op.index != i => to[op.index].push(i),
                _ => {}
            }
        }
        let mut next: Vec<usize> = (0..to.len()).collect();
        while let Some(from) = next.pop() {
            let new = places[starts[from]..starts[from + 1]].to_vec();
            for &i in &to[from] {
                let own = &mut places[starts[i]..starts[i + 1]];
                if let Some(joined) = self.joined(own, &new).ok().filter(|joined| joined != own) {
                    own.clone_from_slice(&joined);
                    next.push(i);
                }
            }
        }
    }

    /// Emits a branch that all devices take together.
    pub(super) fn conditional(
        &mut self,
        computation: CompId,
        id: InstrId,
        op: &Conditional,
        operands: &[Value],
    ) -> Result<Value> {
        let graph = &self.source[computation];
        let instruction = &graph[id];
        let (Some(index), Some(arguments)) = (operands.first(), operands.get(1..)) else {
            return Err(Error::internal("conditional has no operands"));
        };
        let shapes = graph.operand_shapes(id);
        if self.gathers && is_any_split(&operands[..1]) {
            let whole = self.all_whole(&operands[..1], &shapes[..1])?;
            return self.conditional(computation, id, op, &[&whole, arguments].concat());
        }
        if !index.places.iter().all(Place::is_whole) {
            return Err(Error::unimplemented("its selector differs between devices, which needs a partitioner"));
        }
        let mut forms: Vec<Form> = Vec::with_capacity(op.branches.len());
        let mut places = Vec::new();
        for (i, (&branch, argument)) in op.branches.iter().zip(arguments).enumerate() {
            let form = self.form(branch, shapes[i + 1], &argument.places)?;
            places = match i {
                0 => self.without_partial_values(&form.result.places),
                _ => self.joined(&places, &form.result.places).map_err(|leaf| {
                    let cause = "is split in different ways in its branches, which needs a partitioner";
                    Error::unimplemented(format!("element {leaf} of its result {cause}"))
                })?,
            };
            forms.push(form);
        }
        let branches = forms.iter().map(|form| self.form_to(form, instruction.shape(), &places));
        let op = Conditional { branches: branches.collect::<Result<_>>()?, by_predicate: op.by_predicate };
        let ids = operands.iter().map(|operand| operand.id).collect();
        let local = local_shape(instruction.shape(), &places);
        Ok(Value { id: self.emit(instruction, op, local, ids), places: places.into() })
    }

    /// Converts a value of a global shape to places that its own places are [joined](Place::joined) to.
    pub(super) fn placed(&mut self, value: &Value, shape: &Shape, places: &[Place]) -> Result<InstrId> {
        match shape {
            _ if value.is_placed(places) => Ok(value.id),
            Shape::Tuple(elements) => {
                let (mut ids, mut first) = (Vec::with_capacity(elements.len()), 0);
                for (index, element) in elements.iter().enumerate() {
                    let leaves = first..first + element.leaves().len();
                    first = leaves.end;
                    let own = self.element(value.id, index)?;
                    let own = Value { id: own, places: value.places[leaves.clone()].into() };
                    ids.push(self.placed(&own, element, &places[leaves])?);
                }
                self.inserter().tuple(&ids)
            }
            _ => match places.first().and_then(Place::split) {
                Some(wanted) => self.converted(value, wanted),
                None => Ok(value.id),
            },
        }
    }

    /// Returns the shardings that a loop, or the parameter of its body, states for the elements of the state.
    fn stated(&self, computation: CompId, id: InstrId, op: &While) -> Result<Option<Vec<TensorSharding>>> {
        let parameter = self.source[op.body].parameters().first().map(|&parameter| (op.body, parameter));
        for (computation, id) in std::iter::once((computation, id)).chain(parameter) {
            let stated = sdy::shardings(self.source, computation, id)?;
            if let Some(stated) =
                stated.filter(|stated| stated.len() == self.source[computation][id].shape().leaves().len())
            {
                return Ok(Some(stated));
            }
        }
        Ok(None)
    }

    /// Returns the places of the initial state. Elements that are stated to be split start so; with gathers, only if
    /// they have equal parts. With gathers, partial values are reduced before the loop.
    fn start(&self, shape: &Shape, init: &Value, stated: Option<&[TensorSharding]>) -> Result<Vec<Place>> {
        let mut places = self.without_partial_values(&init.places);
        for (i, ((_, leaf), sharding)) in shape.leaves().into_iter().zip(stated.unwrap_or_default()).enumerate() {
            if let (Shape::Array(array), true) = (leaf, places[i].is_whole()) {
                match self.split(Some(sharding), array) {
                    Ok(wanted) if wanted.is_replicated() => {}
                    Ok(wanted) => places[i] = Place::Part(wanted),
                    Err(Error::Unimplemented(_)) if self.gathers => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(places)
    }

    /// Checks that elements are split as the loop states it. Values of one device have no split, and gathers do not
    /// need the stated one.
    fn check_stated(&self, shape: &Shape, places: &[Place], stated: Option<&[TensorSharding]>) -> Result<()> {
        if self.gathers {
            return Ok(());
        }
        for (i, ((_, leaf), sharding)) in shape.leaves().into_iter().zip(stated.unwrap_or_default()).enumerate() {
            let (Shape::Array(array), Some(split)) = (leaf, places[i].split()) else { continue };
            let is_open = sharding.dims.iter().any(|dim| dim.is_open);
            let wanted = self.split(Some(sharding), array)?;
            if *split != wanted && !(split.is_replicated() && wanted.is_replicated()) && !is_open {
                let cause = "is split in another way than it is stated, which needs a partitioner";
                return Err(Error::unimplemented(format!("element {i} of its state {cause}")));
            }
        }
        Ok(())
    }

    /// Joins places element by element. Returns the number of an element whose places have no common one. With gathers,
    /// such an element keeps its first place, and partial values of the others are reduced.
    fn joined(&self, one: &[Place], other: &[Place]) -> std::result::Result<Vec<Place>, usize> {
        let other = self.without_partial_values(other);
        let pairs = one.iter().zip(&other).enumerate();
        let join = |(i, (one, other)): (usize, (&Place, &Place))| {
            let is_global = one.split().is_some() && other.split().is_some();
            one.joined(other).or_else(|| Some(one.clone()).filter(|_| self.gathers && is_global)).ok_or(i)
        };
        pairs.map(join).collect()
    }
}
