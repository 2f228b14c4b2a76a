//! Numbers of element types in the C API and in protobuf messages.

use xla_hlo::{ElementType, Error};

use crate::status::Status;

/// Number of the token type.
pub(crate) const TOKEN: i32 = 23;

macro_rules! numbers {
    ($($variant:ident $number:literal $message:literal)*) => {
        /// Returns the number of an element type in the C API.
        pub(crate) fn number(ty: ElementType) -> i32 {
            match ty { $(ElementType::$variant => $number,)* }
        }

        /// Returns the element type for a number in the C API.
        pub(crate) fn element_type(number: i32) -> Result<ElementType, Status> {
            match number {
                $($number => Ok(ElementType::$variant),)*
                TOKEN => Err(Error::unimplemented("buffers of tokens are not supported").into()),
                _ => Err(Status::invalid_argument(format!("{number} is not the element type of an array"))),
            }
        }

        /// Returns the number of an element type in protobuf messages.
        pub(crate) fn message_number(ty: ElementType) -> i32 {
            match ty { $(ElementType::$variant => $message,)* }
        }
    };
}

numbers! {
    Pred 1 1
    S8 2 2
    S16 3 3
    S32 4 4
    S64 5 5
    U8 6 6
    U16 7 7
    U32 8 8
    U64 9 9
    F16 10 10
    F32 11 11
    F64 12 12
    BF16 13 16
    C64 14 15
    C128 15 18
    F8E5M2 16 19
    F8E4M3FN 17 20
    F8E4M3B11FNUZ 18 23
    F8E5M2FNUZ 19 24
    F8E4M3FNUZ 20 25
    S4 21 21
    U4 22 22
    S2 24 26
    U2 25 27
    F8E4M3 26 28
    F8E3M4 27 29
    F8E8M0FNU 28 33
    F4E2M1FN 29 32
    S1 30 30
    U1 31 31
    F6E2M3FN 32 36
    F6E3M2FN 33 35
}
