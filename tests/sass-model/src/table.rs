//! The table of all kernels in the repository, and the comparison that keeps kernels from getting worse.

use std::fmt;

use anyhow::{Context, Result, bail};

use crate::model::{Bound, Estimate, Measured, Stretch};
use crate::rates::Rates;

/// Relative slack by which a kernel may be worse than its row.
const SLACK: f64 = 0.05;

/// Minimum percentage of tensor instructions in a loop that has any.
const LEAST_TENSOR: f64 = 100.0 / 3.0;

/// A kernel of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Program and kernel.
    pub name: String,
    /// Instructions per element of the kernel, and of its hottest loop.
    pub per_element: f64,
    in_loop: f64,
    /// Percentage of tensor instructions in that loop.
    pub tensor: f64,
    /// Special functions per element.
    special: f64,
    /// Accesses to local memory per thread.
    pub local: u64,
    /// Loads in flight in that loop.
    in_flight: u64,
    /// Bytes of loads and of stores: `4,16/16`.
    widths: String,
    /// Microseconds of memory, of all instructions, and of the largest bound.
    memory: f64,
    issue: f64,
    pub time: f64,
    pub bound: Bound,
    /// Whether a trip count depends on data.
    by_data: bool,
    /// The reason why instructions take longer than memory.
    pub reason: String,
}

const HEAD: &str = "instr/elem in-loop tensor% special local in-flight    widths memory-us  issue-us       us bound         kernel | why it is slower by instructions than by memory";

impl TableRow {
    /// The row of a kernel that was estimated.
    pub fn new(program: &str, measured: &Measured, estimate: &Estimate) -> TableRow {
        let kernel = &measured.kernel;
        let by_elements = |count: u64| count as f64 * kernel.launch.all_threads() / estimate.elements;
        let hottest = estimate.hottest();
        let (bound, seconds) = estimate.bound();
        let [_, memory, issue, ..] = estimate.seconds;
        TableRow {
            name: format!("{program}/{}", kernel.name),
            per_element: rounded(estimate.per_element),
            in_loop: rounded(by_elements(hottest.instructions)),
            tensor: rounded(hottest.tensor_share() * 100.0),
            special: rounded(by_elements(estimate.whole.special)),
            local: estimate.whole.local,
            in_flight: hottest.loads_in_flight,
            widths: widths(&estimate.whole),
            memory: rounded(memory * 1e6),
            issue: rounded(issue * 1e6),
            time: rounded(seconds * 1e6),
            bound,
            by_data: estimate.by_data,
            reason: String::new(),
        }
    }

    fn parse(line: &str) -> Option<TableRow> {
        let (facts, reason) = line.split_once('|').unwrap_or((line, ""));
        let mut words = facts.split_whitespace();
        let row = TableRow {
            per_element: words.next()?.parse().ok()?,
            in_loop: words.next()?.parse().ok()?,
            tensor: words.next()?.parse().ok()?,
            special: words.next()?.parse().ok()?,
            local: words.next()?.parse().ok()?,
            in_flight: words.next()?.parse().ok()?,
            widths: words.next()?.to_owned(),
            memory: words.next()?.parse().ok()?,
            issue: words.next()?.parse().ok()?,
            time: words.next()?.parse().ok()?,
            bound: Bound::Launch,
            by_data: false,
            name: String::new(),
            reason: reason.trim().to_owned(),
        };
        let bound = words.next()?;
        let (bound, by_data) = bound.strip_suffix('?').map_or((bound, false), |bound| (bound, true));
        let row = TableRow { bound: Bound::parse(bound)?, by_data, name: words.next()?.to_owned(), ..row };
        words.next().is_none().then_some(row)
    }

    /// Whether a loop with tensor instructions has too few of them.
    fn has_few_tensor_instructions(&self) -> bool {
        self.tensor > 0.0 && self.tensor < LEAST_TENSOR
    }

    /// Whether the row needs a reason.
    fn needs_reason(&self) -> bool {
        self.bound.is_of_instructions() || self.has_few_tensor_instructions()
    }

    /// Complaints: columns in which a kernel is worse than its row of the table, or than the limit for all kernels.
    fn problems(&self, known: Option<&TableRow>, reason: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if self.local > 0 {
            problems.push(format!("{} instructions of a thread go to local memory", self.local));
        }
        if self.has_few_tensor_instructions() && reason.is_empty() {
            problems.push(format!(
                "{} percent of the inner loop are tensor instructions, less than a third, and the table has no reason for it",
                self.tensor
            ));
        }
        if self.bound.is_of_instructions() && reason.is_empty() {
            problems.push(format!(
                "instructions take {} us, memory {} us, and the table has no reason for it",
                self.time, self.memory
            ));
        }
        let Some(known) = known else { return problems };
        let mut compare = |what: &str, now: f64, before: f64| {
            if now > before * (1.0 + SLACK) + 0.01 {
                problems.push(format!("{what}: {now}, where the table has {before}"));
            }
        };
        compare("instructions by elements", self.per_element, known.per_element);
        compare("microseconds", self.time, known.time);
        compare("percent of other than tensor instructions", 100.0 - self.tensor, 100.0 - known.tensor);
        problems
    }
}

impl fmt::Display for TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableRow { per_element, in_loop, tensor, special, local, in_flight, widths, .. } = self;
        let bound = format!("{}{}", self.bound, if self.by_data { "?" } else { "" });
        write!(f, "{per_element:>10} {in_loop:>7} {tensor:>7} {special:>7} {local:>5} {in_flight:>9} {widths:>9} ")?;
        write!(f, "{:>9} {:>9} {:>8} {bound:<13} {}", self.memory, self.issue, self.time, self.name)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, " | {}", self.reason) }
    }
}

/// A kernel's name without the numbers in it: `a/k3_dot_7` is `a/dot`.
fn stem(name: &str) -> String {
    let (program, kernel) = name.split_once('/').unwrap_or(("", name));
    let is_number = |word: &str| word.strip_prefix('k').unwrap_or(word).parse::<u64>().is_ok();
    let words = kernel.split('_').filter(|word| !is_number(word));
    format!("{program}/{}", words.collect::<Vec<_>>().join("_"))
}

/// Three digits.
fn rounded(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(2 - number.log10().floor() as i32).max(1.0);
    let rounded = (number * scale).round() / scale;
    if rounded < 0.01 { (number * 1000.0).round() / 1000.0 } else { rounded }
}

fn widths(stretch: &Stretch) -> String {
    let list = |widths: &std::collections::BTreeSet<u64>| {
        let widths: Vec<String> = widths.iter().map(u64::to_string).collect();
        if widths.is_empty() { "-".to_owned() } else { widths.join(",") }
    };
    format!("{}/{}", list(&stretch.loads), list(&stretch.stores))
}

/// The rows of a table.
pub struct Table(Vec<TableRow>);

/// Outcome of a comparison with the table.
#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    pub problems: Vec<String>,
    /// Number of kernels that are not in the table.
    pub new: usize,
    /// Number of rows whose kernels are gone.
    pub gone: usize,
    /// Number of kernels that are better than the table by more than the slack.
    pub better: usize,
}

impl Table {
    pub fn new(rows: Vec<TableRow>) -> Table {
        Table(rows)
    }

    pub fn parse(text: &str) -> Result<Table> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') || line == HEAD {
                continue;
            }
            rows.push(TableRow::parse(line).with_context(|| format!("line {} is no row: '{line}'", number + 1))?);
        }
        if rows.is_empty() {
            bail!("the table has no rows");
        }
        Ok(Table(rows))
    }

    fn row(&self, name: &str) -> Option<&TableRow> {
        self.0.iter().find(|row| row.name == name)
    }

    /// Reason of a kernel, found by its name without numbers, because passes number instructions anew.
    fn reason(&self, name: &str) -> &str {
        let like = || self.0.iter().find(|row| !row.reason.is_empty() && stem(&row.name) == stem(name));
        self.row(name).filter(|row| !row.reason.is_empty()).or_else(like).map_or("", |row| row.reason.as_str())
    }

    /// Takes over the reasons of another table for kernels that still need one.
    pub fn take_reasons(&mut self, from: &Table) {
        for row in self.0.iter_mut().filter(|row| row.needs_reason()) {
            row.reason = from.reason(&row.name).to_owned();
        }
    }

    /// Kernels that need a reason and have none.
    pub fn without_reason(&self) -> impl Iterator<Item = &TableRow> {
        self.0.iter().filter(|row| row.needs_reason() && row.reason.is_empty())
    }

    /// Compares kernels with the table that is kept. With `whole`, it has them all.
    pub fn compare(&self, kept: &Table, whole: bool) -> Comparison {
        let mut comparison = Comparison::default();
        for row in &self.0 {
            let known = kept.row(&row.name);
            comparison.problems.extend(
                row.problems(known, kept.reason(&row.name)).iter().map(|problem| format!("{}: {problem}", row.name)),
            );
            match known {
                Some(known) if row.per_element < known.per_element * (1.0 - SLACK) => comparison.better += 1,
                Some(_) => {}
                None => comparison.new += 1,
            }
        }
        if whole {
            comparison.gone = kept.0.iter().filter(|known| self.row(&known.name).is_none()).count();
        }
        comparison
    }

    /// Text of the table, with a description of its columns.
    pub fn text(&self, rates: &Rates) -> String {
        let rows: String = self.0.iter().map(|row| format!("{row}\n")).collect();
        format!(
            "\
# Kernels of the benchmark programs on {} ({}), estimated from machine code by `cargo xtask ptxas --roofline`; --update writes
# this file anew and keeps the reasons. The chapter on GPUs in docs/src/backend says how times are estimated.
#
# instr/elem  instructions of all threads by elements of the largest array, as far as it is read or written;
#             in-loop: those of the innermost loop in which most are done, or all where there is no loop
# tensor%     share of tensor instructions in that loop              in-flight  loads of a thread before it waits for the first, there
# special     special functions by elements                          local      instructions of a thread to local memory (spills)
# widths      bytes of loads/stores of global memory                 us         largest of memory-us, issue-us, special functions, tensor
# bound?      with ?: data decides how often a loop is done,                    cores and 2 us of a launch; bound says which
#             which is counted once
{HEAD}
{rows}",
            rates.architecture, rates.model
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, per_element: f64, bound: Bound, reason: &str) -> TableRow {
        TableRow {
            name: name.to_owned(),
            per_element,
            in_loop: per_element,
            tensor: 40.0,
            special: 0.0,
            local: 0,
            in_flight: 4,
            widths: "4,16/16".to_owned(),
            memory: 10.0,
            issue: 12.0,
            time: 12.0,
            bound,
            by_data: true,
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn there_and_back() {
        let rows =
            vec![row("a/k0", 3.25, Bound::Memory, ""), row("a/k1", 75.0, Bound::Instructions, "exact | by hand")];
        let text = Table::new(rows.clone()).text(&Rates::of("sm_90").unwrap());
        assert_eq!(Table::parse(&text).unwrap().0, rows);
        let error = Table::parse("1 2 three").err().unwrap().to_string();
        assert!(error.contains("line 1 is no row: '1 2 three'"), "{error}");
        assert!(Table::parse("# nothing").is_err());
    }

    #[test]
    fn what_gets_worse_is_told() {
        let kept = Table::new(vec![
            row("same", 10.0, Bound::Memory, ""),
            row("known", 10.0, Bound::Instructions, "it computes much"),
            row("gone", 10.0, Bound::Memory, ""),
        ]);
        let compare = |row: TableRow| Table::new(vec![row]).compare(&kept, false).problems.join("; ");
        assert_eq!(compare(row("same", 10.4, Bound::Memory, "")), "");
        assert!(compare(row("same", 10.6, Bound::Memory, "")).contains("same: instructions by elements: 10.6"));
        assert!(compare(row("same", 10.0, Bound::Special, "")).contains("no reason"));
        assert!(compare(row("new", 10.0, Bound::Instructions, "")).contains("no reason"));
        assert_eq!(compare(row("known", 10.0, Bound::Instructions, "")), "");
        let with = |change: fn(&mut TableRow)| {
            let mut row = row("same", 10.0, Bound::Memory, "");
            change(&mut row);
            compare(row)
        };
        assert!(with(|row| row.local = 2).contains("2 instructions of a thread go to local memory"));
        assert!(with(|row| row.time = 13.0).contains("microseconds: 13"));
        assert!(with(|row| row.tensor = 36.0).contains("percent of other than tensor instructions: 64"));
        assert_eq!(with(|row| row.tensor = 39.0), "");
        let mut few = row("new", 10.0, Bound::Memory, "");
        few.tensor = 33.0;
        assert!(compare(few.clone()).contains("33 percent of the inner loop are tensor instructions"));
        few.tensor = 0.0;
        assert_eq!(compare(few), "");
        let all = Table::new(vec![row("same", 5.0, Bound::Memory, ""), row("new", 1.0, Bound::Memory, "")]);
        let expected = Comparison { problems: Vec::new(), new: 1, gone: 2, better: 1 };
        assert_eq!(all.compare(&kept, true), expected);
    }

    #[test]
    fn reasons_are_kept_while_they_are_needed() {
        let kept = Table::new(vec![
            row("a", 1.0, Bound::Instructions, "because"),
            row("b", 1.0, Bound::Instructions, "because"),
            row("p/k1_dot_3", 1.0, Bound::Instructions, "tiles"),
            TableRow { tensor: 20.0, ..row("q", 1.0, Bound::Memory, "small") },
        ]);
        let mut now = Table::new(vec![
            row("a", 1.0, Bound::Instructions, ""),
            row("b", 1.0, Bound::Memory, ""),
            row("p/k1_add", 1.0, Bound::Instructions, ""),
            row("p/k2_dot", 1.0, Bound::Instructions, ""),
            TableRow { tensor: 25.0, ..row("q", 1.0, Bound::Memory, "") },
            TableRow { tensor: 50.0, ..row("r", 1.0, Bound::Memory, "") },
        ]);
        now.take_reasons(&kept);
        let reasons: Vec<&str> = now.0.iter().map(|row| row.reason.as_str()).collect();
        assert_eq!(reasons, ["because", "", "", "tiles", "small", ""]);
        assert_eq!(now.without_reason().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["p/k1_add"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.0, 0.00123, 0.04567, 1.2345, 12.345, 1234.5, 98765.0].map(rounded);
        assert_eq!(numbers, [0.0, 0.001, 0.0457, 1.23, 12.3, 1235.0, 98765.0]);
    }
}
