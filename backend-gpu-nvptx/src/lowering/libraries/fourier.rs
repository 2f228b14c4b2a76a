//! Fourier transforms as calls of cuFFT.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{Fft, FftType};
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar, Shape, VerifiedModule};

use super::{RecognizedCall, Scaling};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::fourier::{Fourier, FourierKind};

/// Returns the call for operand and result, both of which have elements; `None` if the library does not take it.
pub(super) fn find(op: &Fft, operand: &ArrayShape, result: &ArrayShape) -> Option<RecognizedCall> {
    let first = operand.rank().checked_sub(op.fft_length.len())?;
    let kind = match op.fft_type {
        FftType::Fft => FourierKind::Forward,
        FftType::Ifft => FourierKind::Inverse,
        FftType::Rfft => FourierKind::RealForward,
        FftType::Irfft => FourierKind::RealInverse,
    };
    let call = Fourier {
        kind,
        is_double: matches!(operand.element_type(), ElementType::F64 | ElementType::C128),
        lengths: op.fft_length.clone(),
        batch: operand.dims()[..first].iter().product(),
    };
    call.check().ok()?;
    let count: usize = op.fft_length.iter().product();
    let is_inverse = matches!(op.fft_type, FftType::Ifft | FftType::Irfft);
    let scaling = (is_inverse && count > 1).then(|| Scaling { shape: result.clone(), divisor: count });
    Some(RecognizedCall { call: LibraryCall::Fourier(call), arrays: vec![None; 2], scaling })
}

impl Scaling {
    /// Returns the program that scales its parameter; the result may share the parameter's memory.
    pub fn program(&self) -> Result<VerifiedModule> {
        let mut module = ModuleBuilder::new("scaled");
        let mut b = module.computation("main");
        let value = b.parameter(Shape::Array(self.shape.clone()))?;
        let element = self.shape.element_type().real_part();
        let factor = Literal::from_fn(&ArrayShape::new(element, []), |_| Scalar::Float(1.0 / self.divisor as f64))?;
        let factor = b.constant(factor)?;
        let factor = b.broadcast(factor, self.shape.dims(), [])?;
        let root = if self.shape.element_type().is_complex() {
            // Scale both parts separately, so that nothing is multiplied by an imaginary 0.
            let (real, imaginary) = (b.real(value)?, b.imag(value)?);
            let (real, imaginary) = (b.multiply(real, factor)?, b.multiply(imaginary, factor)?);
            b.complex(real, imaginary)?
        } else {
            b.multiply(value, factor)?
        };
        let main = b.finish(root);
        module.finish(main)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lowering::libraries::reference::{program, root, transform_agrees};

    fn found(types: [&str; 2], dims: [&str; 2], attributes: &str) -> (VerifiedModule, Option<RecognizedCall>) {
        let ([from, to], [operand, result]) = (types, dims);
        let module = program(&format!(
            "HloModule m\nENTRY main {{\n x = {from}[{operand}] parameter(0)\n ROOT r = {to}[{result}] fft(x), {attributes}\n}}"
        ));
        let (op, arrays) = root(&module);
        let found = crate::lowering::libraries::find(op, &arrays[..1], arrays[1], (9, 0));
        (module, found)
    }

    #[test]
    fn inverse_transforms_are_divided_by_what_they_sum() {
        let (_, ifft) = found(["c64"; 2], ["2,4,6", "2,4,6"], "fft_type=IFFT, fft_length={4,6}");
        let ifft = ifft.expect("cuFFT has it");
        let LibraryCall::Fourier(call) = &ifft.call else { panic!("{ifft:?}") };
        assert_eq!(
            (call.kind, &call.lengths[..], call.batch, call.is_double),
            (FourierKind::Inverse, &[4, 6][..], 2, false)
        );
        assert_eq!(ifft.scaling.map(|scaling| scaling.divisor), Some(24));
        let (_, rfft) = found(["f64", "c128"], ["5,8", "5,5"], "fft_type=RFFT, fft_length={8}");
        assert_eq!(rfft.expect("cuFFT has it").scaling, None);
        let (_, one) = found(["c64"; 2], ["7,1", "7,1"], "fft_type=IFFT, fft_length={1}");
        assert_eq!(one.expect("cuFFT has it").scaling, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

        #[test]
        fn the_librarys_transform_is_the_operations(
            kind in 0usize..4,
            batch in prop::collection::vec(1usize..4, 0..3),
            lengths in prop::collection::vec(1usize..6, 1..4),
        ) {
            let (name, types) = [
                ("FFT", ["c128", "c128"]), ("IFFT", ["c128", "c128"]), ("RFFT", ["f64", "c128"]), ("IRFFT", ["c128", "f64"]),
            ][kind];
            let whole = [&batch[..], &lengths].concat();
            let mut half = whole.clone();
            if let Some(last) = half.last_mut() {
                *last = *last / 2 + 1;
            }
            let text = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let dims = match kind {
                2 => [&whole, &half],
                3 => [&half, &whole],
                _ => [&whole, &whole],
            };
            let attributes = format!("fft_type={name}, fft_length={{{}}}", text(&lengths));
            let (module, found) = found(types, dims.map(|dims| text(dims)).each_ref().map(String::as_str), &attributes);
            transform_agrees(&module, &found.expect("cuFFT has it"));
        }
    }
}
