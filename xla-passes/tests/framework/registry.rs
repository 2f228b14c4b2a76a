//! Tests of the registry of passes and of lists of passes as text.

use xla_passes::registry::{parse, pass, passes, pipeline};

#[test]
fn each_name_makes_the_pass_of_that_name() {
    for info in passes() {
        assert_eq!(info.name, pass(info.name).expect("a pass").name());
    }
}

#[test]
fn names_are_in_alphabetical_order() {
    assert!(passes().iter().map(|info| info.name).is_sorted());
}

#[test]
fn lists_have_groups() {
    let text = parse("inline-calls, [simplify-tuples,[dead-code ]* ]*,fuse").expect("a list").to_string();
    let group =
        "  group (at most 12 iterations):\n    simplify-tuples\n    group (at most 12 iterations):\n      dead-code\n";
    assert_eq!(text, format!("custom:\n  inline-calls\n{group}  fuse\n"));
    assert_eq!(parse("[fuse]").expect("a list").to_string(), "custom:\n  group:\n    fuse\n");
}

#[test]
fn wrong_lists_are_refused() {
    let deep = "[".repeat(100);
    for (text, what) in [
        ("", "the name of a pass is missing"),
        ("fuse,", "the name of a pass is missing"),
        ("[fuse", "`[` has no matching `]`"),
        ("fuse]", "`]` has no matching `[`"),
        ("fuse*", "a star must follow a group"),
        ("[fuse]fuse", "a group must be followed by a comma"),
        ("[]*", "the name of a pass is missing"),
        ("fuse[dead-code]", "a group must be followed by a comma"),
        ("[fuse]\u{e4}", "a group must be followed by a comma"),
        (&deep, "nested too deep"),
    ] {
        let error = parse(text).err().expect(text);
        assert!(error.message().contains(what), "{text}: {error}");
    }
}

#[test]
fn unknown_names_are_refused_with_a_list() {
    let error = pipeline(["dead-code", "dead-cod"]).err().expect("there is no such pass");
    assert!(
        error.message().contains("\"dead-cod\"; did you mean dead-code?")
            && error.message().contains("simplify-tuples"),
        "{error}"
    );
}
