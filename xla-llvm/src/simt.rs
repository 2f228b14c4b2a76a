//! Kernels that many threads execute: blocks of threads with shared memory, barriers and shuffles, on a GPU or on the
//! host.
//!
//! A kernel takes 64-bit words: addresses, then numbers. On a GPU they are its parameters, followed by [`TensorMap`]s.
//! On the host ([`Simt::Host`]) the function is `void name(ptr words, ptr thread)` and is called once per thread, with
//! a [`HostThread`]. Collective operations of threads are calls of the symbols [`BARRIER`], [`EXCHANGE`], [`BALLOT`]
//! and [`WAIT_FOR_PHASE`], which a runtime must define.

mod assembly;
mod atomics;
mod cp_async;
mod mbarrier;
mod tensor_map;
mod tma;

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, PointerValue, UnnamedAddress};
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

pub use atomics::Atomic;
pub use cp_async::{COPY_BYTES, Place};
pub use mbarrier::{Mbarriers, host_mbarrier_is_complete};
pub use tensor_map::{MAP_ALIGNMENT, MOST_BOX_EXTENT, MOST_MAP_RANK, Swizzle, TensorMap};
pub use tma::{Arrival, TmaSource};

/// Symbol of `void barrier(ptr thread)`: returns when all threads of the block have called it.
pub const BARRIER: &str = "xla_simt_barrier";
/// Symbol of `ptr exchange(ptr thread, i64 value)`: returns the values of all [`WARP`] lanes of the same warp, as an
/// array that is valid until the thread's next collective operation. All threads of the warp call it.
pub const EXCHANGE: &str = "xla_simt_exchange";
/// Symbol of `i64 ballot(ptr thread, i64 condition)`: returns one bit per lane of the same warp, set if the condition
/// is not 0 there. All threads of the warp call it.
pub const BALLOT: &str = "xla_simt_ballot";
/// Symbol of `void wait(ptr thread, ptr barrier, i32 parity)`: returns when [the phase of that
/// parity](host_mbarrier_is_complete) of an mbarrier, a 64-bit word, is complete.
pub const WAIT_FOR_PHASE: &str = "xla_simt_wait_for_phase";
/// Number of threads of a warp, which can shuffle.
pub const WARP: u32 = 32;

/// Description of a thread, passed to kernels on the host.
#[derive(Debug)]
#[repr(C)]
pub struct HostThread {
    /// Number of the thread in its block.
    pub thread: u32,
    /// Number of the block.
    pub block: u32,
    /// Number of threads of a block.
    pub threads: u32,
    /// Number of blocks of the launch.
    pub blocks: u32,
    /// Shared memory of the block.
    pub shared: *mut u8,
}

/// LLVM's number of the calling convention of PTX kernels.
const PTX_KERNEL: u32 = 71;
/// Address space of global memory in PTX.
const GLOBAL: u16 = 1;
/// Address space of shared memory in PTX.
const SHARED: u16 = 3;
/// Alignment of arrays in shared memory, for the widest access.
const SHARED_ALIGNMENT: u32 = 16;

/// Name of the dynamic shared memory of all kernels of a module.
const DYNAMIC_SHARED: &str = "dynamic_shared";
/// Alignment of dynamic shared memory in bytes.
const DYNAMIC_SHARED_ALIGNMENT: u32 = 1024;

/// Kernel that is being emitted.
#[derive(Clone, Debug)]
pub struct SimtKernel<'ctx> {
    /// Function of the kernel.
    pub function: FunctionValue<'ctx>,
    /// Addresses that the kernel takes.
    pub pointers: Vec<PointerValue<'ctx>>,
    /// Numbers that the kernel takes, 64-bit integers.
    pub numbers: Vec<BasicValueEnum<'ctx>>,
}

/// Special register of the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Number of the thread in its block.
    Thread,
    /// Number of the block.
    Block,
    /// Number of threads of a block.
    Threads,
}

impl Register {
    fn intrinsic(self) -> &'static str {
        match self {
            Register::Thread => "llvm.nvvm.read.ptx.sreg.tid.x",
            Register::Block => "llvm.nvvm.read.ptx.sreg.ctaid.x",
            Register::Threads => "llvm.nvvm.read.ptx.sreg.ntid.x",
        }
    }

    fn offset(self) -> u64 {
        let offset = match self {
            Register::Thread => std::mem::offset_of!(HostThread, thread),
            Register::Block => std::mem::offset_of!(HostThread, block),
            Register::Threads => std::mem::offset_of!(HostThread, threads),
        };
        offset as u64
    }
}

/// Source lane of a shuffle within the warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Lane whose number differs in these bits.
    Xor(u32),
    /// Lane at this distance below; lanes without one keep their own value.
    Up(u32),
    /// Lane of this number, the same for all lanes.
    From(u32),
}

impl<'ctx> Emitter<'ctx> {
    /// Adds a kernel, and positions the builder in its entry block. Fails for a target without [`Simt`].
    pub fn simt_kernel(&self, name: &str, pointers: usize, numbers: usize) -> Result<SimtKernel<'ctx>> {
        self.simt_kernel_with_maps(name, [pointers, numbers, 0])
    }

    /// Adds a kernel with the given numbers of addresses, numbers and [tensor maps](Emitter::tensor_map).
    pub(crate) fn simt_kernel_with_maps(
        &self,
        name: &str,
        [pointers, numbers, maps]: [usize; 3],
    ) -> Result<SimtKernel<'ctx>> {
        self.reset_shared();
        self.reset_maps(maps);
        match self.simt()? {
            Simt::Nvptx => self.ptx_kernel(name, [pointers, numbers, maps]),
            Simt::Host => self.host_kernel(name, pointers, numbers),
        }
    }

    pub(crate) fn simt(&self) -> Result<Simt> {
        let message = || Error::internal(format!("target {} has no SIMT threads", self.target().triple()));
        self.target().simt().ok_or_else(message)
    }

    /// `.reqntid`: fixes the number of threads per block of a kernel, so that the assembler knows the register budget
    /// per thread. On a GPU, launches with another block size fail.
    pub fn set_block_size(&self, name: &str, threads: u32) {
        if let (Some(Simt::Nvptx), Some(function)) = (self.target().simt(), self.module.get_function(name)) {
            let attribute = self.context.create_string_attribute("nvvm.reqntid", &threads.to_string());
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }

    /// Marks addresses of a kernel, by number, as `noalias` and `readonly`.
    ///
    /// Neither the kernel (through any address) nor another one may write to their memory while the kernel runs. Loads
    /// may then be reordered and use caches that are not coherent.
    pub fn set_unwritten(&self, name: &str, pointers: impl IntoIterator<Item = u32>) {
        let (Some(Simt::Nvptx), Some(function)) = (self.target().simt(), self.module.get_function(name)) else {
            return;
        };
        for pointer in pointers {
            for word in ["noalias", "readonly"] {
                let kind = Attribute::get_named_enum_kind_id(word);
                function.add_attribute(AttributeLoc::Param(pointer), self.context.create_enum_attribute(kind, 0));
            }
        }
    }

    /// `.minnctapersm`: allows a thread of the current kernel all registers of a single block per multiprocessor, up to
    /// 255. By default, ptxas limits some large kernels to 32 registers and spills the rest.
    pub fn allow_all_registers(&self) {
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        if let (Some(Simt::Nvptx), Some(function)) = (self.target().simt(), function) {
            let attribute = self.context.create_string_attribute("nvvm.minctasm", "1");
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }

    fn ptx_kernel(&self, name: &str, [pointers, numbers, maps]: [usize; 3]) -> Result<SimtKernel<'ctx>> {
        let pointer: BasicMetadataTypeEnum<'ctx> = self.context.ptr_type(AddressSpace::from(GLOBAL)).into();
        let (long, map) = (self.context.i64_type().into(), self.context.ptr_type(AddressSpace::default()).into());
        let parameters: Vec<_> = std::iter::repeat_n(pointer, pointers)
            .chain(std::iter::repeat_n(long, numbers))
            .chain(std::iter::repeat_n(map, maps))
            .collect();
        let function = self.module.add_function(name, self.context.void_type().fn_type(&parameters, false), None);
        function.set_call_conventions(PTX_KERNEL);
        self.decorate(function);
        self.are_maps(function, pointers + numbers..pointers + numbers + maps);
        self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
        let mut values = function.get_params();
        values.truncate(pointers + numbers);
        let numbers = values.split_off(pointers);
        let pointers = values.into_iter().map(BasicValueEnum::into_pointer_value).collect();
        Ok(SimtKernel { function, pointers, numbers })
    }

    fn host_kernel(&self, name: &str, pointers: usize, numbers: usize) -> Result<SimtKernel<'ctx>> {
        let function = self.kernel(name, 2);
        let words = function.get_nth_param(0).map(BasicValueEnum::into_pointer_value);
        let words = words.ok_or_else(|| Error::internal(format!("kernel {name} has no parameter for its words")))?;
        let number = |i: usize| self.load_lanes(words, self.long(i as u64), Scalar::Int(64), 1, None).raw();
        Ok(SimtKernel {
            function,
            pointers: (0..pointers).map(|i| self.load_pointer(words, i)).collect::<Result<_>>()?,
            numbers: (pointers..pointers + numbers).map(number).collect(),
        })
    }

    /// Returns a special register of the thread, a 32-bit integer.
    pub fn register<'e>(&'e self, register: Register) -> Result<Lanes<'e, 'ctx>> {
        match self.simt()? {
            Simt::Nvptx => {
                let missing = || Error::internal(format!("LLVM cannot emit {}", register.intrinsic()));
                let value = self.intrinsic(register.intrinsic(), &[], &[]).ok_or_else(missing)?;
                Ok(self.lanes(value))
            }
            Simt::Host => {
                let at = self.long(register.offset() / 4);
                Ok(self.load_lanes(self.host_thread()?, at, Scalar::Int(32), 1, None))
            }
        }
    }

    /// `barrier.cta.sync`: synchronizes all threads of the block, and makes their earlier writes visible to each other.
    pub fn barrier(&self) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => {
                let zero = self.context.i32_type().const_zero();
                self.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", &[], &[zero.into()]);
            }
            Simt::Host => {
                let pointer = self.context.ptr_type(AddressSpace::default()).into();
                let ty = self.context.void_type().fn_type(&[pointer], false);
                let function = self.module.get_function(BARRIER);
                let function = function.unwrap_or_else(|| self.module.add_function(BARRIER, ty, None));
                self.record(self.builder.build_call(function, &[self.host_thread()?.into()], ""));
            }
        }
        Ok(())
    }

    /// `bar.warp.sync`: synchronizes the threads of a warp, and makes their earlier writes visible to each other.
    pub fn warp_barrier(&self) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => {
                let all = self.context.i32_type().const_all_ones();
                self.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[all.into()]);
            }
            // A ballot waits for all lanes.
            Simt::Host => _ = self.host_collective(BALLOT, self.context.i64_type().into(), self.long(0))?,
        }
        Ok(())
    }

    /// `.pragma "nounroll"`: prevents ptxas from unrolling the loop that begins with the current block. By default, it
    /// unrolls loops with a small trip count, even if their body is long.
    pub fn keep_loop(&self) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            let ty = self.context.void_type().fn_type(&[], false);
            let text = ".pragma \"nounroll\";".to_owned();
            let assembly = self.context.create_inline_asm(ty, text, String::new(), true, false, None, false);
            self.record(self.builder.build_indirect_call(ty, assembly, &[], ""));
        }
        Ok(())
    }

    /// `shfl.sync`: returns the value of another lane of the warp; a lane has at most 64 bits. All threads of the warp
    /// must call it.
    pub fn shuffle<'e>(&'e self, value: Lanes<'e, 'ctx>, from: Shuffle) -> Result<Lanes<'e, 'ctx>> {
        let scalar = value.scalar();
        let bits = value.cast_bits(Scalar::Int(scalar.bits()));
        let moved = match (self.simt()?, scalar.bits()) {
            (Simt::Host, 64) => self.host_shuffle(bits, self.host_lane(from)?)?,
            (Simt::Host, width) => self.host_shuffle(bits.zext(64), self.host_lane(from)?)?.trunc(width),
            (Simt::Nvptx, 32) => self.shuffle_word(bits, from)?,
            (Simt::Nvptx, width) if width < 32 => self.shuffle_word(bits.zext(32), from)?.trunc(width),
            (Simt::Nvptx, _) => {
                let (low, high) = (bits.trunc(32), bits.lshr(32).trunc(32));
                let (low, high) = (self.shuffle_word(low, from)?, self.shuffle_word(high, from)?);
                (high.zext(64) << 32) | low.zext(64)
            }
        };
        Ok(moved.cast_bits(scalar))
    }

    fn shuffle_word<'e>(&'e self, word: Lanes<'e, 'ctx>, from: Shuffle) -> Result<Lanes<'e, 'ctx>> {
        // The last argument bounds the warp's segment; lane numbers are clamped to it.
        let (name, distance, clamp) = match from {
            Shuffle::Xor(bits) => ("llvm.nvvm.shfl.sync.bfly.i32", bits, 31),
            Shuffle::Up(distance) => ("llvm.nvvm.shfl.sync.up.i32", distance, 0),
            Shuffle::From(lane) => ("llvm.nvvm.shfl.sync.idx.i32", lane, 31),
        };
        let int = |value: u64| self.context.i32_type().const_int(value, false).into();
        let arguments = [int(u64::from(u32::MAX)), word.raw(), int(distance.into()), int(clamp)];
        let value =
            self.intrinsic(name, &[], &arguments).ok_or_else(|| Error::internal(format!("LLVM cannot emit {name}")))?;
        Ok(self.lanes(value))
    }

    /// `vote.ballot.sync`: returns one bit per lane of the warp, set if the scalar condition holds there. All threads
    /// of the warp must call it.
    pub fn ballot<'e>(&'e self, condition: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        match self.simt()? {
            Simt::Nvptx => {
                let all = self.context.i32_type().const_all_ones();
                let votes = self.intrinsic("llvm.nvvm.vote.ballot.sync", &[], &[all.into(), condition.raw()]);
                Ok(self.lanes(votes.ok_or_else(|| Error::internal("LLVM cannot emit llvm.nvvm.vote.ballot.sync"))?))
            }
            Simt::Host => {
                let long = self.context.i64_type();
                Ok(self.lanes(self.host_collective(BALLOT, long.into(), condition.zext(64))?).trunc(32))
            }
        }
    }

    /// Returns the source lane of a shuffle, on the host.
    fn host_lane<'e>(&'e self, from: Shuffle) -> Result<Lanes<'e, 'ctx>> {
        let lane = self.register(Register::Thread)? & i64::from(WARP - 1);
        Ok(match from {
            Shuffle::Xor(bits) => lane ^ i64::from(bits),
            Shuffle::Up(distance) => lane.ult(i64::from(distance)).select(lane, lane - i64::from(distance)),
            Shuffle::From(number) => lane.int(number.into()),
        })
    }

    /// Returns a 64-bit word of another lane of the warp, on the host.
    fn host_shuffle<'e>(&'e self, word: Lanes<'e, 'ctx>, source: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        let [word] = self.host_shuffles(word, [source])?;
        Ok(word)
    }

    /// Returns the 64-bit words of `N` lanes of the warp, on the host.
    pub(crate) fn host_shuffles<'e, const N: usize>(
        &'e self,
        word: Lanes<'e, 'ctx>,
        sources: [Lanes<'e, 'ctx>; N],
    ) -> Result<[Lanes<'e, 'ctx>; N]> {
        let pointer = self.context.ptr_type(AddressSpace::default());
        let words = self.host_collective(EXCHANGE, pointer.into(), word)?.into_pointer_value();
        Ok(sources.map(|source| self.load_lanes(words, source.zext(64), Scalar::Int(64), 1, None)))
    }

    /// Calls a collective operation of a warp that takes and returns one value for each thread, on the host.
    fn host_collective(
        &self,
        symbol: &str,
        result: BasicTypeEnum<'ctx>,
        word: Lanes<'_, 'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        let pointer = self.context.ptr_type(AddressSpace::default()).into();
        let ty = result.fn_type(&[pointer, self.context.i64_type().into()], false);
        let function = self.module.get_function(symbol);
        let function = function.unwrap_or_else(|| self.module.add_function(symbol, ty, None));
        let call = self.record(self.builder.build_call(function, &[self.host_thread()?.into(), word.raw().into()], ""));
        let value = call.and_then(|call| call.try_as_basic_value().basic());
        value.ok_or_else(|| Error::internal(format!("call of {symbol} returns no value")))
    }

    /// Allocates an uninitialized array of `count` elements in static shared memory of the block.
    pub fn shared_array(&self, scalar: Scalar, count: u64) -> Result<PointerValue<'ctx>> {
        let bytes = count * u64::from(scalar.bits().div_ceil(8));
        let offset = self.take_shared(bytes.next_multiple_of(SHARED_ALIGNMENT.into()));
        let size = u32::try_from(bytes)
            .map_err(|_| Error::internal(format!("shared memory array of {bytes} bytes is too large")))?;
        match self.simt()? {
            Simt::Nvptx => {
                let array = self.context.i8_type().array_type(size);
                let global = self.module.add_global(array, Some(AddressSpace::from(SHARED)), "shared");
                global.set_initializer(&array.get_undef());
                global.set_linkage(Linkage::Internal);
                global.set_unnamed_address(UnnamedAddress::Global);
                global.set_alignment(SHARED_ALIGNMENT);
                Ok(global.as_pointer_value())
            }
            Simt::Host => {
                let at = self.long(std::mem::offset_of!(HostThread, shared) as u64 / 8);
                let record = self.element_address(self.host_thread()?, at, Scalar::Int(64)).into_pointer_value();
                let shared = self.load_pointer(record, 0)?;
                Ok(self.element_address(shared, self.long(offset), Scalar::Int(8)).into_pointer_value())
            }
        }
    }

    /// Allocates an array in dynamic shared memory, which can be larger than static shared memory. On a GPU it is
    /// aligned to 1024 bytes; a kernel has only one such array.
    pub fn dynamic_shared_memory(&self, scalar: Scalar, count: u64) -> Result<PointerValue<'ctx>> {
        let bytes = count * u64::from(scalar.bits().div_ceil(8));
        match self.simt()? {
            Simt::Nvptx => {
                self.take_dynamic_shared(bytes);
                let array = self.context.i8_type().array_type(0);
                let known = self.module.get_global(DYNAMIC_SHARED);
                let global = known.unwrap_or_else(|| {
                    let global = self.module.add_global(array, Some(AddressSpace::from(SHARED)), DYNAMIC_SHARED);
                    global.set_linkage(Linkage::External);
                    global.set_alignment(DYNAMIC_SHARED_ALIGNMENT);
                    global
                });
                Ok(global.as_pointer_value())
            }
            Simt::Host => self.shared_array(scalar, count),
        }
    }

    /// Returns the [`HostThread`] of the current function.
    fn host_thread(&self) -> Result<PointerValue<'ctx>> {
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        match function.and_then(|function| function.get_nth_param(1)) {
            Some(BasicValueEnum::PointerValue(thread)) => Ok(thread),
            _ => Err(Error::internal("current function is not a kernel and has no thread parameter")),
        }
    }

    /// Allocates an array private to a thread on the host, for a few hundred bytes of its stack.
    pub(crate) fn host_stack_array(&self, scalar: Scalar, count: u64) -> Result<PointerValue<'ctx>> {
        let missing = || Error::internal("stack array is allocated outside of a function");
        let here = self.builder.get_insert_block().ok_or_else(missing)?;
        let entry = here.get_parent().and_then(|function| function.get_first_basic_block()).unwrap_or(here);
        match entry.get_first_instruction() {
            Some(first) => self.builder.position_before(&first),
            None => self.builder.position_at_end(entry),
        }
        let count = self.context.i32_type().const_int(count, false);
        let array = self.record(self.builder.build_array_alloca(self.lane_type(scalar, 1), count, ""));
        self.builder.position_at_end(here);
        array.ok_or_else(missing)
    }

    fn long<'e>(&'e self, value: u64) -> Lanes<'e, 'ctx> {
        self.lanes(self.context.i64_type().const_int(value, false).as_basic_value_enum())
    }
}
