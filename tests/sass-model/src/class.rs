//! Classes of instructions by the functional unit that they use.

use crate::sass::Instruction;

/// State space of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    /// Private memory of a thread: spilled registers and stack.
    Local,
}

/// Operand type of a tensor instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorType {
    F64,
    Tf32,
    Half,
    Byte,
}

/// Resource of an instruction in addition to its issue slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Load, with the bytes of one thread.
    Load(Space, u64),
    Store(Space, u64),
    /// TMA copy of a box between global and shared memory; its size is a run-time value.
    BoxLoad,
    BoxStore,
    /// Matrix multiply-accumulate, with the multiply-adds of a warp.
    Tensor(TensorType, u64),
    /// Reciprocals, roots, exponentials, logarithms, sines.
    Special,
    Other,
}

pub fn class(instruction: &Instruction) -> Class {
    let width = width(instruction);
    match instruction.base() {
        "LDG" | "LD" | "LDGSTS" => Class::Load(Space::Global, width),
        "STG" | "ST" | "RED" | "REDG" | "ATOM" | "ATOMG" => Class::Store(Space::Global, width),
        "LDS" | "LDSM" | "ATOMS" => Class::Load(Space::Shared, width),
        "STS" | "STSM" => Class::Store(Space::Shared, width),
        "LDL" => Class::Load(Space::Local, width),
        "STL" => Class::Store(Space::Local, width),
        "UTMALDG" | "UBLKCP" => Class::BoxLoad,
        "UTMASTG" | "UTMAREDG" => Class::BoxStore,
        "MUFU" => Class::Special,
        "DMMA" => Class::Tensor(TensorType::F64, multiplications(instruction)),
        "IMMA" | "QMMA" | "IGMMA" | "QGMMA" => Class::Tensor(TensorType::Byte, multiplications(instruction)),
        "HMMA" | "HGMMA" => {
            let tf32 = instruction.has("TF32");
            let kind = if tf32 { TensorType::Tf32 } else { TensorType::Half };
            Class::Tensor(kind, multiplications(instruction))
        }
        _ => Class::Other,
    }
}

/// Multiply-adds of the largest single-warp instruction, such as `HMMA.16816`, indexed by [`TensorType`].
const OF_A_WARP: [u64; 4] = [8 * 8 * 4, 16 * 8 * 8, 16 * 8 * 16, 16 * 8 * 32];

/// Number of single-warp instructions with the work of a tensor instruction.
pub fn weight(kind: TensorType, multiplications: u64) -> u64 {
    (multiplications / OF_A_WARP[kind as usize]).max(1)
}

/// Bytes of one thread's access.
fn width(instruction: &Instruction) -> u64 {
    let named = [("128", 16), ("64", 8), ("U16", 2), ("S16", 2), ("U8", 1), ("S8", 1)];
    named.iter().find(|(modifier, _)| instruction.has(modifier)).map_or(4, |&(_, bytes)| bytes)
}

/// Multiply-adds of a warp: 16 x 8 x 16 for `16816`; a quarter of 64 x 128 x 16 for a warp group's `64x128x16`.
fn multiplications(instruction: &Instruction) -> u64 {
    if let Some([rows, columns, depth]) = instruction.group_shape() {
        return rows * columns * depth / 4;
    }
    let of_shape = |shape: &str| {
        let of = |rows: u64, depth: &str| depth.parse().ok().map(|depth: u64| rows * 8 * depth);
        let (large, small) = (shape.strip_prefix("168"), shape.strip_prefix("88"));
        large.and_then(|depth| of(16, depth)).or_else(|| small.and_then(|depth| of(8, depth)))
    };
    instruction.opcode.split('.').skip(1).filter_map(of_shape).next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_opcode() {
        let class_of = |opcode: &str| {
            let operands = Vec::new();
            class(&Instruction { address: 0, guard: None, opcode: opcode.to_owned(), operands, target: None })
        };
        let expected = [
            ("LDG.E.128", Class::Load(Space::Global, 16)),
            ("LDG.E.U16.CONSTANT", Class::Load(Space::Global, 2)),
            ("STG.E", Class::Store(Space::Global, 4)),
            ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", Class::Store(Space::Global, 4)),
            ("LDS.64", Class::Load(Space::Shared, 8)),
            ("STL.128", Class::Store(Space::Local, 16)),
            ("LDL", Class::Load(Space::Local, 4)),
            ("MUFU.EX2", Class::Special),
            ("HMMA.16816.F32.BF16", Class::Tensor(TensorType::Half, 2048)),
            ("HMMA.1688.F32.TF32", Class::Tensor(TensorType::Tf32, 1024)),
            ("HGMMA.64x128x16.F32.BF16", Class::Tensor(TensorType::Half, 32768)),
            ("IMMA.16832.S8.S8", Class::Tensor(TensorType::Byte, 4096)),
            ("HGMMA.64x64x8.F32.TF32", Class::Tensor(TensorType::Tf32, 8192)),
            ("HGMMA.64x256x16.F32", Class::Tensor(TensorType::Half, 65536)),
            ("QGMMA.64x64x32.F32.E4M3.E4M3", Class::Tensor(TensorType::Byte, 32768)),
            ("IGMMA.64x64x32.S8.S8", Class::Tensor(TensorType::Byte, 32768)),
            ("DMMA.884", Class::Tensor(TensorType::F64, 256)),
            ("UTMALDG.2D", Class::BoxLoad),
            ("UTMASTG.3D", Class::BoxStore),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Class::Other),
            ("SYNCS.ARRIVE.TRANS64", Class::Other),
            ("WARPGROUP.ARRIVE", Class::Other),
            ("WARPGROUP.DEPBAR.LE", Class::Other),
            ("HFMA2.MMA", Class::Other),
            ("LDC.64", Class::Other),
        ];
        for (opcode, class) in expected {
            assert_eq!(class_of(opcode), class, "{opcode}");
        }
    }

    #[test]
    fn products_of_four_warps_weigh_as_many_of_one() {
        assert_eq!(weight(TensorType::Half, 2048), 1);
        assert_eq!(weight(TensorType::Half, 1024), 1);
        assert_eq!(weight(TensorType::Half, 32768), 16);
        assert_eq!(weight(TensorType::Tf32, 8192), 8);
    }
}
