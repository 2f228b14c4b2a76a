//! Program of a few steps, each of which calls the host and then adds up the values of all devices. A device fails in a
//! given step, or before the first one because of its argument.

use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use xla::{ArrayShape, Buffer, Client, CompileOptions, LoadedExecutable, PlatformRegistry};
use xla_hlo::ElementType::{F32, S32};
use xla_hlo::ops::{CustomCallContext, RunContext};
use xla_hlo::text::parse_module;
use xla_hlo::{Error, Literal, Result, Scalar, VerifiedModule};
use xla_service::{DeviceResults, Dispatch, ExecuteOptions};

use crate::generate::Random;

const TEXT: &str = include_str!("steps.hlo");

/// Number of steps.
const STEPS: usize = 4;

/// Number of elements of the argument of a device.
const ELEMENTS: usize = 4;

/// Text of each error of a fault.
const CAUSE: &str = "fault of the campaign";

/// Time of the failure of a launch, which its handlers share.
type Moment = Arc<OnceLock<Instant>>;

/// Failure of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The handler returns an error in this step.
    Error(usize),
    /// The handler panics in this step.
    Panic(usize),
    /// An argument has failed before the launch.
    Argument,
}

impl Fault {
    pub fn random(random: &mut Random) -> Fault {
        let step = random.below(STEPS);
        random.pick(&[Fault::Error(step), Fault::Panic(step), Fault::Argument])
    }

    /// Encodes the fault for the handler: its step and whether it panics. `None` encodes a device that does not fail.
    fn encoded(fault: Option<Fault>) -> [i64; 2] {
        match fault {
            Some(Fault::Error(step)) => [step as i64, 0],
            Some(Fault::Panic(step)) => [step as i64, 1],
            Some(Fault::Argument) | None => [-1, 0],
        }
    }
}

/// Registers the handler of the program.
pub(super) fn register(registry: &PlatformRegistry) {
    registry.custom_calls().register("launches.step", Arc::new(handler));
}

fn handler(context: &CustomCallContext<'_>, mut operands: Vec<Literal>) -> Result<Literal> {
    let [step, fault, _] = &operands[..] else {
        return Err(Error::internal(format!("the handler of a step has {} operands", operands.len())));
    };
    if step.get(0) != fault.get(0) {
        return Ok(operands.swap_remove(2));
    }
    if let Some(moment) = context.run().get::<Moment>() {
        let _ = moment.set(Instant::now());
    }
    if fault.get(1) == Scalar::Signed(1) {
        // Without the panic hook, whose backtrace takes long.
        resume_unwind(Box::new(CAUSE));
    }
    Err(Error::invalid_argument(CAUSE))
}

/// Compiles the program for a number of devices.
pub(super) fn compile(client: &Client, devices: usize) -> Result<LoadedExecutable> {
    let text = TEXT.replace("DEVICES", &devices.to_string()).replace("STEPS", &STEPS.to_string());
    client.compile(&VerifiedModule::new(parse_module(&text)?)?, &CompileOptions::default())
}

/// Launch of the program.
pub(super) struct Launch {
    results: Vec<DeviceResults>,
    moment: Moment,
    /// Partition that fails.
    failing: Option<usize>,
    /// Place of the failing partition in errors.
    place: String,
    expected: Literal,
}

impl Launch {
    /// Launches the program. Partition `fault.0` fails.
    pub fn start(program: &LoadedExecutable, fault: Option<(usize, Fault)>, dispatch: Dispatch) -> Result<Launch> {
        let moment = Moment::default();
        let of = |partition: usize| fault.filter(|fault| fault.0 == partition).map(|fault| fault.1);
        let lists = program.devices().enumerate().map(|(partition, device)| {
            let [step, panics] = Fault::encoded(of(partition));
            let plan = Literal::from_fn(&ArrayShape::new(S32, [2]), |i| Scalar::Signed([step, panics][i]))?;
            let value = Literal::from_fn(&ArrayShape::new(F32, [ELEMENTS]), |_| Scalar::Float((partition + 1) as f64))?;
            let plan = device.buffer_of_shape(&plan, plan.array_shape())?;
            let value = match of(partition) {
                Some(Fault::Argument) => device.errored_buffer(value.array_shape(), Error::invalid_argument(CAUSE))?,
                _ => device.buffer_of_shape(&value, value.array_shape())?,
            };
            Ok([plan, value])
        });
        let buffers: Vec<[Buffer; 2]> = lists.collect::<Result<_>>()?;
        let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
        let context = Some(Arc::new(RunContext::new(0).with(moment.clone())));
        let failing = fault.map(|fault| fault.0);
        let ids = program.device_ids();
        let place = failing.map_or_else(String::new, |partition| {
            format!("device {} (replica 0, partition {partition})", ids[partition])
        });
        let count = ids.len() as f64;
        let sum = (1.0 + count) * count / 2.0 * count.powi(STEPS as i32 - 1);
        let expected = Literal::from_fn(&ArrayShape::new(F32, [ELEMENTS]), |_| Scalar::Float(sum))?;
        if matches!(fault, Some((_, Fault::Argument))) {
            let _ = moment.set(Instant::now());
        }
        let options = ExecuteOptions { dispatch, context, ..ExecuteOptions::default() };
        let results = program.launch(&lists, &options)?;
        Ok(Launch { results, moment, failing, place, expected })
    }

    /// Waits for the end. Returns a problem, and the time since the failure of a launch that fails.
    pub fn finish(self) -> (Option<String>, Option<Duration>) {
        let outcomes: Vec<Result<()>> = self.results.iter().map(|result| result.completion().wait()).collect();
        let time = self.moment.get().map(Instant::elapsed);
        match self.failing {
            Some(_) if time.is_none() => (Some("the faulty step was not executed".into()), None),
            Some(_) => (self.problem_of_failure(outcomes), time),
            None => (
                outcomes
                    .into_iter()
                    .collect::<Result<()>>()
                    .map_or_else(|e| Some(e.to_string()), |()| self.problem_of_values()),
                None,
            ),
        }
    }

    /// Checks that all devices have one error, which names the failing partition.
    fn problem_of_failure(&self, outcomes: Vec<Result<()>>) -> Option<String> {
        let buffers = self.results.iter().flat_map(|result| &result.buffers);
        let of_buffers = buffers.map(|buffer| buffer.to_literal().map(drop));
        let mut first: Option<String> = None;
        for outcome in outcomes.into_iter().chain(of_buffers) {
            let Err(error) = outcome else { return Some("a device succeeded, although another one failed".into()) };
            let text = error.to_string();
            if first.as_ref().is_some_and(|first| *first != text) {
                return Some(format!("devices have different errors: {first:?} and {text:?}"));
            }
            first = Some(text);
        }
        let text = first.unwrap_or_default();
        let is_named = text.contains(CAUSE) && text.contains(&self.place);
        (!is_named).then(|| format!("the error does not name {:?} and {CAUSE:?}: {text:?}", self.place))
    }

    fn problem_of_values(&self) -> Option<String> {
        self.results.iter().enumerate().find_map(|(partition, result)| match result.buffers[0].to_literal() {
            Ok(found) if found == self.expected => None,
            Ok(found) => Some(format!("partition {partition} has {found:?}, expected {:?}", self.expected)),
            Err(error) => Some(error.to_string()),
        })
    }
}
