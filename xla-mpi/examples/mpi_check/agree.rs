//! Random collectives equal the evaluator's.

use std::thread;

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::{ElementType, Error, Literal, Result};
use xla_service::collective::{CollectiveSpec, RunKey, Timeouts};

use crate::cases::{Case, KINDS, Kind, is_same_array};
use crate::job::{Job, PROCESSES};
use crate::support::{Member, Random, execute_member, key};

/// Runs programs of every kind and element type, as all processes do.
pub fn run(devices: usize) -> Result<()> {
    let job = Job::new(devices, Timeouts::default())?;
    let mut programs = 0;
    for (i, &kind) in KINDS.iter().enumerate() {
        for (t, &ty) in ElementType::ALL.iter().enumerate() {
            for seed in 0..2 {
                let run = 100_000 * i as u64 + 1000 * t as u64 + seed;
                programs += usize::from(check(&job, kind, ty, run)?);
            }
        }
    }
    if job.rank == 0 {
        println!("{programs} programs over {PROCESSES} processes with {devices} devices each agree with the evaluator");
    }
    Ok(())
}

/// Checks one program. Returns `false` if it needs more devices than there are.
fn check(job: &Job, kind: Kind, ty: ElementType, run: u64) -> Result<bool> {
    let random = &mut Random(run);
    let case = Case::random(kind, ty, random);
    let count = Grid::of(&case.module)?.device_count();
    if count > PROCESSES * job.devices {
        return Ok(false);
    }
    let shapes = case.parameters();
    let mut argument = |number: usize| case.argument(number, &shapes[number], random);
    let arguments: Vec<Vec<Literal>> = (0..count).map(|_| (0..shapes.len()).map(&mut argument).collect()).collect();
    let expected = grid::evaluate(&case.module, arguments.clone())?;
    // Logical devices in another order than the processes.
    let order = random.order(PROCESSES * job.devices);
    for (group, number) in case.groups.iter().zip(0..) {
        let spec = case.spec(group.len());
        let members: Vec<Member> = group.iter().map(|&device| case.member(&arguments[device])).collect();
        let devices: Vec<usize> = group.iter().map(|&device| order[device]).collect();
        let key = &key(RunKey(1000 * run + number), &devices);
        let execute = |rank: usize| {
            let results = execute_member(&*job.engine, key, rank, &spec, &members[rank])?;
            compare(&case, &spec, &expected[group[rank]], &results)
        };
        let local = (0..group.len()).filter(|&rank| job.local().any(|device| device == devices[rank]));
        thread::scope(|scope| -> Result<()> {
            let threads: Vec<_> = local.map(|rank| scope.spawn(move || execute(rank))).collect();
            let panicked = |_| Error::internal("a device panicked");
            threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
        })?;
        job.engine.finish(key.run());
    }
    Ok(true)
}

fn compare(case: &Case, spec: &CollectiveSpec, expected: &Literal, results: &[Vec<u8>]) -> Result<()> {
    for (leaf, result) in expected.leaves().iter().zip(results) {
        if !is_same_array(case, leaf.array_shape().element_type(), leaf.bytes(), result) {
            return Err(Error::internal(format!("{spec} returned {result:?}, expected {leaf:?}\n{}", *case.module)));
        }
    }
    Ok(())
}
