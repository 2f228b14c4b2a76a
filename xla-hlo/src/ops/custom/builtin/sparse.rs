//! Products of sparse and dense arrays.

use crate::ops::CustomCallContext;
use crate::{ElementKind, Error, Literal, Result, Scalar};

/// JAX's `cpu_csr_sparse_dense`: multiplies a matrix in compressed sparse row format,
/// `(elements, row starts, columns)`, by a vector or a matrix.
///
/// The number of rows is that of the result. Entries with indices out of bounds, which JAX uses as padding, are
/// skipped.
pub(super) fn compressed_rows_times_dense(call: &CustomCallContext<'_>, operands: Vec<Literal>) -> Result<Literal> {
    let [data, starts, columns, dense] = &operands[..] else {
        return Err(Error::invalid_argument("it takes four operands"));
    };
    let (result, shape) = (call.result_shape().expect_array()?, dense.shape().expect_array()?);
    let (&[rows, ref rest @ ..], &[depth, ref other @ ..]) = (result.dims(), shape.dims()) else {
        return Err(Error::invalid_argument(format!(
            "operand 3 and the result must not be scalars, they are {shape} and {result}"
        )));
    };
    let (starts, columns) = (places("operand 1", starts)?, places("operand 2", columns)?);
    let count = data.shape().expect_array()?.element_count();
    let ty = result.element_type();
    let types = [data, dense].map(|a| a.shape().element_type());
    if starts.len() != rows + 1 || columns.len() != count || rest != other || rest.len() > 1 || types != [Some(ty); 2] {
        return Err(Error::invalid_argument(format!(
            "the product of {} elements of {}, {} row starts and {} columns with {shape} is not {result}",
            count,
            data.shape(),
            starts.len(),
            columns.len()
        )));
    }
    let width = rest.first().copied().unwrap_or(1);
    let mut sums = Vec::with_capacity(rows * width);
    for bounds in starts.windows(2) {
        let end = usize::try_from(bounds[1]).unwrap_or(0).min(count);
        let entries = usize::try_from(bounds[0]).unwrap_or(0)..end;
        let known = |i: usize| usize::try_from(columns[i]).ok().filter(|&column| column < depth).map(|c| (i, c));
        for j in 0..width {
            let terms = entries.clone().filter_map(known).map(|(i, c)| (data.get(i), dense.get(c * width + j)));
            sums.push(sum_of_products(terms, ty.kind()));
        }
    }
    Literal::from_fn(result, |i| sums[i].rounded(ty))
}

fn places(what: &str, array: &Literal) -> Result<Vec<i128>> {
    let shape = array.shape().expect_array()?;
    let place = |i: usize| array.get(i).as_i128();
    (0..shape.element_count())
        .map(place)
        .collect::<Option<_>>()
        .ok_or_else(|| Error::invalid_argument(format!("{what} must be integers, it is {shape}")))
}

/// Sums products in double precision, or modulo 2^64 for integers.
fn sum_of_products(terms: impl Iterator<Item = (Scalar, Scalar)>, kind: ElementKind) -> Scalar {
    let mut integer = 0_u64;
    let (mut re, mut im) = (0.0, 0.0);
    for (x, y) in terms {
        match (x, y) {
            (Scalar::Float(a), Scalar::Float(b)) => re += a * b,
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => (re, im) = (re + a * c - b * d, im + a * d + b * c),
            (Scalar::Signed(a), Scalar::Signed(b)) => integer = integer.wrapping_add(a.wrapping_mul(b) as u64),
            (Scalar::Unsigned(a), Scalar::Unsigned(b)) => integer = integer.wrapping_add(a.wrapping_mul(b)),
            (Scalar::Pred(a), Scalar::Pred(b)) => integer |= u64::from(a && b),
            // Both operands have the result's type.
            _ => {}
        }
    }
    match kind {
        ElementKind::Float => Scalar::Float(re),
        ElementKind::Complex => Scalar::Complex(re, im),
        ElementKind::Signed => Scalar::Signed(integer as i64),
        ElementKind::Unsigned => Scalar::Unsigned(integer),
        ElementKind::Pred => Scalar::Pred(integer != 0),
    }
}
