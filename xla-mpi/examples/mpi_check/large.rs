//! Arrays that are sent in announced messages, against the engine of one process.

use std::sync::Arc;
use std::thread;

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Error, Result};
use xla_service::collective::{CollectiveSpec, MemberArguments, Operation, Part, Reduction, RunKey, Timeouts};

use crate::job::{Job, PROCESSES};
use crate::support::{Member, Random, execute, execute_member, key};

/// Numbers of elements: messages of some KiB to some MiB, and in several pieces.
const COUNTS: [usize; 3] = [5_000, 200_003, 1_100_001];

/// Runs operations of every kind on large arrays, as all processes do.
pub fn run(devices: usize) -> Result<()> {
    let job = Job::new(devices, Timeouts::default())?;
    let sum = || Reduction::simple(BinaryOp::Add, ElementType::S32);
    let operations = [
        (Operation::AllReduce(sum()), MemberArguments::None),
        (Operation::ReduceScatter(sum()), MemberArguments::None),
        (Operation::AllGather, MemberArguments::None),
        (Operation::AllToAll, MemberArguments::None),
        (Operation::Permute(vec![(0, 1), (3, 0), (2, 3)]), MemberArguments::None),
        (Operation::Broadcast, MemberArguments::Root(2)),
    ];
    let mut run = 0;
    for count in COUNTS {
        for (operation, arguments) in &operations {
            run += 1;
            let parts = vec![Part::whole(ElementType::S32, count)];
            let spec = Arc::new(CollectiveSpec::new(operation.clone(), parts, PROCESSES * devices)?);
            check(&job, &spec, arguments, run)?;
        }
    }
    if job.rank == 0 {
        println!("{run} collectives on large arrays over {} devices agree with one process", PROCESSES * devices);
    }
    Ok(())
}

fn check(job: &Job, spec: &Arc<CollectiveSpec>, arguments: &MemberArguments, run: u64) -> Result<()> {
    let random = &mut Random(run);
    let mut array = |bytes: usize| {
        let mut array = vec![0; bytes];
        array.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]));
        array
    };
    let mut member =
        |_| Member { operands: spec.operand_bytes().map(&mut array).collect(), arguments: arguments.clone() };
    let members: Vec<Member> = (0..spec.members()).map(&mut member).collect();
    let expected = execute(spec, &members, &mut Random(run))?;
    let devices: Vec<usize> = (0..spec.members()).collect();
    let key = &key(RunKey(run), &devices);
    let execute = |rank: usize| match execute_member(&*job.engine, key, rank, spec, &members[rank])? == expected[rank] {
        true => Ok(()),
        false => Err(Error::internal(format!("rank {rank} of {spec} has another result than in one process"))),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = job.local().map(|rank| scope.spawn(move || execute(rank))).collect();
        let panicked = |_| Error::internal("a device panicked");
        threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    job.engine.finish(key.run());
    Ok(())
}
