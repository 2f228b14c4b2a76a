//! Meshes: grids of devices with named axes, and the parts of axes.

use std::collections::HashMap;

use crate::{Error, Result, linear_index, multi_index};

/// Greatest number of devices in a program; groups and tiles list them one by one.
pub(crate) const MAX_DEVICES: usize = 1 << 20;

/// A grid of devices with named axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mesh {
    /// Names and sizes, major first.
    pub axes: Vec<(String, usize)>,
    /// Devices in the order of the grid; empty for 0, 1, ...
    pub device_ids: Vec<i64>,
}

/// An axis of a mesh, or the part of one between its `before` outer and its inner parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// The axis.
    pub name: String,
    /// `(before)size`; absent for the whole axis.
    pub part: Option<(usize, usize)>,
}

/// A piece of an axis that no reference to the axis cuts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeshPart {
    axis: usize,
    before: usize,
    /// Devices along it.
    pub size: usize,
}

impl Mesh {
    /// Number of devices: the product of the sizes.
    ///
    /// `Error::ResourceExhausted` beyond 2^20, `Error::InvalidArgument` where the list of devices has another length.
    pub fn device_count(&self) -> Result<usize> {
        let count = product(&self.sizes())?;
        if !self.device_ids.is_empty() && self.device_ids.len() != count {
            return Err(Error::invalid_argument(format!(
                "the mesh has {count} devices and {} device_ids",
                self.device_ids.len()
            )));
        }
        Ok(count)
    }

    /// The axes, cut wherever one of these references begins or ends.
    pub(crate) fn parts(&self, references: &[&MeshAxis]) -> Result<Vec<MeshPart>> {
        let mut parts = Vec::new();
        for (number, (name, whole)) in self.axes.iter().enumerate() {
            let mut cuts = vec![1, *whole];
            for axis in references.iter().filter(|a| a.name == *name) {
                let (_, before, size) = self.range(axis)?;
                cuts.extend([before, before * size]);
            }
            cuts.sort_unstable();
            cuts.dedup();
            if *whole <= 1 {
                parts.push(MeshPart { axis: number, before: 1, size: *whole });
            }
            for pair in cuts.windows(2).filter(|_| *whole > 1) {
                if !pair[1].is_multiple_of(pair[0]) {
                    return Err(Error::invalid_argument(format!("parts of axis '{name}' overlap")));
                }
                parts.push(MeshPart { axis: number, before: pair[0], size: pair[1] / pair[0] });
            }
        }
        Ok(parts)
    }

    /// Numbers of the parts that a reference names, major first.
    pub(crate) fn parts_of(&self, parts: &[MeshPart], axis: &MeshAxis) -> Result<Vec<usize>> {
        let (number, before, size) = self.range(axis)?;
        let is_inside = |p: &MeshPart| p.axis == number && p.before >= before && p.before * p.size <= before * size;
        Ok(parts.iter().enumerate().filter(|(_, part)| is_inside(part)).map(|(i, _)| i).collect())
    }

    /// Devices with the parts brought into `order`, row major.
    pub(crate) fn devices(&self, parts: &[MeshPart], order: &[usize]) -> Vec<i64> {
        let dims: Vec<usize> = parts.iter().map(|part| part.size).collect();
        let mut devices = transposed_iota(&dims, order);
        if !self.device_ids.is_empty() {
            // The numbers are below the product of the sizes, which is how many ids there are.
            devices.iter_mut().for_each(|d| *d = self.device_ids[*d as usize]);
        }
        devices
    }

    /// Names of the axes along which devices differ in nothing but their places along `axes` of another mesh.
    ///
    /// `Error::Unimplemented` where an axis goes along some of `axes` and along others.
    pub fn axes_along(&self, other: &Mesh, axes: &[String]) -> Result<Vec<String>> {
        let (own, theirs) = (self.places()?, other.places()?);
        let mut found = Vec::new();
        for (number, (name, _)) in self.axes.iter().enumerate() {
            // Devices next to each other along this axis, all others places being the first one.
            let along: Vec<i64> = own
                .iter()
                .filter(|(_, place)| place.iter().enumerate().all(|(axis, &at)| axis == number || at == 0))
                .map(|(&device, _)| device)
                .collect();
            let places: Option<Vec<&Vec<usize>>> = along.iter().map(|device| theirs.get(device)).collect();
            let places = places.ok_or_else(|| Error::invalid_argument("two meshes of different devices"))?;
            let differs = |axis: usize| places.iter().any(|place| place[axis] != places[0][axis]);
            let is_one_of = |axis: usize| axes.contains(&other.axes[axis].0);
            let differing: Vec<bool> = (0..other.axes.len()).filter(|&axis| differs(axis)).map(is_one_of).collect();
            match (differing.contains(&true), differing.contains(&false)) {
                (true, true) => {
                    return Err(Error::unimplemented(format!("axis '{name}', of which a part is handled by hand")));
                }
                (true, false) => found.push(name.clone()),
                (false, _) => {}
            }
        }
        Ok(found)
    }

    /// The place of each device on the axes.
    fn places(&self) -> Result<HashMap<i64, Vec<usize>>> {
        let (count, sizes) = (self.device_count()?, self.sizes());
        Ok((0..count).map(|n| (self.numbered(n), multi_index(&sizes, n))).collect())
    }

    /// The device at a place, which has one number for each axis.
    pub fn device(&self, place: &[usize]) -> i64 {
        self.numbered(linear_index(&self.sizes(), place))
    }

    /// The place of a device, if it is one of the mesh.
    pub fn place(&self, device: i64) -> Result<Option<Vec<usize>>> {
        let number = (0..self.device_count()?).find(|&n| self.numbered(n) == device);
        Ok(number.map(|n| multi_index(&self.sizes(), n)))
    }

    fn sizes(&self) -> Vec<usize> {
        self.axes.iter().map(|(_, size)| *size).collect()
    }

    /// The device of that number in the order of the grid.
    fn numbered(&self, n: usize) -> i64 {
        self.device_ids.get(n).copied().unwrap_or(n as i64)
    }

    /// The number of the device at a place along an axis or a part of one.
    pub fn number_along(&self, axis: &MeshAxis, place: &[usize]) -> Result<usize> {
        let (number, before, size) = self.range(axis)?;
        let whole = self.axes[number].1;
        Ok(place[number] / (whole / (before * size)) % size)
    }

    /// Number of devices along an axis or a part of one.
    pub fn size_of(&self, axis: &MeshAxis) -> Result<usize> {
        self.range(axis).map(|(_, _, size)| size)
    }

    /// Number, outer parts and size of the axis or part that `axis` names.
    fn range(&self, axis: &MeshAxis) -> Result<(usize, usize, usize)> {
        let number = self.axes.iter().position(|(name, _)| *name == axis.name);
        let number = number.ok_or_else(|| Error::invalid_argument(format!("the mesh has no axis '{}'", axis.name)))?;
        let whole = self.axes[number].1;
        let (before, size) = axis.part.unwrap_or((1, whole));
        let inner = before.checked_mul(size).filter(|&n| n > 0 && whole.is_multiple_of(n));
        if inner.is_none() {
            return Err(Error::invalid_argument(format!(
                "axis '{}' of size {whole} has no part ({before}){size}",
                axis.name
            )));
        }
        Ok((number, before, size))
    }
}

/// The product of the sizes, at most [`MAX_DEVICES`].
pub(crate) fn product(dims: &[usize]) -> Result<usize> {
    let product = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MAX_DEVICES);
    product.ok_or_else(|| Error::resource_exhausted(format!("a mesh or a list of more than {MAX_DEVICES} devices")))
}

/// The numbers 0, 1, ... in the shape `dims`, with dimensions brought into `order`, row major.
pub(crate) fn transposed_iota(dims: &[usize], order: &[usize]) -> Vec<i64> {
    let row_major: Vec<usize> = (0..dims.len()).rev().collect();
    let strides = crate::shape::strides(dims, &row_major);
    let mut numbers = vec![0i64];
    for &d in order {
        let step = strides[d] as i64;
        numbers = numbers.iter().flat_map(|n| (0..dims[d] as i64).map(move |i| n + i * step)).collect();
    }
    numbers
}
