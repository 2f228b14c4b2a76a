//! Lowering of functions: functions to computations, `main` to the entry, and argument and result attributes to the
//! module header.

use std::collections::HashMap;

use xla_hlo::ops::{CustomCall, GetTupleElement};
use xla_hlo::sdy::{attribute, target};
use xla_hlo::{CompId, Error, InputOutputAlias, InstrId, LeafSharding, Module, ParameterLeaf, Result, Sharding};

use super::annotations::{self, Dictionary};
use super::attributes::{Attributes, lookup};
use super::call::stem;
use super::context::{Argument, Lowering, Refinement};
use super::dictionary::dictionaries;
use super::entry::entry_layout;
use crate::ir::{self, Attribute, OpId, ValueId};
use crate::refine::{ArgumentShapes, dynamic_functions};

/// Lowers all functions that are reachable from `main`.
pub(super) fn lower(program: &ir::Module, shapes: &ArgumentShapes) -> Result<Module> {
    let top = program.top.ok_or_else(|| Error::invalid_argument("the program has no module"))?;
    let header = Attributes { module: program, op: top };
    let name = header.get("sym_name").map(|_| header.string("sym_name")).transpose()?;
    let functions = functions(program, top)?;
    let mut lowering = Lowering::new(program, name.as_deref().unwrap_or("main"), super::operation::lower);
    lowering.meshes = super::sharding::meshes(program, top)?;
    let mut frontend_attributes = annotations::frontend_attributes(program, &header)?;
    let main = *functions.get("main").ok_or_else(|| Error::invalid_argument("the program has no function main"))?;
    let order = in_order(program, &functions, main)?;
    let arguments = arguments(&lowering, main, shapes)?;
    let mut called = Vec::with_capacity(order.len());
    for (name, op) in &order {
        called.push((&**name, *op, callees(program, *op)?));
    }
    let dynamic = dynamic_functions(program, called);
    if dynamic.contains("main") {
        // Functions are lowered on demand, at their calls.
        lowering.refinement = Some(Refinement::new(functions, dynamic, function));
        let id = function(&mut lowering, "main", main, &arguments)?;
        lowering.functions.insert("main".to_string(), id);
    } else {
        for (name, op) in order {
            let arguments = if op == main { &arguments[..] } else { &[] };
            let id = function(&mut lowering, &name, op, arguments)?;
            lowering.functions.insert(name, id);
        }
    }
    let entry = lowering.functions["main"];
    if !lowering.meshes.0.is_empty() {
        frontend_attributes.insert(attribute::MESHES.to_string(), lowering.meshes.to_string());
    }
    let mut module = lowering.hlo;
    module.set_entry(entry);
    let count = |name| header.get(name).map(|_| header.index(name)).transpose();
    let (replicas, partitions) = (count("mhlo.num_replicas")?, count("mhlo.num_partitions")?);
    let aliases = aliases(program, main)?;
    let layout = entry_layout(program, [top, main], &module)?;
    let stack = lowering.stack.tables;
    let attributes = module.attributes_mut();
    attributes.stack = stack;
    attributes.entry_computation_layout = layout;
    attributes.frontend_attributes = frontend_attributes;
    attributes.replica_count = replicas.unwrap_or(0) as u64;
    attributes.num_partitions = partitions.unwrap_or(0) as u64;
    (attributes.input_output_alias, attributes.buffer_donors) = aliases;
    Ok(module)
}

/// Returns the functions of a module, by name.
fn functions(program: &ir::Module, top: OpId) -> Result<HashMap<String, OpId>> {
    let mut functions = HashMap::new();
    for &region in &program.operations[top].regions {
        for &block in &program.regions[region].blocks {
            for &op in &program.blocks[block].operations {
                if stem(program, op).1 == "func" {
                    let name = Attributes { module: program, op }.symbol("sym_name")?;
                    if functions.insert(name.clone(), op).is_some() {
                        return Err(Error::invalid_argument(format!("two functions are called {name}")));
                    }
                }
            }
        }
    }
    Ok(functions)
}

/// Returns the functions that are reachable from `main`, callees first.
fn in_order(program: &ir::Module, functions: &HashMap<String, OpId>, main: OpId) -> Result<Vec<(String, OpId)>> {
    let mut order = Vec::new();
    // Depth-first search: open functions with their remaining callees.
    let mut state: HashMap<String, bool> = HashMap::from([("main".to_string(), false)]);
    let mut stack = vec![("main".to_string(), main, callees(program, main)?)];
    while let Some((name, op, left)) = stack.last_mut() {
        let Some(callee) = left.pop() else {
            state.insert(name.clone(), true);
            order.push((std::mem::take(name), *op));
            stack.pop();
            continue;
        };
        match state.get(&callee) {
            Some(true) => {}
            Some(false) => return Err(Error::invalid_argument(format!("function {callee} calls itself"))),
            None => {
                let op = functions.get(&callee);
                let op = *op.ok_or_else(|| Error::invalid_argument(format!("function {callee} does not exist")))?;
                state.insert(callee.clone(), false);
                let callees = callees(program, op)?;
                stack.push((callee, op, callees));
            }
        }
    }
    Ok(order)
}

/// Returns the names of the functions that a function calls.
fn callees(program: &ir::Module, function: OpId) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut operations = vec![function];
    while let Some(op) = operations.pop() {
        let attributes = Attributes { module: program, op };
        match stem(program, op).1 {
            "call" => names.push(attributes.symbol("callee")?),
            "composite" => names.push(attributes.symbol("decomposition")?),
            "custom_call" => names.extend(super::custom::callees(attributes)?),
            _ => {}
        }
        let blocks = program.operations[op].regions.iter().flat_map(|&region| &program.regions[region].blocks);
        operations.extend(blocks.flat_map(|&block| &program.blocks[block].operations));
    }
    Ok(names)
}

/// Returns the arguments of `main` for the given shapes.
fn arguments(lowering: &Lowering<'_>, main: OpId, shapes: &ArgumentShapes) -> Result<Vec<Argument>> {
    let written = block_arguments(lowering.source, main).iter().map(|&argument| lowering.shape_of(argument));
    let shapes = shapes.of_arguments(written.collect::<Result<Vec<_>>>()?)?;
    Ok(shapes.into_iter().map(|shape| Argument { shape, constant: None }).collect())
}

/// Returns the values of a function's arguments.
fn block_arguments(source: &ir::Module, function: OpId) -> &[ValueId] {
    let blocks = source.operations[function].regions.iter().flat_map(|&region| &source.regions[region].blocks);
    blocks.into_iter().next().map_or(&[][..], |&block| &source.blocks[block].arguments)
}

/// Lowers a function for the arguments `given`, or for its declared types if there are none.
fn function(lowering: &mut Lowering<'_>, name: &str, op: OpId, given: &[Argument]) -> Result<CompId> {
    // The innermost function is the relevant one in an error.
    lowered(lowering, name, op, given).map_err(|error| match error.message().starts_with("function ") {
        true => error,
        false => error.context(format!("function {name}")),
    })
}

fn lowered(lowering: &mut Lowering<'_>, name: &str, op: OpId, given: &[Argument]) -> Result<CompId> {
    let source = lowering.source;
    let &[region] = &source.operations[op].regions[..] else {
        return Err(Error::invalid_argument("a function must have one region"));
    };
    if source.is_declaration(op) {
        return Err(Error::invalid_argument("it is declared without a body, but called; give it a body"));
    }
    lowering.computation(name, |lowering| {
        let arguments = block_arguments(source, op);
        let dictionaries = dictionaries(source, op, "arg_attrs")?;
        let mut parameters = Vec::with_capacity(arguments.len());
        for (i, &argument) in arguments.iter().enumerate() {
            let parameter = match given.get(i) {
                Some(given) => lowering.parameter_of_shape(argument, given.shape.clone())?,
                None => lowering.parameter_of(argument)?,
            };
            if let Some(&dictionary) = dictionaries.get(i) {
                annotate(lowering, parameter, &Dictionary(source, dictionary))?;
            }
            parameters.push(parameter);
        }
        for (parameter, given) in parameters.iter_mut().zip(given) {
            if let Some(constant) = &given.constant {
                *parameter = lowering.constant(constant.clone())?;
            }
        }
        lowering.region(region, &parameters, |lowering, values| results(lowering, op, values))
    })
}

/// Copies the annotations of an argument to its parameter.
fn annotate(lowering: &mut Lowering<'_>, parameter: InstrId, dictionary: &Dictionary<'_>) -> Result<()> {
    let annotated = annotations::of_argument(lowering, dictionary)?;
    lowering.set_frontend_attributes(parameter, annotated.frontend_attributes);
    if let Some(sharding) = annotated.sharding {
        lowering.set_sharding(parameter, sharding);
    }
    Ok(())
}

/// Creates the root of a function that returns `values`. The shardings of results become the root's sharding; Shardy's
/// also become custom calls. If only some results have a sharding, the others are replicated.
fn results(lowering: &mut Lowering<'_>, op: OpId, mut values: Vec<InstrId>) -> Result<InstrId> {
    let source = lowering.source;
    let dictionaries = dictionaries(source, op, "res_attrs")?;
    let mut leaves = vec![LeafSharding::default(); values.len()];
    let mut is_sharded = false;
    for (i, &dictionary) in dictionaries.iter().enumerate().take(values.len()) {
        let (sharding, tiles) = annotations::of_result(lowering, &Dictionary(source, dictionary))?;
        if let Some(sharding) = sharding {
            let op = CustomCall { has_side_effect: true, ..CustomCall::new(target::FUNCTION_RESULT) };
            let shape = lowering.shape(values[i]);
            let annotations = [(attribute::SHARDING, sharding.to_string())];
            values[i] = lowering.add_annotated(op, shape, [values[i]], &annotations)?;
        }
        if let Some(tiles) = tiles {
            leaves[i] = tiles;
            is_sharded = true;
        }
    }
    let is_one = values.len() == 1;
    if is_one && !is_sharded {
        return Ok(values[0]);
    }
    let tuple = lowering.tuple(values)?;
    if !is_sharded {
        return Ok(tuple);
    }
    if !is_one {
        lowering.set_sharding(tuple, Sharding::Tuple(leaves));
        return Ok(tuple);
    }
    // The value may be a parameter or have another sharding, so an element of a tuple gets the result's sharding.
    let root = lowering.infer(GetTupleElement { index: 0 }, [tuple])?;
    lowering.set_sharding(root, Sharding::Leaf(leaves.swap_remove(0)));
    Ok(root)
}

type Aliases = (Vec<InputOutputAlias>, Vec<ParameterLeaf>);

/// Returns the arguments of `main` that alias a result, and those that are donated without a specific result.
fn aliases(program: &ir::Module, main: OpId) -> Result<Aliases> {
    let attributes = Attributes { module: program, op: main };
    let results = match attributes.get("function_type").map(|ty| &program.attributes[ty]) {
        Some(Attribute::Type(ty)) => match &program.types[*ty] {
            ir::Type::Function { results, .. } => results.len(),
            _ => 0,
        },
        _ => 0,
    };
    let (mut aliases, mut donors) = (Vec::new(), Vec::new());
    for (parameter, &dictionary) in dictionaries(program, main, "arg_attrs")?.iter().enumerate() {
        let leaf = ParameterLeaf { parameter, path: Vec::new() };
        if let Some(output) = lookup(program, dictionary, "tf.aliasing_output") {
            let Attribute::Integer { value, .. } = program.attributes[output] else {
                return Err(Error::invalid_argument("tf.aliasing_output must be an integer"));
            };
            let output = usize::try_from(value).ok().filter(|&output| output < results);
            let output =
                output.ok_or_else(|| Error::invalid_argument("tf.aliasing_output is not the number of a result"))?;
            let output = if results == 1 { Vec::new() } else { vec![output] };
            aliases.push(InputOutputAlias { output, parameter: leaf, must_alias: false });
        } else if lookup(program, dictionary, "jax.buffer_donor").is_some() {
            donors.push(leaf);
        }
    }
    Ok((aliases, donors))
}
