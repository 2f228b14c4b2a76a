//! Work of streams and graphs, and its execution.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::handle::{Failure, Handle};
use super::pinned::Pinned;
use super::plans::Plans;
use super::random::Random;
use super::status::Status;

use crate::finding::{Class, Finding, Problem};
use crate::machine::{Launch, Memory, Outside, launch};
use crate::program::Program;

/// Kernel launch with checked arguments.
#[derive(Clone, Debug)]
pub(crate) struct KernelCall {
    /// Module of the kernel, so that it cannot be unloaded.
    pub module: Handle,
    pub program: Arc<Program>,
    /// Index of the kernel in the program.
    pub kernel: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: usize,
    pub parameters: Vec<u8>,
}

/// Source of a copy from the host.
#[derive(Clone, Debug)]
pub(crate) enum HostBytes {
    /// Copied when the call was made.
    Staged(Arc<Vec<u8>>),
    /// Address and size of pinned memory, which the device reads when the copy is executed.
    Pinned(usize, usize),
}

/// Work of a library in device memory.
#[derive(Clone)]
pub(crate) struct LibraryWork {
    /// Name of the call in messages.
    pub call: Arc<str>,
    pub run: Arc<MemoryWork>,
}

/// Function on device memory, run once for each submission or launch.
type MemoryWork = dyn Fn(&mut Memory) -> Result<(), Problem> + Send + Sync;

/// Barrier in a stream: later work waits until it is open, which depends on other devices.
#[derive(Clone)]
pub(crate) struct Gate(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl fmt::Debug for LibraryWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LibraryWork({})", self.call)
    }
}

/// Command of a stream or node of a graph.
#[derive(Clone, Debug)]
pub(crate) enum StreamWork {
    Kernel(Arc<KernelCall>),
    Library(LibraryWork),
    /// Waits for work of other devices.
    Gate(Gate),
    Upload {
        from: HostBytes,
        to: u64,
    },
    Download {
        from: u64,
        to: usize,
        bytes: usize,
    },
    Copy {
        from: u64,
        to: u64,
        bytes: usize,
    },
    /// Sets elements of 1, 2 or 4 bytes.
    Fill {
        to: u64,
        value: u32,
        size: usize,
        count: usize,
    },
    /// Waits until another stream has executed a given number of commands.
    Wait {
        stream: Handle,
        until: u64,
    },
    /// Writes the current time to an event.
    Stamp {
        event: Handle,
    },
    Nothing,
    Graph(Arc<GraphPlan>),
    /// Graph within a graph.
    Child(Arc<GraphPlan>),
    /// Graph that runs if, or while, a condition holds.
    Conditional {
        repeats: Repeats,
        condition: u64,
        body: Arc<GraphPlan>,
    },
}

/// Number of times that the body of a conditional node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Runs once, if the condition is not 0.
    Once,
    /// Runs while the condition is not 0.
    While,
}

/// Nodes of a graph, each with the indices of the nodes that it depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphPlan {
    pub nodes: Vec<(StreamWork, Vec<usize>)>,
    /// Conditions of the nodes, with their initial value in each launch, if there is one.
    pub conditions: Vec<(u64, Option<u32>)>,
}

impl StreamWork {
    /// Whether the work runs code of a module.
    pub fn uses_module(&self, module: Handle) -> bool {
        match self {
            StreamWork::Kernel(call) => call.module == module,
            StreamWork::Graph(plan) | StreamWork::Child(plan) | StreamWork::Conditional { body: plan, .. } => {
                plan.nodes.iter().any(|(work, _)| work.uses_module(module))
            }
            StreamWork::Library(_)
            | StreamWork::Upload { .. }
            | StreamWork::Download { .. }
            | StreamWork::Copy { .. } => false,
            StreamWork::Fill { .. } | StreamWork::Wait { .. } | StreamWork::Stamp { .. } => false,
            StreamWork::Gate(_) | StreamWork::Nothing => false,
        }
    }

    /// Returns the address of host memory that the work will read or write, if any.
    pub fn host_address(&self) -> Option<usize> {
        match self {
            StreamWork::Upload { from: HostBytes::Pinned(address, _), .. } => Some(*address),
            StreamWork::Download { to, .. } => Some(*to),
            _ => None,
        }
    }
}

/// State that work operates on.
pub(crate) struct Device {
    pub memory: Memory,
    pub pinned: Pinned,
    pub conditions: Conditions,
    pub random: Random,
    /// Folder for the PTX of kernels with findings.
    pub dump: Option<PathBuf>,
    pub plans: Plans,
    /// Nanoseconds of work other than kernels.
    pub elsewhere: u64,
}

/// Nanoseconds of a library call, whatever it does: long, so that measurements do not repeat it often.
const LIBRARY_CALL: u64 = 1_000_000;

/// Number of bytes copied or filled in a nanosecond.
const BYTES_IN_A_NANOSECOND: u64 = 64;

/// Conditions of the running graph's nodes.
#[derive(Debug, Default)]
pub(crate) struct Conditions(HashMap<u64, Option<u32>>);

impl Outside for Conditions {
    fn set_condition(&mut self, handle: u64, value: u32) -> bool {
        self.0.get_mut(&handle).map(|condition| *condition = Some(value)).is_some()
    }
}

impl Device {
    /// Returns the device's clock in nanoseconds: one for each instruction of each thread, plus the time of other work.
    /// It counts only executed work, so that equal work always takes an equal time.
    pub fn now(&self) -> u64 {
        self.memory.instructions() + self.elsewhere
    }

    /// Executes work that does not depend on other streams.
    pub fn perform(&mut self, work: &StreamWork) -> Result<(), Failure> {
        self.elsewhere += match work {
            StreamWork::Library(_) => LIBRARY_CALL,
            StreamWork::Upload { from: HostBytes::Staged(content), .. } => moved(content.len()),
            StreamWork::Upload { from: HostBytes::Pinned(_, bytes), .. }
            | StreamWork::Download { bytes, .. }
            | StreamWork::Copy { bytes, .. } => moved(*bytes),
            StreamWork::Fill { size, count, .. } => moved(size * count),
            StreamWork::Kernel(_)
            | StreamWork::Gate(_)
            | StreamWork::Wait { .. }
            | StreamWork::Stamp { .. }
            | StreamWork::Nothing
            | StreamWork::Graph(_)
            | StreamWork::Child(_)
            | StreamWork::Conditional { .. } => 0,
        };
        match work {
            StreamWork::Kernel(call) => self.launch(call),
            StreamWork::Library(work) => (work.run)(&mut self.memory).map_err(|problem| {
                let (status, why) = failure(problem);
                (status, format!("{}: {why}", work.call))
            }),
            StreamWork::Upload { from, to } => {
                let bytes = match from {
                    HostBytes::Staged(bytes) => bytes.to_vec(),
                    HostBytes::Pinned(address, bytes) => {
                        self.pinned.read(*address, *bytes).ok_or_else(|| freed(*address))?
                    }
                };
                self.memory.write(*to, &bytes).map_err(failure)
            }
            StreamWork::Download { from, to, bytes } => {
                let content = self.memory.read(*from, *bytes).map_err(failure)?;
                if self.pinned.write(*to, content) { Ok(()) } else { Err(freed(*to)) }
            }
            StreamWork::Copy { from, to, bytes } => self.memory.copy(*from, *to, *bytes).map_err(failure),
            StreamWork::Fill { to, value, size: 1, count } => {
                self.memory.fill(*to, *value as u8, *count).map_err(failure)
            }
            StreamWork::Fill { to, value, size, count } => {
                let element = &value.to_le_bytes()[..*size];
                self.memory.write(*to, &element.repeat(*count)).map_err(failure)
            }
            // The driver writes the time of an event.
            StreamWork::Stamp { .. } | StreamWork::Wait { .. } | StreamWork::Gate(_) | StreamWork::Nothing => Ok(()),
            StreamWork::Graph(plan) => {
                self.conditions.0 = plan.conditions.iter().copied().collect();
                let done = self.run(plan);
                self.conditions.0.clear();
                done
            }
            StreamWork::Child(plan) => self.run(plan),
            StreamWork::Conditional { repeats, condition, body } => self.conditional(*repeats, *condition, body),
        }
    }

    fn conditional(&mut self, repeats: Repeats, condition: u64, body: &GraphPlan) -> Result<(), Failure> {
        loop {
            match self.conditions.0.get(&condition) {
                Some(Some(0)) => return Ok(()),
                Some(Some(_)) => self.run(body)?,
                Some(None) => {
                    let message = "a node of a graph looks at a condition that this launch has not set yet";
                    return Err((Status::LAUNCH_FAILED, message.to_owned()));
                }
                None => return Err((Status::LAUNCH_FAILED, "a node's condition is another graph's".to_owned())),
            }
            if repeats == Repeats::Once {
                return Ok(());
            }
        }
    }

    /// Executes nodes in any order that their dependencies allow.
    fn run(&mut self, plan: &GraphPlan) -> Result<(), Failure> {
        let mut missing: Vec<usize> = plan.nodes.iter().map(|(_, before)| before.len()).collect();
        let mut behind = vec![Vec::new(); plan.nodes.len()];
        for (number, (_, before)) in plan.nodes.iter().enumerate() {
            before.iter().for_each(|&earlier| behind[earlier].push(number));
        }
        let mut ready: Vec<usize> = (0..plan.nodes.len()).filter(|&number| missing[number] == 0).collect();
        let mut done = 0;
        while !ready.is_empty() {
            let number = ready.swap_remove(self.random.below(ready.len()));
            self.perform(&plan.nodes[number].0)?;
            done += 1;
            for &next in &behind[number] {
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        if done == plan.nodes.len() { Ok(()) } else { Err((Status::LAUNCH_FAILED, "a graph has a circle".to_owned())) }
    }

    fn launch(&mut self, call: &KernelCall) -> Result<(), Failure> {
        let kernel = &call.program.kernels()[call.kernel];
        self.plans.launch(&kernel.name)?;
        let how = Launch {
            kernel,
            grid: call.grid,
            block: call.block,
            dynamic_shared: call.dynamic_shared,
            parameters: &call.parameters,
            backwards: self.random.below(2) == 1,
        };
        launch(&mut self.memory, &how, &mut self.conditions)
            .map_err(|finding| (status_of(finding.problem.class), self.described(&finding, call)))
    }

    /// Describes a finding with the line of PTX, and the file with the whole text.
    fn described(&self, finding: &Finding, call: &KernelCall) -> String {
        let text = call.program.text();
        let line = text.lines().nth((finding.line as usize).saturating_sub(1)).unwrap_or_default();
        let mut told = format!("{finding} ({})", line.split_whitespace().collect::<Vec<_>>().join(" "));
        if let Some(folder) = &self.dump {
            let file = folder.join(format!("{}.ptx", finding.kernel));
            match std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text)) {
                Ok(()) => told += &format!("; the module is in {}", file.display()),
                Err(error) => told += &format!("; the module cannot be written to {}: {error}", file.display()),
            }
        }
        told
    }
}

/// Returns the nanoseconds that a transfer of bytes takes.
fn moved(bytes: usize) -> u64 {
    1 + bytes as u64 / BYTES_IN_A_NANOSECOND
}

fn freed(address: usize) -> Failure {
    (Status::ILLEGAL_ADDRESS, format!("a copy wants host memory at {address:#x} that is not pinned any more"))
}

fn failure(problem: Problem) -> Failure {
    (status_of(problem.class), format!("{}: {}", problem.class.tool(), problem.message))
}

/// Returns the status for a class of findings.
fn status_of(class: Class) -> Status {
    match class {
        Class::Bounds => Status::ILLEGAL_ADDRESS,
        Class::Alignment => Status::MISALIGNED_ADDRESS,
        Class::Endless => Status::LAUNCH_TIMEOUT,
        Class::Unwritten | Class::Race | Class::Synchronization | Class::Trap | Class::Launch => Status::LAUNCH_FAILED,
    }
}
