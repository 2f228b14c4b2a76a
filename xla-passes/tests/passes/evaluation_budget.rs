//! Tests of the budget for evaluating constants at compile time.

use xla_hlo::text::parse_module;
use xla_passes::internals::EvaluationBudget;

#[test]
fn work_is_spent_until_no_more_is_left() {
    let text = include_str!("programs/work_is_spent_until_no_more_is_left.hlo");
    let module = parse_module(text).unwrap();
    let graph = module.entry();
    let find = |name: &str| graph.find(name).unwrap();
    let mut budget = EvaluationBudget::of(50);
    // Sums visited elements and the operations on them.
    assert_eq!(budget.work(&module, graph, find("n")), 8 + 8);
    assert!(!budget.spend(&module, graph, find("n"), 15));
    assert!(budget.spend(&module, graph, find("n"), 16));
    assert_eq!(budget.left, 34);
    assert!(budget.spend(&module, graph, find("n"), 100) && budget.spend(&module, graph, find("n"), 100));
    assert!(!budget.spend(&module, graph, find("n"), 100));
    assert_eq!(budget.left, 2);
    assert!(budget.work(&module, graph, find("s")) > 8 + 8);
}
