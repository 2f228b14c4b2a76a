//! C and C++ identifiers: names of entry functions and of the fields of their calls.

use std::collections::{HashMap, HashSet};

use xla_hlo::{Error, Result};
use xla_service::AotCompilationOptions;

/// Maximum length of a name.
const LONGEST: usize = 100;

/// Keywords of C or C++.
const KEYWORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// C and C++ names of the programs of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Stem of the file names.
    pub object: String,
    /// Names of the entry functions.
    pub entries: Vec<String>,
    /// C++ namespace, outermost part first; empty for the global one.
    pub namespace: Vec<String>,
}

impl Names {
    /// Takes the names from the options, or derives them from the modules' names.
    pub fn new<'m>(options: &AotCompilationOptions, modules: impl ExactSizeIterator<Item = &'m str>) -> Result<Names> {
        let (symbols, count) = (&options.symbols, modules.len());
        if count == 0 {
            return Err(Error::invalid_argument("no module was given to compile"));
        }
        if ![0, count].contains(&symbols.len()) {
            let given = symbols.len();
            return Err(Error::invalid_argument(format!(
                "the number of symbols ({given}) differs from the number of modules ({count}); give a symbol for each, or none"
            )));
        }
        let entries: Vec<String> = match symbols[..] {
            [] => modules.map(|module| identifier(module, "program")).collect(),
            _ => symbols.iter().map(|symbol| checked(symbol, "symbol")).collect::<Result<_>>()?,
        };
        // Macro names are upper case, so names must differ in more than case.
        let capitals: HashSet<String> = entries.iter().map(|entry| entry.to_ascii_uppercase()).collect();
        if capitals.len() < entries.len() {
            let entries = entries.join(", ");
            return Err(Error::invalid_argument(format!(
                "the programs of an object must have different names, not {entries}: give a symbol for each"
            )));
        }
        let object = match &options.name {
            Some(name) => checked(name, "name")?,
            None => entries[0].clone(),
        };
        let parts = options.namespace.iter().flat_map(|namespace| namespace.split("::"));
        let namespace = parts.map(|part| checked(part, "namespace")).collect::<Result<_>>()?;
        Ok(Names { object, entries, namespace })
    }
}

/// Returns a name from the options; [`Error::InvalidArgument`] if it is not valid in C and C++.
fn checked(name: &str, what: &str) -> Result<String> {
    if !name.is_empty() && identifier(name, "") == name {
        return Ok(name.to_string());
    }
    Err(Error::invalid_argument(format!(
        "{what} {name:?} is not a name in C and C++: at most {LONGEST} letters, digits and underscores, no digit first, no two underscores in a row, no keyword"
    )))
}

/// Whether a text may be the name of an external C function, which may use reserved identifiers.
pub(super) fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    letters && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && !KEYWORDS.contains(&name)
}

/// Converts a text to an identifier; returns `otherwise` if no characters remain.
pub(super) fn identifier(text: &str, otherwise: &str) -> String {
    // Leading underscores, and two consecutive ones, are reserved for implementations.
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("_");
    name.truncate(LONGEST);
    match name.trim_end_matches('_') {
        "" => otherwise.to_string(),
        _ if name.starts_with(|c: char| c.is_ascii_digit()) => format!("n{name}"),
        _ if KEYWORDS.contains(&name.as_str()) => format!("{name}_"),
        whole => whole.to_string(),
    }
}

/// Generator of distinct field names.
pub(super) struct Fields {
    taken: HashSet<String>,
    /// Smallest number that may be free, by lower-case name: all smaller ones are taken.
    next: HashMap<String, usize>,
}

impl Fields {
    /// Creates a generator that does not return the `taken` names.
    pub fn new(taken: &[&str]) -> Fields {
        Fields { taken: taken.iter().map(ToString::to_string).collect(), next: HashMap::new() }
    }

    /// Converts a text to a name that was not returned before.
    pub fn name(&mut self, text: &str, otherwise: &str) -> String {
        // XLA appends a numeric suffix to names, as in `x.1`; remove it.
        let number = |suffix: &str| !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit());
        let stem = text.rsplit_once('.').filter(|(_, suffix)| number(suffix)).map_or(text, |(stem, _)| stem);
        let name = identifier(stem, otherwise);
        let with_number = |number: usize| if number == 0 { name.clone() } else { format!("{name}_{number}") };
        // Names become upper-case macros, so they must differ in more than case.
        let next = self.next.entry(name.to_ascii_lowercase()).or_default();
        let mut candidates = (*next..).map(|number| (number, with_number(number)));
        let free = candidates.find(|(_, name)| !self.taken.contains(&name.to_ascii_lowercase()));
        let (number, free) = free.unwrap_or_default();
        *next = number + 1;
        self.taken.insert(free.to_ascii_lowercase());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_names() {
        let cases = [
            ("jit_step.1", "jit_step_1"),
            ("3d", "n3d"),
            ("__x", "x"),
            ("class", "class_"),
            ("a.0___b__.1", "a_0_b_1"),
            ("é", "p"),
            ("", "p"),
        ];
        for (text, name) in cases {
            assert_eq!(identifier(text, "p"), name, "{text}");
        }
        assert_eq!(identifier(&"a".repeat(500), "p").len(), LONGEST);
    }

    #[test]
    fn fields_have_names_of_their_own() {
        let mut fields = Fields::new(&["arena"]);
        let names = ["x", "X", "x.7", "arena", "", "p['w'].12"].map(|text| fields.name(text, "arg"));
        assert_eq!(names, ["x", "X_1", "x_2", "arena_1", "arg", "p_w"]);
        // Numbering continues from the last one, and skips names that already exist.
        let names = ["x_4", "x", "x.9", "X", "x_3"].map(|text| fields.name(text, "arg"));
        assert_eq!(names, ["x_4", "x_3", "x_5", "X_6", "x_3_1"]);
    }

    #[test]
    fn programs_of_an_object_have_names_of_their_own() {
        let names = |symbols: &[&str], name: Option<&str>, modules: &[&'static str]| {
            let symbols = symbols.iter().map(ToString::to_string).collect();
            let options = AotCompilationOptions { symbols, name: name.map(str::to_string), ..Default::default() };
            Names::new(&options, modules.iter().copied()).map(|names| (names.object, names.entries))
        };
        let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<String>>();
        assert_eq!(names(&[], None, &["a.1", "b"]).unwrap(), ("a_1".to_string(), strings(&["a_1", "b"])));
        assert_eq!(names(&["x", "y"], Some("z"), &["a", "a"]).unwrap(), ("z".to_string(), strings(&["x", "y"])));
        for (symbols, modules) in
            [(&["x"][..], &["a", "b"][..]), (&[], &["a", "A"]), (&["x", "x"], &["a", "b"]), (&[], &[])]
        {
            assert!(matches!(names(symbols, None, modules), Err(Error::InvalidArgument(_))), "{symbols:?}");
        }
    }

    #[test]
    fn names_that_are_chosen_must_be_names() {
        let options = |symbol: &str, namespace: &str| AotCompilationOptions {
            symbols: vec![symbol.to_string()],
            namespace: Some(namespace.to_string()),
            ..AotCompilationOptions::default()
        };
        let new = |options: &AotCompilationOptions| Names::new(options, ["m"].into_iter());
        let names = new(&options("run", "a::b")).unwrap();
        assert_eq!((names.object.as_str(), names.entries), ("run", vec!["run".to_string()]));
        assert_eq!(names.namespace, ["a", "b"]);
        for (symbol, namespace) in [("my-model", "a"), ("run", "a::"), ("while", "a"), ("_x", "a")] {
            assert!(matches!(new(&options(symbol, namespace)), Err(Error::InvalidArgument(_))), "{symbol}");
        }
    }
}
