//! Tests of compiled programs in files: written, run and measured without the module, and rejected if they cannot run.

use crate::support::{Folder, floats};

fn folder() -> Folder {
    let folder = Folder::new();
    let three = |x: f32| floats(&[2, 3], &[x, 2.0, 3.0, 4.0, 5.0, 6.0]);
    folder.archive("in.npz", &[("arg0", three(1.0)), ("arg1", three(-1.0))]);
    folder
}

#[test]
fn an_executable_runs_without_its_module() {
    let folder = folder();
    let done = folder.xla("compile module.hlo --platform gpu-emulated -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let compiled = folder.xla("run module.hlo --platform gpu-emulated --inputs in.npz");
    let loaded = folder.xla("run --executable build/sums.xlax --platform gpu-emulated --inputs in.npz");
    assert_eq!((loaded.code, &loaded.out), (0, &compiled.out), "{loaded:?}");
    assert!(loaded.out.starts_with("out0: "), "{loaded:?}");
    let bench = folder.xla("bench --executable build/sums.xlax --platform gpu-emulated --json --reps 2 --compiles 1");
    assert!(bench.code == 0 && bench.out.contains("\"impl\":\"xla 0.1.0 (gpu-emulated)\""), "{bench:?}");
}

#[test]
fn host_code_of_a_file_runs_only_where_the_platform_is_named() {
    let folder = folder();
    assert_eq!(folder.xla("compile module.hlo --platform gpu-emulated -o build").code, 0);
    for command in ["run --executable build/sums.xlax --inputs in.npz", "bench --executable build/sums.xlax --reps 1"] {
        let message = folder.fails(2, command);
        assert_eq!(
            message,
            "build/sums.xlax holds machine code that would run on this machine with your rights; if you trust its \
             origin, add --platform gpu-emulated"
        );
    }
    let help = folder.xla("run --help").out;
    assert!(help.contains("which must be trusted") && help.contains("take only files that you trust"), "{help}");
}

#[test]
fn executables_that_cannot_run_are_told() {
    let folder = folder();
    assert_eq!(folder.xla("compile module.hlo --platform gpu-emulated -o build").code, 0);
    let message = folder.fails(2, "run --executable build/sums.xlax --platform cpu --inputs in.npz");
    assert_eq!(message, "build/sums.xlax is for platform gpu-emulated, not for cpu");
    let bytes = std::fs::read(folder.path("build/sums.xlax")).unwrap();
    folder.write("half.xlax", &bytes[..bytes.len() / 2]);
    let message = folder.fails(2, "run --executable half.xlax --platform gpu-emulated --inputs in.npz");
    assert_eq!(message, "half.xlax: the serialised program is truncated");
    let mut garbled = bytes.clone();
    *garbled.last_mut().unwrap() ^= 1;
    folder.write("garbled.xlax", &garbled);
    let message = folder.fails(2, "run --executable garbled.xlax --platform gpu-emulated --inputs in.npz");
    assert!(message.contains("garbled"), "{message}");
    let mut other = bytes;
    other[12] = 77;
    folder.write("other.xlax", &other);
    let message = folder.fails(2, "run --executable other.xlax --inputs in.npz");
    assert!(message.contains("version 77"), "{message}");
    let message = folder.fails(2, "run --executable module.hlo --inputs in.npz");
    assert_eq!(message, "module.hlo: these bytes are not a serialised program");
    let message = folder.fails(2, "run --executable absent.xlax --inputs in.npz");
    assert!(message.starts_with("cannot read absent.xlax: "), "{message}");
    let message = folder.fails(2, "run module.hlo --executable build/sums.xlax --inputs in.npz");
    assert!(message.contains("cannot be used with"), "{message}");
}

#[test]
fn programs_for_a_gpu_need_none_to_be_compiled() {
    let folder = folder();
    let done = folder.xla("compile module.hlo --platform gpu --target sm_80 --ptxas none -o build");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let ptx = std::fs::read_to_string(folder.path("build/kernels.0.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80"), "{ptx}");
    assert!(folder.path("build/sums.xlax").exists() && !folder.path("build/kernels.json").exists());
    let message = folder.fails(2, "compile module.hlo --platform gpu --target sm_banana --ptxas none -o build");
    assert!(message.contains("is not a GPU architecture"), "{message}");
    let message = folder.fails(2, "compile module.hlo --platform gpu --ptxas nowhere/ptxas -o build");
    assert!(message.starts_with("nowhere/ptxas cannot be run: "), "{message}");
    let message = folder.fails(2, "compile module.hlo --platform gpu --emit asm --ptxas none -o build");
    assert!(message.contains("the option emit applies only to object files"), "{message}");
    let message = folder.fails(2, "compile module.hlo --platform gpu --ptxas none --run-threads 2 -o build");
    assert!(message.contains("the option run-threads applies only to object files"), "{message}");
    let message = folder.fails(2, "compile module.hlo --platform gpu-emulated --target sm_90 -o build");
    assert!(message.contains("compiles for this machine only"), "{message}");
}
