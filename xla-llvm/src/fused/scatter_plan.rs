//! Plan of a scatter as plain data: the placement of its windows, and how threads may share them. Depends on shapes
//! only, not on LLVM.

use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, strides};

use crate::fused::tuning::scatter::{PARALLEL, WORTH_LOOKING};

/// Dimension that indexes windows; strides in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchAxis {
    pub extent: usize,
    /// Stride in the indices.
    pub indices: usize,
    /// Stride in the updates.
    pub updates: usize,
    /// Stride in the inputs if this is a batching dimension of theirs; otherwise 0.
    pub inputs: usize,
}

/// One component of a window's start index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// Offset in the indices, relative to the first component.
    pub offset: usize,
    /// Number of valid starts: the window fits at starts below this.
    pub places: usize,
    /// Stride in the inputs.
    pub inputs: usize,
}

/// Dimension of windows that is not part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    pub extent: usize,
    /// Stride in the inputs.
    pub inputs: usize,
    /// Stride in the updates.
    pub updates: usize,
}

/// Property that makes windows disjoint, so that threads can share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// None: windows may overlap, or are not worth sharing.
    No,
    /// Windows differ in this batch dimension.
    Batch(usize),
    /// Windows that differ in this component of the start are disjoint, since they have size 1 along it.
    Component(usize),
}

/// Plan of a scatter into row-major arrays.
///
/// Windows are processed in row-major order of the batch dimensions. Each window consists of runs: elements that are
/// contiguous both in the inputs and in the updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterPlan {
    /// Number of elements of each input, and of each update.
    elements: [usize; 2],
    /// Dimensions that index windows.
    pub batch: Vec<BatchAxis>,
    /// Components of the start of a window.
    pub components: Vec<Component>,
    /// Dimensions of windows outside of runs.
    pub window: Vec<WindowAxis>,
    /// Number of elements of a run.
    pub run: usize,
    /// Property that lets threads share the windows.
    pub apart: Apart,
}

impl ScatterPlan {
    /// Returns the plan of a scatter of arrays with these shapes.
    pub fn new(op: &Scatter, input: &ArrayShape, indices: &ArrayShape, update: &ArrayShape) -> ScatterPlan {
        let [input_steps, index_steps, update_steps] =
            [input, indices, update].map(|s| strides(s.dims(), &s.minor_to_major()));
        let inside: Vec<usize> = (0..input.rank()).filter(|&d| !left_out(op, d)).collect();
        let size =
            |d: usize| inside.iter().position(|&w| w == d).map_or(1, |i| update.dims()[op.update_window_dims[i]]);
        let numbering = (0..update.rank()).filter(|u| !op.update_window_dims.contains(u));
        let starts = (0..indices.rank()).filter(|&i| i != op.index_vector_dim);
        let batch = starts.zip(numbering).map(|(i, u)| {
            let pair = op.scatter_indices_batching_dims.iter().position(|&b| b == i);
            let inputs = pair.map_or(0, |pair| input_steps[op.input_batching_dims[pair]]);
            BatchAxis { extent: update.dims()[u], indices: index_steps[i], updates: update_steps[u], inputs }
        });
        let window = inside.iter().zip(&op.update_window_dims).map(|(&d, &u)| WindowAxis {
            extent: update.dims()[u],
            inputs: input_steps[d],
            updates: update_steps[u],
        });
        let step = index_steps.get(op.index_vector_dim).copied().unwrap_or(0);
        let components = op.scatter_dims_to_operand_dims.iter().enumerate().map(|(number, &d)| {
            let places = (input.dims()[d] + 1).saturating_sub(size(d));
            Component { offset: number * step, places, inputs: input_steps[d] }
        });
        let run = run(op, input, update);
        let mut plan = ScatterPlan {
            elements: [input.element_count(), update.element_count()],
            batch: batch.collect(),
            components: components.collect(),
            window: outside_runs(window, run),
            run,
            apart: Apart::No,
        };
        plan.apart = plan.apart(op, size);
        plan
    }

    /// Returns the number of work items that threads may share: no two write the same elements. 0 if there is nothing
    /// to do.
    pub fn work_items(&self) -> u64 {
        let work_items = match self.apart {
            _ if self.elements.contains(&0) => 0,
            Apart::No => 1,
            Apart::Batch(axis) => self.batch[axis].extent,
            Apart::Component(component) => self.components[component].places,
        };
        work_items as u64
    }

    /// Returns the plan with a single work item.
    pub(crate) fn alone(self) -> ScatterPlan {
        ScatterPlan { apart: Apart::No, ..self }
    }

    /// Returns the property that makes windows disjoint and balances best, if sharing is worthwhile.
    fn apart(&self, op: &Scatter, size: impl Fn(usize) -> usize) -> Apart {
        /// Number of work items that suffices for balanced shares.
        const MANY: usize = 64;
        if self.elements[1] < PARALLEL {
            return Apart::No;
        }
        let batching = self.batch.iter().enumerate().filter(|(_, axis)| op.unique_indices || axis.inputs > 0);
        let batching = batching.map(|(i, axis)| (axis.extent, Apart::Batch(i)));
        let windows: usize = self.batch.iter().map(|axis| axis.extent).product();
        let is_worth_it = self.elements[1] / windows.max(1) >= WORTH_LOOKING;
        let components = self.components.iter().zip(&op.scatter_dims_to_operand_dims).enumerate();
        let components = components.filter(|(_, (_, d))| is_worth_it && size(**d) == 1);
        let components = components.map(|(i, (component, _))| (component.places, Apart::Component(i)));
        let best = components.chain(batching).max_by_key(|(extent, _)| *extent.min(&MANY));
        best.map_or(Apart::No, |(_, apart)| apart)
    }
}

/// Whether windows have no extent along this dimension of the inputs.
fn left_out(op: &Scatter, d: usize) -> bool {
    op.inserted_window_dims.contains(&d) || op.input_batching_dims.contains(&d)
}

/// Returns the number of elements of a window that are contiguous both in the input and in the update (both row-major).
pub fn run(op: &Scatter, input: &ArrayShape, update: &ArrayShape) -> usize {
    let mut window = op.update_window_dims.iter().rev();
    let mut last = update.rank();
    let mut run = 1;
    for d in (0..input.rank()).rev() {
        if left_out(op, d) {
            if input.dims()[d] == 1 {
                continue;
            }
            break;
        }
        match window.next() {
            Some(&u) if u + 1 == last => last = u,
            Some(_) | None => break,
        }
        run *= update.dims()[last];
        if update.dims()[last] != input.dims()[d] {
            break;
        }
    }
    run
}

/// Returns the dimensions of a window that are not part of its runs.
fn outside_runs(axes: impl Iterator<Item = WindowAxis>, run: usize) -> Vec<WindowAxis> {
    // Strides inside of a run are shorter than the run, and equal in both arrays.
    axes.filter(|axis| axis.extent != 1 && (axis.inputs != axis.updates || axis.inputs >= run)).collect()
}
