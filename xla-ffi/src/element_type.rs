//! Numbers of element types in the FFI.

use xla_hlo::ElementType;

macro_rules! numbers {
    ($($variant:ident $number:literal)*) => {
        /// Returns the number of an element type, equal to that in XLA's protobuf messages.
        pub(crate) fn number(ty: ElementType) -> i32 {
            match ty { $(ElementType::$variant => $number,)* }
        }
    };
}

numbers! {
    Pred 1 S1 30 S2 26 S4 21 S8 2 S16 3 S32 4 S64 5 U1 31 U2 27 U4 22 U8 6 U16 7 U32 8 U64 9
    F16 10 F32 11 BF16 16 F64 12 C64 15 C128 18
    F8E5M2 19 F8E4M3 28 F8E4M3FN 20 F8E4M3B11FNUZ 23 F8E3M4 29 F8E5M2FNUZ 24 F8E4M3FNUZ 25
    F4E2M1FN 32 F8E8M0FNU 33 F6E3M2FN 35 F6E2M3FN 36
}
