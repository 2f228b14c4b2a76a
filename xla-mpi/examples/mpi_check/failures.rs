//! Processes that fail, do not arrive, or end.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::{ElementType, Error, Result};
use xla_mpi::Mpi;
use xla_service::collective::processes::Transport;
use xla_service::collective::{CollectiveRun, CollectiveSpec, Operation, Part, RunKey, Timeouts};

use crate::job::{Job, PROCESSES, transport};
use crate::support::{Member, PROMPT, execute_member, instruction, key};

const SHORT: Timeouts = Timeouts { warn: Duration::from_millis(500), end: Duration::from_secs(2) };

/// Gathers an array of all devices.
fn gather(job: &Job, run: RunKey, bytes: usize) -> Result<()> {
    let devices: Vec<usize> = (0..PROCESSES).collect();
    let part = Part::whole(ElementType::U8, bytes);
    let spec = CollectiveSpec::new(Operation::AllGather, vec![part], PROCESSES)?.into();
    let member = Member::new(vec![vec![job.rank as u8; bytes]]);
    execute_member(&*job.engine, &key(run, &devices), job.rank, &spec, &member).map(drop)
}

/// Returns an error unless the text of a failure contains this.
fn expect(result: Result<()>, text: &str) -> Result<()> {
    match result {
        Err(error) if error.to_string().contains(text) => Ok(()),
        other => Err(Error::internal(format!("expected an error with '{text}', not {other:?}"))),
    }
}

/// Process 1 does not arrive, for longer than the time-out.
pub fn stuck() -> Result<()> {
    let job = Job::new(1, SHORT)?;
    gather(&job, RunKey(1), 100_000)?;
    let start = Instant::now();
    if job.rank == 1 {
        thread::sleep(SHORT.end + Duration::from_secs(2));
        // The run was aborted in the meantime.
        return expect(gather(&job, RunKey(2), 100_000), "devices 1 (rank 1) of process 1");
    }
    let result = gather(&job, RunKey(2), 100_000);
    let waited = start.elapsed();
    if waited > SHORT.end + PROMPT {
        return Err(Error::internal(format!("waited {waited:?}")));
    }
    if job.rank == 0 {
        println!("after {waited:.1?}: {}", result.as_ref().err().map(Error::to_string).unwrap_or_default());
    }
    expect(result, "devices 1 (rank 1) of process 1, pid")
}

/// The system stops all threads of process 1 for longer than the time-out.
pub fn frozen() -> Result<()> {
    let job = Job::new(1, SHORT)?;
    gather(&job, RunKey(1), 100_000)?;
    if job.rank == 1 {
        let script = format!("kill -STOP {0}; sleep 4; kill -CONT {0}", std::process::id());
        let io = |error| Error::failed_precondition(format!("cannot run sh: {error}"));
        let mut shell = Command::new("sh").args(["-c", &script]).spawn().map_err(io)?;
        shell.wait().map_err(io)?;
    }
    let result = gather(&job, RunKey(2), 100_000);
    if job.rank == 0 {
        println!("{}", result.as_ref().err().map(Error::to_string).unwrap_or_default());
    }
    expect(result, "devices 1 (rank 1) of process 1, pid")
}

/// The program of device 1 fails while the others wait.
pub fn abort() -> Result<()> {
    let job = Job::new(1, Timeouts::default())?;
    let run = CollectiveRun::new(job.engine.clone(), RunKey(1));
    gather(&job, RunKey(2), 10)?;
    let start = Instant::now();
    let program = || {
        if job.rank == 1 {
            thread::sleep(Duration::from_millis(500));
            return Err(Error::resource_exhausted("no memory"));
        }
        let _ = run.clique(&instruction(), &[0, 1, 2, 3].into())?;
        gather(&job, RunKey(1), 10)
    };
    let result = run.device(job.rank, program);
    let waited = start.elapsed();
    if waited > PROMPT {
        return Err(Error::internal(format!("the abort took {waited:?}")));
    }
    if job.rank == 0 {
        println!("after {waited:.1?}: {}", result.as_ref().err().map(Error::to_string).unwrap_or_default());
    }
    expect(result, if job.rank == 1 { "no memory" } else { "device 1: no memory" })
}

/// Process 1 connects a client of another platform.
pub fn platforms() -> Result<()> {
    let rank = transport()?.rank();
    let platform = if rank == 1 { "gpu" } else { "cpu" };
    let result = Mpi::new(platform, PROCESSES, Duration::from_secs(30)).map(drop);
    if rank == 0 {
        println!("{}", result.as_ref().err().map(Error::to_string).unwrap_or_default());
    }
    let (other, own) = if rank == 1 { ("cpu", "gpu") } else { ("gpu", "cpu") };
    expect(result, &format!("connects a client of platform {other}, but this process connects one of platform {own}"))
}

/// Process 1 is killed while the others wait. Most launchers then end them; otherwise they end by the time-out.
pub fn killed() -> Result<()> {
    let job = Job::new(1, SHORT)?;
    gather(&job, RunKey(1), 100_000)?;
    if job.rank == 1 {
        std::process::abort();
    }
    match gather(&job, RunKey(2), 100_000) {
        Ok(()) => Err(Error::internal("a collective succeeded without process 1")),
        Err(error) => {
            eprintln!("process {}: {error}", job.rank);
            expect(Err(error), "process 1")
        }
    }
}
