//! Tests of kernels that share code.

use xla_hlo::text::parse_module;
use xla_llvm::fused::{KernelSource, KernelTable};

#[test]
fn only_equal_kernels_share_code() {
    let module = parse_module(
        "first { x = f32[40] parameter(0) y = f32[40] parameter(1) a = f32[40] add(x, y) ROOT r = f32[40] multiply(a, y) }
         equal { u = f32[40] parameter(0) v = f32[40] parameter(1) b = f32[40] add(u, v) ROOT s = f32[40] multiply(b, v) }
         operand { x = f32[40] parameter(0) y = f32[40] parameter(1) a = f32[40] add(x, y) ROOT r = f32[40] multiply(a, a) }
         other { x = f32[40] parameter(0) y = f32[40] parameter(1) a = f32[40] add(x, y) ROOT r = f32[40] multiply(a, x) }
         size { x = f32[41] parameter(0) y = f32[41] parameter(1) a = f32[41] add(x, y) ROOT r = f32[41] multiply(a, y) }
         kind { x = f32[40] parameter(0) y = f32[40] parameter(1) a = f32[40] add(x, y) ROOT r = f32[40] divide(a, y) }
         ENTRY main { ROOT c = f32[] constant(0) }",
    )
    .unwrap();
    let mut table = KernelTable::default();
    let mut number = |name| {
        let computation = module.find(name).unwrap();
        table.number(KernelSource::of_computation(&module, computation, |_| false).unwrap())
    };
    let names = ["first", "equal", "operand", "other", "size", "kind", "first"];
    assert_eq!(names.map(&mut number), [0, 0, 1, 2, 3, 4, 0]);
}
