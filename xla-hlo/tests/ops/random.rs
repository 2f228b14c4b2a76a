//! Tests of random numbers, of the device's counter, and of stochastic rounding.

use ElementType::{BF16, F16, F32, F64, Pred, S8, S32, U8, U16, U32, U64};
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::{Evaluator, RandomState};
use xla_hlo::ops::random::words_of_rng;
use xla_hlo::ops::{Rng, RngDistribution, RngGetAndUpdateState, StochasticConvert};
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar, Shape};

use crate::testing::{array, assert_refused, numbers, printed_root, run, scalar};

fn draw(distribution: RngDistribution, ty: ElementType, a: f64, b: f64, dims: &[usize]) -> Result<Literal> {
    run(|_| Rng { distribution }, Some(Shape::array(ty, dims)), &[scalar(ty, a), scalar(ty, b)])
}

#[test]
fn even_floats_fill_their_range() {
    for ty in [F64, F32, BF16, F16] {
        let values = numbers(&draw(RngDistribution::Uniform, ty, -1.0, 3.0, &[20, 500]).unwrap());
        assert!(values.iter().all(|v| (-1.0..3.0).contains(v)), "{ty}");
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!((mean - 1.0).abs() < 0.05 && (variance - 16.0 / 12.0).abs() < 0.05, "{ty}: {mean} {variance}");
    }
}

#[test]
fn every_type_is_drawn_evenly_within_its_range() {
    for &ty in ElementType::ALL.iter().filter(|ty| !ty.is_complex() && **ty != ElementType::S1) {
        let low = if ty == ElementType::F8E8M0FNU { 0.5 } else { 0.0 };
        let values = numbers(&draw(RngDistribution::Uniform, ty, low, 1.0, &[100]).unwrap());
        assert!(values.iter().all(|v| (low..1.0).contains(v)), "{ty}: {values:?}");
    }
}

#[test]
fn even_integers_take_every_value_and_no_other() {
    for (ty, a, b) in [(S32, -2.0, 3.0), (U8, 250.0, 255.0), (S8, -128.0, 127.0), (U64, 1e15, 1e15 + 9.0)] {
        let values = numbers(&draw(RngDistribution::Uniform, ty, a, b, &[4000]).unwrap());
        assert!(values.iter().all(|v| (a..b).contains(v)), "{ty}");
        let mut distinct = values;
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        assert!(distinct.len() == (b - a) as usize, "{ty} took {} values", distinct.len());
    }
    assert_eq!(numbers(&draw(RngDistribution::Uniform, Pred, 0.0, 1.0, &[3]).unwrap()), [0.0; 3]);
}

#[test]
fn normal_floats_have_their_moments() {
    for ty in [F64, F32, BF16, F16] {
        let values = numbers(&draw(RngDistribution::Normal, ty, 2.0, 3.0, &[9999]).unwrap());
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let moment = |k: i32| values.iter().map(|v| ((v - mean) / 3.0).powi(k)).sum::<f64>() / n;
        assert!((mean - 2.0).abs() < 0.1, "{ty}: mean {mean}");
        assert!((moment(2) - 1.0).abs() < 0.05 && moment(3).abs() < 0.1 && (moment(4) - 3.0).abs() < 0.3, "{ty}");
    }
}

#[test]
fn nothing_and_one_number() {
    for distribution in [RngDistribution::Uniform, RngDistribution::Normal] {
        assert!(numbers(&draw(distribution, F32, 0.0, 1.0, &[0, 3]).unwrap()).is_empty());
        assert_eq!(numbers(&draw(distribution, F32, 0.0, 1.0, &[]).unwrap()).len(), 1);
    }
    assert_eq!(numbers(&draw(RngDistribution::Uniform, F32, 5.0, 5.0, &[4]).unwrap()), [5.0; 4], "an empty range");
}

#[test]
fn each_draw_moves_the_counter_on() {
    let mut module = ModuleBuilder::new("test");
    let mut b = module.computation("main");
    let draws = [8, -3, 1].map(|delta| b.rng_get_and_update_state(delta).unwrap());
    let (low, high) = (b.constant(scalar(F32, 0.0)).unwrap(), b.constant(scalar(F32, 1.0)).unwrap());
    let ten = Shape::array(F32, [10]);
    let random = b.rng(RngDistribution::Uniform, low, high, ten).unwrap();
    let last = b.rng_get_and_update_state(0).unwrap();
    let root = b.tuple([draws[0], draws[1], draws[2], random, last]).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    let state = RandomState::new();
    let mut first_numbers = Vec::new();
    for start in [0x701_2395, 0x701_2395 + 9] {
        let mut evaluator = Evaluator::new(&module).with_random_state(state.clone());
        let result = evaluator.call(module.entry_id(), Vec::new()).unwrap();
        let counters: Vec<f64> = [0, 1, 2, 4].map(|i| numbers(&result.elements()[i])[0] - f64::from(start)).to_vec();
        assert_eq!(counters, [0.0, 8.0, 5.0, 9.0], "ten words are three blocks");
        first_numbers.push(numbers(&result.elements()[3]));
    }
    assert_ne!(first_numbers[0], first_numbers[1]);
    assert_eq!(state.advance(-(0x701_2395 + 19)), 0x701_2395 + 18);
    assert_eq!(state.advance(1), u128::MAX, "the counter wraps");
    assert_eq!(state.advance(0), 0);
}

#[test]
fn attributes_print_as_they_are_read() {
    let normal = "f32[5]{0} rng(a, b), distribution=rng_normal";
    let text = format!("ENTRY e {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = {normal} }}");
    assert_eq!(printed_root(&text), normal);
    let state = "u64[2]{0} rng-get-and-update-state(), delta=-8";
    assert_eq!(printed_root(&format!("ENTRY e {{ ROOT r = {state} }}")), state);
    let convert = "s8[3]{0} stochastic-convert(a, b)";
    let text = format!("ENTRY e {{ a = f32[3] parameter(0)\n b = u32[3] parameter(1)\n ROOT r = {convert} }}");
    assert_eq!(printed_root(&text), convert);
}

#[test]
fn fractions_round_up_as_often_as_they_are_large() {
    let round = |x: f64, random: f64| {
        let operands = [array(F32, &[1], &[x]), array(U32, &[1], &[random])];
        numbers(&run(|_| StochasticConvert, Some(Shape::array(S8, [1])), &operands).unwrap())[0]
    };
    let quarter = f64::from(1u32 << 30);
    for (x, random, expected) in [
        (1.25, quarter - 1.0, 2.0),
        (1.25, quarter, 1.0),
        (-1.25, quarter - 1.0, -2.0),
        (-1.25, quarter, -1.0),
        (3.0, 0.0, 3.0),
        (0.0, 0.0, 0.0),
        ((-40f64).exp2(), 0.0, 0.0),
        ((-32f64).exp2(), 0.0, 1.0),
        (0.5, 0.0, 1.0),
        (f64::NAN, 0.0, 0.0),
        (f64::INFINITY, 0.0, 127.0),
        (f64::NEG_INFINITY, 0.0, -128.0),
        (1e10, 0.0, 127.0),
        (-1e30, 0.0, -128.0),
        (126.5, 0.0, 127.0),
        (127.5, 0.0, 127.0),
        (-127.5, 0.0, -128.0),
        (-128.5, 0.0, -128.0),
    ] {
        assert_eq!(round(x, random), expected, "{x} with {random}");
    }
}

#[test]
fn every_float_and_integer_type_rounds_stochastically() {
    let unsigned = [ElementType::U1, ElementType::U2, ElementType::U4, U8, U16, U32, U64];
    for &from in ElementType::ALL.iter().filter(|ty| ty.is_float()) {
        let Some(bits) = unsigned.into_iter().find(|ty| ty.bit_width() == from.bit_width()) else { continue };
        for &to in ElementType::ALL.iter().filter(|ty| ty.is_integer()) {
            let operands = [array(from, &[2], &[1.0, 1.0]), array(bits, &[2], &[0.0, 1.0])];
            let result = run(|_| StochasticConvert, Some(Shape::array(to, [2])), &operands).unwrap();
            let one = if to == ElementType::S1 { 0.0 } else { 1.0 };
            assert_eq!(numbers(&result), [one, one], "{from} to {to}");
        }
    }
    let wide = [array(F64, &[1], &[1e300]), array(U64, &[1], &[0.0])];
    let result = run(|_| StochasticConvert, Some(Shape::array(U64, [1])), &wide).unwrap();
    assert_eq!(result.get(0), Scalar::Unsigned(u64::MAX));
}

#[test]
fn broken_rules_are_named() {
    let (zero, one) = (scalar(F32, 0.0), scalar(F32, 1.0));
    let uniform = Rng { distribution: RngDistribution::Uniform };
    let normal = Rng { distribution: RngDistribution::Normal };
    let result = |ty| Some(Shape::array(ty, [3]));
    let refused = |op: Rng, ty, operands: &[Literal], message: &str| {
        assert_refused(message, run(|_| op, result(ty), operands), message);
    };
    refused(uniform.clone(), F32, std::slice::from_ref(&zero), "rng takes the 2 parameters of its distribution, not 1");
    refused(uniform.clone(), F64, &[zero.clone(), one.clone()], "parameter 0 of rng is f32[]");
    refused(uniform.clone(), F32, &[zero, array(F32, &[1], &[1.0])], "parameter 1 of rng must be a scalar");
    let complex = scalar(ElementType::C64, 0.0);
    refused(uniform, ElementType::C64, &[complex.clone(), complex], "truth values, integers or floats");
    refused(normal, S32, &[scalar(S32, 0.0), scalar(S32, 1.0)], "returns floats, not s32");
    let state = run(|_| RngGetAndUpdateState { delta: 1 }, Some(Shape::array(U64, [3])), &[]);
    assert_refused("state", state, "returns u64[2], not u64[3]");
    let x = array(F32, &[3], &[0.0; 3]);
    for (bits, to, message) in [
        (array(U16, &[3], &[0.0; 3]), S8, "unsigned integers as wide as operand 0"),
        (array(U32, &[2], &[0.0; 2]), S8, "the random bits must have the dimensions"),
        (array(U32, &[3], &[0.0; 3]), BF16, "the result must have integer elements"),
    ] {
        assert_refused(message, run(|_| StochasticConvert, result(to), &[x.clone(), bits]), message);
    }
    assert_eq!(words_of_rng(RngDistribution::Normal, &ArrayShape::new(F64, [3])), (U64, 4));
}
