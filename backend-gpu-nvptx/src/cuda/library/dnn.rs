//! Convolutions by cuDNN, with plans for each distinct convolution from the library's heuristics.
//!
//! Only plans that sum products directly are used, and of those only ones that give the same result each time.

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

/// The logarithm of the greatest alignment, of 16 bytes, that a kernel may need.
const MOST_ALIGNED: u32 = 4;

/// The library with its handle for one device.
pub(crate) struct Dnn {
    context: Arc<Context>,
    state: Mutex<DnnState>,
}

struct DnnState {
    /// The compute capability of the GPU.
    capability: (u32, u32),
    /// By convolution, and the bytes that its arrays are aligned to. Plans are dropped before the handle that they were
    /// made with.
    plans: HashMap<(Convolution, Vec<i64>), Arc<[ExecutionPlan]>>,
    handle: DnnHandle,
}

impl Dnn {
    /// Loads the library and makes a handle.
    pub fn load(context: &Arc<Context>) -> Result<Dnn> {
        // It looks for its own libraries among those that are open, too.
        drop(BLAS.get());
        DNN.get()?;
        let state =
            DnnState { capability: context.info().capability, plans: HashMap::new(), handle: DnnHandle::new(context)? };
        Ok(Dnn { context: context.clone(), state: Mutex::new(state) })
    }

    /// The library's name and version.
    pub fn version(&self) -> String {
        format!("cuDNN {}", descriptor::version())
    }

    /// Number of plans for a convolution.
    pub fn algorithms(&self, convolution: &Convolution, addresses: &[u64]) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(1);
        }
        self.context.with(|| self.state().plans(convolution, addresses).map(|plans| plans.len()))?
    }

    /// Bytes of a convolution's workspace.
    pub fn workspace(&self, convolution: &Convolution, number: usize, addresses: &[u64]) -> Result<usize> {
        if convolution.is_empty() {
            return Ok(0);
        }
        self.context.with(|| self.state().plan(convolution, number, addresses).map(|plan| plan.workspace))?
    }

    /// Sends a convolution to a queue; addresses as [`Convolution`] tells, and that of as much memory as
    /// [`Dnn::workspace`] says. Convolutions without a result are nothing.
    pub fn run(
        &self,
        convolution: &Convolution,
        number: usize,
        addresses: &[u64],
        workspace: u64,
        queue: &Queue,
    ) -> Result<()> {
        if addresses.len() != convolution.arrays() {
            return Err(Error::internal(format!("a convolution was called with {} arrays", addresses.len())));
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
    /// The plans for a convolution of arrays that are aligned like those, the best first as a rule; at least one.
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

    /// A plan by its number; the last one for greater numbers.
    fn plan(&mut self, convolution: &Convolution, number: usize, addresses: &[u64]) -> Result<ExecutionPlan> {
        let plans = self.plans(convolution, addresses)?;
        let found = plans.get(number).or(plans.last());
        found.cloned().ok_or_else(|| Error::internal("a convolution without a plan"))
    }
}
