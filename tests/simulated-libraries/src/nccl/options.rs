//! Options of the library, from the environment variable `SIMULATED_NCCL`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use simulated_gpu::libraries::tell;

/// Name of the environment variable.
const VARIABLE: &str = "SIMULATED_NCCL";

/// Form of the options in error messages.
const FORM: &str = "version=2.28.3,log=FILE,fault=CALL:2,stuck=CALL:2,async=CALL:2";

/// Options of the library.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Number that `ncclGetVersion` returns.
    pub version: Option<i32>,
    /// File that a line for each call is appended to.
    pub log: Option<PathBuf>,
    plans: Vec<Plan>,
}

/// Planned failure of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    failure: Failure,
    call: String,
    /// Number of the call, counted from 1.
    number: u64,
}

/// Kind of a planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The call returns an error.
    Fault,
    /// The work never ends, unless it is aborted.
    Stuck,
    /// As [`Failure::Stuck`], and the communicator reports an error.
    Async,
}

impl Options {
    /// Returns the options of this process. Options that cannot be parsed are reported and ignored.
    pub fn get() -> &'static Options {
        static OPTIONS: OnceLock<Options> = OnceLock::new();
        OPTIONS.get_or_init(|| {
            Options::parse(&std::env::var(VARIABLE).unwrap_or_default()).unwrap_or_else(|sentence| {
                tell(&sentence);
                Options::default()
            })
        })
    }

    pub fn parse(text: &str) -> Result<Options, String> {
        let mut options = Options::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad = || format!("{VARIABLE}: `{part}` is not understood: {FORM}");
            let (name, value) = part.split_once('=').ok_or_else(bad)?;
            let failure = match name {
                "version" => {
                    options.version = Some(version(value).ok_or_else(bad)?);
                    continue;
                }
                "log" => {
                    options.log = Some(value.into());
                    continue;
                }
                "fault" => Failure::Fault,
                "stuck" => Failure::Stuck,
                "async" => Failure::Async,
                _ => return Err(bad()),
            };
            let (call, number) = value.split_once(':').ok_or_else(bad)?;
            let number = number.parse().ok().filter(|number| *number > 0).ok_or_else(bad)?;
            options.plans.push(Plan { failure, call: call.to_owned(), number });
        }
        Ok(options)
    }

    /// Counts a call; returns the failure that is planned for it.
    pub fn called(&self, call: &str) -> Option<Failure> {
        static CALLS: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match calls.iter_mut().find(|(name, _)| name == call) {
            Some((_, number)) => {
                *number += 1;
                *number
            }
            None => {
                calls.push((call.to_owned(), 1));
                1
            }
        };
        self.plans.iter().find(|plan| plan.call == call && plan.number == number).map(|plan| plan.failure)
    }

    /// Appends a line to the log.
    pub fn record(&self, line: &str) {
        static FILE: Mutex<()> = Mutex::new(());
        let Some(file) = &self.log else { return };
        let _one_at_a_time = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
        if let Err(error) = opened.and_then(|mut file| writeln!(file, "{line}")) {
            tell(&format!("{} cannot be written: {error}", file.display()));
        }
    }
}

/// Returns the number of a version, as NVIDIA's header computes it.
fn version(text: &str) -> Option<i32> {
    let parts: Vec<i32> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [major, minor, patch] = parts[..] else { return None };
    let thousands = if (major, minor) <= (2, 8) { 1000 } else { 10_000 };
    Some(major * thousands + minor * 100 + patch)
}
