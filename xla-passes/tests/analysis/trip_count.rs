//! Tests of trip counts of counting loops.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::CompareDirection::{self, Eq, Ge, Gt, Le, Lt, Ne};
use xla_hlo::{ElementKind, ElementType, Literal, Scalar, Shape};
use xla_passes::trip_count;

/// Loop from `first` by `step` while `counter direction bound` is true.
#[derive(Clone, Copy)]
struct Counting {
    ty: ElementType,
    first: i128,
    step: i128,
    direction: CompareDirection,
    bound: i128,
    /// Number of additions of zero to the counter in the condition.
    chain: usize,
}

/// Loop of s32 while the counter is below 10.
const BELOW_TEN: Counting = Counting { ty: ElementType::S32, first: 0, step: 1, direction: Lt, bound: 10, chain: 0 };

impl Counting {
    fn constant(self, value: i128) -> Literal {
        let scalar = match self.ty.kind() {
            ElementKind::Signed => Scalar::Signed(value as i64),
            ElementKind::Unsigned => Scalar::Unsigned(value as u64),
            _ => Scalar::Float(value as f64),
        };
        Literal::scalar(self.ty, scalar)
    }

    /// Builds the loop and returns its trip count.
    fn trips(self) -> Option<u64> {
        let state = Shape::Tuple(vec![Shape::scalar(self.ty)]);
        let mut module = ModuleBuilder::new("m");
        let mut b = module.computation("condition");
        let s = b.parameter(state.clone()).unwrap();
        let mut counter = b.get_tuple_element(s, 0).unwrap();
        let mut zero = b.constant(self.constant(0)).unwrap();
        for _ in 0..self.chain {
            zero = b.add(zero, zero).unwrap();
            counter = b.add(counter, zero).unwrap();
        }
        let bound = b.constant(self.constant(self.bound)).unwrap();
        let holds = b.compare(self.direction, counter, bound).unwrap();
        let condition = b.finish(holds);
        let mut b = module.computation("body");
        let s = b.parameter(state).unwrap();
        let counter = b.get_tuple_element(s, 0).unwrap();
        // Unsigned counters count down by subtraction.
        let step = b.constant(self.constant(self.step.abs())).unwrap();
        let next = if self.step < 0 { b.subtract(counter, step) } else { b.add(counter, step) }.unwrap();
        let root = b.tuple([next]).unwrap();
        let body = b.finish(root);
        let mut b = module.computation("main");
        let first = b.constant(self.constant(self.first)).unwrap();
        let init = b.tuple([first]).unwrap();
        let root = b.while_loop(condition, body, init).unwrap();
        let main = b.finish(root);
        let module = module.finish(main).unwrap();
        trip_count(&module, main, root)
    }

    /// Counts by simulation, up to 1000 steps.
    fn simulated(self) -> Option<u64> {
        let holds = |v: i128| match self.direction {
            Eq => v == self.bound,
            Ne => v != self.bound,
            Ge => v >= self.bound,
            Gt => v > self.bound,
            Le => v <= self.bound,
            Lt => v < self.bound,
        };
        (0..1000u64).find(|&n| !holds(self.first + i128::from(n) * self.step))
    }
}

#[test]
fn counts_are_those_of_running() {
    for direction in [Eq, Ne, Ge, Gt, Le, Lt] {
        for (first, bound) in [(0, 10), (10, 0), (-3, 4), (5, 5), (4, 5), (5, 4)] {
            for step in -4..=4 {
                let counting = Counting { first, step, direction, bound, ..BELOW_TEN };
                assert_eq!(counting.trips(), counting.simulated(), "{first} by {step} while {direction:?} {bound}");
            }
        }
    }
}

#[test]
fn loops_are_read() {
    let counted = |first, step, chain| Counting { first, step, chain, ..BELOW_TEN }.trips();
    assert_eq!(counted(0, 1, 0), Some(10));
    assert_eq!(counted(-5, 4, 0), Some(4));
    assert_eq!(counted(12, 1, 0), Some(0));
    assert_eq!(counted(0, -1, 0), None, "it wraps around after a long time");
    assert_eq!(counted(0, 1, 3), Some(10));
    assert_eq!(counted(0, 1, 50_000), None, "arithmetic without end is not followed");
    assert_eq!(counted(0, i128::from(i32::MAX), 0), Some(1));
    assert_eq!(counted(1, i128::from(i32::MAX), 0), None, "the counter leaves its type");
}

/// Checks both ends of the ranges of element types: a counter that leaves its type is not counted.
#[test]
fn ranges_of_element_types() {
    let counted =
        |ty, first, step, direction, bound| Counting { ty, first, step, direction, bound, ..BELOW_TEN }.trips();
    assert_eq!(counted(ElementType::S8, 0, 1, Lt, 127), Some(127));
    assert_eq!(counted(ElementType::S8, 0, 1, Le, 127), None, "128 is no s8");
    assert_eq!(counted(ElementType::S8, 0, -1, Gt, -128), Some(128));
    assert_eq!(counted(ElementType::S8, 0, -1, Ge, -128), None, "-129 is no s8");
    let most = i128::from(u64::MAX);
    assert_eq!(counted(ElementType::U64, most - 3, 1, Lt, most), Some(3));
    assert_eq!(counted(ElementType::U64, most - 3, 1, Le, most), None, "2^64 is no u64");
    assert_eq!(counted(ElementType::U64, 3, -1, Gt, 0), Some(3));
    assert_eq!(counted(ElementType::U64, 3, -1, Ge, 0), None, "-1 is no u64");
    assert_eq!(counted(ElementType::F32, 0, 1, Lt, 10), None);
}
