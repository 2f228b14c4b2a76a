//! Dot products within lanes: each 32-bit lane adds the products of a group of narrow elements.

use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::InstructionOpcode;

use super::{Lanes, Scalar};

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// `vdpbf16ps`: adds to each `f32` lane the products of the two bf16 in a lane of `x` and of `y`, which are 32-bit
    /// integers.
    pub(crate) fn add_bf16_products(self, x: Self, y: Self) -> Self {
        let width = 2 * self.width();
        let pairs = self.emitter.context.bf16_type().vec_type(width).as_basic_type_enum();
        self.add_products("llvm.x86.avx512bf16.dpbf16ps", [x, y].map(|lanes| lanes.reinterpreted(pairs)))
    }

    /// `vcvtneps2bf16`: returns the bits of `f32` lanes as bfloat16, rounded to nearest even; subnormals become zeros.
    pub(crate) fn x86_bf16_bits(self) -> Self {
        let narrow = self.emitter.context.bf16_type();
        let narrow = if self.width() > 1 { narrow.vec_type(self.width()).into() } else { narrow.as_basic_type_enum() };
        let rounded = self.or_self(self.emitter.builder.build_cast(InstructionOpcode::FPTrunc, self.raw, narrow, ""));
        rounded.reinterpreted(self.type_of(Scalar::Int(16)))
    }

    /// `vpdpbusd`, `sdot` and the like: adds to each 32-bit lane the products of the four bytes in a lane of `x` and of
    /// `y`, each of which may be signed; sums wrap.
    pub(crate) fn add_byte_products(self, [x, y]: [Self; 2], signed: [bool; 2]) -> Self {
        let bytes = self.emitter.lane_type(Scalar::Int(8), 4 * self.width());
        let [x, y] = [x, y].map(|lanes| lanes.reinterpreted(bytes));
        // Instructions for mixed signedness have the unsigned operand first.
        let operands = if signed == [true, false] { [y, x] } else { [x, y] };
        if !self.emitter.target().is_x86() {
            let name = match signed {
                [true, true] => "llvm.aarch64.neon.sdot",
                [false, false] => "llvm.aarch64.neon.udot",
                [true, false] | [false, true] => "llvm.aarch64.neon.usdot",
            };
            return self.call_dot(name, &[self.raw.get_type(), bytes], operands);
        }
        let wide = if self.width() == 16 { "avx10" } else { "avx2" };
        match signed {
            [true, true] => self.add_products(&format!("llvm.x86.{wide}.vpdpbssd"), operands),
            [false, false] => self.add_products(&format!("llvm.x86.{wide}.vpdpbuud"), operands),
            [true, false] | [false, true] => self.add_products("llvm.x86.avx512.vpdpbusd", operands),
        }
    }

    /// Calls an intrinsic of x86 for the register width of these lanes.
    fn add_products(self, name: &str, operands: [Self; 2]) -> Self {
        self.call_dot(&format!("{name}.{}", 32 * self.width()), &[], operands)
    }

    fn call_dot(self, name: &str, types: &[BasicTypeEnum<'ctx>], [x, y]: [Self; 2]) -> Self {
        let sums = self.emitter.intrinsic(name, types, &[self.raw, x.raw, y.raw]);
        sums.map_or(self, |raw| Lanes { raw, ..self })
    }

    /// `bitcast`: joins `count` neighbouring integer lanes into one, the first of them in the lowest bits on
    /// little-endian targets.
    pub(crate) fn joined(self, count: u32) -> Self {
        let joined = Scalar::Int(self.scalar().bits() * count);
        self.reinterpreted(self.emitter.lane_type(joined, self.width() / count))
    }

    /// `bitcast`: reinterprets all lanes as another type of equal size.
    fn reinterpreted(self, to: BasicTypeEnum<'ctx>) -> Self {
        self.or_self(self.emitter.builder.build_bit_cast(self.raw, to, ""))
    }
}
