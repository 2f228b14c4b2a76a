//! Tests of the users of an instruction, which the edits of a computation maintain.

use xla_hlo::ops::{Parameter, Unary, UnaryOp};
use xla_hlo::{Computation, ElementType, InstrId, Instruction, Shape};

/// A computation with two parameters and users of the first one.
struct Graph {
    computation: Computation,
    a: InstrId,
    b: InstrId,
}

impl Graph {
    fn new() -> Graph {
        let mut computation = Computation::new("c");
        let mut parameter = |number| {
            computation.add(Instruction::new(Parameter { number }.into(), Shape::scalar(ElementType::F32), []))
        };
        let (a, b) = (parameter(0), parameter(1));
        Graph { computation, a, b }
    }

    /// Adds users of the first parameter, each with `operands` operands.
    fn add(&mut self, count: usize, operands: usize) -> Vec<InstrId> {
        let op = || Unary::from(UnaryOp::Negate).into();
        let shape = Shape::scalar(ElementType::F32);
        (0..count)
            .map(|_| self.computation.add(Instruction::new(op(), shape.clone(), vec![self.a; operands])))
            .collect()
    }

    fn users(&self) -> &[InstrId] {
        self.computation[self.a].users()
    }

    fn is_used_by(&self, user: InstrId) -> bool {
        self.computation[self.a].is_used_by(user)
    }
}

#[test]
fn few_users_keep_their_order() {
    let mut graph = Graph::new();
    let mut users = graph.add(5, 1);
    users.iter().for_each(|&user| graph.computation.set_operands(user, vec![graph.a; 2]));
    users.extend(graph.add(2, 3));
    assert_eq!(graph.users(), users, "each is there once, however often it uses the operand");
    graph.computation.set_operands(users[3], vec![graph.b]);
    users.remove(3);
    assert_eq!(graph.users(), users);
    graph.computation.remove(users.remove(5)).unwrap();
    assert_eq!(graph.users(), users);
}

#[test]
fn many_users_are_each_there_once() {
    let mut graph = Graph::new();
    let users = graph.add(1000, 1);
    users[500..].iter().for_each(|&user| graph.computation.set_operands(user, vec![graph.a; 2]));
    assert_eq!(graph.users(), users);
    let (kept, removed): (Vec<_>, Vec<_>) = users.iter().enumerate().partition(|(i, _)| i % 17 == 0);
    for (_, &user) in removed {
        assert!(graph.is_used_by(user));
        graph.computation.set_operands(user, vec![graph.b; 2]);
        assert!(!graph.is_used_by(user));
    }
    let mut left = graph.users().to_vec();
    left.sort_unstable();
    assert_eq!(left, kept.into_iter().map(|(_, &user)| user).collect::<Vec<_>>());
    assert!(left.iter().all(|&user| graph.is_used_by(user)));
}

/// A removal that searches the list of users would take hours.
#[test]
fn removing_a_million_users_takes_no_time() {
    let mut graph = Graph::new();
    let many = graph.add(1_000_000, 1);
    assert_eq!(graph.users().len(), many.len());
    graph.computation.remove_all(&many).unwrap();
    assert!(graph.users().is_empty());
}
