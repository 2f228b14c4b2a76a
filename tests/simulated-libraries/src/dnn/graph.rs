//! Values of finalised descriptors: tensors, operations, operation graphs, engine configurations, plans, variant packs.

use std::sync::Arc;

use super::attributes::{
    BACKWARD_DATA, BACKWARD_FILTER, CONVOLUTION, FORWARD, GRAPH, HEURISTIC, OPERATION_POINTWISE, Object, PLAN,
    POINTWISE, TENSOR, VARIANT_PACK,
};
use super::descriptors::{ConvolutionDescriptor, TensorDescriptor, element};
use super::engines::{Engine, HEURISTIC_A, HEURISTIC_B, HEURISTIC_FALLBACK, proposed};
use super::rules::{Convolution, ConvolutionKind, Graph, Step};
use super::{Dnn, Status};
use crate::element::Element;
use crate::refusal::{none, wrong};

/// Value of a finalised descriptor.
#[derive(Clone, Debug)]
pub(super) enum Made {
    Tensor(Arc<TensorDescriptor>),
    Convolution(Arc<ConvolutionDescriptor>),
    Pointwise(Step, Element),
    Operation(Arc<Operation>),
    Graph(Arc<Graph>),
    Heuristic(Vec<Configuration>),
    Configuration(Configuration),
    Engine(Engine),
    Plan(Plan),
    Pack(Arc<VariantPack>),
}

/// Operation of a graph.
#[derive(Debug)]
pub(super) enum Operation {
    Convolution(Convolution),
    Pointwise { step: Step, x: TensorDescriptor, other: Option<TensorDescriptor>, y: TensorDescriptor },
}

/// Engine configuration: an engine for a graph.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub graph: Arc<Graph>,
    pub engine: Engine,
}

/// Executable plan.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub handle: i64,
    pub configuration: Configuration,
}

/// Variant pack: addresses of arrays.
#[derive(Debug)]
pub(super) struct VariantPack {
    pub ids: Vec<i64>,
    pub addresses: Vec<u64>,
    pub workspace: u64,
}

/// Makes the value of a descriptor, whose required attributes are set.
pub(super) fn make(kind: u32, object: &Object<Made>, capability: u32) -> Dnn<Made> {
    match kind {
        TENSOR => {
            let numbers = |name| object.integers(name);
            let mut tensor = TensorDescriptor::new(
                object.integer(906),
                object.integer(901),
                numbers(902),
                numbers(903),
                object.integer(900),
            )?;
            tensor.is_virtual = object.integer(907) != 0;
            Ok(Made::Tensor(Arc::new(tensor)))
        }
        CONVOLUTION => {
            // Padding before and after, strides, dilations.
            let lists = [105, 104, 103, 102].map(|name| object.integers(name));
            let made =
                ConvolutionDescriptor::new(object.integer(106), lists, object.integer(101), object.integer(100))?;
            Ok(Made::Convolution(Arc::new(made)))
        }
        POINTWISE => pointwise(object),
        FORWARD => convolution(object, ConvolutionKind::Forward, capability),
        BACKWARD_DATA => convolution(object, ConvolutionKind::BackwardData, capability),
        BACKWARD_FILTER => convolution(object, ConvolutionKind::BackwardFilter, capability),
        OPERATION_POINTWISE => operation(object),
        GRAPH => graph(object, capability),
        HEURISTIC => heuristic(object),
        PLAN => plan(object),
        VARIANT_PACK => pack(object),
        other => wrong(Status::BAD_PARAM, format!("descriptors of kind {other} come from heuristics")),
    }
}

fn other_kind<T>(name: u32) -> Dnn<T> {
    wrong(Status::DESCRIPTOR_TYPE, format!("attribute {name} is a descriptor of another kind"))
}

fn tensor(object: &Object<Made>, name: u32) -> Dnn<TensorDescriptor> {
    match object.parts(name) {
        [Made::Tensor(tensor)] => Ok((**tensor).clone()),
        _ => other_kind(name),
    }
}

fn pointwise(object: &Object<Made>) -> Dnn<Made> {
    let step = match object.integer(0) {
        0 => Step::Add,
        100 => Step::Relu { keeps_nan: object.integer(2) == 1 },
        107 => Step::Gelu,
        mode => return wrong(Status::NOT_SUPPORTED, format!("pointwise mode {mode} is not simulated")),
    };
    Ok(Made::Pointwise(step, element(object.integer(1))?))
}

fn convolution(object: &Object<Made>, kind: ConvolutionKind, capability: u32) -> Dnn<Made> {
    // First attribute (alpha), and the attributes of the arrays; the convolution's descriptor is at `first + 2`.
    let (first, [input, filter, output]) = match kind {
        ConvolutionKind::Forward => (700, [704, 703, 705]),
        ConvolutionKind::BackwardData => (706, [710, 709, 711]),
        ConvolutionKind::BackwardFilter => (712, [716, 715, 717]),
    };
    let [Made::Convolution(operation)] = object.parts(first + 2) else { return other_kind(first + 2) };
    let made = Convolution {
        kind,
        input: tensor(object, input)?,
        filter: tensor(object, filter)?,
        output: tensor(object, output)?,
        operation: (**operation).clone(),
        alpha: object.float(first, 1.0),
        beta: object.float(first + 1, 0.0),
    };
    made.check(capability)?;
    Ok(Made::Operation(Arc::new(Operation::Convolution(made))))
}

fn operation(object: &Object<Made>) -> Dnn<Made> {
    let [Made::Pointwise(step, compute)] = object.parts(750) else { return other_kind(750) };
    let (x, y) = (tensor(object, 751)?, tensor(object, 753)?);
    let other = if object.parts(752).is_empty() { None } else { Some(tensor(object, 752)?) };
    let spreads = |other: &TensorDescriptor| {
        other.sizes.len() == x.sizes.len() && other.sizes.iter().zip(&x.sizes).all(|(b, x)| b == x || *b == 1)
    };
    if x.sizes != y.sizes || other.as_ref().is_some_and(|other| !spreads(other)) {
        return wrong(Status::SHAPE_MISMATCH, format!("{step:?} of {x:?} and {other:?} to {y:?}"));
    }
    if other.is_some() != (*step == Step::Add) {
        return wrong(Status::BAD_PARAM, format!("{step:?} with the other array {other:?}"));
    }
    if *compute != Element::F32 {
        return wrong(Status::NOT_SUPPORTED, format!("{step:?} is computed in {compute:?}"));
    }
    Ok(Made::Operation(Arc::new(Operation::Pointwise { step: *step, x, other, y })))
}

fn graph(object: &Object<Made>, capability: u32) -> Dnn<Made> {
    let pattern = |why: &str| wrong(Status::GRAPH_PATTERN, why.to_owned());
    let operations = object.parts(801).iter().map(|made| match made {
        Made::Operation(operation) => Ok(&**operation),
        _ => other_kind(801),
    });
    let operations = operations.collect::<Dnn<Vec<&Operation>>>()?;
    let Some((Operation::Convolution(convolution), rest)) = operations.split_first() else {
        return pattern("a graph that does not begin with a convolution is not simulated");
    };
    let mut value = convolution.made();
    let (mut steps, mut bias) = (Vec::new(), None);
    for operation in rest {
        let Operation::Pointwise { step, x, other, y } = operation else {
            return pattern("a second convolution is not simulated");
        };
        if convolution.kind != ConvolutionKind::Forward || !value.is_virtual {
            return pattern("operations after what is in memory, or after a gradient, are not simulated");
        }
        if x.id != value.id || (other.is_some() && (bias.is_some() || !steps.is_empty())) {
            return pattern("no chain of a convolution, an addition and an activation");
        }
        bias = bias.or(other.clone());
        steps.push(*step);
        value = y;
    }
    if value.is_virtual {
        return wrong(Status::BAD_PARAM, "the result of a graph is virtual");
    }
    let graph = Graph {
        handle: object.integer(800),
        capability,
        convolution: convolution.clone(),
        steps,
        bias,
        result: value.clone(),
    };
    check_ids(&operations)?;
    Ok(Made::Graph(Arc::new(graph)))
}

/// Checks that each tensor id is used for one tensor only.
fn check_ids(operations: &[&Operation]) -> Dnn {
    let tensors = operations.iter().flat_map(|operation| match operation {
        Operation::Convolution(Convolution { input, filter, output, .. }) => vec![input, filter, output],
        Operation::Pointwise { x, other, y, .. } => [x, y].into_iter().chain(other).collect(),
    });
    let tensors: Vec<&TensorDescriptor> = tensors.collect();
    let others = |tensor: &&TensorDescriptor| tensors.iter().any(|other| other.id == tensor.id && other != tensor);
    match tensors.iter().find(|tensor| others(tensor)) {
        Some(tensor) => wrong(Status::DUPLICATED_ENTRIES, format!("several tensors have the number {}", tensor.id)),
        None => Ok(()),
    }
}

fn heuristic(object: &Object<Made>) -> Dnn<Made> {
    let [Made::Graph(graph)] = object.parts(201) else { return other_kind(201) };
    let mode = object.integer(200);
    if ![HEURISTIC_A, HEURISTIC_B, HEURISTIC_FALLBACK].contains(&mode) {
        return wrong(Status::NOT_SUPPORTED, format!("heuristics of mode {mode} are not simulated"));
    }
    let engines = proposed(graph, mode, graph.capability);
    if engines.is_empty() {
        return none(Status::NOT_SUPPORTED);
    }
    let of = |engine| Configuration { graph: graph.clone(), engine };
    Ok(Made::Heuristic(engines.into_iter().map(of).collect()))
}

fn plan(object: &Object<Made>) -> Dnn<Made> {
    let [Made::Configuration(configuration)] = object.parts(401) else { return other_kind(401) };
    let handle = object.integer(400);
    if handle != configuration.graph.handle {
        return wrong(Status::BAD_PARAM, "a plan is made with another handle than its graph");
    }
    Ok(Made::Plan(Plan { handle, configuration: configuration.clone() }))
}

fn pack(object: &Object<Made>) -> Dnn<Made> {
    let addresses = |name| object.integers(name).iter().map(|&address| address as u64);
    let (ids, addresses) = (object.integers(1000), addresses(1001).collect::<Vec<u64>>());
    if ids.len() != addresses.len() {
        return wrong(Status::BAD_PARAM, format!("{} numbers with {} addresses", ids.len(), addresses.len()));
    }
    if (1..ids.len()).any(|place| ids[..place].contains(&ids[place])) {
        return wrong(Status::DUPLICATED_ENTRIES, format!("a number stands twice in {ids:?}"));
    }
    let workspace = object.integer(1003) as u64;
    Ok(Made::Pack(Arc::new(VariantPack { ids: ids.to_vec(), addresses, workspace })))
}
