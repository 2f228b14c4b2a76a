//! In-flight log: work that was sent and is not known to be done, for errors that surface late.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Work that may be running, by queue. The driver does not report which launch failed, only that one did.
#[derive(Debug, Default)]
pub(crate) struct InFlightLog(BTreeMap<u32, Span>);

/// Work sent to one queue since it was last known to be done.
#[derive(Debug)]
struct Span {
    first: Arc<str>,
    last: Arc<str>,
    count: u64,
}

impl InFlightLog {
    /// Records work that is sent to a queue.
    pub fn sent(&mut self, queue: u32, place: &Arc<str>) {
        match self.0.get_mut(&queue) {
            Some(span) => {
                span.last.clone_from(place);
                span.count += 1;
            }
            None => {
                self.0.insert(queue, Span { first: place.clone(), last: place.clone(), count: 1 });
            }
        }
    }

    /// Records that all work sent to a queue is done.
    pub fn completed(&mut self, queue: u32) {
        self.0.remove(&queue);
    }
}

impl fmt::Display for InFlightLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no work was in flight");
        }
        f.write_str("work in flight: ")?;
        for (number, Span { first, last, count }) in self.0.values().enumerate() {
            f.write_str(if number == 0 { "" } else { "; " })?;
            match (count, first == last) {
                (1, _) => write!(f, "{first}")?,
                (count, true) => write!(f, "{count} calls of {first}")?,
                (count, false) => write!(f, "{count} calls from {first} to {last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_since_the_last_wait_is_told() {
        let places: [Arc<str>; 3] = ["t0 (%a)".into(), "t1 (%b)".into(), "t2 (%c)".into()];
        let mut log = InFlightLog::default();
        assert_eq!(log.to_string(), "no work was in flight");
        log.sent(0, &places[0]);
        assert_eq!(log.to_string(), "work in flight: t0 (%a)");
        log.sent(0, &places[0]);
        assert_eq!(log.to_string(), "work in flight: 2 calls of t0 (%a)");
        log.sent(0, &places[1]);
        log.sent(3, &places[2]);
        assert_eq!(log.to_string(), "work in flight: 3 calls from t0 (%a) to t1 (%b); t2 (%c)");
        log.completed(0);
        assert_eq!(log.to_string(), "work in flight: t2 (%c)");
    }
}
