//! Matrix multiply-accumulate by a warp group (four consecutive warps, aligned to four): `wgmma.mma_async` of the PTX
//! ISA, with an emulation on the host.
//!
//! A matrix of 64 rows is multiplied by one of 8 to 256 columns. The right operand is in shared memory, the left one in
//! shared memory or in registers. Warp `w` of the group has the rows `16 w` to `16 w + 15` of the accumulators, divided
//! into matrices of [`COLUMNS`](super::COLUMNS) columns. The layout of accumulators and of left fragments within each
//! of these matrices is that of [`multiply_matrices`](Emitter::multiply_matrices): four accumulators of each matrix in
//! a thread.
//!
//! A tile of an operand in shared memory is a sequence of contiguous blocks. The rows of a block have 32, 64 or 128
//! bytes and are in the order of a [`Swizzle`]: the layout that [TMA copies](Emitter::copy_box) write.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::{Error, Result};

use super::{COLUMNS, OperandType};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::simt::{Register, Swizzle, WARP};
use crate::target::{Simt, Target};

/// M: rows of the accumulators of a warp group.
pub const GROUP_ROWS: u64 = 64;
/// Number of threads in a warp group.
pub const GROUP: u32 = 4 * WARP;

/// Layout of an operand's tiles in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedForm {
    /// Order of the 16-byte chunks in rows.
    pub swizzle: Swizzle,
    /// Number of rows per block, a multiple of eight.
    pub rows: u64,
    /// Whether the tile is K-major: rows run along K, and each is a row of M (or N). Otherwise the tile is MN-major:
    /// each row is a step of K.
    pub along_sum: bool,
}

/// Operand in shared memory, of elements of 16 bits.
#[derive(Clone, Copy)]
pub struct SharedFactor<'e, 'ctx> {
    /// Layout of the tile.
    pub form: SharedForm,
    /// Array in shared memory, aligned to 1024 bytes.
    pub array: PointerValue<'ctx>,
    /// Byte offset of the tile in the array, a 64-bit integer: a multiple of eight rows.
    pub at: Lanes<'e, 'ctx>,
}

/// Left operand.
pub enum LeftFactor<'e, 'ctx> {
    /// Tile in shared memory.
    Shared(SharedFactor<'e, 'ctx>),
    /// Fragments of one step of K, in registers.
    Registers([Lanes<'e, 'ctx>; 4]),
}

/// Size of an element in bytes.
const BYTES: u64 = 2;

/// Registers of a consumer thread and of a producer thread after `setmaxnreg`, with two consumer groups. A block of
/// three groups starts with 168 registers per thread.
const REGISTERS: [u32; 2] = [240, 24];

/// Returns the number of threads of a block with `groups` consumer warp groups and a TMA producer. With one consumer
/// group the producer is a warp; with several it is a warp group, whose registers `setmaxnreg` reallocates to the
/// consumers.
pub fn group_block(groups: u64) -> u64 {
    groups * u64::from(GROUP) + u64::from(if groups > 1 { GROUP } else { WARP })
}

impl SharedForm {
    /// Returns the size in bytes of a block.
    pub fn block_bytes(self) -> u64 {
        self.rows * self.swizzle.bytes()
    }

    /// Returns the number of elements per row.
    pub fn row(self) -> u64 {
        self.swizzle.bytes() / BYTES
    }

    /// Returns the byte offset in the tile of row (or column) `number` of the operand: a multiple of eight and, in
    /// MN-major tiles, of the length of a row.
    pub fn of_free(self, number: u64) -> u64 {
        match self.along_sum {
            true => number * self.swizzle.bytes(),
            false => number / self.row() * self.block_bytes(),
        }
    }

    /// Returns the byte offset in the tile of step `step` of K, where an instruction processes `depth` elements of K.
    fn of_step(self, step: u64, depth: u64) -> u64 {
        let element = step * depth;
        match self.along_sum {
            true => element / self.row() * self.block_bytes() + element % self.row() * BYTES,
            false => element * self.swizzle.bytes(),
        }
    }

    /// Returns the bits of the matrix descriptor that do not depend on the address.
    fn descriptor(self) -> u64 {
        let kind: u64 = match self.swizzle {
            Swizzle::Bytes128 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes32 => 3,
        };
        let leading = if self.along_sum { 16 } else { self.block_bytes() };
        let stride = 8 * self.swizzle.bytes();
        kind << 62 | (stride >> 4) << 32 | (leading >> 4) << 16
    }
}

impl Target {
    /// Returns whether warp groups can multiply matrices of this operand type (`wgmma`).
    pub fn has_warp_groups(&self, factors: OperandType) -> bool {
        let is_there = match self.simt() {
            // `wgmma` exists only on sm_90a, not on later architectures.
            Some(Simt::Nvptx) => self.cpu() == "sm_90a",
            Some(Simt::Host) => true,
            None => false,
        };
        is_there && matches!(factors, OperandType::F16 | OperandType::Bf16)
    }
}

impl<'e, 'ctx> SharedFactor<'e, 'ctx> {
    /// Returns the matrix descriptor of a step of K, a 64-bit integer.
    fn descriptor(&self, emitter: &'e Emitter<'ctx>, (step, depth): (u64, u64)) -> Result<Lanes<'e, 'ctx>> {
        let long = emitter.int_type(64);
        let first = emitter.record(emitter.builder().build_ptr_to_int(self.array, long, ""));
        let first = emitter.lanes(
            first.ok_or_else(|| Error::internal("LLVM cannot convert an address of shared memory to an integer"))?,
        );
        let constant = self.form.descriptor() + (self.form.of_step(step, depth) >> 4);
        // Addresses of shared memory have 18 bits.
        Ok((first + self.at).lshr(4) + constant as i64)
    }

    /// Loads an element as f32 on the host: `free` is its row (or column), `sum` its index along K.
    fn element(
        &self,
        emitter: &'e Emitter<'ctx>,
        factors: OperandType,
        (free, sum): (Lanes<'e, 'ctx>, Lanes<'e, 'ctx>),
    ) -> Lanes<'e, 'ctx> {
        let (row, within) = if self.form.along_sum { (free, sum) } else { (sum, free) };
        let in_row = self.form.row() as i64;
        let block = within.udiv(in_row) * self.form.block_bytes() as i64;
        let at = self.at + block + row * self.form.swizzle.bytes() as i64 + within.urem(in_row) * BYTES as i64;
        let bits = emitter.load_lanes(
            self.array,
            self.form.swizzle.place(at).udiv(BYTES as i64),
            Scalar::Int(8 * BYTES as u32),
            1,
            None,
        );
        super::factor_of_bits(factors, bits)
    }
}

impl<'ctx> Emitter<'ctx> {
    /// `setmaxnreg`: reallocates registers from the producer warp group to the consumers, if there are two consumer
    /// groups. All threads of a group must execute it.
    pub fn exchange_registers(&self, groups: u64, multiplies: bool) -> Result<()> {
        if self.simt()? == Simt::Nvptx && groups == 2 {
            let [most, least] = REGISTERS;
            let text = match multiplies {
                true => format!("setmaxnreg.inc.sync.aligned.u32 {most};"),
                false => format!("setmaxnreg.dec.sync.aligned.u32 {least};"),
            };
            self.effect(&text, "", &[]);
        }
        Ok(())
    }

    /// `wgmma.fence`: orders register accesses before `wgmma`. It is needed before a warp's first `wgmma` and after
    /// other instructions have written accumulators or left fragments.
    pub fn begin_group_products(&self) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            self.effect("wgmma.fence.sync.aligned;", "", &[]);
        }
        Ok(())
    }

    /// `wgmma.mma_async`: starts to add the product of one step of K to the accumulators, whose number determines N.
    /// The results are valid only after [`wait_for_group_products`](Self::wait_for_group_products). All threads of the
    /// group must execute it.
    pub fn multiply_by_group<'e>(
        &'e self,
        factors: OperandType,
        (left, right): (&LeftFactor<'e, 'ctx>, &SharedFactor<'e, 'ctx>),
        step: u64,
        sums: &mut [Lanes<'e, 'ctx>],
    ) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => self.group_instruction(factors, (left, right), step, sums),
            Simt::Host => self.group_product_on_host(factors, (left, right), step, sums),
        }
    }

    /// `wgmma.commit_group`: ends a group of `wgmma` operations that can be waited for.
    pub fn end_group_products(&self) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            self.effect("wgmma.commit_group.sync.aligned;", "", &[]);
        }
        Ok(())
    }

    /// `wgmma.wait_group`: waits until at most the last `pending` groups of `wgmma` operations are in flight. `sums`
    /// are the accumulators of all groups.
    pub fn wait_for_group_products<'e>(&'e self, pending: u64, sums: &mut [Lanes<'e, 'ctx>]) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            let text = format!("wgmma.wait_group.sync.aligned {pending};");
            let (outputs, inputs) = tied(sums.len());
            let arguments: Vec<_> = sums.iter().map(|sum| sum.raw()).collect();
            self.group_statement((text, format!("{outputs},{inputs},~{{memory}}")), &arguments, sums)?;
        }
        Ok(())
    }

    fn group_instruction<'e>(
        &'e self,
        factors: OperandType,
        (left, right): (&LeftFactor<'e, 'ctx>, &SharedFactor<'e, 'ctx>),
        step: u64,
        sums: &mut [Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let depth = factors.depth();
        let mut arguments: Vec<BasicValueEnum<'ctx>> = sums.iter().map(|sum| sum.raw()).collect();
        let count = sums.len();
        let mut next = 2 * count;
        let mut operand = |word: BasicValueEnum<'ctx>| {
            arguments.push(word);
            next += 1;
            format!("${}", next - 1)
        };
        let transposed = |form: SharedForm| u32::from(!form.along_sum);
        let (left, kinds, flags) = match left {
            LeftFactor::Shared(left) => {
                let flags = format!("{}, {}", transposed(left.form), transposed(right.form));
                (operand(left.descriptor(self, (step, depth))?.raw()), "l,l", flags)
            }
            LeftFactor::Registers(words) => {
                let words = words.map(|word| operand(word.raw()));
                (format!("{{{}}}", words.join(", ")), "r,r,r,r,l", transposed(right.form).to_string())
            }
        };
        let right = operand(right.descriptor(self, (step, depth))?.raw());
        let ty = if factors == OperandType::F16 { "f16" } else { "bf16" };
        let all: Vec<String> = (0..count).map(|number| format!("${number}")).collect();
        let columns = 2 * count;
        let text = format!(
            "{{ .reg .pred p; setp.eq.u32 p, 0, 0; \
             wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{ty}.{ty} {{{}}}, {left}, {right}, p, 1, 1, {flags}; }}",
            all.join(", ")
        );
        let (outputs, inputs) = tied(count);
        self.group_statement((text, format!("{outputs},{inputs},{kinds},~{{memory}}")), &arguments, sums)
    }

    /// Emits an instruction whose results are the new accumulators.
    fn group_statement<'e>(
        &'e self,
        statement: (String, String),
        arguments: &[BasicValueEnum<'ctx>],
        sums: &mut [Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let missing = || Error::internal("LLVM cannot emit a wgmma instruction");
        let fields: Vec<BasicTypeEnum<'ctx>> = sums.iter().map(|sum| sum.raw().get_type()).collect();
        let all = self.context.struct_type(&fields, false).into();
        let Some(BasicValueEnum::StructValue(results)) = self.assembly(statement, all, arguments) else {
            return Err(missing());
        };
        for (number, sum) in (0..).zip(sums) {
            let field = self.record(self.builder.build_extract_value(results, number, ""));
            *sum = self.lanes(field.ok_or_else(missing)?);
        }
        Ok(())
    }

    /// Computes the product one step of K at a time. The accumulators are in the thread's stack memory, read and
    /// written in every step.
    fn group_product_on_host<'e>(
        &'e self,
        factors: OperandType,
        (left, right): (&LeftFactor<'e, 'ctx>, &SharedFactor<'e, 'ctx>),
        step: u64,
        sums: &mut [Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let depth = factors.depth();
        let long = |value: u64| self.lanes(self.int_type(64).const_int(value, false));
        let thread = self.register(Register::Thread)?.zext(64);
        let lane = thread & i64::from(WARP - 1);
        let (group, member) = (lane.lshr(2), lane & 3);
        let row = (thread & i64::from(GROUP - 1)).udiv(i64::from(WARP)) * super::ROWS as i64 + group;
        let lefts = self.host_stack_array(Scalar::F32, 2 * depth)?;
        match left {
            LeftFactor::Shared(left) => self.each([long(0), long(depth)], 1, |k| {
                for half in [0, 1] {
                    let place = (row + 8 * half, k + (step * depth) as i64);
                    let element = left.element(self, factors, place);
                    self.store_lanes(element, lefts, k * 2 + half, None);
                }
            }),
            LeftFactor::Registers(words) => self.gather_left(factors, words, lefts)?,
        }
        let memory = self.host_stack_array(Scalar::F32, sums.len() as u64)?;
        for (number, sum) in (0..).zip(sums.iter()) {
            self.store_lanes(*sum, memory, long(number), None);
        }
        self.each([long(0), long(sums.len() as u64 / 4)], 1, |matrix| {
            let at = [0, 1, 2, 3].map(|number| matrix * 4 + number);
            let before = at.map(|at| self.load_lanes(memory, at, Scalar::F32, 1, None));
            let [_, a, b, c, d] = self.repeat_while(
                [long(0), before[0], before[1], before[2], before[3]],
                |[k, ..]| k.ult(depth as i64),
                |[k, a, b, c, d]| {
                    let [upper, lower] = [0, 1].map(|half| self.load_lanes(lefts, k * 2 + half, Scalar::F32, 1, None));
                    let column = matrix * COLUMNS as i64 + member * 2;
                    let sum = k + (step * depth) as i64;
                    let [even, odd] = [0, 1].map(|odd| right.element(self, factors, (column + odd, sum)));
                    [k + 1, upper.fma(even, a), upper.fma(odd, b), lower.fma(even, c), lower.fma(odd, d)]
                },
            );
            for (at, sum) in at.into_iter().zip([a, b, c, d]) {
                self.store_lanes(sum, memory, at, None);
            }
        });
        for (number, sum) in (0..).zip(sums.iter_mut()) {
            *sum = self.load_lanes(memory, long(number), Scalar::F32, 1, None);
        }
        Ok(())
    }

    /// Collects both rows of a thread's left operand, whose fragments four threads hold, one element of K at a time.
    fn gather_left<'e>(
        &'e self,
        factors: OperandType,
        words: &[Lanes<'e, 'ctx>; 4],
        lefts: PointerValue<'ctx>,
    ) -> Result<()> {
        let lane = self.register(Register::Thread)? & i64::from(WARP - 1);
        let rows = [0, 1, 2, 3].map(|other| (lane & !3) + other);
        for (fragment, word) in (0..).zip(words) {
            let words = self.host_shuffles(word.zext(64), rows)?;
            for (other, word) in (0..).zip(words) {
                for odd in [0, 1] {
                    let element = super::factor_of_bits(factors, word.lshr(16 * odd).trunc(16));
                    let (half, k) = (fragment % 2, fragment / 2 * 8 + 2 * other + odd);
                    let at = self.lanes(self.int_type(64).const_int((2 * k + half) as u64, false));
                    self.store_lanes(element, lefts, at, None);
                }
            }
        }
        Ok(())
    }
}

/// Returns the constraints of `count` results, each tied to the register of an argument.
fn tied(count: usize) -> (String, String) {
    let inputs: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    (vec!["=f"; count].join(","), inputs.join(","))
}
