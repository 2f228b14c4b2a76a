//! Arrays with dynamic sizes: a chain from `set-dimension-size` to a static shape.
//!
//! Only elements within the dynamic sizes are defined, so every chain ends in a reduction, a contraction or the sizes
//! themselves.

use xla_hlo::ops::{
    AddDependency, Broadcast, Concatenate, Copy, Dot, DotDims, Dynamic, GetTupleElement, Op, OptBarrier, Pad, PadDim,
    Reduce, Reshape, Reverse, Select, Slice, SliceRange, Transpose, Tuple, Unary, UnaryOp,
};
use xla_hlo::{ArrayShape, Dynamism, ElementType, InstrId, Shape};

use super::callee::CalleeRole;
use super::elementwise::{binary, convert, unary};
use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::reductions::{is_order_free, is_tame, reduce, sum_of_products};

/// Maximum number of elements; some rules count them individually.
const MOST: usize = 2000;

/// Whether the size of a dimension is dynamic.
fn is_dynamic(x: &Value, d: usize) -> bool {
    x.shape.dynamism(d) != Dynamism::Static
}

impl Graph<'_> {
    /// Generates a chain over an array with dynamic sizes, whose last value has a static shape.
    pub(super) fn dynamic(&mut self) -> Option<Value> {
        let start = self.any(|v| v.rank() > 0 && v.shape.element_count() <= MOST)?;
        let d = self.random.below(start.rank());
        let mut x = self.resized(&start, d)?;
        for _ in 0..self.random.below(5) {
            let Some(next) = self.sized_step(&x) else { continue };
            if next.shape.is_static() {
                return self.put(Some(next.numbers), |_| Ok(next.id));
            }
            x = next;
        }
        for d in 0..x.rank() {
            if self.random.percent(40) {
                let numbers = Numbers { grid: 1.0, ..Numbers::within(x.dims()[d] as f64) };
                self.put(Some(numbers), |b| b.get_dimension_size(x.id, d))?;
            }
        }
        let dims: Vec<usize> = (0..x.rank()).filter(|&d| is_dynamic(&x, d) || self.random.percent(30)).collect();
        let last = if self.random.percent(30) { self.sized_dot(&x, dims) } else { self.sized_reduction(&x, dims) }?;
        self.put(Some(last.numbers), |_| Ok(last.id))
    }

    fn sized_step(&mut self, x: &Value) -> Option<Value> {
        match self.random.below(15) {
            0 => self.sized_unary(x),
            1 => self.sized_binary(x),
            2 => self.sized_select(x),
            3 => self.sized_convert(x),
            4 => self.sized_broadcast(x),
            5 => self.sized_transpose(x),
            6 => self.sized_regroup(x),
            7 => self.sized_slice(x),
            8 => self.sized_pad(x),
            9 => self.sized_concatenate(x),
            10 => self.sized_ones(x),
            11 => self.sized_merge(x),
            12 => self.sized_reshape(x),
            13 => {
                let dims = self.random.subset(x.rank());
                if self.random.percent(30) { self.sized_dot(x, dims) } else { self.sized_reduction(x, dims) }
            }
            _ => {
                let fixed: Vec<usize> = (0..x.rank()).filter(|&d| !is_dynamic(x, d)).collect();
                let d = (!fixed.is_empty()).then(|| self.random.pick(&fixed))?;
                self.resized(x, d)
            }
        }
    }

    /// Adds an instruction with the array shape `shape`, which may be dynamic, without adding it to the pool of values.
    fn sized(
        &mut self,
        numbers: Option<Numbers>,
        op: impl Into<Op>,
        shape: ArrayShape,
        operands: impl Into<Vec<InstrId>>,
    ) -> Option<Value> {
        let numbers = numbers?;
        if shape.element_count() > MOST {
            return None;
        }
        let id = self.b.instruction(op, Some(shape.clone().into()), operands).ok()?;
        Some(Value { id, shape, numbers })
    }

    /// Sets the size of a dimension: below the bound, above it or negative.
    fn resized(&mut self, x: &Value, dimension: usize) -> Option<Value> {
        let bound = x.dims()[dimension];
        let size = match self.random.below(3) {
            0 => self.like(ElementType::S32, &[], |_| true).id,
            _ => {
                let size = self.random.between(0, bound + 1) as i64;
                self.scalar(ElementType::S32, size)
            }
        };
        let shape = self.shape_with(x, x.dims(), |d| d == dimension || is_dynamic(x, d));
        self.sized(Some(x.numbers), Dynamic::SetDimensionSize { dimension }, shape, [x.id, size])
    }

    fn shape_with(&self, x: &Value, dims: &[usize], is_dynamic: impl Fn(usize) -> bool) -> ArrayShape {
        let dynamism = |d| if is_dynamic(d) { Dynamism::Bounded } else { Dynamism::Static };
        ArrayShape::new(x.ty(), dims).with_dynamism((0..dims.len()).map(dynamism).collect())
    }

    fn sized_unary(&mut self, x: &Value) -> Option<Value> {
        let op = self.random.pick(UnaryOp::ALL);
        if x.ty() == ElementType::Pred && op != UnaryOp::Not {
            return None;
        }
        let numbers = unary(op, x.ty(), &x.numbers)?;
        let id = self.b.instruction(Unary::from(op), None, [x.id]).ok()?;
        let shape = self.b.shape(id).as_array()?.clone().with_layout(None);
        Some(Value { id, shape, numbers })
    }

    /// Combines with an array of static shape; the smaller size applies.
    fn sized_binary(&mut self, x: &Value) -> Option<Value> {
        let op = self.random.pick(xla_hlo::ops::BinaryOp::ALL);
        let ty = x.ty();
        let y = self.like(ty, x.dims(), |n| binary(op, ty, &x.numbers, n).is_some());
        let (x, y) = if self.random.percent(50) { (x, &y) } else { (&y, x) };
        let numbers = binary(op, ty, &x.numbers, &y.numbers)?;
        let id = self.b.instruction(xla_hlo::ops::Binary { op }, None, [x.id, y.id]).ok()?;
        let shape = self.b.shape(id).as_array()?.clone().with_layout(None);
        Some(Value { id, shape, numbers })
    }

    fn sized_select(&mut self, x: &Value) -> Option<Value> {
        let (pred, y) = (self.like(ElementType::Pred, x.dims(), |_| true), self.like(x.ty(), x.dims(), |_| true));
        let numbers = Numbers::either(x.ty(), &x.numbers, &y.numbers);
        self.sized(numbers, Select, x.shape.clone(), [pred.id, x.id, y.id])
    }

    fn sized_convert(&mut self, x: &Value) -> Option<Value> {
        let to = self.ty();
        self.converted(x, to)
    }

    fn converted(&mut self, x: &Value, to: ElementType) -> Option<Value> {
        let shape = x.shape.clone().with_element_type(to);
        self.sized(convert(x.ty(), to, &x.numbers), xla_hlo::ops::Convert, shape, [x.id])
    }

    fn sized_broadcast(&mut self, x: &Value) -> Option<Value> {
        let at = self.random.between(0, x.rank());
        let mut dims = x.dims().to_vec();
        dims.insert(at, self.random.between(1, 4));
        let dimensions: Vec<usize> = (0..x.rank()).map(|d| d + usize::from(d >= at)).collect();
        let shape =
            self.shape_with(x, &dims, |d| dimensions.iter().position(|&o| o == d).is_some_and(|d| is_dynamic(x, d)));
        self.sized(Some(x.numbers), Broadcast { dimensions }, shape, [x.id])
    }

    fn sized_transpose(&mut self, x: &Value) -> Option<Value> {
        let permutation = self.random.permutation(x.rank());
        let dims: Vec<usize> = permutation.iter().map(|&d| x.dims()[d]).collect();
        let shape = self.shape_with(x, &dims, |d| is_dynamic(x, permutation[d]));
        self.sized(Some(x.numbers), Transpose { permutation }, shape, [x.id])
    }

    fn sized_regroup(&mut self, x: &Value) -> Option<Value> {
        match self.random.below(4) {
            0 => self.sized(Some(x.numbers), Copy, x.shape.clone(), [x.id]),
            1 => self.sized(Some(x.numbers), OptBarrier, x.shape.clone(), [x.id]),
            2 => {
                let token = self.b.after_all([]).ok()?;
                self.sized(Some(x.numbers), AddDependency, x.shape.clone(), [x.id, token])
            }
            _ => {
                let other = self.any(|_| true)?;
                let shape = Shape::Tuple(vec![other.shape.clone().into(), x.shape.clone().into()]);
                let tuple = self.b.instruction(Tuple, Some(shape), [other.id, x.id]).ok()?;
                self.sized(Some(x.numbers), GetTupleElement { index: 1 }, x.shape.clone(), [tuple])
            }
        }
    }

    /// Slices or reverses dimensions with static sizes.
    fn sized_slice(&mut self, x: &Value) -> Option<Value> {
        let fixed: Vec<usize> = (0..x.rank()).filter(|&d| !is_dynamic(x, d)).collect();
        if self.random.percent(40) {
            let dimensions = fixed.into_iter().filter(|_| self.random.percent(60)).collect();
            return self.sized(Some(x.numbers), Reverse { dimensions }, x.shape.clone(), [x.id]);
        }
        let ranges: Vec<SliceRange> = (0..x.rank())
            .map(|d| {
                let size = x.dims()[d];
                let start = if fixed.contains(&d) { self.random.between(0, size) } else { 0 };
                SliceRange { start, limit: size, stride: if start > 0 { self.random.between(1, 2) } else { 1 } }
            })
            .collect();
        let dims: Vec<usize> = ranges.iter().map(|r| (r.limit - r.start).div_ceil(r.stride)).collect();
        let shape = self.shape_with(x, &dims, |d| is_dynamic(x, d));
        self.sized(Some(x.numbers), Slice { ranges }, shape, [x.id])
    }

    fn sized_pad(&mut self, x: &Value) -> Option<Value> {
        let value = self.like(x.ty(), &[], |_| true);
        let dims: Vec<PadDim> = (0..x.rank())
            .map(|d| {
                // A size that may be 0 cannot be reduced.
                let ends: &[i64] = if is_dynamic(x, d) { &[0, 0, 0, 1, 2] } else { &[0, 0, 0, 1, 2, -1] };
                let (low, high) = (self.random.pick(ends), self.random.pick(ends));
                PadDim { low, high, interior: self.random.pick(&[0, 0, 1, 2]) }
            })
            .collect();
        let padded = |(dim, &size): (&PadDim, &usize)| {
            size as i64 + (size.saturating_sub(1) * dim.interior) as i64 + dim.low + dim.high
        };
        let sizes: Vec<usize> = dims.iter().zip(x.dims()).map(|pair| padded(pair).max(0) as usize).collect();
        let shape = self.shape_with(x, &sizes, |d| is_dynamic(x, d));
        let numbers = Numbers::either(x.ty(), &x.numbers, &value.numbers);
        self.sized(numbers, Pad { dims }, shape, [x.id, value.id])
    }

    /// Concatenates with itself, or with an array of static shape, which is limited by the dynamic sizes of other
    /// dimensions.
    fn sized_concatenate(&mut self, x: &Value) -> Option<Value> {
        let dimension = self.random.below(x.rank());
        let mut other = x.dims().to_vec();
        other[dimension] = self.random.between(0, 5);
        let y = if self.random.percent(30) { x.clone() } else { self.like(x.ty(), &other, |_| true) };
        let mut dims = x.dims().to_vec();
        dims[dimension] += y.dims()[dimension];
        let shape = self.shape_with(x, &dims, |d| is_dynamic(x, d));
        let operands = if self.random.percent(50) { [x.id, y.id] } else { [y.id, x.id] };
        self.sized(Numbers::either(x.ty(), &x.numbers, &y.numbers), Concatenate { dimension }, shape, operands)
    }

    /// Inserts a dimension of size 1.
    fn sized_ones(&mut self, x: &Value) -> Option<Value> {
        // The reshape infers the dynamic size from the number of elements; so one dimension must be dynamic, and there
        // must be elements.
        let several = (0..x.rank()).filter(|&d| is_dynamic(x, d)).count() > 1;
        if several || (0..x.rank()).any(|d| x.dims()[d] <= usize::from(is_dynamic(x, d))) {
            return None;
        }
        let at = self.random.between(0, x.rank());
        let mut dims = x.dims().to_vec();
        dims.insert(at, 1);
        let shape = self.shape_with(x, &dims, |d| d != at && is_dynamic(x, d - usize::from(d > at)));
        self.sized(Some(x.numbers), Reshape { inferred_dimension: None }, shape, [x.id])
    }

    /// Merges the first dimensions.
    fn sized_merge(&mut self, x: &Value) -> Option<Value> {
        let last = (0..x.rank()).rfind(|&d| is_dynamic(x, d))?;
        let count = self.random.between(last + 1, x.rank());
        let (merged, rest) = x.dims().split_at(count);
        if rest.contains(&0) || merged.contains(&0) {
            return None;
        }
        let dims: Vec<usize> = std::iter::once(merged.iter().product()).chain(rest.iter().copied()).collect();
        let shape = self.shape_with(x, &dims, |d| d == 0);
        self.sized(Some(x.numbers), Reshape { inferred_dimension: None }, shape, [x.id])
    }

    /// Reshapes to a permutation of the sizes; elements keep their order.
    fn sized_reshape(&mut self, x: &Value) -> Option<Value> {
        let order = self.random.permutation(x.rank());
        let dims: Vec<usize> = order.iter().map(|&d| x.dims()[d]).collect();
        let mut operands = vec![x.id];
        for &d in &order {
            operands.push(self.b.get_dimension_size(x.id, d).ok()?);
        }
        let shape = self.shape_with(x, &dims, |d| is_dynamic(x, order[d]));
        self.sized(Some(x.numbers), Dynamic::DynamicReshape, shape, operands)
    }

    fn sized_reduction(&mut self, x: &Value, dimensions: Vec<usize>) -> Option<Value> {
        let callees = self.callees;
        let fits = |role: &CalleeRole| matches!(role, CalleeRole::Combiner { .. });
        let fit: Vec<_> = callees.iter().filter(|c| fits(&c.role)).collect();
        let callee = (!fit.is_empty()).then(|| self.random.pick(&fit))?;
        let CalleeRole::Combiner { op, ty } = callee.role else { return None };
        let x = if x.ty() == ty { x.clone() } else { self.converted(x, ty)? };
        if !is_order_free(op) && !is_tame(ty, &x.numbers) {
            return None;
        }
        let init = self.initial(op, ty);
        let length = dimensions.iter().map(|&d| x.dims()[d]).product();
        let numbers = reduce(op, ty, length, &x.numbers, &init.numbers);
        let kept: Vec<usize> = (0..x.rank()).filter(|d| !dimensions.contains(d)).collect();
        let dims: Vec<usize> = kept.iter().map(|&d| x.dims()[d]).collect();
        let shape = self.shape_with(&x, &dims, |d| is_dynamic(&x, kept[d]));
        self.sized(numbers, Reduce { dimensions, computation: callee.id }, shape, [x.id, init.id])
    }

    /// Contracts dimensions with an array of static shape.
    fn sized_dot(&mut self, x: &Value, contracted: Vec<usize>) -> Option<Value> {
        let ty = x.ty();
        if ty == ElementType::Pred || !is_tame(ty, &x.numbers) {
            return None;
        }
        let mut sizes: Vec<usize> = contracted.iter().map(|&d| x.dims()[d]).collect();
        let length = sizes.iter().product();
        let kept: Vec<usize> = (0..x.rank()).filter(|d| !contracted.contains(d)).collect();
        let mut dims: Vec<usize> = kept.iter().map(|&d| x.dims()[d]).collect();
        let pairs = sizes.len();
        if self.random.percent(60) {
            let free = self.random.between(1, 5);
            sizes.push(free);
            dims.push(free);
        }
        let y = self.like(ty, &sizes, |n| is_tame(ty, n));
        let numbers = sum_of_products(ty, length, x, &y);
        let shape = self.shape_with(x, &dims, |d| kept.get(d).is_some_and(|&d| is_dynamic(x, d)));
        let dims = DotDims {
            lhs_contracting: contracted,
            rhs_contracting: (0..pairs).collect(),
            lhs_batch: Vec::new(),
            rhs_batch: Vec::new(),
        };
        let op = Dot { dims, precision: Vec::new(), algorithm: None };
        self.sized(numbers, op, shape, [x.id, y.id])
    }
}
