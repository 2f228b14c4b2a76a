//! Timeline of streams as an SVG: a row for each stream, a box for each thunk, an arrow for each event.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

use super::super::{StreamId, ThunkId};
use super::report::{StreamReport, Timeline, TimelineThunk, microseconds};

/// Width of the image. All sizes are in pixels.
const WIDTH: f64 = 1200.0;
/// Margin for the names of streams.
const LEFT: f64 = 90.0;
const RIGHT: f64 = 44.0;
const ROW: f64 = 46.0;
const BOX: f64 = 26.0;
const TITLE: f64 = 44.0;
const AXIS: f64 = 34.0;
const CHARACTER: f64 = 6.8;
/// Minimum width of a box.
const LEAST: f64 = 1.5;
/// Boxes that end less than this distance after the previous one are invisible and not drawn.
const SEEN: f64 = 0.2;
const TICKS: u32 = 8;

const STYLE: &str = "
:root { color-scheme: light dark; --ground: #fff; --text: #222; --line: #ddd; --box: #cfe3f6; --edge: #1b6ca8; --arrow: #c0392b; }
@media (prefers-color-scheme: dark) {
 :root { --ground: #181a1d; --text: #ddd; --line: #3a3d42; --box: #24425c; --edge: #6fb3e6; --arrow: #ff8a75; }
}
text { fill: var(--text); font: 12px ui-monospace, monospace; }
.ground { fill: var(--ground); }
.line { stroke: var(--line); fill: none; }
.box { fill: var(--box); stroke: var(--edge); }
.copy { fill-opacity: 0.35; }
.arrow { stroke: var(--arrow); fill: none; stroke-width: 1.4; }
.head { fill: var(--arrow); }
";

impl StreamReport {
    /// Returns the timeline as SVG: a row for each stream, a box for each thunk, an arrow for each wait; sequences are
    /// stacked. The colours follow the viewer's light or dark mode.
    pub fn svg(&self) -> String {
        let mut body = String::new();
        // Writing to a string does not fail.
        let height = parts(self, &mut body).unwrap_or_default();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\">\n\
             <style>{STYLE}</style>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto\"><path class=\"head\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n"
        )
    }
}

fn parts(report: &StreamReport, out: &mut String) -> Result<f64, fmt::Error> {
    let (several, one) = (microseconds(report.seconds), microseconds(report.seconds_on_one_stream));
    writeln!(out, "<text x=\"12\" y=\"22\">By the model: {several} on several streams, {one} on one.</text>")?;
    report.sequences.iter().try_fold(30.0, |top, timeline| SequencePicture::new(timeline, top).draw(out))
}

/// Layout of the timeline of one sequence.
struct SequencePicture<'t> {
    timeline: &'t Timeline,
    top: f64,
    /// Vertical centre of each stream's row.
    rows: HashMap<StreamId, f64>,
    bottom: f64,
    seconds: f64,
    thunks: HashMap<ThunkId, &'t TimelineThunk>,
}

impl<'t> SequencePicture<'t> {
    fn new(timeline: &'t Timeline, top: f64) -> SequencePicture<'t> {
        let streams = timeline.streams();
        let bottom = top + TITLE + ROW * streams.len() as f64;
        let middle = |row: usize| top + TITLE + ROW * (row as f64 + 0.5);
        let rows = streams.into_iter().enumerate().map(|(row, stream)| (stream, middle(row))).collect();
        let thunks = timeline.thunks.iter().map(|thunk| (thunk.id, thunk)).collect();
        SequencePicture { timeline, top, rows, bottom, seconds: timeline.seconds().max(f64::MIN_POSITIVE), thunks }
    }

    /// Draws the sequence and returns its lower edge.
    fn draw(&self, out: &mut String) -> Result<f64, fmt::Error> {
        let (events, waits) = (self.timeline.events(), self.timeline.waits());
        let place = escaped(&self.timeline.place);
        writeln!(out, "<text x=\"12\" y=\"{:.1}\">{place}: {events} events, {waits} waits</text>", self.top + 24.0)?;
        self.axis(out)?;
        for stream in self.timeline.streams() {
            let y = self.row(stream);
            writeln!(out, "<path class=\"line\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", WIDTH - RIGHT)?;
            writeln!(out, "<text x=\"12\" y=\"{:.1}\">stream {}</text>", y + 4.0, stream.0)?;
        }
        let mut ends: HashMap<StreamId, f64> = HashMap::new();
        for thunk in &self.timeline.thunks {
            let (end, x) = (ends.entry(thunk.stream).or_insert(f64::NEG_INFINITY), self.x(thunk.finish));
            if x > *end + SEEN {
                *end = x;
                self.thunk(thunk, out)?;
            }
        }
        self.arrows(out)?;
        Ok(self.bottom + AXIS)
    }

    fn axis(&self, out: &mut String) -> fmt::Result {
        (0..=TICKS).try_for_each(|tick| {
            let time = self.seconds * f64::from(tick) / f64::from(TICKS);
            let (x, top, bottom) = (self.x(time), self.top + TITLE, self.bottom);
            writeln!(out, "<path class=\"line\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>")?;
            let label = microseconds(time);
            writeln!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", bottom + 16.0)
        })
    }

    fn thunk(&self, thunk: &TimelineThunk, out: &mut String) -> fmt::Result {
        let (x, end, y) = (self.x(thunk.start), self.x(thunk.finish), self.row(thunk.stream) - BOX / 2.0);
        let width = (end - x).max(LEAST);
        let class = if thunk.kind == "copy" { "box copy" } else { "box" };
        let TimelineThunk { id, kind, .. } = thunk;
        let (from, to, name) = (microseconds(thunk.start), microseconds(thunk.finish), escaped(&thunk.name));
        write!(out, "<g><title>{id} {kind} %{name}: {from} to {to}</title>")?;
        write!(
            out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BOX}\" rx=\"3\"/>"
        )?;
        let room = ((width - 6.0) / CHARACTER) as usize;
        let label: String = format!("{id} %{}", thunk.name).chars().take(room).collect();
        if room > 1 {
            write!(out, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 4.0, y + BOX / 2.0 + 4.0, escaped(&label))?;
        }
        writeln!(out, "</g>")
    }

    /// Draws arrows from the end of each thunk to the start of the thunks that wait for it.
    fn arrows(&self, out: &mut String) -> fmt::Result {
        let mut drawn = HashSet::new();
        for thunk in &self.timeline.thunks {
            for from in thunk.waits.iter().filter_map(|id| self.thunks.get(id)) {
                self.arrow(self.end_of(from), (self.x(thunk.start), self.row(thunk.stream)), &mut drawn, out)?;
            }
        }
        let home = self.row(self.timeline.home);
        for fork in &self.timeline.forks {
            let first = self.timeline.thunks.iter().find(|thunk| thunk.stream == *fork);
            let x = first.map_or(0.0, |thunk| thunk.start);
            self.arrow((self.x(0.0), home), (self.x(x), self.row(*fork)), &mut drawn, out)?;
        }
        for from in self.timeline.joins.iter().filter_map(|id| self.thunks.get(id)) {
            self.arrow(self.end_of(from), (self.x(self.seconds) + RIGHT / 4.0, home), &mut drawn, out)?;
        }
        Ok(())
    }

    /// Draws an arrow between two points, unless the same arrow exists.
    fn arrow(
        &self,
        (x, y): (f64, f64),
        (to_x, to_y): (f64, f64),
        drawn: &mut HashSet<[i64; 4]>,
        out: &mut String,
    ) -> fmt::Result {
        if !drawn.insert([x, y, to_x, to_y].map(|place| place.round() as i64)) {
            return Ok(());
        }
        // Arrows leave and enter boxes at the edges that face each other.
        let edge = (BOX / 2.0).copysign(to_y - y);
        let (y, to_y) = (y + edge, to_y - edge);
        let middle = f64::midpoint(y, to_y);
        let path = format!("M{x:.1} {y:.1}C{x:.1} {middle:.1} {to_x:.1} {middle:.1} {to_x:.1} {to_y:.1}");
        writeln!(out, "<path class=\"arrow\" marker-end=\"url(#head)\" d=\"{path}\"/>")
    }

    fn end_of(&self, thunk: &TimelineThunk) -> (f64, f64) {
        (self.x(thunk.finish), self.row(thunk.stream))
    }

    fn row(&self, stream: StreamId) -> f64 {
        self.rows.get(&stream).copied().unwrap_or(self.top)
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (seconds / self.seconds).clamp(0.0, 1.0)
    }
}

/// Escapes text for markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
