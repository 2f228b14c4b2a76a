//! The rule for names: retired words are not used again.

use crate::Finding;
use crate::lexer::{Line, is_word};

/// A word that names no longer contain, its replacement, and the names that may have it in another sense.
struct Retired {
    words: &'static [&'static str],
    instead: &'static str,
    /// Names of Rust's library, and of other things.
    except: &'static [&'static str],
    /// Folders and files whose subject has the word.
    within: &'static [&'static str],
}

const RETIRED: &[Retired] = &[
    Retired {
        words: &["fold", "folds", "folded", "folding"],
        instead: "reduce, reduction; what evaluates constants is constant folding",
        except: &["fold", "try_fold", "fold_constants", "fold_kernels", "FoldConstants", "FoldKernels"],
        within: &["fold_constants.rs", "fold_kernels.rs"],
    },
    Retired { words: &["coord", "coords"], instead: "AffineExpr", except: &[], within: &[] },
    Retired { words: &["team", "teams"], instead: "thread group", except: &[], within: &[] },
    Retired { words: &["strand", "strands"], instead: "fiber", except: &[], within: &[] },
    Retired { words: &["thin"], instead: "skinny", except: &[], within: &[] },
    Retired { words: &["knob", "knobs"], instead: "options", except: &[], within: &[] },
    Retired { words: &["dear", "dearer"], instead: "expensive", except: &[], within: &[] },
    Retired { words: &["nought"], instead: "zero", except: &[], within: &[] },
    Retired { words: &["trail"], instead: "in-flight log", except: &[], within: &[] },
];

/// Checks the names in the code of one file.
pub fn check(path: &str, lines: &[Line]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        for name in line.code.split(|c| !is_word(c)).filter(|name| !name.is_empty()) {
            if let Some(retired) = RETIRED.iter().find(|retired| retired.forbids(path, name)) {
                let advice = format!("`{name}` has a word that was retired; say {}", retired.instead);
                found.push(Finding::failure(path, number + 1, "word", advice));
            }
        }
    }
    found
}

impl Retired {
    fn forbids(&self, path: &str, name: &str) -> bool {
        !self.except.contains(&name)
            && words(name).iter().any(|word| self.words.contains(&word.as_str()))
            && !self.within.iter().any(|within| path.ends_with(within))
    }
}

/// The words of a name in snake or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && after_small) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase() || c.is_numeric();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer;

    #[test]
    fn retired_words_are_found_in_names_alone() {
        let source =
            "// a fold\nlet row_fold = xs.iter().fold(0, f(\"fold_rows\"));\nstruct FoldDirection(CoordMap);\n";
        let found = check("a/src/lib.rs", &lexer::lines(source));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 3, 3]);
        assert!(check("a/src/fold_constants.rs", &lexer::lines("fn folded() {}")).is_empty());
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("FoldDirection"), ["fold", "direction"]);
        assert_eq!(words("any_fold_in_parts"), ["any", "fold", "in", "parts"]);
        assert_eq!(words("FOLD"), ["fold"]);
        assert_eq!(words("folder"), ["folder"]);
    }
}
