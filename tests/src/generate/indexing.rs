//! Gather and scatter with any roles of dimensions.

use xla_hlo::ElementType;
use xla_hlo::ops::{BinaryOp, Gather, Scatter};

use super::callee::CalleeRole;
use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::reductions::reduce;
use super::values::Temper;

const INDEX_TYPES: [ElementType; 5] =
    [ElementType::S32, ElementType::S32, ElementType::S64, ElementType::U32, ElementType::S8];

/// Roles of dimensions.
struct IndexingPlan {
    /// Operand dimensions that are batch dimensions.
    batching: Vec<usize>,
    /// Operand dimensions that are collapsed.
    collapsed: Vec<usize>,
    /// Operand dimension of each component of a start.
    map: Vec<usize>,
    /// Sizes of the window.
    sizes: Vec<usize>,
    /// Dimensions of the array of starts.
    index_dims: Vec<usize>,
    /// Dimensions of the starts that correspond to `batching`.
    index_batching: Vec<usize>,
    index_vector_dim: usize,
    /// Dimensions of the slices that are within the window.
    offset: Vec<usize>,
    /// Dimensions of the slices.
    slices: Vec<usize>,
}

impl Graph<'_> {
    pub(super) fn gather(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let plan = self.plan(x.dims());
        if !self.is_small(&plan.slices) {
            return None;
        }
        let starts = self.index_array(&plan.index_dims);
        let op = Gather {
            offset_dims: plan.offset,
            collapsed_slice_dims: plan.collapsed,
            start_index_map: plan.map,
            operand_batching_dims: plan.batching,
            start_indices_batching_dims: plan.index_batching,
            index_vector_dim: plan.index_vector_dim,
            slice_sizes: plan.sizes,
            indices_are_sorted: false,
        };
        self.put(Some(x.numbers), |b| b.gather(op, x.id, starts.id))
    }

    pub(super) fn scatter(&mut self) -> Option<Value> {
        let callees = self.callees;
        let callee = self.random.pick(&callees.iter().collect::<Vec<_>>());
        let (op, ty) = match callee.role {
            CalleeRole::Combiner { op, ty } => (Some(op), ty),
            CalleeRole::Replace { ty } => (None, ty),
            CalleeRole::Best { .. }
            | CalleeRole::Scalar { .. }
            | CalleeRole::Select { .. }
            | CalleeRole::Order { .. } => return None,
            CalleeRole::Function { .. }
            | CalleeRole::Async { .. }
            | CalleeRole::Branches { .. }
            | CalleeRole::Idiom(_)
            | CalleeRole::Loop { .. } => return None,
        };
        let x = self.any(|v| v.ty() == ty && v.rank() > 0)?;
        let plan = self.plan(x.dims());
        if !self.is_small(&plan.slices) {
            return None;
        }
        let is_batch = |d: &usize| *d != plan.index_vector_dim;
        let windows = (0..plan.index_dims.len()).filter(is_batch).map(|d| plan.index_dims[d]).product();
        let numbers_of = |n: &Numbers| match op {
            Some(op) => scattered(op, ty, windows, &x.numbers, n),
            None => Numbers::either(ty, &x.numbers, n),
        };
        let updates = self.like(ty, &plan.slices, |n| numbers_of(n).is_some());
        let numbers = numbers_of(&updates.numbers);
        let starts = self.index_array(&plan.index_dims);
        let op = Scatter {
            update_window_dims: plan.offset,
            inserted_window_dims: plan.collapsed,
            scatter_dims_to_operand_dims: plan.map,
            input_batching_dims: plan.batching,
            scatter_indices_batching_dims: plan.index_batching,
            index_vector_dim: plan.index_vector_dim,
            indices_are_sorted: false,
            unique_indices: false,
            computation: callee.id,
        };
        self.put(numbers, |b| b.scatter(op, x.id, starts.id, updates.id))
    }

    fn index_array(&mut self, dims: &[usize]) -> Value {
        let ty = self.random.pick(&INDEX_TYPES);
        if self.random.percent(30) {
            return self.like(ty, dims, |_| true);
        }
        self.leaf(ty, dims, Temper::Grid)
    }

    fn plan(&mut self, dims: &[usize]) -> IndexingPlan {
        let mut plan = IndexingPlan {
            batching: Vec::new(),
            collapsed: Vec::new(),
            map: Vec::new(),
            sizes: Vec::new(),
            index_dims: Vec::new(),
            index_batching: Vec::new(),
            index_vector_dim: 0,
            offset: Vec::new(),
            slices: Vec::new(),
        };
        for (d, &size) in dims.iter().enumerate() {
            let kind = self.random.below(10);
            if kind == 0 && size < 20 {
                plan.batching.push(d);
            } else if kind < 5 && size > 0 {
                plan.collapsed.push(d);
            }
            let left_out = plan.batching.contains(&d) || plan.collapsed.contains(&d);
            let whole = self.random.percent(40);
            plan.sizes.push(match left_out {
                true => 1.min(size),
                false if whole => size,
                false => self.random.between(size.min(1), size.min(7)),
            });
        }
        let free: Vec<usize> = (0..dims.len()).filter(|d| !plan.batching.contains(d)).collect();
        let count = self.random.between(0, free.len());
        plan.map = self.random.permutation(free.len()).into_iter().take(count).map(|i| free[i]).collect();
        self.plan_starts(dims, &mut plan);
        plan
    }

    /// Plans the batch dimensions, the components of the starts, and the window dimensions of the slices.
    fn plan_starts(&mut self, dims: &[usize], plan: &mut IndexingPlan) {
        let own = self.random.pick(&[0, 1, 1, 1, 2]);
        let mut batch: Vec<(usize, Option<usize>)> =
            (0..own).map(|_| (self.random.pick(&[0, 1, 2, 3, 5, 8, 17]), None)).collect();
        if own > 0 && self.random.percent(90) {
            batch.iter_mut().for_each(|b| b.0 = b.0.max(1));
        }
        for (i, &d) in plan.batching.iter().enumerate() {
            batch.insert(self.random.below(batch.len() + 1), (dims[d], Some(i)));
        }
        let implicit = plan.map.len() == 1 && self.random.percent(40);
        plan.index_vector_dim = if implicit { batch.len() } else { self.random.below(batch.len() + 1) };
        plan.index_batching = vec![0; plan.batching.len()];
        for (i, &(size, pairs_with)) in batch.iter().enumerate() {
            let at = i + usize::from(!implicit && i >= plan.index_vector_dim);
            if let Some(pair) = pairs_with {
                plan.index_batching[pair] = at;
            }
            plan.index_dims.push(size);
        }
        if !implicit {
            plan.index_dims.insert(plan.index_vector_dim, plan.map.len());
        }
        let window: Vec<usize> = (0..dims.len())
            .filter(|d| !plan.batching.contains(d) && !plan.collapsed.contains(d))
            .map(|d| plan.sizes[d])
            .collect();
        let mut offset = self.random.permutation(window.len() + batch.len());
        offset.truncate(window.len());
        offset.sort_unstable();
        let (mut window, mut batch) = (window.into_iter(), batch.into_iter());
        plan.slices = (0..window.len() + batch.len())
            .filter_map(|at| if offset.contains(&at) { window.next() } else { batch.next().map(|b| b.0) })
            .collect();
        plan.offset = offset;
    }
}

/// Returns the properties of an array in which up to `windows` updates are combined at each position.
fn scattered(op: BinaryOp, ty: ElementType, windows: usize, x: &Numbers, update: &Numbers) -> Option<Numbers> {
    reduce(op, ty, windows, update, x)
}
