//! Tests of serialized programs: written, loaded, and refused with a message if they cannot be loaded.

use xla_hlo::{ElementType, Error, Literal, VerifiedModule, text};
use xla_service::compiler::AotFile;
use xla_service::{AotCompilationOptions, Assembler, Client, CompileOptions, Platform, PlatformRegistry, serialized};

/// Program of a dot and a reduction: kernels of several kinds, a host call, and kernels with and without scratch
/// memory.
const MODULE: &str = include_str!("programs/executables.hlo");

fn module() -> VerifiedModule {
    VerifiedModule::new(text::parse_module(MODULE).unwrap()).unwrap()
}

fn files(platform: &dyn Platform, target: Option<&str>) -> xla_hlo::Result<Vec<AotFile>> {
    let compiler = platform.compiler();
    let options = AotCompilationOptions {
        target: target.map(str::to_string),
        assembler: Assembler::None,
        ..AotCompilationOptions::default()
    };
    compiler.ahead_of_time().unwrap().compile_ahead_of_time(vec![module()], &options)
}

fn executable(files: &[AotFile]) -> Vec<u8> {
    files.iter().find(|file| file.name == "program.xlax").unwrap().bytes.clone()
}

fn client() -> Client {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::emulated_platform());
    Client::new(&registry, backend_gpu_nvptx::EMULATED_NAME).unwrap()
}

fn inputs() -> Vec<Literal> {
    let shapes = [[64, 96], [96, 32]].map(|dims| xla_hlo::ArrayShape::new(ElementType::F32, dims));
    let value = |i: usize| xla_hlo::Scalar::Float((i % 13) as f64 / 64.0 - 0.1);
    shapes.iter().map(|shape| Literal::from_fn(shape, value).unwrap()).collect()
}

#[test]
fn what_is_loaded_gives_what_was_compiled() {
    let bytes = executable(&files(&*backend_gpu_nvptx::emulated_platform(), None).unwrap());
    let (client, options) = (client(), CompileOptions::default());
    let expected = client.compile(&module(), &options).unwrap().run(inputs()).unwrap();
    let loaded = client.load(&bytes, &options).unwrap();
    assert_eq!(loaded.run(inputs()).unwrap(), expected);
    // The loaded program is serialized again.
    let again = client.load(&loaded.serialize().unwrap(), &options).unwrap();
    assert_eq!(again.run(inputs()).unwrap(), expected);
}

#[test]
fn the_files_of_a_program_for_a_gpu() {
    let files = files(&*backend_gpu_nvptx::platform(), Some("sm_80")).unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert!(names.contains(&"kernels.0.ptx") && names.last() == Some(&"program.xlax"), "{names:?}");
    assert!(String::from_utf8_lossy(&files[0].bytes).contains(".target sm_80"));
    assert_eq!(serialized::platform_of(&executable(&files)).unwrap(), "gpu");
}

#[test]
fn programs_that_cannot_be_loaded_are_refused() {
    let gpu = executable(&files(&*backend_gpu_nvptx::platform(), None).unwrap());
    let host = executable(&files(&*backend_gpu_nvptx::emulated_platform(), None).unwrap());
    let client = client();
    let refusal = |bytes: &[u8]| match client.load(bytes, &CompileOptions::default()) {
        Err(Error::InvalidArgument(detail)) => detail.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refusal(&gpu).contains("for platform gpu, not for gpu-emulated"));
    assert!(refusal(&host[..host.len() / 2]).contains("truncated"));
    let written = serialized::read("gpu-emulated", &host).unwrap();
    let with = |code: &[u8]| serialized::write("gpu-emulated", &written.module, code).unwrap();
    assert!(refusal(&with(b"")).contains("no device code"));
    assert!(refusal(&with(b"\x63\0\0\0")).contains("version 99"));
    // The code of a GPU's program with the name of the emulated platform.
    let code = serialized::read("gpu", &gpu).unwrap().code;
    assert!(refusal(&with(&code)).contains("compiled for GPU sm_90, not for an emulated GPU"));
    for end in 4..written.code.len().min(2000) {
        refusal(&with(&written.code[..end]));
    }
}

#[test]
fn another_target_is_none_of_the_host() {
    let error = files(&*backend_gpu_nvptx::emulated_platform(), Some("sm_90")).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
}
