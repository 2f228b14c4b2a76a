//! `xla bench`: measures time and memory of compilation and execution.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use xla::hlo::{Literal, Module};
use xla::service::{Donation, ExecuteOptions, MemoryAnalysis};
use xla::{Buffer, Client, LoadedExecutable};

use super::device_time::{self, DeviceTime, Effort};
use super::devices::{self, Arguments, DevicesArg};
use super::failure::{Failure, Outcome};
use super::measure::{self, Sums, Times, micros, timed};
use super::output;
use super::process::{self, Status};
use super::profile::{self, Profile};
use super::program::{Runnable, RunnableArg};
use super::progress::Progress;
use super::session::{PlatformArg, Session};

const EXAMPLES: &str = "\
Examples:
  xla bench module.hlo                              times on generated inputs, as text
  xla bench module.hlo --json --threads 1           one line of JSON, measured on one CPU
  xla bench module.hlo --reps 100 --compiles 1      time 100 runs, compile once
  xla bench module.hlo --profile                    also the time of each kernel and library call
  xla bench module.hlo --device-time                also the time on the device, without the host's part
  xla bench --executable build/main.xlax            load time and run time of an output of `xla compile`

  xla bench partitioned.hlo --devices 4             launches on all devices of the program

The clock of `run` starts when inputs are on the device and stops when all outputs are ready: the latency of one call.
On several devices it is the time of a launch: until all devices are done. Each device has its part of generated global
values, and outputs are listed by device. `joined` of the JSON is the reason why one device does the work of all, or null.
Compiling is timed with a new client each time, from the parsed module to the executable. A manifest.json beside MODULE may
specify the distributions of inputs; by default floats are uniform in [-1, 1) and integers in [0, 8).";

/// Measure compile time and run time of a program
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    program: RunnableArg,
    #[command(flatten)]
    platform: PlatformArg,
    #[command(flatten)]
    devices: DevicesArg,
    /// Seed of the generated inputs
    #[arg(long, value_name = "N", default_value = "0")]
    inputs_seed: u64,
    /// Number of timed runs; 0 = chosen for --min-seconds, from 7 to 5000
    #[arg(long, value_name = "N", default_value = "0")]
    reps: usize,
    /// Approximate duration of the timed runs, in seconds
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    min_seconds: f64,
    /// Number of compilations
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=1000))]
    compiles: u16,
    /// Run again and report the time of each kernel, library call and copy, with its rates and share of the roofline
    #[arg(long, conflicts_with = "executable")]
    profile: bool,
    /// Also report the device time of a run with cold caches, and the time per call of queued calls
    #[arg(long)]
    device_time: bool,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| "the value must be a number of seconds of at least 0".to_string())
}

/// Results of a measurement. Units by suffix: `_ms` milliseconds, `_us` microseconds, `_mb` MiB of memory.
#[derive(Debug, Serialize)]
struct Report {
    name: String,
    /// Number of devices of the program.
    devices: usize,
    /// Reason why the first device does the work of all; `null` unless the program is joined.
    joined: Option<String>,
    #[serde(rename = "impl")]
    implementation: String,
    compile_ms: f64,
    compile_first_ms: f64,
    compile_all_ms: Vec<f64>,
    parse_ms: f64,
    run_us: f64,
    run_p10_us: f64,
    run_p90_us: f64,
    run_min_us: f64,
    reps: usize,
    threads: usize,
    process_threads: u64,
    rss_start_mb: f64,
    rss_inputs_mb: f64,
    peak_rss_compile_mb: f64,
    peak_rss_run_mb: f64,
    peak_rss_mb: f64,
    peak_over_start_mb: f64,
    temp_bytes: usize,
    argument_bytes: usize,
    output_bytes: usize,
    outputs: Vec<Sums>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_time: Option<DeviceTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Profile>,
}

/// Measures the program. With `--json`, a failure is also printed as a line of JSON.
pub fn run(session: &Session, args: &Args) -> Outcome {
    let measured = measure(session, args);
    let text = match &measured {
        Ok(report) if args.json => json!(report).to_string() + "\n",
        Ok(report) => report.to_string(),
        Err(failure) if args.json => json!({"error": failure.error.to_string()}).to_string() + "\n",
        Err(_) => String::new(),
    };
    output::print(&text)?;
    measured.map(drop)
}

fn measure(session: &Session, args: &Args) -> Outcome<Report> {
    // The process is pinned before any thread starts, because threads inherit the affinity.
    let threads = session.pin()?;
    let source = args.program.read()?;
    let client = client(session, args, &source, 1)?;
    let implementation = format!("xla {} ({})", env!("CARGO_PKG_VERSION"), client.platform());
    let start = process::status();
    process::reset_peak();
    drop(client);
    let compiled = compile(session, args, &source)?;
    let after_compile = process::status();

    let mut program = Program::new(compiled.executable, source.path(), args.inputs_seed)?;
    let with_inputs = process::status();
    process::reset_peak();
    let times = program.time(args)?;
    let after_run = process::status();

    let memory = program.executable.memory_analysis();
    let devices = program.executable.devices().len();
    let peaks = Peaks { start, after_compile, with_inputs, after_run };
    Ok(Report {
        name: source.stem(),
        devices,
        joined: program.executable.join_reason().map(str::to_string),
        outputs: program.sums()?,
        device_time: if args.device_time { Some(program.device_time(args, source.path(), &times)?) } else { None },
        profile: if args.profile { Some(profiled(session, args, &source)?) } else { None },
        ..report(implementation, threads, &compiled.times, &times, &peaks, &memory)
    })
}

/// Runs the program while a profile is recorded.
fn profiled(session: &Session, args: &Args, source: &Runnable) -> Outcome<Profile> {
    let client = client(session, args, source, 1)?;
    let Runnable::Module(module) = source else { return Err(Failure::usage("--profile takes a module")) };
    let executable = client.compile(&module.verify(module.parse()?)?, &session.compile_options())?;
    let mut program = Program::new(executable, source.path(), args.inputs_seed)?;
    let last = measure::warm_up(|| program.once().map(|(_, time)| time))?;
    let runs = if args.reps > 0 { args.reps } else { measure::repetitions(args.min_seconds, last) };
    Ok(profile::profile(&client, runs, || program.once().map(drop))?)
}

/// Memory and threads at the phases of the measurement.
struct Peaks {
    start: Status,
    after_compile: Status,
    with_inputs: Status,
    after_run: Status,
}

fn report(
    implementation: String,
    threads: usize,
    compile: &CompileTimes,
    run: &Times,
    peaks: &Peaks,
    memory: &MemoryAnalysis,
) -> Report {
    let peak = peaks.after_compile.peak_kib.max(peaks.after_run.peak_kib);
    let compiles = Times::new(compile.compile.clone());
    Report {
        name: String::new(),
        devices: 1,
        joined: None,
        implementation,
        compile_ms: millis(compiles.median()),
        compile_first_ms: compile.compile.first().map_or(0.0, |first| millis(*first)),
        compile_all_ms: compile.compile.iter().map(|time| millis(*time)).collect(),
        parse_ms: millis(Times::new(compile.parse.clone()).median()),
        run_us: micros(run.median()),
        run_p10_us: micros(run.quantile(0.1)),
        run_p90_us: micros(run.quantile(0.9)),
        run_min_us: micros(run.quantile(0.0)),
        reps: run.count(),
        threads,
        process_threads: peaks.after_run.threads,
        rss_start_mb: mib(peaks.start.resident_kib),
        rss_inputs_mb: mib(peaks.with_inputs.resident_kib),
        peak_rss_compile_mb: mib(peaks.after_compile.peak_kib),
        peak_rss_run_mb: mib(peaks.after_run.peak_kib),
        peak_rss_mb: mib(peak),
        peak_over_start_mb: mib(peak.saturating_sub(peaks.start.resident_kib)),
        temp_bytes: memory.temporary_bytes,
        argument_bytes: memory.argument_bytes,
        output_bytes: memory.output_bytes,
        outputs: Vec::new(),
        device_time: None,
        profile: None,
    }
}

struct CompileTimes {
    parse: Vec<Duration>,
    compile: Vec<Duration>,
}

struct Compiled {
    executable: LoadedExecutable,
    times: CompileTimes,
}

/// Creates a client of the requested platform, or of the platform that the program was compiled for.
fn client(session: &Session, args: &Args, program: &Runnable, devices: usize) -> Outcome<Client> {
    let registry = session.registry();
    let client = match program {
        Runnable::Module(_) => session.client(&registry, &args.platform),
        Runnable::Executable(stored) => session.client_for(&registry, &args.platform, stored),
    };
    if devices == 1 { client } else { devices::client(&registry, client?.platform(), devices) }
}

/// Returns the number of devices of a program; an error if an option requires a program of one device.
fn device_count(args: &Args, module: &Module) -> Outcome<usize> {
    let count = args.devices.count(module)?;
    let option = args.profile.then_some("--profile").or_else(|| args.device_time.then_some("--device-time"));
    match option.filter(|_| count > 1) {
        Some(option) => {
            let name = module.name();
            Err(Failure::usage(format!("{option} measures programs of one device, but {name} is for {count} devices")))
        }
        None => Ok(count),
    }
}

/// Compiles as often as requested, each time with new platforms and a new client, so that no state is reused. A
/// serialised program is loaded instead.
fn compile(session: &Session, args: &Args, program: &Runnable) -> Outcome<Compiled> {
    let mut times = CompileTimes { parse: Vec::new(), compile: Vec::new() };
    let mut progress = Progress::new("compiling", usize::from(args.compiles));
    let mut devices = 1;
    loop {
        let options = session.compile_options();
        let (executable, parse, compile) = match program {
            Runnable::Module(source) => {
                let (module, parse) = timed(|| devices::parsed(source));
                let module = module?;
                devices = device_count(args, &module)?;
                let client = client(session, args, program, devices)?;
                let (executable, compile) =
                    timed(|| -> Outcome<_> { Ok(client.compile(&source.verify(module)?, &options)?) });
                (executable?, parse, compile)
            }
            Runnable::Executable(stored) => {
                let client = client(session, args, program, devices)?;
                let (executable, load) = timed(|| stored.load(&client, &options));
                let executable = executable?;
                let found = device_count(args, executable.module())?;
                if found != devices {
                    // The file states the number of devices, so the first load decides it.
                    devices = found;
                    continue;
                }
                (executable, Duration::ZERO, load)
            }
        };
        let executable = devices::place(executable, devices)?;
        times.parse.push(parse);
        times.compile.push(compile);
        progress.advance();
        if times.compile.len() >= usize::from(args.compiles) {
            return Ok(Compiled { executable, times });
        }
    }
}

/// Program with its inputs on the device.
struct Program {
    executable: LoadedExecutable,
    /// Arguments on each device.
    buffers: Vec<Vec<Buffer>>,
    /// Inputs that a run must consume by donation, on each device; each run needs new copies of them.
    consumed: Vec<(usize, Vec<Literal>)>,
}

impl Program {
    fn new(executable: LoadedExecutable, path: Option<&Path>, seed: u64) -> Outcome<Program> {
        let mut arguments = Arguments::made(path, &executable, seed)?;
        let mut buffers: Vec<Vec<Buffer>> = executable.devices().map(|_| Vec::new()).collect();
        let mut consumed = Vec::new();
        for (i, leaf) in executable.signature().arguments().iter().enumerate() {
            let literals = arguments.literals(&executable, i)?;
            let own = devices::buffers(&executable, i, &literals)?;
            buffers.iter_mut().zip(own).for_each(|(list, buffer)| list.push(buffer));
            match leaf.donation {
                Donation::Required => consumed.push((i, literals)),
                Donation::Welcome | Donation::Unused => {}
            }
        }
        buffers.iter().flatten().try_for_each(Buffer::wait)?;
        Ok(Program { executable, buffers, consumed })
    }

    /// Runs the program once on all of its devices; returns the outputs of each and the duration, without preparation
    /// and cleanup.
    fn once(&mut self) -> xla::Result<(Vec<Vec<Buffer>>, Duration)> {
        for (i, literals) in &self.consumed {
            let own = devices::buffers(&self.executable, *i, literals)?;
            own.iter().try_for_each(Buffer::wait)?;
            self.buffers.iter_mut().zip(own).for_each(|(list, buffer)| list[*i] = buffer);
        }
        let donate = self.consumed.iter().map(|(i, _)| *i).collect();
        let options = ExecuteOptions { donate, ..ExecuteOptions::default() };
        let (outputs, time) = timed(|| devices::launch(&self.executable, &self.buffers, &options));
        Ok((outputs?, time))
    }

    fn time(&mut self, args: &Args) -> Outcome<Times> {
        let last = measure::warm_up(|| self.once().map(|(_, time)| time))?;
        let reps = if args.reps > 0 { args.reps } else { measure::repetitions(args.min_seconds, last) };
        let mut times = Vec::with_capacity(reps.min(1 << 20));
        let mut progress = Progress::new("running", reps);
        for _ in 0..reps {
            times.push(self.once()?.1);
            progress.advance();
        }
        Ok(Times::new(times))
    }

    fn device_time(&self, args: &Args, path: Option<&Path>, times: &Times) -> Outcome<DeviceTime> {
        let (rounds, seconds, each) = (args.reps, args.min_seconds, times.median());
        device_time::measure(&self.executable, path, Effort { rounds, seconds, each, seed: args.inputs_seed })
    }

    fn sums(&mut self) -> Outcome<Vec<Sums>> {
        let (outputs, _) = self.once()?;
        let sums = outputs.into_iter().flatten().map(|buffer| Ok(Sums::of(&buffer.to_literal()?)));
        Ok(sums.collect::<xla::Result<_>>()?)
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.threads == 1 { "CPU" } else { "CPUs" };
        writeln!(f, "{}, {}, {} {plural}", self.name, self.implementation, self.threads)?;
        match (&self.joined, self.devices) {
            (Some(reason), devices) => writeln!(f, "  devices  {devices:>12}       joined for the first: {reason}")?,
            (None, 1) => {}
            (None, devices) => writeln!(f, "  devices  {devices:>12}       each runs the program on its own values")?,
        }
        writeln!(f, "  parse    {:>12.3} ms", self.parse_ms)?;
        let (first, compiles) = (self.compile_first_ms, self.compile_all_ms.len());
        writeln!(f, "  compile  {:>12.3} ms    median of {compiles}, the first {first:.3}", self.compile_ms)?;
        let (least, low, high) = (self.run_min_us, self.run_p10_us, self.run_p90_us);
        let reps = self.reps;
        writeln!(
            f,
            "  run      {:>12.3} us    median of {reps}, 10% {low:.3}, 90% {high:.3}, least {least:.3}",
            self.run_us
        )?;
        if let Some(time) = &self.device_time {
            time.fmt(f)?;
        }
        let temporaries = self.temp_bytes as f64 / f64::from(1 << 20);
        let peak = self.peak_rss_mb;
        writeln!(
            f,
            "  memory   {:>12.1} MiB   above the start; peak {peak:.1}, temporaries {temporaries:.1}",
            self.peak_over_start_mb
        )?;
        let of_device = self.outputs.len() / self.devices.max(1);
        for (i, Sums { sum, abs_sum, nonfinite, .. }) in self.outputs.iter().enumerate() {
            let strange = if *nonfinite > 0 { format!(", {nonfinite} not finite") } else { String::new() };
            let (i, device) = (i % of_device.max(1), i / of_device.max(1));
            let i = if self.devices > 1 { format!("{i}.dev{device}") } else { i.to_string() };
            writeln!(f, "  output {i:<3} sum {sum:e}, of absolute values {abs_sum:e}{strange}")?;
        }
        if let Some(profile) = &self.profile {
            profile.fmt(f)?;
        }
        Ok(())
    }
}

/// Converts to milliseconds, rounded to microseconds.
fn millis(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1e3).round() / 1e3
}

/// Converts KiB to MiB, rounded to one decimal.
fn mib(kib: u64) -> f64 {
    (kib as f64 / 102.4).round() / 10.0
}
