//! Meshes: grids of devices with named axes, and parts of axes.

use std::collections::HashMap;

use super::MeshPart;
use crate::{Error, Result, linear_index, multi_index};

/// Maximum number of devices in a program; groups and tiles list them individually.
pub(crate) const MAX_DEVICES: usize = 1 << 20;

/// Grid of devices with named axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mesh {
    /// Names and sizes of the axes, major first.
    pub axes: Vec<(String, usize)>,
    /// Devices in the order of the grid; empty for 0, 1, ...
    pub device_ids: Vec<i64>,
}

/// Axis of a mesh, or a part of one that is nested between outer and inner parts of the axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// Name of the axis.
    pub name: String,
    /// `(before)size`: the size of the part, after the product of the sizes of all outer parts. `None` for the whole
    /// axis.
    pub part: Option<(usize, usize)>,
}

impl Mesh {
    /// Returns the number of devices: the product of the axis sizes.
    ///
    /// Fails with `Error::ResourceExhausted` beyond 2^20 devices, and with `Error::InvalidArgument` if the list of
    /// devices has another length.
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

    /// Splits the axes at the bounds of all references.
    pub(crate) fn parts(&self, references: &[&MeshAxis]) -> Result<Vec<MeshPart>> {
        let mut parts = Vec::new();
        for (number, (name, whole)) in self.axes.iter().enumerate() {
            let mut cuts = vec![1, *whole];
            for axis in references.iter().filter(|a| a.name == *name) {
                let part = self.part(axis)?;
                cuts.extend([part.before, part.end()]);
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

    /// Returns the indices of the parts that a reference covers, major first.
    pub(crate) fn parts_of(&self, parts: &[MeshPart], axis: &MeshAxis) -> Result<Vec<usize>> {
        let whole = self.part(axis)?;
        Ok(parts.iter().enumerate().filter(|(_, part)| whole.contains(**part)).map(|(i, _)| i).collect())
    }

    /// Returns the devices in row-major order of the grid of `parts` whose dimensions are permuted by `order`.
    pub(crate) fn devices(&self, parts: &[MeshPart], order: &[usize]) -> Vec<i64> {
        let dims: Vec<usize> = parts.iter().map(|part| part.size).collect();
        let mut devices = transposed_iota(&dims, order);
        if !self.device_ids.is_empty() {
            // The numbers are below the product of the sizes, which equals the number of ids.
            devices.iter_mut().for_each(|d| *d = self.device_ids[*d as usize]);
        }
        devices
    }

    /// Returns the names of the axes along which only the positions on `axes` of the mesh `other` change.
    ///
    /// Fails with `Error::Unimplemented` if positions on `axes` and on further axes of `other` change along one axis.
    pub fn axes_along(&self, other: &Mesh, axes: &[String]) -> Result<Vec<String>> {
        let (own, theirs) = (self.places()?, other.places()?);
        let mut found = Vec::new();
        for (number, (name, _)) in self.axes.iter().enumerate() {
            // Devices along this axis; their position on every other axis is 0.
            let along: Vec<i64> = own
                .iter()
                .filter(|(_, place)| place.iter().enumerate().all(|(axis, &at)| axis == number || at == 0))
                .map(|(&device, _)| device)
                .collect();
            let places: Option<Vec<&Vec<usize>>> = along.iter().map(|device| theirs.get(device)).collect();
            let places = places.ok_or_else(|| Error::invalid_argument("the two meshes have different devices"))?;
            let differs = |axis: usize| places.iter().any(|place| place[axis] != places[0][axis]);
            let is_one_of = |axis: usize| axes.contains(&other.axes[axis].0);
            let differing: Vec<bool> = (0..other.axes.len()).filter(|&axis| differs(axis)).map(is_one_of).collect();
            match (differing.contains(&true), differing.contains(&false)) {
                (true, true) => {
                    return Err(Error::unimplemented(format!(
                        "axis '{name}' is partly manual, which is not supported"
                    )));
                }
                (true, false) => found.push(name.clone()),
                (false, _) => {}
            }
        }
        Ok(found)
    }

    /// Returns the position of each device on the axes.
    fn places(&self) -> Result<HashMap<i64, Vec<usize>>> {
        let (count, sizes) = (self.device_count()?, self.sizes());
        Ok((0..count).map(|n| (self.numbered(n), multi_index(&sizes, n))).collect())
    }

    /// Returns the device at a position, which has one number for each axis.
    pub fn device(&self, place: &[usize]) -> i64 {
        self.numbered(linear_index(&self.sizes(), place))
    }

    /// Returns the position of a device; `None` if the mesh does not contain it.
    pub fn place(&self, device: i64) -> Result<Option<Vec<usize>>> {
        let number = (0..self.device_count()?).find(|&n| self.numbered(n) == device);
        Ok(number.map(|n| multi_index(&self.sizes(), n)))
    }

    fn sizes(&self) -> Vec<usize> {
        self.axes.iter().map(|(_, size)| *size).collect()
    }

    /// Returns the device with number `n` in the order of the grid.
    fn numbered(&self, n: usize) -> i64 {
        self.device_ids.get(n).copied().unwrap_or(n as i64)
    }

    /// Returns the position along an axis or a part of one, for a position in the grid.
    pub fn number_along(&self, axis: &MeshAxis, place: &[usize]) -> Result<usize> {
        let part = self.part(axis)?;
        let whole = self.axes[part.axis].1;
        Ok(place[part.axis] / (whole / part.end()) % part.size)
    }

    /// Returns the number of devices along an axis or a part of one.
    pub fn size_of(&self, axis: &MeshAxis) -> Result<usize> {
        self.part(axis).map(|part| part.size)
    }

    /// Resolves a reference to an axis. Fails with `Error::InvalidArgument` if the mesh has no such axis or part.
    pub fn part(&self, axis: &MeshAxis) -> Result<MeshPart> {
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
        Ok(MeshPart { axis: number, before, size })
    }

    /// Returns the reference to a part; inverse of [`Mesh::part`].
    pub fn axis(&self, part: MeshPart) -> MeshAxis {
        let (name, whole) = &self.axes[part.axis];
        let is_whole = part.before == 1 && part.size == *whole;
        MeshAxis { name: name.clone(), part: (!is_whole).then_some((part.before, part.size)) }
    }
}

/// Returns the product of the sizes, at most [`MAX_DEVICES`].
pub(crate) fn product(dims: &[usize]) -> Result<usize> {
    let product = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MAX_DEVICES);
    product.ok_or_else(|| Error::resource_exhausted(format!("a mesh or a list has more than {MAX_DEVICES} devices")))
}

/// Returns the numbers 0, 1, ... of the shape `dims` in row-major order after a transposition by `order`.
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
