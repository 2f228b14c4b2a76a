//! Tracing: log lines on standard error, and a file of complete events in Chrome's trace format.
//!
//! The format is the JSON array of "Trace Event Format" (Google). It has one event of phase `X` for each time a span
//! was entered, with start and duration in microseconds. Perfetto and `chrome://tracing` read it. The file appears,
//! complete, when the command ends.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::{self, format::FmtSpan};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use xla::hlo::{Error, Result};
use xla::service::OutputFile;

/// Starts the tracing and logging that the options request. Without `--trace` and `-v`, it starts nothing, and spans
/// have almost no cost.
pub fn start(file: Option<&Path>, verbose: u8) -> Result<Option<Guard>> {
    let level = match verbose {
        0 => LevelFilter::OFF,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let out = file.map(Out::create).transpose()?.map(Arc::new);
    if out.is_none() && verbose == 0 {
        return Ok(None);
    }
    let lines = || fmt::layer().with_writer(std::io::stderr).with_span_events(FmtSpan::CLOSE).with_target(false);
    let lines = (verbose > 0).then(|| lines().with_filter(level));
    let events = out.clone().map(|out| ChromeLayer { out });
    // The command starts tracing once; only a second subscriber would be rejected.
    let set = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines).with(events));
    set.map_err(|e| Error::internal(format!("tracing is already active: {e}")))?;
    Ok(out.map(Guard))
}

/// Guard that completes the trace, also when a panic drops it.
pub struct Guard(Arc<Out>);

impl Guard {
    /// Completes the trace. [`Error::FailedPrecondition`] if it could not be written; then no file remains.
    pub fn finish(self) -> Result<()> {
        self.0.close()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // An error is only lost after a panic, which is reported itself.
        let _ = self.0.close();
    }
}

/// Trace file, and the origin of its times.
struct Out {
    start: Instant,
    state: Mutex<State>,
}

/// State of the file.
enum State {
    Open(OutputFile),
    /// A write of an event failed.
    Failed(Error),
    Closed,
}

impl Out {
    fn create(path: &Path) -> Result<Out> {
        let mut file = OutputFile::create(path)?;
        let process = json!({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "xla"}});
        write!(file, "[\n{process}").map_err(|error| file.error(error))?;
        Ok(Out { start: Instant::now(), state: Mutex::new(State::Open(file)) })
    }

    /// Appends an event. A full disk ends the trace but not the work; [`Out::close`] reports it.
    fn write(&self, event: &Value) {
        let mut state = self.state();
        if let State::Open(file) = &mut *state
            && let Err(error) = write!(file, ",\n{event}")
        {
            *state = State::Failed(file.error(error));
        }
    }

    /// Ends the array and the file, once.
    fn close(&self) -> Result<()> {
        match std::mem::replace(&mut *self.state(), State::Closed) {
            State::Open(mut file) => {
                file.write_all(b"\n]\n").map_err(|error| file.error(error))?;
                file.finish()
            }
            State::Failed(error) => Err(error),
            State::Closed => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.start).as_nanos() as f64 / 1e3
    }
}

/// Layer that writes an event for each time a span was entered.
struct ChromeLayer {
    out: Arc<Out>,
}

/// Fields of a span.
struct Fields(Map<String, Value>);

/// Time at which a span was last entered.
struct Entered(Instant);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ChromeLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields(Map::new());
        attributes.record(&mut fields);
        if let Some(span) = cx.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id) {
            span.extensions_mut().replace(Entered(Instant::now()));
        }
    }

    fn on_exit(&self, id: &Id, cx: Context<'_, S>) {
        let end = Instant::now();
        let Some(span) = cx.span(id) else { return };
        let extensions = span.extensions();
        let (Some(Entered(start)), Some(Fields(fields))) = (extensions.get(), extensions.get()) else { return };
        // The field `name` of a span identifies its pass or kernel and is the name of the event.
        let kind = span.metadata().name();
        let name = fields.get("name").and_then(Value::as_str).unwrap_or(kind);
        let micros = end.saturating_duration_since(*start).as_nanos() as f64 / 1e3;
        self.out.write(&json!({
            "name": name, "cat": kind, "ph": "X", "ts": self.out.micros(*start), "dur": micros,
            "pid": 1, "tid": thread_number(), "args": fields,
        }));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let name = fields.0.get("message").and_then(Value::as_str).unwrap_or(event.metadata().target()).to_string();
        self.out.write(&json!({
            "name": name, "cat": event.metadata().target(), "ph": "i", "s": "t", "ts": self.out.micros(Instant::now()),
            "pid": 1, "tid": thread_number(), "args": fields.0,
        }));
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_string(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_string(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_string(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_string(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_string(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_string(), format!("{value:?}").into());
    }
}

/// Returns a small number for the calling thread, assigned in the order of first use.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: Cell<u32> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
