//! Tests of the indexing family: results of XLA:CPU, every element type, limits of index types, and violated rules.

use ElementType::{BF16, F32, Pred, S8, S32, S64, U8, U64};
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, Gather, Scatter};
use xla_hlo::{ArrayShape, CompId, ElementType, Literal, Scalar};

use crate::testing::{append_digit, array, assert_refused, combiner, distinct_bytes, function, numbers, run, scalar};

/// Gathers rows of a matrix at start indices `[n, 1]`.
fn rows(columns: usize) -> Gather {
    Gather {
        offset_dims: vec![1],
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        operand_batching_dims: vec![],
        start_indices_batching_dims: vec![],
        index_vector_dim: 1,
        slice_sizes: vec![1, columns],
        indices_are_sorted: false,
    }
}

/// Gathers 2 x 2 slices. Components of a start index are along dimension 0, last component first; slice dimensions are
/// 0 and 2.
fn slices() -> Gather {
    Gather {
        offset_dims: vec![0, 2],
        collapsed_slice_dims: vec![],
        start_index_map: vec![1, 0],
        index_vector_dim: 0,
        slice_sizes: vec![2, 2],
        ..rows(0)
    }
}

/// Gathers rows of batches of matrices. The indices array is `[n, batch]`, each index one component without its own
/// dimension.
fn batched_rows(columns: usize) -> Gather {
    Gather {
        offset_dims: vec![2],
        collapsed_slice_dims: vec![1],
        start_index_map: vec![1],
        operand_batching_dims: vec![0],
        start_indices_batching_dims: vec![1],
        index_vector_dim: 2,
        slice_sizes: vec![1, 1, columns],
        indices_are_sorted: false,
    }
}

/// Returns the scatter that writes the elements that the gather reads.
fn writing(op: Gather, computation: CompId) -> Scatter {
    Scatter {
        update_window_dims: op.offset_dims,
        inserted_window_dims: op.collapsed_slice_dims,
        scatter_dims_to_operand_dims: op.start_index_map,
        input_batching_dims: op.operand_batching_dims,
        scatter_indices_batching_dims: op.start_indices_batching_dims,
        index_vector_dim: op.index_vector_dim,
        indices_are_sorted: false,
        unique_indices: false,
        computation,
    }
}

fn counting(dims: &[usize], scale: f64) -> Literal {
    let count: usize = dims.iter().product();
    array(F32, dims, &(0..count).map(|i| i as f64 * scale).collect::<Vec<_>>())
}

fn gather(op: Gather, x: &Literal, starts: &Literal) -> Vec<f64> {
    numbers(&run(|_| op, None, &[x.clone(), starts.clone()]).unwrap())
}

fn scatter_add(op: Gather, x: &Literal, starts: &Literal, updates: &Literal) -> Vec<f64> {
    let op = |m: &mut ModuleBuilder| writing(op, combiner(m, BinaryOp::Add, F32));
    numbers(&run(op, None, &[x.clone(), starts.clone(), updates.clone()]).unwrap())
}

/// Start indices of [`slices`] in a 4 x 3 matrix: columns, then rows.
fn slice_starts() -> Literal {
    array(S32, &[2, 5], &[0.0, 1.0, 2.0, -1.0, 1.0, 0.0, 3.0, 2.0, 2.0, 1.0])
}

#[test]
fn slices_are_read_where_they_fit() {
    let x = counting(&[4, 3], 1.0);
    let found = gather(rows(3), &x, &array(U8, &[2, 1], &[255.0, 2.0]));
    assert_eq!(found, [9.0, 10.0, 11.0, 6.0, 7.0, 8.0]);
    let found = gather(slices(), &x, &slice_starts());
    let upper = [0.0, 1.0, 7.0, 8.0, 7.0, 8.0, 6.0, 7.0, 4.0, 5.0];
    let lower = [3.0, 4.0, 10.0, 11.0, 10.0, 11.0, 9.0, 10.0, 7.0, 8.0];
    assert_eq!(found, [upper, lower].concat());
    let starts = array(S32, &[3, 2], &[1.0, 9.0, 0.0, 2.0, 3.0, -5.0]);
    let found = gather(batched_rows(3), &counting(&[2, 4, 3], 1.0), &starts);
    let first_of_rows: Vec<f64> = found.iter().copied().step_by(3).collect();
    assert_eq!(first_of_rows, [3.0, 21.0, 0.0, 18.0, 9.0, 12.0]);
}

#[test]
fn slices_of_one_repeated_element_take_no_memory() {
    let splat = |dims: &[usize]| Literal::splat(&ArrayShape::new(F32, dims), Scalar::Float(3.0)).unwrap();
    let found = gather(rows(3), &splat(&[1 << 40, 3]), &array(U8, &[2, 1], &[255.0, 2.0]));
    assert_eq!(found, [3.0; 6]);
}

#[test]
fn index_types_at_their_limits() {
    let x = counting(&[4, 1], 1.0);
    let cases = [
        (S64, Scalar::Signed(i64::MIN), 0.0),
        (S64, Scalar::Signed(i64::MAX), 3.0),
        (U64, Scalar::Unsigned(u64::MAX), 3.0),
        (U64, Scalar::Unsigned(1 << 63), 3.0),
        (S8, Scalar::Signed(-128), 0.0),
        (U8, Scalar::Unsigned(255), 3.0),
        (ElementType::S4, Scalar::Signed(-8), 0.0),
        (ElementType::U4, Scalar::Unsigned(15), 3.0),
        (ElementType::U2, Scalar::Unsigned(2), 2.0),
    ];
    for (ty, value, expected) in cases {
        let start = Literal::splat(&ArrayShape::new(ty, [1, 1]), value).unwrap();
        assert_eq!(gather(rows(1), &x, &start), [expected], "{ty} {value:?}: clamped");
        let written = scatter_add(rows(1), &x, &start, &counting(&[1, 1], 1.0));
        assert_eq!(written, numbers(&x), "{ty} {value:?}: adding 0 changes nothing");
        let one = array(F32, &[1, 1], &[100.0]);
        let hit = scatter_add(rows(1), &x, &start, &one).iter().any(|v| *v >= 100.0);
        assert_eq!(hit, ty == ElementType::U2, "{ty} {value:?}: dropped unless inside");
    }
}

#[test]
fn windows_are_written_whole_or_not_at_all() {
    let x = counting(&[4, 3], 1.0);
    let starts = array(S32, &[5, 1], &[1.0, 3.0, 1.0, 4.0, -1.0]);
    let updates = array(F32, &[5, 3], &(1..=15).map(|i| f64::from(i) * 100.0).collect::<Vec<_>>());
    let result = scatter_add(rows(3), &x, &starts, &updates);
    assert_eq!(result, [0.0, 1.0, 2.0, 803.0, 1004.0, 1205.0, 6.0, 7.0, 8.0, 409.0, 510.0, 611.0]);
    // Window n has the values 400 n + 100, 200, 300, 400; updates are [row, n, column].
    let value = |i: usize| ((i / 2 % 5) * 4 + (i / 10) * 2 + i % 2 + 1) as f64 * 100.0;
    let updates = array(F32, &[2, 5, 2], &(0..20).map(value).collect::<Vec<_>>());
    let result = scatter_add(slices(), &x, &slice_starts(), &updates);
    assert_eq!(result, [100.0, 201.0, 2.0, 303.0, 2104.0, 1805.0, 6.0, 1907.0, 2008.0, 9.0, 10.0, 11.0]);
    let starts = array(S32, &[3, 2], &[1.0, 9.0, 0.0, 2.0, 3.0, -5.0]);
    let result = scatter_add(batched_rows(3), &counting(&[2, 4, 3], 1.0), &starts, &counting(&[3, 2, 3], 100.0));
    let first_of_rows: Vec<f64> = result.iter().copied().step_by(3).collect();
    assert_eq!(first_of_rows, [600.0, 3.0, 6.0, 1209.0, 12.0, 15.0, 918.0, 21.0]);
}

#[test]
fn repeated_places_are_combined_in_order() {
    let starts = array(S32, &[4, 1], &[0.0, 1.0, 0.0, 0.0]);
    let updates = array(S32, &[4, 1], &[1.0, 2.0, 3.0, 4.0]);
    let x = array(S32, &[2, 1], &[5.0, 6.0]);
    let operands = [x, starts, updates];
    let appended = run(|m| writing(rows(1), append_digit(m, S32)), None, &operands).unwrap();
    assert_eq!(numbers(&appended), [5134.0, 62.0]);
    let replaced = run(|m| writing(rows(1), function(m, &[S32, S32], |_, p| Ok(p[1]))), None, &operands).unwrap();
    assert_eq!(numbers(&replaced), [4.0, 2.0], "the last one stays");
    let kept = run(|m| writing(rows(1), function(m, &[S32, S32], |_, p| Ok(p[0]))), None, &operands).unwrap();
    assert_eq!(numbers(&kept), [5.0, 6.0]);
}

#[test]
fn every_element_type_is_read_and_replaced_bit_for_bit() {
    let starts = array(S32, &[2, 1], &[2.0, 0.0]);
    for &ty in ElementType::ALL {
        let (x, updates) = (distinct_bytes(ty, &[3, 2], 5), distinct_bytes(ty, &[2, 2], 99));
        let row = 2 * ty.byte_width();
        let read = run(|_| rows(2), None, &[x.clone(), starts.clone()]).unwrap();
        assert_eq!(read.bytes(), [&x.bytes()[2 * row..], &x.bytes()[..row]].concat(), "gather of {ty}");
        let op = |m: &mut ModuleBuilder| writing(rows(2), function(m, &[ty, ty], |_, p| Ok(p[1])));
        let written = run(op, None, &[x.clone(), starts.clone(), updates.clone()]).unwrap();
        let expected = [&updates.bytes()[row..], &x.bytes()[row..2 * row], &updates.bytes()[..row]].concat();
        assert_eq!(written.bytes(), expected, "scatter of {ty}");
    }
}

#[test]
fn starts_and_arrays_without_elements() {
    let x = counting(&[2, 3], 1.0);
    assert_eq!(gather(rows(3), &x, &array(S32, &[0, 1], &[])), []);
    assert_eq!(gather(rows(0), &x, &array(S32, &[2, 1], &[0.0, 1.0])), []);
    assert_eq!(scatter_add(rows(3), &x, &array(S32, &[0, 1], &[]), &array(F32, &[0, 3], &[])), numbers(&x));
    // A start index without components is the origin.
    let whole = Gather {
        collapsed_slice_dims: vec![],
        offset_dims: vec![0, 1],
        start_index_map: vec![],
        slice_sizes: vec![2, 3],
        index_vector_dim: 0,
        ..rows(3)
    };
    assert_eq!(gather(whole, &x, &array(S32, &[0], &[])), numbers(&x));
    // Too many start indices to visit, but no elements at any of them.
    let none = Gather {
        collapsed_slice_dims: vec![],
        offset_dims: vec![1, 2],
        start_index_map: vec![],
        slice_sizes: vec![0, 3],
        ..rows(3)
    };
    let many = array(S32, &[1 << 60, 0], &[]);
    let result = run(|_| none.clone(), None, &[x.clone(), many.clone()]).unwrap();
    assert_eq!(result.array_shape().dims(), [1 << 60, 0, 3]);
    assert_eq!(scatter_add(none, &x, &many, &array(F32, &[1 << 60, 0, 3], &[])), numbers(&x));
    let scalar_start = Gather {
        collapsed_slice_dims: vec![0],
        offset_dims: vec![],
        index_vector_dim: 0,
        slice_sizes: vec![1],
        ..rows(1)
    };
    assert_eq!(gather(scalar_start, &counting(&[5], 1.0), &scalar(S32, 3.0)), [3.0], "index_vector_dim is the rank");
}

#[test]
fn several_inputs_are_scattered_together() {
    let op = |m: &mut ModuleBuilder| {
        let computation = function(m, &[F32, S32, F32, S32], |b, p| {
            let sum = b.add(p[0], p[2])?;
            let most = b.maximum(p[1], p[3])?;
            b.tuple([sum, most])
        });
        writing(rows(1), computation)
    };
    let operands = [
        array(F32, &[2, 1], &[1.0, 2.0]),
        array(S32, &[2, 1], &[5.0, 6.0]),
        array(S32, &[3, 1], &[1.0, 1.0, 7.0]),
        array(F32, &[3, 1], &[10.0, 20.0, 30.0]),
        array(S32, &[3, 1], &[8.0, 7.0, 9.0]),
    ];
    let result = run(op, None, &operands).unwrap();
    assert_eq!(numbers(&result.elements()[0]), [1.0, 32.0]);
    assert_eq!(numbers(&result.elements()[1]), [5.0, 8.0]);
}

#[test]
fn broken_rules_of_gather_are_named() {
    let (x, starts) = (counting(&[4, 3], 1.0), array(S32, &[5, 1], &[0.0; 5]));
    let base = || rows(3);
    let cases = [
        (Gather { index_vector_dim: 3, ..base() }, "index_vector_dim=3"),
        (Gather { offset_dims: vec![2], ..base() }, "offset_dims [2] names dimension 2"),
        (Gather { offset_dims: vec![1, 0], collapsed_slice_dims: vec![], ..base() }, "ascending order"),
        (Gather { offset_dims: vec![1, 2], ..base() }, "account for each of the 2 dimensions"),
        (Gather { collapsed_slice_dims: vec![2], ..base() }, "names dimension 2"),
        (Gather { start_index_map: vec![0, 1], ..base() }, "1 components of a start"),
        (Gather { start_index_map: vec![2], ..base() }, "start_index_map and operand_batching_dims [2]"),
        (Gather { slice_sizes: vec![1], ..base() }, "one size for each dimension"),
        (Gather { slice_sizes: vec![1, 4], ..base() }, "none larger"),
        (Gather { slice_sizes: vec![2, 3], ..base() }, "must be 1 in dimension 0"),
        (Gather { operand_batching_dims: vec![0], ..base() }, "[0, 0] names dimension 0 twice"),
        (
            Gather { collapsed_slice_dims: vec![], operand_batching_dims: vec![0], start_index_map: vec![1], ..base() },
            "they must have the same length",
        ),
        (
            Gather {
                collapsed_slice_dims: vec![],
                operand_batching_dims: vec![0],
                start_indices_batching_dims: vec![1],
                start_index_map: vec![1],
                ..base()
            },
            "must not name index_vector_dim=1",
        ),
        (
            Gather {
                collapsed_slice_dims: vec![],
                operand_batching_dims: vec![0],
                start_indices_batching_dims: vec![0],
                start_index_map: vec![1],
                ..base()
            },
            "batched together",
        ),
    ];
    for (op, message) in cases {
        assert_refused(&format!("{op:?}"), run(|_| op.clone(), None, &[x.clone(), starts.clone()]), message);
    }
    assert_refused(
        "starts",
        run(|_| rows(3), None, &[x.clone(), counting(&[5, 1], 1.0)]),
        "must have integer elements",
    );
    assert_refused(
        "starts",
        run(|_| rows(3), None, &[x, array(Pred, &[5, 1], &[0.0; 5])]),
        "must have integer elements",
    );
}

#[test]
fn broken_rules_of_scatter_are_named() {
    let (x, starts, updates) = (counting(&[4, 3], 1.0), array(S32, &[5, 1], &[0.0; 5]), counting(&[5, 3], 1.0));
    let attempt = |edit: fn(&mut Scatter), operands: &[&Literal]| {
        let op = |m: &mut ModuleBuilder| {
            let mut op = writing(rows(3), combiner(m, BinaryOp::Add, F32));
            edit(&mut op);
            op
        };
        run(op, None, &operands.iter().copied().cloned().collect::<Vec<_>>())
    };
    let same: fn(&mut Scatter) = |_| {};
    type Case<'a> = (fn(&mut Scatter), Vec<&'a Literal>, &'a str);
    let cases: Vec<Case<'_>> = vec![
        (same, vec![&x, &starts], "operands must be N inputs, the indices and N updates"),
        (same, vec![&x, &updates, &updates], "must have integer elements"),
        (|op| op.update_window_dims = vec![0, 1], vec![&x, &starts, &updates], "account for each of the 2 dimensions"),
        (|op| op.inserted_window_dims = vec![5], vec![&x, &starts, &updates], "inserted_window_dims"),
        (|op| op.scatter_dims_to_operand_dims = vec![], vec![&x, &starts, &updates], "1 components of a start"),
    ];
    for (edit, operands, message) in cases {
        assert_refused(message, attempt(edit, &operands), message);
    }
    let update = |dims: &[usize]| counting(dims, 1.0);
    assert_refused("rank", attempt(same, &[&x, &starts, &update(&[5])]), "must have 2 dimensions");
    assert_refused("window", attempt(same, &[&x, &starts, &update(&[5, 4])]), "must fit into dimension 1");
    assert_refused("starts", attempt(same, &[&x, &starts, &update(&[4, 3])]), "the size of dimension 0 of the indices");
    let other = counting(&[3, 4], 1.0);
    let two = attempt(same, &[&x, &other, &starts, &updates, &updates]);
    assert_refused("inputs", two, "inputs must have the same dimensions");
    let narrow = array(BF16, &[4, 3], &[0.0; 12]);
    assert_refused("combiner", attempt(same, &[&narrow, &starts, &updates]), "combiner function returns");
}
