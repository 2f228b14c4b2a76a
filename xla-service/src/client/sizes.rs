//! Actual sizes of buffers of dynamic size, which a run computes as an additional output.

use std::sync::{Arc, OnceLock};

use xla_hlo::dynamic_result::{dynamic_dimensions_of, real_dims, size};
use xla_hlo::{ArrayShape, Literal, Result, ResultExt};

use super::device::Device;
use super::value::Value;
use crate::signature::Signature;

/// Sizes of the results of one run, for all dynamic dimensions in order.
pub(super) struct RunSizes {
    device: Device,
    shape: Arc<ArrayShape>,
    value: Arc<Value>,
    /// Sizes on the host, read on first use.
    sizes: OnceLock<Literal>,
}

/// Sizes of one buffer.
#[derive(Clone)]
pub(super) struct BufferSizes {
    run: Arc<RunSizes>,
    /// Number of the buffer's first dynamic dimension among all dynamic dimensions of the run.
    first: usize,
}

impl RunSizes {
    /// Returns the sizes of each result of a run, whose last output is `value`; `None` for results of static shape.
    pub fn of_results(device: &Device, signature: &Signature, value: &Arc<Value>) -> Vec<Option<BufferSizes>> {
        let results = signature.results();
        let Some(leaf) = signature.outputs().last() else { return Vec::new() };
        let (shape, value) = (leaf.shape.clone(), value.clone());
        let run = Arc::new(RunSizes { device: device.clone(), shape, value, sizes: OnceLock::new() });
        let mut first = 0;
        let sizes = |leaf: &ArrayShape| {
            let sizes = BufferSizes { run: run.clone(), first };
            let count = dynamic_dimensions_of(leaf).count();
            first += count;
            (count > 0).then_some(sizes)
        };
        results.iter().map(|leaf| &*leaf.shape).map(sizes).collect()
    }

    /// Waits for the sizes and reads them.
    fn read(&self) -> Result<&Literal> {
        if let Some(sizes) = self.sizes.get() {
            return Ok(sizes);
        }
        let (transfer, memory) = (&self.device.client().0.transfer, self.value.computed()?);
        let sizes = transfer.read(self.device.stream(), memory, 0, &self.shape).context(|| "the sizes of results")?;
        Ok(self.sizes.get_or_init(|| sizes))
    }
}

impl BufferSizes {
    /// Returns the dimensions of an array of this shape at its actual sizes, and waits for them.
    pub fn dims(&self, shape: &ArrayShape) -> Result<Vec<usize>> {
        let sizes = self.run.read()?;
        let count = sizes.array_shape().element_count();
        Ok(real_dims(shape, &mut (self.first..count).map(|i| size(sizes, i))))
    }
}
