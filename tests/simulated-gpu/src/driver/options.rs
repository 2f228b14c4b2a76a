//! Options of the simulated device, from the environment variable `SIMULATED_GPU`.

use std::path::PathBuf;

use super::plans::{Plan, PlanKind};
use crate::code::Approximations;

/// Name of the environment variable.
pub const VARIABLE: &str = "SIMULATED_GPU";

/// Options of the device and of its scheduling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Seed of every choice that the API leaves open. With 0, work is executed as late as possible.
    pub seed: u64,
    /// Number of devices. All have the same properties.
    pub devices: usize,
    /// Memory of a device in bytes.
    pub memory: usize,
    /// Compute capability, 90 for sm_90.
    pub capability: u32,
    /// Errors of approximate instructions.
    pub approximations: Approximations,
    /// Whether reads of uninitialised memory are reported.
    pub checks_written: bool,
    /// CUDA version of the driver, as `cuDriverGetVersion` returns it.
    pub version: i32,
    /// Folder for the PTX of kernels with findings.
    pub dump: Option<PathBuf>,
    /// Whether cuBLASLt's algorithms without a workspace, which are its fastest ones, return wrong products.
    pub wrong: bool,
    /// Planned failures of kernels, for tests of error handling.
    pub plans: Vec<Plan>,
    /// Folder of marker files for planned failures that have occurred, so that each occurs in one process only.
    pub once: Option<PathBuf>,
}

/// Maximum number of devices.
const MOST_DEVICES: usize = 16;

/// Form of the options in error messages.
const FORM: &str = "seed=3,devices=2,memory=256M,target=sm_90,approx=low,initcheck=off,version=12.4,dump=FOLDER,wrong=on,fault=KERNEL:2,endless=KERNEL,once=FOLDER";

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            devices: 1,
            memory: 4 << 30,
            capability: 90,
            approximations: Approximations::Exact,
            checks_written: true,
            version: 12_080,
            dump: None,
            wrong: false,
            plans: Vec::new(),
            once: None,
        }
    }
}

impl Options {
    /// Parses options separated by commas; options that are not given have their defaults. `fault=KERNEL:N` plans an
    /// illegal address at launch N (default 1) of kernels whose name contains KERNEL; `endless=KERNEL:N` plans a launch
    /// that does not end. Several plans are allowed. Each process counts its own launches; with `once=FOLDER` each plan
    /// takes effect in one process only.
    pub fn parse(text: &str) -> Result<Options, String> {
        let mut options = Options::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad = || format!("{VARIABLE}: `{part}` is not understood: {FORM}");
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            match name {
                "seed" => options.seed = value.parse().map_err(|_| bad())?,
                "devices" => {
                    let count = value.parse().ok();
                    options.devices = count.filter(|count| (1..=MOST_DEVICES).contains(count)).ok_or_else(bad)?;
                }
                "memory" => options.memory = bytes(value).ok_or_else(bad)?,
                "target" => {
                    let number = value.strip_prefix("sm_").and_then(|number| number.parse().ok());
                    options.capability = number.filter(|number| (10..1000).contains(number)).ok_or_else(bad)?;
                }
                "approx" => {
                    options.approximations = match value {
                        "low" => Approximations::Low,
                        "exact" => Approximations::Exact,
                        "high" => Approximations::High,
                        _ => return Err(bad()),
                    };
                }
                "initcheck" => options.checks_written = on(value).ok_or_else(bad)?,
                "version" => {
                    let (major, minor) = value.split_once('.').ok_or_else(bad)?;
                    let [major, minor] = [major, minor].map(|part| part.parse::<u8>().ok());
                    options.version = i32::from(major.ok_or_else(bad)?) * 1000 + i32::from(minor.ok_or_else(bad)?) * 10;
                }
                "dump" => options.dump = Some(value.into()),
                "wrong" => options.wrong = on(value).ok_or_else(bad)?,
                "once" => options.once = Some(value.into()),
                "fault" => options.plans.push(Plan::parse(PlanKind::Fault, value).ok_or_else(bad)?),
                "endless" => options.plans.push(Plan::parse(PlanKind::Endless, value).ok_or_else(bad)?),
                _ => return Err(bad()),
            }
        }
        Ok(options)
    }
}

fn on(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn bytes(value: &str) -> Option<usize> {
    let digits = value.trim_end_matches(['K', 'M', 'G']);
    let shift = match &value[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_shl(shift).filter(|bytes| bytes >> shift == digits.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        assert_eq!(Options::parse(""), Ok(Options::default()));
        let options = "seed=3, devices=4,memory=256M,target=sm_80,approx=low,initcheck=off,version=12.4,dump=/x,wrong=on,fault=add:2";
        let options = Options::parse(options).unwrap();
        let expected = Options {
            seed: 3,
            devices: 4,
            memory: 256 << 20,
            capability: 80,
            approximations: Approximations::Low,
            checks_written: false,
            version: 12_040,
            dump: Some("/x".into()),
            wrong: true,
            plans: vec![Plan { kind: PlanKind::Fault, kernel: "add".to_owned(), launch: 2 }],
            once: None,
        };
        assert_eq!(options, expected);
        let bad =
            ["seed", "devices=0", "devices=17", "fault=add:0", "memory=3X", "target=90", "approx=much", "colour=red"];
        for bad in bad.into_iter().chain(["memory=99999999999999999999G"]) {
            assert!(Options::parse(bad).unwrap_err().contains("is not understood"), "{bad}");
        }
    }
}
