//! Sharding rules: the factors of an operation, which relate the dimensions of its operands and results.

use crate::{CompId, Computation, InstrId, Instruction, Module, Shape};

/// Factors of an operation: each is a dimension, or a part of one, of some of its arrays, which are split together.
///
/// A dimension is the product of its factors, major first. The rule of a matrix product of `[8, 16]` and `[16, 32]` is
/// `([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}`, in the text form that [`ShardingRule::parse`] reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardingRule {
    /// Factors; their numbers are indices of this list.
    pub factors: Vec<Factor>,
    /// Factors of each dimension of each array among the operands; tuples are flattened to their leaves.
    pub operands: Vec<TensorFactors>,
    /// Factors of each dimension of each array among the results.
    pub results: Vec<TensorFactors>,
    /// Whether each element of the results is computed from the elements at its own position. Propagation handles such
    /// operations first.
    pub is_elementwise: bool,
}

/// Numbers of the factors of each dimension, major first. Empty for scalars and tokens.
pub type TensorFactors = Vec<Vec<usize>>;

/// One factor of a [`ShardingRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// Number of elements along the factor.
    pub size: usize,
    /// Communication that a split along the factor needs.
    pub kind: FactorKind,
    /// Whether propagation never carries axes along the factor.
    pub is_blocked: bool,
}

/// Communication that a split along a factor needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FactorKind {
    /// None: each device computes its part of the results from its parts of the operands.
    #[default]
    PassThrough,
    /// The results of the devices are partial and must be reduced.
    Reduction,
    /// The operation needs all elements along the factor.
    NeedReplication,
    /// Devices exchange elements with others along the factor, such as halos.
    Permutation,
}

/// Instruction whose rule is built, with the shapes and producers that rules depend on.
#[derive(Clone, Copy)]
pub struct RuleContext<'a> {
    /// Module, for combiners.
    pub module: &'a Module,
    computation: &'a Computation,
    id: InstrId,
}

impl<'a> RuleContext<'a> {
    /// Creates the context of instruction `id` of a computation.
    pub fn new(module: &'a Module, computation: CompId, id: InstrId) -> RuleContext<'a> {
        RuleContext { module, computation: &module[computation], id }
    }

    /// Returns the instruction.
    pub fn instruction(&self) -> &'a Instruction {
        &self.computation[self.id]
    }

    /// Returns the instruction that produces operand `i`.
    pub fn producer(&self, i: usize) -> &'a Instruction {
        &self.computation[self.instruction().operand(i)]
    }

    /// Returns the instructions that use the result.
    pub fn users(&self) -> impl Iterator<Item = &'a Instruction> {
        let computation = self.computation;
        self.instruction().users().iter().map(move |&user| &computation[user])
    }

    /// Returns the dimensions of operand `i`; none for a scalar, a tuple, a token or a missing operand.
    pub fn operand(&self, i: usize) -> &'a [usize] {
        self.instruction().operands().get(i).map_or(&[], |&operand| self.computation[operand].shape().dims())
    }

    /// Returns the dimensions of the result, or of result `i` of a tuple.
    pub fn result(&self, i: usize) -> &'a [usize] {
        match self.instruction().shape() {
            Shape::Tuple(elements) => elements.get(i).map_or(&[], Shape::dims),
            shape => shape.dims(),
        }
    }
}

/// Builds a [`ShardingRule`] factor by factor.
///
/// A factor may be added to an array or a dimension that does not exist, since the verifier does not check the operands
/// of custom calls. No dimensions of the finished rule are then split together.
#[derive(Debug)]
pub struct RuleBuilder {
    rule: ShardingRule,
    operand_dims: Vec<Vec<usize>>,
    result_dims: Vec<Vec<usize>>,
    /// Whether all factors were added to dimensions that exist.
    fits: bool,
}

impl RuleBuilder {
    /// Starts the rule of an instruction.
    pub fn new(cx: &RuleContext<'_>) -> RuleBuilder {
        let leaves = |shape: &Shape| shape.leaves().iter().map(|(_, leaf)| leaf.dims().to_vec()).collect::<Vec<_>>();
        let instruction = cx.instruction();
        let operands = (0..instruction.operands().len()).flat_map(|i| leaves(cx.producer(i).shape())).collect();
        RuleBuilder::with_dims(operands, leaves(instruction.shape()))
    }

    /// Starts the rule of an operation on arrays of these dimensions.
    pub fn with_dims(operand_dims: Vec<Vec<usize>>, result_dims: Vec<Vec<usize>>) -> RuleBuilder {
        RuleBuilder { rule: unmapped(&operand_dims, &result_dims), operand_dims, result_dims, fits: true }
    }

    /// Returns the rule with one pass-through factor for dimension `d` of each array that is not a scalar.
    pub fn pointwise(cx: &RuleContext<'_>) -> ShardingRule {
        let mut builder = RuleBuilder::new(cx);
        let dims = cx.result(0).to_vec();
        builder.pointwise_dims(&dims, |_| FactorKind::PassThrough);
        builder.finish()
    }

    /// Returns the rule of an operation that computes each element from the elements at the same position.
    pub fn elementwise(cx: &RuleContext<'_>) -> ShardingRule {
        ShardingRule { is_elementwise: true, ..RuleBuilder::pointwise(cx) }
    }

    /// Returns the rule of an operation whose result `i` is its operand `i`. It may have more operands than results.
    pub fn identity(cx: &RuleContext<'_>) -> ShardingRule {
        let mut builder = RuleBuilder::new(cx);
        for i in 0..builder.rule.results.len() {
            for (d, size) in builder.result_dims[i].clone().into_iter().enumerate() {
                builder.add(size, FactorKind::PassThrough, &[(i, d)], &[(i, d)]);
            }
        }
        builder.finish()
    }

    /// Returns the dimensions of each operand.
    pub fn operand_dims(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.operand_dims.iter()
    }

    /// Returns the dimensions of each result.
    pub fn result_dims(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.result_dims.iter()
    }

    /// Adds a factor of its own, which needs replication, to each dimension without one.
    pub fn replicate_rest(&mut self) {
        let RuleBuilder { rule, operand_dims, result_dims, .. } = self;
        let ShardingRule { factors, operands, results, .. } = rule;
        for (tensors, dims) in [(operands, &*operand_dims), (results, &*result_dims)] {
            for (dim, &size) in tensors.iter_mut().flatten().zip(dims.iter().flatten()) {
                if dim.is_empty() {
                    dim.push(factors.len());
                    factors.push(Factor { size, kind: FactorKind::NeedReplication, is_blocked: false });
                }
            }
        }
    }

    /// Returns the number of arrays among the operands.
    pub fn operand_count(&self) -> usize {
        self.rule.operands.len()
    }

    /// Adds one factor for each of the leading dimensions, with the sizes `dims`, in all arrays that are not scalars.
    pub fn pointwise_dims(&mut self, dims: &[usize], kind: impl Fn(usize) -> FactorKind) {
        for (d, &size) in dims.iter().enumerate() {
            self.add_to_all(size, kind(d), d);
        }
    }

    /// Adds one factor for each dimension of an operand and a result of equal rank. `mismatch` is the kind where the
    /// sizes differ, and whether propagation is blocked there.
    pub fn pointwise_with_mismatch(&mut self, operand: &[usize], result: &[usize], mismatch: (FactorKind, bool)) {
        for (d, (&size, &other)) in operand.iter().zip(result).enumerate() {
            if size == other {
                self.add_to_all(size, FactorKind::PassThrough, d);
            } else {
                self.add_to_all(size, mismatch.0, d);
                self.block_last(mismatch.1);
            }
        }
    }

    /// Adds a factor to dimension `d` of all arrays that are not scalars.
    pub fn add_to_all(&mut self, size: usize, kind: FactorKind, d: usize) {
        self.add_to_operands(size, kind, d);
        let factor = self.rule.factors.len() - 1;
        self.fits &= push_to_all(&mut self.rule.results, d, factor);
    }

    /// Adds a factor to dimension `d` of all operands that are not scalars.
    pub fn add_to_operands(&mut self, size: usize, kind: FactorKind, d: usize) {
        let factor = self.new_factor(size, kind);
        self.fits &= push_to_all(&mut self.rule.operands, d, factor);
    }

    /// Adds a factor to dimension `d` of all results that are not scalars.
    pub fn add_to_results(&mut self, size: usize, kind: FactorKind, d: usize) {
        let factor = self.new_factor(size, kind);
        self.fits &= push_to_all(&mut self.rule.results, d, factor);
    }

    /// Adds a factor to dimensions of operands and results, each given as `(array, dimension)`. A factor of size 1 is
    /// left out of dimensions that have factors.
    pub fn add(&mut self, size: usize, kind: FactorKind, operands: &[(usize, usize)], results: &[(usize, usize)]) {
        let factor = self.new_factor(size, kind);
        for (tensors, places) in [(&mut self.rule.operands, operands), (&mut self.rule.results, results)] {
            for &(tensor, d) in places {
                let Some(dim) = tensors.get_mut(tensor).and_then(|tensor| tensor.get_mut(d)) else {
                    self.fits = false;
                    continue;
                };
                if size != 1 || dim.is_empty() {
                    dim.push(factor);
                }
            }
        }
    }

    /// Blocks propagation along the factor that was added last, if `is_blocked`.
    pub fn block_last(&mut self, is_blocked: bool) {
        if let Some(last) = self.rule.factors.last_mut() {
            last.is_blocked = is_blocked;
        }
    }

    /// Returns the rule. Dimensions without a factor get one of their own, of size 1, so that no axis splits them.
    pub fn finish(mut self) -> ShardingRule {
        if !self.fits {
            self.rule = unmapped(&self.operand_dims, &self.result_dims);
        }
        for tensors in [&mut self.rule.operands, &mut self.rule.results] {
            for dim in tensors.iter_mut().flatten().filter(|dim| dim.is_empty()) {
                dim.push(self.rule.factors.len());
                self.rule.factors.push(Factor { size: 1, kind: FactorKind::PassThrough, is_blocked: false });
            }
        }
        self.rule
    }

    fn new_factor(&mut self, size: usize, kind: FactorKind) -> usize {
        self.rule.factors.push(Factor { size, kind, is_blocked: false });
        self.rule.factors.len() - 1
    }
}

/// Adds a factor to dimension `d` of all arrays that are not scalars; returns whether all of them have it.
fn push_to_all(tensors: &mut [TensorFactors], d: usize, factor: usize) -> bool {
    let mut fits = true;
    for tensor in tensors.iter_mut().filter(|tensor| !tensor.is_empty()) {
        match tensor.get_mut(d) {
            Some(dim) => dim.push(factor),
            None => fits = false,
        }
    }
    fits
}

/// Returns a rule without factors.
fn unmapped(operand_dims: &[Vec<usize>], result_dims: &[Vec<usize>]) -> ShardingRule {
    let mappings = |dims: &[Vec<usize>]| dims.iter().map(|dims| vec![Vec::new(); dims.len()]).collect();
    ShardingRule {
        factors: Vec::new(),
        operands: mappings(operand_dims),
        results: mappings(result_dims),
        is_elementwise: false,
    }
}
