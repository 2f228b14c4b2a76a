//! Entry of a program of each device: parts of parameters, parts of results, header.

use xla_hlo::ops::Parameter;
use xla_hlo::sdy;
use xla_hlo::{
    ArrayShape, Computation, Error, InputOutputAlias, InstrId, LeafSharding, Module, Op, ProgramShape, Result,
    ResultExt, Shape, VerifiedModule,
};

use super::place::{Place, Split, Value};
use super::required::{Requirement, requirements};
use super::rewrite::Rewriter;
use crate::join::entry::{is_open, regrouped, result_shardings};

/// Program that each device runs on its own parts of the arguments.
#[derive(Debug)]
pub struct Localized {
    /// The program. Arguments and results are the parts of one device.
    pub module: VerifiedModule,
    /// Sharding of each array of the arguments, depth first.
    pub arguments: Vec<LeafSharding>,
    /// Sharding of each array of the result, depth first.
    pub results: Vec<LeafSharding>,
}

/// Converts a program on global values to a program of each device, if each device can compute its part of each value
/// from its parts of the operands: values enter and leave manual computations over all axes, and other operations keep
/// the dimensions that are split. Supports loops and branches that all devices take together, and Shardy's and GSPMD's
/// spelling of manual computations.
///
/// Returns `Error::Unimplemented` for a program that needs a partitioner.
pub fn localize(module: &VerifiedModule) -> Result<Localized> {
    search(module, false)
}

/// Converts a program on global values to a program of each device, as [`localize`] does. Where the devices must
/// communicate, partial values are reduced, and other values are gathered. If an operation can keep the parts of one
/// operand, only the other operands are gathered; otherwise every device computes the whole result. Each device needs
/// the memory of gathered values.
///
/// Returns `Error::Unimplemented` for effects outside of manual computations, for manual computations over some of the
/// axes, and for parts of different sizes.
pub fn localize_by_gathers(module: &VerifiedModule) -> Result<Localized> {
    search(module, true)
}

fn search(module: &VerifiedModule, gathers: bool) -> Result<Localized> {
    let all = requirements(module)?;
    let chosen = with_parameters(module, &all, gathers);
    if chosen.is_ok() || all.is_empty() {
        return chosen;
    }
    match with_parameters(module, &[], gathers) {
        Ok(best) => {
            let mut search = Search { module, gathers, kept: Vec::new(), best, attempts: 0 };
            search.add(&all);
            Ok(search.best)
        }
        Err(_) => chosen,
    }
}

/// Maximum number of sets of requirements to try.
const MAX_ATTEMPTS: usize = 32;

/// Search for a large set of requirements that a program can meet.
struct Search<'m> {
    module: &'m VerifiedModule,
    gathers: bool,
    /// Requirements that the program meets.
    kept: Vec<Requirement>,
    /// Program that meets them.
    best: Localized,
    /// Number of sets that were tried.
    attempts: usize,
}

impl Search<'_> {
    /// Adds some of the requirements of a list that cannot be met together with those that are kept.
    fn add(&mut self, list: &[Requirement]) {
        let (first, second) = list.split_at(list.len() / 2);
        if first.is_empty() {
            return;
        }
        let is_first_met = self.try_adding(first);
        if !is_first_met {
            self.add(first);
        }
        // After the first half, the second one completes a set that cannot be met.
        if is_first_met || !self.try_adding(second) {
            self.add(second);
        }
    }

    /// Adds all requirements of a list if the program can meet them. Returns whether it can.
    fn try_adding(&mut self, list: &[Requirement]) -> bool {
        if self.attempts == MAX_ATTEMPTS {
            return false;
        }
        self.attempts += 1;
        let all = [&self.kept, list].concat();
        let Ok(found) = with_parameters(self.module, &all, self.gathers) else { return false };
        (self.kept, self.best) = (all, found);
        true
    }
}

/// Converts a program. Parameters without a sharding are split as required, or are replicated.
fn with_parameters(module: &VerifiedModule, required: &[Requirement], gathers: bool) -> Result<Localized> {
    let mut rewriter = Rewriter::new(module, Computation::new(module.entry().name()), gathers)?;
    let asked = module.entry_layout();
    let entry = module.entry();
    let mut arguments = Arrays::default();
    let parameters = entry.parameters().iter().zip(&asked.parameters).map(|(&id, asked)| {
        let value = parameter(&mut rewriter, id, asked, required, &mut arguments);
        value.context(|| format!("parameter %{}", entry[id].name()))
    });
    let parameters = parameters.collect::<Result<Vec<_>>>()?;
    let root = rewriter.computation(module.entry_id(), &parameters)?;
    let (places, results) = results(&rewriter, &root, &asked.result)?;
    let root = rewriter.placed(&root, &asked.result, &places)?;
    let layout = ProgramShape {
        parameters: regrouped(&asked.parameters, &arguments.shapes),
        result: regrouped(std::slice::from_ref(&asked.result), &results.shapes).remove(0),
    };
    let mut target = rewriter.finish(root)?;
    set_header(module, &mut target, layout)?;
    let module = VerifiedModule::new(target).context(|| "the program of each device")?;
    Ok(Localized { module, arguments: arguments.shardings, results: results.shardings })
}

/// Arrays and tokens of parameters or results.
#[derive(Default)]
struct Arrays {
    /// Shapes of one device, with tokens.
    shapes: Vec<Shape>,
    /// Shardings of the arrays.
    shardings: Vec<LeafSharding>,
}

impl Arrays {
    fn push(&mut self, split: &Split, global: &ArrayShape) {
        self.shapes.push(Shape::Array(split.tiles.grid.part_of(global)));
        self.shardings.push(split.sharding.clone());
    }
}

/// Adds a parameter for the parts that a device has of a parameter.
fn parameter(
    rewriter: &mut Rewriter<'_>,
    id: InstrId,
    asked: &Shape,
    required: &[Requirement],
    arrays: &mut Arrays,
) -> Result<Value> {
    let module = rewriter.source;
    let Op::Parameter(Parameter { number }) = *module.entry()[id].op() else {
        return Err(Error::internal("a parameter of the entry is another operation"));
    };
    let stated = sdy::shardings(module, module.entry_id(), id)?;
    let (mut places, first) = (Vec::new(), arrays.shapes.len());
    for (leaf, (_, shape)) in asked.leaves().into_iter().enumerate() {
        let Shape::Array(array) = shape else {
            arrays.shapes.push(shape.clone());
            places.push(Place::Same);
            continue;
        };
        let required = required.iter().find(|of| (of.parameter, of.leaf) == (number, leaf));
        let sharding = stated.as_ref().and_then(|stated| stated.get(leaf).or(stated.first()));
        let split = rewriter.split(sharding.or(required.map(|of| &of.sharding)), array)?;
        arrays.push(&split, array);
        places.push(Place::Part(split));
    }
    let shape = regrouped(std::slice::from_ref(asked), &arrays.shapes[first..]).remove(0).without_layout();
    let mut at = rewriter.inserter();
    let own = at.add_as(Parameter { number }, shape, [])?;
    at.graph_mut().rename(own, module.entry()[id].name());
    Ok(Value { id: own, places: places.into() })
}

/// Returns the places that the results must have: the stated ones, or their own where the program leaves them open.
fn results(rewriter: &Rewriter<'_>, root: &Value, asked: &Shape) -> Result<(Vec<Place>, Arrays)> {
    let module = rewriter.source;
    let stated = result_shardings(module)?;
    let may_choose = &module.attributes().allow_spmd_sharding_propagation_to_output;
    let (mut places, mut arrays) = (Vec::with_capacity(root.places.len()), Arrays::default());
    for (number, ((_, leaf), place)) in asked.leaves().into_iter().zip(root.places.iter()).enumerate() {
        let Shape::Array(array) = leaf else {
            arrays.shapes.push(leaf.clone());
            places.push(place.clone());
            continue;
        };
        // A single flag applies to all results.
        let is_free = may_choose.get(number).or(may_choose.first()).copied().unwrap_or_default();
        let stated = stated.get(number).and_then(Option::as_ref).filter(|stated| !is_free || !is_open(stated));
        let wanted = rewriter.split(stated, array)?;
        let split = match place {
            Place::Part(split) if *split == wanted || is_free && stated.is_none() => split,
            place if place.is_whole() => &wanted,
            Place::Part(_) if rewriter.gathers => &wanted,
            _ => {
                return Err(Error::unimplemented(format!("result {number} is split in another way than it is stated")));
            }
        };
        arrays.push(split, array);
        places.push(Place::Part(split.clone()));
    }
    Ok((places, arrays))
}

/// Sets the header: layouts and aliases refer to the parts.
fn set_header(source: &Module, target: &mut Module, layout: ProgramShape) -> Result<()> {
    let mut attributes = source.attributes().clone();
    let is_possible = |alias: &InputOutputAlias| {
        let parameter = layout.parameters.get(alias.parameter.parameter);
        parameter.and_then(|shape| shape.subshape(&alias.parameter.path)) == layout.result.subshape(&alias.output)
    };
    if attributes.input_output_alias.iter().any(|alias| alias.must_alias && !is_possible(alias)) {
        return Err(Error::unimplemented("an argument and the result in its memory are split in different ways"));
    }
    attributes.input_output_alias.retain(is_possible);
    attributes.entry_computation_layout = Some(layout);
    attributes.is_scheduled = false;
    attributes.allow_spmd_sharding_propagation_to_parameters.clear();
    attributes.allow_spmd_sharding_propagation_to_output.clear();
    attributes.frontend_attributes.remove(sdy::attribute::MESHES);
    *target.attributes_mut() = attributes;
    Ok(())
}
