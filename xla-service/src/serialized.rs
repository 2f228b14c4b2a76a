//! Serialised programs: a module after passes, in an envelope with platform name and checksum.
//!
//! Loading runs the backend part of the compilation again, without passes. A backend whose code generation is slow
//! appends its device code as the second part of the payload.
//!
//! ```text
//! "XLA program\n" | version u32 | platform: length u32, UTF-8 | replicas u64 | partitions u64
//!                 | module: length u64, HloModuleProto | code: length u64, bytes | checksum u64
//! ```
//!
//! The code may be machine code, which loading maps into the process or sends to the device. Never load bytes of
//! unknown origin.
//!
//! `HloModuleProto` lacks the numbers of replicas and partitions; 0 for numbers that the header of the module omits.
//!
//! Numbers are little-endian; the checksum is FNV-1a (64 bits) over all preceding bytes.

use xla_hlo::{Error, Module, Result, ResultExt, VerifiedModule, proto};
use xla_passes::{ProgramForm, program_form};

use crate::compiler::OptimizedModule;

const MAGIC: &[u8] = b"XLA program\n";
/// Format version. Version 2 added the sizes of results of dynamic size, version 3 the numbers of replicas and
/// partitions.
const VERSION: u32 = 3;

/// Serialised program.
#[derive(Clone, Debug)]
pub struct SerializedProgram {
    /// Module after passes.
    pub module: OptimizedModule,
    /// Other data of the backend; empty for backends that lower the module again.
    pub code: Vec<u8>,
}

/// Returns an error for a program that several devices execute together. Loaded programs run on one device, or as
/// independent replicas.
pub fn check_independent(module: &Module) -> Result<()> {
    match program_form(module) {
        ProgramForm::OneDevice => Ok(()),
        ProgramForm::PerDevice | ProgramForm::Global(_) => Err(of_several_devices(module.name())),
    }
}

/// Returns the error for a program that several devices execute together.
pub(crate) fn of_several_devices(name: &str) -> Error {
    Error::unimplemented(format!(
        "{name} is executed by several devices together; only programs of one device and of independent replicas can \
         be serialised"
    ))
}

/// Serialises a program of a platform.
pub fn write(platform: &str, module: &OptimizedModule, code: &[u8]) -> Result<Vec<u8>> {
    let counts = [module.attributes().replica_count, module.attributes().num_partitions];
    let module = proto::serialize_module(module)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let name = u32::try_from(platform.len()).map_err(|_| Error::invalid_argument("the platform's name is too long"))?;
    bytes.extend(name.to_le_bytes());
    bytes.extend(platform.as_bytes());
    counts.iter().for_each(|count| bytes.extend(count.to_le_bytes()));
    for part in [&module[..], code] {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    bytes.extend(checksum(&bytes).to_le_bytes());
    Ok(bytes)
}

/// Returns the platform's name in the header of a serialised program, without checking the rest. Errors are those of
/// [`read()`].
pub fn platform_of(bytes: &[u8]) -> Result<String> {
    Ok(header(bytes)?.0)
}

/// Inverse of [`write()`]. [`Error::InvalidArgument`] for bytes that are not a program, truncated, corrupted, of
/// another version or of another platform; the message names the cause.
pub fn read(platform: &str, bytes: &[u8]) -> Result<SerializedProgram> {
    let (name, mut rest) = header(bytes)?;
    let replica_count = u64::from_le_bytes(rest.array()?);
    let num_partitions = u64::from_le_bytes(rest.array()?);
    let module = u64::from_le_bytes(rest.array()?);
    let module = rest.take(module)?;
    let code = u64::from_le_bytes(rest.array()?);
    let code = rest.take(code)?.to_vec();
    let expected = u64::from_le_bytes(rest.array()?);
    if !rest.0.is_empty() || checksum(&bytes[..bytes.len() - 8]) != expected {
        return Err(Error::invalid_argument("the serialised program is corrupt: its checksum does not match"));
    }
    if name != platform {
        return Err(Error::invalid_argument(format!(
            "the serialised program is for platform {name}, not for {platform}"
        )));
    }
    let module = proto::parse_module(module).and_then(|mut module| {
        let attributes = module.attributes_mut();
        (attributes.replica_count, attributes.num_partitions) = (replica_count, num_partitions);
        VerifiedModule::new(module)
    });
    let module = module.context(|| "the module of the serialised program")?;
    Ok(SerializedProgram { module: OptimizedModule::new(module), code })
}

/// Parses the header; returns the platform's name and a reader of the rest.
fn header(bytes: &[u8]) -> Result<(String, ByteReader<'_>)> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(Error::invalid_argument("these bytes are not a serialised program"));
    };
    let mut rest = ByteReader(rest);
    let version = u32::from_le_bytes(rest.array()?);
    if version != VERSION {
        return Err(Error::invalid_argument(format!(
            "the serialised program has version {version}, but this build reads version {VERSION}; compile it again"
        )));
    }
    let name = u32::from_le_bytes(rest.array()?);
    Ok((String::from_utf8_lossy(rest.take(name.into())?).into_owned(), rest))
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): detects accidents, not attacks.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let count = usize::try_from(count).ok();
        let Some((taken, rest)) = count.and_then(|count| self.0.split_at_checked(count)) else {
            return Err(Error::invalid_argument("the serialised program is truncated"));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64)?);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::builder::ModuleBuilder;
    use xla_hlo::{ElementType, Shape};

    use super::*;

    fn program() -> OptimizedModule {
        let mut module = ModuleBuilder::new("negate");
        let mut b = module.computation("main");
        let x = b.parameter(Shape::array(ElementType::BF16, [3])).unwrap();
        let root = b.negate(x).unwrap();
        let main = b.finish(root);
        OptimizedModule::new(module.finish(main).unwrap())
    }

    #[test]
    fn there_and_back() {
        let bytes = write("abacus", &program(), b"beads").unwrap();
        let read = read("abacus", &bytes).unwrap();
        assert_eq!(read.module.to_string(), program().to_string());
        assert_eq!(read.code, b"beads");
        assert_eq!(platform_of(&bytes).unwrap(), "abacus");
    }

    fn optimized(text: &str) -> OptimizedModule {
        OptimizedModule::new(xla_hlo::text::parse_module(text).and_then(VerifiedModule::new).unwrap())
    }

    #[test]
    fn replicas_are_loaded_if_they_are_independent() {
        let text = "HloModule m, replica_count=2\nENTRY main {\n x = f32[2] parameter(0)\n ROOT y = ";
        check_independent(&optimized(&format!("{text}f32[2] negate(x)\n}}"))).unwrap();
        let error = check_independent(&optimized(&format!("{text}u32[] replica-id()\n}}"))).unwrap_err();
        let expected = "m is executed by several devices together; only programs of one device and of independent \
                        replicas can be serialised";
        assert!(matches!(&error, Error::Unimplemented(_)) && error.message() == expected, "{error}");
    }

    #[test]
    fn numbers_of_devices_are_kept() {
        let text = "HloModule gather, replica_count=2, num_partitions=3\nENTRY main {\n x = f32[2] parameter(0)\n \
                    ROOT y = f32[6] all-gather(x), dimensions={0}, channel_id=1, use_global_device_ids=true, \
                    replica_groups={{0,1,2},{3,4,5}}\n}";
        let program = optimized(text);
        let read = read("abacus", &write("abacus", &program, b"").unwrap()).unwrap();
        assert_eq!(read.module.to_string(), program.to_string());
        assert_eq!((read.module.attributes().replica_count, read.module.attributes().num_partitions), (2, 3));
    }

    #[test]
    fn every_accident_is_told() {
        let bytes = write("abacus", &program(), b"beads").unwrap();
        for end in 0..bytes.len() {
            let error = read("abacus", &bytes[..end]).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{end}: {error}");
        }
        for place in 0..bytes.len() {
            let mut garbled = bytes.clone();
            garbled[place] ^= 0x20;
            let error = read("abacus", &garbled).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{place}: {error}");
        }
        let error = read("slide-rule", &bytes).unwrap_err();
        assert!(error.message().contains("for platform abacus, not for slide-rule"), "{error}");
    }
}
