//! Tests of programs compiled ahead of time whose large constants are in a file to map.

use std::fmt::Write;

use serde_json::Value;
use xla_service::{AotCompilationOptions, ConstantsIn};

use crate::ahead_of_time::{compile, compile_all, file, link, module};

/// Returns a program that adds a large array and a small one to its argument.
fn weighted(name: &str, factor: usize) -> String {
    let numbers = |count: usize, factor: usize| {
        (0..count).fold(String::new(), |mut text, number| {
            let comma = if number > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{}", number * factor % 311);
            text
        })
    };
    let [large, small, other] = [numbers(1000, factor), numbers(10, 3), numbers(1000, 5)];
    format!(
        "HloModule {name}
        ENTRY main {{
          x = f32[1000] parameter(0)
          y = s16[10] parameter(1)
          large = f32[1000] constant({{{large}}})
          other = f32[1000] constant({{{other}}})
          small = s16[10] constant({{{small}}})
          a = f32[1000] multiply(x, large)
          b = f32[1000] add(a, other)
          c = s16[10] add(y, small)
          ROOT r = (f32[1000], s16[10]) tuple(b, c)
        }}"
    )
}

fn options() -> AotCompilationOptions {
    AotCompilationOptions {
        constants: ConstantsIn::File,
        name: Some("model".to_string()),
        ..AotCompilationOptions::default()
    }
}

const MAIN: &str = "#include \"model.h\"
#include <stdio.h>
static _Alignas(64) unsigned char memory[FIRST_ARENA_SIZE + SECOND_ARENA_SIZE + 1];
static _Alignas(FIRST_CONSTANTS_ALIGNMENT) unsigned char bytes[FIRST_CONSTANTS_SIZE + 64];
static float x[1000], r[1000];
static int16_t y[10], s[10];
static first_call good(void) {
  first_call call = {0};
  call.abi = FIRST_ABI, call.arena = memory, call.arena_size = FIRST_ARENA_SIZE;
  call.constants = bytes, call.constants_size = FIRST_CONSTANTS_SIZE;
  call.x = x, call.y = y, call.result_0 = r, call.result_1 = s;
  return call;
}
static int untouched(void) {
  size_t i;
  for (i = 0; i < sizeof memory; i++) if (memory[i]) return 0;
  return r[999] == 0 && s[9] == 0;
}
#define EXPECT(status) if (first(&call) != (status) || !untouched()) return __LINE__; call = good()
int main(void) {
  first_call call = good();
  second_call next = {0};
  int i;
  FILE *file = fopen(\"model.bin\", \"rb\");
  if (!file || fread(bytes, 1, sizeof bytes, file) != FIRST_CONSTANTS_SIZE) return 1;
  for (i = 0; i < 1000; i++) x[i] = (float)(i % 13);
  call.constants = NULL; EXPECT(FIRST_NO_CONSTANTS);
  call.constants_size -= 1; EXPECT(FIRST_WRONG_CONSTANTS);
  call.constants = bytes + 4; EXPECT(FIRST_WRONG_CONSTANTS);
  bytes[0] ^= 1; EXPECT(FIRST_WRONG_CONSTANTS);
  bytes[0] ^= 1;
  call.x = NULL; EXPECT(FIRST_NULL_X);
  if (first(&call) != FIRST_OK) return 2;
  for (i = 0; i < 1000; i++) if (r[i] != x[i] * (float)(i * 7 % 311) + (float)(i * 5 % 311)) return 3;
  if (s[9] != 27) return 4;
  next.abi = SECOND_ABI, next.arena = memory, next.arena_size = SECOND_ARENA_SIZE;
  next.constants = bytes, next.constants_size = SECOND_CONSTANTS_SIZE;
  next.x = x, next.y = y, next.result_0 = r, next.result_1 = s;
  if (second(&next) != SECOND_OK) return 5;
  for (i = 0; i < 1000; i++) if (r[i] != x[i] * (float)(i * 11 % 311) + (float)(i * 5 % 311)) return 6;
  return 0;
}
";

#[test]
fn large_constants_are_read_from_a_file() {
    let [first, second] = [weighted("first", 7), weighted("second", 11)];
    let files = compile_all(&[&first, &second], &options()).unwrap();
    // Three arrays, one of which the programs share, after a header line.
    assert_eq!(file(&files, "model.bin").len(), 64 + 3 * 4032);
    let object = file(&files, "model.o");
    let inside = file(&compile(&first, &AotCompilationOptions::default()).unwrap(), "first.o").len();
    assert!(object.len() < inside, "{} {inside}", object.len());
    let description: Value = serde_json::from_slice(file(&files, "model.json")).unwrap();
    let stamp = description["constants"]["stamp"].as_u64().unwrap() as u32;
    let word = if cfg!(target_endian = "big") { stamp.to_be_bytes() } else { stamp.to_le_bytes() };
    assert_eq!(file(&files, "model.bin")[..4], word);
    let folder = tempfile::tempdir().unwrap();
    let program = link(folder.path(), &files, "cc", MAIN);
    let ran = std::process::Command::new(program).current_dir(folder.path()).status().unwrap();
    assert_eq!(ran.code(), Some(0));
}

#[test]
fn files_of_other_targets_have_their_byte_order() {
    let text = weighted("first", 7);
    let of = |triple: &str| {
        let options = AotCompilationOptions { target: Some(triple.to_string()), ..options() };
        let files = backend_cpu::platform_with(backend_cpu::CpuOptions {
            generators: backend_cpu::CodeGenerators::all(),
            ..backend_cpu::CpuOptions::default()
        })
        .compiler()
        .ahead_of_time()
        .unwrap()
        .compile_ahead_of_time(vec![module(&text)], &options)
        .unwrap();
        file(&files, "model.bin").to_vec()
    };
    let [little, big] = [of("armv7-unknown-linux-gnueabihf"), of("s390x-unknown-linux-gnu")];
    assert_eq!(little.len(), big.len());
    let turned = |bytes: &[u8]| bytes.chunks(4).flat_map(|word| word.iter().rev().copied()).collect::<Vec<u8>>();
    assert_eq!(turned(&little[64..]), big[64..]);
}

#[test]
fn programs_without_large_constants_take_none() {
    let text = "HloModule plain\nENTRY main { x = f32[3] parameter(0)\n c = f32[3] constant({1, 2, 4})\n ROOT r = f32[3] add(x, c) }";
    let files = compile(text, &options()).unwrap();
    let header = String::from_utf8_lossy(file(&files, ".h")).into_owned();
    assert!(!header.contains("constants"), "{header}");
    assert_eq!(file(&files, ".bin").len(), 64);
}
