//! The elementwise operations of HLO over lanes, for every element type.
//!
//! A [`Value`] is what one HLO element is in registers, in as many lanes as the code around it works on:
//!
//! | element type | lanes |
//! | --- | --- |
//! | `pred` | one bit (a mask); a byte 0 or 1 in memory |
//! | integers | their storage width: `s4` is a sign-extended byte |
//! | `f16`, `bf16`, `f8*`, `f6*`, `f4*` | f32, rounded to the type after every operation |
//! | `f32`, `f64` | themselves |
//! | `c64`, `c128` | two lanes, real and imaginary |

mod binary;
mod compare;
mod convert;
mod memory;
mod narrow_float;
mod round;
mod unary;
mod value;

pub use binary::binary;
pub use compare::{clamp, compare, select, select_lanes};
pub use convert::{bitcast_convert, clamped_index, convert};
pub use memory::{constant, constant_bytes, gather, load, scatter, store};
pub use round::reduce_precision;
pub use unary::unary;
pub use value::Value;
