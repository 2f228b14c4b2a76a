//! Tests of random bits against XLA:CPU.

use xla_hlo::ops::{RngAlgorithm, RngBitGenerator};
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, Shape};

use crate::support::{refusal, rows, run, scalars};

const TABLE: &str = include_str!("../data/random_bits.txt");

fn algorithm(name: &str) -> RngAlgorithm {
    match name {
        "rng_philox" => RngAlgorithm::Philox,
        "rng_three_fry" => RngAlgorithm::ThreeFry,
        "rng_default" => RngAlgorithm::Default,
        other => panic!("{other}"),
    }
}

fn state(words: &[u64]) -> Literal {
    let shape = ArrayShape::new(ElementType::U64, [words.len()]);
    Literal::from_fn(&shape, |i| Scalar::Unsigned(words[i])).unwrap()
}

fn numbers<T: std::str::FromStr>(list: &str) -> Vec<T> {
    list.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().ok().unwrap()).collect()
}

fn shape_of(text: &str) -> ArrayShape {
    let (name, dims) = text.trim_end_matches(']').split_once('[').unwrap();
    ArrayShape::new(ElementType::from_name(name).unwrap(), numbers(dims))
}

#[test]
fn bits_are_those_of_xla() {
    let mut checked = 0;
    for row in rows(TABLE) {
        let [name, words, bits_shape, new_state, patterns] = row[..] else { panic!("{row:?}") };
        let (words, bits_shape) = (numbers::<u64>(words), shape_of(bits_shape));
        let state_shape = Shape::array(ElementType::U64, [words.len()]);
        let shape = Shape::Tuple(vec![state_shape, bits_shape.clone().into()]);
        let op = RngBitGenerator { algorithm: algorithm(name) };
        let result = run(op, &[state(&words)], Some(shape)).unwrap();
        let ty = bits_shape.element_type();
        let found: Vec<String> =
            scalars(&result.elements()[1]).iter().map(|x| format!("{:x}", x.to_bits(ty))).collect();
        assert_eq!(result.elements()[0], state(&numbers(new_state)), "state after {row:?}");
        assert_eq!(found.join(","), patterns, "{name} {words:?} {bits_shape}");
        checked += 1;
    }
    assert!(checked > 80, "{checked} cases");
}

#[test]
fn states_and_results_are_checked() {
    let bits = Shape::array(ElementType::U32, [4]);
    let refuse = |algorithm, state: &Shape, result: Vec<Shape>| {
        refusal(RngBitGenerator { algorithm }, std::slice::from_ref(state), Some(Shape::Tuple(result)))
    };
    let state = Shape::array(ElementType::U64, [3]);
    let message = refuse(RngAlgorithm::ThreeFry, &state, vec![state.clone(), bits.clone()]);
    assert!(message.contains("must be u64[2], it is u64[3]"), "{message}");
    let narrow = Shape::array(ElementType::U32, [4]);
    let message = refuse(RngAlgorithm::Default, &narrow, vec![narrow.clone(), bits.clone()]);
    assert!(message.contains("must be u64[2] or u64[3], it is u32[4]"), "{message}");
    let message = refuse(RngAlgorithm::Philox, &state, vec![bits.clone(), bits]);
    assert!(message.contains("(u64[3], an array of integers or floats)"), "{message}");
    let message = refuse(RngAlgorithm::Philox, &state, vec![state.clone(), Shape::array(ElementType::Pred, [4])]);
    assert!(message.contains("(u64[3], an array of integers or floats)"), "{message}");
}
