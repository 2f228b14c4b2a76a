//! Plans: the calls that build them, in the order that NVIDIA's documentation prescribes.

use super::{Fft, Status};
use crate::arguments::overlaps;
use crate::element::Element;
use crate::refusal::wrong;

/// Plan of a `cufftHandle`.
#[derive(Clone, Debug, Default)]
pub(super) struct FftPlan {
    pub stream: u64,
    /// Whether the caller provides the work area.
    brings_memory: bool,
    made: Option<Transform>,
    work_area: Option<u64>,
}

/// Transform of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transform {
    pub kind: TransformKind,
    pub is_double: bool,
    /// Sizes of one to three dimensions, on the side with full (not half) spectra.
    pub sizes: Vec<usize>,
    pub batch: usize,
}

/// Kind of transform: C2C, R2C or C2R.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransformKind {
    Complex,
    RealToComplex,
    ComplexToReal,
}

/// Maximum number of bytes of all arrays of the input or output.
const MOST_BYTES: usize = 1 << 40;

impl TransformKind {
    /// Converts a `cufftType` to the kind, and whether numbers are in double precision.
    pub fn of(number: u32) -> Fft<(TransformKind, bool)> {
        Ok(match number {
            0x29 => (TransformKind::Complex, false),
            0x2a => (TransformKind::RealToComplex, false),
            0x2c => (TransformKind::ComplexToReal, false),
            0x69 => (TransformKind::Complex, true),
            0x6a => (TransformKind::RealToComplex, true),
            0x6c => (TransformKind::ComplexToReal, true),
            _ => return wrong(Status::INVALID_TYPE, format!("there is no type {number} of transforms")),
        })
    }
}

impl Transform {
    /// Returns the number of elements of an array, on the side with half spectra if `is_half`.
    fn elements(&self, is_half: bool) -> usize {
        let (last, others) = self.sizes.split_last().map_or((1, &[][..]), |(last, others)| (*last, others));
        let last = if is_half { last / 2 + 1 } else { last };
        others.iter().fold(last, |count, size| count.saturating_mul(*size))
    }

    /// Returns the element type and total number of elements of input and output.
    pub fn sides(&self) -> [(Element, usize); 2] {
        let (real, complex) = if self.is_double { (Element::F64, Element::C128) } else { (Element::F32, Element::C64) };
        let side = |element, is_half| (element, self.elements(is_half).saturating_mul(self.batch));
        match self.kind {
            TransformKind::Complex => [side(complex, false), side(complex, false)],
            TransformKind::RealToComplex => [side(real, false), side(complex, true)],
            TransformKind::ComplexToReal => [side(complex, true), side(real, false)],
        }
    }

    /// Returns the bytes of the work area: none for one-dimensional transforms whose size is a power of two. The size
    /// does not depend on the alignment of arrays.
    pub fn workspace(&self) -> usize {
        if self.sizes.len() == 1 && self.sizes[0].is_power_of_two() {
            return 0;
        }
        self.sides().iter().map(|(element, count)| element.bytes() * count).max().unwrap_or(0)
    }
}

impl FftPlan {
    pub fn set_auto_allocation(&mut self, is_on: bool) -> Fft {
        if self.made.is_some() {
            return wrong(Status::INVALID_PLAN, "the plan is made already, with its memory");
        }
        self.brings_memory = !is_on;
        Ok(())
    }

    /// Makes the plan; returns the bytes of its work area.
    pub fn make(&mut self, sizes: &[i64], number: u32, batch: i64) -> Fft<usize> {
        if self.made.is_some() {
            return wrong(Status::INVALID_PLAN, "the plan is made already");
        }
        let (kind, is_double) = TransformKind::of(number)?;
        if !(1..=3).contains(&sizes.len()) {
            return wrong(Status::INVALID_VALUE, format!("a transform of {} dimensions", sizes.len()));
        }
        let counts = |number: &i64| usize::try_from(*number).ok().filter(|number| *number > 0);
        let (Some(sizes), Some(batch)) = (sizes.iter().map(counts).collect::<Option<Vec<_>>>(), counts(&batch)) else {
            return wrong(Status::INVALID_SIZE, format!("a transform of sizes {sizes:?}, {batch} times"));
        };
        let made = Transform { kind, is_double, sizes, batch };
        if made.sides().iter().any(|(element, count)| count.saturating_mul(element.bytes()) > MOST_BYTES) {
            return wrong(Status::INVALID_SIZE, format!("a transform that is too large: {made:?}"));
        }
        let bytes = made.workspace();
        self.made = Some(made);
        Ok(bytes)
    }

    pub fn set_work_area(&mut self, address: u64) -> Fft {
        match self.made {
            Some(_) => self.work_area = Some(address),
            None => return wrong(Status::INVALID_PLAN, "a plan gets memory before it is made"),
        }
        Ok(())
    }

    /// Returns the transform between two addresses, with the address and size of its work area, if the plan is of type
    /// `number`.
    pub fn checked(&self, number: u32, input: u64, output: u64) -> Fft<(Transform, (u64, usize))> {
        let Some(transform) = &self.made else {
            return wrong(Status::INVALID_PLAN, "a plan is used before it is made");
        };
        let (kind, is_double) = TransformKind::of(number)?;
        if (transform.kind, transform.is_double) != (kind, is_double) {
            return wrong(Status::INVALID_TYPE, format!("the plan is another one: {transform:?}"));
        }
        let [from, to] = transform.sides();
        for (name, address, (element, _)) in [("the input", input, from), ("the output", output, to)] {
            if address == 0 {
                return wrong(Status::INVALID_VALUE, format!("{name} is null"));
            }
            if !address.is_multiple_of(element.bytes() as u64) {
                let sentence = format!("{name} at {address:#x} is not aligned to its elements");
                return wrong(Status::UNALIGNED_DATA, sentence);
            }
        }
        let bytes = |(element, count): (Element, usize)| (element.bytes() * count) as u64;
        let (from, to) = ((input, bytes(from)), (output, bytes(to)));
        if input == output && kind != TransformKind::Complex {
            return wrong(Status::NOT_SUPPORTED, "real transforms in place are not simulated");
        }
        if input != output && overlaps(from, to) {
            return wrong(Status::INVALID_VALUE, "input and output overlap, and are not the same");
        }
        let work = self.memory(transform)?;
        if [from, to].into_iter().any(|range| overlaps(range, (work.0, work.1 as u64))) {
            return wrong(Status::INVALID_VALUE, "the plan's memory overlaps with an array");
        }
        Ok((transform.clone(), work))
    }

    /// Returns the address and size of the work area that the caller provides.
    fn memory(&self, transform: &Transform) -> Fft<(u64, usize)> {
        let bytes = transform.workspace();
        if !self.brings_memory || bytes == 0 {
            return Ok((0, 0));
        }
        match self.work_area {
            Some(address) if address != 0 && address.is_multiple_of(16) => Ok((address, bytes)),
            Some(address) if address != 0 => {
                wrong(Status::UNALIGNED_DATA, format!("the plan's memory at {address:#x} is not aligned to 16"))
            }
            _ => wrong(Status::NO_WORKSPACE, format!("a plan that needs {bytes} bytes has no memory")),
        }
    }
}
