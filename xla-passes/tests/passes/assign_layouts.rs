//! Tests of layout assignment: orders of dimensions, and convolutions in the order of the target.

use xla_hlo::Opcode;
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_passes::internals::DimOrder;
use xla_passes::{AssignLayouts, ConvolutionOrder, Pass, PassContext, TargetProfile};

/// Checks that chained convolutions need no transpose between them, and that the result is unchanged.
#[test]
fn targets_get_the_order_they_take() {
    let text = include_str!("programs/targets_get_the_order_they_take.hlo");
    let mut module = parse_module(text).unwrap();
    let before = evaluate(&module, vec![]).unwrap();
    let mut profile = TargetProfile::generic();
    profile.layout.convolution = ConvolutionOrder::ChannelsLast;
    let cx = PassContext::new(&profile);
    assert!(AssignLayouts.run(&mut module, &cx).unwrap().is_changed());
    xla_hlo::verify::check(&module).unwrap();
    assert_eq!(before, evaluate(&module, vec![]).unwrap());
    let entry = module.entry();
    let find = |name| entry.find(name).unwrap_or_else(|| panic!("{name} in {module}"));
    assert_eq!(entry[find("d")].operand(0), find("n"));
    assert_eq!(entry[find("n")].operand(0), find("c"));
    assert_eq!(entry[entry.root()].opcode(), Opcode::Transpose);
    assert!(!AssignLayouts.run(&mut module, &cx).unwrap().is_changed());
}

#[test]
fn orders_follow_one_another_as_transposes_do() {
    let (a, b) = (DimOrder::new(vec![1, 2, 0]), DimOrder::new(vec![0, 2, 1]));
    let items = ['x', 'y', 'z'];
    assert_eq!(a.then(&b).apply(&items), b.apply(&a.apply(&items)));
    assert_eq!(a.apply(&items), ['y', 'z', 'x']);
    assert!(a.then(&a.inverse()).is_identity() && a.inverse().then(&a).is_identity());
    assert_eq!((a.dimension(0), a.place(1)), (1, 0));
    assert_eq!((DimOrder::default().place(2), DimOrder::default().permutation(2)), (2, vec![0, 1]));
}
