//! Times of all-reduces over four processes.

use std::sync::Arc;
use std::time::Instant;

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result};
use xla_service::CancelToken;
use xla_service::collective::{
    CollectiveCall, CollectiveSpec, Communicator, MemberArguments, Operation, Part, Reduction, RunKey, Source, Target,
    Timeouts,
};

use crate::job::{Job, PROCESSES};
use crate::support::key;

/// Prints the median for some sizes.
pub fn run() -> Result<()> {
    let job = Job::new(1, Timeouts::default())?;
    let devices: Vec<usize> = (0..PROCESSES).collect();
    let clique = &*job.engine.clique(&key(RunKey(1), &devices))?;
    for (bytes, repetitions) in [(1 << 10, 300), (64 << 10, 100), (1 << 20, 40), (64 << 20, 7)] {
        let sum = Reduction::simple(BinaryOp::Add, ElementType::F32);
        let part = Part::whole(ElementType::F32, bytes / 4);
        let spec = Arc::new(CollectiveSpec::new(Operation::AllReduce(sum), vec![part], PROCESSES)?);
        let (operand, mut result) = (1.0_f32.to_le_bytes().repeat(bytes / 4), vec![0; bytes]);
        let time = median(repetitions, || all_reduce(clique, job.rank, &spec, &operand, &mut result))?;
        assert!(result == (PROCESSES as f32).to_le_bytes().repeat(bytes / 4));
        if job.rank == 0 {
            println!("all-reduce of {bytes} bytes over {PROCESSES} processes: {time:.1} us");
        }
    }
    Ok(())
}

fn all_reduce(
    clique: &dyn Communicator,
    rank: usize,
    spec: &Arc<CollectiveSpec>,
    operand: &[u8],
    result: &mut [u8],
) -> Result<()> {
    let (operands, results) = (vec![Source::from(operand)], vec![Target::from(result)]);
    let (arguments, cancel) = (MemberArguments::None, &CancelToken::never());
    clique.run(rank, CollectiveCall { spec, operands, results, arguments, cancel })
}

/// Returns the median time in microseconds.
fn median(repetitions: usize, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = vec![];
    for _ in 0..repetitions + 2 {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.drain(..2);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
