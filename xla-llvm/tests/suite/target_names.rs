//! Tests of triples, and of the names of processors and features.

use std::collections::BTreeSet;

use xla_hlo::Result;
use xla_llvm::internals::x86::{AVX_STATE, AVX512_STATE, FEATURES, FEATURES_OF, OF_ALL, features};
use xla_llvm::internals::{NAMES, Names, Triple};
use xla_llvm::target::{CpuidCheck, CpuidRegister, CpuidWord, Target};

#[test]
fn usual_triples_are_taken() {
    let cases = [
        ("x86_64-unknown-linux-gnu", "x86", true),
        ("x86_64-pc-linux-gnu", "x86", true),
        ("aarch64-linux-gnu", "aarch64", true),
        ("aarch64-apple-darwin23.1.0", "aarch64", true),
        ("arm64-apple-ios17.0-simulator", "aarch64", true),
        ("aarch64-linux-android21", "aarch64", true),
        ("armv7-unknown-linux-gnueabihf", "arm", true),
        ("arm-none-eabi", "arm", false),
        ("thumbv7em-none-eabihf", "arm", false),
        ("thumbv8m.main-none-eabi", "arm", false),
        ("riscv64-unknown-elf", "riscv", false),
        ("riscv64-poky-linux-musl", "riscv", true),
        ("s390x-ibm-linux-gnu", "systemz", true),
        ("powerpc64le-unknown-linux-gnu", "powerpc", true),
        ("x86_64-pc-windows-msvc", "x86", true),
        ("wasm32-unknown-unknown", "webassembly", false),
        ("wasm32-wasip1", "webassembly", true),
        ("wasm32", "webassembly", false),
        ("hexagon-unknown-none-elf", "hexagon", false),
    ];
    for (text, family, hosted) in cases {
        let triple = Triple::parse(text).unwrap();
        assert_eq!((triple.family, triple.hosted), (family, hosted), "{text}");
    }
}

#[test]
fn systems_of_apple_have_a_version() {
    let cases = [
        ("aarch64-apple-darwin", "aarch64-apple-darwin20.0"),
        ("x86_64-apple-macosx", "x86_64-apple-macosx10.12"),
        ("arm64-apple-ios-simulator", "arm64-apple-ios12.0-simulator"),
        ("arm64-apple-ios17.0-simulator", "arm64-apple-ios17.0-simulator"),
        ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
    ];
    for (text, with_version) in cases {
        assert_eq!(Triple::parse(text).unwrap().with_version(), with_version);
    }
}

#[test]
fn other_words_are_errors_with_the_nearest() {
    let said = |text: &str| Triple::parse(text).unwrap_err().message().to_string();
    assert_eq!(
        said("aarhc64-unknown-linux-gnu"),
        "\"aarhc64\" of triple \"aarhc64-unknown-linux-gnu\" is no architecture that LLVM supports; did you mean aarch64?"
    );
    assert!(said("aarch64-unknown-linx-gnu").ends_with("did you mean linux?"));
    assert!(said("aarch64-linx-gnu").ends_with("did you mean linux?"));
    assert!(said("aarch64-unknown-linux-gnueabjhf").ends_with("did you mean gnueabihf?"));
    assert!(said("").contains("is no architecture"));
    assert!(said("x86_64--linux").contains("is not of the form ARCHITECTURE-VENDOR-SYSTEM-ENVIRONMENT"));
    assert!(said("nvptx64-nvidia-cuda").contains("of a GPU"));
}

#[test]
fn abis_are_those_of_the_architecture() {
    let abi = |triple: &str, abi: &str| Triple::parse(triple).unwrap().check_abi(abi);
    abi("riscv64-unknown-linux-gnu", "lp64d").unwrap();
    let error = abi("riscv64-unknown-linux-gnu", "ilp32d").unwrap_err();
    assert!(error.message().ends_with("there are lp64, lp64e, lp64f, lp64d"), "{error}");
    assert!(abi("x86_64-linux", "sysv").unwrap_err().message().ends_with("there is none to choose"));
}

#[test]
fn every_kind_has_processors_and_features() {
    let lines: Vec<&str> = NAMES.lines().skip(1).collect();
    assert!(lines.len() > 30 && lines.len().is_multiple_of(3), "{}", lines.len());
    for kind in lines.chunks(3) {
        let names = Names::of(kind[0]);
        assert!(!names.cpus.is_empty() && !names.features.is_empty(), "{}", kind[0]);
    }
    assert!(Names::of("vax").cpus.is_empty());
}

#[test]
fn unknown_names_are_errors_with_the_nearest() {
    let x86 = Names::of("x86");
    x86.check_cpu("x86-64-v3", "x86_64").unwrap();
    x86.check_feature("-avx2", "x86_64").unwrap();
    let said = |result: Result<()>| result.unwrap_err().message().to_string();
    assert_eq!(said(x86.check_cpu("haswel", "x86_64")), "x86_64 has no processor \"haswel\"; did you mean haswell?");
    assert_eq!(said(x86.check_feature("+avx22", "x86_64")), "x86_64 has no feature \"avx22\"; did you mean avx2?");
    assert!(said(x86.check_feature("avx2", "x86_64")).contains("write +avx2 or -avx2"));
    assert!(said(x86.check_feature("+16bit-mode", "x86_64")).contains("chosen by the triple"));
    assert!(said(Names::of("xtensa").check_cpu("q", "xtensa")).ends_with("there are esp32, esp8266, generic"));
}

fn word(leaf: u32, register: CpuidRegister) -> CpuidWord {
    CpuidWord { leaf, subleaf: 0, register }
}

fn checked(cpu: &str, changes: &str) -> Vec<&'static str> {
    let has = features(cpu, changes);
    FEATURES
        .iter()
        .map(|feature| feature.0)
        .filter(|feature| has.contains(feature) && !OF_ALL.contains(feature))
        .collect()
}

#[test]
fn features_come_and_disappear_with_others() {
    assert!(checked("x86-64", "").is_empty());
    let second = ["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"];
    assert_eq!(checked("x86-64-v2", ""), second);
    let third = ["movbe", "bmi", "bmi2", "lzcnt", "avx", "avx2", "fma", "f16c"];
    let fourth = ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
    let set = |names: &[&[&'static str]]| names.concat().into_iter().collect::<BTreeSet<_>>();
    let of = |cpu: &str, changes: &str| checked(cpu, changes).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(of("x86-64-v3", ""), set(&[&second, &third]));
    assert_eq!(of("x86-64-v4", ""), set(&[&second, &third, &fourth]));
    assert_eq!(of("x86-64-v4", "-avx512f"), set(&[&second, &third]));
    assert_eq!(of("x86-64-v4", "-avx,+popcnt"), set(&[&second, &["movbe", "bmi", "bmi2", "lzcnt"]]));
    assert_eq!(of("x86-64", "+vaes"), set(&[&second[..4], &["avx", "avx2"]]));
    assert!(of("diamondrapids", "").contains("ndd") && of("znver5", "").contains("avx512vbmi2"));
}

#[test]
fn checks_of_one_word_are_one() {
    let checks = |triple: &str, cpu: &str| Target::new(triple, cpu, "").unwrap().x86_checks();
    let linux = "x86_64-unknown-linux-gnu";
    assert_eq!(checks(linux, "x86-64"), None);
    let third = checks(linux, "x86-64-v3").unwrap();
    let extended = CpuidCheck { mask: 1 << 5, least: 1 << 5 };
    assert_eq!(third.cpuid[&word(0x8000_0001, CpuidRegister::Ecx)], extended);
    assert_eq!(third.cpuid[&word(1, CpuidRegister::Ecx)].mask, third.cpuid[&word(1, CpuidRegister::Ecx)].least);
    assert_eq!((third.cpuid.len(), third.state), (3, AVX_STATE));
    assert_eq!(checks(linux, "x86-64-v4").unwrap().state, AVX512_STATE);
    assert_eq!(checks("x86_64-apple-macosx", "x86-64-v4").unwrap().state, AVX_STATE);
    assert_eq!(
        checks("i686-unknown-linux-gnu", "pentium4").unwrap().cpuid[&word(1, CpuidRegister::Edx)].mask,
        7 << 25 & !(1 << 27) | 1 << 15
    );
}

#[test]
fn every_processor_has_its_features() {
    let cpus: Vec<&str> = FEATURES_OF
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('+'))
        .collect();
    assert!(cpus.len() > 100);
    let names = Names::of("x86");
    cpus.iter().for_each(|cpu| names.check_cpu(cpu, "x86_64").unwrap());
    FEATURES.iter().for_each(|feature| names.check_feature(&format!("+{}", feature.0), "x86_64").unwrap());
}
