//! Lanes: the devices of a joined program. A computation is emitted for each of them.

use std::rc::Rc;

use xla_hlo::sdy::{ManualEdge, Mesh, MeshAxis, Meshes, TensorSharding};
use xla_hlo::{Error, InstrId, Result};

use super::spread::Grid;

/// The devices whose values are distinguished. Each lane represents all devices that only differ from it along other
/// axes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    pub devices: Vec<i64>,
    /// Lanes around a manual computation. Each of them contains `devices.len() / outer.devices.len()` inner lanes.
    pub outer: Option<Rc<Lanes>>,
}

/// A value for all lanes.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// One instruction per lane.
    pub ids: Vec<InstrId>,
    pub lanes: Rc<Lanes>,
}

impl Value {
    /// Creates a value that is the same for all lanes.
    pub fn same(id: InstrId, lanes: &Rc<Lanes>) -> Value {
        Value { ids: vec![id; lanes.devices.len()], lanes: lanes.clone() }
    }

    /// Returns the value for `lanes`, which must be its own lanes or nested in them.
    pub fn inside(&self, lanes: &Rc<Lanes>) -> Result<Value> {
        let mut around = Some(lanes);
        while let Some(own) = around {
            if Rc::ptr_eq(own, &self.lanes) || *own == self.lanes {
                // Inner lanes of the same outer lane are contiguous.
                let each = lanes.devices.len() / self.ids.len();
                let ids = self.ids.iter().flat_map(|&id| std::iter::repeat_n(id, each)).collect();
                return Ok(Value { ids, lanes: lanes.clone() });
            }
            around = own.outer.as_ref();
        }
        Err(Error::unimplemented("the operands belong to different manual computations"))
    }

    /// Whether all lanes share the value.
    pub fn is_same(&self) -> bool {
        self.ids.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// Coordinates of lanes along the manual axes of a boundary.
pub(super) struct ByHand<'m> {
    mesh: &'m Mesh,
    /// Indices of the axes.
    axes: Vec<usize>,
}

impl<'m> ByHand<'m> {
    pub fn new(edge: &'m ManualEdge, meshes: &'m Meshes) -> Result<ByHand<'m>> {
        let first = edge.shardings.first();
        let first = first.ok_or_else(|| Error::invalid_argument("the manual computation has no shardings"))?;
        let mesh = meshes.get(&first.mesh)?;
        if mesh.device_count()? == 0 {
            return Err(Error::invalid_argument("the manual computation is over a mesh without devices"));
        }
        let number = |name: &String| mesh.axes.iter().position(|(axis, _)| axis == name);
        let axes: Option<Vec<usize>> = edge.manual_axes.iter().map(number).collect();
        let axes = axes.ok_or_else(|| Error::invalid_argument("the mesh lacks some of the manual axes"))?;
        Ok(ByHand { mesh, axes })
    }

    /// Returns the coordinates of the inner lanes of one outer lane, in lane order. Other axes keep their coordinates
    /// in `around`.
    fn places(&self, around: &[usize]) -> Vec<Vec<usize>> {
        let mut places = vec![around.to_vec()];
        for &axis in &self.axes {
            let along = |place: &Vec<usize>| {
                let place = place.clone();
                (0..self.mesh.axes[axis].1).map(move |number| {
                    let mut place = place.clone();
                    place[axis] = number;
                    place
                })
            };
            places = places.iter().flat_map(along).collect();
        }
        places
    }

    /// Returns the inner lanes.
    pub fn inside(&self, outer: &Rc<Lanes>) -> Result<Rc<Lanes>> {
        let mut devices = Vec::new();
        for &device in &outer.devices {
            // Outside of all manual computations, the first device represents all.
            let place = match outer.outer {
                Some(_) => self.mesh.place(device)?,
                None => Some(vec![0; self.mesh.axes.len()]),
            };
            let place = place.ok_or_else(|| {
                Error::unimplemented("nested manual computations are over meshes of different devices")
            })?;
            devices.extend(self.places(&place).iter().map(|place| self.mesh.device(place)));
        }
        Ok(Rc::new(Lanes { devices, outer: Some(outer.clone()) }))
    }

    /// Returns the grid of the parts of a sharding, and the number of the part for each inner lane of one outer lane.
    pub fn parts(&self, sharding: &TensorSharding) -> Result<(Grid, Vec<usize>)> {
        let is_manual = |axis: &&MeshAxis| self.axes.iter().any(|&number| self.mesh.axes[number].0 == axis.name);
        // Computes the number of parts along some axes, and the number of the part at a coordinate.
        let along = |axes: &[MeshAxis], place: &[usize]| {
            axes.iter().filter(is_manual).try_fold((1, 0), |(count, number), axis| {
                let size = self.mesh.size_of(axis)?;
                Ok((count * size, number * size + self.mesh.number_along(axis, place)?))
            })
        };
        let places = self.places(&vec![0; self.mesh.axes.len()]);
        let mut grid = Grid { dims: Vec::new(), operands: 1, reduction: sharding.reduction };
        let mut numbers = Vec::with_capacity(places.len());
        for place in places {
            let dims = sharding.dims.iter().map(|dim| along(&dim.axes, &place)).collect::<Result<Vec<_>>>()?;
            let (operands, operand) = along(&sharding.unreduced, &place)?;
            let own = dims.iter().fold(0, |number, (count, own)| number * count + own);
            grid.dims = dims.into_iter().map(|(count, _)| count).collect();
            grid.operands = operands;
            numbers.push(own * operands + operand);
        }
        Ok((grid, numbers))
    }
}
