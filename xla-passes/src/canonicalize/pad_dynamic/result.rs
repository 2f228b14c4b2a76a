//! Results of the program: arrays at their bounds, and an array of the sizes, in the form of
//! [`xla_hlo::dynamic_result`].

use xla_hlo::dynamic_result::{RESULT, dynamic_dimensions_of, mark_padded, padded_result};
use xla_hlo::ops::{BinaryOp, Transpose};
use xla_hlo::{ArrayShape, Dynamism, Error, InstrId, Module, ProgramShape, Result, Shape};

use super::{Padder, Sizes};

impl Padder<'_> {
    /// Returns the padded form of a value that has the shape `asked` for callers, layouts included.
    pub(super) fn padded(&mut self, value: InstrId, asked: &Shape) -> Result<InstrId> {
        let mut sizes = Vec::new();
        let arrays = self.dense_arrays(value, asked, &mut sizes)?;
        let sizes = sizes.into_iter().map(|size| self.at.reshape(size, &[1])).collect::<Result<Vec<_>>>()?;
        let sizes = if let [one] = sizes[..] { one } else { self.at.concatenate(&sizes, 0)? };
        self.at.tuple(&[arrays, sizes])
    }

    /// Makes each array of a value dense, at its bounds, and appends the sizes of its dynamic dimensions to `found`.
    fn dense_arrays(&mut self, value: InstrId, asked: &Shape, found: &mut Vec<InstrId>) -> Result<InstrId> {
        match asked {
            Shape::Array(array) if !array.is_static() => {
                let sizes = self.array_sizes(value);
                for d in dynamic_dimensions_of(array) {
                    if array.dynamism(d) == Dynamism::Unbounded {
                        return Err(Error::unimplemented(format!(
                            "a result has shape {array}, which has a dimension without a bound"
                        )));
                    }
                    found.push(self.size_or(sizes[d], array.dims()[d])?);
                }
                self.dense(value, &sizes, &array.minor_to_major())
            }
            Shape::Tuple(elements) if self.is_padded(value) => {
                let mut parts = Vec::with_capacity(elements.len());
                for (index, asked) in elements.iter().enumerate() {
                    let sizes = self.element_sizes(value, index);
                    let element = self.at.get(value, index)?;
                    if sizes.iter().flatten().any(Option::is_some) {
                        self.sizes.insert(element, sizes);
                    }
                    parts.push(self.dense_arrays(element, asked, found)?);
                }
                self.at.tuple(&parts)
            }
            _ => Ok(value),
        }
    }

    /// Returns an array that starts with the elements of `x` within `sizes`, contiguous in the given order, followed by
    /// zeros.
    fn dense(&mut self, x: InstrId, sizes: &Sizes, minor_to_major: &[usize]) -> Result<InstrId> {
        let dims = self.at.dims(x);
        let zero = self.at.zeros(&ArrayShape::scalar(self.at.element_type(x)?))?;
        let every: Vec<usize> = (0..dims.len()).collect();
        let order: Vec<usize> = minor_to_major.iter().rev().copied().collect();
        let first = order.iter().position(|&d| dims[d] != 1).unwrap_or(0);
        // There are no gaps unless a dimension after the first has a dynamic size.
        if order.iter().skip(first + 1).all(|&d| sizes[d].is_none()) || dims.contains(&0) {
            return self.filled(x, sizes, &every, zero);
        }
        let ordered = self.transposed(x, &order)?;
        let sizes: Sizes = order.iter().map(|&d| sizes[d]).collect();
        let ordered_dims = self.at.dims(ordered);
        let mut count = self.known(1)?;
        for (&size, &bound) in sizes.iter().zip(&ordered_dims) {
            let size = self.size_or(size, bound)?;
            count = self.at.binary(BinaryOp::Multiply, count, size)?;
        }
        let flat = ArrayShape::new(self.at.element_type(x)?, [dims.iter().product::<usize>()]);
        let elements = self.in_order(ordered, &sizes, &flat, &vec![Some(count)])?;
        let elements = self.filled(elements, &vec![Some(count)], &[0], zero)?;
        let ordered = self.at.reshape(elements, &ordered_dims)?;
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &d)| back[d] = place);
        self.transposed(ordered, &back)
    }

    fn transposed(&mut self, x: InstrId, permutation: &[usize]) -> Result<InstrId> {
        if permutation.is_sorted() {
            return Ok(x);
        }
        self.at.add(Transpose { permutation: permutation.to_vec() }, [x])
    }
}

/// Records in the header that the entry now returns the padded form of a result of `asked`.
pub(super) fn note_padded(module: &mut Module, asked: &ProgramShape) {
    let parameters = asked.parameters.iter().map(Shape::at_bounds).collect();
    let attributes = module.attributes_mut();
    attributes.entry_computation_layout = Some(ProgramShape { parameters, result: padded_result(&asked.result) });
    attributes.input_output_alias.iter_mut().for_each(|alias| alias.output.insert(0, RESULT));
    if attributes.allow_spmd_sharding_propagation_to_output.len() > 1 {
        attributes.allow_spmd_sharding_propagation_to_output.clear();
    }
    mark_padded(module, &asked.result);
}
