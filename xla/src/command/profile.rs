//! `xla bench --profile`: accumulates the time of each thunk of a program, and compares it with the machine's peak
//! rates.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use xla::hlo::text::parse_module;
use xla::{Client, CompileOptions, Literal, Result, VerifiedModule};

use super::measure::timed;

/// Time per thunk, in descending order.
#[derive(Debug, Serialize)]
pub struct Profile {
    /// Number of profiled runs.
    pub runs: usize,
    /// Peak rates of the machine.
    pub ceilings: Ceilings,
    /// Work of the device: kernels, library calls, copies. Loops and branches are represented by their contents.
    pub thunks: Vec<Row>,
}

/// Peak rates, measured on this platform.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ceilings {
    /// Operations per second of an f32 matrix multiplication.
    pub flops: f64,
    /// Bytes per second of an addition of arrays that exceed all caches.
    pub bytes: f64,
}

/// Thunk, with values for one run of the program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Name of the instruction.
    pub name: String,
    /// Kernel, library call, copy and so on; empty if the platform does not report it.
    pub kind: String,
    /// Number of executions.
    pub count: f64,
    /// Total time in microseconds.
    pub micros: f64,
    /// Operations per second; 0 if the platform does not report them.
    pub flops: f64,
    /// Bytes per second.
    pub bytes: f64,
    /// Minimum time at the peak rates, as a fraction of the actual time. Greater than 1 for data that stays in a cache.
    pub roofline: f64,
}

/// Runs a program `runs` times and accumulates the time of its thunks from their `tracing` spans.
pub fn profile(client: &Client, runs: usize, mut run: impl FnMut() -> Result<()>) -> Result<Profile> {
    let ceilings = Ceilings::measure(client)?;
    let collector = Collector::default();
    let subscriber = tracing_subscriber::registry().with(collector.clone());
    tracing::subscriber::with_default(subscriber, || (0..runs).try_for_each(|_| run()))?;
    let totals = std::mem::take(&mut *collector.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut thunks: Vec<Row> = totals.into_values().map(|total| total.row(runs, &ceilings)).collect();
    thunks.retain(|row| !matches!(&*row.kind, "while" | "conditional"));
    thunks.sort_by(|a, b| b.micros.total_cmp(&a.micros).then_with(|| a.name.cmp(&b.name)));
    Ok(Profile { runs, ceilings, thunks })
}

impl Ceilings {
    fn measure(client: &Client) -> Result<Ceilings> {
        let product = "HloModule product\nENTRY e {\n a = f32[1024,1024] parameter(0)\n \
             ROOT r = f32[1024,1024] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}";
        let sum = "HloModule sum\nENTRY e {\n a = f32[33554432] parameter(0)\n ROOT r = f32[33554432] add(a, a)\n}";
        Ok(Ceilings {
            flops: 2.0 * 1024.0_f64.powi(3) / fastest(client, product)?.as_secs_f64(),
            bytes: 2.0 * 4.0 * 33_554_432.0 / fastest(client, sum)?.as_secs_f64(),
        })
    }
}

/// Returns the minimum time of a few runs of a program on an array of zeros.
fn fastest(client: &Client, text: &str) -> Result<Duration> {
    let module = VerifiedModule::new(parse_module(text)?)?;
    let program = client.compile(&module, &CompileOptions::default())?;
    let zeros = Literal::zeros(&program.signature().arguments()[0].shape)?;
    let argument = program.argument_buffer(0, &zeros)?;
    let mut fastest = Duration::MAX;
    for _ in 0..6 {
        let (results, time) = timed(|| {
            let results = program.execute(&[&argument])?;
            results.iter().try_for_each(xla::Buffer::wait)?;
            Ok::<_, xla::Error>(results)
        });
        results?;
        fastest = fastest.min(time);
    }
    Ok(fastest)
}

/// Time and work of one thunk, over all runs.
#[derive(Debug, Default)]
struct Total {
    facts: Facts,
    count: u64,
    time: Duration,
}

impl Total {
    fn row(self, runs: usize, ceilings: &Ceilings) -> Row {
        let Facts { name, kind, flops, bytes, .. } = self.facts;
        let (runs, seconds) = (runs.max(1) as f64, self.time.as_secs_f64().max(1e-12));
        let rate = |each: u64| each as f64 * self.count as f64 / seconds;
        let (flops, bytes) = (rate(flops), rate(bytes));
        let roofline = (flops / ceilings.flops).max(bytes / ceilings.bytes);
        Row { name, kind, count: self.count as f64 / runs, micros: seconds * 1e6 / runs, flops, bytes, roofline }
    }
}

/// Fields of a thunk's span.
#[derive(Clone, Debug, Default)]
struct Facts {
    id: String,
    name: String,
    kind: String,
    flops: u64,
    bytes: u64,
}

impl Visit for Facts {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "flops" => self.flops = value,
            "bytes" => self.bytes = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "name" => self.name = value.to_string(),
            "kind" => self.kind = value.to_string(),
            "id" => self.id = value.to_string(),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// Layer that accumulates the spans of thunks.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<HashMap<String, Total>>>);

/// Start time of a thunk.
struct Began(Instant);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        if attributes.metadata().name() != "thunk" {
            return;
        }
        let mut facts = Facts::default();
        attributes.record(&mut facts);
        if let Some(span) = cx.span(id) {
            span.extensions_mut().insert(facts);
        }
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id) {
            span.extensions_mut().replace(Began(Instant::now()));
        }
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        let end = Instant::now();
        let Some(span) = cx.span(id) else { return };
        let extensions = span.extensions();
        let (Some(Began(began)), Some(facts)) = (extensions.get(), extensions.get::<Facts>()) else { return };
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total = totals.entry(facts.id.clone()).or_default();
        total.facts = facts.clone();
        total.count += 1;
        total.time += end.saturating_duration_since(*began);
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ceilings { flops, bytes } = self.ceilings;
        let (flops, bytes) = (flops / 1e9, bytes / 1e9);
        writeln!(
            f,
            "\n  profile of {} runs; ceilings of the machine: {flops:.0} GFLOP/s and {bytes:.1} GB/s",
            self.runs
        )?;
        let total: f64 = self.thunks.iter().map(|row| row.micros).sum();
        writeln!(
            f,
            "  {:>11} {:>6} {:>9} {:>9} {:>8} {:>8}",
            "us a run", "share", "times", "GFLOP/s", "GB/s", "roofline"
        )?;
        for row in &self.thunks {
            let share = 100.0 * row.micros / total.max(1e-12);
            let (gigaflops, gigabytes, roofline) = (row.flops / 1e9, row.bytes / 1e9, 100.0 * row.roofline);
            let (micros, count, kind, name) = (row.micros, row.count, &row.kind, &row.name);
            writeln!(
                f,
                "  {micros:>11.2} {share:>5.1}% {count:>9.0} {gigaflops:>9.2} {gigabytes:>8.2} {roofline:>7.0}%  {kind} {name}"
            )?;
        }
        Ok(())
    }
}
