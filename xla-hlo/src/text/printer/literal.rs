//! Printer of literals.

use std::fmt;

use super::super::numbers::push_float;
use super::Printer;
use crate::{ArrayShape, ElementKind, ElementType, Literal, Scalar, Shape};

/// Maximum number of elements of a constant that is printed without
/// [`PrintOptions::large_constants`](super::PrintOptions::large_constants).
const SMALL: usize = 10;

/// Maximum number of braces printed for an array without elements, which may have more than fit in memory. Beyond it,
/// `{...}` has the same meaning.
const EMPTY_BRACES: usize = 1000;

/// Maximum number of zeros that are printed individually. More are printed as one `0`, or `{...}`; both parse as zeros.
const FEW_ZEROS: usize = 1 << 12;

impl Printer<'_> {
    /// Prints a constant's value.
    pub fn constant(&mut self, literal: &Literal) {
        let count = |leaf: &&Literal| leaf.shape().as_array().map_or(0, ArrayShape::element_count);
        if !self.options.large_constants && literal.leaves().iter().map(count).sum::<usize>() > SMALL {
            return self.push("{...}");
        }
        push_literal(&mut self.out, literal, false);
    }
}

/// Prints the literal with the shape of each array, as [`parse_literal`](crate::text::parse_literal) parses it.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        push_literal(&mut out, self, true);
        f.write_str(&out)
    }
}

fn push_literal(out: &mut String, literal: &Literal, with_shapes: bool) {
    match literal.shape() {
        Shape::Array(array) => {
            if with_shapes {
                out.push_str(&format!("{array} "));
            }
            match zeros(array, literal) {
                Some(short) => out.push_str(short),
                None => push_array(out, array, literal.bytes()),
            }
        }
        Shape::Tuple(_) => {
            out.push('(');
            for (i, element) in literal.elements().iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { " " });
                push_literal(out, element, with_shapes);
            }
            out.push_str(if literal.elements().is_empty() { ")" } else { " )" });
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => out.push_str(&literal.shape().to_string()),
    }
}

/// Returns the short form of a large array of zeros.
fn zeros(shape: &ArrayShape, literal: &Literal) -> Option<&'static str> {
    let element = literal.as_splat().filter(|_| shape.element_count() > FEW_ZEROS)?;
    if element.iter().any(|&byte| byte != 0) {
        return None;
    }
    // XLA parses `0` for an array if its elements are written as single numbers.
    let is_number =
        shape.element_type() != ElementType::F8E8M0FNU && shape.element_type().kind() != ElementKind::Complex;
    Some(if is_number { "0" } else { "{...}" })
}

/// Prints the nested braces of an array, without recursion.
fn push_array(out: &mut String, shape: &ArrayShape, bytes: &[u8]) {
    let (ty, dims) = (shape.element_type(), shape.dims());
    let mut elements = bytes.chunks_exact(ty.byte_width());
    // Braces of this level contain elements, or nothing if the size of a dimension is 0.
    let Some(inner) = dims.iter().position(|&d| d == 0).or(dims.len().checked_sub(1)) else {
        return push_scalar(out, ty, bytes);
    };
    let rows = dims[..inner].iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    if dims[inner] == 0 && rows.is_none_or(|n| n > EMPTY_BRACES) {
        return out.push_str("{...}");
    }
    let mut index = vec![0; inner];
    loop {
        let fresh = index.iter().rev().take_while(|&&i| i == 0).count();
        for level in inner - fresh..=inner {
            open(out, dims, level, &index);
        }
        for (i, element) in elements.by_ref().take(dims[inner]).enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            push_element(out, ty, element);
        }
        let full = index.iter().zip(dims).rev().take_while(|(i, d)| *i + 1 == **d).count();
        for level in (inner - full..=inner).rev() {
            close(out, dims, level);
        }
        if full == inner {
            return;
        }
        out.push_str(", ");
        index[inner - full..].fill(0);
        index[inner - full - 1] += 1;
    }
}

/// Prints the opening brace of dimension `level`; from rank 4 on with the position in the dimension above.
fn open(out: &mut String, dims: &[usize], level: usize, index: &[usize]) {
    out.push('{');
    if dims.len() == 1 || (level + 1 == dims.len() && dims[level] <= 1) {
        return;
    }
    out.push(' ');
    if dims.len() > 3 && level > 0 && level + 1 < dims.len() {
        out.push_str(&format!("/*i{}={}*/ ", level - 1, index[level - 1]));
    }
}

fn close(out: &mut String, dims: &[usize], level: usize) {
    let tight = dims.len() == 1 || (level + 1 == dims.len() && dims[level] <= 1);
    out.push_str(if tight { "}" } else { " }" });
}

fn push_scalar(out: &mut String, ty: ElementType, bytes: &[u8]) {
    match ty.kind() {
        ElementKind::Pred => out.push_str(if bytes[0] != 0 { "true" } else { "false" }),
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => {
            push_element(out, ty, bytes);
        }
    }
}

fn push_element(out: &mut String, ty: ElementType, bytes: &[u8]) {
    match ty.kind() {
        ElementKind::Pred | ElementKind::Signed | ElementKind::Unsigned => {
            let value = Scalar::read(ty, bytes).as_i128().unwrap_or(0);
            out.push_str(&value.to_string());
        }
        ElementKind::Float => push_float(out, ty, bits(bytes)),
        ElementKind::Complex => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            out.push('(');
            push_float(out, ty.real_part(), bits(real));
            out.push_str(", ");
            push_float(out, ty.real_part(), bits(imaginary));
            out.push(')');
        }
    }
}

/// Returns the bit pattern of at most eight bytes.
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}
