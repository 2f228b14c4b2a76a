//! Invalid assignments that the verifier must reject.

use xla_hlo::Module;
use xla_hlo::entity::EntityId;
use xla_hlo::text::parse_module;
use xla_passes::buffers::{BufferAssignment, BufferOptions, Slice, assign_buffers, verify_assignment};
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;

fn assigned(text: &str) -> (Module, BufferAssignment) {
    let mut module = parse_module(text).expect("it parses");
    schedule_module(&mut module).expect("it can be scheduled");
    insert_copies(&mut module).expect("copies can be inserted");
    let assignment = assign_buffers(&module, &BufferOptions::default()).expect("buffers can be assigned");
    (module, assignment)
}

const LOOP: &str = include_str!("programs/loop.hlo");

/// Moves all leaves with the slice of `%from` in one computation to the slice of `%to` in another.
fn move_leaves(module: &Module, assignment: &mut BufferAssignment, from: (&str, &str), to: (&str, &str)) {
    let slice = |(comp, name): (&str, &str)| {
        let comp = module.find(comp).expect("the computation exists");
        assignment.slice(comp, module[comp].find(name).expect("the instruction exists"), &[]).expect("an array")
    };
    let (from, to) = (slice(from), slice(to));
    assert_ne!(from, to, "the test moves something");
    for leaves in assignment.leaves.values_mut() {
        leaves.iter_mut().for_each(|(_, s)| *s = if *s == Some(from) { Some(to) } else { *s });
    }
}

fn refused(from: (&str, &str), to: (&str, &str)) -> String {
    refused_in(LOOP, from, to)
}

fn refused_in(text: &str, from: (&str, &str), to: (&str, &str)) -> String {
    let (module, mut assignment) = assigned(text);
    verify_assignment(&module, &assignment).expect("it is right before");
    move_leaves(&module, &mut assignment, from, to);
    verify_assignment(&module, &assignment).expect_err("the checker accepts a wrong assignment").to_string()
}

#[test]
fn clobbered_state_is_found() {
    assert!(refused(("body", "back"), ("body", "x")).contains("writes over its operand 0 while reading it"));
}

#[test]
fn clobbered_values_across_a_loop_are_found() {
    let error = refused(("body", "back"), ("main", "kept"));
    assert!(error.contains("when %result reads it"), "{error}");
}

#[test]
fn writes_to_parameters_are_found() {
    assert!(refused(("main", "kept"), ("main", "p")).contains("which is read-only"));
}

#[test]
fn values_that_any_branch_clobbers_are_found() {
    let text = include_str!("programs/values_that_any_branch_clobbers_are_found.hlo");
    for from in [("one", "a"), ("two", "c")] {
        let error = refused_in(text, from, ("main", "kept"));
        assert!(error.contains("when %result reads it"), "{from:?}: {error}");
    }
}

#[test]
fn two_leaves_of_a_state_in_one_place_are_found() {
    let text = include_str!("programs/two_leaves_of_a_state_in_one_place_are_found.hlo");
    let error = refused_in(text, ("body", "y"), ("body", "x"));
    assert!(error.contains("%loop"), "{error}");
}

#[test]
fn nothing_is_written_where_nothing_may_be_written() {
    let text = include_str!("programs/nothing_is_written_where_nothing_may_be_written.hlo");
    let (module, mut assignment) = assigned(text);
    let main = module.find("main").expect("the entry");
    let at = |name: &str| (main, module[main].find(name).expect("it exists"));
    let parameter = assignment.slice(main, at("p").1, &[]).expect("an array");
    assignment.leaves.insert(at("n"), vec![(Vec::new(), Some(Slice { size: 0, ..parameter }))]);
    verify_assignment(&module, &assignment).expect("no byte is written");
}

#[test]
fn a_result_outside_of_its_output_is_found() {
    let (module, mut assignment) = assigned(LOOP);
    let main = module.find("main").expect("the entry");
    let root = assignment.slice(main, module[main].root(), &[]).expect("an array");
    let kept = module[main].find("kept").expect("it exists");
    let kept = assignment.slice(main, kept, &[]).expect("an array");
    let other = if kept == root { assignment.slice(main, module[main].find("y").expect("y"), &[]) } else { Ok(kept) };
    assignment.leaves.insert((main, module[main].root()), vec![(Vec::new(), Some(other.expect("an array")))]);
    let error = verify_assignment(&module, &assignment).expect_err("the output is elsewhere").to_string();
    assert!(error.contains("buffer assignment is wrong"), "{error}");
}

#[test]
fn another_order_is_found() {
    let text = include_str!("programs/another_order_is_found.hlo");
    let (mut module, assignment) = assigned(text);
    let entry = module.entry_id();
    let at = |name: &str| module[entry].find(name).expect("it exists");
    let order = ["x", "c", "a", "d", "b", "r"].map(at).to_vec();
    assert_ne!(module[entry].schedule(), Some(&order[..]));
    module.computation_mut(entry).set_schedule(Some(order));
    let error = verify_assignment(&module, &assignment).expect_err("two values are in one place").to_string();
    assert!(error.contains("is not in leaf 0"), "{error}");
}

#[test]
fn places_that_do_not_fit_are_found() {
    let refused = |damage: fn(&mut Vec<usize>, &mut Slice, usize)| {
        let (module, mut assignment) = assigned(LOOP);
        let main = module.find("main").expect("the entry");
        let kept = module[main].find("kept").expect("it exists");
        let slice = assignment.slice(main, kept, &[]).expect("an array");
        let allocation = &mut assignment.allocations[slice.allocation.index()];
        // Adds room, so that only the location is wrong.
        allocation.size += 4 * allocation.alignment;
        let size = allocation.size;
        let leaf = &mut assignment.leaves.get_mut(&(main, kept)).expect("it has a place")[0];
        damage(&mut leaf.0, leaf.1.as_mut().expect("an array"), size);
        verify_assignment(&module, &assignment).expect_err("the checker accepts a wrong place").to_string()
    };
    for damage in [
        |_: &mut Vec<usize>, slice: &mut Slice, _| slice.offset += 8,
        |_: &mut Vec<usize>, slice: &mut Slice, _| slice.size -= 4,
        |_: &mut Vec<usize>, slice: &mut Slice, size| slice.offset = size,
        |_: &mut Vec<usize>, slice: &mut Slice, _| slice.offset = usize::MAX - 63,
        |path: &mut Vec<usize>, _: &mut Slice, _| path.push(0),
    ] {
        let error = refused(damage);
        assert!(error.contains("does not fit at"), "{error}");
    }
}
