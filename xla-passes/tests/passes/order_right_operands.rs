//! Tests of orders of right operands: every element type, targets without a preference, and limits of size.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::DotDims;
use xla_hlo::{ArrayShape, ElementType, Module, Op, Shape};
use xla_passes::{DotProfile, PassContext, PassOptions, TargetProfile, registry};

use crate::support::{Random, difference, evaluate};

fn run(module: &mut Module, right_rows: bool) {
    let dot = DotProfile { right_rows, ..TargetProfile::generic().dot };
    let profile = TargetProfile { dot, ..TargetProfile::generic() };
    let cx = PassContext::new(&profile).with_options(PassOptions { verify: true, ..PassOptions::default() });
    registry::pipeline(["order-right-operands"]).and_then(|p| p.run(module, &cx)).expect("the pass succeeds");
}

/// Returns `dot(x[2,K], w[columns,K])` with a constant `w`, which is also negated if `shared`.
fn product(ty: ElementType, columns: usize, k: usize, shared: bool) -> Module {
    let shape = |rows| Shape::array(ty, [rows, k]).with_default_layouts();
    let value = Random(columns as u64).literal(&shape(columns), true);
    let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![1], ..DotDims::default() };
    let mut module = ModuleBuilder::new("m");
    let mut b = module.computation("main");
    let x = b.parameter(shape(2)).expect("a parameter");
    let w = b.constant(value).expect("a constant");
    let mut results = vec![b.dot(x, w, dims, None).expect("a dot")];
    if shared {
        results.push(b.reverse(w, [0]).expect("a reverse"));
    }
    let root = b.tuple(results).expect("a tuple");
    let main = b.finish(root);
    module.finish(main).expect("a module").into_inner()
}

/// Returns the dimensions of the constants.
fn constants(module: &Module) -> Vec<Vec<usize>> {
    let shape = |op: &Op, shape: &Shape| matches!(op, Op::Constant(_)).then(|| shape.as_array().cloned()).flatten();
    let constants = module.entry().iter().filter_map(|(_, i)| shape(i.op(), i.shape()));
    constants.map(|array: ArrayShape| array.dims().to_vec()).collect()
}

#[test]
fn constants_of_every_type_keep_their_values() {
    for &ty in ElementType::ALL {
        let before = product(ty, 65, 3, true);
        let mut after = before.clone();
        run(&mut after, true);
        assert_eq!(constants(&after), [[65, 3], [3, 65]], "{ty}");
        for seed in 0..4 {
            let [old, new] = [&before, &after].map(|m| evaluate(m, seed, seed < 2, 100_000).expect("it evaluates"));
            assert_eq!(difference(&old, &new, false), None, "{ty}: {after}");
        }
    }
}

#[test]
fn a_target_without_a_wish_gets_no_other_order() {
    let before = product(ElementType::F32, 64, 2, false);
    let mut after = before.clone();
    run(&mut after, false);
    assert_eq!(after.to_string(), before.to_string());
}

#[test]
fn large_constants_get_no_second_copy() {
    // One element more than 1 MiB exceeds the limit.
    for (k, shared, expected) in [
        (1 << 14, true, vec![vec![64, 1 << 14], vec![1 << 14, 64]]),
        ((1 << 14) + 1, true, vec![vec![64, (1 << 14) + 1]]),
        ((1 << 14) + 1, false, vec![vec![(1 << 14) + 1, 64]]),
    ] {
        let mut module = product(ElementType::S8, 64, k, shared);
        run(&mut module, true);
        assert_eq!(constants(&module), expected);
    }
}
