//! Profiles as `tensorflow.profiler.XSpace`: one plane, with a line per thread and an event per span.

use std::collections::HashMap;

use prost::{Message, Oneof};

use super::recorder::{Event, Facts, Recording};

/// Name of the plane. Viewers recognize the planes of custom devices by the prefix `/device:CUSTOM:`.
const PLANE: &str = "/device:CUSTOM:xlars";

/// `tensorflow.profiler.XSpace`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XSpace {
    #[prost(message, repeated, tag = "1")]
    pub planes: Vec<XPlane>,
    #[prost(string, repeated, tag = "3")]
    pub warnings: Vec<String>,
}

/// Timelines of a device.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XPlane {
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<XLine>,
    #[prost(map = "int64, message", tag = "4")]
    pub event_metadata: HashMap<i64, XEventMetadata>,
    #[prost(map = "int64, message", tag = "5")]
    pub stat_metadata: HashMap<i64, XStatMetadata>,
}

/// Timeline, with events that are nested or disjoint.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XLine {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
    /// Nanoseconds from the Unix epoch to the origin of the offsets.
    #[prost(int64, tag = "3")]
    pub timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    pub events: Vec<XEvent>,
}

/// Event, with times in picoseconds.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XEvent {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(int64, tag = "2")]
    pub offset_ps: i64,
    #[prost(int64, tag = "3")]
    pub duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    pub stats: Vec<XStat>,
}

/// Named value of an event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XStat {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(oneof = "StatValue", tags = "3, 5")]
    pub value: Option<StatValue>,
}

/// Value of an [`XStat`].
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum StatValue {
    #[prost(uint64, tag = "3")]
    Number(u64),
    #[prost(string, tag = "5")]
    Text(String),
}

/// Name that events refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XEventMetadata {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// Name that values refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct XStatMetadata {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// Encodes a recording.
pub(super) fn encode(recording: &Recording) -> Vec<u8> {
    space(recording).encode_to_vec()
}

fn space(recording: &Recording) -> XSpace {
    let (mut names, mut fields) = (Names::default(), Names::default());
    let line = |(&thread, name): (&u32, &String)| {
        let mut events: Vec<&Event> = recording.events.iter().filter(|event| event.thread == thread).collect();
        // Spans are recorded when they end; events are sorted by start, outer ones first.
        events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
        let event = |event: &Event| XEvent {
            metadata_id: names.number(&event.facts.name),
            offset_ps: picoseconds(event.start.saturating_duration_since(recording.origin).as_nanos()),
            duration_ps: picoseconds(event.end.saturating_duration_since(event.start).as_nanos()),
            stats: stats(&event.facts, &mut fields),
        };
        let events = events.into_iter().map(event).collect();
        XLine { id: thread.into(), name: name.clone(), timestamp_ns: recording.epoch_nanos, events }
    };
    let lines = recording.threads.iter().map(line).collect();
    let event_metadata = names.into_map(|id, name| XEventMetadata { id, name });
    let stat_metadata = fields.into_map(|id, name| XStatMetadata { id, name });
    let plane = XPlane { name: PLANE.to_string(), lines, event_metadata, stat_metadata };
    let warning = || format!("{PLANE}: the profile is full, {} later events are not in it", recording.lost);
    XSpace { planes: vec![plane], warnings: (recording.lost > 0).then(warning).into_iter().collect() }
}

fn picoseconds(nanos: u128) -> i64 {
    i64::try_from(nanos.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn stats(facts: &Facts, fields: &mut Names) -> Vec<XStat> {
    let numbers = facts.numbers.iter().map(|&(field, number)| (field, StatValue::Number(number)));
    let texts = facts.texts.iter().map(|(field, text)| (*field, StatValue::Text(text.clone())));
    numbers.chain(texts).map(|(field, value)| XStat { metadata_id: fields.number(field), value: Some(value) }).collect()
}

/// Numbers of names, from 1.
#[derive(Default)]
struct Names(HashMap<String, i64>);

impl Names {
    fn number(&mut self, name: &str) -> i64 {
        if let Some(&number) = self.0.get(name) {
            return number;
        }
        let number = self.0.len() as i64 + 1;
        self.0.insert(name.to_string(), number);
        number
    }

    fn into_map<T>(self, entry: impl Fn(i64, String) -> T) -> HashMap<i64, T> {
        self.0.into_iter().map(|(name, number)| (number, entry(number, name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn events_are_on_the_lines_of_their_threads_outer_ones_first() {
        let origin = Instant::now();
        let event = |name: &str, thread, start, end| Event {
            facts: Facts { name: name.to_string(), numbers: vec![("flops", 7)], texts: Vec::new() },
            thread,
            start: origin + Duration::from_nanos(start),
            end: origin + Duration::from_nanos(end),
        };
        let events = vec![event("dot", 1, 10, 20), event("dot", 2, 15, 25), event("execute f", 1, 10, 30)];
        let threads = BTreeMap::from([(1, "main".to_string()), (2, "worker".to_string())]);
        let space = space(&Recording { origin, epoch_nanos: 5, events, threads, lost: 3 });
        let plane = &space.planes[0];
        let shown = |line: &XLine| {
            let events = line.events.iter().map(|event| {
                let name = &plane.event_metadata[&event.metadata_id].name;
                format!("{name} {}+{}", event.offset_ps, event.duration_ps)
            });
            format!("{} at {}: {}", line.name, line.timestamp_ns, events.collect::<Vec<_>>().join(", "))
        };
        let lines: Vec<_> = plane.lines.iter().map(shown).collect();
        assert_eq!(lines, ["main at 5: execute f 10000+20000, dot 10000+10000", "worker at 5: dot 15000+10000"]);
        let stat = &plane.lines[1].events[0].stats[0];
        assert_eq!(plane.stat_metadata[&stat.metadata_id].name, "flops");
        assert_eq!(stat.value, Some(StatValue::Number(7)));
        assert!(space.warnings[0].contains("3 later events"), "{:?}", space.warnings);
    }
}
