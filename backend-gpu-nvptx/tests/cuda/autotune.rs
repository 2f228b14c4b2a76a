//! Measured choices: by the device's clock, of what computes the same, in loops as well.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use xla_hlo::{ElementType, Literal, Scalar};
use xla_service::{Client, CompileOptions, PlatformRegistry, interpreter};

use super::{client, compiled, is_simulated};

const PRODUCT: &str = "HloModule product
    ENTRY main {
      x = f32[128,128] parameter(0)
      y = f32[128,128] parameter(1)
      ROOT r = f32[128,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }";

/// Products in a loop, as many as an argument says.
const LOOP: &str = "HloModule powers
    cond {
      s = (s32[], s32[], f32[128,128], f32[128,128]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] get-tuple-element(s), index=1
      ROOT c = pred[] compare(i, n), direction=LT
    }
    body {
      s = (s32[], s32[], f32[128,128], f32[128,128]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] get-tuple-element(s), index=1
      x = f32[128,128] get-tuple-element(s), index=2
      y = f32[128,128] get-tuple-element(s), index=3
      one = s32[] constant(1)
      j = s32[] add(i, one)
      r = f32[128,128] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (s32[], s32[], f32[128,128], f32[128,128]) tuple(j, n, r, y)
    }
    ENTRY main {
      x = f32[128,128] parameter(0)
      y = f32[128,128] parameter(1)
      n = s32[] parameter(2)
      i = s32[] constant(0)
      s = (s32[], s32[], f32[128,128], f32[128,128]) tuple(i, n, x, y)
      w = (s32[], s32[], f32[128,128], f32[128,128]) while(s), condition=cond, body=body
      ROOT r = f32[128,128] get-tuple-element(w), index=2
    }";

/// Option of the simulated device by which the fastest algorithms of cuBLASLt are wrong.
const WRONG: &str = "wrong=on";

/// A client of a GPU with cuBLASLt.
fn client_with_library() -> Option<Client> {
    let client = client()?;
    let libraries = client.first_device().libraries();
    libraries.iter().any(|(name, found)| name == "cuBLASLt" && found.is_ok()).then_some(client)
}

fn arguments(text: &str, client: &Client) -> Vec<Literal> {
    let program = compiled(client, text, &CompileOptions::default());
    let value = |element, i: usize| match element {
        ElementType::S32 => Scalar::Signed(2),
        _ => Scalar::Float(((i * 7 % 31) as f64 - 15.0) / 64.0),
    };
    let leaves = program.signature().arguments().iter();
    leaves.map(|leaf| Literal::from_fn(&leaf.shape, |i| value(leaf.shape.element_type(), i)).unwrap()).collect()
}

/// Runs a program that may measure, compares its result with the evaluator's, and returns what is kept of it.
fn measured(client: &Client, text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let cache_dir = Some(folder.path().to_path_buf());
    let options = CompileOptions { autotune: true, cache_dir, ..CompileOptions::default() };
    let found = compiled(client, text, &options).run(arguments(text, client)).unwrap();
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let evaluator = Client::new(&registry, "interpreter").unwrap();
    let expected = compiled(&evaluator, text, &CompileOptions::default()).run(arguments(text, &evaluator)).unwrap();
    let float = |literal: &Literal, i| match literal.get(i) {
        Scalar::Float(value) => value,
        other => panic!("{other:?}"),
    };
    for i in 0..128 * 128 {
        let (found, expected) = (float(&found, i), float(&expected, i));
        assert!((found - expected).abs() <= 1e-4 * (1.0 + expected.abs()), "{i}: {found} {expected}");
    }
    entries(folder.path())
}

fn entries(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder.join("autotune")).unwrap();
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    texts
        .flat_map(|text| serde_json::from_str::<Value>(&text).unwrap()["entries"].as_array().unwrap().clone())
        .collect()
}

#[test]
fn an_algorithm_that_answers_wrongly_never_wins() {
    let Some(client) = client_with_library() else { return };
    let entries = measured(&client, PRODUCT);
    assert_eq!(entries.len(), 1, "{entries:?}");
    if !is_simulated(&client) {
        return;
    }
    // The second one has no workspace, so it is twice as fast.
    let candidate = &entries[0]["candidate"];
    if std::env::var("SIMULATED_GPU").is_ok_and(|options| options.contains(WRONG)) {
        assert_eq!(candidate["Library"], 0, "{entries:?}");
        return;
    }
    assert_eq!(candidate["Library"], 1, "{entries:?}");
    let name = "cuda::autotune::an_algorithm_that_answers_wrongly_never_wins";
    let mut again = Command::new(std::env::current_exe().unwrap());
    let done = again.args(["--exact", name]).env("SIMULATED_GPU", WRONG).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"));
}

#[test]
fn what_is_in_a_loop_is_measured_before_it_is_recorded() {
    let Some(client) = client_with_library() else { return };
    let entries = measured(&client, LOOP);
    assert_eq!(entries.len(), 1, "{entries:?}");
}
