//! Entry of a joined program: assembles arguments from their parts, and cuts results into parts.

use std::rc::Rc;

use xla_hlo::ops::{AfterAll, Parameter};
use xla_hlo::sdy::{self, Meshes, TensorSharding, target};
use xla_hlo::{
    ArrayShape, CompId, Computation, Error, InputOutputAlias, InstrId, LeafSharding, Module, Op, ParameterLeaf,
    ProgramShape, Result, ResultExt, Shape, VerifiedModule,
};

use super::lanes::{Lanes, Value};
use super::propagate;
use super::rewrite::Rewriter;
use super::spread::{Spread, Tiles};
use crate::program_form::{ProgramForm, program_form};
use crate::rewrite::builder::Inserter;

/// A program for one device that does the work of a program for several devices.
#[derive(Debug)]
pub struct Joined {
    /// The program. Its parameters are the parts of the arguments, and its results are a tuple of the parts of the
    /// results.
    pub module: VerifiedModule,
    /// Location of the parts of each array among the parameters, depth first.
    pub arguments: Vec<Spread>,
    /// Location of the parts of each array of the result, depth first.
    pub results: Vec<Spread>,
    /// Parameters and result from the view of each device.
    pub shape: ProgramShape,
    /// Number of devices.
    pub devices: usize,
}

/// Joins the replicas and partitions of a program into one program that does the work of all of them. Tokens carry no
/// data and are removed from its parameters and results.
///
/// Returns `Error::Unimplemented` if the work cannot be separated by device: collectives of partitions on
/// global values, ragged and asynchronous collectives, arrays at the entry that cannot be cut into equal parts.
pub fn join_devices(module: &VerifiedModule) -> Result<Joined> {
    join(module, program_form(module) == ProgramForm::PerDevice)
}

/// Joins a program whose values are those of one device, such as the [local form](crate::Localized) of a program on
/// global values. Its shardings are ignored. Errors are those of [`join_devices`].
pub fn join_each_device(module: &VerifiedModule) -> Result<Joined> {
    join(module, true)
}

fn join(module: &VerifiedModule, is_per_device: bool) -> Result<Joined> {
    let [replicas, partitions] = device_counts(module)?;
    let mut rewriter = Rewriter::new(module, is_per_device)?;
    let at = rewriter.target.add(Computation::new(module.entry().name()));
    // Values are global in a program of partitions, where the first partition represents all of a replica, unless each
    // device has its own values.
    let each = if rewriter.is_per_device { 1 } else { partitions };
    let devices = (0..replicas * partitions).step_by(each).map(|device| device as i64).collect();
    let lanes = Rc::new(Lanes { devices, outer: None });
    let entry = Entry { source: module, at, lanes, replicas: replicas * partitions / each, partitions: each };
    let meshes = rewriter.meshes.clone();
    let asked = module.entry_layout();
    let mut inputs = Leaves::default();
    let parameters = module.entry().parameters().iter().zip(&asked.parameters);
    let parameters = parameters.map(|(&id, asked)| entry.parameter(&mut rewriter, &meshes, id, asked, &mut inputs));
    let parameters = parameters.collect::<Result<Vec<_>>>()?;
    let root = rewriter.write(at, module.entry_id(), &parameters, &entry.lanes)?;
    let mut outputs = Leaves::default();
    entry.results(&mut rewriter, &meshes, &root, &asked.result, &mut outputs)?;
    let root = Inserter::new(&mut rewriter.target, at).tuple(&outputs.ids)?;
    let mut target = rewriter.target;
    target.computation_mut(at).set_root(root);
    target.set_entry(at);
    set_header(module, &mut target, &inputs, &outputs);
    let shape = ProgramShape {
        parameters: regrouped(&asked.parameters, &inputs.local),
        result: regrouped(std::slice::from_ref(&asked.result), &outputs.local).remove(0),
    };
    let module = VerifiedModule::new(target).context(|| "the program for all of its devices")?;
    Ok(Joined { module, arguments: inputs.spreads, results: outputs.spreads, shape, devices: replicas * partitions })
}

/// Maximum number of devices that one program may represent.
const MAX_DEVICES: usize = 1 << 10;

/// Returns the number of replicas and of partitions. Splits have an entry for each device.
pub(crate) fn device_counts(module: &Module) -> Result<[usize; 2]> {
    let count = |count: u64| usize::try_from(count.max(1)).ok().filter(|&count| count <= MAX_DEVICES);
    let attributes = module.attributes();
    match (count(attributes.replica_count), count(attributes.num_partitions)) {
        (Some(replicas), Some(partitions)) if replicas * partitions <= MAX_DEVICES => Ok([replicas, partitions]),
        _ => Err(Error::resource_exhausted(format!(
            "the program is for more than {MAX_DEVICES} devices, the limit for programs on global values"
        ))),
    }
}

/// The entry under construction.
struct Entry<'m> {
    source: &'m Module,
    at: CompId,
    lanes: Rc<Lanes>,
    /// Number of lanes: replicas, or devices if each has its own values.
    replicas: usize,
    /// Number of devices that share the values of a lane.
    partitions: usize,
}

/// Arrays of parameters or results.
#[derive(Default)]
struct Leaves {
    /// Parts: parameters of the new program, or results.
    ids: Vec<InstrId>,
    /// Shapes of the parts with the requested layouts.
    shapes: Vec<Shape>,
    spreads: Vec<Spread>,
    /// Parameter number (0 for the result), path, and the numbers of the parts.
    places: Vec<(usize, Vec<usize>, std::ops::Range<usize>)>,
    /// Part of one device, or the token, for each leaf.
    local: Vec<Shape>,
    /// Number of parameters or results so far.
    count: usize,
}

impl Entry<'_> {
    /// Returns the sharding of an array as tiles, and its parts; replicated if no sharding is stated.
    fn tiles(
        &self,
        meshes: &Meshes,
        stated: Option<&TensorSharding>,
        shape: &ArrayShape,
    ) -> Result<(LeafSharding, Tiles)> {
        let reduction = stated.map(|stated| stated.reduction).unwrap_or_default();
        let sharding = stated.map_or_else(|| Ok(LeafSharding::default()), |stated| in_tiles(meshes, stated))?;
        let tiles = Tiles::new(&sharding, reduction, shape, self.partitions)?;
        Ok((sharding, tiles))
    }

    /// Records an array and its parts.
    fn spread(&self, leaves: &mut Leaves, path: Vec<usize>, sharding: LeafSharding, tiles: &Tiles, asked: &ArrayShape) {
        let first = leaves.shapes.len();
        let count = tiles.grid.count();
        let local = Shape::Array(tiles.grid.part_of(asked));
        leaves.shapes.extend(vec![local.clone(); self.replicas * count]);
        let parts = (0..self.replicas).flat_map(|replica| tiles.of_partition.iter().map(move |&part| (replica, part)));
        let parts = parts.map(|(replica, part)| first + replica * count + part).collect();
        leaves.spreads.push(Spread { sharding, parts });
        leaves.places.push((leaves.count, path, first..leaves.shapes.len()));
        leaves.local.push(local);
    }

    /// Rebuilds a parameter of the old program from the parts that are parameters of the new one.
    fn parameter(
        &self,
        rewriter: &mut Rewriter<'_>,
        meshes: &Meshes,
        id: InstrId,
        asked: &Shape,
        leaves: &mut Leaves,
    ) -> Result<Value> {
        let name = self.source.entry()[id].name();
        // Shardings of a program on values of one device describe the whole arrays, which the program does not have.
        let stated =
            if rewriter.is_per_device { None } else { sdy::shardings(self.source, self.source.entry_id(), id)? };
        let mut arrays: Vec<Vec<InstrId>> = vec![Vec::new(); self.replicas];
        for (number, (path, leaf)) in asked.leaves().into_iter().enumerate() {
            let mut at = Inserter::new(&mut rewriter.target, self.at);
            let Shape::Array(array) = leaf else {
                let token = at.add(AfterAll, [])?;
                arrays.iter_mut().for_each(|arrays| arrays.push(token));
                leaves.local.push(leaf.clone());
                continue;
            };
            let sharding = stated.as_ref().and_then(|stated| stated.get(number).or(stated.first()));
            let tiles = self.tiles(meshes, sharding, array);
            let (sharding, tiles) = tiles.context(|| format!("parameter %{name}"))?;
            let own = Shape::Array(tiles.grid.part_of(array).with_layout(None));
            self.spread(leaves, path, sharding, &tiles, array);
            for arrays in &mut arrays {
                let mut parts = Vec::with_capacity(tiles.grid.count());
                for _ in 0..tiles.grid.count() {
                    parts.push(at.add_as(Parameter { number: leaves.ids.len() }, own.clone(), [])?);
                    leaves.ids.extend(parts.last());
                }
                arrays.push(tiles.grid.whole(&mut at, parts)?);
            }
        }
        leaves.count += 1;
        let mut at = Inserter::new(&mut rewriter.target, self.at);
        let ids = arrays.into_iter().map(|arrays| grouped(&mut at, asked, &mut arrays.into_iter()));
        Ok(Value { ids: ids.collect::<Result<_>>()?, lanes: self.lanes.clone() })
    }

    fn results(
        &self,
        rewriter: &mut Rewriter<'_>,
        meshes: &Meshes,
        root: &Value,
        asked: &Shape,
        leaves: &mut Leaves,
    ) -> Result<()> {
        let (stated, derived) = match rewriter.is_per_device {
            true => (Vec::new(), Vec::new()),
            false => (result_shardings(self.source)?, propagate::of_results(self.source, meshes)?),
        };
        let may_choose = &self.source.attributes().allow_spmd_sharding_propagation_to_output;
        for (number, (path, leaf)) in asked.leaves().into_iter().enumerate() {
            let Shape::Array(array) = leaf else {
                leaves.local.push(leaf.clone());
                continue;
            };
            // A single flag applies to all results.
            let is_free = may_choose.get(number).or(may_choose.first()).copied().unwrap_or_default();
            let stated = stated.get(number).and_then(Option::as_ref).filter(|stated| !is_free || !is_open(stated));
            let derived = derived.get(number).and_then(Option::as_ref).filter(|_| is_free);
            let sharding = stated.or(derived);
            let tiles = self.tiles(meshes, sharding, array);
            let (sharding, tiles) = tiles.context(|| format!("result {number}"))?;
            self.spread(leaves, path.clone(), sharding, &tiles, array);
            let mut at = Inserter::new(&mut rewriter.target, self.at);
            for &id in &root.ids {
                let x = path.iter().try_fold(id, |id, &index| at.get(id, index))?;
                for number in 0..tiles.grid.count() {
                    leaves.ids.push(tiles.grid.part(&mut at, x, number)?);
                }
            }
        }
        Ok(())
    }
}

/// Whether a sharding leaves all dimensions open.
pub(crate) fn is_open(sharding: &TensorSharding) -> bool {
    !sharding.dims.is_empty() && sharding.dims.iter().all(|dim| dim.is_open && dim.axes.is_empty())
}

/// Converts a sharding to tiles of devices.
pub(crate) fn in_tiles(meshes: &Meshes, sharding: &TensorSharding) -> Result<LeafSharding> {
    sdy::tiles(sharding, meshes.get(&sharding.mesh)?)
}

/// Returns the shardings that are stated for the leaves of the result.
pub(crate) fn result_shardings(module: &Module) -> Result<Vec<Option<TensorSharding>>> {
    let (entry, root) = (module.entry(), module.entry().root());
    let leaves = entry.result_shape().leaves();
    if let Some(stated) = sdy::shardings(module, module.entry_id(), root)?
        && (stated.len() == leaves.len())
    {
        return Ok(stated.into_iter().map(Some).collect());
    }
    let stated = |path: &Vec<usize>| {
        let is_tuple = matches!(entry[root].op(), Op::Tuple(_));
        let leaf = match path[..] {
            [index] if is_tuple => entry[root].operand(index),
            [] => root,
            _ => return Ok(None),
        };
        let list = sdy::shardings(module, module.entry_id(), leaf)?.unwrap_or_default();
        let is_end = matches!(entry[leaf].op(), Op::CustomCall(call) if call.target == target::FUNCTION_RESULT);
        Ok(list.into_iter().next().filter(|_| is_end || !matches!(entry[leaf].op(), Op::Tuple(_))))
    };
    leaves.iter().map(|(path, _)| stated(path)).collect()
}

/// Builds a value of that shape from arrays and tokens in depth-first order.
fn grouped(at: &mut Inserter<'_>, shape: &Shape, leaves: &mut dyn Iterator<Item = InstrId>) -> Result<InstrId> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|element| grouped(at, element, leaves)).collect::<Result<Vec<_>>>()?;
            at.tuple(&elements)
        }
        _ => leaves.next().ok_or_else(|| Error::internal("a parameter has fewer leaves than its shape")),
    }
}

/// Replaces the leaves of shapes.
pub(crate) fn regrouped(shapes: &[Shape], leaves: &[Shape]) -> Vec<Shape> {
    fn one(shape: &Shape, leaves: &mut std::slice::Iter<'_, Shape>) -> Shape {
        match shape {
            Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(|element| one(element, leaves)).collect()),
            other => leaves.next().unwrap_or(other).clone(),
        }
    }
    let mut leaves = leaves.iter();
    shapes.iter().map(|shape| one(shape, &mut leaves)).collect()
}

/// Sets the header of a program for one device: layouts, aliases and donations refer to the parts.
fn set_header(source: &Module, target: &mut Module, inputs: &Leaves, outputs: &Leaves) {
    let mut attributes = source.attributes().clone();
    let layout = ProgramShape { parameters: inputs.shapes.clone(), result: Shape::Tuple(outputs.shapes.clone()) };
    attributes.entry_computation_layout = Some(layout);
    let input = |leaf: &ParameterLeaf| {
        let place = inputs.places.iter().find(|(number, path, _)| (*number, path) == (leaf.parameter, &leaf.path));
        place.map(|(_, _, parts)| parts.clone())
    };
    let output =
        |path: &Vec<usize>| outputs.places.iter().find(|(_, of, _)| of == path).map(|(_, _, parts)| parts.clone());
    let leaf = |number: usize| ParameterLeaf { parameter: number, path: Vec::new() };
    let mut aliases = Vec::new();
    for alias in &source.attributes().input_output_alias {
        let (Some(from), Some(to)) = (input(&alias.parameter), output(&alias.output)) else { continue };
        // Arrays with different splits cannot share memory.
        let alike = from.clone().zip(to.clone()).all(|(from, to)| inputs.shapes[from] == outputs.shapes[to]);
        if from.len() == to.len() && alike {
            let alias = |(from, to): (usize, usize)| InputOutputAlias {
                output: vec![to],
                parameter: leaf(from),
                must_alias: alias.must_alias,
            };
            aliases.extend(from.zip(to).map(alias));
        }
    }
    attributes.input_output_alias = aliases;
    let donors = source.attributes().buffer_donors.iter().filter_map(input);
    attributes.buffer_donors = donors.flatten().map(leaf).collect();
    attributes.replica_count = 1;
    attributes.num_partitions = 1;
    attributes.is_scheduled = false;
    attributes.allow_spmd_sharding_propagation_to_parameters.clear();
    attributes.allow_spmd_sharding_propagation_to_output.clear();
    attributes.frontend_attributes.remove(sdy::attribute::MESHES);
    *target.attributes_mut() = attributes;
}
