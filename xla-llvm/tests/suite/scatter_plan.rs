//! Tests of the plans of scatters: windows and runs, and copies in the shared memory of blocks.

use xla_hlo::entity::EntityId;
use xla_hlo::ops::Scatter;
use xla_hlo::{ArrayShape, CompId, ElementType};
use xla_llvm::fused::ScatterPlan;
use xla_llvm::internals::{Apart, BatchAxis, BlockCopies, Component, WindowAxis, run};
use xla_llvm::target::Target;

fn plan(op: &Scatter, [input, indices, update]: [&[usize]; 3]) -> ScatterPlan {
    let [input, update] = [input, update].map(|dims| ArrayShape::new(ElementType::F32, dims));
    ScatterPlan::new(op, &input, &ArrayShape::new(ElementType::S16, indices), &update)
}

fn rows() -> Scatter {
    Scatter {
        update_window_dims: vec![1],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        input_batching_dims: vec![],
        scatter_indices_batching_dims: vec![],
        index_vector_dim: 1,
        indices_are_sorted: false,
        unique_indices: false,
        computation: CompId::from_index(0),
    }
}

#[test]
fn rows_are_runs() {
    let found = plan(&rows(), [&[50, 8], &[7, 1], &[7, 8]]);
    assert_eq!(found.batch, [BatchAxis { extent: 7, indices: 1, updates: 8, inputs: 0 }]);
    assert_eq!(found.components, [Component { offset: 0, places: 50, inputs: 8 }]);
    assert_eq!((found.window.len(), found.run, found.apart, found.work_items()), (0, 8, Apart::No, 1));
    assert_eq!(plan(&rows(), [&[50, 8], &[0, 1], &[0, 8]]).work_items(), 0);
}

#[test]
fn windows_across_rows_have_a_dimension_outside_of_runs() {
    let op = Scatter {
        update_window_dims: vec![1, 2],
        inserted_window_dims: vec![],
        scatter_dims_to_operand_dims: vec![1, 0],
        ..rows()
    };
    let plan = plan(&op, [&[50, 8], &[7, 2], &[7, 3, 5]]);
    assert_eq!(plan.window, [WindowAxis { extent: 3, inputs: 8, updates: 5 }]);
    let components = [(0, 4, 1), (1, 48, 8)].map(|(offset, places, inputs)| Component { offset, places, inputs });
    assert_eq!((&plan.components[..], plan.apart), (&components[..], Apart::No));
}

#[test]
fn batches_promises_and_places_of_large_windows_keep_windows_apart() {
    let op = Scatter {
        update_window_dims: vec![],
        inserted_window_dims: vec![1],
        scatter_dims_to_operand_dims: vec![1],
        input_batching_dims: vec![0],
        scatter_indices_batching_dims: vec![1],
        index_vector_dim: 2,
        ..rows()
    };
    let found = plan(&op, [&[90, 20], &[400, 90], &[400, 90]]);
    assert_eq!(found.batch[1], BatchAxis { extent: 90, indices: 1, updates: 1, inputs: 20 });
    assert_eq!((found.apart, found.work_items()), (Apart::Batch(1), 90));
    let found = |unique_indices, width| {
        let op = Scatter { unique_indices, ..rows() };
        let found = plan(&op, [&[500, width], &[7000, 1], &[7000, width]]);
        (found.apart, found.work_items())
    };
    assert_eq!(found(true, 8), (Apart::Batch(0), 7000));
    assert_eq!(found(true, 100), (Apart::Batch(0), 7000));
    assert_eq!(found(false, 100), (Apart::Component(0), 500));
    assert_eq!(found(false, 8), (Apart::No, 1), "looking costs more");
}

#[test]
fn runs_go_as_far_as_both_arrays_are_alike() {
    let run = |input: &[usize], update: &[usize], window: &[usize], inserted: &[usize]| {
        let op = Scatter { update_window_dims: window.to_vec(), inserted_window_dims: inserted.to_vec(), ..rows() };
        let [input, update] = [input, update].map(|dims| ArrayShape::new(ElementType::F32, dims));
        run(&op, &input, &update)
    };
    assert_eq!(run(&[100], &[7], &[], &[0]), 1);
    assert_eq!(run(&[100, 8], &[7, 8], &[1], &[0]), 8);
    assert_eq!(run(&[100, 4, 8], &[7, 4, 8], &[1, 2], &[0]), 32);
    assert_eq!(run(&[100, 4, 8], &[7, 3, 8], &[1, 2], &[0]), 24);
    assert_eq!(run(&[100, 4, 8], &[7, 4, 5], &[1, 2], &[0]), 5);
    assert_eq!(run(&[100, 8], &[8, 7], &[0], &[0]), 1, "the batch is innermost");
    assert_eq!(run(&[8, 100], &[7, 8], &[1], &[1]), 1, "the window is outermost");
    assert_eq!(run(&[8, 1], &[7, 8], &[1], &[1]), 8);
}

#[test]
fn many_updates_of_few_places_go_to_copies() {
    let target = Target::host_threads().unwrap().with_multiprocessors(132);
    let copies = |updates, elements, bytes| BlockCopies::new(updates, (elements, bytes), true, &target);
    assert!(copies(1 << 20, 256, 4).is_some_and(|plan| plan.copies == 8 && plan.blocks > 1));
    assert!(copies(1 << 20, 10_000, 4).is_some_and(|plan| plan.copies == 1));
    assert_eq!(copies(1 << 20, 20_000, 4), None, "more than fits");
    assert_eq!(copies(1 << 20, 0, 4), None);
    assert_eq!(copies(1000, 256, 4), None, "updates of the array take less time");
    assert_eq!(copies(u64::MAX, 1 << 40, u64::MAX), None);
}
