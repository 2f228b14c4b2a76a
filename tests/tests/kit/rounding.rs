//! Bounds computed by hand, and bounds of all idioms against the programs in a wider type.

use xla::compare::Tolerance;
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Module, Result, Scalar, VerifiedModule};

use xla_tests::generate::{Idiom, Random, Temper, epsilon, idioms};
use xla_tests::rounding::{MeasuredResult, SIDES, measure, number};

/// Error of one rounding of an `f32` of magnitude 1, as the analysis counts it.
const EPSILON: f64 = f32::EPSILON as f64;

fn measured(text: &str, arguments: &[&[f64]]) -> Result<Vec<MeasuredResult>> {
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let entry = module.entry();
    let shapes = entry.parameters().iter().map(|&p| entry[p].shape().as_array().unwrap());
    let fill =
        |(shape, values): (&ArrayShape, &&[f64])| Literal::from_fn(shape, |i| Scalar::Float(values[i % values.len()]));
    let arguments: Vec<Literal> = shapes.zip(arguments).map(fill).collect::<Result<_>>().unwrap();
    measure(&module, &arguments)
}

fn noise(text: &str, arguments: &[&[f64]]) -> f64 {
    measured(text, arguments).unwrap()[0].noise
}

const SUM: &str =
    "HloModule m\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n";

/// Asserts that two bounds agree up to their own rounding.
#[track_caller]
fn is_near(bound: f64, expected: f64) {
    assert!((bound - expected).abs() <= 1e-3 * expected, "{bound} is not {expected}");
}

#[test]
fn a_sum_may_lose_a_rounding_with_each_element() {
    let text = SUM.to_string()
        + "ENTRY main {\n x = f32[2,100] parameter(0)\n z = f32[] constant(0)\n \
           ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add\n}";
    is_near(noise(&text, &[&[1.0]]), 2.0 * 100.0 * 100.0 * EPSILON);
    // Cancellation leaves an absolute error.
    let result = &measured(&text, &[&[1.0, -1.0]]).unwrap()[0];
    is_near(result.tolerance.atol, 2.0 * 100.0 * 100.0 * EPSILON);
}

#[test]
fn a_quotient_passes_on_relative_errors() {
    let text = SUM.to_string() + include_str!("programs/a_quotient_passes_on_relative_errors.hlo");
    let result = &measured(&text, &[&[1.0, 2.0, 3.0, 4.0]]).unwrap()[0];
    is_near(result.tolerance.rtol, 2.0 * 101.0 * EPSILON);
    assert!(result.tolerance.atol < 1e-9, "{:?}", result.tolerance);
}

#[test]
fn errors_move_with_their_elements() {
    let text = "HloModule m\nENTRY main {\n x = f32[2] parameter(0)\n y = f32[2] multiply(x, x)\n \
                t = f32[3,2] broadcast(y), dimensions={1}\n r = f32[2,3] transpose(t), dimensions={1,0}\n \
                p = f32[2] parameter(1)\n c = f32[4] concatenate(y, p), dimensions={0}\n \
                ROOT q = (f32[2,3], f32[4]) tuple(r, c)\n}";
    for result in measured(text, &[&[1.0, 8.0], &[1000.0]]).unwrap() {
        // An argument has no error, however large it is.
        is_near(result.noise, 2.0 * 64.0 * EPSILON);
    }
}

#[test]
fn a_greatest_value_has_the_error_of_elements_that_may_be_it() {
    let text = include_str!("programs/a_greatest_value_has_the_error_of_elements_that_may_be_it.hlo");
    // The error of -10^8 is large, but the greatest value is 1.
    is_near(noise(text, &[&[1.0, 1e4], &[1.0, -1.0]]), 2.0 * 2.0 * EPSILON);
}

#[test]
fn rounding_that_decides_a_choice_counts_as_the_difference() {
    let text = "HloModule m\nENTRY main {\n x = f32[2] parameter(0)\n y = f32[2] multiply(x, x)\n \
                c = f32[2] constant({9, 9})\n p = pred[2] compare(y, c), direction=GT\n a = f32[2] constant({1, 1})\n \
                b = f32[2] constant({5, 5})\n ROOT r = f32[2] select(p, a, b)\n}";
    assert_eq!(noise(text, &[&[2.0, 4.0]]), 0.0);
    assert_eq!(noise(text, &[&[2.0, 3.0]]), 2.0 * 4.0);
    let integer = text.replace("ROOT r", "r").replace("\n}", "\n ROOT k = s32[2] convert(r)\n}");
    let error = measured(&integer, &[&[2.0, 3.0]]).unwrap_err();
    assert_eq!(error.message(), "rounding decides result 0; it takes other arguments");
}

#[test]
fn unknown_operations_are_named() {
    let text = "HloModule m\nENTRY main {\n x = f32[2] parameter(0)\n ROOT r = f32[2] tan(x)\n}";
    let error = measured(text, &[&[1.0]]).unwrap_err();
    assert_eq!(error.message(), "r: error analysis of tan");
}

/// Returns an idiom's results on 2 x 17 elements, and the values for equal arguments in another type. `None` if
/// rounding decides a result.
fn idiom_in(idiom: &Idiom, ty: ElementType, to: ElementType, seed: u64) -> Option<(Vec<MeasuredResult>, Literal)> {
    let [module, other] = [ty, to].map(|ty| idiom.module(2, 17, ty).unwrap());
    let mut random = Random::new(seed);
    let temper = if seed.is_multiple_of(2) { Temper::Grid } else { Temper::Smooth };
    let shapes = |module: &Module| -> Vec<ArrayShape> {
        let entry = module.entry();
        entry.parameters().iter().map(|&p| entry[p].shape().as_array().unwrap().clone().with_layout(None)).collect()
    };
    let arguments: Vec<Literal> =
        shapes(&module).iter().map(|shape| Idiom::argument(&mut random, shape, temper).unwrap()).collect();
    let converted = arguments.iter().zip(shapes(&other));
    let converted = converted.map(|(argument, shape)| Literal::from_fn(&shape, |i| argument.get(i)).unwrap()).collect();
    let value = evaluate(&other, converted).unwrap();
    match measure(&module, &arguments) {
        Err(Error::InvalidArgument(_)) => None,
        results => Some((results.unwrap_or_else(|error| panic!("{}: {error}", idiom.name)), value)),
    }
}

#[test]
fn idioms_are_within_their_bounds_of_a_wider_type() {
    use ElementType::{BF16, F16, F32, F64};
    let (mut compared, mut undecided) = (0, 0);
    for (ty, to, seed) in [(F32, F64, 1), (F32, F64, 2), (BF16, F32, 3), (BF16, F32, 4), (F16, F32, 5), (F16, F32, 6)] {
        for idiom in idioms().iter().filter(|idiom| idiom.types.contains(&ty)) {
            let Some((results, exact)) = idiom_in(idiom, ty, to, seed) else {
                undecided += 1;
                continue;
            };
            compared += 1;
            for (k, (result, exact)) in results.iter().zip(exact.leaves()).enumerate() {
                let Tolerance { rtol, atol, .. } = result.tolerance;
                for i in 0..result.value.array_shape().element_count() {
                    let (found, right) = (number(&result.value, i), number(exact, i));
                    // Only one of the two sides has the narrow type.
                    let allowed = (atol + rtol * found.abs()) / SIDES + 1e-30;
                    let (gap, name) = ((found - right).abs(), &idiom.name);
                    assert!(gap <= allowed, "{name} {ty}: result {k} at {i}: {found}, not {right}: {gap} > {allowed}");
                }
            }
        }
    }
    assert!(compared > 250 && undecided * 20 < compared, "{compared} compared, {undecided} undecided");
}

#[test]
fn tolerances_of_idioms_are_tight() {
    use ElementType::{F32, F64};
    for (ty, idiom) in [F32, F64].into_iter().flat_map(|ty| idioms().iter().map(move |idiom| (ty, idiom))) {
        if !idiom.types.contains(&ty) {
            continue;
        }
        let (results, _) = idiom_in(idiom, ty, ty, 1).unwrap_or_else(|| panic!("{} {ty}", idiom.name));
        for (k, result) in
            results.iter().enumerate().filter(|(_, result)| result.value.array_shape().element_type() == ty)
        {
            let sizes = (0..result.value.array_shape().element_count()).map(|i| number(&result.value, i).abs());
            let greatest = sizes.fold(0.0, f64::max);
            // Some 10,000 roundings of the greatest element: 0.1 % of f32.
            let most = 1e4 * epsilon(ty) * greatest.max(1e-3);
            assert!(
                result.noise <= most,
                "{} {ty}: result {k} up to {greatest} is off by {}",
                idiom.name,
                result.noise
            );
        }
    }
}
