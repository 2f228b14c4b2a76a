//! Steps that add to programs, with their weights in each family.

use super::family::Family;
use super::graph::{Graph, Value};

/// Step that adds to a computation, and its weight in each family.
#[derive(Clone, Copy)]
pub(super) struct GraphStep {
    pub(super) apply: fn(&mut Graph<'_>) -> Option<Value>,
    weights: [usize; 11],
}

macro_rules! steps {
    ($($method:ident $weights:expr;)*) => {
        /// Weights are in the order of [`Family::ALL`]. The first six steps are applicable to scalars.
        pub(super) const STEPS: &[GraphStep] = &[$(GraphStep { apply: |graph| graph.$method(), weights: $weights },)*];
    };
}

steps! {
    unary [20, 3, 4, 2, 3, 3, 4, 6, 6, 6, 4];
    binary [20, 4, 5, 3, 4, 4, 6, 8, 10, 6, 6];
    compare [5, 1, 1, 1, 0, 1, 2, 2, 2, 2, 1];
    select [4, 2, 1, 1, 0, 1, 2, 2, 2, 2, 1];
    clamp [3, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0];
    convert [8, 1, 2, 1, 2, 2, 2, 3, 4, 4, 2];
    reduce_precision [2, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0];
    bitcast_convert [3, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0];
    broadcast [1, 4, 3, 1, 2, 2, 2, 3, 4, 2, 2];
    reshape [1, 4, 3, 1, 2, 2, 2, 3, 4, 2, 2];
    transpose [1, 4, 3, 1, 2, 2, 2, 3, 6, 2, 2];
    slice [0, 4, 2, 1, 1, 1, 1, 2, 3, 1, 2];
    pad [0, 4, 1, 1, 1, 1, 1, 2, 3, 1, 1];
    concatenate [0, 4, 1, 1, 1, 1, 2, 2, 3, 2, 2];
    reverse [0, 3, 1, 1, 1, 1, 1, 1, 2, 0, 0];
    dynamic_slice [0, 4, 1, 0, 1, 1, 4, 2, 2, 1, 0];
    dynamic_update_slice [0, 4, 1, 0, 0, 1, 6, 2, 3, 1, 2];
    regroup [1, 2, 1, 1, 1, 1, 2, 1, 1, 2, 0];
    reduce [1, 1, 20, 2, 3, 2, 3, 4, 10, 3, 5];
    reduce_window [0, 0, 1, 12, 0, 0, 0, 1, 0, 0, 1];
    select_and_scatter [0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0];
    dot [0, 0, 1, 0, 12, 1, 1, 2, 4, 1, 3];
    ragged_dot [0, 0, 1, 0, 5, 1, 1, 2, 1, 3, 0];
    scan [0, 0, 4, 0, 0, 0, 3, 2, 0, 4, 1];
    batch_norm [0, 0, 3, 0, 0, 0, 0, 1, 1, 6, 0];
    fft [0, 0, 1, 0, 3, 0, 0, 1, 1, 0, 0];
    cholesky [0, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0];
    triangular_solve [0, 0, 0, 0, 2, 0, 0, 1, 1, 0, 0];
    convolution [0, 0, 0, 2, 8, 0, 0, 2, 1, 0, 0];
    gather [0, 0, 0, 0, 0, 10, 1, 2, 1, 1, 1];
    scatter [0, 0, 0, 0, 0, 10, 1, 2, 1, 1, 1];
    sort [0, 3, 1, 0, 0, 4, 1, 3, 2, 1, 1];
    top_k [0, 2, 1, 0, 0, 3, 1, 2, 1, 3, 0];
    call [0, 0, 0, 0, 0, 0, 20, 6, 0, 6, 0];
    normalize [0, 0, 8, 0, 2, 0, 2, 3, 4, 0, 3];
    rng_bit_generator [0, 0, 0, 0, 0, 0, 1, 1, 0, 5, 0];
    rng [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    stochastic_convert [1, 0, 0, 0, 0, 0, 0, 1, 0, 4, 0];
    collective [0, 0, 0, 0, 0, 0, 2, 1, 1, 12, 0];
    effect [0, 0, 0, 0, 0, 0, 4, 2, 1, 8, 0];
    dynamic [0, 1, 2, 0, 1, 0, 2, 2, 0, 16, 0];
    custom_call [0, 0, 0, 0, 1, 0, 0, 1, 0, 5, 0];
    idiom [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30];
}

impl Graph<'_> {
    /// Adds an operation, if there are suitable operands.
    pub(super) fn step(&mut self, family: Family) -> Option<Value> {
        let weight = |step: &GraphStep| step.weights[family as usize];
        let mut at = self.random.below(STEPS.iter().map(weight).sum());
        for step in STEPS {
            match at.checked_sub(weight(step)) {
                Some(rest) => at = rest,
                None => return (step.apply)(self),
            }
        }
        None
    }
}
