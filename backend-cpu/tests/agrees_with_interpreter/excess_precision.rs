//! Rounding of f16 and bf16 that may wait: once for each chain of operations, but before each comparison.

use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, PlatformRegistry};

fn run(text: &str, excess_precision: bool, inputs: &[Literal]) -> Vec<Literal> {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    let client = Client::new(&registry, "cpu").unwrap();
    let options = CompileOptions { excess_precision, ..CompileOptions::default() };
    let program = client.compile(&VerifiedModule::new(parse_module(text).unwrap()).unwrap(), &options).unwrap();
    let buffers: Vec<_> = inputs.iter().map(|input| client.buffer(input).unwrap()).collect();
    let results = program.execute(&buffers.iter().collect::<Vec<_>>()).unwrap();
    results.iter().map(|result| result.to_literal().unwrap()).collect()
}

fn array(ty: ElementType, dims: &[usize], value: impl Fn(usize) -> f64) -> Literal {
    Literal::from_fn(&xla_hlo::ArrayShape::new(ty, dims.to_vec()), |i| Scalar::Float(value(i))).unwrap()
}

#[test]
fn chains_are_rounded_once_if_that_is_allowed() {
    let text = "HloModule chain
        ENTRY main {
          a = bf16[40] parameter(0)
          b = bf16[40] parameter(1)
          once = bf16[40] add(a, b)
          ROOT twice = bf16[40] add(once, b)
        }";
    // 256 has no bf16 neighbour nearer than 2: one addend alone is rounded away, both together are not.
    let inputs = [256.0, 0.75].map(|x| array(ElementType::BF16, &[40], |_| x));
    for (excess_precision, sum) in [(false, 256.0), (true, 258.0)] {
        let results = run(text, excess_precision, &inputs);
        assert!((0..40).all(|i| results[0].get(i) == Scalar::Float(sum)), "excess precision: {excess_precision}");
    }
}

/// The gradient of a maximum divides by the number of elements that equal it.
#[test]
fn a_maximum_equals_one_of_the_elements_that_are_computed_again() {
    for ty in [ElementType::BF16, ElementType::F16] {
        for (dims, along, kept) in [([7, 100], 1, 7), ([300, 33], 0, 33), ([3, 40_000], 1, 3)] {
            let (shape, whole) = (format!("{ty}[{},{}]", dims[0], dims[1]), format!("[{},{}]", dims[0], dims[1]));
            let (row, spread) = (format!("{ty}[{kept}]"), 1 - along);
            let text = format!(
                "HloModule maximum
                 max {{ x = {ty}[] parameter(0) y = {ty}[] parameter(1) ROOT z = {ty}[] maximum(x, y) }}
                 sum {{ x = s32[] parameter(0) y = s32[] parameter(1) ROOT z = s32[] add(x, y) }}
                 ENTRY main {{
                   a = {shape} parameter(0)
                   b = {shape} parameter(1)
                   least = {ty}[] constant(-inf)
                   zero = s32[] constant(0)
                   scaled = {shape} multiply(a, b)
                   x = {shape} add(scaled, b)
                   most = {row} reduce(x, least), dimensions={{{along}}}, to_apply=max
                   tanh = {row} tanh(most)
                   spread = {shape} broadcast(most), dimensions={{{spread}}}
                   equal = pred{whole} compare(x, spread), direction=EQ
                   ones = s32{whole} convert(equal)
                   count = s32[{kept}] reduce(ones, zero), dimensions={{{along}}}, to_apply=sum
                   ROOT all = (s32[{kept}], {row}, {row}) tuple(count, most, tanh)
                 }}"
            );
            let inputs = [1.0, 3.0].map(|scale| array(ty, &dims, |i| (i as f64 * 0.37 * scale).sin()));
            let counts = &run(&text, true, &inputs)[0];
            let missing = (0..kept).filter(|&i| counts.get(i) == Scalar::Signed(0)).count();
            assert_eq!(missing, 0, "{shape} along {along}: rows whose maximum equals no element");
        }
    }
}
