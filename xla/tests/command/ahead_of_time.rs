//! Tests of `xla compile` for processors: files for other machines, and targets that do not exist.

use crate::support::Folder;

#[test]
fn an_object_and_a_header_are_made_for_another_machine() {
    let folder = Folder::new();
    let done = folder.xla("compile module.hlo --target aarch64-unknown-linux-gnu --cpu cortex-a72 -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let object = std::fs::read(folder.path("build/sums.o")).unwrap();
    // ELF of 64 bits, little-endian, for AArch64.
    assert_eq!((&object[..6], &object[18..20]), (&b"\x7fELF\x02\x01"[..], &[183, 0][..]));
    let header = std::fs::read_to_string(folder.path("build/sums.h")).unwrap();
    assert!(header.contains("int32_t sums(const sums_call *call);"), "{header}");
    assert!(std::fs::read_to_string(folder.path("build/sums.json")).unwrap().contains("\"externals\": []"));
}

#[test]
fn targets_that_do_not_exist_are_bad_input_with_the_nearest_name() {
    let folder = Folder::new();
    let cases = [
        ("--target aarch46-unknown-linux-gnu", "did you mean aarch64?"),
        ("--target aarch64-unknown-linux-gnu --cpu cortex-a722", "did you mean cortex-a72?"),
        ("--target aarch64-unknown-linux-gnu --features +svve", "did you mean sve?"),
        ("--target riscv64-unknown-linux-gnu --abi lp64q", "there are lp64, lp64e, lp64f, lp64d"),
        ("--target riscv64-unknown-linux-gnu --cpu generic-rv32", "LLVM cannot generate code"),
        ("--target hexagon --cpu hexagonv99", "has no processor"),
        ("--target nvptx64-nvidia-cuda", "of a GPU"),
        ("--target xcore", "LLVM writes no object files for xcore"),
        ("--symbol 1st", "not a name in C and C++"),
        ("--run-threads 1025", "a call may use 1024 threads at most, not 1025"),
    ];
    for (flags, said) in cases {
        let message = folder.fails(2, &format!("compile module.hlo {flags} -o build"));
        assert!(message.contains(said), "{flags}: {message}");
    }
}

/// Every combination of names that LLVM accepts individually compiles, or fails with an error message.
#[test]
fn combinations_of_names_are_compiled_or_refused() {
    let folder = Folder::new();
    let targets = [
        ("x86_64-linux-gnu", ["i386", "atom", "znver5"], ["-sse2", "+soft-float", "+avx512f"]),
        ("i686-linux-gnu", ["pentium", "x86-64", "pentium4"], ["-sse2", "+avx2", "-x87"]),
        ("riscv64-linux-gnu", ["generic-rv32", "sifive-u74", "rocket"], ["+e", "-f", "+v"]),
        ("riscv32-unknown-elf", ["generic-rv64", "generic-rv32", "sifive-e20"], ["+d", "+e", "+zfinx"]),
        ("armv7-linux-gnueabihf", ["cortex-m0", "cortex-a7", "arm7tdmi"], ["+soft-float", "-vfp2", "+neon"]),
        ("s390x-linux-gnu", ["z10", "z17", "arch9"], ["+vector", "+soft-float", "-fp-extension"]),
        ("hexagon", ["hexagonv5", "hexagonv68", "hexagonv81"], ["+hvx", "-packets", "+hvx-length128b"]),
        ("wasm32", ["mvp", "generic", "bleeding-edge"], ["+simd128", "-sign-ext", "+relaxed-simd"]),
    ];
    for (triple, cpus, features) in targets {
        for (cpu, feature) in cpus.into_iter().zip(features) {
            let done =
                folder.xla(&format!("compile module.hlo --target {triple} --cpu {cpu} --features {feature} -o build"));
            assert!([0, 2].contains(&done.code), "{triple} {cpu} {feature}: {done:?}");
        }
    }
}

#[test]
fn limits_are_kept_and_files_are_made_on_request() {
    let folder = Folder::new();
    let message = folder.fails(2, "compile module.hlo --stack-limit 1 -o build");
    assert!(message.contains("exceeds the limit of stack memory"), "{message}");
    let message = folder.fails(2, "compile module.hlo --memory-limit 50 -o build");
    assert!(message.contains("the limit is 50"), "{message}");
    // The limit suffices for the arrays of the program, but not for the table of addresses.
    let message = folder.fails(2, "compile module.hlo --memory-limit 100 -o build");
    assert!(message.contains("arguments, results and arena take 160 bytes, the limit is 100"), "{message}");
    let done = folder.xla("compile module.hlo --optimize-for size --emit asm,ir,cmake -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let text = |ending: &str| std::fs::read_to_string(folder.path(&format!("build/sums.{ending}"))).unwrap();
    assert!(text("s").contains("\nsums:"), "{}", text("s"));
    assert!(text("ll").contains("define i32 @sums(ptr %0)") && text("ll").contains("minsize"), "{}", text("ll"));
    assert!(text("cmake").contains("add_library(sums INTERFACE)"), "{}", text("cmake"));
}

#[test]
fn dumps_for_several_processors_are_in_a_folder_for_each() {
    let folder = Folder::new();
    let target = "compile module.hlo --target x86_64-unknown-linux-gnu -o build";
    let done = folder.xla(&format!("{target} --cpu x86-64-v2,x86-64-v3 --dump-to dumps"));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    for name in ["sums.thunks.txt", "sums.buffers.txt", "sums.cost.txt"] {
        for cpu in ["x86-64-v2", "x86-64-v3"] {
            assert!(folder.path(&format!("dumps/{cpu}/{name}")).exists(), "{cpu} {name}");
        }
        assert!(!folder.path(&format!("dumps/{name}")).exists(), "{name}");
    }
    let code = std::fs::read_to_string(folder.path("dumps/sums.object.ll")).unwrap();
    assert!(code.contains("@sums.0(") && code.contains("@sums.1("), "{code}");
    let done = folder.xla(&format!("{target} --cpu x86-64-v3 --dump-to one"));
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(folder.path("one/sums.thunks.txt").exists() && !folder.path("one/x86-64-v3").exists());
}

#[test]
fn several_programs_are_one_object() {
    let folder = Folder::new();
    folder.write("other.hlo", "HloModule other\nENTRY main { x = f32[2] parameter(0)\n ROOT n = f32[2] negate(x) }");
    let done = folder.xla("compile module.hlo other.hlo --name both -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let header = std::fs::read_to_string(folder.path("build/both.h")).unwrap();
    assert!(header.contains("int32_t sums(const") && header.contains("int32_t other(const"), "{header}");
    let message = folder.fails(2, "compile module.hlo module.hlo -o build");
    assert!(message.contains("must have different names, not sums, sums"), "{message}");
    let message = folder.fails(2, "compile module.hlo other.hlo --platform gpu --ptxas none -o build");
    assert!(message.contains("holds one module, not 2"), "{message}");
    let done = folder.xla("compile module.hlo --symbol first other.hlo --symbol second -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(folder.path("build/first.o").exists() && !folder.path("build/first.bin").exists());
    let done = folder.xla("compile module.hlo --constants file -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(folder.path("build/sums.bin").exists());
}

#[test]
fn programs_that_a_target_cannot_have_are_bad_input() {
    let folder = Folder::new();
    folder.write(
        "call.hlo",
        "HloModule s
        ENTRY main { x = f32[64] parameter(0)
          ROOT c = f32[64] custom-call(x), custom_call_target=\"theirs\" }",
    );
    let message = folder.fails(2, "compile call.hlo -o build");
    assert!(message.contains("has no code yet for %c (custom-call, f32[64])"), "{message}");
    assert!(message.contains("with --external theirs"), "{message}");
    let message = folder.fails(2, "compile call.hlo --external theirs=our.own -o build");
    assert!(message.contains("\"our.own\" is not a name in C"), "{message}");
    let done = folder.xla("compile call.hlo --external others --external theirs=ours -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let header = std::fs::read_to_string(folder.path("build/s.h")).unwrap();
    assert!(header.contains("int32_t ours(const void *const *operands"), "{header}");
}
