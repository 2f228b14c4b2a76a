//! Dot products within lanes: each 32-bit lane adds the products of a group of narrow elements.

use inkwell::types::{BasicType, BasicTypeEnum};

use super::{Lanes, Scalar};

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// `vdpbf16ps`: adds to each `f32` lane the products of the two bf16 in a lane of `x` and of `y`, which are 32-bit
    /// integers.
    pub(crate) fn add_bf16_products(self, x: Self, y: Self) -> Self {
        let width = 2 * self.width();
        let pairs = self.emitter.context.bf16_type().vec_type(width).as_basic_type_enum();
        self.add_products("llvm.x86.avx512bf16.dpbf16ps", [x, y].map(|lanes| lanes.reinterpreted(pairs)))
    }

    /// `vpdpbusd`: adds to each 32-bit lane the products of the four unsigned bytes in a lane of `unsigned` and the
    /// four signed bytes in a lane of `signed`; sums wrap.
    pub(crate) fn add_byte_products(self, unsigned: Self, signed: Self) -> Self {
        let bytes = self.emitter.lane_type(Scalar::Int(8), 4 * self.width());
        self.add_products("llvm.x86.avx512.vpdpbusd", [unsigned, signed].map(|lanes| lanes.reinterpreted(bytes)))
    }

    /// Calls an intrinsic of x86 for the register width of these lanes.
    fn add_products(self, name: &str, [x, y]: [Self; 2]) -> Self {
        let name = format!("{name}.{}", 32 * self.width());
        let sums = self.emitter.intrinsic(&name, &[], &[self.raw, x.raw, y.raw]);
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
