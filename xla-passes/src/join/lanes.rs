//! Lanes: the devices that a computation is written for, one by one.

use std::rc::Rc;

use xla_hlo::sdy::{ManualEdge, Mesh, MeshAxis, MeshName, Meshes, TensorSharding};
use xla_hlo::{Error, InstrId, Result};

/// The devices that values are told apart for. Each stands for those that differ from it along other axes alone.
#[derive(Debug)]
pub(super) struct Lanes {
    pub devices: Vec<i64>,
    /// Those around a manual computation, each of which has `devices.len() / outer.devices.len()` of these.
    pub outer: Option<Rc<Lanes>>,
}

/// A value of all lanes.
#[derive(Clone, Debug)]
pub(super) struct Value {
    /// One for each lane.
    pub ids: Vec<InstrId>,
    pub lanes: Rc<Lanes>,
}

impl Value {
    /// The same for all.
    pub fn same(id: InstrId, lanes: &Rc<Lanes>) -> Value {
        Value { ids: vec![id; lanes.devices.len()], lanes: lanes.clone() }
    }

    /// Whether all lanes share it.
    pub fn is_same(&self) -> bool {
        self.ids.windows(2).all(|pair| pair[0] == pair[1])
    }
}

/// The places along the manual axes of an edge.
pub(super) struct ByHand<'m> {
    mesh: &'m Mesh,
    /// Numbers of the axes.
    axes: Vec<usize>,
}

impl<'m> ByHand<'m> {
    pub fn new(edge: &'m ManualEdge, meshes: &'m Meshes) -> Result<ByHand<'m>> {
        let first = edge.shardings.first();
        let name = &first.ok_or_else(|| Error::invalid_argument("a manual computation without shardings"))?.mesh;
        let mesh = match name {
            MeshName::Inline(mesh) => mesh,
            MeshName::Named(name) => {
                let mesh = meshes.0.get(name);
                mesh.ok_or_else(|| Error::invalid_argument(format!("there is no mesh {name}")))?
            }
        };
        mesh.device_count()?;
        let number = |name: &String| mesh.axes.iter().position(|(axis, _)| axis == name);
        let axes: Option<Vec<usize>> = edge.manual_axes.iter().map(number).collect();
        let axes = axes.ok_or_else(|| Error::invalid_argument("the mesh has not all of the manual axes"))?;
        Ok(ByHand { mesh, axes })
    }

    /// Places of the lanes inside of one that is around, in the order of the lanes; other axes are at `around`.
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

    /// The lanes inside.
    pub fn inside(&self, outer: &Rc<Lanes>) -> Result<Rc<Lanes>> {
        let mut devices = Vec::new();
        for &device in &outer.devices {
            // The first device stands for all of a program that nothing is done by hand in yet.
            let place = match outer.outer {
                Some(_) => self.mesh.place(device)?,
                None => Some(vec![0; self.mesh.axes.len()]),
            };
            let place =
                place.ok_or_else(|| Error::unimplemented("manual computations over meshes of other devices"))?;
            devices.extend(self.places(&place).iter().map(|place| self.mesh.device(place)));
        }
        Ok(Rc::new(Lanes { devices, outer: Some(outer.clone()) }))
    }

    /// For each lane inside of one around: the grid of the parts that a sharding gives, and the place of its own.
    pub fn parts(&self, sharding: &TensorSharding) -> Result<Vec<(Vec<usize>, Vec<usize>)>> {
        let is_manual = |axis: &&MeshAxis| self.axes.iter().any(|&number| self.mesh.axes[number].0 == axis.name);
        if sharding.unreduced.iter().any(|axis| is_manual(&axis)) {
            return Err(Error::unimplemented("parts that are to be summed at a manual computation"));
        }
        let parts = |place: Vec<usize>| {
            let (mut grid, mut own) = (Vec::new(), Vec::new());
            for dim in &sharding.dims {
                let (mut count, mut number) = (1, 0);
                for axis in dim.axes.iter().filter(is_manual) {
                    let size = self.mesh.size_of(axis)?;
                    number = number * size + self.mesh.number_along(axis, &place)?;
                    count *= size;
                }
                grid.push(count);
                own.push(number);
            }
            Ok((grid, own))
        };
        self.places(&vec![0; self.mesh.axes.len()]).into_iter().map(parts).collect()
    }
}
