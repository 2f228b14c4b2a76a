//! Shardings in a module: its meshes, the shardings of its values, and the instructions that exist only for sharding.
//!
//! Frontend attributes of Shardy and tiles of GSPMD are read into the same structures.

use super::{ManualAxes, MeshName, Meshes, PerValue, TensorSharding, from_tiles};
use crate::{
    Annotations, CompId, Error, InstrId, Instruction, LeafSharding, Module, Op, Result, ResultExt, Shape, Sharding,
};

/// Names of frontend attributes.
pub mod attribute {
    /// The module's [`Meshes`](super::Meshes).
    pub const MESHES: &str = "xla.sdy.meshes";
    /// Sharding of a parameter, or of an instruction's results.
    pub const SHARDING: &str = "xla.sdy.sharding";
    /// Sharding rule of an operation that Shardy has no built-in rule for.
    pub const SHARDING_RULE: &str = "xla.sdy.sharding_rule";
    /// Shardings of the global operands that become local values.
    pub const IN_SHARDINGS: &str = "xla.sdy.in_shardings";
    /// Shardings of the global results that local values become.
    pub const OUT_SHARDINGS: &str = "xla.sdy.out_shardings";
    /// Axes that local values are split along.
    pub const MANUAL_AXES: &str = "xla.sdy.manual_axes";
    /// Number of a sharding group, `3 : i64`.
    pub const GROUP_ID: &str = "xla.sdy.sharding_group_id";
    /// Direction in which a barrier lets propagation pass, `1 : i32`.
    pub const ALLOWED_DIRECTION: &str = "xla.sdy.allowed_direction";
    /// Present if the custom call is a reshard and not a constraint.
    pub const RESHARD: &str = "xla.sdy.reshard";
}

/// Names of custom call targets.
pub mod target {
    /// Sharding constraint on the operand.
    pub const CONSTRAINT: &str = "Sharding";
    /// Sharding constraint on a result of the function.
    pub const FUNCTION_RESULT: &str = "xla.sdy.FuncResultSharding";
    /// Conversion of global values to the parts on one device.
    pub const GLOBAL_TO_LOCAL: &str = "xla.sdy.GlobalToLocalShape";
    /// Conversion of the parts on one device to global values.
    pub const LOCAL_TO_GLOBAL: &str = "xla.sdy.LocalToGlobalShape";
    /// Member of a group of values that have the same sharding.
    pub const GROUP: &str = "xla.sdy.ShardingGroup";
    /// Barrier to propagation.
    pub const BARRIER: &str = "xla.sdy.PropagationBarrier";
    /// Value that shares its sharding in propagation with the values that flow into it.
    pub const DATA_FLOW_EDGE: &str = "xla.sdy.DataFlowEdge";
    /// GSPMD's spelling of [`GLOBAL_TO_LOCAL`].
    pub const FULL_TO_SHARD: &str = "SPMDFullToShardShape";
    /// GSPMD's spelling of [`LOCAL_TO_GLOBAL`].
    pub const SHARD_TO_FULL: &str = "SPMDShardToFullShape";
}

/// Purpose of an instruction that exists only for sharding.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// The operand must have that sharding.
    Constraint(TensorSharding),
    /// The operand is converted to that sharding, which does not constrain the operand's own sharding.
    Reshard(TensorSharding),
    /// A result of the function must have that sharding.
    FunctionResult(TensorSharding),
    /// The operand has the same sharding as all members of the group.
    Group(i64),
    /// Propagation passes in that direction only.
    Barrier(Direction),
    /// The operand and the values that flow into it have the same sharding.
    DataFlowEdge(Option<TensorSharding>),
    /// The operands are global values, the results are their parts on one device.
    GlobalToLocal(ManualEdge),
    /// The operands are parts on one device, the results are global values.
    LocalToGlobal(ManualEdge),
}

/// Boundary of a computation that handles axes itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ManualEdge {
    /// Shardings of the global values.
    pub shardings: Vec<TensorSharding>,
    /// Axes along which the local values are parts.
    pub manual_axes: Vec<String>,
}

/// Direction in which propagation may pass a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Propagation does not pass.
    None,
    /// From operands to results.
    Forward,
    /// From results to operands.
    Backward,
    /// Propagation passes in both directions.
    Both,
}

/// Returns the meshes of a module; empty if it states none.
pub fn meshes(module: &Module) -> Result<Meshes> {
    match module.attributes().frontend_attributes.get(attribute::MESHES) {
        Some(text) => Meshes::parse(text).context(|| attribute::MESHES.to_string()),
        None => Ok(Meshes::default()),
    }
}

/// Returns the shardings of the leaves of an instruction's result, or `None` if it states none.
pub fn shardings(module: &Module, computation: CompId, id: InstrId) -> Result<Option<Vec<TensorSharding>>> {
    let instruction = &module[computation][id];
    let named = |error: Error| error.context(format!("%{}", instruction.name()));
    if let Some(text) = frontend(instruction, attribute::SHARDING) {
        let is_one = text.trim_start().starts_with("#sdy.sharding<");
        let list =
            if is_one { TensorSharding::parse(text).map(|one| vec![one]) } else { PerValue::parse(text).map(|p| p.0) };
        let mut list = list.map_err(named)?;
        // XLA copies the attributes of a tuple to its elements.
        if let Op::GetTupleElement(element) = instruction.op()
            && frontend(&module[computation][instruction.operand(0)], attribute::SHARDING) == Some(text)
        {
            return Ok((element.index < list.len()).then(|| vec![list.swap_remove(element.index)]));
        }
        return Ok(Some(list));
    }
    let Some(sharding) = instruction.annotations().and_then(|annotations| annotations.sharding.as_ref()) else {
        return Ok(None);
    };
    let leaves = instruction.shape().leaves();
    let of = |(leaf, shape): (&LeafSharding, &Shape)| from_tiles(leaf, rank(shape), devices(module)).map(|(s, _)| s);
    let list = match sharding {
        Sharding::Leaf(leaf) => leaves.iter().map(|(_, shape)| of((leaf, shape))).collect(),
        Sharding::Tuple(list) if list.len() == leaves.len() => {
            list.iter().zip(leaves).map(|(leaf, (_, shape))| of((leaf, shape))).collect()
        }
        Sharding::Tuple(list) => Err(Error::invalid_argument(format!(
            "the number of shardings ({}) differs from the number of leaves ({})",
            list.len(),
            leaves.len()
        ))),
    };
    list.map(Some).map_err(named)
}

/// Returns the purpose of an instruction for sharding; `None` for one that computes.
pub fn role(module: &Module, computation: CompId, id: InstrId) -> Result<Option<Role>> {
    let instruction = &module[computation][id];
    let Op::CustomCall(call) = instruction.op() else { return Ok(None) };
    let named = |error: Error| error.context(format!("%{}, custom call {:?}", instruction.name(), call.target));
    let found = match call.target.as_str() {
        target::CONSTRAINT => {
            let is_reshard = frontend(instruction, attribute::RESHARD).is_some();
            one(module, computation, id).map(if is_reshard { Role::Reshard } else { Role::Constraint })
        }
        target::FUNCTION_RESULT => one(module, computation, id).map(Role::FunctionResult),
        target::GROUP => integer(instruction, attribute::GROUP_ID).map(Role::Group),
        target::BARRIER => direction(instruction).map(Role::Barrier),
        target::DATA_FLOW_EDGE => shardings(module, computation, id)
            .map(|list| Role::DataFlowEdge(list.and_then(|list| list.into_iter().next()))),
        target::GLOBAL_TO_LOCAL => edge(instruction, attribute::IN_SHARDINGS).map(Role::GlobalToLocal),
        target::LOCAL_TO_GLOBAL => edge(instruction, attribute::OUT_SHARDINGS).map(Role::LocalToGlobal),
        target::FULL_TO_SHARD | target::SHARD_TO_FULL => {
            let is_to_local = call.target == target::FULL_TO_SHARD;
            let edge = tiled_edge(module, computation, id, is_to_local);
            edge.map(if is_to_local { Role::GlobalToLocal } else { Role::LocalToGlobal })
        }
        _ => return Ok(None),
    };
    found.map(Some).map_err(named)
}

fn frontend<'m>(instruction: &'m Instruction, name: &str) -> Option<&'m str> {
    instruction.annotations()?.frontend_attributes.get(name).map(String::as_str)
}

fn missing(name: &str) -> Error {
    Error::invalid_argument(format!("frontend attribute {name} is missing"))
}

fn rank(shape: &Shape) -> usize {
    shape.as_array().map_or(0, crate::ArrayShape::rank)
}

fn devices(module: &Module) -> usize {
    let attributes = module.attributes();
    let count = attributes.num_partitions.max(1).saturating_mul(attributes.replica_count.max(1));
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the sharding of an instruction with one result.
fn one(module: &Module, computation: CompId, id: InstrId) -> Result<TensorSharding> {
    let list = shardings(module, computation, id)?.unwrap_or_default();
    let count = list.len();
    let mut list = list.into_iter();
    match (list.next(), count) {
        (Some(one), 1) => Ok(one),
        _ => Err(Error::invalid_argument(format!("one sharding is needed, found {count}"))),
    }
}

/// Reads an integer attribute such as `3 : i64`.
fn integer(instruction: &Instruction, name: &str) -> Result<i64> {
    let text = frontend(instruction, name).ok_or_else(|| missing(name))?;
    let number = text.split(':').next().unwrap_or_default().trim().parse();
    number.map_err(|_| Error::invalid_argument(format!("frontend attribute {name} is not an integer: {text:?}")))
}

fn direction(instruction: &Instruction) -> Result<Direction> {
    match integer(instruction, attribute::ALLOWED_DIRECTION)? {
        0 => Ok(Direction::None),
        1 => Ok(Direction::Forward),
        2 => Ok(Direction::Backward),
        3 => Ok(Direction::Both),
        other => {
            Err(Error::invalid_argument(format!("the direction of propagation must be from 0 to 3, it is {other}")))
        }
    }
}

fn edge(instruction: &Instruction, name: &str) -> Result<ManualEdge> {
    let attribute = |name: &str| frontend(instruction, name).ok_or_else(|| missing(name));
    let shardings = PerValue::parse(attribute(name)?)?.0;
    let manual_axes = ManualAxes::parse(attribute(attribute::MANUAL_AXES)?)?.0;
    Ok(ManualEdge { shardings, manual_axes })
}

/// Reads a boundary in GSPMD's form. The global value has its tiles; the grid of the local value marks the dimensions
/// that the program handles itself.
fn tiled_edge(module: &Module, computation: CompId, id: InstrId, is_to_local: bool) -> Result<ManualEdge> {
    let &[operand] = module[computation][id].operands() else {
        return Err(Error::invalid_argument("one operand is needed"));
    };
    let (global, local) = if is_to_local { (operand, id) } else { (id, operand) };
    let tiles = |id: InstrId| {
        let instruction = &module[computation][id];
        let sharding = instruction.annotations().and_then(Annotations::leaf_sharding);
        let sharding = sharding.ok_or_else(|| Error::invalid_argument("the operand or the result has no sharding"))?;
        from_tiles(sharding, rank(instruction.shape()), devices(module))
    };
    let (sharding, _) = tiles(global)?;
    let (of_local, by_hand) = tiles(local)?;
    let (MeshName::Inline(global), MeshName::Inline(local)) = (&sharding.mesh, &of_local.mesh) else {
        return Err(Error::internal("the mesh of a tiled sharding is not inline"));
    };
    // An unsplit value is unsplit over any mesh, so use the mesh of the local value.
    if sharding.dims.iter().all(|dim| dim.axes.is_empty()) && sharding.unreduced.is_empty() && !by_hand.is_empty() {
        let sharding = TensorSharding { mesh: of_local.mesh.clone(), ..sharding };
        return Ok(ManualEdge { shardings: vec![sharding], manual_axes: by_hand });
    }
    let manual_axes = global.axes_along(local, &by_hand)?;
    Ok(ManualEdge { shardings: vec![sharding], manual_axes })
}
