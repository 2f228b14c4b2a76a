//! Sliding windows over arrays with dynamic sizes.

use xla_hlo::ops::{
    Binary, BinaryOp, Convolution, Parameter, ReduceWindow, Scatter, Select, SelectAndScatter, Tuple, WindowDim,
};
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, Error, InstrId, Instruction, Result, Scalar, Shape};

use super::{Padder, Sizes};
use crate::rewrite::graph;

impl Padder<'_> {
    /// Replaces elements beyond the size by a neutral value for all windows.
    pub(super) fn reduce_window(&mut self, id: InstrId, op: &ReduceWindow, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let count = operands.len() / 2;
        let windows = op.window.dims_for(self.at.array(operands[0])?.rank())?;
        let slid = slid_over(&windows);
        let mut sizes: Sizes = vec![None; windows.len()];
        for (i, &operand) in operands[..count].iter().enumerate() {
            let own = self.array_sizes(operand);
            sizes = self.agreed(&sizes, &own)?;
            let fill = self.identity(op.computation, operands[count + i])?;
            // The element type may have another precision than the initial value.
            let fill = self.at.convert(fill, self.at.element_type(operand)?)?;
            let filled = self.filled(operand, &own, &slid, fill)?;
            self.at.graph_mut().replace_operand(id, i, filled);
        }
        let positions = self.positions(&windows, self.at.dims(operands[0]), &sizes)?;
        Ok(vec![positions; self.at.shape(id).leaves().len()])
    }

    /// Expands into a search of the selected indices and a scatter to them, so that no element beyond the size is
    /// selected.
    pub(super) fn select_and_scatter(
        &mut self,
        id: InstrId,
        op: &SelectAndScatter,
        operands: &[InstrId],
    ) -> Result<Vec<Sizes>> {
        let [x, source, init] = operands[..] else {
            return Err(Error::internal("select-and-scatter does not have 3 operands"));
        };
        let (shape, places) = (self.at.array(x)?.clone(), self.at.dims(source));
        let sizes = self.array_sizes(x);
        let windows = op.window.dims_for(shape.rank())?;
        let positions = self.positions(&windows, shape.dims().to_vec(), &sizes)?;
        let positions = self.agreed(&positions, &self.array_sizes(source))?;
        let mut chosen = self.chosen(op, x, &sizes)?;
        let every: Vec<usize> = (0..places.len()).collect();
        if let Some(inside) = self.inside(&places, &positions, &every)? {
            let nowhere = self.at.splat(&ArrayShape::new(ElementType::S32, &places[..]), Scalar::Signed(-1))?;
            chosen = self.at.select(inside, chosen, nowhere)?;
        }
        let count = places.iter().product();
        let (chosen, source) = (self.at.reshape(chosen, &[count])?, self.at.reshape(source, &[count])?);
        let init = self.at.convert(init, shape.element_type())?;
        let start = self.at.broadcast(init, &[shape.element_count()], &[])?;
        let scatter = Scatter {
            update_window_dims: Vec::new(),
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            input_batching_dims: Vec::new(),
            scatter_indices_batching_dims: Vec::new(),
            index_vector_dim: 1,
            indices_are_sorted: false,
            unique_indices: false,
            computation: op.scatter,
        };
        let flat = self.at.add(scatter, [start, chosen, source])?;
        let value = self.at.reshape(flat, shape.dims())?;
        self.stand_for(id, value, vec![sizes])
    }

    /// Returns the row-major index (`s32`) of the element that `select` chooses in each window; -1 for an empty window.
    fn chosen(&mut self, op: &SelectAndScatter, x: InstrId, sizes: &Sizes) -> Result<InstrId> {
        let shape = self.at.array(x)?.clone();
        let count = shape.element_count();
        self.known(count)?;
        let place = self.at.iota(ElementType::S32, &[count], 0)?;
        let place = self.at.reshape(place, shape.dims())?;
        let every: Vec<usize> = (0..shape.rank()).collect();
        let inside = match self.inside(shape.dims(), sizes, &every)? {
            Some(inside) => inside,
            None => self.at.splat(&shape.clone().with_element_type(ElementType::Pred), Scalar::Pred(true))?,
        };
        let computation = self.choice(op.select, shape.element_type());
        let no_value = self.at.zeros(&ArrayShape::scalar(shape.element_type()))?;
        let nowhere = self.at.integer(ElementType::S32, -1)?;
        let nothing = self.at.scalar(ElementType::Pred, Scalar::Pred(false))?;
        let search = ReduceWindow { window: op.window.clone(), computation };
        let found = self.at.add(search, [x, place, inside, no_value, nowhere, nothing])?;
        let (place, is_there) = (self.at.get(found, 1)?, self.at.get(found, 2)?);
        let nowhere = self.at.broadcast(nowhere, &self.at.dims(place), &[])?;
        self.at.select(is_there, place, nowhere)
    }

    /// Adds a combiner of (value, index, validity): keeps the current choice if `select` prefers it, otherwise takes
    /// the next.
    fn choice(&mut self, select: CompId, ty: ElementType) -> CompId {
        let callee = self.at.module()[select].clone();
        let mut combiner = Computation::new(format!("chosen_by_{}", callee.name()));
        let pred = Shape::scalar(ElementType::Pred);
        let shapes = [Shape::scalar(ty), Shape::scalar(ElementType::S32), pred.clone()];
        let parameters: Vec<InstrId> = (0..6)
            .map(|number| {
                let shape = shapes[number % 3].clone();
                combiner.add(Instruction::new(Parameter { number }.into(), shape, []))
            })
            .collect();
        let (current, next) = parameters.split_at(3);
        let is_better = graph::splice(&mut combiner, &callee, &[current[0], next[0]]);
        let logic =
            |op: BinaryOp, operands: [InstrId; 2]| Instruction::new(Binary { op }.into(), pred.clone(), operands);
        // select(next is valid, is_better, true), if the current one is valid.
        let always = combiner.add(Instruction::new(
            xla_hlo::ops::Constant { literal: xla_hlo::Literal::scalar(ElementType::Pred, Scalar::Pred(true)) }.into(),
            pred.clone(),
            [],
        ));
        let wins = combiner.add(Instruction::new(Select.into(), pred.clone(), [next[2], is_better, always]));
        let stays = combiner.add(logic(BinaryOp::And, [current[2], wins]));
        let mut results = Vec::with_capacity(3);
        for (i, shape) in shapes.iter().enumerate() {
            results.push(combiner.add(Instruction::new(Select.into(), shape.clone(), [stays, current[i], next[i]])));
        }
        let root = combiner.add(Instruction::new(Tuple.into(), Shape::Tuple(shapes.to_vec()), results));
        combiner.set_root(root);
        self.at.module_mut().add(combiner)
    }

    /// Replaces elements beyond the sizes of contracted and window dimensions by zeros.
    pub(super) fn convolution(&mut self, id: InstrId, op: &Convolution, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let dims = &op.dims;
        let (mut input, mut kernel) = (self.array_sizes(operands[0]), self.array_sizes(operands[1]));
        if dims.kernel_spatial.iter().any(|&d| kernel[d].is_some()) {
            return Err(Error::unimplemented(
                "convolution with a kernel whose window has a dynamic size is not implemented",
            ));
        }
        let features =
            [input[dims.input_feature], kernel[dims.kernel_input_feature], kernel[dims.kernel_output_feature]];
        let is_grouped = op.feature_group_count > 1 && features.iter().any(Option::is_some)
            || op.batch_group_count > 1 && (input[dims.input_batch].is_some() || features[2].is_some());
        if is_grouped {
            return Err(Error::unimplemented(
                "grouped convolution whose grouped dimension has a dynamic size is not implemented",
            ));
        }
        let channels = self.smaller(features[0], features[1])?;
        (input[dims.input_feature], kernel[dims.kernel_input_feature]) = (channels, channels);
        let summed = [&dims.input_spatial[..], &[dims.input_feature]].concat();
        for (side, sizes, summed) in [(0, &input, &summed[..]), (1, &kernel, &[dims.kernel_input_feature])] {
            let zero = self.at.zeros(&ArrayShape::scalar(self.at.element_type(operands[side])?))?;
            let filled = self.filled(operands[side], sizes, summed, zero)?;
            self.at.graph_mut().replace_operand(id, side, filled);
        }
        let shape = self.at.dims(operands[0]);
        let spatial = |of: &Sizes| dims.input_spatial.iter().map(|&d| of[d]).collect::<Sizes>();
        let bounds = dims.input_spatial.iter().map(|&d| shape[d]).collect();
        let positions = self.positions(&op.window.dims, bounds, &spatial(&input))?;
        let mut result: Sizes = vec![None; shape.len()];
        result[dims.output_batch] = input[dims.input_batch];
        result[dims.output_feature] = features[2];
        dims.output_spatial.iter().zip(positions).for_each(|(&d, size)| result[d] = size);
        Ok(vec![result])
    }

    /// Returns the number of window positions along dimensions with these bounds and sizes.
    fn positions(&mut self, windows: &[WindowDim], bounds: Vec<usize>, sizes: &Sizes) -> Result<Sizes> {
        let mut positions = sizes.clone();
        for (d, window) in windows.iter().enumerate().filter(|(_, window)| !window.is_unit()) {
            let Some(size) = sizes[d] else { continue };
            positions[d] = Some(self.positions_along(window, bounds[d], size)?);
        }
        Ok(positions)
    }

    /// Returns the number of window positions: floor((dilated size + padding - dilated window) / stride) + 1, not
    /// negative.
    fn positions_along(&mut self, window: &WindowDim, bound: usize, size: InstrId) -> Result<InstrId> {
        let dilated = |size: usize, dilation: usize| match size {
            0 => 0,
            _ => (size as i128 - 1) * dilation as i128 + 1,
        };
        let (low, high, stride) = (i128::from(window.pad_low), i128::from(window.pad_high), window.stride as i128);
        // The dilated size plus `more` is the room beyond a first window plus one stride. It is then divided by the
        // stride.
        let more = low + high - dilated(window.size, window.window_dilation) + stride;
        let greatest = dilated(bound, window.base_dilation) + more.abs() + stride;
        if greatest > i128::from(i32::MAX) {
            return Err(Error::unimplemented(format!(
                "windows over {greatest} positions do not fit s32, in which dynamic sizes are computed"
            )));
        }
        let zero = self.known(0)?;
        let holes = self.known(window.base_dilation - 1)?;
        let one = self.known(1)?;
        let gaps = self.at.binary(BinaryOp::Subtract, size, one)?;
        let gaps = self.at.binary(BinaryOp::Maximum, gaps, zero)?;
        let gaps = self.at.binary(BinaryOp::Multiply, gaps, holes)?;
        let dilated = self.at.binary(BinaryOp::Add, size, gaps)?;
        let more = self.at.integer(ElementType::S32, more as i64)?;
        let room = self.at.binary(BinaryOp::Add, dilated, more)?;
        let room = self.at.binary(BinaryOp::Maximum, room, zero)?;
        let stride = self.known(window.stride)?;
        self.at.binary(BinaryOp::Divide, room, stride)
    }
}

/// Returns the dimensions along which a window covers more than the element at its position.
fn slid_over(windows: &[WindowDim]) -> Vec<usize> {
    (0..windows.len()).filter(|&d| !windows[d].is_unit()).collect()
}
