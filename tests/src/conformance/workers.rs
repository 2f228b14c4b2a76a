//! Cases in separate processes: a case that loses the device, dies or hangs does not affect others.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use xla::{Error, Platform, Result};
use xla_hlo::{ElementType, Opcode};

use super::Suite;
use super::case::{Case, Notes, Stop};
use super::one::{Raw, not_ended, one};
use super::pseudo;
use crate::coverage::Status;
use crate::differential::FailureKind;
use crate::isolated::Isolated;

/// Result of a case, as a line of JSON. The request is the case's identifier.
#[derive(Debug, Serialize, Deserialize)]
struct Reply {
    stop: Option<Stop>,
    status: Option<Status>,
    /// Operations that the host evaluates, by their names.
    fallbacks: Vec<Vec<(String, String)>>,
    seconds: f64,
    /// Reason why the device is no longer usable.
    lost: Option<String>,
}

/// Process that runs the cases of a thread; it is replaced when it is no longer usable.
pub(super) struct Worker {
    isolated: Isolated,
    patience: Duration,
}

impl Worker {
    pub fn new(command: &[String], patience: Duration) -> Worker {
        Worker { isolated: Isolated::new(command.to_vec(), patience), patience }
    }

    /// Runs a case in the existing process, or in a new one if that is no longer usable.
    pub fn run(&mut self, case: &Arc<Case>) -> Raw {
        let started = Instant::now();
        let (check, notes, time) = match self.isolated.exchange::<Reply>(&case.id) {
            Ok(Ok(reply)) => {
                let (notes, time) = (reply.notes(), Duration::try_from_secs_f64(reply.seconds).unwrap_or_default());
                (self.judge(reply), notes, time)
            }
            Ok(Err(failure)) => {
                let stop = match failure.kind {
                    FailureKind::Hang => not_ended(self.patience),
                    _ => Stop::Lost(format!("its process died: {}", failure.message)),
                };
                (Err(stop), Notes::default(), started.elapsed())
            }
            Err(error) => {
                let stop = Stop::Failed(format!("no process could be started: {error}"));
                (Err(stop), Notes::default(), started.elapsed())
            }
        };
        (case.clone(), check, notes, time)
    }

    /// Converts the reply; ends the process if its device is lost.
    fn judge(&mut self, reply: Reply) -> std::result::Result<(), Stop> {
        let Some(lost) = reply.lost else { return reply.stop.map_or(Ok(()), Err) };
        let said = match reply.stop {
            Some(Stop::Failed(message) | Stop::Lost(message) | Stop::Hung(message)) => message,
            Some(Stop::Skipped(_)) | None => "the case itself went well".to_string(),
        };
        let words = self.isolated.end().words;
        let words = if words.is_empty() { words } else { format!("\n{words}") };
        Err(Stop::Lost(format!("it lost the device: {said}\nafterwards: {lost}{words}")))
    }
}

impl Reply {
    fn new((_, check, notes, time): Raw, lost: Option<String>) -> Reply {
        let names = |(opcode, ty): &(Opcode, ElementType)| (opcode.name().to_string(), ty.name().to_string());
        let fallbacks = notes.fallbacks.iter().map(|operations| operations.iter().map(names).collect()).collect();
        Reply { stop: check.err(), status: notes.status, fallbacks, seconds: time.as_secs_f64(), lost }
    }

    fn notes(&self) -> Notes {
        let known = |(opcode, ty): &(String, String)| Some((Opcode::from_name(opcode)?, ElementType::from_name(ty)?));
        let fallbacks = self.fallbacks.iter().map(|names| names.iter().filter_map(known).collect()).collect();
        Notes { status: self.status.clone(), fallbacks }
    }
}

/// Runs the requested cases of the suite. The requesting process enforces the time limit.
pub(super) fn serve(suite: &Suite, requests: impl BufRead, mut replies: impl Write) -> Result<()> {
    let failed = |error: std::io::Error| Error::internal(format!("the process that asks is gone: {error}"));
    let registry = pseudo::with_pseudo_platforms(&suite.registry, &suite.platform)?;
    let platform = registry.get(&suite.platform)?;
    let cases: HashMap<String, Arc<Case>> =
        suite.listed().into_iter().map(|case| (case.id.clone(), Arc::new(case))).collect();
    let mut was_usable = false;
    for line in requests.lines() {
        let id: String = serde_json::from_str(&line.map_err(failed)?)
            .map_err(|error| Error::invalid_argument(format!("a request is the identifier of a case: {error}")))?;
        let case = cases.get(&id).ok_or_else(|| Error::invalid_argument(format!("there is no case {id}")))?;
        was_usable |= usable(&*platform).is_ok();
        let result = one(&suite.platform, &registry, case, Duration::MAX);
        let lost = usable(&*platform).err().filter(|_| was_usable).map(|error| error.to_string());
        let reply = serde_json::to_string(&Reply::new(result, lost));
        let reply = reply.map_err(|error| Error::internal(error.to_string()))?;
        writeln!(replies, "{reply}").and_then(|()| replies.flush()).map_err(failed)?;
    }
    Ok(())
}

/// Returns an error unless the platform's first device accepts work.
fn usable(platform: &dyn Platform) -> Result<()> {
    platform.executor(0)?.create_stream()?.synchronize()
}
