//! Descriptors of matmuls, matrices and preferences, with the attribute numbers and sizes of NVIDIA's header.

use super::{Blas, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// `cublasOperation_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transpose {
    None,
    Transposed,
    Conjugated,
}

/// Epilogue of a matmul.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Epilogue {
    pub has_bias: bool,
    pub activation: Activation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Activation {
    None,
    Relu,
    Gelu,
}

/// `cublasLtMatmulDesc_t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatmulDescriptor {
    /// `cublasComputeType_t`.
    pub compute: u32,
    /// Type of alpha and beta.
    pub scale: Element,
    pub turn_a: Transpose,
    pub turn_b: Transpose,
    pub epilogue: Epilogue,
    /// Address of the bias; zero until it is set.
    pub bias: u64,
    /// Type of the bias. Until it is set, it is the type of D, or the scale type for an integer D.
    pub bias_element: Option<Element>,
    pub bias_stride: i64,
}

/// `cublasLtMatrixLayout_t`, column-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatrixLayout {
    pub element: Element,
    pub rows: u64,
    pub columns: u64,
    pub leading: i64,
    pub batch: i32,
    pub stride: i64,
}

/// `cublasLtMatmulPreference_t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preference {
    pub most_workspace: u64,
    /// Minimum alignments of A, B, C and D.
    pub alignments: [u32; 4],
}

/// Converts a `cudaDataType_t`; other types are not simulated.
pub(super) fn element(number: u32) -> Blas<Element> {
    Ok(match number {
        0 => Element::F32,
        1 => Element::F64,
        2 => Element::F16,
        3 => Element::S8,
        4 => Element::C64,
        5 => Element::C128,
        10 => Element::S32,
        14 => Element::Bf16,
        28 => Element::F8E4M3,
        29 => Element::F8E5M2,
        _ => return wrong(Status::NOT_SUPPORTED, format!("data type {number} is not simulated")),
    })
}

/// Returns the value of an attribute, which must have exactly the size in the header.
fn sized<const N: usize>(what: &str, attribute: u32, value: &[u8]) -> Blas<[u8; N]> {
    value.try_into().or_else(|_| {
        let given = value.len();
        wrong(Status::INVALID_VALUE, format!("attribute {attribute} of {what} has {N} bytes, and is given {given}"))
    })
}

fn unknown<T>(what: &str, attribute: u32) -> Blas<T> {
    wrong(Status::NOT_SUPPORTED, format!("attribute {attribute} of {what} is not simulated"))
}

fn bad_value<T>(what: &str, attribute: u32, value: impl std::fmt::Display) -> Blas<T> {
    wrong(Status::INVALID_VALUE, format!("attribute {attribute} of {what} cannot be {value}"))
}

impl MatmulDescriptor {
    pub fn new(compute: u32, scale: u32) -> Blas<MatmulDescriptor> {
        if !matches!(compute, 64 | 65 | 68..=75 | 77) {
            return wrong(Status::INVALID_VALUE, format!("there is no compute type {compute}"));
        }
        let epilogue = Epilogue { has_bias: false, activation: Activation::None };
        let (turn_a, turn_b) = (Transpose::None, Transpose::None);
        let scale = element(scale)?;
        Ok(MatmulDescriptor { compute, scale, turn_a, turn_b, epilogue, bias: 0, bias_element: None, bias_stride: 0 })
    }

    pub fn set(&mut self, attribute: u32, value: &[u8]) -> Blas {
        const WHAT: &str = "a matmul descriptor";
        match attribute {
            // Pointer mode, and transposition of C: only the defaults are supported.
            2 | 5 => match i32::from_le_bytes(sized(WHAT, attribute, value)?) {
                0 => {}
                other => return bad_value(WHAT, attribute, other),
            },
            3 | 4 => {
                let turn = match i32::from_le_bytes(sized(WHAT, attribute, value)?) {
                    0 => Transpose::None,
                    1 => Transpose::Transposed,
                    2 => Transpose::Conjugated,
                    other => return bad_value(WHAT, attribute, other),
                };
                *(if attribute == 3 { &mut self.turn_a } else { &mut self.turn_b }) = turn;
            }
            7 => self.epilogue = epilogue(u32::from_le_bytes(sized(WHAT, attribute, value)?))?,
            8 => self.bias = u64::from_le_bytes(sized(WHAT, attribute, value)?),
            10 => self.bias_stride = i64::from_le_bytes(sized(WHAT, attribute, value)?),
            26 => {
                let number = i32::from_le_bytes(sized(WHAT, attribute, value)?);
                self.bias_element = u32::try_from(number).ok().map(element).transpose()?;
            }
            _ => return unknown(WHAT, attribute),
        }
        Ok(())
    }
}

/// Converts a `cublasLtEpilogue_t`; other epilogues are not simulated.
fn epilogue(number: u32) -> Blas<Epilogue> {
    let activation = match number & !4 {
        0 | 1 => Activation::None,
        2 => Activation::Relu,
        32 => Activation::Gelu,
        _ => return wrong(Status::NOT_SUPPORTED, format!("epilogue {number} is not simulated")),
    };
    match number {
        0 | 5 => bad_value("a matmul descriptor", 7, number),
        _ => Ok(Epilogue { has_bias: number & 4 != 0, activation }),
    }
}

impl MatrixLayout {
    pub fn new(number: u32, rows: u64, columns: u64, leading: i64) -> Blas<MatrixLayout> {
        Ok(MatrixLayout { element: element(number)?, rows, columns, leading, batch: 1, stride: 0 })
    }

    pub fn set(&mut self, attribute: u32, value: &[u8]) -> Blas {
        const WHAT: &str = "a matrix layout";
        match attribute {
            0 => self.element = element(u32::from_le_bytes(sized(WHAT, attribute, value)?))?,
            // Order: only column-major is supported.
            1 => match i32::from_le_bytes(sized(WHAT, attribute, value)?) {
                0 => {}
                order @ 1..=4 => {
                    return wrong(Status::NOT_SUPPORTED, format!("order {order} of a matrix is not simulated"));
                }
                other => return bad_value(WHAT, attribute, other),
            },
            2 => self.rows = u64::from_le_bytes(sized(WHAT, attribute, value)?),
            3 => self.columns = u64::from_le_bytes(sized(WHAT, attribute, value)?),
            4 => self.leading = i64::from_le_bytes(sized(WHAT, attribute, value)?),
            5 => match i32::from_le_bytes(sized(WHAT, attribute, value)?) {
                batch @ 1.. => self.batch = batch,
                other => return bad_value(WHAT, attribute, other),
            },
            6 => self.stride = i64::from_le_bytes(sized(WHAT, attribute, value)?),
            _ => return unknown(WHAT, attribute),
        }
        Ok(())
    }
}

impl Preference {
    /// Creates the default: no workspace, and all arrays aligned as the driver aligns allocations.
    pub fn new() -> Preference {
        Preference { most_workspace: 0, alignments: [256; 4] }
    }

    pub fn set(&mut self, attribute: u32, value: &[u8]) -> Blas {
        const WHAT: &str = "a preference";
        match attribute {
            1 => self.most_workspace = u64::from_le_bytes(sized(WHAT, attribute, value)?),
            5..=8 => {
                let bytes = u32::from_le_bytes(sized(WHAT, attribute, value)?);
                if !bytes.is_power_of_two() {
                    return bad_value(WHAT, attribute, bytes);
                }
                self.alignments[attribute as usize - 5] = bytes;
            }
            _ => return unknown(WHAT, attribute),
        }
        Ok(())
    }
}
