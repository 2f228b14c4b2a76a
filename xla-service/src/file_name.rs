//! File names derived from program names: of bounded length, without special characters of shells or terminals.

use sha2::{Digest, Sha256};

use crate::file_cache::hex;

/// Maximum length in bytes of the file names that [`file_name`] returns. File systems allow 255 bytes, some only 143;
/// the difference leaves room for a prefix or an extension.
pub const LONGEST_FILE_NAME: usize = 100;

/// Number of hexadecimal digits of the hash at the end of a shortened name.
const HASH_DIGITS: usize = 16;

/// Returns `name` as a file name: ASCII letters, digits, `.`, `_` and `-`, every other character replaced by `_`.
///
/// A name longer than [`LONGEST_FILE_NAME`] is truncated and ends in a hash of the whole name, so that two long names
/// stay distinct. The result is never empty and does not begin with `.` or `-`.
///
/// ```
/// use xla_service::{LONGEST_FILE_NAME, file_name};
///
/// assert_eq!(file_name("jit_f.1"), "jit_f.1");
/// assert_eq!(file_name("../a b\u{1b}[31m"), "_._a_b__31m");
/// let [one, other] = ["1", "2"].map(|end| file_name(&("long_".repeat(100) + end)));
/// assert!(one.len() == LONGEST_FILE_NAME && one != other);
/// ```
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let mut plain: String = name.chars().map(plain).collect();
    if plain.is_empty() || plain.starts_with(['.', '-']) {
        plain.replace_range(..plain.len().min(1), "_");
    }
    if plain.len() <= LONGEST_FILE_NAME {
        return plain;
    }
    plain.truncate(LONGEST_FILE_NAME - HASH_DIGITS - 1);
    format!("{plain}-{}", &hex(Sha256::new_with_prefix(name))[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_hide_a_file_or_look_like_an_option_are_changed() {
        assert_eq!(["", ".", "..", "-o", "a/b", "é"].map(file_name), ["_", "_", "_.", "_o", "a_b", "_"]);
    }

    #[test]
    fn only_names_over_the_limit_are_shortened() {
        let longest = "x".repeat(LONGEST_FILE_NAME);
        assert_eq!(file_name(&longest), longest);
        let shortened = file_name(&(longest.clone() + "x"));
        assert_eq!(shortened.len(), LONGEST_FILE_NAME);
        assert_ne!(shortened, file_name(&(longest + "y")));
    }
}
