//! Parser of Shardy: attributes, in the representation of bytecode, and the pretty forms of its operations.

use xla_hlo::Result;
use xla_hlo::sdy::{ManualAxes, Mesh, MeshAxis, MeshName, PerValue, Reduction, TensorSharding};

use super::operations::Parts;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Name, Sharding};

impl Reader<'_> {
    /// Parses an attribute `#sdy.NAME` after its name, which begins at `start`.
    pub(super) fn sharding_attribute(&mut self, start: usize, name: &str) -> Result<AttrId> {
        let at = self.cursor.offset();
        let text = self.in_angles()?;
        let read = match name {
            "sdy.sharding" => TensorSharding::parse(text).map(|sharding| self.push_sharding(&sharding)),
            "sdy.sharding_per_value" => PerValue::parse(text).map(|list| self.push_per_value(&list)),
            "sdy.mesh" => Mesh::parse(text).map(|mesh| self.push_mesh(&mesh)),
            "sdy" => ManualAxes::parse(&format!("#sdy{text}")).map(|axes| self.push_manual_axes(&axes)),
            "sdy.op_sharding_rule" => {
                let text = format!("#{name}{text}");
                Ok(self.push_string(text.as_bytes()))
            }
            _ => return Err(self.cursor.unimplemented_at(start, format!("attribute #{name} is unknown here"))),
        };
        read.map_err(|error| self.cursor.error_at(at, error.message()))
    }

    /// Returns the text of `<...>`.
    fn in_angles(&mut self) -> Result<&'_ str> {
        let start = self.cursor.offset();
        self.cursor.expect("<")?;
        self.cursor.skip_to_closing_angle()?;
        self.cursor.expect(">")?;
        Ok(self.cursor.since(start))
    }

    fn push_axes(&mut self, axes: &[MeshAxis]) -> Vec<AttrId> {
        let one = |axis: &MeshAxis| {
            let part =
                |(before, size): (usize, usize)| Sharding::SubAxis { pre_size: before as i64, size: size as i64 };
            let sub_axis = axis.part.map(|(before, size)| self.push(Attribute::from(part((before, size)))));
            let name = Name::String(self.module.intern(axis.name.as_bytes()));
            self.push(Attribute::from(Sharding::AxisRef { name, sub_axis }))
        };
        axes.iter().map(one).collect()
    }

    fn push_mesh(&mut self, mesh: &Mesh) -> AttrId {
        let axis = |(name, size): &(String, usize)| {
            let name = Name::String(self.module.intern(name.as_bytes()));
            self.push(Attribute::from(Sharding::MeshAxis { name, size: *size as i64 }))
        };
        let axes = mesh.axes.iter().map(axis).collect();
        self.push(Attribute::from(Sharding::Mesh { axes, device_ids: mesh.device_ids.clone() }))
    }

    fn push_sharding(&mut self, sharding: &TensorSharding) -> AttrId {
        let mesh = match &sharding.mesh {
            MeshName::Named(name) => {
                let name = self.push_string(name.as_bytes());
                self.push(Attribute::Symbol(vec![name]))
            }
            MeshName::Inline(mesh) => self.push_mesh(mesh),
        };
        let mut dims = Vec::with_capacity(sharding.dims.len());
        for dim in &sharding.dims {
            let axes = self.push_axes(&dim.axes);
            let (is_closed, priority) = (!dim.is_open, dim.priority);
            dims.push(self.push(Attribute::from(Sharding::Dimension { axes, is_closed, priority })));
        }
        let replicated = self.push_axes(&sharding.replicated);
        let unreduced = self.push_axes(&sharding.unreduced);
        let reduction = match sharding.reduction {
            Reduction::Sum => 0,
            Reduction::Max => 1,
            Reduction::Min => 2,
        };
        self.push(Attribute::from(Sharding::Tensor { mesh, dims, replicated, unreduced, reduction }))
    }

    fn push_per_value(&mut self, list: &PerValue) -> AttrId {
        let list = list.0.iter().map(|sharding| self.push_sharding(sharding)).collect();
        self.push(Attribute::from(Sharding::PerValue(list)))
    }

    fn push_manual_axes(&mut self, axes: &ManualAxes) -> AttrId {
        let axes = axes.0.iter().map(|axis| self.push_string(axis.as_bytes())).collect();
        self.push(Attribute::from(Sharding::ManualAxes(axes)))
    }

    /// Parses `<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`.
    pub(super) fn mesh_groups(&mut self) -> Result<AttrId> {
        self.cursor.expect("<")?;
        let mesh = if self.cursor.is("mesh_name") { "mesh_name" } else { "mesh" };
        let mesh = self.field(mesh)?;
        self.cursor.expect(",")?;
        let axes = self.elements("axes", Self::axis_ref)?;
        self.cursor.expect(">")?;
        Ok(self.push(Attribute::from(Sharding::ReplicaGroups { mesh, axes })))
    }

    /// Parses `<axes = [<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>`.
    pub(super) fn mesh_of_attributes(&mut self) -> Result<AttrId> {
        self.cursor.expect("<")?;
        let axes = self.elements("axes", Self::mesh_axis)?;
        let device_ids = if self.cursor.eat(",") { Some(self.field("device_ids")?) } else { None };
        self.cursor.expect(">")?;
        Ok(self.push(Attribute::from(Sharding::MeshOfAttributes { axes, device_ids })))
    }

    /// Parses `<name = "x", size = 2>`.
    pub(super) fn mesh_axis(&mut self) -> Result<AttrId> {
        self.cursor.expect("<")?;
        let name = Name::Attribute(self.field("name")?);
        self.cursor.expect(",")?;
        self.cursor.expect("size")?;
        self.cursor.expect("=")?;
        let size = self.cursor.integer("the size of the axis")?;
        self.cursor.expect(">")?;
        Ok(self.push(Attribute::from(Sharding::MeshAxis { name, size })))
    }

    /// Parses `<name = "x", sub_axis_info = (1)2>`.
    pub(super) fn axis_ref(&mut self) -> Result<AttrId> {
        self.cursor.expect("<")?;
        let name = Name::Attribute(self.field("name")?);
        let mut sub_axis = None;
        if self.cursor.eat(",") {
            self.cursor.expect("sub_axis_info")?;
            self.cursor.expect("=")?;
            self.cursor.expect("(")?;
            let pre_size = self.cursor.integer("the size of the outer parts")?;
            self.cursor.expect(")")?;
            let size = self.cursor.integer("the size of the part")?;
            sub_axis = Some(self.push(Attribute::from(Sharding::SubAxis { pre_size, size })));
        }
        self.cursor.expect(">")?;
        Ok(self.push(Attribute::from(Sharding::AxisRef { name, sub_axis })))
    }

    /// Parses `name = [attribute, ...]`, where `element` parses attributes of the form `<...>`.
    fn elements(&mut self, name: &str, element: fn(&mut Self) -> Result<AttrId>) -> Result<AttrId> {
        self.cursor.expect(name)?;
        self.cursor.expect("=")?;
        let list = self.list(["[", "]"], |reader| match reader.cursor.is("<") {
            true => element(reader),
            false => reader.attribute(),
        })?;
        Ok(self.push(Attribute::Array(list)))
    }

    /// Parses `name = attribute`.
    fn field(&mut self, name: &str) -> Result<AttrId> {
        self.cursor.expect(name)?;
        self.cursor.expect("=")?;
        self.attribute()
    }

    /// Parses the pretty form of a Shardy operation; `None` for another operation.
    pub(super) fn shardy(&mut self, name: &str, results: usize) -> Result<Option<Parts>> {
        match name {
            "sdy.manual_computation" => self.manual_computation().map(Some),
            "sdy.named_computation" => self.named_computation().map(Some),
            _ => self.without_body(name, results),
        }
    }

    /// Parses operations without a region. Not inlined, to keep the stack frames of nested regions small.
    #[inline(never)]
    fn without_body(&mut self, name: &str, results: usize) -> Result<Option<Parts>> {
        Ok(Some(match name {
            "sdy.mesh" => self.mesh()?,
            "sdy.sharding_constraint" | "sdy.reshard" => self.sharding_constraint(results)?,
            "sdy.sharding_group" => self.sharding_group()?,
            "sdy.propagation_barrier" => self.propagation_barrier(results)?,
            "sdy.data_flow_edge" => self.data_flow_edge(results)?,
            _ => return Ok(None),
        }))
    }

    /// Parses `@name = <["x"=4]> {attributes}`.
    fn mesh(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        let name = self.symbol_name()?;
        self.set(&mut parts.attributes, "sym_name", name);
        self.cursor.expect("=")?;
        let start = self.cursor.offset();
        let mesh = self.sharding_attribute(start, "sdy.mesh")?;
        self.set(&mut parts.attributes, "mesh", mesh);
        self.attribute_dictionary(&mut parts)?;
        Ok(parts)
    }

    /// Parses `<@mesh, [{"x"}]>`.
    fn sharding(&mut self) -> Result<AttrId> {
        let start = self.cursor.offset();
        self.sharding_attribute(start, "sdy.sharding")
    }

    /// Parses `NAME=[<...>, <...>]`.
    #[inline(never)]
    fn shardings(&mut self, parts: &mut Parts, name: &str) -> Result<()> {
        self.cursor.expect(name)?;
        self.cursor.expect("=")?;
        let list = self.list(["[", "]"], Self::sharding)?;
        let list = self.push(Attribute::from(Sharding::PerValue(list)));
        self.set(&mut parts.attributes, name, list);
        Ok(())
    }

    /// Parses `(%a) in_shardings=[<...>] out_shardings=[<...>] manual_axes={"x"} (%x: type) {body} : (types) -> types`.
    fn manual_computation(&mut self) -> Result<Parts> {
        let parts = self.head_of_manual_computation()?;
        self.body(parts)
    }

    #[inline(never)]
    fn head_of_manual_computation(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(self.list(["(", ")"], Self::value)?);
        for name in ["in_shardings", "out_shardings"] {
            self.shardings(&mut parts, name)?;
        }
        self.cursor.expect("manual_axes")?;
        self.cursor.expect("=")?;
        let axes = self.list(["{", "}"], Self::attribute)?;
        let axes = self.push(Attribute::from(Sharding::ManualAxes(axes)));
        self.set(&mut parts.attributes, "manual_axes", axes);
        Ok(parts)
    }

    /// Parses `<"name">(%a) in_shardings=[<...>] out_shardings=[<...>] (%x: type) {body} : (types) -> types`.
    fn named_computation(&mut self) -> Result<Parts> {
        let parts = self.head_of_named_computation()?;
        self.body(parts)
    }

    #[inline(never)]
    fn head_of_named_computation(&mut self) -> Result<Parts> {
        self.cursor.expect("<")?;
        let name = self.cursor.string("the name of the computation")?;
        let name = self.push_string(&name);
        self.cursor.expect(">")?;
        let mut parts = Parts::new(self.list(["(", ")"], Self::value)?);
        self.set(&mut parts.attributes, "name", name);
        for name in ["in_shardings", "out_shardings"] {
            if self.cursor.is(name) {
                self.shardings(&mut parts, name)?;
            }
        }
        Ok(parts)
    }

    /// Parses `(%x: type) {body} {attributes} : (types) -> types`.
    fn body(&mut self, mut parts: Parts) -> Result<Parts> {
        let arguments = self.arguments()?;
        parts.regions.push(self.region(arguments)?);
        self.attributes_and_signature(parts)
    }

    /// Parses `%a <@mesh, [{"x"}]> : type`.
    fn sharding_constraint(&mut self, results: usize) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        let sharding = self.sharding()?;
        self.set(&mut parts.attributes, "sharding", sharding);
        self.results_behind(parts, results)
    }

    /// Parses `%a group_id=3 : type`, which has no result.
    fn sharding_group(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        self.cursor.expect("group_id")?;
        self.cursor.expect("=")?;
        let group = self.cursor.integer("the number of the group")?;
        let group = self.push_integer(group);
        self.set(&mut parts.attributes, "group_id", group);
        self.results_behind(parts, 0)
    }

    /// Parses `%a allowed_direction=FORWARD : type`.
    fn propagation_barrier(&mut self, results: usize) -> Result<Parts> {
        const DIRECTIONS: [&str; 4] = ["NONE", "FORWARD", "BACKWARD", "BOTH"];
        let mut parts = Parts::new(vec![self.value()?]);
        self.cursor.expect("allowed_direction")?;
        self.cursor.expect("=")?;
        let at = self.cursor.offset();
        let direction = self.cursor.word("a direction")?;
        let Some(direction) = DIRECTIONS.iter().position(|&known| known == direction) else {
            return Err(self.cursor.error_at(at, format!("`{direction}` is not one of {}", DIRECTIONS.join(", "))));
        };
        let direction = self.push_integer(direction as i64);
        self.set(&mut parts.attributes, "allowed_direction", direction);
        self.results_behind(parts, results)
    }

    /// Parses `%a sharding=<@mesh, [{"x"}]> : type`; the sharding is optional.
    fn data_flow_edge(&mut self, results: usize) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        if self.cursor.eat("sharding") {
            self.cursor.expect("=")?;
            let sharding = self.sharding()?;
            self.set(&mut parts.attributes, "sharding", sharding);
        }
        self.results_behind(parts, results)
    }

    /// Parses `{attributes} : types`.
    fn results_behind(&mut self, mut parts: Parts, results: usize) -> Result<Parts> {
        self.attribute_dictionary(&mut parts)?;
        parts.results = self.types_of_results(results)?;
        Ok(parts)
    }
}
