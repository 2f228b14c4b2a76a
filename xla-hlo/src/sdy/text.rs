//! Shardy's text form, `#sdy.sharding<@mesh, [{"x"}, {"y", ?}p1]>`, which XLA stores in frontend attributes.

use std::collections::BTreeMap;
use std::fmt;

use super::{DimSharding, Mesh, MeshAxis, MeshName, Reduction, TensorSharding};
use crate::text::{MlirReader, mlir_name, mlir_quoted};
use crate::{Error, Result};

/// Meshes of a module by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meshes(pub BTreeMap<String, Mesh>);

/// Shardings of several values: `#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerValue(pub Vec<TensorSharding>);

/// Axes that a computation handles itself: `#sdy<manual_axes{"x", "y"}>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualAxes(pub Vec<String>);

impl Meshes {
    /// Returns the mesh with this name, or the inline mesh; an error if the module does not define it.
    pub fn get<'a>(&'a self, name: &'a MeshName) -> Result<&'a Mesh> {
        match name {
            MeshName::Inline(mesh) => Ok(mesh),
            MeshName::Named(name) => {
                self.0.get(name).ok_or_else(|| Error::invalid_argument(format!("the module has no mesh {name}")))
            }
        }
    }

    /// Parses `{mesh = #sdy.mesh<["x"=4]>}`.
    pub fn parse(text: &str) -> Result<Meshes> {
        whole(text, |r| {
            let mut meshes = BTreeMap::new();
            r.expect("{")?;
            r.list("}", |r| {
                let name = r.name()?;
                r.expect("=")?;
                r.expect("#sdy.mesh")?;
                let mesh = mesh(r)?;
                match meshes.insert(name.clone(), mesh) {
                    None => Ok(()),
                    Some(_) => Err(r.wrong(&format!("mesh {name}"), "is defined twice")),
                }
            })?;
            Ok(Meshes(meshes))
        })
    }
}

impl Mesh {
    /// Parses `#sdy.mesh<["x"=4], device_ids=[3, 2, 1, 0]>`, or the part in angle brackets.
    pub fn parse(text: &str) -> Result<Mesh> {
        whole(text, |r| {
            r.accept("#sdy.mesh");
            mesh(r)
        })
    }
}

impl TensorSharding {
    /// Parses `#sdy.sharding<@mesh, [{"x"}]>`, or the part in angle brackets.
    pub fn parse(text: &str) -> Result<TensorSharding> {
        whole(text, |r| {
            r.accept("#sdy.sharding");
            sharding(r)
        })
    }
}

impl PerValue {
    /// Parses `#sdy.sharding_per_value<[...]>`, or the part in angle brackets.
    pub fn parse(text: &str) -> Result<PerValue> {
        whole(text, |r| {
            r.accept("#sdy.sharding_per_value");
            r.expect("<")?;
            r.expect("[")?;
            let list = list(r, "]", sharding)?;
            r.expect(">")?;
            Ok(PerValue(list))
        })
    }
}

impl ManualAxes {
    /// Parses `#sdy<manual_axes{"x"}>`, or the part in braces.
    pub fn parse(text: &str) -> Result<ManualAxes> {
        whole(text, |r| {
            let is_long = r.accept("#sdy<manual_axes");
            r.expect("{")?;
            let axes = list(r, "}", MlirReader::string)?;
            if is_long {
                r.expect(">")?;
            }
            Ok(ManualAxes(axes))
        })
    }
}

fn whole<T>(text: &str, read: impl FnOnce(&mut MlirReader<'_>) -> Result<T>) -> Result<T> {
    let mut reader = MlirReader::new(text, "a sharding");
    let value = read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

fn list<'t, T>(
    r: &mut MlirReader<'t>,
    end: &str,
    mut item: impl FnMut(&mut MlirReader<'t>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut items = Vec::new();
    r.list(end, |r| {
        items.push(item(r)?);
        Ok(())
    })?;
    Ok(items)
}

/// Parses `<["x"=4, "y"=2], device_ids=[1, 0]>`.
fn mesh(r: &mut MlirReader<'_>) -> Result<Mesh> {
    r.expect("<")?;
    r.expect("[")?;
    let axes = list(r, "]", |r| {
        let name = r.string()?;
        r.expect("=")?;
        Ok((name, r.integer("the size of the axis")?))
    })?;
    let mut device_ids = Vec::new();
    if r.accept(",") {
        r.expect("device_ids")?;
        r.expect("=")?;
        r.expect("[")?;
        device_ids = list(r, "]", |r| r.integer("a device"))?;
    }
    r.expect(">")?;
    Ok(Mesh { axes, device_ids })
}

/// Parses `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced=max{"z"}>`.
fn sharding(r: &mut MlirReader<'_>) -> Result<TensorSharding> {
    r.expect("<")?;
    let name = if r.accept("@") {
        MeshName::Named(r.name()?)
    } else {
        r.expect("mesh")?;
        MeshName::Inline(mesh(r)?)
    };
    r.expect(",")?;
    r.expect("[")?;
    let dims = list(r, "]", dimension)?;
    let (mut replicated, mut unreduced, mut reduction) = (Vec::new(), Vec::new(), Reduction::Sum);
    while r.accept(",") {
        if r.accept("replicated") {
            r.expect("=")?;
            r.expect("{")?;
            replicated = list(r, "}", axis)?;
        } else {
            r.expect("unreduced")?;
            r.expect("=")?;
            for (word, kind) in [("sum", Reduction::Sum), ("max", Reduction::Max), ("min", Reduction::Min)] {
                if r.accept(word) {
                    reduction = kind;
                }
            }
            r.expect("{")?;
            unreduced = list(r, "}", axis)?;
        }
    }
    r.expect(">")?;
    Ok(TensorSharding { mesh: name, dims, replicated, unreduced, reduction })
}

/// Parses `{"x", "y":(1)2, ?}p1`.
fn dimension(r: &mut MlirReader<'_>) -> Result<DimSharding> {
    r.expect("{")?;
    let mut dim = DimSharding::default();
    r.list("}", |r| {
        if dim.is_open {
            return Err(r.expected("`}`"));
        }
        if r.accept("?") {
            dim.is_open = true;
        } else {
            dim.axes.push(axis(r)?);
        }
        Ok(())
    })?;
    if r.accept("p") {
        dim.priority = Some(r.integer("a priority")?);
    }
    Ok(dim)
}

fn axis(r: &mut MlirReader<'_>) -> Result<MeshAxis> {
    let name = r.string()?;
    if !r.accept(":") {
        return Ok(MeshAxis { name, part: None });
    }
    r.expect("(")?;
    let before = r.integer("the size of the outer parts")?;
    r.expect(")")?;
    Ok(MeshAxis { name, part: Some((before, r.integer("the size of the part")?)) })
}

/// Comma-separated items.
struct Joined<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Meshes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meshes: Vec<String> =
            self.0.iter().map(|(name, mesh)| format!("{} = #sdy.mesh{mesh}", mlir_name(name))).collect();
        write!(f, "{{{}}}", Joined(&meshes))
    }
}

/// Prints the part in angle brackets; `#sdy.mesh` precedes it.
impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> = self.axes.iter().map(|(name, size)| format!("{}={size}", mlir_quoted(name))).collect();
        write!(f, "<[{}]", Joined(&axes))?;
        if !self.device_ids.is_empty() {
            write!(f, ", device_ids=[{}]", Joined(&self.device_ids))?;
        }
        write!(f, ">")
    }
}

impl fmt::Display for MeshAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", mlir_quoted(&self.name))?;
        match self.part {
            Some((before, size)) => write!(f, ":({before}){size}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for DimSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.is_open && !self.axes.is_empty() { ", " } else { "" };
        write!(f, "{{{}{separator}{}}}", Joined(&self.axes), if self.is_open { "?" } else { "" })?;
        self.priority.map_or(Ok(()), |priority| write!(f, "p{priority}"))
    }
}

/// Prints the part in angle brackets; `#sdy.sharding` precedes it.
impl fmt::Display for TensorSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mesh {
            MeshName::Named(name) => write!(f, "<@{}", mlir_name(name))?,
            MeshName::Inline(mesh) => write!(f, "<mesh{mesh}")?,
        }
        write!(f, ", [{}]", Joined(&self.dims))?;
        if !self.replicated.is_empty() {
            write!(f, ", replicated={{{}}}", Joined(&self.replicated))?;
        }
        if !self.unreduced.is_empty() {
            let reduction = match self.reduction {
                Reduction::Sum => "",
                Reduction::Max => "max",
                Reduction::Min => "min",
            };
            write!(f, ", unreduced={reduction}{{{}}}", Joined(&self.unreduced))?;
        }
        write!(f, ">")
    }
}

impl fmt::Display for PerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#sdy.sharding_per_value<[{}]>", Joined(&self.0))
    }
}

impl fmt::Display for ManualAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> = self.0.iter().map(|axis| mlir_quoted(axis)).collect();
        write!(f, "#sdy<manual_axes{{{}}}>", Joined(&axes))
    }
}
