//! Serialised programs: a module after passes, in an envelope with platform name and checksum.
//!
//! Loading runs the backend part of the compilation again, without passes. A backend whose code generation is slow
//! appends its device code as the second part of the payload.
//!
//! ```text
//! "XLA program\n" | version u32 | platform: length u32, UTF-8 | module: length u64, HloModuleProto
//!                 | code: length u64, bytes | checksum u64
//! ```
//!
//! The code may be machine code, which loading maps into the process or sends to the device. Never load bytes of
//! unknown origin.
//!
//! Numbers are little-endian; the checksum is FNV-1a (64 bits) over all preceding bytes.

use xla_hlo::{Error, Result, ResultExt, VerifiedModule, proto};

use crate::compiler::OptimizedModule;

const MAGIC: &[u8] = b"XLA program\n";
/// Format version. Version 2 added the sizes of results of dynamic size.
const VERSION: u32 = 2;

/// Serialised program.
#[derive(Clone, Debug)]
pub struct SerializedProgram {
    /// Module after passes.
    pub module: OptimizedModule,
    /// Other data of the backend; empty for backends that lower the module again.
    pub code: Vec<u8>,
}

/// Serialises a program of a platform.
pub fn write(platform: &str, module: &OptimizedModule, code: &[u8]) -> Result<Vec<u8>> {
    let module = proto::serialize_module(module)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let name = u32::try_from(platform.len()).map_err(|_| Error::invalid_argument("the platform's name is too long"))?;
    bytes.extend(name.to_le_bytes());
    bytes.extend(platform.as_bytes());
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
    let module = proto::parse_module(module).and_then(VerifiedModule::new);
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
