//! Tests of memory spaces: values placed in memories other than the default one, and copies to them.

use std::collections::BTreeSet;

use xla_hlo::text::{PrintOptions, parse_module, print_module};
use xla_hlo::{Module, Opcode};
use xla_passes::buffers::{BufferAssignment, BufferOptions, assign_buffers};
use xla_passes::{MemorySpaceProfile, PassContext, PassOptions, TargetProfile, registry};

/// Returns a scratchpad of `bytes` bytes.
fn scratchpad(bytes: usize) -> MemorySpaceProfile {
    MemorySpaceProfile {
        space: 1,
        bytes,
        alignment: 64,
        max_value_bytes: 1024,
        constants: false,
        staged: BTreeSet::new(),
    }
}

/// Schedules a program, assigns memory spaces, and assigns buffers.
fn filled(text: &str, spaces: Vec<MemorySpaceProfile>) -> (Module, BufferAssignment) {
    let profile = TargetProfile { memory_spaces: spaces, ..TargetProfile::generic() };
    let mut module = parse_module(text).expect("it parses");
    let options = PassOptions { verify: true, ..PassOptions::default() };
    let cx = PassContext::new(&profile).with_options(options);
    let passes = ["normalize-layouts", "schedule", "insert-copies", "assign-memory-spaces"];
    registry::pipeline(passes).expect("they exist").run(&mut module, &cx).expect("the passes succeed");
    let again = registry::pipeline(["assign-memory-spaces"]).expect("it exists");
    assert!(!again.run(&mut module.clone(), &cx).expect("it succeeds").is_changed(), "a second run changes it");
    let options = BufferOptions { verify: true, ..BufferOptions::default() };
    let buffers = assign_buffers(&module, &options).unwrap_or_else(|e| panic!("{e}\n{module}"));
    for space in &profile.memory_spaces {
        assert!(in_space(&buffers, space.space) <= space.bytes, "{buffers}");
    }
    (module, buffers)
}

fn in_space(buffers: &BufferAssignment, space: i64) -> usize {
    buffers.allocations().iter().filter(|a| a.memory_space == space).map(|a| a.size).sum()
}

/// Returns the names of the instructions that are in a space, in the order of the text.
fn names(module: &Module, space: i64) -> Vec<String> {
    let options = PrintOptions { layouts: true, ..PrintOptions::short_parsable() };
    let text = print_module(module, &options);
    let there = text.lines().filter(|line| line.contains(&format!("S({space})")));
    there
        .filter_map(|line| line.trim().split_once(" = "))
        .map(|(name, _)| name.trim_start_matches("ROOT ").to_string())
        .collect()
}

/// Chain in which `b` is read three times and the others once or twice.
const CHAIN: &str = include_str!("programs/chain.hlo");

#[test]
fn what_is_used_most_comes_first() {
    let none: [&str; 0] = [];
    assert_eq!(names(&filled(CHAIN, Vec::new()).0, 1), none);
    assert_eq!(names(&filled(CHAIN, vec![scratchpad(1023)]).0, 1), none, "nothing fits");
    assert_eq!(names(&filled(CHAIN, vec![scratchpad(1024)]).0, 1), ["b"]);
    assert_eq!(names(&filled(CHAIN, vec![scratchpad(2048)]).0, 1), ["a", "b", "d"]);
    let (module, buffers) = filled(CHAIN, vec![scratchpad(1 << 20)]);
    assert_eq!(names(&module, 1), ["a", "b", "c", "d", "e"], "not what is too large, and no result");
    assert_eq!(in_space(&buffers, 1), 3072, "only what is alive at once takes room");
}

#[test]
fn spaces_are_filled_in_their_order() {
    let second = MemorySpaceProfile { space: 2, max_value_bytes: 2048, ..scratchpad(4096) };
    let (module, _) = filled(CHAIN, vec![scratchpad(1024), second]);
    assert_eq!(names(&module, 1), ["b"]);
    assert_eq!(names(&module, 2), ["a", "c", "d", "e", "large"]);
}

/// The state of a loop is in one memory, under all of its names; arrays that the loop reads more often have priority.
#[test]
fn state_of_loops_moves_as_a_whole() {
    let text = include_str!("programs/state_of_loops_moves_as_a_whole.hlo");
    let (module, _) = filled(text, vec![scratchpad(192)]);
    let there = names(&module, 1);
    for name in ["a", "state", "x", "sum", "result", "tuple", "loop", "p"] {
        assert!(there.iter().any(|n| n == name), "{name} is not in {there:?}");
    }
    assert!(!there.iter().any(|n| ["b", "y", "q"].contains(&&**n)), "{there:?}");
}

#[test]
fn operands_are_copied_to_where_they_are_wanted() {
    let wants = |bytes| MemorySpaceProfile { staged: BTreeSet::from([Opcode::Dot]), ..scratchpad(bytes) };
    let text = include_str!("programs/operands_are_copied_to_where_they_are_wanted.hlo");
    assert_eq!(names(&filled(text, vec![wants(4096)]).0, 1), ["copy", "copy.1", "a", "copy.2"]);
    assert_eq!(names(&filled(text, vec![wants(2048)]).0, 1), ["copy", "a", "copy.1"], "there is room for two at once");
    assert_eq!(names(&filled(text, vec![scratchpad(4096)]).0, 1), ["a"], "nobody asks for more");
}

#[test]
fn constants_live_there_if_they_may() {
    let text = include_str!("programs/constants_live_there_if_they_may.hlo");
    let (module, _) = filled(text, vec![MemorySpaceProfile { constants: true, ..scratchpad(4096) }]);
    assert_eq!(names(&module, 1), ["d"], "a custom call knows nothing of it");
    assert!(names(&filled(text, vec![scratchpad(4096)]).0, 1).is_empty());
}
