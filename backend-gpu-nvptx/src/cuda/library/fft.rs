//! Fourier transforms by cuFFT.
#![expect(unsafe_code, reason = "cuFFT is a C library")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::cufft::sys::{cufftHandle, cufftType as Type};
use xla_hlo::{Error, Result};

use super::presence::FFT;
use crate::cuda::api::cufft::{self as api, cufftResult as Status};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::Queue;
use crate::program::library_call::fourier::{Fourier, FourierKind};

/// Workspace sizes are multiples of this number of bytes, so that memory after a workspace is aligned.
const ALIGNMENT: usize = 256;

/// `CUFFT_FORWARD`: the sign of the exponent.
const FORWARD: i32 = -1;
/// `CUFFT_INVERSE`: the sign of the exponent.
const INVERSE: i32 = 1;

/// cuFFT with its plans on one device.
pub(crate) struct Fft {
    context: Arc<Context>,
    plans: Mutex<HashMap<Fourier, FftPlan>>,
}

/// Plan of one distinct transform; used by one thread at a time.
#[derive(Clone, Copy)]
struct FftPlan {
    handle: cufftHandle,
    workspace: usize,
}

impl Fft {
    /// Loads the library.
    pub fn load(context: &Arc<Context>) -> Result<Fft> {
        find()?;
        Ok(Fft { context: context.clone(), plans: Mutex::default() })
    }

    /// `cufftGetVersion`: returns the library's name and version.
    pub fn version(&self) -> Result<String> {
        let mut version = 0;
        // SAFETY: the pointer is to a live integer.
        check("cufftGetVersion", unsafe { api::cufftGetVersion(&mut version) })?;
        Ok(format!("cuFFT {version}"))
    }

    /// Returns the size of a transform's workspace in bytes.
    pub fn workspace(&self, fourier: &Fourier) -> Result<usize> {
        if fourier.batch == 0 {
            return Ok(0);
        }
        let plan = self.context.with(|| plan(&mut self.plans(), fourier))??;
        let copied = if overwrites_input(fourier) { fourier.input_bytes() } else { Some(0) };
        copied.and_then(|bytes| bytes.checked_add(plan.workspace)).ok_or_else(too_large)
    }

    /// Sends a transform to a queue. `addresses` are those of input and output; `workspace` is the address of the bytes
    /// that [`Fft::workspace`] requires. A transform of no arrays does nothing.
    pub fn run(&self, fourier: &Fourier, addresses: &[u64], workspace: u64, queue: &Queue) -> Result<()> {
        let &[mut input, output] = addresses else {
            return Err(Error::internal(format!(
                "a Fourier transform has 2 arrays but was called with {}",
                addresses.len()
            )));
        };
        if fourier.batch == 0 {
            return Ok(());
        }
        // Held until the work is sent: a plan has one stream and one workspace at a time.
        let mut plans = self.plans();
        let plan = self.context.with(|| plan(&mut plans, fourier))??;
        if overwrites_input(fourier) {
            let copy = workspace + plan.workspace as u64;
            queue.copy(input, copy, fourier.input_bytes().ok_or_else(too_large)?)?;
            input = copy;
        }
        queue.send_to_library(|stream| {
            let work = std::ptr::without_provenance_mut::<c_void>(workspace as usize);
            // SAFETY: the plan is alive, and so is the stream, which is of the same device.
            check("cufftSetStream", unsafe { api::cufftSetStream(plan.handle, stream.cast()) })?;
            // SAFETY: the plan is alive; the memory has the size that it requires.
            check("cufftSetWorkArea", unsafe { api::cufftSetWorkArea(plan.handle, work) })?;
            execute(plan.handle, fourier, input, output)
        })
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Fourier, FftPlan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the library, which needs no device for this.
pub(crate) fn find() -> Result<()> {
    FFT.get().map(drop)
}

/// Whether a transform may overwrite its input: cuFFT stores intermediate results of a complex-to-real transform there
/// if it has more than one dimension.
fn overwrites_input(fourier: &Fourier) -> bool {
    fourier.kind == FourierKind::RealInverse
}

fn plan(plans: &mut HashMap<Fourier, FftPlan>, fourier: &Fourier) -> Result<FftPlan> {
    if let Some(plan) = plans.get(fourier) {
        return Ok(*plan);
    }
    fourier.check()?;
    let mut plan = FftPlan { handle: 0, workspace: 0 };
    // SAFETY: the pointer is to a live integer.
    check("cufftCreate", unsafe { api::cufftCreate(&mut plan.handle) })?;
    if let Err(error) = make(&mut plan, fourier) {
        // SAFETY: the plan is alive, and destroyed once.
        let _ = unsafe { api::cufftDestroy(plan.handle) };
        return Err(error);
    }
    plans.insert(fourier.clone(), plan);
    Ok(plan)
}

fn make(plan: &mut FftPlan, fourier: &Fourier) -> Result<()> {
    // SAFETY: the plan is alive, and was not made yet.
    check("cufftSetAutoAllocation", unsafe { api::cufftSetAutoAllocation(plan.handle, 0) })?;
    let lengths = fourier.lengths.iter().map(|length| i64::try_from(*length).map_err(|_| too_large()));
    let mut lengths = lengths.collect::<Result<Vec<i64>>>()?;
    let batch = i64::try_from(fourier.batch).map_err(|_| too_large())?;
    let (rank, sizes, dense) = (lengths.len() as i32, lengths.as_mut_ptr(), std::ptr::null_mut());
    let mut bytes = 0;
    // SAFETY: the plan is alive; the list has `rank` numbers; the null pointers state that arrays are dense and follow
    // each other.
    let status = unsafe {
        api::cufftMakePlanMany64(plan.handle, rank, sizes, dense, 1, 0, dense, 1, 0, kind(fourier), batch, &mut bytes)
    };
    check("cufftMakePlanMany64", status)?;
    plan.workspace = bytes.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_large)?;
    Ok(())
}

fn kind(fourier: &Fourier) -> Type {
    match (fourier.kind, fourier.is_double) {
        (FourierKind::Forward | FourierKind::Inverse, false) => Type::CUFFT_C2C,
        (FourierKind::Forward | FourierKind::Inverse, true) => Type::CUFFT_Z2Z,
        (FourierKind::RealForward, false) => Type::CUFFT_R2C,
        (FourierKind::RealForward, true) => Type::CUFFT_D2Z,
        (FourierKind::RealInverse, false) => Type::CUFFT_C2R,
        (FourierKind::RealInverse, true) => Type::CUFFT_Z2D,
    }
}

fn execute(plan: cufftHandle, fourier: &Fourier, input: u64, output: u64) -> Result<()> {
    let input = std::ptr::without_provenance_mut::<c_void>(input as usize);
    let output = std::ptr::without_provenance_mut::<c_void>(output as usize);
    let direction = if fourier.kind == FourierKind::Inverse { INVERSE } else { FORWARD };
    // SAFETY: the plan is alive and of this kind. Addresses are of device memory of the sizes that the plan describes:
    // the caller guarantees this.
    let status = unsafe {
        match kind(fourier) {
            Type::CUFFT_C2C => api::cufftExecC2C(plan, input.cast(), output.cast(), direction),
            Type::CUFFT_Z2Z => api::cufftExecZ2Z(plan, input.cast(), output.cast(), direction),
            Type::CUFFT_R2C => api::cufftExecR2C(plan, input.cast(), output.cast()),
            Type::CUFFT_D2Z => api::cufftExecD2Z(plan, input.cast(), output.cast()),
            Type::CUFFT_C2R => api::cufftExecC2R(plan, input.cast(), output.cast()),
            Type::CUFFT_Z2D => api::cufftExecZ2D(plan, input.cast(), output.cast()),
        }
    };
    check("cufftExec", status)
}

impl Drop for Fft {
    fn drop(&mut self) {
        let plans = std::mem::take(&mut *self.plans());
        for plan in plans.values() {
            // SAFETY: the plan is alive, and destroyed once. An error means that the device is lost.
            let _ = self.context.with(|| unsafe { api::cufftDestroy(plan.handle) });
        }
    }
}

impl std::fmt::Debug for Fft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fft({:?}, {} plans)", self.context, self.plans().len())
    }
}

fn too_large() -> Error {
    Error::invalid_argument("a Fourier transform is too large for cuFFT")
}

fn check(call: &str, status: Status) -> Result<()> {
    match status {
        Status::CUFFT_SUCCESS => Ok(()),
        Status::CUFFT_ALLOC_FAILED => Err(Error::resource_exhausted(format!("{call} failed to allocate memory"))),
        Status::CUFFT_NOT_SUPPORTED => Err(Error::unimplemented(format!("{call} does not support this transform"))),
        other => Err(Error::internal(format!("{call} failed: {other:?}"))),
    }
}
