//! Loads of 8x8 matrices from shared memory into the fragments of a warp's threads: `ldmatrix` of the PTX ISA, with an
//! emulation on the host.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, WARP};
use crate::target::Simt;

/// Number of matrices per load (`.x4`).
pub const MATRICES: usize = 4;
/// Number of rows of a matrix; a row has 16 bytes.
const MATRIX_ROWS: u32 = 8;

impl<'ctx> Emitter<'ctx> {
    /// `ldmatrix`: loads a fragment of each of four matrices, each eight rows of 16 bytes in shared memory, as 32-bit
    /// integers. Row `r` of matrix `i` begins at element `at` of lane `8 i + r` of the warp, a multiple of 16 bytes.
    /// Lane `4 g + t` receives word `t` of row `g`. If `transposed`, elements have 16 bits and the lane receives
    /// element `g` of the rows `2 t` and `2 t + 1`. All threads of the warp must execute it.
    pub fn load_matrices<'e>(
        &'e self,
        array: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
        scalar: Scalar,
        transposed: bool,
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        match self.target().simt() {
            Some(Simt::Nvptx) => self.load_matrices_by_warp(array, at, scalar, transposed),
            Some(Simt::Host) => self.load_matrices_by_shuffles(array, at, scalar, transposed),
            None => Err(self.no_tensor_cores()),
        }
    }

    fn load_matrices_by_warp<'e>(
        &'e self,
        array: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
        scalar: Scalar,
        transposed: bool,
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        let name = match transposed {
            false => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
            true => "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16",
        };
        let missing = || Error::internal(format!("LLVM cannot emit {name}"));
        let address = self.element_address(array, at, scalar);
        let Some(BasicValueEnum::StructValue(words)) = self.intrinsic(name, &[address.get_type()], &[address]) else {
            return Err(missing());
        };
        let mut fragments = [at; MATRICES];
        for (number, fragment) in (0..).zip(&mut fragments) {
            let field = self.record(self.builder().build_extract_value(words, number, ""));
            *fragment = self.lanes(field.ok_or_else(missing)?);
        }
        Ok(fragments)
    }

    fn load_matrices_by_shuffles<'e>(
        &'e self,
        array: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
        scalar: Scalar,
        transposed: bool,
    ) -> Result<[Lanes<'e, 'ctx>; MATRICES]> {
        let lane = self.register(Register::Thread)? & i64::from(WARP - 1);
        let (group, member) = (lane.lshr(2), lane & 3);
        let mut fragments = [at; MATRICES];
        for (matrix, fragment) in (0..).zip(&mut fragments) {
            let first = i64::from(MATRIX_ROWS) * matrix;
            *fragment = match transposed {
                false => {
                    let in_a_word = i64::from(32 / scalar.bits());
                    let [row] = self.host_shuffles(at, [group + first])?;
                    let word = (row + member.zext(64) * in_a_word).lshr(i64::from(in_a_word.ilog2()));
                    self.load_aligned_lanes(array, word, Scalar::Int(32), 1)
                }
                true => {
                    let [low, high] = self
                        .host_shuffles(at, [member * 2 + first, member * 2 + 1 + first])?
                        .map(|row| self.load_aligned_lanes(array, row + group.zext(64), Scalar::Int(16), 1).zext(32));
                    (high << 16) | low
                }
            };
        }
        Ok(fragments)
    }
}
