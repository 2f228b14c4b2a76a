//! Plans: the calls that build them, in the order that NVIDIA's documentation prescribes.

use super::{Fft, Status};
use crate::arguments::overlaps;
use crate::element::Element;
use crate::refusal::wrong;

/// `cufftHandle` stands for one.
#[derive(Clone, Debug, Default)]
pub(super) struct FftPlan {
    pub stream: u64,
    /// Whether the caller brings the memory.
    brings_memory: bool,
    made: Option<Transform>,
    work_area: Option<u64>,
}

/// The transformed array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transform {
    pub kind: TransformKind,
    pub is_double: bool,
    /// One to three dimensions, of the side that is not cut in half.
    pub sizes: Vec<usize>,
    pub batch: usize,
}

/// Kinds of input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransformKind {
    Complex,
    RealToComplex,
    ComplexToReal,
}

/// Bytes of all arrays of one side, at most.
const MOST_BYTES: usize = 1 << 40;

impl TransformKind {
    /// `cufftType`: the kind, and whether numbers are doubles.
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
    /// Elements of an array, on the side that is cut in half if there is one.
    fn elements(&self, is_half: bool) -> usize {
        let (last, others) = self.sizes.split_last().map_or((1, &[][..]), |(last, others)| (*last, others));
        let last = if is_half { last / 2 + 1 } else { last };
        others.iter().fold(last, |count, size| count.saturating_mul(*size))
    }

    /// Element type and number of all elements of input and output.
    pub fn sides(&self) -> [(Element, usize); 2] {
        let (real, complex) = if self.is_double { (Element::F64, Element::C128) } else { (Element::F32, Element::C64) };
        let side = |element, is_half| (element, self.elements(is_half).saturating_mul(self.batch));
        match self.kind {
            TransformKind::Complex => [side(complex, false), side(complex, false)],
            TransformKind::RealToComplex => [side(real, false), side(complex, true)],
            TransformKind::ComplexToReal => [side(complex, true), side(real, false)],
        }
    }

    /// Bytes that it needs for itself: nothing for short arrays whose sizes are powers of two. Never mind how they are
    /// aligned.
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

    /// Makes it: bytes of the memory that it needs for itself.
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

    /// The transform from one address to another one, with its memory, if it is of that type.
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

    /// Address and bytes of the memory that the caller brings.
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
