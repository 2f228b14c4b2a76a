//! Values that a member computes for an operation, read from the instruction's last operands.

use xla_hlo::{Error, Literal, Result};

use crate::collective::{MemberArguments, RowMove};

/// Source of [`MemberArguments`].
#[derive(Debug)]
pub(crate) enum ArgumentSource {
    /// The operation needs none.
    None,
    /// The first member is the root.
    FirstRoot,
    /// The operand is the rank of the root.
    Root,
    /// The operands are start indices of slices: of all slices in the inputs, then of all in the outputs.
    Slices(Vec<SlicePlace>),
    /// The operands are lists of rows of a ragged-all-to-all.
    Rows,
}

/// Location of a slice's start indices among the operands, and the bounds and strides of its arrays.
#[derive(Debug)]
pub(crate) struct SlicePlace {
    /// Number of the first start index among those of the inputs, and among those of the outputs.
    pub first_place: usize,
    /// Largest start index along each dimension of the input.
    pub last_read: Vec<usize>,
    /// Largest start index along each dimension of the output.
    pub last_write: Vec<usize>,
    /// Strides of the input in elements.
    pub read_strides: Vec<usize>,
    /// Strides of the output in elements.
    pub write_strides: Vec<usize>,
}

impl ArgumentSource {
    /// Computes the arguments from the operands that the engine does not read, in a group of this number of members.
    pub fn arguments(&self, values: &[Literal], members: usize) -> Result<MemberArguments> {
        Ok(match self {
            ArgumentSource::None => MemberArguments::None,
            ArgumentSource::FirstRoot => MemberArguments::Root(0),
            ArgumentSource::Root => MemberArguments::Root(root(values.first(), members)?),
            ArgumentSource::Slices(slices) => {
                let (inputs, outputs) = values.split_at(values.len() / 2);
                let read_at =
                    |slice: &SlicePlace| start(inputs.get(slice.first_place..), &slice.last_read, &slice.read_strides);
                let write_at = |slice: &SlicePlace| {
                    start(outputs.get(slice.first_place..), &slice.last_write, &slice.write_strides)
                };
                MemberArguments::Slices {
                    read_at: slices.iter().map(read_at).collect::<Result<_>>()?,
                    write_at: slices.iter().map(write_at).collect::<Result<_>>()?,
                }
            }
            ArgumentSource::Rows => MemberArguments::Rows(rows(values)?),
        })
    }
}

fn number(literal: &Literal, i: usize) -> i128 {
    literal.get(i).as_i128().unwrap_or_default()
}

fn root(literal: Option<&Literal>, members: usize) -> Result<usize> {
    let root = number(literal.ok_or_else(missing)?, 0);
    let in_group = usize::try_from(root).ok().filter(|&root| root < members);
    in_group.ok_or_else(|| Error::invalid_argument(format!("the root {root} is not in its group of {members} devices")))
}

/// Returns the first element of a slice. Start indices are clamped so that the slice is in bounds.
fn start(places: Option<&[Literal]>, last: &[usize], strides: &[usize]) -> Result<usize> {
    let places = places.filter(|places| places.len() >= last.len()).ok_or_else(missing)?;
    let clamped = |(place, &last): (&Literal, &usize)| number(place, 0).clamp(0, last as i128) as usize;
    Ok(places.iter().zip(last).map(clamped).zip(strides).map(|(place, stride)| place * stride).sum())
}

/// Returns the entries of the lists. Numbers that no array can have are replaced by the nearest 64-bit ones.
fn rows(values: &[Literal]) -> Result<Vec<RowMove>> {
    let [read_at, counts, write_at, _] = values else { return Err(missing()) };
    let number = |literal: &Literal, i| number(literal, i).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let row = |i| RowMove { read_at: number(read_at, i), write_at: number(write_at, i), count: number(counts, i) };
    Ok((0..read_at.array_shape().element_count()).map(row).collect())
}

fn missing() -> Error {
    Error::internal("a collective lacks an operand with its arguments")
}
