//! Boundaries of manual computations and constraints: values become parts, and parts become values.

use std::rc::Rc;

use xla_hlo::sdy::{ManualEdge, TensorSharding};
use xla_hlo::{Error, InstrId, Result, Shape};

use super::place::{Place, Split, Value, only};
use super::rewrite::Rewriter;

impl Rewriter<'_> {
    /// Enters a manual computation: the parts of global values of these shapes are its values.
    pub(super) fn enter(&mut self, edge: &ManualEdge, shapes: &[&Shape], operands: &[Value]) -> Result<Value> {
        self.check_axes(edge)?;
        let mut ids = Vec::with_capacity(operands.len());
        for ((operand, shape), sharding) in operands.iter().zip(shapes).zip(&edge.shardings) {
            ids.push(match shape.as_array() {
                Some(array) => {
                    let split = self.split(Some(sharding), array)?;
                    self.converted(operand, &split)?
                }
                None => operand.id,
            });
        }
        let places = vec![Place::Local; ids.len()].into();
        Ok(Value { id: self.packed(&ids)?, places })
    }

    /// Leaves a manual computation: its values are parts of global values.
    pub(super) fn leave(&mut self, edge: &ManualEdge, shape: &Shape, operands: &[Value]) -> Result<Value> {
        self.check_axes(edge)?;
        let mut places = Vec::with_capacity(operands.len());
        for ((sharding, operand), (_, leaf)) in edge.shardings.iter().zip(operands).zip(shape.leaves()) {
            if !matches!(operand.places[..], [Place::Local | Place::Same]) {
                return Err(Error::unimplemented("a value leaves a manual computation that it is not a value of"));
            }
            places.push(match leaf.as_array() {
                Some(array) => Place::Part(self.split(Some(sharding), array)?),
                None => Place::Same,
            });
        }
        let ids: Vec<InstrId> = operands.iter().map(|operand| operand.id).collect();
        Ok(Value { id: self.packed(&ids)?, places: places.into() })
    }

    /// Returns a single value as it is, and several as a tuple.
    fn packed(&mut self, ids: &[InstrId]) -> Result<InstrId> {
        match *ids {
            [id] => Ok(id),
            _ => self.inserter().tuple(ids),
        }
    }

    /// Applies a sharding that a global value must have. Values of a device have none.
    pub(super) fn constrain(&mut self, sharding: &TensorSharding, shape: &Shape, operands: &[Value]) -> Result<Value> {
        let value = only(operands)?;
        let (Some(array), [Place::Part(_) | Place::Same]) = (shape.as_array(), &value.places[..]) else {
            return Ok(value);
        };
        let wanted = match self.split(Some(sharding), array) {
            // Parts would be of different sizes. The values are equal without the split.
            Err(Error::Unimplemented(_)) if self.gathers => return Ok(value),
            wanted => wanted?,
        };
        if wanted.is_replicated() && sharding.dims.iter().all(|dim| dim.is_open) {
            return Ok(value);
        }
        Ok(Value { id: self.converted(&value, &wanted)?, places: Rc::new([Place::Part(wanted)]) })
    }

    /// Returns the part of a global array that the device has in a split.
    pub(super) fn converted(&mut self, value: &Value, wanted: &Split) -> Result<InstrId> {
        match &value.places[..] {
            [Place::Local] => Err(Error::unimplemented("a manual computation inside of another one")),
            [Place::Part(own)] if **own == *wanted => Ok(value.id),
            [Place::Part(own)] if self.gathers => self.exchanged(value.id, own, wanted),
            [Place::Part(own)] if !own.is_replicated() => {
                Err(Error::unimplemented("a value is converted to another split, which needs a partitioner"))
            }
            _ if wanted.is_replicated() => Ok(value.id),
            _ if self.gathers => wanted.part_of_whole(&mut self.inserter(), value.id),
            _ => wanted.part_of_replicated(&mut self.inserter(), value.id),
        }
    }

    /// Returns an error unless a boundary covers all axes of a mesh of all devices.
    fn check_axes(&self, edge: &ManualEdge) -> Result<()> {
        for sharding in &edge.shardings {
            let mesh = self.meshes.get(&sharding.mesh)?;
            let is_manual = |(name, size): &(String, usize)| *size == 1 || edge.manual_axes.contains(name);
            if mesh.device_count()? != self.devices || !mesh.axes.iter().all(is_manual) {
                return Err(Error::unimplemented("a manual computation over some of the axes needs a partitioner"));
            }
        }
        Ok(())
    }
}
