//! Tests of autotuning: candidates are measured by the device's clock, in loops as well.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use xla_hlo::{ElementType, Literal, Scalar};
use xla_service::{Client, CompileOptions, PlatformRegistry, interpreter};

use super::{client, compiled, is_simulated};

fn product(element: &str, rows: usize) -> String {
    format!(
        "HloModule product
        ENTRY main {{
          x = {element}[{rows},128] parameter(0)
          y = {element}[128,128] parameter(1)
          ROOT r = {element}[{rows},128] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        }}"
    )
}

/// Returns dots in a loop, whose trip count is an argument.
fn powers(element: &str, rows: usize) -> String {
    let (x, y) = (format!("{element}[{rows},128]"), format!("{element}[128,128]"));
    format!(
        "HloModule powers
        cond {{
          s = (s32[], s32[], {x}, {y}) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          n = s32[] get-tuple-element(s), index=1
          ROOT c = pred[] compare(i, n), direction=LT
        }}
        body {{
          s = (s32[], s32[], {x}, {y}) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          n = s32[] get-tuple-element(s), index=1
          x = {x} get-tuple-element(s), index=2
          y = {y} get-tuple-element(s), index=3
          one = s32[] constant(1)
          j = s32[] add(i, one)
          r = {x} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          ROOT t = (s32[], s32[], {x}, {y}) tuple(j, n, r, y)
        }}
        ENTRY main {{
          x = {x} parameter(0)
          y = {y} parameter(1)
          n = s32[] parameter(2)
          i = s32[] constant(0)
          s = (s32[], s32[], {x}, {y}) tuple(i, n, x, y)
          w = (s32[], s32[], {x}, {y}) while(s), condition=cond, body=body
          ROOT r = {x} get-tuple-element(w), index=2
        }}"
    )
}

/// Option of the simulated device that makes the fastest algorithms of cuBLASLt wrong.
const WRONG: &str = "wrong=on";

/// Returns a client of a GPU with cuBLASLt.
fn client_with_library() -> Option<Client> {
    let client = client()?;
    let libraries = client.first_device().libraries();
    libraries.iter().any(|(name, found)| name == "cuBLASLt" && found.is_ok()).then_some(client)
}

fn arguments(text: &str, client: &Client) -> Vec<Literal> {
    let program = compiled(client, text, &CompileOptions::default());
    let value = |element, i: usize| match element {
        ElementType::S32 => Scalar::Signed(2),
        ElementType::U32 => Scalar::Unsigned(i as u64 % 31),
        _ => Scalar::Float(((i * 7 % 31) as f64 - 15.0) / 64.0),
    };
    let leaves = program.signature().arguments().iter();
    leaves.map(|leaf| Literal::from_fn(&leaf.shape, |i| value(leaf.shape.element_type(), i)).unwrap()).collect()
}

/// Runs a program with autotuning, compares its result with the evaluator's, and returns the stored entries.
fn measured(client: &Client, text: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    measured_in(folder.path(), client, text)
}

/// Runs a program like [`measured`], with a given folder for the stored entries.
fn measured_in(folder: &Path, client: &Client, text: &str) -> Vec<Value> {
    let cache_dir = Some(folder.to_path_buf());
    let options = CompileOptions { autotune: true, cache_dir, ..CompileOptions::default() };
    let found = compiled(client, text, &options).run(arguments(text, client)).unwrap();
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let evaluator = Client::new(&registry, "interpreter").unwrap();
    let expected = compiled(&evaluator, text, &CompileOptions::default()).run(arguments(text, &evaluator)).unwrap();
    assert_eq!(found.shape(), expected.shape());
    for i in 0..expected.array_shape().element_count() {
        match (found.get(i), expected.get(i)) {
            (Scalar::Float(found), Scalar::Float(expected)) => {
                assert!((found - expected).abs() <= 1e-4 * (1.0 + expected.abs()), "{i}: {found} {expected}");
            }
            (found, expected) => assert_eq!(found, expected, "{i}"),
        }
    }
    entries(folder)
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
    let entries = measured(&client, &product("f32", 128));
    assert_eq!(entries.len(), 1, "{entries:?}");
    if !is_simulated(&client) {
        return;
    }
    // The second candidate has no workspace, so it is twice as fast.
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
    let entries = measured(&client, &powers("f32", 128));
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[test]
fn ways_of_our_own_are_measured_beside_a_library() {
    let Some(client) = client_with_library() else { return };
    let entries = measured(&client, &product("f32", 256));
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert!(entry["work"]["call"].is_object() && entry["work"]["own"].is_string(), "{entry}");
}

/// A type that no library multiplies.
#[test]
fn ways_of_our_own_are_measured_among_themselves() {
    let Some(client) = client() else { return };
    for text in [product("u32", 256), powers("u32", 256)] {
        let entries = measured(&client, &text);
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert!(entry["work"]["call"].is_null() && entry["work"]["own"].is_string(), "{entry}");
        let number = entry["candidate"]["Own"].as_u64().unwrap();
        assert!(number < 4, "{entry}");
        // The clock counts instructions, and the default tiles, small for the sake of many blocks, have most of them.
        assert!(number > 0 || !is_simulated(&client), "{entry}");
    }
}

#[test]
fn a_way_that_is_not_there_is_measured_anew() {
    let Some(client) = client() else { return };
    let (folder, text) = (tempfile::tempdir().unwrap(), product("u32", 256));
    let first = measured_in(folder.path(), &client, &text);
    let number = first[0]["candidate"]["Own"].as_u64().unwrap();
    let path = fs::read_dir(folder.path().join("autotune")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read_to_string(&path).unwrap();
    let other = whole.replace(&format!("\"Own\": {number}"), "\"Own\": 4000000000");
    assert_ne!(whole, other);
    fs::write(&path, other).unwrap();
    // A new client represents another process, which has read nothing yet.
    let Some(client) = self::client() else { return };
    let second = measured_in(folder.path(), &client, &text);
    assert!(second.len() == 1 && second[0]["candidate"]["Own"].as_u64().unwrap() < 4, "{second:?}");
    assert_eq!(second[0]["work"], first[0]["work"]);
}
