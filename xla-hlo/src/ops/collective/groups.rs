//! Replica groups: the attribute `replica_groups` in its three forms.

use crate::sdy::{Mesh, MeshAxis, product, transposed_iota};
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind};
use crate::{Error, Result};

/// Disjoint groups of devices. For most operations the order within a group matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// Lists of ids, `{{0,2},{1,3}}`; `{}` is one group of all participants.
    Listed(Vec<Vec<i64>>),
    /// Transposed iota, `[2,4]<=[4,2]T(1,0)`.
    Iota(IotaGroups),
    /// Mesh axes, `mesh['x'=2,'y'=4] {'x'}`.
    Mesh(MeshGroups),
}

/// The numbers 0, 1, ... in shape `reshape`, transposed, and then split into rows of `size` numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IotaGroups {
    /// Number of groups.
    pub count: usize,
    /// Number of devices of each group.
    pub size: usize,
    /// Shape of the numbers before transposition.
    pub reshape: Vec<usize>,
    /// Dimensions of `reshape` in their transposed order; empty for the identity.
    pub transpose: Vec<usize>,
}

/// Groups along mesh axes: devices whose coordinates differ only along `along` form one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MeshGroups {
    /// The mesh of devices.
    pub mesh: Mesh,
    /// Mesh axes along which groups extend, from major to minor.
    pub along: Vec<MeshAxis>,
}

impl Default for ReplicaGroups {
    fn default() -> ReplicaGroups {
        ReplicaGroups::Listed(Vec::new())
    }
}

impl ReplicaGroups {
    /// Whether this is one group of all participants.
    pub fn is_everyone(&self) -> bool {
        matches!(self, ReplicaGroups::Listed(groups) if groups.is_empty())
    }

    /// Returns the explicit list of groups. The error describes an inconsistent iota or mesh.
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
        self.mesh.device_count()?;
        let parts = self.mesh.parts(&self.along.iter().collect::<Vec<_>>())?;
        let mut inside = Vec::new();
        for axis in &self.along {
            inside.extend(self.mesh.parts_of(&parts, axis)?);
        }
        let mut order: Vec<usize> = (0..parts.len()).filter(|i| !inside.contains(i)).collect();
        order.extend(&inside);
        if order.len() != parts.len() {
            return Err(Error::invalid_argument("replica_groups names a part of a mesh axis twice"));
        }
        let size = inside.iter().map(|&i| parts[i].size).product();
        Ok(rows(&self.mesh.devices(&parts, &order), size))
    }
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
    Ok(MeshGroups { mesh: Mesh { axes, device_ids }, along })
}

fn write_mesh(groups: &MeshGroups, w: &mut AttributeWriter<'_>) {
    let mesh = &groups.mesh;
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
    w.join(&groups.along, ",", |w, axis| {
        write_axis(&axis.name, w);
        if let Some((before, size)) = axis.part {
            w.display(format_args!(":({before}){size}"));
        }
    });
    w.push("}");
}

/// Writes the name of an axis in single quotes, as XLA does, or in double quotes if it needs escapes.
fn write_axis(name: &str, w: &mut AttributeWriter<'_>) {
    if name.contains(|c: char| c == '\'' || c == '\\' || c.is_control()) {
        w.quoted(name);
    } else {
        w.display(format_args!("'{name}'"));
    }
}
