//! The rule for every text file: no path of a developer's machine.

use crate::Finding;

/// Folders that identify a developer's machine.
const FOLDERS: &[&str] = &["/work/", "/home/", "/root/", "/tmp/"];

/// The file that must name them.
const SELF: &str = "tests/tidy/src/text.rs";

pub fn check(path: &str, content: &str) -> Vec<Finding> {
    if path == SELF {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in content.lines().enumerate() {
        if let Some(folder) = FOLDERS.iter().find(|folder| names(line, folder)) {
            let advice =
                format!("`{folder}` is a place on one machine; say it relative to the repository, or with a variable");
            found.push(Finding::failure(path, number + 1, "machine-path", advice));
        }
    }
    found
}

/// Whether a line has an absolute path that begins with `folder`.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}/*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_of_a_machine_are_found() {
        let found =
            check("README.md", "fine\nsee /home/me/x\n\"/tmp/a\"\nhttps://x.org/work/a\n../work/b $HOME/tmp/c\n");
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3]);
        assert!(check(SELF, "/root/x").is_empty());
    }
}
