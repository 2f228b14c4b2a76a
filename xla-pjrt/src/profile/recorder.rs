//! The recorder: a `tracing` subscriber that is enabled while a profile is recorded.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::status::Status;

/// Limit on the spans of a profile; further ones are only counted.
const MOST_EVENTS: usize = 1 << 21;

/// Profile that is being recorded.
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// Name of the spans of thunks.
const THUNK: &str = "thunk";

/// Whether [`RECORDING`] holds a profile, readable without its lock.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Recorded spans of all threads.
pub(super) struct Recording {
    pub origin: Instant,
    /// Nanoseconds from the Unix epoch to `origin`.
    pub epoch_nanos: i64,
    pub events: Vec<Event>,
    /// Names of threads, by number.
    pub threads: BTreeMap<u32, String>,
    /// Number of spans beyond [`MOST_EVENTS`].
    pub lost: usize,
}

/// Recorded span of a thread.
pub(super) struct Event {
    pub facts: Facts,
    pub thread: u32,
    pub start: Instant,
    pub end: Instant,
}

/// Name and fields of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Instruction of a thunk. For other spans, the name of the span, followed by its field `name` or `module`.
    pub name: String,
    pub numbers: Vec<(&'static str, u64)>,
    pub texts: Vec<(&'static str, String)>,
}

/// Time at which a span was last entered.
struct Entered(Instant);

/// Starts to record.
pub(super) fn start() -> Result<(), Status> {
    static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
    let install = || tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Recorder)).is_ok();
    if !IS_INSTALLED.get_or_init(install) {
        return Err(Status::failed_precondition(
            "this process has another `tracing` subscriber, which collects the spans",
        ));
    }
    let mut recording = recording();
    if recording.is_some() {
        return Err(Status::failed_precondition("another profile is being recorded"));
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    *recording = Some(Recording {
        origin: Instant::now(),
        epoch_nanos: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
        events: Vec::new(),
        threads: BTreeMap::new(),
        lost: 0,
    });
    drop(recording);
    switch(true);
    Ok(())
}

/// Stops recording, and returns the recorded spans.
pub(super) fn stop() -> Option<Recording> {
    switch(false);
    recording().take()
}

/// Enables or disables spans. A disabled span costs the read of one number.
fn switch(on: bool) {
    IS_ON.store(on, Ordering::SeqCst);
    tracing::callsite::rebuild_interest_cache();
}

fn recording() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of the calling thread.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// Layer that records spans of all levels.
struct Recorder;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let wanted = metadata.is_span() && IS_ON.load(Ordering::SeqCst);
        if wanted { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if IS_ON.load(Ordering::SeqCst) { LevelFilter::TRACE } else { LevelFilter::OFF })
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Facts::of(attributes));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(Entered(Instant::now()));
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let end = Instant::now();
        let Some(span) = context.span(id) else { return };
        let extensions = span.extensions();
        let (Some(Entered(start)), Some(facts)) = (extensions.get(), extensions.get::<Facts>()) else { return };
        let (thread, mut recording) = (thread_number(), recording());
        let Some(recording) = &mut *recording else { return };
        if recording.events.len() >= MOST_EVENTS {
            recording.lost += 1;
            return;
        }
        recording.threads.entry(thread).or_insert_with(|| thread_name(thread));
        recording.events.push(Event { facts: facts.clone(), thread, start: *start, end });
    }
}

fn thread_name(number: u32) -> String {
    thread::current().name().map_or_else(|| format!("thread {number}"), str::to_string)
}

impl Facts {
    fn of(attributes: &Attributes<'_>) -> Facts {
        let mut facts = Facts::default();
        attributes.record(&mut facts);
        let span = attributes.metadata().name();
        let module = || facts.texts.iter().find(|(field, _)| *field == "module").map(|(_, module)| module);
        facts.name = match (span, facts.name.as_str()) {
            (THUNK, name) if !name.is_empty() => return facts,
            (_, "") => module().map_or_else(|| span.to_string(), |module| format!("{span} {module}")),
            (_, name) => format!("{span} {name}"),
        };
        facts
    }

    fn text(&mut self, field: &Field, value: String) {
        match field.name() {
            "name" => self.name = value,
            field => self.texts.push((field, value)),
        }
    }
}

impl Visit for Facts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.push((field.name(), value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }
}
