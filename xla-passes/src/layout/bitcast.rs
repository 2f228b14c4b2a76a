//! Expands bitcasts that change layouts into transposes, reshapes, padding and bitcast-converts.

use xla_hlo::ops::{BinaryOp, BitcastConvert, Pad, PadDim, Slice, SliceRange, Transpose, UnaryOp};
use xla_hlo::{
    ArrayShape, ElementKind, ElementType, Error, InstrId, Literal, MemoryStep, MemoryStepKind, Result, Shape,
};

use crate::expand::pattern_type;
use crate::rewrite::builder::Inserter;

/// Replaces a bitcast of `x` from an array of shape `from` to one of shape `to`, both in memory order.
pub(super) fn spelled_out(at: &mut Inserter<'_>, x: InstrId, from: &ArrayShape, to: &ArrayShape) -> Result<InstrId> {
    let (before, steps) = (from.memory_steps()?, to.memory_steps()?);
    let same_elements = from.element_type() == to.element_type() && from.storage_bits() == to.storage_bits();
    if same_elements && from.dims() == to.dims() && before == steps {
        return Ok(x);
    }
    let mut value = x;
    for step in before {
        value = moved(at, value, &step)?;
    }
    if !same_elements {
        let words = words(at, value, from)?;
        value = from_words(at, words, to)?;
    }
    value = with_elements(at, value, to.memory_element_count()?)?;
    value = at.reshape(value, steps.last().map_or(to.dims(), |step| &step.to))?;
    for step in steps.into_iter().rev() {
        value = moved(at, value, &step.inverse())?;
    }
    Ok(value)
}

fn moved(at: &mut Inserter<'_>, x: InstrId, MemoryStep { kind, from, to }: &MemoryStep) -> Result<InstrId> {
    match kind {
        MemoryStepKind::Reshape => at.reshape(x, to),
        MemoryStepKind::Transpose(permutation) => at.add(Transpose { permutation: permutation.clone() }, [x]),
        MemoryStepKind::Slice => {
            let ranges = to.iter().map(|&limit| SliceRange { start: 0, limit, stride: 1 }).collect();
            at.add(Slice { ranges }, [x])
        }
        MemoryStepKind::Pad => {
            let zero = at.literal(Literal::zeros(&ArrayShape::scalar(at.element_type(x)?))?)?;
            let behind = |(to, from): (&usize, &usize)| PadDim { low: 0, high: (to - from) as i64, interior: 0 };
            at.add(Pad { dims: to.iter().zip(from).map(behind).collect() }, [x, zero])
        }
    }
}

/// Resizes an array to that number of elements: truncates it, or appends zeros.
fn with_elements(at: &mut Inserter<'_>, x: InstrId, count: usize) -> Result<InstrId> {
    let found = at.array(x)?.checked_element_count()?;
    if found == count {
        return Ok(x);
    }
    let flat = at.reshape(x, &[found])?;
    let kind = if found < count { MemoryStepKind::Pad } else { MemoryStepKind::Slice };
    moved(at, flat, &MemoryStep { kind, from: vec![found], to: vec![count] })
}

/// Whether elements have the width of their type in memory, as `bitcast-convert` requires.
fn is_word(shape: &ArrayShape) -> bool {
    shape.storage_bits() == shape.element_type().bit_width() && !shape.element_type().is_complex()
}

/// Returns the contents of memory as elements that have the width of their type in memory.
fn words(at: &mut Inserter<'_>, x: InstrId, shape: &ArrayShape) -> Result<InstrId> {
    let ty = shape.element_type();
    if is_word(shape) {
        return Ok(x);
    }
    if ty.is_complex() {
        let count = at.array(x)?.checked_element_count()?;
        let x = at.reshape(x, &[count])?;
        let parts = [at.unary(UnaryOp::Real, x)?, at.unary(UnaryOp::Imag, x)?];
        let [real, imag] = parts.map(|part| at.reshape(part, &[count, 1]));
        return at.concatenate(&[real?, imag?], 1);
    }
    // Elements are narrower than their storage; signed ones are sign-extended.
    let word = word_type(shape)?;
    match ty.kind() {
        ElementKind::Signed => {
            let signed = integer(ElementKind::Signed, word.bit_width()).ok_or_else(|| unknown(shape))?;
            let wide = at.convert(x, signed)?;
            at.same_bits(wide, word)
        }
        ElementKind::Pred | ElementKind::Unsigned => at.convert(x, word),
        ElementKind::Float | ElementKind::Complex => {
            let pattern = at.same_bits(x, pattern_of(ty)?)?;
            at.convert(pattern, word)
        }
    }
}

/// Returns the elements of an array of `shape` whose memory contents are these words.
fn from_words(at: &mut Inserter<'_>, words: InstrId, shape: &ArrayShape) -> Result<InstrId> {
    let ty = shape.element_type();
    if ty.is_complex() {
        let parts = from_words(at, words, &ArrayShape::new(ty.real_part(), []))?;
        let parts = with_multiple(at, parts, 2)?;
        let count = at.array(parts)?.checked_element_count()? / 2;
        let parts = at.reshape(parts, &[count, 2])?;
        let halves = [at.slice(parts, 1, 0, 1)?, at.slice(parts, 1, 1, 2)?];
        let [real, imag] = halves.map(|half| at.reshape(half, &[count]));
        return at.binary(BinaryOp::Complex, real?, imag?);
    }
    if is_word(shape) {
        return same_bits(at, words, ty);
    }
    let word = word_type(shape)?;
    let words = same_bits(at, words, word)?;
    match ty.kind() {
        ElementKind::Pred => at.convert(words, ty),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float => {
            let pattern = at.convert(words, pattern_of(ty)?)?;
            at.same_bits(pattern, ty)
        }
        ElementKind::Complex => Ok(words),
    }
}

/// Reinterprets bits as elements of another type, lowest bits first if that is narrower.
fn same_bits(at: &mut Inserter<'_>, words: InstrId, word: ElementType) -> Result<InstrId> {
    let (old, new) = (at.element_type(words)?.bit_width(), word.bit_width());
    let count = at.array(words)?.checked_element_count()?;
    if old.max(new) % old.min(new) != 0 {
        return Err(unknown(at.array(words)?));
    }
    match old.cmp(&new) {
        std::cmp::Ordering::Equal => at.same_bits(words, word),
        std::cmp::Ordering::Greater => {
            let words = at.reshape(words, &[count])?;
            at.add_as(BitcastConvert, Shape::array(word, [count, old / new]), [words])
        }
        std::cmp::Ordering::Less => {
            let words = with_multiple(at, words, new / old)?;
            let count = at.array(words)?.checked_element_count()? / (new / old);
            let grouped = at.reshape(words, &[count, new / old])?;
            at.add_as(BitcastConvert, Shape::array(word, [count]), [grouped])
        }
    }
}

/// Appends zeros up to a multiple of that number of elements.
fn with_multiple(at: &mut Inserter<'_>, x: InstrId, of: usize) -> Result<InstrId> {
    let count = at.array(x)?.checked_element_count()?;
    with_elements(at, x, count.next_multiple_of(of))
}

/// Returns the unsigned integer type with the width of an element in memory.
fn word_type(shape: &ArrayShape) -> Result<ElementType> {
    integer(ElementKind::Unsigned, shape.storage_bits()).ok_or_else(|| unknown(shape))
}

fn integer(kind: ElementKind, bits: usize) -> Option<ElementType> {
    ElementType::ALL.iter().copied().find(|ty| ty.kind() == kind && ty.bit_width() == bits)
}

/// Returns the unsigned integer type with the width of a type.
fn pattern_of(ty: ElementType) -> Result<ElementType> {
    pattern_type(ty).ok_or_else(|| unknown(&ArrayShape::scalar(ty)))
}

fn unknown(shape: &ArrayShape) -> Error {
    Error::unimplemented(format!("bitcast between {shape} and elements of another type is not implemented"))
}
