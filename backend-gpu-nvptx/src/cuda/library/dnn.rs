//! Convolutions by cuDNN; the library's heuristics provide plans for each distinct convolution.
//!
//! Only deterministic plans that sum products directly are used, hence no Winograd and FFT algorithms.

mod descriptor;
mod plan;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::{Error, Result};

use super::presence::{BLAS, DNN};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::Queue;
use crate::program::library_call::convolution::Convolution;
use descriptor::DnnHandle;
use plan::ExecutionPlan;

/// Binary logarithm of the largest alignment that a kernel may require: 16 bytes.
const MOST_ALIGNED: u32 = 4;

/// cuDNN with its handle for one device.
pub(crate) struct Dnn {
    context: Arc<Context>,
    state: Mutex<DnnState>,
}

struct DnnState {
    /// Compute capability of the GPU.
    capability: (u32, u32),
    /// Plans by convolution and by the alignments of its arrays in bytes. This field precedes the handle, so that plans
    /// are dropped before the handle that made them.
    plans: HashMap<(Convolution, Vec<i64>), Arc<[ExecutionPlan]>>,
    handle: DnnHandle,
}

impl Dnn {
    /// `cudnnCreate`: loads the library and creates a handle.
    pub fn load(context: &Arc<Context>) -> Result<Dnn> {
        // cuDNN also searches the open libraries for those that it needs.
        drop(BLAS.get());
        DNN.get()?;
        let state =
            DnnState { capability: context.info().capability, plans: HashMap::new(), handle: DnnHandle::new(context)? };
        Ok(Dnn { context: context.clone(), state: Mutex::new(state) })
    }

    /// `cudnnGetVersion`: returns the library's name and version.
    pub fn version(&self) -> String {
        format!("cuDNN {}", descriptor::version())
    }

    /// Returns the number of plans for a convolution.
    pub fn algorithms(&self, convolution: &Convolution, addresses: &[u64]) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(1);
        }
        self.context.with(|| self.state().plans(convolution, addresses).map(|plans| plans.len()))?
    }

    /// Returns the size of a convolution's workspace in bytes.
    pub fn workspace(&self, convolution: &Convolution, number: usize, addresses: &[u64]) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(0);
        }
        self.context.with(|| self.state().plan(convolution, number, addresses).map(|plan| plan.workspace))?
    }

    /// Sends a convolution to a queue. The order of `addresses` is that of [`Convolution`]; `workspace` is the address
    /// of the bytes that [`Dnn::workspace`] requires. A convolution without a result does nothing.
    pub fn run(
        &self,
        convolution: &Convolution,
        number: usize,
        addresses: &[u64],
        workspace: u64,
        queue: &Queue,
    ) -> Result<()> {
        if addresses.len() != convolution.arrays() {
            return Err(Error::internal(format!(
                "a convolution has {} arrays but was called with {}",
                convolution.arrays(),
                addresses.len()
            )));
        }
        if convolution.is_empty() {
            return Ok(());
        }
        let mut state = self.state();
        let plan = self.context.with(|| state.plan(convolution, number, addresses))??;
        let pack = plan::variant_pack(convolution, addresses, workspace)?;
        state.handle.execute(&plan.plan, &pack, queue)
    }

    fn state(&self) -> MutexGuard<'_, DnnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Dnn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dnn({:?}, plans for {} convolutions)", self.context, self.state().plans.len())
    }
}

impl DnnState {
    /// Returns the plans for a convolution whose arrays have these alignments, usually the best first; at least one.
    fn plans(&mut self, convolution: &Convolution, addresses: &[u64]) -> Result<Arc<[ExecutionPlan]>> {
        let alignment = |address: &u64| 1i64 << address.trailing_zeros().min(MOST_ALIGNED);
        let key = (convolution.clone(), addresses.iter().map(alignment).collect::<Vec<i64>>());
        if let Some(plans) = self.plans.get(&key) {
            return Ok(plans.clone());
        }
        convolution.check(self.capability)?;
        let plans: Arc<[ExecutionPlan]> = plan::plans(&self.handle, convolution, &key.1)?.into();
        self.plans.insert(key, plans.clone());
        Ok(plans)
    }

    /// Returns a plan by its number; larger numbers denote the last one.
    fn plan(&mut self, convolution: &Convolution, number: usize, addresses: &[u64]) -> Result<ExecutionPlan> {
        let plans = self.plans(convolution, addresses)?;
        let found = plans.get(number).or(plans.last());
        found.cloned().ok_or_else(|| Error::internal("a convolution has no plan"))
    }
}
