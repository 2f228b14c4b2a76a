//! Graph under construction: a pool of values that steps use and extend.

use std::collections::BTreeMap;

use xla::compare::Tolerance;
use xla_hlo::builder::ComputationBuilder;
use xla_hlo::{ArrayShape, ElementType, InstrId, Layout, Literal, Result, Scalar};

use super::callee::Callee;
use super::numbers::Numbers;
use super::random::Random;
use super::values::{self, Temper};

/// Size class of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeClass {
    /// Arrays of called computations, which may be called often.
    Callee,
    /// Mostly small arrays.
    Small,
    /// Arrays large enough to use several threads.
    Large,
}

impl SizeClass {
    /// Returns the maximum number of elements of an array.
    fn most(self) -> usize {
        match self {
            SizeClass::Callee => 3000,
            SizeClass::Small => 20_000,
            SizeClass::Large => 300_000,
        }
    }
}

/// Array of the computation.
#[derive(Clone, Debug)]
pub struct Value {
    /// Instruction that produces the array.
    pub id: InstrId,
    /// Shape without a layout.
    pub shape: ArrayShape,
    /// Properties of the elements.
    pub numbers: Numbers,
}

impl Value {
    pub(super) fn ty(&self) -> ElementType {
        self.shape.element_type()
    }

    pub(super) fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.rank()
    }
}

/// Computation under construction.
pub struct Graph<'g> {
    pub(super) b: ComputationBuilder<'g>,
    pub(super) random: &'g mut Random,
    pub(super) callees: &'g [Callee],
    pub(super) values: Vec<Value>,
    /// Arguments of the parameters added so far; `None` in called computations, where no parameters can be added.
    pub(super) inputs: Option<Vec<Literal>>,
    /// Tolerances of results of idioms, which are tighter than those of their properties.
    pub(super) tolerances: BTreeMap<InstrId, Tolerance>,
    /// Parameters, in the order of the arguments.
    pub(super) parameters: Vec<InstrId>,
    /// Size class.
    pub(super) sizes: SizeClass,
    /// Element types of new arrays.
    pub(super) types: Vec<ElementType>,
}

impl Graph<'_> {
    /// Adds an instruction that produces an array with given properties. Does nothing if there are none, or if the
    /// builder returns an error (an operation does not support the element type).
    pub(super) fn put(
        &mut self,
        numbers: Option<Numbers>,
        make: impl FnOnce(&mut ComputationBuilder<'_>) -> Result<InstrId>,
    ) -> Option<Value> {
        let numbers = numbers?;
        let id = make(&mut self.b).ok()?;
        let shape = self.b.shape(id).as_array()?.clone().with_layout(None);
        let value = Value { id, shape, numbers };
        self.values.push(value.clone());
        Some(value)
    }

    /// Returns an acceptable value; later ones are preferred.
    pub(super) fn any(&mut self, accept: impl Fn(&Value) -> bool) -> Option<Value> {
        let fit: Vec<usize> = (0..self.values.len()).filter(|&i| accept(&self.values[i])).collect();
        let tail = fit.len().div_ceil(3);
        let from = if self.random.percent(60) { &fit[fit.len() - tail..] } else { &fit[..] };
        (!from.is_empty()).then(|| self.values[self.random.pick(from)].clone())
    }

    /// Returns an acceptable array of a type and dimensions: an existing one, or a new one, whose values are settled
    /// and exact.
    pub(super) fn like(&mut self, ty: ElementType, dims: &[usize], accept: impl Fn(&Numbers) -> bool) -> Value {
        let fits = |v: &Value| v.ty() == ty && v.dims() == dims && accept(&v.numbers);
        if self.random.percent(75)
            && let Some(value) = self.any(fits)
        {
            return value;
        }
        if self.random.percent(40)
            && let Some(value) = self.adapted(ty, dims, &accept)
        {
            return value;
        }
        for temper in [Temper::any(self.random), Temper::Smooth, Temper::Grid] {
            let value = self.leaf(ty, dims, temper);
            if accept(&value.numbers) {
                return value;
            }
        }
        self.leaf(ty, dims, Temper::Grid)
    }

    /// Broadcasts or reshapes a value to given dimensions.
    fn adapted(&mut self, ty: ElementType, dims: &[usize], accept: impl Fn(&Numbers) -> bool) -> Option<Value> {
        let count: usize = dims.iter().product();
        let size = |v: &Value| v.shape.element_count();
        let fits = |v: &Value| v.ty() == ty && accept(&v.numbers);
        if self.random.percent(50)
            && let Some(value) = self.any(|v| fits(v) && size(v) == count)
        {
            return self.put(Some(value.numbers), |b| b.reshape(value.id, dims));
        }
        let value = self.any(|v| fits(v) && v.rank() <= dims.len() && is_subsequence(v.dims(), dims))?;
        let places = places_of(value.dims(), dims)?;
        self.put(Some(value.numbers), |b| b.broadcast(value.id, dims, places))
    }

    /// Adds a new array: a parameter, a constant, an iota, or a broadcast constant.
    pub(super) fn leaf(&mut self, ty: ElementType, dims: &[usize], temper: Temper) -> Value {
        let shape = ArrayShape::new(ty, dims);
        let count = shape.element_count();
        if self.inputs.is_some() && self.random.percent(80) {
            let (literal, numbers) = values::literal(self.random, &shape, temper);
            return self.parameter(literal, numbers);
        }
        if !dims.is_empty() && self.random.percent(20) {
            let d = self.random.below(dims.len());
            let numbers = Numbers::rounded(ty, dims[d].saturating_sub(1) as f64, 1.0);
            if let Some(value) = self.put(Some(numbers), |b| b.iota(shape.clone(), d)) {
                return value;
            }
        }
        let of_scalar = count > 64 || self.random.percent(30);
        let made = if of_scalar { ArrayShape::scalar(ty) } else { shape };
        let (literal, numbers) = values::literal(self.random, &made, temper);
        let value = self.put(Some(numbers), |b| b.constant(literal)).expect("a constant can always be made");
        if !of_scalar || dims.is_empty() {
            return value;
        }
        self.put(Some(numbers), |b| b.broadcast(value.id, dims, [])).expect("a scalar can be broadcast")
    }

    /// Adds a new parameter, rarely with a layout that is not row-major.
    pub(super) fn parameter(&mut self, literal: Literal, numbers: Numbers) -> Value {
        let mut shape = literal.shape().clone();
        if let (Some(array), true) = (shape.as_array(), self.random.percent(8)) {
            let order = self.random.permutation(array.rank());
            shape = array.clone().with_layout(Some(Layout::from_minor_to_major(order))).into();
        }
        let value = self.put(Some(numbers), |b| b.parameter(shape)).expect("a parameter can always be made");
        self.inputs.get_or_insert_default().push(literal);
        self.parameters.push(value.id);
        value
    }

    /// Adds a scalar constant.
    pub(super) fn scalar(&mut self, ty: ElementType, value: i64) -> InstrId {
        let literal = Literal::scalar(ty, Scalar::from_i64(ty, value).rounded(ty));
        self.b.constant(literal).expect("a constant can always be made")
    }

    /// Returns dimensions for a new array: rank 0 to 4, mostly odd sizes, rarely empty, rarely large.
    pub(super) fn dims(&mut self) -> Vec<usize> {
        let rank = self.random.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
        if self.sizes == SizeClass::Large {
            return self.large_dims(rank.clamp(1, 3));
        }
        let most = if self.random.percent(5) { self.sizes.most() } else { SizeClass::Callee.most() };
        let mut dims: Vec<usize> = (0..rank).map(|_| self.size()).collect();
        while dims.iter().product::<usize>() > most {
            let at = self.random.below(rank);
            dims[at] = dims[at].div_ceil(3);
        }
        dims
    }

    fn large_dims(&mut self, rank: usize) -> Vec<usize> {
        let mut dims: Vec<usize> = (0..rank).map(|_| self.random.between(1, 130)).collect();
        let rest: usize = dims[1..].iter().product();
        dims[0] = self.random.between(20_000, self.sizes.most() / 2).div_ceil(rest);
        let order = self.random.permutation(rank);
        order.into_iter().map(|i| dims[i]).collect()
    }

    /// Returns a size of a dimension.
    pub(super) fn size(&mut self) -> usize {
        if self.random.percent(1) {
            return 0;
        }
        self.random.pick(&[1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 67, 128, 130])
    }

    /// Whether an array of these dimensions is small enough.
    pub(super) fn is_small(&self, dims: &[usize]) -> bool {
        let count = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        count.is_some_and(|n| n <= self.sizes.most())
    }

    /// Returns the element type of a new array.
    pub(super) fn ty(&mut self) -> ElementType {
        self.random.pick(&self.types)
    }
}

/// Whether `part` is a subsequence of `whole`.
fn is_subsequence(part: &[usize], whole: &[usize]) -> bool {
    places_of(part, whole).is_some()
}

/// Returns the positions of a subsequence.
fn places_of(part: &[usize], whole: &[usize]) -> Option<Vec<usize>> {
    let mut rest = whole.iter().enumerate();
    part.iter().map(|size| rest.find(|(_, d)| *d == size).map(|(i, _)| i)).collect()
}
