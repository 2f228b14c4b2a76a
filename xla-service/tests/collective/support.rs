//! Random numbers, and execution of a collective with one thread for each member.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use xla_hlo::{ElementType, Result, Scalar};
use xla_service::CancelToken;
use xla_service::collective::{
    CliqueKey, CollectiveCall, CollectiveEngine, CollectiveSpec, InProcess, InstructionKey, MemberArguments, RunKey,
    Source, Target,
};

/// Longest time between a failure and the end of all members on a loaded machine, a quarter of the default time-out.
pub const PROMPT: Duration = Duration::from_secs(10);

/// Generator of pseudo-random numbers (splitmix64).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns the numbers below `count` in random order.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|i| order.swap(i, self.below(i + 1)));
        order
    }

    /// Returns a small integer of the type.
    pub fn small_scalar(&mut self, ty: ElementType) -> Scalar {
        Scalar::from_i64(ty, self.below(4) as i64).rounded(ty)
    }

    /// Returns a random value: every fourth one has random bits, among them NaNs and infinities.
    pub fn scalar(&mut self, ty: ElementType) -> Scalar {
        let bits = self.next();
        if ty.is_complex() {
            let part = |scalar| match scalar {
                Scalar::Float(x) => x,
                _ => f64::NAN,
            };
            return Scalar::Complex(part(self.scalar(ty.real_part())), part(self.scalar(ty.real_part())));
        }
        match bits.is_multiple_of(4) || !ty.is_float() {
            true => Scalar::from_bits(ty, self.next()),
            false => Scalar::Float((bits >> 40) as f64 / 4e6 - 2.0).rounded(ty),
        }
    }
}

/// Operands of a member, and values that it has computed for the operation.
pub struct Member {
    pub operands: Vec<Vec<u8>>,
    pub arguments: MemberArguments,
}

impl Member {
    pub fn new(operands: Vec<Vec<u8>>) -> Member {
        Member { operands, arguments: MemberArguments::None }
    }
}

pub fn instruction() -> Arc<InstructionKey> {
    Arc::new(InstructionKey { name: "collective.1".into(), channel: None })
}

pub fn key(run: RunKey, devices: &[usize]) -> CliqueKey {
    CliqueKey::new(run, instruction(), devices.into()).unwrap()
}

/// Calls `f` with each number below `count`, each on its own thread. Returns the results.
pub fn on_threads<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let f = &f;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|i| scope.spawn(move || f(i))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Executes a collective among devices 0, 1, ..., which arrive in a random order. Returns the results of each.
pub fn execute(spec: &Arc<CollectiveSpec>, members: &[Member], random: &mut Random) -> Result<Vec<Vec<Vec<u8>>>> {
    let engine = InProcess::default();
    let run = RunKey::next();
    let delays: Vec<usize> = members.iter().map(|_| random.below(3) * random.below(2000)).collect();
    let devices: Vec<usize> = (0..members.len()).collect();
    let results = on_threads(members.len(), |rank| {
        (0..delays[rank]).for_each(|_| std::hint::spin_loop());
        execute_member(&engine, &key(run, &devices), rank, spec, &members[rank])
    });
    engine.finish(run);
    results.into_iter().collect()
}

/// Executes a collective as one member. The initial bytes of results are `0xa5`.
pub fn execute_member(
    engine: &dyn CollectiveEngine,
    key: &CliqueKey,
    rank: usize,
    spec: &Arc<CollectiveSpec>,
    member: &Member,
) -> Result<Vec<Vec<u8>>> {
    let mut results: Vec<Vec<u8>> = spec.result_bytes().map(|bytes| vec![0xa5; bytes]).collect();
    let call = CollectiveCall {
        spec,
        operands: member.operands.iter().map(|bytes| Source::from(&bytes[..])).collect(),
        results: results.iter_mut().map(|bytes| Target::from(&mut bytes[..])).collect(),
        arguments: member.arguments.clone(),
        cancel: &CancelToken::never(),
    };
    engine.clique(key)?.run(rank, call)?;
    Ok(results)
}
