//! Laws of collectives, for random groups and values.

use proptest::prelude::*;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar};

use crate::support::run;

const ADD: &str = "add { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT r = TYPE[] add(a, b) }";

/// A module over `devices` replicas whose entry has the parameter `x`.
fn module(devices: usize, shape: &str, instructions: &str) -> String {
    let ty = shape.split('[').next().unwrap_or_default();
    let add = ADD.replace("TYPE", ty);
    format!(
        "HloModule m, replica_count={devices}\n{add}\nENTRY main {{\n x = {shape} parameter(0)\n {instructions}\n}}\n"
    )
}

/// Random groups of equal size over all devices, as the attribute's text and as lists.
fn groups() -> impl Strategy<Value = (String, Vec<Vec<usize>>)> {
    let devices = (1_usize..=3, 1_usize..=4)
        .prop_flat_map(|(count, size)| (Just((0..count * size).collect::<Vec<_>>()).prop_shuffle(), Just(size)));
    devices.prop_map(|(order, size)| {
        let groups: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        let text =
            |group: &Vec<usize>| format!("{{{}}}", group.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        (format!("{{{}}}", groups.iter().map(text).collect::<Vec<_>>().join(",")), groups)
    })
}

/// A pseudo-random finite value of device and element, by the seed. Sums of such values round.
fn random(seed: u64, device: usize, i: usize) -> f64 {
    let mut x = seed ^ ((device as u64) << 32) ^ ((i as u64) << 48) ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    ((x >> 40) as f64 / 1e6) - 8.0
}

fn value(seed: u64, device: usize, shape: &ArrayShape) -> Literal {
    Literal::from_fn(shape, |i| Scalar::Float(random(seed, device, i))).unwrap()
}

fn size(groups: &[Vec<usize>]) -> usize {
    groups[0].len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_reduce_is_a_sequential_reduction((text, groups) in groups(), seed: u64) {
        let devices = groups.len() * size(&groups);
        let program =
            module(devices, "f32[3]", &format!("ROOT r = f32[3] all-reduce(x), replica_groups={text}, to_apply=add"));
        let results = run(&program, |_, device, shape| value(seed, device, shape)).unwrap();
        for group in &groups {
            let shape = ArrayShape::new(ElementType::F32, [3]);
            let values: Vec<Literal> = group.iter().map(|&device| value(seed, device, &shape)).collect();
            for i in 0..3 {
                let element = |x: &Literal| match x.get(i) { Scalar::Float(x) => x as f32, _ => f32::NAN };
                let sum = values.iter().map(element).reduce(|sum, x| sum + x).unwrap();
                for &member in group {
                    prop_assert_eq!(element(&results[member]).to_bits(), sum.to_bits());
                }
            }
        }
    }

    #[test]
    fn reduce_scatter_and_all_gather_are_all_reduce((text, groups) in groups(), seed: u64, dimension in 0_usize..2) {
        let (n, devices) = (size(&groups), groups.len() * size(&groups));
        let shape = if dimension == 0 { format!("{},2", 2 * n) } else { format!("3,{}", 2 * n) };
        let part = if dimension == 0 { "2,2" } else { "3,2" };
        let program = module(devices, &format!("bf16[{shape}]"), &format!(
            "s = bf16[{part}] reduce-scatter(x), replica_groups={text}, dimensions={{{dimension}}}, to_apply=add\n \
             g = bf16[{shape}] all-gather(s), replica_groups={text}, dimensions={{{dimension}}}\n \
             a = bf16[{shape}] all-reduce(x), replica_groups={text}, to_apply=add\n \
             ROOT r = (bf16[{shape}], bf16[{shape}]) tuple(g, a)"
        ));
        for result in run(&program, |_, device, shape| value(seed, device, shape)).unwrap() {
            prop_assert_eq!(&result.elements()[0], &result.elements()[1]);
        }
    }

    #[test]
    fn all_to_all_twice_is_the_identity((text, groups) in groups(), seed: u64, dimension in 0_usize..2) {
        let (n, devices) = (size(&groups), groups.len() * size(&groups));
        let shape = if dimension == 0 { format!("f16[{},3]", 2 * n) } else { format!("f16[3,{}]", 2 * n) };
        let attributes = format!("replica_groups={text}, dimensions={{{dimension}}}");
        let program = module(devices, &shape, &format!(
            "y = {shape} all-to-all(x), {attributes}\n ROOT z = {shape} all-to-all(y), {attributes}"
        ));
        let results = run(&program, |_, device, shape| value(seed, device, shape)).unwrap();
        for (device, result) in results.iter().enumerate() {
            prop_assert_eq!(result, &value(seed, device, result.array_shape()));
        }
    }
}
