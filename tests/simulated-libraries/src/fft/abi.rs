//! C interface of cuFFT: the functions of `cufft.h` that this repository calls.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Mutex, PoisonError};

use simulated_gpu::libraries::capability;

use super::plan::FftPlan;
use super::work::Transforming;
use super::{Fft, Status};
use crate::arguments::put;
use crate::handles::Handles;
use crate::refusal::wrong;
use crate::workspace::Workspace;

/// Version 11.3.3.
const VERSION: c_int = 11_303;

/// Plans. Their handles are C integers that count from one.
static PLANS: Mutex<Handles<FftPlan>> = Mutex::new(Handles::new("a plan", 0));

/// Makes a call; misuse is reported.
fn call(name: &str, work: impl FnOnce(&mut Handles<FftPlan>) -> Fft) -> u32 {
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    match work(&mut plans) {
        Ok(()) => Status::SUCCESS.0,
        Err(refusal) => refusal.told("cuFFT", name).0,
    }
}

/// Returns the plan of a handle, or `CUFFT_INVALID_PLAN`.
fn known<T>(found: Result<T, String>) -> Fft<T> {
    found.or_else(|sentence| wrong(Status::INVALID_PLAN, sentence))
}

/// Converts the error of an address to `CUFFT_INVALID_VALUE`.
fn place(put: Result<(), String>) -> Fft {
    put.or_else(|sentence| wrong(Status::INVALID_VALUE, sentence))
}

fn handle(plan: c_int) -> u64 {
    u64::from(plan.cast_unsigned())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    call("cufftGetVersion", |_| place(unsafe { put(version, VERSION) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftCreate(made: *mut c_int) -> u32 {
    call("cufftCreate", |plans| {
        let plan = plans.add(FftPlan::default()) as c_int;
        // SAFETY: the API's contract implies that of `put`.
        place(unsafe { put(made, plan) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cufftDestroy(plan: c_int) -> u32 {
    call("cufftDestroy", |plans| known(plans.remove(handle(plan))).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetAutoAllocation(plan: c_int, is_on: c_int) -> u32 {
    call("cufftSetAutoAllocation", |plans| known(plans.get_mut(handle(plan)))?.set_auto_allocation(is_on != 0))
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetStream(plan: c_int, stream: *mut c_void) -> u32 {
    call("cufftSetStream", |plans| {
        known(plans.get_mut(handle(plan)))?.stream = stream.addr() as u64;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cufftSetWorkArea(plan: c_int, area: *mut c_void) -> u32 {
    call("cufftSetWorkArea", |plans| known(plans.get_mut(handle(plan)))?.set_work_area(area.addr() as u64))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cufftMakePlanMany64(
    plan: c_int,
    rank: c_int,
    sizes: *const c_longlong,
    input_sizes: *const c_longlong,
    _input_stride: c_longlong,
    _input_distance: c_longlong,
    output_sizes: *const c_longlong,
    _output_stride: c_longlong,
    _output_distance: c_longlong,
    number: u32,
    batch: c_longlong,
    bytes: *mut usize,
) -> u32 {
    call("cufftMakePlanMany64", |plans| {
        let plan = known(plans.get_mut(handle(plan)))?;
        let device = capability();
        device.or_else(|status| wrong(Status::SETUP_FAILED, format!("no device can be used: {status:?}")))?;
        if !input_sizes.is_null() || !output_sizes.is_null() {
            return wrong(Status::NOT_SUPPORTED, "arrays that are not dense are not simulated");
        }
        let rank = usize::try_from(rank).unwrap_or(0);
        if sizes.is_null() {
            return wrong(Status::INVALID_VALUE, "the list of sizes is null");
        }
        // SAFETY: `sizes` is not null, so by the API's contract there are `rank` numbers.
        let needed = plan.make(unsafe { std::slice::from_raw_parts(sizes, rank) }, number, batch)?;
        // SAFETY: the API's contract implies that of `put`.
        place(unsafe { put(bytes, needed) })
    })
}

/// Submits a plan's transform to its stream.
fn execute(name: &'static str, plan: c_int, number: u32, arrays: [*mut c_void; 2], sign: c_int) -> u32 {
    call(name, |plans| {
        let plan = known(plans.get(handle(plan)))?;
        if sign.abs() != 1 {
            return wrong(Status::INVALID_VALUE, format!("there is no direction {sign}"));
        }
        let [input, output] = arrays.map(|array| array.addr() as u64);
        let (transform, (address, bytes)) = plan.checked(number, input, output)?;
        let work = Transforming { transform, sign: f64::from(sign), input, output };
        let sent = Workspace::new(address, bytes).enqueue(plan.stream, name, move |memory| work.run(memory));
        sent.or_else(|status| wrong(Status::EXEC_FAILED, format!("the driver does not take it: {status:?}")))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecC2C(plan: c_int, input: *mut c_void, output: *mut c_void, sign: c_int) -> u32 {
    execute("cufftExecC2C", plan, 0x29, [input, output], sign)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecR2C(plan: c_int, input: *mut c_void, output: *mut c_void) -> u32 {
    execute("cufftExecR2C", plan, 0x2a, [input, output], -1)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecC2R(plan: c_int, input: *mut c_void, output: *mut c_void) -> u32 {
    execute("cufftExecC2R", plan, 0x2c, [input, output], 1)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecZ2Z(plan: c_int, input: *mut c_void, output: *mut c_void, sign: c_int) -> u32 {
    execute("cufftExecZ2Z", plan, 0x69, [input, output], sign)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecD2Z(plan: c_int, input: *mut c_void, output: *mut c_void) -> u32 {
    execute("cufftExecD2Z", plan, 0x6a, [input, output], -1)
}

#[unsafe(no_mangle)]
extern "C" fn cufftExecZ2D(plan: c_int, input: *mut c_void, output: *mut c_void) -> u32 {
    execute("cufftExecZ2D", plan, 0x6c, [input, output], 1)
}
