//! Replica groups: `replica_groups` in its three forms.

use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind};
use crate::{Error, Result};

/// Greatest number of devices in a program; groups list them one by one.
const MAX_DEVICES: usize = 1 << 20;

/// Disjoint groups of devices; the order within a group matters to most operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// `{{0,2},{1,3}}`; `{}` is one group of everyone.
    Listed(Vec<Vec<i64>>),
    /// `[2,4]<=[4,2]T(1,0)`.
    Iota(IotaGroups),
    /// `mesh['x'=2,'y'=4] {'x'}`.
    Mesh(MeshGroups),
}

/// Numbers 0, 1, ... in the shape `reshape`, transposed, in rows of `size`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IotaGroups {
    /// Number of groups.
    pub count: usize,
    /// Devices of each.
    pub size: usize,
    /// Shape of the numbers before transposition.
    pub reshape: Vec<usize>,
    /// Dimensions of `reshape` in their new order; empty for the old one.
    pub transpose: Vec<usize>,
}

/// A grid of devices with named axes; devices that differ only along `along` are a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshGroups {
    /// Names and sizes, major first.
    pub axes: Vec<(String, usize)>,
    /// Devices in the order of the grid; empty for 0, 1, ...
    pub device_ids: Vec<i64>,
    /// Axes that groups run along, major first.
    pub along: Vec<MeshAxis>,
}

/// An axis of a mesh, or the part of one between its `before` outer and its inner parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshAxis {
    /// The axis.
    pub name: String,
    /// `(before)size`; absent for the whole axis.
    pub part: Option<(usize, usize)>,
}

impl Default for ReplicaGroups {
    fn default() -> ReplicaGroups {
        ReplicaGroups::Listed(Vec::new())
    }
}

impl ReplicaGroups {
    /// Whether it is one group of everyone, whoever that is.
    pub fn is_everyone(&self) -> bool {
        matches!(self, ReplicaGroups::Listed(groups) if groups.is_empty())
    }

    /// The groups one by one. The error names the fault of a grid of devices.
    pub fn listed(&self) -> Result<Vec<Vec<i64>>> {
        match self {
            ReplicaGroups::Listed(groups) => Ok(groups.clone()),
            ReplicaGroups::Iota(iota) => iota.listed(),
            ReplicaGroups::Mesh(mesh) => mesh.listed(),
        }
    }
}

impl IotaGroups {
    fn listed(&self) -> Result<Vec<Vec<i64>>> {
        let count = product(&self.reshape)?;
        let is_permutation = {
            let mut sorted = self.transpose.clone();
            sorted.sort_unstable();
            sorted.is_empty() || sorted.into_iter().eq(0..self.reshape.len())
        };
        if product(&[self.count, self.size])? != count || !is_permutation {
            return Err(Error::invalid_argument(format!(
                "replica_groups puts {} groups of {} devices on a grid of {:?} transposed by {:?}",
                self.count, self.size, self.reshape, self.transpose
            )));
        }
        let identity: Vec<usize> = (0..self.reshape.len()).collect();
        let order = if self.transpose.is_empty() { &identity } else { &self.transpose };
        let devices = transposed_iota(&self.reshape, order);
        Ok(rows(&devices, self.size))
    }
}

impl MeshGroups {
    fn listed(&self) -> Result<Vec<Vec<i64>>> {
        let sizes: Vec<usize> = self.axes.iter().map(|(_, size)| *size).collect();
        let count = product(&sizes)?;
        if !self.device_ids.is_empty() && self.device_ids.len() != count {
            return Err(Error::invalid_argument(format!(
                "the mesh of replica_groups has {count} devices and {} device_ids",
                self.device_ids.len()
            )));
        }
        let parts = self.parts()?;
        let mut inside = Vec::new();
        for axis in &self.along {
            let (number, before, size) = self.range(axis)?;
            let of_axis = parts
                .iter()
                .enumerate()
                .filter(|(_, p)| p.axis == number && p.before >= before && p.before * p.size <= before * size);
            inside.extend(of_axis.map(|(i, _)| i));
        }
        let mut order: Vec<usize> = (0..parts.len()).filter(|i| !inside.contains(i)).collect();
        order.extend(&inside);
        if order.len() != parts.len() {
            return Err(Error::invalid_argument("replica_groups names a part of a mesh axis twice"));
        }
        let dims: Vec<usize> = parts.iter().map(|p| p.size).collect();
        let size = inside.iter().map(|&i| dims[i]).product();
        let mut devices = transposed_iota(&dims, &order);
        if !self.device_ids.is_empty() {
            // The numbers are below the product of the sizes, which is how many ids there are.
            devices.iter_mut().for_each(|d| *d = self.device_ids[*d as usize]);
        }
        Ok(rows(&devices, size))
    }

    /// Number, outer parts and size of the axis or part that `axis` names.
    fn range(&self, axis: &MeshAxis) -> Result<(usize, usize, usize)> {
        let number = self.axes.iter().position(|(name, _)| *name == axis.name);
        let number = number.ok_or_else(|| {
            Error::invalid_argument(format!("the mesh of replica_groups has no axis '{}'", axis.name))
        })?;
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

    /// The axes, cut wherever a part of one begins or ends.
    fn parts(&self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (number, (name, whole)) in self.axes.iter().enumerate() {
            let mut cuts = vec![1, *whole];
            for axis in self.along.iter().filter(|a| a.name == *name) {
                let (_, before, size) = self.range(axis)?;
                cuts.extend([before, before * size]);
            }
            cuts.sort_unstable();
            cuts.dedup();
            if *whole <= 1 {
                parts.push(Part { axis: number, before: 1, size: *whole });
            }
            for pair in cuts.windows(2).filter(|_| *whole > 1) {
                if !pair[1].is_multiple_of(pair[0]) {
                    return Err(Error::invalid_argument(format!("parts of axis '{name}' overlap")));
                }
                parts.push(Part { axis: number, before: pair[0], size: pair[1] / pair[0] });
            }
        }
        Ok(parts)
    }
}

/// A piece of a mesh axis that no group cuts.
struct Part {
    axis: usize,
    before: usize,
    size: usize,
}

fn product(dims: &[usize]) -> Result<usize> {
    let product = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MAX_DEVICES);
    product.ok_or_else(|| Error::resource_exhausted(format!("replica_groups names more than {MAX_DEVICES} devices")))
}

/// The numbers 0, 1, ... in the shape `dims`, with dimensions brought into `order`, row major.
fn transposed_iota(dims: &[usize], order: &[usize]) -> Vec<i64> {
    let row_major: Vec<usize> = (0..dims.len()).rev().collect();
    let strides = crate::shape::strides(dims, &row_major);
    let mut numbers = vec![0i64];
    for &d in order {
        let step = strides[d] as i64;
        numbers = numbers.iter().flat_map(|n| (0..dims[d] as i64).map(move |i| n + i * step)).collect();
    }
    numbers
}

fn rows(devices: &[i64], size: usize) -> Vec<Vec<i64>> {
    if size == 0 { Vec::new() } else { devices.chunks(size).map(<[i64]>::to_vec).collect() }
}

impl AttributeValue for ReplicaGroups {
    const WHAT: &'static str = "groups of devices such as {{0,1},{2,3}} or [2,2]<=[4]";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        match cursor.kind() {
            TokenKind::LeftBracket => read_iota(cursor).map(ReplicaGroups::Iota),
            TokenKind::Word => read_mesh(cursor).map(ReplicaGroups::Mesh),
            _ => {
                let groups = cursor.braced(|c| c.braced(AttributeCursor::integer))?;
                Ok(ReplicaGroups::Listed(groups))
            }
        }
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        match self {
            ReplicaGroups::Listed(groups) => groups.write(w),
            ReplicaGroups::Iota(iota) => write_iota(iota, w),
            ReplicaGroups::Mesh(mesh) => write_mesh(mesh, w),
        }
    }
}

impl AttributeValue for Vec<Vec<i64>> {
    const WHAT: &'static str = "a list of lists such as {{0,1},{2,3}}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(|c| c.braced(AttributeCursor::integer))
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ",", |w, list| list.write(w));
        w.push("}");
    }
}

fn read_iota(cursor: &mut AttributeCursor<'_>) -> Result<IotaGroups> {
    let sizes = cursor.list((TokenKind::LeftBracket, "`[`"), TokenKind::RightBracket, AttributeCursor::unsigned)?;
    let [count, size] = sizes[..] else {
        return Err(Error::invalid_argument(format!("groups are [count,size], found {} numbers", sizes.len())));
    };
    cursor.expect(TokenKind::LessEqual, "`<=`")?;
    let reshape = cursor.list((TokenKind::LeftBracket, "`[`"), TokenKind::RightBracket, AttributeCursor::unsigned)?;
    let mut transpose = Vec::new();
    if cursor.kind() == TokenKind::Word {
        cursor.choice(&[("T", ())])?;
        transpose = cursor.list((TokenKind::LeftParen, "`(`"), TokenKind::RightParen, AttributeCursor::unsigned)?;
    }
    Ok(IotaGroups { count, size, reshape, transpose })
}

fn write_iota(iota: &IotaGroups, w: &mut AttributeWriter<'_>) {
    w.display(format_args!("[{},{}]<=[", iota.count, iota.size));
    w.join(&iota.reshape, ",", |w, d| w.display(d));
    w.push("]");
    if !iota.transpose.is_empty() {
        w.push("T(");
        w.join(&iota.transpose, ",", |w, d| w.display(d));
        w.push(")");
    }
}

fn read_mesh(cursor: &mut AttributeCursor<'_>) -> Result<MeshGroups> {
    cursor.choice(&[("mesh", ())])?;
    cursor.expect(TokenKind::LeftBracket, "`[` and axes such as 'x'=2")?;
    let (mut axes, mut device_ids) = (Vec::new(), Vec::new());
    while !cursor.accept(TokenKind::RightBracket) {
        if cursor.kind() == TokenKind::AttributeName {
            let name = cursor.expect(TokenKind::AttributeName, "`device_ids=`")?;
            if name != "device_ids" {
                return Err(cursor.unexpected("an axis such as 'x'=2, or device_ids=(...)"));
            }
            device_ids = cursor.list((TokenKind::LeftParen, "`(`"), TokenKind::RightParen, AttributeCursor::integer)?;
        } else {
            let name = cursor.string("an axis such as 'x'=2")?;
            cursor.expect(TokenKind::Equals, "`=` and the size of the axis")?;
            axes.push((name, cursor.unsigned()?));
        }
        if cursor.kind() != TokenKind::RightBracket {
            cursor.expect(TokenKind::Comma, "`,` or `]`")?;
        }
    }
    let along = cursor.braced(|c| {
        let name = c.string("an axis such as 'x'")?;
        if !c.accept(TokenKind::Colon) {
            return Ok(MeshAxis { name, part: None });
        }
        c.expect(TokenKind::LeftParen, "`(` and the size of the outer parts")?;
        let before = c.unsigned()?;
        c.expect(TokenKind::RightParen, "`)`")?;
        Ok(MeshAxis { name, part: Some((before, c.unsigned()?)) })
    })?;
    Ok(MeshGroups { axes, device_ids, along })
}

fn write_mesh(mesh: &MeshGroups, w: &mut AttributeWriter<'_>) {
    w.push("mesh[");
    w.join(&mesh.axes, ",", |w, (name, size)| {
        write_axis(name, w);
        w.display(format_args!("={size}"));
    });
    if !mesh.device_ids.is_empty() {
        w.push(", device_ids=(");
        w.join(&mesh.device_ids, ",", |w, id| w.display(id));
        w.push(")");
    }
    w.push("] {");
    w.join(&mesh.along, ",", |w, axis| {
        write_axis(&axis.name, w);
        if let Some((before, size)) = axis.part {
            w.display(format_args!(":({before}){size}"));
        }
    });
    w.push("}");
}

/// The name of an axis in single quotes, as XLA writes it; in double ones where it needs escapes.
fn write_axis(name: &str, w: &mut AttributeWriter<'_>) {
    if name.contains(|c: char| c == '\'' || c == '\\' || c.is_control()) {
        w.quoted(name);
    } else {
        w.display(format_args!("'{name}'"));
    }
}
