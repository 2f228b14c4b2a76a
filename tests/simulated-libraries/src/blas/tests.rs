//! Tests of cuBLASLt calls that are refused, and of their status codes.

use super::algorithms::{Algorithm, find};
use super::descriptors::{MatmulDescriptor, MatrixLayout, Preference};
use super::matmul::Matmul;
use super::{Blas, Status, rules};

const COMPUTE_F32: u32 = 68;
const COMPUTE_S32: u32 = 72;
const F32: u32 = 0;
const F16: u32 = 2;
const S8: u32 = 3;
const S32: u32 = 10;
const E4M3: u32 = 28;

/// Attributes of matmul descriptors.
const TURN_A: u32 = 3;
const EPILOGUE: u32 = 7;
const BIAS_POINTER: u32 = 8;
const BIAS_TYPE: u32 = 26;
/// Attributes of matrix layouts.
const BATCH: u32 = 5;
const STRIDE: u32 = 6;

/// Returns a dense matmul of `m x k` and `k x n`.
fn matmul(compute: u32, scale: u32, types: [u32; 3], [m, k, n]: [u64; 3]) -> Matmul {
    let layout = |ty, rows: u64, columns| MatrixLayout::new(ty, rows, columns, rows as i64).unwrap();
    Matmul {
        operation: MatmulDescriptor::new(compute, scale).unwrap(),
        a: layout(types[0], m, k),
        b: layout(types[1], k, n),
        c: layout(types[2], m, n),
        d: layout(types[2], m, n),
    }
}

/// Returns a dense matmul with A transposed.
fn turned(compute: u32, scale: u32, types: [u32; 3], [m, k, n]: [u64; 3]) -> Matmul {
    let mut matmul = matmul(compute, scale, types, [m, k, n]);
    matmul.operation.set(TURN_A, &1i32.to_le_bytes()).unwrap();
    matmul.a = MatrixLayout::new(types[0], k, m, k as i64).unwrap();
    matmul
}

fn check(matmul: &Matmul) -> Blas {
    matmul.check()?;
    rules::check(matmul, 90)
}

/// Returns the status and message of a refused matmul.
fn refused(matmul: &Matmul) -> (Status, String) {
    let refusal = check(matmul).unwrap_err();
    let sentence = refusal.sentence.unwrap();
    (refusal.status, sentence.split(": Matmul").next().unwrap_or_default().to_owned())
}

#[test]
fn attributes_have_sizes_and_values() {
    let mut operation = MatmulDescriptor::new(COMPUTE_F32, F32).unwrap();
    let status = |answer: Blas| answer.unwrap_err().status;
    assert_eq!(status(operation.set(TURN_A, &[1, 0])), Status::INVALID_VALUE, "too short");
    assert_eq!(status(operation.set(TURN_A, &7i32.to_le_bytes())), Status::INVALID_VALUE);
    assert_eq!(status(operation.set(EPILOGUE, &5u32.to_le_bytes())), Status::INVALID_VALUE);
    assert_eq!(status(operation.set(BIAS_POINTER, &[0; 4])), Status::INVALID_VALUE);
    assert_eq!(status(operation.set(99, &[0; 4])), Status::NOT_SUPPORTED);
    assert_eq!(MatmulDescriptor::new(1, F32).unwrap_err().status, Status::INVALID_VALUE);
    let mut layout = MatrixLayout::new(F32, 2, 3, 2).unwrap();
    assert_eq!(status(layout.set(BATCH, &1i64.to_le_bytes())), Status::INVALID_VALUE, "too long");
    assert_eq!(status(layout.set(BATCH, &0i32.to_le_bytes())), Status::INVALID_VALUE);
    assert_eq!(status(layout.set(1, &2i32.to_le_bytes())), Status::NOT_SUPPORTED);
    let mut preference = Preference::new();
    assert_eq!(status(preference.set(1, &[0; 4])), Status::INVALID_VALUE);
    assert_eq!(status(preference.set(5, &24u32.to_le_bytes())), Status::INVALID_VALUE, "no power of two");
    preference.set(5, &32u32.to_le_bytes()).unwrap();
    assert_eq!(preference.alignments, [32, 256, 256, 256]);
}

#[test]
fn matrices_fit_to_each_other() {
    let good = matmul(COMPUTE_F32, F32, [F32; 3], [4, 5, 6]);
    check(&good).unwrap();
    let told = |change: &dyn Fn(&mut Matmul)| {
        let mut matmul = good.clone();
        change(&mut matmul);
        let (status, sentence) = refused(&matmul);
        assert_eq!(status, Status::INVALID_VALUE, "{sentence}");
        sentence
    };
    assert_eq!(told(&|p| p.b.rows = 4), "sizes of matrices do not fit to each other");
    assert_eq!(told(&|p| p.d.columns = 5), "sizes of matrices do not fit to each other");
    assert_eq!(told(&|p| p.b.leading = 4), "a leading dimension that is less than the rows");
    assert_eq!(told(&|p| p.c.set(BATCH, &2i32.to_le_bytes()).unwrap()), "batches of different sizes");
    assert_eq!(told(&|p| p.a.set(STRIDE, &(-1i64).to_le_bytes()).unwrap()), "a negative stride of a batch");
    let batched = |p: &mut Matmul| {
        for layout in [&mut p.a, &mut p.b, &mut p.c, &mut p.d] {
            layout.batch = 3;
        }
    };
    assert_eq!(told(&batched), "results that overlap");
    assert_eq!(told(&|p| (p.a.columns, p.b.rows) = (0, 0)), "an empty matmul");
}

#[test]
fn types_go_together() {
    let told = |matmul: &Matmul| {
        let (status, sentence) = refused(matmul);
        assert_eq!(status, Status::NOT_SUPPORTED, "{sentence}");
        sentence
    };
    assert_eq!(told(&matmul(COMPUTE_S32, S32, [S8, S8, F32], [4; 3])), "no such combination of types");
    assert_eq!(told(&matmul(COMPUTE_F32, F16, [F16; 3], [4; 3])), "no such combination of types");
    let narrow = |sizes| turned(COMPUTE_S32, S32, [S8, S8, S32], sizes);
    check(&narrow([8, 4, 3])).unwrap();
    assert_eq!(
        told(&matmul(COMPUTE_S32, S32, [S8, S8, S32], [4; 3])),
        "narrow types with A not transposed, or B transposed"
    );
    assert_eq!(told(&narrow([8, 6, 3])), "narrow types with m or k that is not a multiple of 4");
    let mut epilogue = narrow([8, 4, 3]);
    epilogue.operation.set(EPILOGUE, &4u32.to_le_bytes()).unwrap();
    assert_eq!(told(&epilogue), "an epilogue for types that have none");
    let mut bias = matmul(COMPUTE_F32, F32, [F16, F16, F32], [4; 3]);
    bias.operation.set(EPILOGUE, &6u32.to_le_bytes()).unwrap();
    bias.operation.set(BIAS_TYPE, &(F32 as i32).to_le_bytes()).unwrap();
    check(&bias).unwrap();
    bias.operation.set(BIAS_TYPE, &(F16 as i32).to_le_bytes()).unwrap();
    assert_eq!(told(&bias), "a bias of a type that is not this matmul's");
    let tiny = turned(COMPUTE_F32, F32, [E4M3, E4M3, F32], [16; 3]);
    check(&tiny).unwrap();
    assert_eq!(rules::check(&tiny, 80).unwrap_err().status, Status::NOT_SUPPORTED, "before sm_89");
    assert_eq!(
        told(&turned(COMPUTE_F32, F32, [E4M3, E4M3, F32], [16, 24, 16])),
        "narrow types with m or k that is not a multiple of 16"
    );
}

#[test]
fn algorithms_are_what_was_asked_for() {
    let mut matmul = matmul(COMPUTE_F32, F32, [F32; 3], [4, 8, 8]);
    let mut preference = Preference::new();
    let states =
        |found: &[(Algorithm, Status)]| found.iter().map(|(a, status)| (a.workspace, status.0)).collect::<Vec<_>>();
    // Without a workspace there are no partial sums.
    let found = find(&matmul, &preference).unwrap();
    assert_eq!(states(&found), [(0, 15), (0, 0), (0, 0)]);
    preference.set(1, &(1u64 << 20).to_le_bytes()).unwrap();
    let found = find(&matmul, &preference).unwrap();
    assert_eq!(states(&found), [(256, 0), (0, 15), (0, 0), (0, 0)]);
    // For arrays that are aligned to elements only, the last algorithm remains.
    preference.set(6, &4u32.to_le_bytes()).unwrap();
    let slow = find(&matmul, &preference).unwrap();
    assert_eq!((slow.len(), slow[0].0.alignments), (1, [4; 5]));
    // A badly aligned bias pointer in the descriptor has this effect as well.
    preference.set(6, &256u32.to_le_bytes()).unwrap();
    matmul.operation.set(EPILOGUE, &4u32.to_le_bytes()).unwrap();
    assert_eq!(find(&matmul, &preference).unwrap().len(), 4, "no bias yet");
    matmul.operation.set(BIAS_POINTER, &0x1008u64.to_le_bytes()).unwrap();
    assert_eq!(find(&matmul, &preference).unwrap().len(), 1);
    let algorithm = Algorithm::of_bytes(found[0].0.to_bytes()).unwrap();
    assert_eq!(algorithm, found[0].0);
    assert_eq!(algorithm.check(&matmul).unwrap_err().status, Status::NOT_SUPPORTED, "another epilogue");
    assert_eq!(Algorithm::of_bytes([0; 8]).unwrap_err().status, Status::INVALID_VALUE);
}
