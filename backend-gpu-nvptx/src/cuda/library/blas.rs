//! Matrix multiplication by cuBLASLt; the library's heuristic provides a plan for each distinct matmul.
#![expect(unsafe_code, reason = "cuBLASLt is a C library")]

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cublaslt::sys::{
    cublasComputeType_t as Compute, cublasLtEpilogue_t as Epilogue, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as DescAttribute, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as PreferenceAttribute, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cudaDataType as DataType,
};
use xla_hlo::{ElementType, Error, Result};

use super::gemm::{Gemm, GemmLayout};
use super::presence::BLAS;
use crate::cuda::api::cublaslt::{self as api, HeuristicResult, cublasStatus_t as Status};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::Queue;
use crate::program::library_call::matmul::{Activation, Arithmetic, Matmul};

/// Number of algorithms requested from the library for each distinct matmul.
const MOST_ALGORITHMS: usize = 6;

/// Maximum workspace of a matmul in bytes: NVIDIA's recommendation for its newest GPUs.
const MOST_WORKSPACE: u64 = 32 << 20;

/// cuBLASLt with its handle for one device.
pub(crate) struct Blas {
    context: Arc<Context>,
    handle: cublasLtHandle_t,
    plans: Mutex<MatmulPlans>,
}

/// Plans by matmul and by the alignments of its addresses, as powers of two. A plan is used by one thread at a time.
type MatmulPlans = HashMap<(Matmul, [u32; 5]), Arc<Mutex<MatmulPlan>>>;

/// Plan of one distinct matmul.
struct MatmulPlan {
    operation: MatmulDescriptor,
    /// Layouts of the factors and the result, in the order of BLAS.
    layouts: [MatrixLayout; 3],
    /// Algorithms with the bytes of their workspaces, in the library's order of preference; at least one.
    algorithms: Vec<(cublasLtMatmulAlgo_t, usize)>,
}

// SAFETY: the library's handle may be used by several threads at the same time.
unsafe impl Send for Blas {}
// SAFETY: as above.
unsafe impl Sync for Blas {}
// SAFETY: descriptors are plain memory of the library, used by one thread at a time.
unsafe impl Send for MatmulPlan {}

impl Blas {
    /// `cublasLtCreate`: loads the library and creates a handle.
    pub fn load(context: &Arc<Context>) -> Result<Blas> {
        BLAS.get()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; the context is current, so that the handle is for its device.
        context.with(|| check("cublasLtCreate", unsafe { api::cublasLtCreate(&mut handle) }))??;
        Ok(Blas { context: context.clone(), handle, plans: Mutex::default() })
    }

    /// `cublasLtGetVersion`: returns the library's name and version.
    pub fn version(&self) -> String {
        // SAFETY: no requirements.
        format!("cuBLASLt {}", unsafe { api::cublasLtGetVersion() })
    }

    /// Returns the number of algorithms for a matmul.
    pub fn algorithms(&self, matmul: &Matmul, addresses: &[u64]) -> Result<usize> {
        let arrays = MatmulArrays::of(matmul, addresses)?;
        if matmul.is_empty() {
            return Ok(1);
        }
        let plan = self.plan(matmul, &arrays)?;
        Ok(plan.lock().unwrap_or_else(PoisonError::into_inner).algorithms.len())
    }

    /// Returns the size of a matmul's workspace in bytes, which depends on the alignment of its arrays.
    pub fn workspace(&self, matmul: &Matmul, algorithm: usize, addresses: &[u64]) -> Result<usize> {
        let arrays = MatmulArrays::of(matmul, addresses)?;
        if matmul.is_empty() {
            return Ok(0);
        }
        let plan = self.plan(matmul, &arrays)?;
        let plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(plan.algorithm(algorithm)?.1)
    }

    /// `cublasLtMatmul`: sends a matmul to a queue. The order of `addresses` is that of [`Matmul`]; `workspace` is the
    /// address of the bytes that [`Blas::workspace`] requires. A matmul without a result does nothing.
    pub fn run(
        &self,
        matmul: &Matmul,
        algorithm: usize,
        addresses: &[u64],
        workspace: u64,
        queue: &Queue,
    ) -> Result<()> {
        let arrays = MatmulArrays::of(matmul, addresses)?;
        if matmul.is_empty() {
            return Ok(());
        }
        let plan = self.plan(matmul, &arrays)?;
        let plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bias) = arrays.bias {
            plan.operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        self.send(matmul, &plan, algorithm, &arrays, workspace, queue)
    }

    fn send(
        &self,
        matmul: &Matmul,
        plan: &MatmulPlan,
        algorithm: usize,
        arrays: &MatmulArrays,
        workspace: u64,
        queue: &Queue,
    ) -> Result<()> {
        let (algorithm, bytes) = plan.algorithm(algorithm)?;
        let arithmetic = matmul.arithmetic()?;
        let alpha = MatmulScalar::new(arithmetic, f64::from_bits(matmul.alpha));
        let beta = MatmulScalar::new(arithmetic, if matmul.has_addend { 1.0 } else { 0.0 });
        let [a, b, d] = plan.layouts.each_ref().map(|layout| layout.0);
        let address = |address| std::ptr::without_provenance_mut::<c_void>(address as usize);
        queue.send_to_library(|stream| {
            // SAFETY: handle, descriptors and algorithm were made for each other and are alive; the scalars are of the
            // type that the operation declares, and are copied. Addresses are of device memory of the sizes that the
            // layouts describe: the caller guarantees this.
            let status = unsafe {
                api::cublasLtMatmul(
                    self.handle,
                    plan.operation.0,
                    alpha.0.as_ptr().cast(),
                    address(arrays.rhs),
                    a,
                    address(arrays.lhs),
                    b,
                    beta.0.as_ptr().cast(),
                    address(arrays.addend),
                    d,
                    address(arrays.result),
                    d,
                    algorithm,
                    address(workspace),
                    *bytes,
                    stream.cast(),
                )
            };
            check("cublasLtMatmul", status)
        })
    }

    /// Returns the plan for a matmul whose arrays have these alignments.
    fn plan(&self, matmul: &Matmul, arrays: &MatmulArrays) -> Result<Arc<Mutex<MatmulPlan>>> {
        let key = (matmul.clone(), arrays.alignments());
        if let Some(plan) = self.plans().get(&key) {
            return Ok(plan.clone());
        }
        // Two threads may make the same plan; the later one is kept.
        let plan = self.context.with(|| self.make_plan(matmul, arrays))??;
        let plan = Arc::new(Mutex::new(plan));
        self.plans().insert(key, plan.clone());
        Ok(plan)
    }

    fn make_plan(&self, matmul: &Matmul, arrays: &MatmulArrays) -> Result<MatmulPlan> {
        matmul.check(self.context.info().capability)?;
        let gemm = Gemm::of(matmul);
        let operation = MatmulDescriptor::new(matmul, &gemm)?;
        // No preference states the alignment of the bias: the library inspects its address.
        if let Some(bias) = arrays.bias {
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let layouts = [
            MatrixLayout::new(matmul.rhs.element, &gemm.a, matmul.batch)?,
            MatrixLayout::new(matmul.lhs.element, &gemm.b, matmul.batch)?,
            MatrixLayout::new(matmul.result.element, &gemm.d, matmul.batch)?,
        ];
        let preference = HeuristicPreference::new(&arrays.alignments())?;
        let [a, b, d] = layouts.each_ref().map(|layout| layout.0);
        let mut found = [const { std::mem::MaybeUninit::<HeuristicResult>::zeroed() }; MOST_ALGORITHMS];
        let mut count = 0;
        // SAFETY: handle and descriptors are alive, and there is room for the requested number of answers.
        let status = unsafe {
            api::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                operation.0,
                a,
                b,
                d,
                d,
                preference.0,
                MOST_ALGORITHMS as i32,
                found.as_mut_ptr().cast(),
                &mut count,
            )
        };
        if status != Status::CUBLAS_STATUS_NOT_SUPPORTED {
            check("cublasLtMatmulAlgoGetHeuristic", status)?;
        }
        let written = found.into_iter().take(usize::try_from(count).unwrap_or(0));
        // SAFETY: the library has written that many answers, as it returned.
        let lowerings = written.map(|answer| unsafe { answer.assume_init() });
        let usable = lowerings.filter(|answer| answer.state == Status::CUBLAS_STATUS_SUCCESS);
        let algorithms: Vec<_> = usable.map(|answer| (answer.algorithm, answer.workspace)).collect();
        if algorithms.is_empty() {
            return Err(Error::unimplemented(format!("cuBLASLt has no kernel on this GPU for {matmul:?}")));
        }
        Ok(MatmulPlan { operation, layouts, algorithms })
    }

    fn plans(&self) -> std::sync::MutexGuard<'_, MatmulPlans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and destroyed once. An error means that the device is lost.
        let _ = self.context.with(|| unsafe { api::cublasLtDestroy(self.handle) });
    }
}

impl std::fmt::Debug for Blas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blas({:?}, {} plans)", self.context, self.plans().len())
    }
}

impl MatmulPlan {
    /// Returns an algorithm with the bytes of its workspace. Larger numbers denote the last one, since the number of
    /// algorithms depends on the alignments.
    fn algorithm(&self, number: usize) -> Result<&(cublasLtMatmulAlgo_t, usize)> {
        let found = self.algorithms.get(number).or(self.algorithms.last());
        found.ok_or_else(|| Error::internal("the plan of a matmul has no algorithm"))
    }
}

/// Addresses of the arrays of a matmul.
struct MatmulArrays {
    lhs: u64,
    rhs: u64,
    /// Address of the result if nothing is added: it is not read then.
    addend: u64,
    bias: Option<u64>,
    result: u64,
}

impl MatmulArrays {
    fn of(matmul: &Matmul, addresses: &[u64]) -> Result<MatmulArrays> {
        let (lhs, rhs, addend, bias, result) = match (matmul.has_addend, matmul.has_bias, addresses) {
            (false, false, &[lhs, rhs, result]) => (lhs, rhs, result, None, result),
            (true, false, &[lhs, rhs, addend, result]) => (lhs, rhs, addend, None, result),
            (false, true, &[lhs, rhs, bias, result]) => (lhs, rhs, result, Some(bias), result),
            (true, true, &[lhs, rhs, addend, bias, result]) => (lhs, rhs, addend, Some(bias), result),
            (_, _, other) => {
                let count = other.len();
                return Err(Error::internal(format!(
                    "a matmul has {} arrays but was called with {count}",
                    matmul.arrays()
                )));
            }
        };
        Ok(MatmulArrays { lhs, rhs, addend, bias, result })
    }

    /// Returns the alignments of the addresses, as powers of two up to 256, in the order of BLAS; the bias is last.
    /// Kernels differ in their requirements.
    fn alignments(&self) -> [u32; 5] {
        let addresses = [self.rhs, self.lhs, self.addend, self.result, self.bias.unwrap_or(0)];
        addresses.map(|address| 1 << address.trailing_zeros().min(8))
    }
}

/// Scalar in the type that an operation requires for alpha and beta.
#[repr(align(16))]
struct MatmulScalar([u8; 16]);

impl MatmulScalar {
    fn new(arithmetic: Arithmetic, value: f64) -> MatmulScalar {
        let mut bytes = [0; 16];
        // The imaginary part of a complex number follows, and is 0.
        match arithmetic {
            Arithmetic::F32 | Arithmetic::Tf32 | Arithmetic::C64 => {
                bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes());
            }
            Arithmetic::F64 | Arithmetic::C128 => bytes[..8].copy_from_slice(&value.to_ne_bytes()),
            Arithmetic::S32 => bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
        }
        MatmulScalar(bytes)
    }
}

/// Descriptor of a matmul without its matrices.
struct MatmulDescriptor(cublasLtMatmulDesc_t);

impl MatmulDescriptor {
    fn new(matmul: &Matmul, gemm: &Gemm) -> Result<MatmulDescriptor> {
        let (compute, scale) = match matmul.arithmetic()? {
            Arithmetic::F32 => (Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_R_32F),
            Arithmetic::Tf32 => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, DataType::CUDA_R_32F),
            Arithmetic::F64 => (Compute::CUBLAS_COMPUTE_64F, DataType::CUDA_R_64F),
            Arithmetic::C64 => (Compute::CUBLAS_COMPUTE_32F, DataType::CUDA_C_32F),
            Arithmetic::C128 => (Compute::CUBLAS_COMPUTE_64F, DataType::CUDA_C_64F),
            Arithmetic::S32 => (Compute::CUBLAS_COMPUTE_32I, DataType::CUDA_R_32I),
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        check("cublasLtMatmulDescCreate", unsafe { api::cublasLtMatmulDescCreate(&mut raw, compute, scale) })?;
        let operation = MatmulDescriptor(raw);
        operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(gemm.transpose_a))?;
        operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(gemm.transpose_b))?;
        let epilogue = match (matmul.activation, matmul.has_bias) {
            (Activation::None, false) => Epilogue::CUBLASLT_EPILOGUE_DEFAULT,
            (Activation::None, true) => Epilogue::CUBLASLT_EPILOGUE_BIAS,
            (Activation::Relu, false) => Epilogue::CUBLASLT_EPILOGUE_RELU,
            (Activation::Relu, true) => Epilogue::CUBLASLT_EPILOGUE_RELU_BIAS,
            (Activation::GeluTanh, false) => Epilogue::CUBLASLT_EPILOGUE_GELU,
            (Activation::GeluTanh, true) => Epilogue::CUBLASLT_EPILOGUE_GELU_BIAS,
        };
        operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &(epilogue as u32))?;
        if matmul.has_bias {
            let bias = data_type(matmul.result.element)? as u32;
            operation.set(DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias)?;
        }
        Ok(operation)
    }

    fn set<T: Number>(&self, attribute: DescAttribute, value: &T) -> Result<()> {
        let (value, bytes) = (std::ptr::from_ref(value).cast(), size_of::<T>());
        // SAFETY: the descriptor is alive; `bytes` is the size of the value, which is only read during the call.
        let status = unsafe { api::cublasLtMatmulDescSetAttribute(self.0, attribute, value, bytes) };
        check("cublasLtMatmulDescSetAttribute", status)
    }
}

/// Descriptor of a matrix.
struct MatrixLayout(cublasLtMatrixLayout_t);

impl MatrixLayout {
    fn new(element: ElementType, layout: &GemmLayout, batch: usize) -> Result<MatrixLayout> {
        let large =
            || Error::invalid_argument(format!("a matrix is too large for cuBLASLt: {layout:?}, batch of {batch}"));
        let leading = i64::try_from(layout.leading).map_err(|_| large())?;
        let (rows, columns) = (layout.rows as u64, layout.columns as u64);
        let mut raw = std::ptr::null_mut();
        let element = data_type(element)?;
        // SAFETY: the pointer is to a live pointer.
        let status = unsafe { api::cublasLtMatrixLayoutCreate(&mut raw, element, rows, columns, leading) };
        check("cublasLtMatrixLayoutCreate", status)?;
        let matrix = MatrixLayout(raw);
        let batch = i32::try_from(batch).map_err(|_| large())?;
        let stride = i64::try_from(layout.batch_stride).map_err(|_| large())?;
        matrix.set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch)?;
        matrix.set(LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride)?;
        Ok(matrix)
    }

    fn set<T: Number>(&self, attribute: LayoutAttribute, value: &T) -> Result<()> {
        let (value, bytes) = (std::ptr::from_ref(value).cast(), size_of::<T>());
        // SAFETY: the descriptor is alive; `bytes` is the size of the value, which is only read during the call.
        let status = unsafe { api::cublasLtMatrixLayoutSetAttribute(self.0, attribute, value, bytes) };
        check("cublasLtMatrixLayoutSetAttribute", status)
    }
}

/// Preferences for the library's heuristic.
struct HeuristicPreference(cublasLtMatmulPreference_t);

impl HeuristicPreference {
    fn new(alignments: &[u32; 5]) -> Result<HeuristicPreference> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        check("cublasLtMatmulPreferenceCreate", unsafe { api::cublasLtMatmulPreferenceCreate(&mut raw) })?;
        let preference = HeuristicPreference(raw);
        preference.set(PreferenceAttribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &MOST_WORKSPACE)?;
        let attributes = [
            PreferenceAttribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            PreferenceAttribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            PreferenceAttribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            PreferenceAttribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ];
        attributes.into_iter().zip(alignments).try_for_each(|(attribute, bytes)| preference.set(attribute, bytes))?;
        Ok(preference)
    }

    fn set<T: Number>(&self, attribute: PreferenceAttribute, value: &T) -> Result<()> {
        let (value, bytes) = (std::ptr::from_ref(value).cast(), size_of::<T>());
        // SAFETY: the descriptor is alive; `bytes` is the size of the value, which is only read during the call.
        let status = unsafe { api::cublasLtMatmulPreferenceSetAttribute(self.0, attribute, value, bytes) };
        check("cublasLtMatmulPreferenceSetAttribute", status)
    }
}

impl Drop for MatmulDescriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive, and destroyed once.
        let _ = unsafe { api::cublasLtMatmulDescDestroy(self.0) };
    }
}

impl Drop for MatrixLayout {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive, and destroyed once.
        let _ = unsafe { api::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

impl Drop for HeuristicPreference {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive, and destroyed once.
        let _ = unsafe { api::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

/// Numbers without padding, whose bytes are values of attributes.
trait Number: Copy {}
impl Number for i32 {}
impl Number for u32 {}
impl Number for i64 {}
impl Number for u64 {}

fn data_type(element: ElementType) -> Result<DataType> {
    Ok(match element {
        ElementType::F16 => DataType::CUDA_R_16F,
        ElementType::BF16 => DataType::CUDA_R_16BF,
        ElementType::F32 => DataType::CUDA_R_32F,
        ElementType::F64 => DataType::CUDA_R_64F,
        ElementType::C64 => DataType::CUDA_C_32F,
        ElementType::C128 => DataType::CUDA_C_64F,
        ElementType::S8 => DataType::CUDA_R_8I,
        ElementType::S32 => DataType::CUDA_R_32I,
        ElementType::F8E4M3FN => DataType::CUDA_R_8F_E4M3,
        ElementType::F8E5M2 => DataType::CUDA_R_8F_E5M2,
        other => return Err(Error::unimplemented(format!("cuBLASLt does not support element type {other}"))),
    })
}

fn check(call: &str, status: Status) -> Result<()> {
    if status == Status::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: no requirements.
    let text = unsafe { api::cublasLtGetStatusString(status) };
    // SAFETY: texts of the library are never freed and end with a zero.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let sentence = format!("{call} failed: {status:?} {}", text.unwrap_or_default());
    Err(match status {
        Status::CUBLAS_STATUS_ALLOC_FAILED => Error::resource_exhausted(sentence),
        Status::CUBLAS_STATUS_NOT_SUPPORTED => Error::unimplemented(sentence),
        _ => Error::internal(sentence),
    })
}
