//! Dots, and reductions over dimensions and windows.

use xla_hlo::ops::{BinaryOp, DotDims, SelectAndScatter, Window, WindowDim};
use xla_hlo::{ElementKind, ElementType};

use super::callee::{Callee, CalleeRole};
use super::graph::{Graph, Value};
use super::numbers::{Numbers, epsilon, fits_grid};
use super::values::Temper;

/// Role of a dimension of a dot's left operand.
#[derive(Clone, Copy, PartialEq)]
enum ReductionPart {
    Batch,
    Contracting,
    Free,
}

impl Graph<'_> {
    pub(super) fn dot(&mut self) -> Option<Value> {
        let is_operand = |v: &Value| v.ty() != ElementType::Pred && is_tame(v.ty(), &v.numbers);
        let lhs = if self.random.percent(60) { self.any(is_operand) } else { None };
        let lhs = lhs.unwrap_or_else(|| {
            let (ty, dims) = (self.ty(), self.dims());
            self.leaf(ty, &dims, Temper::Grid)
        });
        let parts: Vec<ReductionPart> = lhs
            .dims()
            .iter()
            .map(|_| self.random.pick(&[ReductionPart::Batch, ReductionPart::Contracting, ReductionPart::Free]))
            .collect();
        let of = |part: ReductionPart| -> Vec<usize> { (0..parts.len()).filter(|&d| parts[d] == part).collect() };
        let (mut batch, mut contracting) = (of(ReductionPart::Batch), of(ReductionPart::Contracting));
        if self.random.percent(30) {
            batch.reverse();
            contracting.reverse();
        }
        let free: Vec<usize> = (0..self.random.below(3)).map(|_| self.size()).collect();
        let sizes = |dims: &[usize]| dims.iter().map(|&d| lhs.dims()[d]).collect::<Vec<_>>();
        let result = [sizes(&batch), sizes(&of(ReductionPart::Free)), free.clone()].concat();
        let rhs_sizes = [sizes(&batch), sizes(&contracting), free].concat();
        let length: usize = sizes(&contracting).iter().product();
        let work = result.iter().product::<usize>() * length.max(1);
        if !self.is_small(&result) || !self.is_small(&rhs_sizes) || work > 400_000 {
            return None;
        }
        let order = self.random.permutation(rhs_sizes.len());
        let place = |i: usize| order.iter().position(|&o| o == i).unwrap_or(i);
        let dims = DotDims {
            rhs_batch: (0..batch.len()).map(place).collect(),
            rhs_contracting: (batch.len()..batch.len() + contracting.len()).map(place).collect(),
            lhs_batch: batch,
            lhs_contracting: contracting,
        };
        let rhs_dims: Vec<usize> = order.iter().map(|&i| rhs_sizes[i]).collect();
        let rhs = self.like(lhs.ty(), &rhs_dims, |n| is_tame(lhs.ty(), n));
        let to = self.product_type(lhs.ty());
        let numbers = sum_of_products(to, length, &lhs, &rhs);
        self.put(numbers, |b| b.dot(lhs.id, rhs.id, dims, Some(to)))
    }

    /// Returns the result type of a dot: the operands' type, or a wider one.
    pub(super) fn product_type(&mut self, ty: ElementType) -> ElementType {
        use ElementType::*;
        let wider: &[ElementType] = match ty.kind() {
            ElementKind::Signed => &[S32, S64],
            ElementKind::Unsigned => &[U32, S32],
            ElementKind::Float if ty.bit_width() < 32 => &[F32, BF16],
            ElementKind::Float | ElementKind::Complex | ElementKind::Pred => &[],
        };
        let wider: Vec<_> = wider.iter().copied().filter(|to| to.bit_width() >= ty.bit_width()).collect();
        if wider.is_empty() || self.random.percent(50) { ty } else { self.random.pick(&wider) }
    }

    pub(super) fn reduce(&mut self) -> Option<Value> {
        let callees = self.callees;
        let callee = self.random.pick(&callees.iter().collect::<Vec<_>>());
        match callee.role {
            CalleeRole::Combiner { op, ty } => {
                let x = self.reduced(op, ty)?;
                let dims = self.random.subset(x.rank());
                let length = dims.iter().map(|&d| x.dims()[d]).product();
                let init = self.initial(op, ty);
                let numbers = reduce(op, ty, length, &x.numbers, &init.numbers);
                self.put(numbers, |b| b.reduce([x.id], [init.id], dims, callee.id))
            }
            CalleeRole::Best { ty, index } => self.reduce_best(callee, ty, index),
            CalleeRole::Replace { .. }
            | CalleeRole::Scalar { .. }
            | CalleeRole::Select { .. }
            | CalleeRole::Order { .. } => None,
            CalleeRole::Function { .. }
            | CalleeRole::Async { .. }
            | CalleeRole::Branches { .. }
            | CalleeRole::Idiom(_)
            | CalleeRole::Loop { .. } => None,
        }
    }

    /// Generates a reduction to the greatest element and its index.
    fn reduce_best(&mut self, callee: &Callee, ty: ElementType, index: ElementType) -> Option<Value> {
        let orders = |n: &Numbers| n.is_exact() && (n.bound.is_finite() || !ty.is_float());
        let x = self.any(|v| v.ty() == ty && v.rank() > 0 && orders(&v.numbers))?;
        let d = self.random.below(x.rank());
        let places = self
            .put(Some(Numbers::within(x.dims()[d] as f64)), |b| b.iota(x.shape.clone().with_element_type(index), d))?;
        let init = self.like(ty, &[], orders);
        let first = self.scalar(index, 0);
        let numbers = Numbers::either(ty, &x.numbers, &init.numbers)?;
        let numbers = if ty.is_float() { numbers.as_values() } else { numbers };
        let both = self.b.reduce([x.id, places.id], [init.id, first], [d], callee.id).ok()?;
        self.put(Some(Numbers::EXACT), |b| b.get_tuple_element(both, 1));
        self.put(Some(numbers), |b| b.get_tuple_element(both, 0))
    }

    pub(super) fn reduce_window(&mut self) -> Option<Value> {
        let callees = self.callees;
        let callee = self.random.pick(&callees.iter().collect::<Vec<_>>());
        let CalleeRole::Combiner { op, ty } = callee.role else { return None };
        let x = self.reduced(op, ty)?;
        let window = self.window(x.dims())?;
        let length = window.dims.iter().map(|d| d.size).product();
        let init = self.initial(op, ty);
        let numbers = reduce(op, ty, length, &x.numbers, &init.numbers);
        self.put(numbers, |b| b.reduce_window([x.id], [init.id], window, callee.id))
    }

    /// Returns a window that slides over an array, with limited work.
    fn window(&mut self, dims: &[usize]) -> Option<Window> {
        let mut window = Window::default();
        let mut work = 1;
        for &size in dims {
            let dim = if self.random.percent(30) { UNIT } else { self.window_dim() };
            let positions = dim.output_size(size).ok()?;
            work *= positions.max(1) * dim.size;
            window.dims.push(dim);
        }
        (work <= 60_000).then_some(window)
    }

    pub(super) fn window_dim(&mut self) -> WindowDim {
        let pad = [0, 0, 0, 1, 2, 3, -1];
        WindowDim {
            size: self.random.pick(&[1, 2, 2, 3, 3, 4, 5, 9]),
            stride: self.random.pick(&[1, 1, 1, 2, 3]),
            pad_low: self.random.pick(&pad),
            pad_high: self.random.pick(&pad),
            window_dilation: self.random.pick(&[1, 1, 1, 2]),
            base_dilation: self.random.pick(&[1, 1, 1, 1, 2]),
            reversal: self.random.percent(10),
        }
    }

    pub(super) fn select_and_scatter(&mut self) -> Option<Value> {
        let callees = self.callees;
        let select = self.random.pick(&callees.iter().collect::<Vec<_>>());
        let CalleeRole::Select { ty } = select.role else { return None };
        let scatter =
            callees.iter().find(|c| matches!(c.role, CalleeRole::Combiner { op: BinaryOp::Add, ty: t } if t == ty))?;
        let orders = |n: &Numbers| n.is_exact() && n.bound.is_finite();
        let x = self.any(|v| v.ty() == ty && v.rank() > 0 && orders(&v.numbers))?;
        let mut window = self.window(x.dims())?;
        window.dims.iter_mut().for_each(|d| (d.window_dilation, d.base_dilation, d.reversal) = (1, 1, false));
        let sizes = window.output_dims(x.dims()).ok()?;
        let source = self.like(ty, &sizes, |n| is_tame(ty, n));
        let init = self.like(ty, &[], |n| is_tame(ty, n));
        let length = window.dims.iter().map(|d| d.size).product();
        let numbers = reduce(BinaryOp::Add, ty, length, &source.numbers, &init.numbers);
        let op = SelectAndScatter { window, select: select.id, scatter: scatter.id };
        self.put(numbers, |b| b.instruction(op, None, [x.id, source.id, init.id]))
    }

    /// Returns an array that can be reduced by an operation.
    pub(super) fn reduced(&mut self, op: BinaryOp, ty: ElementType) -> Option<Value> {
        let fits = |n: &Numbers| is_order_free(op) || is_tame(ty, n);
        match self.any(|v| v.ty() == ty && v.rank() > 0 && fits(&v.numbers)) {
            Some(x) if self.random.percent(80) => Some(x),
            _ => {
                let dims = self.dims();
                Some(self.like(ty, &dims, fits)).filter(|x| x.rank() > 0)
            }
        }
    }

    /// Returns an initial value: mostly the identity of the operation.
    pub(super) fn initial(&mut self, op: BinaryOp, ty: ElementType) -> Value {
        let neutral = match op {
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => Some(0),
            BinaryOp::Multiply => Some(1),
            _ => None,
        };
        if let (Some(neutral), true) = (neutral, self.random.percent(60) && ty != ElementType::F8E8M0FNU) {
            let id = self.scalar(ty, neutral);
            let shape = xla_hlo::ArrayShape::scalar(ty);
            return Value { id, shape, numbers: Numbers { grid: 1.0, ..Numbers::within(neutral as f64) } };
        }
        self.like(ty, &[], |n| is_order_free(op) || is_tame(ty, n))
    }
}

const UNIT: WindowDim = WindowDim::UNIT;

/// Whether the order of a reduction never matters, not even for rounding.
pub(super) fn is_order_free(op: BinaryOp) -> bool {
    !matches!(op, BinaryOp::Add | BinaryOp::Multiply)
}

/// Whether sums of such numbers have a useful error bound.
pub(super) fn is_tame(ty: ElementType, numbers: &Numbers) -> bool {
    match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => true,
        ElementKind::Float | ElementKind::Complex => numbers.bound <= 1e4 && numbers.absolute(ty).is_some(),
    }
}

fn is_whole(ty: ElementType) -> bool {
    !ty.is_float() && !ty.is_complex()
}

/// Returns the properties of a reduction of `length` elements and an initial value.
pub(super) fn reduce(op: BinaryOp, ty: ElementType, length: usize, x: &Numbers, init: &Numbers) -> Option<Numbers> {
    if is_whole(ty) {
        return Some(Numbers::EXACT);
    }
    let n = length as f64;
    match op {
        BinaryOp::Add => {
            let (bound, grid) = (n * x.bound + init.bound, x.grid.min(init.grid));
            if x.is_exact() && init.is_exact() && fits_grid(ty, bound, grid) {
                return Some(Numbers::rounded(ty, bound, grid).as_values());
            }
            let noise = n * x.absolute(ty)? + init.absolute(ty)?;
            Numbers::noisy(ty, bound, noise, n + 1.0)
        }
        BinaryOp::Multiply if ty.is_float() => {
            let bound = x.bound.max(1.0).powf(n) * init.bound.max(1.0);
            if !x.is_exact() || !init.is_exact() {
                return None;
            }
            Numbers::noisy(ty, bound, 0.0, n + 1.0)
        }
        BinaryOp::Maximum | BinaryOp::Minimum if ty.is_float() => Numbers::either(ty, x, init).map(Numbers::as_values),
        _ => None,
    }
}

/// Returns the properties of sums of `length` products.
pub(super) fn sum_of_products(to: ElementType, length: usize, x: &Value, y: &Value) -> Option<Numbers> {
    if is_whole(to) {
        return Some(Numbers::EXACT);
    }
    let parts = if to.is_complex() { 2.0 } else { 1.0 };
    let n = length as f64 * parts;
    let (a, b) = (x.numbers, y.numbers);
    let bound = n * a.bound * b.bound;
    // Sums are computed in f32 at least.
    let sum = if to.real_part().bit_width() < 32 { ElementType::F32 } else { to };
    if a.is_exact() && b.is_exact() && fits_grid(sum, bound, a.grid * b.grid) {
        return Some(Numbers::rounded(to, bound, a.grid * b.grid).as_values());
    }
    let noise = n * (a.absolute(x.ty())? * b.bound + b.absolute(y.ty())? * a.bound);
    Numbers::noisy(to, bound, noise + n * epsilon(sum) * bound, 1.0)
}
