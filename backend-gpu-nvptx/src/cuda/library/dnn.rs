//! Convolutions by cuDNN.
//!
//! Only algorithms that sum products directly are used, and of those only ones that give the same result each time. The
//! transforms of Winograd and Fourier would spread one NaN or infinity over its neighbours.
#![expect(unsafe_code, reason = "cuDNN is a C library")]

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::cudnn::sys::{
    cudnnConvolutionBwdDataAlgo_t as InputAlgorithm, cudnnConvolutionBwdFilterAlgo_t as FilterAlgorithm,
    cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t as ForwardAlgorithm, cudnnConvolutionMode_t as Mode,
    cudnnDataType_t as DataType, cudnnFilterDescriptor_t, cudnnHandle_t, cudnnMathType_t as MathType,
    cudnnTensorDescriptor_t, cudnnTensorFormat_t as Format,
};
use xla_hlo::{ElementType, Error, Result};

use super::presence::{BLAS, DNN};
use crate::cuda::api::cudnn::{self as api, cudnnStatus_t as Status};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::Queue;
use crate::program::library_call::convolution::{Channels, Convolution, ConvolutionKind, Sizes};
use crate::program::library_call::matmul::Precision;

/// The library with its handle for one device.
pub(crate) struct Dnn {
    context: Arc<Context>,
    state: Mutex<DnnState>,
}

struct DnnState {
    handle: cudnnHandle_t,
    /// The compute capability of the GPU.
    capability: (u32, u32),
    plans: HashMap<Convolution, Arc<ConvolutionPlan>>,
}

/// Plan of one kind of convolution.
struct ConvolutionPlan {
    input: TensorDescriptor,
    filter: FilterDescriptor,
    output: TensorDescriptor,
    operation: ConvolutionDescriptor,
    /// With the bytes of their workspaces, the one first that is as a rule the best; at least one.
    algorithms: Vec<(ConvolutionAlgorithm, usize)>,
}

/// Each kind has its own.
#[derive(Clone, Copy)]
enum ConvolutionAlgorithm {
    Forward(ForwardAlgorithm),
    BackwardInput(InputAlgorithm),
    BackwardFilter(FilterAlgorithm),
}

// SAFETY: the handle is used by one thread at a time.
unsafe impl Send for DnnState {}
// SAFETY: descriptions are plain memory of the library, and are not changed once a plan is made.
unsafe impl Send for ConvolutionPlan {}
// SAFETY: as above.
unsafe impl Sync for ConvolutionPlan {}

impl Dnn {
    /// Loads the library and makes a handle.
    pub fn load(context: &Arc<Context>) -> Result<Dnn> {
        // It looks for its own libraries among those that are open, too.
        drop(BLAS.get());
        DNN.get()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; the context is current, so that the handle is for its device.
        context.with(|| check("cudnnCreate", unsafe { api::cudnnCreate(&mut handle) }))??;
        Ok(Dnn {
            context: context.clone(),
            state: Mutex::new(DnnState { handle, capability: context.info().capability, plans: HashMap::new() }),
        })
    }

    /// The library's name and version.
    pub fn version(&self) -> String {
        // SAFETY: no requirements.
        format!("cuDNN {}", unsafe { api::cudnnGetVersion() })
    }

    /// Number of algorithms for a convolution.
    pub fn algorithms(&self, convolution: &Convolution) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(1);
        }
        self.context.with(|| self.state().plan(convolution).map(|plan| plan.algorithms.len()))?
    }

    /// Bytes of a convolution's workspace.
    pub fn workspace(&self, convolution: &Convolution, algorithm: usize) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(0);
        }
        self.context.with(|| self.state().plan(convolution).and_then(|plan| Ok(plan.algorithm(algorithm)?.1)))?
    }

    /// Sends a convolution to a queue; addresses as [`ConvolutionKind`] tells, and that of as much memory as
    /// [`Dnn::workspace`] says. Convolutions without a result are nothing.
    pub fn run(
        &self,
        convolution: &Convolution,
        algorithm: usize,
        addresses: &[u64],
        workspace: u64,
        queue: &Queue,
    ) -> Result<()> {
        let &[first, second, result] = addresses else {
            return Err(Error::internal(format!("a convolution was called with {} arrays", addresses.len())));
        };
        if convolution.is_empty() {
            return Ok(());
        }
        let arrays = [first, second, result, workspace].map(|a| std::ptr::without_provenance_mut::<c_void>(a as usize));
        queue.send_to_library(|stream| {
            let mut state = self.state();
            let plan = state.plan(convolution)?;
            // SAFETY: handle and stream are alive and of one device.
            check("cudnnSetStream", unsafe { api::cudnnSetStream(state.handle, stream.cast()) })?;
            plan.send(state.handle, algorithm, convolution.element, arrays)
        })
    }

    fn state(&self) -> MutexGuard<'_, DnnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Dnn {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let handle = state.handle;
        // SAFETY: the handle is alive, and destroyed once. An error says that the device is lost.
        let _ = self.context.with(|| unsafe { api::cudnnDestroy(handle) });
    }
}

impl std::fmt::Debug for Dnn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dnn({:?}, {} plans)", self.context, self.state().plans.len())
    }
}

impl DnnState {
    fn plan(&mut self, convolution: &Convolution) -> Result<Arc<ConvolutionPlan>> {
        if let Some(plan) = self.plans.get(convolution) {
            return Ok(plan.clone());
        }
        convolution.check(self.capability)?;
        let plan = Arc::new(ConvolutionPlan::new(self.handle, convolution)?);
        self.plans.insert(convolution.clone(), plan.clone());
        Ok(plan)
    }
}

impl ConvolutionPlan {
    fn new(handle: cudnnHandle_t, convolution: &Convolution) -> Result<ConvolutionPlan> {
        let sizes = convolution.sizes()?;
        let element = data_type(convolution.element)?;
        let mut plan = ConvolutionPlan {
            input: TensorDescriptor::new(element, &sizes.input, &sizes.input_strides)?,
            filter: FilterDescriptor::new(element, convolution.channels, &sizes.filter)?,
            output: TensorDescriptor::new(element, &sizes.output, &sizes.output_strides)?,
            operation: ConvolutionDescriptor::new(convolution, &sizes)?,
            algorithms: Vec::new(),
        };
        for &algorithm in ConvolutionAlgorithm::of(convolution.kind) {
            let (status, workspace) = plan.try_algorithm(handle, algorithm);
            if status == Status::CUDNN_STATUS_SUCCESS {
                plan.algorithms.push((algorithm, workspace));
            }
        }
        if plan.algorithms.is_empty() {
            return Err(Error::unimplemented(format!("cuDNN has no kernel on this GPU for {convolution:?}")));
        }
        Ok(plan)
    }

    /// An algorithm with the bytes of its workspace; the last one for greater numbers.
    fn algorithm(&self, number: usize) -> Result<(ConvolutionAlgorithm, usize)> {
        let found = self.algorithms.get(number).or(self.algorithms.last());
        found.copied().ok_or_else(|| Error::internal("a convolution's plan without an algorithm"))
    }

    /// Bytes of workspace, if the library has the algorithm for these sizes.
    fn try_algorithm(&self, handle: cudnnHandle_t, algorithm: ConvolutionAlgorithm) -> (Status, usize) {
        let (input, filter, output, operation) = (self.input.0, self.filter.0, self.output.0, self.operation.0);
        let mut bytes = 0;
        // SAFETY: handle and descriptions are alive; the pointer is to a live integer.
        let status = unsafe {
            match algorithm {
                ConvolutionAlgorithm::Forward(algorithm) => api::cudnnGetConvolutionForwardWorkspaceSize(
                    handle, input, filter, operation, output, algorithm, &mut bytes,
                ),
                ConvolutionAlgorithm::BackwardInput(algorithm) => api::cudnnGetConvolutionBackwardDataWorkspaceSize(
                    handle, filter, output, operation, input, algorithm, &mut bytes,
                ),
                ConvolutionAlgorithm::BackwardFilter(algorithm) => api::cudnnGetConvolutionBackwardFilterWorkspaceSize(
                    handle, input, output, operation, filter, algorithm, &mut bytes,
                ),
            }
        };
        (status, bytes)
    }

    fn send(
        &self,
        handle: cudnnHandle_t,
        algorithm: usize,
        element: ElementType,
        arrays: [*mut c_void; 4],
    ) -> Result<()> {
        let (algorithm, bytes) = self.algorithm(algorithm)?;
        let [first, second, result, work] = arrays;
        let (input, filter, output, operation) = (self.input.0, self.filter.0, self.output.0, self.operation.0);
        // Factors are doubles for doubles, and floats otherwise.
        let is_double = element == ElementType::F64;
        let factor = |number: f64| if is_double { number.to_ne_bytes() } else { float_bytes(number as f32) };
        let (one, zero) = (AlignedFactor(factor(1.0)), AlignedFactor(factor(0.0)));
        let (one, zero) = (one.0.as_ptr().cast::<c_void>(), zero.0.as_ptr().cast::<c_void>());
        // SAFETY: handle and descriptions are alive, factors are of the type that the descriptions ask for and outlive
        // the call. Addresses are of device memory of the sizes that the descriptions tell: the caller's word.
        let status = unsafe {
            match algorithm {
                ConvolutionAlgorithm::Forward(algorithm) => api::cudnnConvolutionForward(
                    handle, one, input, first, filter, second, operation, algorithm, work, bytes, zero, output, result,
                ),
                ConvolutionAlgorithm::BackwardInput(algorithm) => api::cudnnConvolutionBackwardData(
                    handle, one, filter, second, output, first, operation, algorithm, work, bytes, zero, input, result,
                ),
                ConvolutionAlgorithm::BackwardFilter(algorithm) => api::cudnnConvolutionBackwardFilter(
                    handle, one, input, first, output, second, operation, algorithm, work, bytes, zero, filter, result,
                ),
            }
        };
        check("cudnnConvolution", status)
    }
}

impl ConvolutionAlgorithm {
    /// Those that are used for a kind, the best first.
    fn of(kind: ConvolutionKind) -> &'static [ConvolutionAlgorithm] {
        use ConvolutionAlgorithm::{BackwardFilter, BackwardInput, Forward};
        match kind {
            ConvolutionKind::Forward => &[
                Forward(ForwardAlgorithm::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM),
                Forward(ForwardAlgorithm::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM),
                Forward(ForwardAlgorithm::CUDNN_CONVOLUTION_FWD_ALGO_GEMM),
            ],
            ConvolutionKind::BackwardInput => &[BackwardInput(InputAlgorithm::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)],
            ConvolutionKind::BackwardFilter => &[BackwardFilter(FilterAlgorithm::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)],
        }
    }
}

/// A factor, where a double may lie.
#[repr(align(8))]
struct AlignedFactor([u8; 8]);

/// A float, and nothing after it.
fn float_bytes(number: f32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// The library's description of an array of images.
struct TensorDescriptor(cudnnTensorDescriptor_t);

impl TensorDescriptor {
    fn new(element: DataType, sizes: &[i32], strides: &[i32]) -> Result<TensorDescriptor> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        check("cudnnCreateTensorDescriptor", unsafe { api::cudnnCreateTensorDescriptor(&mut raw) })?;
        let tensor = TensorDescriptor(raw);
        let rank = sizes.len().min(strides.len()) as i32;
        // SAFETY: the description is alive; both lists have that many numbers.
        let status = unsafe { api::cudnnSetTensorNdDescriptor(raw, element, rank, sizes.as_ptr(), strides.as_ptr()) };
        check("cudnnSetTensorNdDescriptor", status).map(|()| tensor)
    }
}

/// The library's description of a filter.
struct FilterDescriptor(cudnnFilterDescriptor_t);

impl FilterDescriptor {
    fn new(element: DataType, channels: Channels, sizes: &[i32]) -> Result<FilterDescriptor> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        check("cudnnCreateFilterDescriptor", unsafe { api::cudnnCreateFilterDescriptor(&mut raw) })?;
        let filter = FilterDescriptor(raw);
        let format = match channels {
            Channels::First => Format::CUDNN_TENSOR_NCHW,
            Channels::Last => Format::CUDNN_TENSOR_NHWC,
        };
        // SAFETY: the description is alive; the list has that many numbers.
        let status =
            unsafe { api::cudnnSetFilterNdDescriptor(raw, element, format, sizes.len() as i32, sizes.as_ptr()) };
        check("cudnnSetFilterNdDescriptor", status).map(|()| filter)
    }
}

/// The library's description of a convolution.
struct ConvolutionDescriptor(cudnnConvolutionDescriptor_t);

impl ConvolutionDescriptor {
    fn new(convolution: &Convolution, sizes: &Sizes) -> Result<ConvolutionDescriptor> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        check("cudnnCreateConvolutionDescriptor", unsafe { api::cudnnCreateConvolutionDescriptor(&mut raw) })?;
        let operation = ConvolutionDescriptor(raw);
        // The filter is not reversed.
        let mode = Mode::CUDNN_CROSS_CORRELATION;
        let compute = match convolution.element {
            ElementType::F64 => DataType::CUDNN_DATA_DOUBLE,
            _ => DataType::CUDNN_DATA_FLOAT,
        };
        let (padding, stride, dilation) = (sizes.padding.as_ptr(), sizes.stride.as_ptr(), sizes.dilation.as_ptr());
        // SAFETY: the description is alive; the lists have as many numbers as there are spatial dimensions.
        let status = unsafe {
            let rank = sizes.padding.len() as i32;
            api::cudnnSetConvolutionNdDescriptor(raw, rank, padding, stride, dilation, mode, compute)
        };
        check("cudnnSetConvolutionNdDescriptor", status)?;
        // By default f32 may be multiplied with TF32, and by FMA it is not. Math types that allow conversion may
        // convert f32 to f16.
        let math = match (convolution.element, convolution.precision) {
            (ElementType::F16 | ElementType::BF16, _) => MathType::CUDNN_TENSOR_OP_MATH,
            (_, Precision::Tf32) => MathType::CUDNN_DEFAULT_MATH,
            (_, Precision::Exact) => MathType::CUDNN_FMA_MATH,
        };
        // SAFETY: the description is alive.
        check("cudnnSetConvolutionMathType", unsafe { api::cudnnSetConvolutionMathType(raw, math) })?;
        // SAFETY: the description is alive.
        let status = unsafe { api::cudnnSetConvolutionGroupCount(raw, sizes.groups) };
        check("cudnnSetConvolutionGroupCount", status).map(|()| operation)
    }
}

impl Drop for TensorDescriptor {
    fn drop(&mut self) {
        // SAFETY: the description is alive, and destroyed once.
        let _ = unsafe { api::cudnnDestroyTensorDescriptor(self.0) };
    }
}

impl Drop for FilterDescriptor {
    fn drop(&mut self) {
        // SAFETY: the description is alive, and destroyed once.
        let _ = unsafe { api::cudnnDestroyFilterDescriptor(self.0) };
    }
}

impl Drop for ConvolutionDescriptor {
    fn drop(&mut self) {
        // SAFETY: the description is alive, and destroyed once.
        let _ = unsafe { api::cudnnDestroyConvolutionDescriptor(self.0) };
    }
}

fn data_type(element: ElementType) -> Result<DataType> {
    Ok(match element {
        ElementType::F16 => DataType::CUDNN_DATA_HALF,
        ElementType::BF16 => DataType::CUDNN_DATA_BFLOAT16,
        ElementType::F32 => DataType::CUDNN_DATA_FLOAT,
        ElementType::F64 => DataType::CUDNN_DATA_DOUBLE,
        other => return Err(Error::unimplemented(format!("cuDNN has no convolution of {other}"))),
    })
}

fn check(call: &str, status: Status) -> Result<()> {
    if status == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: no requirements.
    let text = unsafe { api::cudnnGetErrorString(status) };
    // SAFETY: texts of the library are never freed and end with a zero.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let sentence = format!("{call} failed: {status:?} {}", text.unwrap_or_default());
    // Statuses come in thousands: 2 is what arguments must never be, 3 what this version or GPU has not. Descriptions
    // of convolutions are what a program asks for, so neither is a fault of the compiler.
    Err(match status.0 / 1000 {
        2 | 3 => Error::unimplemented(sentence),
        _ => Error::internal(sentence),
    })
}
