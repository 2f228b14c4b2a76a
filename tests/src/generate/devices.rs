//! Collectives in programs of one device.

use xla_hlo::ops::collective::{IotaGroups, MeshGroups, ReplicaGroups};
use xla_hlo::ops::{AllGather, AllReduce, Collective, CollectiveDone, CollectivePermute, Participants};
use xla_hlo::sdy::{Mesh, MeshAxis};
use xla_hlo::{ElementType, InstrId, Shape};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::values::Temper;

impl Graph<'_> {
    /// Generates a collective; on one device most of them return their operands.
    pub(super) fn collective(&mut self) -> Option<Value> {
        match self.random.below(9) {
            0 | 1 => self.all_reduce(),
            2 => self.all_gather(),
            3 => self.all_to_all(),
            4 => self.collective_permute(),
            5 => self.permute_boxes(),
            6 => self.rooted(),
            7 => self.ragged_all_to_all(),
            _ => {
                let op = self.random.pick(&[Collective::ReplicaId, Collective::PartitionId]);
                let numbers = Numbers { grid: 1.0, ..Numbers::within(0.0) };
                self.put(Some(numbers), |b| b.instruction(op, None, []))
            }
        }
    }

    /// Returns participants that consist of device 0 alone, in a random notation.
    fn alone(&mut self, with_global_ids: bool) -> Participants {
        let groups = match self.random.below(4) {
            0 => ReplicaGroups::default(),
            1 => ReplicaGroups::Iota(IotaGroups { count: 1, size: 1, reshape: vec![1], transpose: Vec::new() }),
            2 => ReplicaGroups::Mesh(MeshGroups {
                mesh: Mesh { axes: vec![("x".into(), 1), ("y".into(), 1)], device_ids: Vec::new() },
                along: vec![MeshAxis { name: self.random.pick(&["x", "y"]).into(), part: None }],
            }),
            _ => ReplicaGroups::Listed(vec![vec![0]]),
        };
        let channel_id = self.random.percent(40).then(|| self.random.between(1, 9) as i64);
        // Groups of global device ids must be listed explicitly.
        let is_listed = !groups.is_everyone();
        let use_global_device_ids = with_global_ids && is_listed && channel_id.is_some() && self.random.percent(50);
        Participants { channel_id, groups, constrain_layout: false, use_global_device_ids }
    }

    /// Returns one array, or several that start with it.
    fn arrays(&mut self, first: Value) -> Vec<Value> {
        let mut arrays = vec![first];
        while self.random.percent(35) && arrays.len() < 3 {
            let dims = if self.random.percent(50) { arrays[0].dims().to_vec() } else { self.dims() };
            arrays.push(self.like(arrays[0].ty(), &dims, |_| true));
        }
        arrays
    }

    /// Adds an operation that returns `arrays`: one array, or a tuple.
    fn passed_on(&mut self, op: Collective, arrays: &[Value]) -> Option<Value> {
        let ids: Vec<InstrId> = arrays.iter().map(|array| array.id).collect();
        let id = self.b.instruction(op, Some(together(arrays)), ids).ok()?;
        self.all_results(id, arrays)
    }

    /// Adds the array that an instruction returns, or the elements of its tuple, to the pool.
    fn all_results(&mut self, id: InstrId, arrays: &[Value]) -> Option<Value> {
        let numbers: Vec<Numbers> = arrays.iter().map(|array| array.numbers).collect();
        self.results(id, &numbers)
    }

    fn all_reduce(&mut self) -> Option<Value> {
        let callees = self.callees;
        let fit: Vec<_> = callees.iter().filter(|c| matches!(c.role, CalleeRole::Combiner { .. })).collect();
        let callee = (!fit.is_empty()).then(|| self.random.pick(&fit))?;
        let CalleeRole::Combiner { ty, .. } = callee.role else { return None };
        let x = self.any(|v| v.ty() == ty)?;
        let participants = self.alone(true);
        if self.random.percent(30) && x.rank() > 0 {
            let arrays = [x];
            let dimension = self.random.below(arrays[0].rank());
            let op = Collective::ReduceScatter { participants, dimension, computation: callee.id };
            return self.passed_on(op, &arrays);
        }
        let arrays = self.arrays(x);
        if self.random.percent(60) {
            let op = AllReduce { participants, computation: callee.id, is_start: false };
            return self.passed_on(Collective::AllReduce(op), &arrays);
        }
        let op = AllReduce { participants, computation: callee.id, is_start: true };
        let ids: Vec<InstrId> = arrays.iter().map(|array| array.id).collect();
        let start = self.b.instruction(Collective::AllReduce(op), None, ids).ok()?;
        let done = self.b.instruction(Collective::Done(CollectiveDone::AllReduce), None, [start]).ok()?;
        self.all_results(done, &arrays)
    }

    fn all_gather(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let (participants, dimension) = (self.alone(true), self.random.below(x.rank()));
        let is_start = self.random.percent(40);
        let op = Collective::AllGather(AllGather { participants, dimension, is_start });
        let arrays = [x];
        if !is_start {
            return self.passed_on(op, &arrays);
        }
        let shape = Shape::Tuple(vec![together(&arrays), together(&arrays)]);
        let start = self.b.instruction(op, Some(shape), [arrays[0].id]).ok()?;
        let done = self.b.instruction(Collective::Done(CollectiveDone::AllGather), None, [start]).ok()?;
        self.all_results(done, &arrays)
    }

    fn all_to_all(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let participants = self.alone(false);
        if self.random.percent(50) {
            let dimension = Some(self.random.below(x.rank()));
            return self.passed_on(Collective::AllToAll { participants, dimension }, &[x]);
        }
        let op = Collective::AllToAll { participants, dimension: None };
        let tuple = self.b.instruction(op, None, [x.id]).ok()?;
        self.put(Some(x.numbers), |b| b.get_tuple_element(tuple, 0))
    }

    /// Generates a permute to the device itself, or without pairs, which returns zeros.
    fn collective_permute(&mut self) -> Option<Value> {
        let first = self.any(|_| true)?;
        let mut arrays = self.arrays(first);
        let (is_sent, is_start) = (self.random.percent(70), self.random.percent(40));
        let op = CollectivePermute {
            channel_id: self.random.percent(40).then_some(1),
            pairs: if is_sent { vec![vec![0, 0]] } else { vec![] },
            slice_sizes: Vec::new(),
            is_start,
        };
        if !is_sent {
            arrays.iter_mut().for_each(|array| array.numbers = Numbers::GIVEN);
        }
        if !is_start {
            return self.passed_on(Collective::CollectivePermute(op), &arrays);
        }
        let state = vec![Shape::scalar(ElementType::U32); self.random.pick(&[0, 2])];
        let shape = Shape::Tuple([vec![together(&arrays); 2], state].concat());
        let ids: Vec<InstrId> = arrays.iter().map(|array| array.id).collect();
        let start = self.b.instruction(Collective::CollectivePermute(op), Some(shape), ids).ok()?;
        let done = self.b.instruction(Collective::Done(CollectiveDone::CollectivePermute), None, [start]).ok()?;
        self.all_results(done, &arrays)
    }

    /// Generates a permute of slices: writes a slice of one array over another array.
    fn permute_boxes(&mut self) -> Option<Value> {
        let input = self.any(|v| v.rank() > 0 && v.shape.element_count() > 0)?;
        let dims: Vec<usize> = input.dims().iter().map(|&d| self.random.between(d, d + 2)).collect();
        let output = self.like(input.ty(), &dims, |_| true);
        let sizes: Vec<i64> = input.dims().iter().map(|&d| self.random.between(1, d) as i64).collect();
        let mut places = || {
            let scalars: Vec<InstrId> =
                (0..dims.len()).map(|_| self.like(ElementType::S32, &[], |_| true).id).collect();
            self.b.tuple(scalars).ok()
        };
        let (from, to) = (places()?, places()?);
        let op = CollectivePermute {
            channel_id: None,
            pairs: if self.random.percent(80) { vec![vec![0, 0]] } else { vec![] },
            slice_sizes: vec![sizes],
            is_start: false,
        };
        let numbers = Numbers::either(input.ty(), &input.numbers, &output.numbers);
        let operands = [input.id, output.id, from, to];
        self.put(numbers, |b| b.instruction(Collective::CollectivePermute(op), None, operands))
    }

    /// Generates a collective from or to one device, which an operand may select.
    fn rooted(&mut self) -> Option<Value> {
        let callees = self.callees;
        let x = self.any(|_| true)?;
        let combiner = callees.iter().find(|c| matches!(c.role, CalleeRole::Combiner { ty, .. } if ty == x.ty()));
        let participants = self.alone(false);
        let has_dynamic_root = self.random.percent(40);
        let op = match combiner {
            Some(callee) if self.random.percent(50) => {
                Collective::CollectiveReduce { participants, has_dynamic_root, computation: callee.id }
            }
            _ => Collective::CollectiveBroadcast { participants, has_dynamic_root },
        };
        let arrays = self.arrays(x);
        let mut ids: Vec<InstrId> = arrays.iter().map(|array| array.id).collect();
        if has_dynamic_root {
            ids.push(self.scalar(ElementType::S32, 0));
        }
        let id = self.b.instruction(op, Some(together(&arrays)), ids).ok()?;
        self.all_results(id, &arrays)
    }

    /// Generates a `ragged-all-to-all`: writes rows of one array over another, at positions that may be out of bounds.
    fn ragged_all_to_all(&mut self) -> Option<Value> {
        let input = self.any(|v| v.rank() > 0)?;
        let mut dims = input.dims().to_vec();
        dims[0] = self.random.between(0, 9);
        let output = self.like(input.ty(), &dims, |_| true);
        let ty = self.random.pick(&[ElementType::S32, ElementType::S64]);
        let entries = if self.random.percent(50) { vec![1] } else { vec![1, self.random.between(1, 3)] };
        let mut operands = vec![input.id, output.id];
        for _ in 0..4 {
            operands.push(self.leaf(ty, &entries, Temper::Grid).id);
        }
        let op = Collective::RaggedAllToAll(self.alone(false));
        let numbers = Numbers::either(input.ty(), &input.numbers, &output.numbers);
        self.put(numbers, |b| b.instruction(op, None, operands))
    }
}

/// Returns the shape of one array, or of a tuple of several.
fn together(arrays: &[Value]) -> Shape {
    let shape = |array: &Value| Shape::from(array.shape.clone());
    match arrays {
        [one] => shape(one),
        several => Shape::Tuple(several.iter().map(shape).collect()),
    }
}
