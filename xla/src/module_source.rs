//! Programs as bytes, from a file or another source. The format is detected from the content.

use xla_hlo::{Error, Module, Result, proto, text};
use xla_stablehlo as stablehlo;
use xla_stablehlo::ArgumentShapes;

/// Program that was read but not parsed: HLO or StableHLO, as text or serialised.
///
/// ```
/// use xla::ModuleSource;
///
/// # fn main() -> xla::Result<()> {
/// let bytes = b"HloModule double\nENTRY main { x = f32[4] parameter(0)\n ROOT y = f32[4] add(x, x) }";
/// let (module, _) = ModuleSource::new(bytes.to_vec())?.parse()?;
/// assert_eq!(module.name(), "double");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ModuleSource(Content);

/// Program in one of the supported formats.
#[derive(Debug)]
enum Content {
    /// HLO text.
    Text(String),
    /// Serialised HLO.
    Proto(Vec<u8>),
    /// StableHLO as a portable artifact in MLIR bytecode.
    Bytecode(Vec<u8>),
    /// StableHLO as MLIR text.
    Mlir(String),
}

impl ModuleSource {
    /// Detects the format of a program; [`Error::InvalidArgument`] if the bytes do not begin like any format.
    pub fn new(bytes: Vec<u8>) -> Result<ModuleSource> {
        content(bytes).map(ModuleSource)
    }

    /// Parses the program. Also returns the number of constants in HLO text whose data is omitted, `{...}`; they are
    /// set to zeros.
    pub fn parse(&self) -> Result<(Module, usize)> {
        self.parse_for(&ArgumentShapes::default())
    }

    /// Parses the program for the given shapes of its arguments, because a StableHLO program may have dynamic
    /// dimensions. Returns the results of [`ModuleSource::parse`].
    pub fn parse_for(&self, shapes: &ArgumentShapes) -> Result<(Module, usize)> {
        if shapes.has_shapes() && matches!(self.0, Content::Text(_) | Content::Proto(_)) {
            return Err(Error::invalid_argument(
                "the arguments of an HLO module have fixed shapes; only those of StableHLO programs can be given shapes",
            ));
        }
        let whole = |module| (module, 0);
        match &self.0 {
            Content::Text(text) => text::parse_module_counting_omitted(text),
            Content::Proto(bytes) => proto::parse_module(bytes).map(whole),
            Content::Bytecode(bytes) => stablehlo::refine(&stablehlo::bytecode::read(bytes)?, shapes).map(whole),
            Content::Mlir(text) => stablehlo::refine(&stablehlo::text::read(text)?, shapes).map(whole),
        }
    }
}

/// Detects the format of the bytes; the error names the format if it is a known one.
fn content(bytes: Vec<u8>) -> Result<Content> {
    if stablehlo::bytecode::is_bytecode(&bytes) {
        return Ok(Content::Bytecode(bytes));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::invalid_argument("the file is empty; it should hold a module in HLO text"));
    }
    let control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x0b;
    let binary = bytes.iter().position(control);
    // A serialised module begins with field 1, or with field 2 if it has no name. As text, these tags are whitespace or
    // control characters, and every serialised module contains control characters.
    if binary.is_some() && matches!(bytes[0], 0x0a | 0x12) {
        return Ok(Content::Proto(bytes));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            return Err(Error::invalid_argument(format!(
                "byte {at} is not UTF-8 text, and the file is in no binary module format"
            )));
        }
    };
    if let Some(at) = binary {
        let byte = text.as_bytes()[at];
        return Err(Error::invalid_argument(format!("byte {at} is the control character {byte:#04x}: no HLO text")));
    }
    if is_mlir(&text) {
        return Ok(Content::Mlir(text));
    }
    Ok(Content::Text(text))
}

/// Whether the first line other than comments is MLIR.
fn is_mlir(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    let starts = ["module ", "module{", "#", "!", "\"builtin.module\"", "func.func", "builtin.module"];
    lines.next().is_some_and(|first| starts.iter().any(|start| first.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        content(bytes.to_vec()).unwrap_err().to_string()
    }

    #[test]
    fn formats_are_told_by_their_content() {
        assert!(matches!(content(b"// a comment\nHloModule m\n".to_vec()), Ok(Content::Text(_))));
        assert!(matches!(content(b"\n\nHloModule m\n".to_vec()), Ok(Content::Text(_))));
        assert!(matches!(content(b"\x0a\x04main\x12\x00".to_vec()), Ok(Content::Proto(_))));
        assert!(matches!(content(b"ML\xefR\x0dStableHLO".to_vec()), Ok(Content::Bytecode(_))));
        for mlir in ["module @jit_f {", "#loc = loc(unknown)\nmodule {", "// text\nfunc.func @main()"] {
            assert!(matches!(content(mlir.as_bytes().to_vec()), Ok(Content::Mlir(_))), "{mlir}");
        }
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(refusal(b" \n").starts_with("the file is empty"));
        assert!(refusal(b"HloModule \xff").starts_with("byte 10 is not UTF-8"));
        assert!(refusal(b"HloModule \0").starts_with("byte 10 is the control character 0x00"));
    }
}
