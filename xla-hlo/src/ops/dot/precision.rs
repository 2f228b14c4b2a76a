//! Precision of a dot: the requirement of each operand, and algorithms that override it.

/// `operand_precision=`: required accuracy of products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Chosen by the platform.
    #[default]
    Default,
    /// Higher than the platform's default.
    High,
    /// Full precision of the element type.
    Highest,
}

macro_rules! dot_algorithms {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// `algorithm=`: operand and accumulator types of a dot, which override the precision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names say operand, operand and accumulator types")]
        pub enum DotAlgorithm { $($variant,)* }

        impl DotAlgorithm {
            /// All algorithms.
            pub const ALL: &[DotAlgorithm] = &[$(DotAlgorithm::$variant,)*];

            /// Returns the name in text.
            pub const fn name(self) -> &'static str {
                match self { $(DotAlgorithm::$variant => $name,)* }
            }
        }
    };
}

dot_algorithms! {
    AnyF8AnyF8F32 "dot_any_f8_any_f8_f32";
    AnyF8AnyF8F32FastAccum "dot_any_f8_any_f8_f32_fast_accum";
    F16F16F16 "dot_f16_f16_f16";
    F16F16F32 "dot_f16_f16_f32";
    Bf16Bf16Bf16 "dot_bf16_bf16_bf16";
    Bf16Bf16F32 "dot_bf16_bf16_f32";
    Bf16Bf16F32X3 "dot_bf16_bf16_f32_x3";
    Bf16Bf16F32X6 "dot_bf16_bf16_f32_x6";
    Bf16Bf16F32X9 "dot_bf16_bf16_f32_x9";
    Tf32Tf32F32 "dot_tf32_tf32_f32";
    Tf32Tf32F32X3 "dot_tf32_tf32_f32_x3";
    F32F32F32 "dot_f32_f32_f32";
    F64F64F64 "dot_f64_f64_f64";
}
