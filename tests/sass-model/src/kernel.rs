//! Kernels as `xla compile` describes them in `kernels.json`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::thread::Launch;

/// Resources and work of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub name: String,
    /// Number of the code object that contains the kernel.
    pub object: u64,
    pub registers: u64,
    pub spill_bytes: u64,
    pub shared_bytes: u64,
    pub strategy: String,
    pub launch: Launch,
    /// Elements of the largest array that a launch may read, and bytes of all such arrays.
    pub elements_read: u64,
    pub bytes_read: u64,
    /// Elements of the largest array that a launch may write, and bytes of all such arrays.
    pub elements_written: u64,
    pub bytes_written: u64,
}

impl Kernel {
    pub fn read(json: &Value) -> Result<Kernel> {
        let number = |key: &str| json[key].as_u64().with_context(|| format!("a kernel of kernels.json has no {key}"));
        let small = |key: &str| -> Result<u32> { Ok(u32::try_from(number(key)?)?) };
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        Ok(Kernel {
            name: text("name"),
            object: number("object")?,
            registers: number("registers")?,
            spill_bytes: number("spill_bytes")?,
            shared_bytes: number("shared_bytes")?,
            strategy: text("strategy"),
            launch: Launch { blocks: small("blocks")?, threads: small("threads")?, thread: 0 },
            elements_read: number("elements_read")?,
            bytes_read: number("bytes_read")?,
            elements_written: number("elements_written")?,
            bytes_written: number("bytes_written")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_its_resources_is_refused() {
        let json: Value = serde_json::from_str(r#"{"name": "k", "registers": 8, "spill_bytes": 0}"#).unwrap();
        assert!(Kernel::read(&json).is_err());
    }
}
