//! What a scatter does, as plain data: where its windows lie, and how threads share it. Knows shapes, no LLVM.

use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, ElementKind, ElementType, strides};

/// A dimension that numbers windows; steps in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchAxis {
    pub extent: usize,
    /// In the indices.
    pub indices: usize,
    /// In the updates.
    pub updates: usize,
    /// In the inputs, of a dimension that they have, too; else 0.
    pub inputs: usize,
}

/// A number of a window's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    /// Where it stands in the indices, from the first component on.
    pub offset: usize,
    /// The window fits at numbers below this.
    pub places: usize,
    /// What a step is worth in the inputs.
    pub inputs: usize,
}

/// A dimension of windows outside of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowAxis {
    pub extent: usize,
    pub inputs: usize,
    pub updates: usize,
}

/// What keeps windows apart, so that threads may take some each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Nothing: they may overlap.
    No,
    /// Windows differ in this dimension of those that number them.
    Batch(usize),
    /// Windows of different numbers in this component of the start, where they have size 1, do not meet.
    Component(usize),
}

/// A scatter into row-major arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScatterPlan {
    /// Elements of each input, and of each update.
    pub elements: [usize; 2],
    /// Bytes of an element of each input.
    pub widths: Vec<usize>,
    /// Bytes and bits of an index, and whether it has a sign.
    pub index: (usize, u32, bool),
    pub batch: Vec<BatchAxis>,
    pub components: Vec<Component>,
    pub window: Vec<WindowAxis>,
    pub apart: Apart,
}

impl ScatterPlan {
    /// The plan of a scatter whose windows consist of runs of so many elements.
    pub fn new(
        op: &Scatter,
        inputs: &[&ArrayShape],
        indices: &ArrayShape,
        update: &ArrayShape,
        run: usize,
    ) -> Option<ScatterPlan> {
        let input = inputs.first()?;
        let [input_steps, index_steps, update_steps] =
            [*input, indices, update].map(|s| strides(s.dims(), &s.minor_to_major()));
        let left_out = |d: &usize| op.inserted_window_dims.contains(d) || op.input_batching_dims.contains(d);
        let inside: Vec<usize> = (0..input.rank()).filter(|d| !left_out(d)).collect();
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
        let mut plan = ScatterPlan {
            elements: [input.element_count(), update.element_count()],
            widths: inputs.iter().map(|shape| shape.element_type().byte_width()).collect(),
            index: index_form(indices.element_type())?,
            batch: batch.collect(),
            components: components.collect(),
            window: outside_runs(window, run),
            apart: Apart::No,
        };
        plan.apart = plan.apart(op, size);
        Some(plan)
    }

    /// The longest dimension that keeps windows apart.
    fn apart(&self, op: &Scatter, size: impl Fn(usize) -> usize) -> Apart {
        let batching = self.batch.iter().enumerate().filter(|(_, axis)| op.unique_indices || axis.inputs > 0);
        let batching = batching.map(|(i, axis)| (axis.extent, Apart::Batch(i)));
        let components = self.components.iter().zip(&op.scatter_dims_to_operand_dims).enumerate();
        let components = components.filter(|(_, (_, d))| size(**d) == 1);
        let components = components.map(|(i, (component, _))| (component.places, Apart::Component(i)));
        batching.chain(components).max_by_key(|(extent, _)| *extent).map_or(Apart::No, |(_, apart)| apart)
    }

    /// The plan as numbers that generated code can carry.
    pub fn to_numbers(&self) -> Vec<i64> {
        let (apart, by) = match self.apart {
            Apart::No => (0, 0),
            Apart::Batch(axis) => (1, axis),
            Apart::Component(component) => (2, component),
        };
        let (bytes, bits, signed) = self.index;
        let counts = [self.widths.len(), self.batch.len(), self.components.len(), self.window.len()];
        let head = [self.elements[0], self.elements[1], bytes, bits as usize, usize::from(signed), apart, by];
        let mut numbers: Vec<usize> = counts.into_iter().chain(head).chain(self.widths.iter().copied()).collect();
        numbers.extend(self.batch.iter().flat_map(|a| [a.extent, a.indices, a.updates, a.inputs]));
        numbers.extend(self.components.iter().flat_map(|c| [c.offset, c.places, c.inputs]));
        numbers.extend(self.window.iter().flat_map(|w| [w.extent, w.inputs, w.updates]));
        numbers.into_iter().map(|n| n as i64).collect()
    }

    /// Inverse of [`ScatterPlan::to_numbers`]; `None` for anything else.
    pub fn from_numbers(numbers: &[i64]) -> Option<ScatterPlan> {
        let numbers: Vec<usize> = numbers.iter().map(|&n| n as usize).collect();
        let (&[arrays, batch, components, window], rest) = numbers.split_first_chunk()?;
        let (&[inputs, updates, bytes, bits, signed, apart, by], rest) = rest.split_first_chunk()?;
        let (widths, rest) = rest.split_at_checked(arrays)?;
        let (batch, rest) = rest.split_at_checked(4 * batch)?;
        let (components, window) =
            rest.split_at_checked(3 * components).filter(|(_, rest)| rest.len() == 3 * window)?;
        let batch = batch.chunks_exact(4);
        let components = components.chunks_exact(3);
        let window = window.chunks_exact(3);
        Some(ScatterPlan {
            elements: [inputs, updates],
            widths: widths.to_vec(),
            index: (bytes, bits as u32, signed != 0),
            batch: batch.map(|a| BatchAxis { extent: a[0], indices: a[1], updates: a[2], inputs: a[3] }).collect(),
            components: components.map(|c| Component { offset: c[0], places: c[1], inputs: c[2] }).collect(),
            window: window.map(|w| WindowAxis { extent: w[0], inputs: w[1], updates: w[2] }).collect(),
            apart: match apart {
                0 => Apart::No,
                1 => Apart::Batch(by),
                _ => Apart::Component(by),
            },
        })
    }
}

/// Bytes and bits of an integer type, and whether it has a sign.
fn index_form(ty: ElementType) -> Option<(usize, u32, bool)> {
    let signed = match ty.kind() {
        ElementKind::Signed => true,
        ElementKind::Unsigned => false,
        ElementKind::Pred | ElementKind::Float | ElementKind::Complex => return None,
    };
    Some((ty.byte_width(), ty.bit_width() as u32, signed))
}

/// The dimensions of a window outside of its runs.
fn outside_runs(axes: impl Iterator<Item = WindowAxis>, run: usize) -> Vec<WindowAxis> {
    // Steps inside of a run are shorter than it, and alike in both arrays.
    axes.filter(|axis| axis.extent != 1 && (axis.inputs != axis.updates || axis.inputs >= run)).collect()
}

#[cfg(test)]
mod tests {
    use xla_hlo::CompId;
    use xla_hlo::entity::EntityId;
    use xla_llvm::fused::scatter_run;

    use super::*;

    fn plan(op: &Scatter, [input, indices, update]: [&[usize]; 3]) -> ScatterPlan {
        let [input, update] = [input, update].map(|dims| ArrayShape::new(ElementType::F32, dims));
        let run = scatter_run(op, &input, &update);
        let indices = ArrayShape::new(ElementType::S16, indices);
        ScatterPlan::new(op, &[&input], &indices, &update, run).unwrap()
    }

    fn rows() -> Scatter {
        Scatter {
            update_window_dims: vec![1],
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            input_batching_dims: vec![],
            scatter_indices_batching_dims: vec![],
            index_vector_dim: 1,
            indices_are_sorted: false,
            unique_indices: false,
            computation: CompId::from_index(0),
        }
    }

    #[test]
    fn rows_are_runs() {
        let plan = plan(&rows(), [&[50, 8], &[7, 1], &[7, 8]]);
        assert_eq!(plan.batch, [BatchAxis { extent: 7, indices: 1, updates: 8, inputs: 0 }]);
        assert_eq!(plan.components, [Component { offset: 0, places: 50, inputs: 8 }]);
        assert_eq!((plan.window.len(), plan.apart, plan.index), (0, Apart::Component(0), (2, 16, true)));
        assert_eq!(ScatterPlan::from_numbers(&plan.to_numbers()), Some(plan));
    }

    #[test]
    fn windows_across_rows_have_a_dimension_outside_of_runs() {
        let op = Scatter {
            update_window_dims: vec![1, 2],
            inserted_window_dims: vec![],
            scatter_dims_to_operand_dims: vec![1, 0],
            ..rows()
        };
        let plan = plan(&op, [&[50, 8], &[7, 2], &[7, 3, 5]]);
        assert_eq!(plan.window, [WindowAxis { extent: 3, inputs: 8, updates: 5 }]);
        let components = [(0, 4, 1), (1, 48, 8)].map(|(offset, places, inputs)| Component { offset, places, inputs });
        assert_eq!((&plan.components[..], plan.apart), (&components[..], Apart::No));
        assert_eq!(ScatterPlan::from_numbers(&plan.to_numbers()), Some(plan));
    }

    #[test]
    fn batches_and_promises_keep_windows_apart() {
        let op = Scatter {
            update_window_dims: vec![],
            inserted_window_dims: vec![1],
            scatter_dims_to_operand_dims: vec![1],
            input_batching_dims: vec![0],
            scatter_indices_batching_dims: vec![1],
            index_vector_dim: 2,
            ..rows()
        };
        let found = plan(&op, [&[90, 20], &[4, 90], &[4, 90]]);
        assert_eq!(found.batch[1], BatchAxis { extent: 90, indices: 1, updates: 1, inputs: 20 });
        assert_eq!(found.apart, Apart::Batch(1));
        let op = Scatter { unique_indices: true, ..rows() };
        assert_eq!(plan(&op, [&[50, 8], &[700, 1], &[700, 8]]).apart, Apart::Batch(0));
    }
}
