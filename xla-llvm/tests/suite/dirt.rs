//! Tests that planted bugs in kernels become visible if uninitialised memory is [dirty](EmitOptions::dirt).
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use inkwell::values::PointerValue;
use xla_hlo::Result;
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::jit::LoadedCode;
use xla_llvm::lanes::Scalar;
use xla_llvm::target::{MachineOptions, Target};

const LANES: u32 = 8;

/// Kernel with an array, a result, and a pointer to the address of scratch memory.
type Faulty = unsafe extern "C" fn(*const u32, *mut u32, *const *mut u32);

#[repr(align(64))]
struct Scratch([u32; LANES as usize]);

/// Runs a kernel with a bug on eight lanes of `[1, 2, 3, 4, 5, 6, 7, 8]`, with dirty memory filled with `byte`.
fn written(
    byte: u8,
    fault: impl for<'c> Fn(&Emitter<'c>, PointerValue<'c>, PointerValue<'c>) -> Result<()> + Sync,
) -> [u32; 8] {
    let target = Target::host().unwrap();
    let (object, ()) = codegen::generate(&target, &MachineOptions::default(), CodeKind::Object, |context| {
        let options = EmitOptions { dirt: Some(byte), ..EmitOptions::default() };
        let emitter = Emitter::new(context, "faulty", &target, options);
        let function = emitter.kernel("faulty", 3);
        let pointer = |number| function.get_nth_param(number).unwrap().into_pointer_value();
        emitter.begin_scratch(pointer(2), 0);
        fault(&emitter, pointer(0), pointer(1))?;
        emitter.end_kernel()?;
        Ok((emitter.finish()?, ()))
    })
    .unwrap();
    let code = LoadedCode::link(&[object], &[]).unwrap();
    let address = code.address("faulty").unwrap();
    // SAFETY: the kernel was emitted with three pointers and no result.
    let kernel = unsafe { std::mem::transmute::<*const c_void, Faulty>(address) };
    let (source, mut result) = ([1, 2, 3, 4, 5, 6, 7, 8], [0; LANES as usize]);
    let mut scratch = Scratch([0; LANES as usize]);
    // SAFETY: the kernels below access at most eight elements of each array and of scratch memory.
    unsafe { kernel(source.as_ptr(), result.as_mut_ptr(), [scratch.0.as_mut_ptr()].as_ptr()) };
    result
}

#[test]
fn an_array_that_is_read_before_it_is_written() {
    let with = |byte| {
        written(byte, |emitter, source, result| {
            let zero = emitter.lanes(emitter.context().i64_type().const_zero());
            let array = emitter.scratch_array(Scalar::Int(32), u64::from(LANES))?;
            let half = emitter.load_lanes(source, zero, Scalar::Int(32), LANES / 2, None);
            emitter.store_lanes(half, array, zero, None);
            let whole = emitter.load_lanes(array, zero, Scalar::Int(32), LANES, None);
            emitter.store_lanes(whole, result, zero, None);
            Ok(())
        })
    };
    for byte in [0x5a, 0xff] {
        let dirt = u32::from_ne_bytes([byte; 4]);
        assert_eq!(with(byte), [1, 2, 3, 4, dirt, dirt, dirt, dirt]);
    }
}

#[test]
fn lanes_that_are_loaded_under_a_mask_and_stored_without() {
    for known in [true, false] {
        let with = |byte| {
            written(byte, |emitter, source, result| {
                let constant = |value| emitter.lanes(emitter.context().i64_type().const_int(value, false));
                let zero = constant(0);
                // The first element is 1, which is unknown to the emitter.
                let one = emitter.load_lanes(source, zero, Scalar::Int(32), 1, None).sext(64);
                let five = if known { constant(5) } else { one + 4 };
                let mask = emitter.lane_numbers(64, LANES).lt(five.splat(LANES));
                let loaded = emitter.load_lanes(source, zero, Scalar::Int(32), LANES, Some(mask));
                emitter.store_lanes(loaded, result, zero, None);
                Ok(())
            })
        };
        for byte in [0x5a, 0xff] {
            let dirt = u32::from_ne_bytes([byte; 4]);
            assert_eq!(with(byte), [1, 2, 3, 4, 5, dirt, dirt, dirt], "mask known: {known}");
        }
    }
}
