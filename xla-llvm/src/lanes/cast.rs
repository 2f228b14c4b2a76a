//! Conversions of a lane's type that are one LLVM instruction.

use inkwell::values::InstructionOpcode as Op;

use super::{Lanes, Scalar};

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    fn cast(self, op: Op, to: Scalar) -> Self {
        if self.scalar() == to {
            return self;
        }
        self.or_self(self.emitter.builder.build_cast(op, self.raw, self.type_of(to), ""))
    }

    /// `bitcast`: reinterprets the bits as another type of the same width.
    pub fn cast_bits(self, to: Scalar) -> Self {
        if self.scalar().bits() != to.bits() {
            return self.misuse("a bitcast changes the width");
        }
        self.cast(Op::BitCast, to)
    }

    /// `bitcast`: returns a float's bits as an integer.
    pub fn bits(self) -> Self {
        self.cast_bits(Scalar::Int(self.scalar().bits()))
    }

    /// `bitcast`: returns an integer's bits as a float of the same width.
    pub fn as_float(self) -> Self {
        match self.scalar().bits() {
            16 => self.cast_bits(Scalar::F16),
            32 => self.cast_bits(Scalar::F32),
            64 => self.cast_bits(Scalar::F64),
            _ => self.misuse("there is no float of this width"),
        }
    }

    /// `zext` or `trunc`: zero-extends or truncates to an integer of `bits` bits.
    pub fn zext(self, bits: u32) -> Self {
        if bits < self.scalar().bits() { self.trunc(bits) } else { self.cast(Op::ZExt, Scalar::Int(bits)) }
    }

    /// `sext` or `trunc`: sign-extends or truncates to an integer of `bits` bits.
    pub fn sext(self, bits: u32) -> Self {
        if bits < self.scalar().bits() { self.trunc(bits) } else { self.cast(Op::SExt, Scalar::Int(bits)) }
    }

    /// `trunc`: returns the low `bits` bits of an integer.
    pub fn trunc(self, bits: u32) -> Self {
        self.cast(Op::Trunc, Scalar::Int(bits))
    }

    /// Truncates to `bits` bits, or returns the value unchanged if it has that width.
    pub(crate) fn trunc_to(self, bits: u32) -> Self {
        if bits == self.scalar().bits() { self } else { self.trunc(bits) }
    }

    /// `fpext` or `fptrunc`: converts a float to another precision, rounded to nearest even.
    pub fn to_float(self, to: Scalar) -> Self {
        if self.scalar().bits() < to.bits() { self.cast(Op::FPExt, to) } else { self.cast(Op::FPTrunc, to) }
    }

    /// `cvt.rn.bf16x2.f32`: returns the bits of `f32` lanes as bfloat16, rounded to nearest even.
    ///
    /// One instruction converts two lanes, on GPUs from sm_80 on; the payload of NaNs changes. For `fptrunc`, LLVM
    /// would move sign operations after the conversion, where they are slow. The width must be a power of two.
    pub(crate) fn nvptx_bf16_bits(self) -> Self {
        let lane = |i| self.lane(i).raw;
        let bits = match self.width() {
            1 => self.emitter.intrinsic("llvm.nvvm.f2bf16.rn", &[], &[self.raw]),
            2 => self.emitter.intrinsic("llvm.nvvm.ff2bf16x2.rn", &[], &[lane(1), lane(0)]),
            width => {
                let [low, high] = [0, width / 2].map(|first| self.slice(first, width / 2).nvptx_bf16_bits());
                return low.concat(high);
            }
        };
        bits.map_or(self, |raw| Lanes { raw, ..self }.cast(Op::BitCast, Scalar::Int(16)))
    }

    /// `sitofp`: converts a signed integer to a float, rounded to nearest even.
    pub fn signed_to_float(self, to: Scalar) -> Self {
        self.cast(Op::SIToFP, to)
    }

    /// `uitofp`: converts an unsigned integer to a float, rounded to nearest even.
    pub fn unsigned_to_float(self, to: Scalar) -> Self {
        self.cast(Op::UIToFP, to)
    }

    /// `fptosi`: truncates a float to a signed integer; the value must fit.
    pub fn float_to_signed(self, bits: u32) -> Self {
        self.cast(Op::FPToSI, Scalar::Int(bits))
    }

    /// `fptoui`: truncates a float to an unsigned integer; the value must fit.
    pub fn float_to_unsigned(self, bits: u32) -> Self {
        self.cast(Op::FPToUI, Scalar::Int(bits))
    }

    /// `llvm.fptosi.sat`: truncates a float to a signed integer of `bits` bits with saturation, in lanes of at least 8
    /// bits; NaN becomes 0.
    pub fn saturated_signed(self, bits: u32) -> Self {
        let wide = self.saturated("llvm.fptosi.sat", bits.max(8));
        if bits >= 8 {
            return wide;
        }
        let greatest = (1 << (bits - 1)) - 1;
        wide.smin(greatest).smax(-greatest - 1)
    }

    /// `llvm.fptoui.sat`: truncates a float to an unsigned integer of `bits` bits with saturation, in lanes of at least
    /// 8 bits; NaN becomes 0.
    pub fn saturated_unsigned(self, bits: u32) -> Self {
        let wide = self.saturated("llvm.fptoui.sat", bits.max(8));
        if bits >= 8 { wide } else { wide.umin((1 << bits) - 1) }
    }

    fn saturated(self, name: &str, bits: u32) -> Self {
        let types = [self.type_of(Scalar::Int(bits)), self.raw.get_type()];
        self.emitter.intrinsic(name, &types, &[self.raw]).map_or(self, |raw| Lanes { raw, ..self })
    }
}
