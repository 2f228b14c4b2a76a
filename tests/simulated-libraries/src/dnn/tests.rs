//! Tests of refused cuDNN calls and their status codes, of engines, and of results of the heuristics.

use super::attributes::{
    BACKWARD_DATA, CONVOLUTION, CONVOLUTION_MODE, DATA_TYPE, DESCRIPTOR, ENGINE_CONFIGURATION, FLOAT, FORWARD, GRAPH,
    HEUR_MODE, HEURISTIC, INT64, OPERATION_POINTWISE, Object, PLAN, POINTWISE, TENSOR, VARIANT_PACK, Value, value,
};
use super::descriptors::TensorDescriptor;
use super::engines::Engine;
use super::graph::{self, Configuration, Made};
use super::rules::Step;
use super::work::Convolving;
use super::{Dnn, Status};

const F32: i64 = 0;
const F64: i64 = 1;
const F16: i64 = 2;
const BF16: i64 = 9;
const RELU: i64 = 100;
const ADD: i64 = 0;

fn status<T: std::fmt::Debug>(answer: Dnn<T>) -> Status {
    answer.unwrap_err().status
}

/// Makes the value of a descriptor on a GPU of sm_90.
fn make(kind: u32, object: &Object<Made>) -> Dnn<Made> {
    graph::make(kind, object, 90)
}

/// Returns a descriptor with attributes that are integers, and attributes that are descriptors.
fn object(kind: u32, integers: &[(u32, &[i64])], parts: &[(u32, &[&Made])]) -> Object<Made> {
    let mut object = Object::new(kind).unwrap();
    for &(name, numbers) in integers {
        object.set(name, Value::Integers(numbers.to_vec()));
    }
    for &(name, parts) in parts {
        object.set(name, Value::Parts(parts.iter().map(|&part| part.clone()).collect()));
    }
    object
}

/// Returns the value of such a descriptor after it is finalised.
fn made(kind: u32, integers: &[(u32, &[i64])], parts: &[(u32, &[&Made])]) -> Dnn<Made> {
    let mut object = object(kind, integers, parts);
    object.finalize(make)?;
    object.made().cloned()
}

fn tensor(id: i64, ty: i64, sizes: &[i64], strides: &[i64], is_virtual: bool) -> Dnn<Made> {
    let list: [(u32, &[i64]); 6] =
        [(900, &[16]), (901, &[ty]), (902, sizes), (903, strides), (906, &[id]), (907, &[i64::from(is_virtual)])];
    made(TENSOR, &list, &[])
}

/// Returns a tensor of two 5x6 images, channels first.
fn images(id: i64, ty: i64, channels: i64, is_virtual: bool) -> Made {
    tensor(id, ty, &[2, channels, 5, 6], &[30 * channels, 30, 6, 1], is_virtual).unwrap()
}

fn window(padding: i64, dilation: i64, compute: i64) -> Dnn<Made> {
    let (padding, dilation) = ([padding; 2], [dilation; 2]);
    let list: [(u32, &[i64]); 7] = [
        (100, &[compute]),
        (101, &[1]),
        (102, &dilation),
        (103, &[1, 1]),
        (104, &padding),
        (105, &padding),
        (106, &[2]),
    ];
    made(CONVOLUTION, &list, &[])
}

/// Returns a convolution of 3 channels with 4 filters of 3x3 and padding 1 to an output tensor.
fn layer(ty: i64, window: &Made, output: &Made) -> Dnn<Made> {
    let filter = tensor(2, ty, &[4, 3, 3, 3], &[27, 9, 3, 1], false)?;
    let parts: [(u32, &[&Made]); 4] =
        [(702, &[window]), (703, &[&filter]), (704, &[&images(1, ty, 3, false)]), (705, &[output])];
    made(FORWARD, &[], &parts)
}

fn graph(operations: &[&Made]) -> Dnn<Made> {
    made(GRAPH, &[(800, &[64])], &[(801, operations)])
}

fn pointwise(mode: i64, x: &Made, other: Option<&Made>, y: &Made) -> Dnn<Made> {
    let function = made(POINTWISE, &[(0, &[mode]), (1, &[F32]), (2, &[1])], &[]).unwrap();
    let arrays: [(u32, &[&Made]); 3] = [(750, &[&function]), (751, &[x]), (753, &[y])];
    let other = other.as_ref().map(std::slice::from_ref);
    let other = other.map(|other| (752, other));
    made(OPERATION_POINTWISE, &[], &arrays.into_iter().chain(other).collect::<Vec<_>>())
}

fn proposed(graph: &Made, mode: i64) -> Dnn<Vec<Engine>> {
    match made(HEURISTIC, &[(200, &[mode])], &[(201, &[graph])])? {
        Made::Heuristic(found) => Ok(found.into_iter().map(|configuration| configuration.engine).collect()),
        other => panic!("{other:?}"),
    }
}

fn plain(ty: i64, dilation: i64) -> Made {
    let compute = if ty == F64 { F64 } else { F32 };
    let (window, output) = (window(dilation, dilation, compute).unwrap(), images(3, ty, 4, false));
    graph(&[&layer(ty, &window, &output).unwrap()]).unwrap()
}

#[test]
fn attributes_have_types_and_counts_and_are_set_before_the_end() {
    let mut object = object(TENSOR, &[(901, &[F32])], &[]);
    assert_eq!(object.check(902, INT64, 4), Ok(4));
    assert_eq!(status(object.check(902, DATA_TYPE, 4)), Status::ATTRIBUTE_TYPE);
    assert_eq!(status(object.check(902, INT64, 9)), Status::OUT_OF_BOUND);
    assert_eq!(status(object.check(902, INT64, 0)), Status::OUT_OF_BOUND);
    assert_eq!(status(object.check(902, INT64, -1)), Status::OUT_OF_BOUND);
    assert_eq!(status(object.check(906, INT64, 2)), Status::OUT_OF_BOUND);
    assert_eq!(status(object.check(700, FLOAT, 1)), Status::BAD_PARAM, "of another descriptor");
    let missing = object.finalize(make).unwrap_err();
    assert_eq!(missing.sentence.as_deref(), Some("attribute 900 is not set"));
    assert_eq!(status(object.made()), Status::NOT_FINALIZED);
    for (name, numbers) in [(900, &[16][..]), (902, &[1; 4]), (903, &[1; 4]), (906, &[7])] {
        object.set(name, Value::Integers(numbers.to_vec()));
    }
    object.finalize(make).unwrap();
    assert_eq!(status(object.finalize(make)), Status::BAD_PARAM);
    assert_eq!(status(object.check(902, INT64, 4)), Status::BAD_PARAM, "set after it was finalised");
    assert_eq!(status(Object::<Made>::new(18)), Status::NOT_SUPPORTED);
    let found = object.made().unwrap().clone();
    assert_eq!(status(object.fill(TENSOR, found.clone())), Status::DESCRIPTOR_TYPE, "not empty");
    assert_eq!(status(Object::new(PLAN).unwrap().fill(ENGINE_CONFIGURATION, found)), Status::DESCRIPTOR_TYPE);
    let floats = value(FLOAT, &[u64::from(0.5f32.to_bits())], |_| wrong_part());
    assert!(matches!(floats, Ok(Value::Floats(numbers)) if numbers == [0.5]));
    assert_eq!(status(value(DESCRIPTOR, &[3], |_| wrong_part())), Status::NOT_FINALIZED);
    assert!(Object::<Made>::new(CONVOLUTION).unwrap().check(101, CONVOLUTION_MODE, 1).is_ok());
    assert!(Object::<Made>::new(HEURISTIC).unwrap().check(200, HEUR_MODE, 1).is_ok());
}

fn wrong_part() -> Dnn<Made> {
    crate::refusal::wrong(Status::NOT_FINALIZED, "a descriptor is used that is not finalised")
}

#[test]
fn descriptions_have_bounds() {
    let sized = |sizes: &[i64], strides: &[i64]| TensorDescriptor::new(1, F32, sizes, strides, 16);
    assert_eq!(status(sized(&[2, 3, 5, 5], &[15, 5, 1])), Status::BAD_PARAM);
    assert_eq!(status(sized(&[2, 3, 5, 0], &[15, 5, 1, 1])), Status::BAD_PARAM);
    assert_eq!(status(sized(&[2, 3, 5, 1], &[-15, 5, 1, 1])), Status::BAD_PARAM);
    assert_eq!(status(sized(&[3, 1, 1, 1], &[1 << 31, 1, 1, 1])), Status::NOT_SUPPORTED);
    assert_eq!(status(TensorDescriptor::new(1, 77, &[1; 4], &[1; 4], 16)), Status::NOT_SUPPORTED);
    assert_eq!(status(TensorDescriptor::new(1, F32, &[1; 4], &[1; 4], 2)), Status::BAD_PARAM);
    assert_eq!(status(TensorDescriptor::new(1, F32, &[1; 4], &[1; 4], 24)), Status::BAD_PARAM);
    assert_eq!(status(window(-1, 1, F32)), Status::BAD_PARAM);
    assert_eq!(status(window(1, 0, F32)), Status::BAD_PARAM);
}

#[test]
fn sizes_and_types_fit_to_each_other() {
    let output = images(3, F32, 4, false);
    let window = |padding, compute| window(padding, 1, compute).unwrap();
    layer(F32, &window(1, F32), &output).unwrap();
    assert_eq!(status(layer(F32, &window(0, F32), &output)), Status::SHAPE_MISMATCH);
    assert_eq!(status(layer(F32, &window(1, F32), &images(3, F32, 5, false))), Status::SHAPE_MISMATCH);
    assert_eq!(status(layer(F16, &window(1, F32), &output)), Status::NOT_SUPPORTED);
    layer(F16, &window(1, F32), &images(3, F32, 4, true)).expect("what is in no memory is of the type of sums");
    assert_eq!(status(layer(F32, &window(1, F64), &output)), Status::NOT_SUPPORTED);
    assert_eq!(status(layer(F32, &output, &output)), Status::DESCRIPTOR_TYPE, "no convolution");
    let missing = made(BACKWARD_DATA, &[], &[(708, &[&window(1, F32)])]).unwrap_err();
    assert_eq!(missing.sentence.as_deref(), Some("attribute 709 is not set"));
}

#[test]
fn graphs_are_a_convolution_and_what_comes_after_it() {
    let window = window(1, 1, F32).unwrap();
    let [between, after] = [5, 6].map(|id| images(id, F32, 4, true));
    let result = images(3, BF16, 4, false);
    let bias = tensor(4, BF16, &[1, 4, 1, 1], &[4, 1, 4, 4], false).unwrap();
    let convolution = layer(BF16, &window, &between).unwrap();
    let add = pointwise(ADD, &between, Some(&bias), &after).unwrap();
    let relu = pointwise(RELU, &after, None, &result).unwrap();
    let Made::Graph(whole) = graph(&[&convolution, &add, &relu]).unwrap() else { panic!("no graph") };
    assert_eq!(whole.steps, [Step::Add, Step::Relu { keeps_nan: true }]);
    assert_eq!(status(graph(&[&convolution, &add])), Status::BAD_PARAM, "its result is virtual");
    assert_eq!(status(graph(&[&convolution, &relu])), Status::GRAPH_PATTERN, "no chain");
    assert_eq!(status(graph(&[&add, &convolution])), Status::GRAPH_PATTERN);
    let twice = images(1, F32, 4, true);
    let other = layer(BF16, &window, &twice).unwrap();
    let last = pointwise(RELU, &twice, None, &result).unwrap();
    assert_eq!(status(graph(&[&other, &last])), Status::DUPLICATED_ENTRIES);
    assert_eq!(status(pointwise(ADD, &between, None, &after)), Status::BAD_PARAM);
    assert_eq!(status(pointwise(RELU, &between, Some(&bias), &after)), Status::BAD_PARAM);
    assert_eq!(status(pointwise(RELU, &bias, None, &after)), Status::SHAPE_MISMATCH);
}

#[test]
fn heuristics_propose_engines_in_an_order() {
    use Engine::{Direct, Narrowed, ShortSums, TensorCores, Tiles, Winograd};
    let [a, b, fallback] = [3, 1, 2];
    assert_eq!(proposed(&plain(F32, 1), a), Ok(vec![Winograd, Narrowed, ShortSums, TensorCores, Tiles, Direct]));
    assert_eq!(proposed(&plain(F64, 1), a), Ok(vec![Tiles, Direct]));
    assert_eq!(status(proposed(&plain(F32, 2), a)), Status::NOT_SUPPORTED);
    assert_eq!(proposed(&plain(F32, 2), b), Ok(vec![TensorCores, Direct]));
    assert_eq!(proposed(&plain(F32, 2), fallback), Ok(vec![Direct]));
    assert_eq!(status(proposed(&plain(F32, 1), 4)), Status::NOT_SUPPORTED);
}

#[test]
fn packs_name_every_array() {
    let pack = |ids: &[i64], addresses: &[i64], workspace: i64| match made(
        VARIANT_PACK,
        &[(1000, ids), (1001, addresses), (1003, &[workspace])],
        &[],
    )? {
        Made::Pack(pack) => Ok(pack),
        other => panic!("{other:?}"),
    };
    let ids = [1, 2, 3];
    assert_eq!(status(pack(&ids, &[16, 16], 0)), Status::BAD_PARAM);
    assert_eq!(status(pack(&[1, 2, 1], &[16; 3], 0)), Status::DUPLICATED_ENTRIES);
    let Made::Graph(graph) = plain(F32, 1) else { panic!("no graph") };
    let works = |engine: Engine, ids: &[i64], addresses: &[i64], workspace: i64| {
        let configuration = Configuration { graph: graph.clone(), engine };
        let pack = pack(ids, addresses, workspace)?;
        Convolving::new(&configuration, &pack).map(|(_, workspace)| workspace.bytes)
    };
    let apart = [0x10000, 0x20000, 0x30000];
    assert_eq!(works(Engine::Direct, &ids, &apart, 0), Ok(0));
    assert_eq!(works(Engine::Tiles, &ids, &apart, 0x40000), Ok(512));
    assert_eq!(status(works(Engine::Tiles, &ids, &apart, 0)), Status::MISALIGNED_POINTER);
    assert_eq!(status(works(Engine::Tiles, &ids, &apart, 0x30000)), Status::BAD_PARAM, "over the result");
    assert_eq!(status(works(Engine::Direct, &ids[..2], &apart[..2], 0)), Status::BAD_PARAM);
    assert_eq!(status(works(Engine::Direct, &ids, &[0x10000, 0, 0x30000], 0)), Status::NULL_POINTER);
    assert_eq!(status(works(Engine::Direct, &ids, &[0x10000, 0x20004, 0x30000], 0)), Status::MISALIGNED_POINTER);
    assert_eq!(status(works(Engine::Direct, &ids, &[0x10000, 0x20000, 0x10010], 0)), Status::BAD_PARAM);
}
