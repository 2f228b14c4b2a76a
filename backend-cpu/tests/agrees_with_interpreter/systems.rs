//! Tests that objects for other systems are complete: their linkers accept them without a library and without a
//! warning.

use object::macho::MachHeader64;
use object::read::macho::MachOFile;
use object::{Endianness, Object, ObjectSymbol};
use xla_service::AotCompilationOptions;

use crate::ahead_of_time::{file, module};

/// Program with floating-point numbers.
const TEXT: &str = include_str!("programs/systems.hlo");

fn compiled(triple: &str) -> Vec<u8> {
    let options = AotCompilationOptions { target: Some(triple.to_string()), ..AotCompilationOptions::default() };
    let platform = backend_cpu::platform_with(backend_cpu::CpuOptions {
        generators: backend_cpu::CodeGenerators::all(),
        ..backend_cpu::CpuOptions::default()
    });
    let ahead = platform.compiler();
    let files = ahead.ahead_of_time().unwrap().compile_ahead_of_time(vec![module(TEXT)], &options).unwrap();
    file(&files, ".o").to_vec()
}

#[test]
fn objects_for_windows_need_no_symbol_of_its_c_library() {
    for triple in ["x86_64-pc-windows-msvc", "i686-pc-windows-msvc", "aarch64-pc-windows-msvc", "x86_64-w64-mingw32"] {
        let code = compiled(triple);
        let object = object::File::parse(&*code).unwrap();
        let undefined = object.symbols().filter(|symbol| symbol.is_undefined());
        let names: Vec<&str> = undefined.map(|symbol| symbol.name().unwrap()).collect();
        assert_eq!(names, [""; 0], "{triple}");
        assert!(
            object.symbols().any(|symbol| symbol.is_global() && symbol.name().unwrap().ends_with("halves")),
            "{triple}"
        );
    }
}

#[test]
fn objects_for_systems_of_apple_name_their_version() {
    for triple in [
        "aarch64-apple-darwin",
        "x86_64-apple-macosx",
        "arm64-apple-ios",
        "arm64-apple-ios-simulator",
        "x86_64-apple-darwin",
    ] {
        let code = compiled(triple);
        let object = MachOFile::<MachHeader64<Endianness>>::parse(&*code).unwrap();
        let mut commands = object.macho_load_commands().unwrap();
        let mut names_version = false;
        while let Some(command) = commands.next().unwrap() {
            let is_version = [
                object::macho::LC_BUILD_VERSION,
                object::macho::LC_VERSION_MIN_MACOSX,
                object::macho::LC_VERSION_MIN_IPHONEOS,
            ];
            names_version |= is_version.contains(&command.cmd());
        }
        assert!(names_version, "{triple}");
    }
}
