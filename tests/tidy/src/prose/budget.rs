//! Budget of marked comment lines per crate, which only falls.

use std::collections::BTreeMap;

use super::markers::is_marked;
use crate::Finding;
use crate::lexer::Line;

/// File with one line per crate: its folder, and its budget of marked lines per 1,000 comment lines.
pub const BUDGET: &str = "xtask/prose-budget.txt";

/// Greatest distance below the budget; the budget must be lowered if it is exceeded.
const SLACK: usize = 5;

/// Comment lines by the folder of their crate.
#[derive(Default)]
pub struct Counts(BTreeMap<String, Count>);

#[derive(Default)]
struct Count {
    marked: usize,
    all: usize,
}

impl Count {
    /// Marked lines per 1,000, rounded up.
    fn share(&self) -> usize {
        (1000 * self.marked).div_ceil(self.all.max(1))
    }
}

impl Counts {
    /// Adds the comments of a file. Test modules of their own count in no crate.
    pub fn add(&mut self, path: &str, lines: &[Line]) {
        let Some((folder, file)) = path.split_once("/src/") else { return };
        if file.split('/').any(|part| part == "tests" || part == "tests.rs") {
            return;
        }
        let count = self.0.entry(folder.to_owned()).or_default();
        for line in lines {
            let text = line.comment.trim_start().trim_start_matches(['/', '!']).trim();
            count.all += usize::from(!text.is_empty());
            count.marked += usize::from(is_marked(text));
        }
    }
}

/// Compares the counts with the text of [`BUDGET`].
pub fn check(counts: &Counts, budget: &str) -> Vec<Finding> {
    let lines = budget.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let mut budgets: BTreeMap<&str, (usize, usize)> = lines
        .filter_map(|(number, line)| {
            let (folder, share) = line.split_once(' ')?;
            Some((folder, (number + 1, share.trim().parse().ok()?)))
        })
        .collect();
    let mut found = Vec::new();
    for (folder, count) in &counts.0 {
        let share = count.share();
        let (line, budget) = budgets.remove(folder.as_str()).unwrap_or_default();
        if share > budget {
            let advice = format!(
                "{} of {} comment lines of {folder} have a phrasing of tests/tidy/src/prose/markers.rs, {share} per 1,000; \
                 the budget is {budget}",
                count.marked, count.all
            );
            found.push(Finding::failure(BUDGET, line, "prose", advice));
        } else if share + SLACK < budget {
            found.push(Finding::failure(BUDGET, line, "prose", format!("lower the budget of {folder} to {share}")));
        }
    }
    found.extend(budgets.iter().map(|(folder, (line, _))| {
        Finding::failure(BUDGET, *line, "prose", format!("{folder} has no comments; take the line out"))
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lines;

    fn advice(budget: &str) -> Vec<String> {
        let mut counts = Counts::default();
        counts.add("a/src/lib.rs", &lines(&format!("/// Sees what.\n{}", "/// Plain.\n".repeat(99))));
        counts.add("a/src/b/tests.rs", &lines("/// Sees what.\n"));
        check(&counts, budget).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_budget_is_kept_and_falls() {
        assert!(advice("a 10").is_empty());
        assert!(advice("# a 3\na 15").is_empty());
        assert!(advice("a 9")[0].starts_with("xtask/prose-budget.txt:1: prose: 1 of 100 comment lines of a"));
        assert_eq!(advice("a 16"), ["xtask/prose-budget.txt:1: prose: lower the budget of a to 10"]);
        assert_eq!(advice("a 10\nb 3"), ["xtask/prose-budget.txt:2: prose: b has no comments; take the line out"]);
        assert_eq!(advice("").len(), 1);
    }
}
