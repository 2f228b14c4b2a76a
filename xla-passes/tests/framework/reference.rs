//! Tests of the documentation of passes: the page of the book, and the facts in it that code can check.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xla_passes::{TargetProfile, reference, registry};

#[test]
fn the_page_of_the_book_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(reference::PATH);
    let text = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == reference::page(),
        "{0} is out of date: run `cargo xtask book`, or `cargo run -p xla -- opt --list-passes=markdown -o {0}`",
        reference::PATH
    );
}

#[test]
fn the_page_describes_each_pass_once() {
    let page = reference::page();
    for (name, _) in registry::list() {
        assert_eq!(page.matches(&format!("\n### `{name}`\n")).count(), 1, "{name}");
    }
    assert!(!page.contains("In no standard stage"), "each pass is in a stage");
}

#[test]
fn descriptions_have_two_to_five_sentences() {
    for info in registry::passes() {
        let text = info.description;
        let sentences = text.split(". ").count();
        assert!(text.ends_with('.') && (2..=5).contains(&sentences), "{}: {sentences} sentences", info.name);
        assert!(!info.summary.ends_with('.') && info.summary.starts_with(char::is_lowercase), "{}", info.name);
    }
}

/// Returns the fields of the target profile in the form of the registry: `threads`, `fusion.inside`.
fn profile_fields() -> BTreeSet<String> {
    let printed = format!("{:#?}", TargetProfile::poor());
    let mut fields = BTreeSet::new();
    let mut outer = "";
    for line in printed.lines() {
        let Some((field, value)) = line.trim_start().split_once(": ") else { continue };
        let is_struct = value.ends_with("Profile {");
        match line.len() - line.trim_start().len() {
            4 if is_struct => outer = field,
            4 => _ = fields.insert(field.to_string()),
            8 if field.chars().all(|c| c == '_' || c.is_ascii_lowercase()) => {
                fields.insert(format!("{outer}.{field}"));
            }
            _ => {}
        }
    }
    fields
}

#[test]
fn each_field_of_the_profile_is_read_by_a_documented_pass() {
    let fields = profile_fields();
    assert!(fields.contains("threads") && fields.contains("fusion.attention"), "{fields:?}");
    let named: BTreeSet<&str> = registry::passes().iter().flat_map(|info| info.profile.iter().copied()).collect();
    let is_part =
        |field: &str, name: &str| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    for name in &named {
        assert!(fields.iter().any(|field| is_part(field, name)), "the profile has no field {name}");
    }
    for field in &fields {
        assert!(named.iter().any(|name| is_part(field, name)), "no pass is documented to read {field}");
    }
}

#[test]
fn names_of_xla_are_aliases() {
    for (alias, name) in [("algsimp", "simplify-algebra"), ("cse", "common-subexpressions"), ("dce", "dead-code")] {
        assert_eq!(registry::pass(alias).expect(alias).name(), name);
    }
    let text = registry::parse("[cse,dce]*").expect("a list").to_string();
    assert!(text.ends_with("    common-subexpressions\n    dead-code\n"), "{text}");
    assert_eq!(registry::resolve_alias("fuse"), "fuse");
}

#[test]
fn an_alias_has_one_pass_and_is_not_the_name_of_another() {
    let names = registry::passes().iter().flat_map(|info| info.aliases.iter().copied().chain([info.name]));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
