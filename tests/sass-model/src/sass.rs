//! Reads machine code as nvdisasm prints it: functions and their instructions.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};

/// A kernel with the functions that it calls, which follow its own code.
#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub code: Vec<Instruction>,
}

/// Instruction of a function.
#[derive(Debug)]
pub struct Instruction {
    pub address: u64,
    /// Guard predicate: `P0`, `!UP1`.
    pub guard: Option<String>,
    /// Name with its modifiers: `LDG.E.128`.
    pub opcode: String,
    pub operands: Vec<String>,
    /// Index of the jump target; `None` for an indirect jump.
    pub target: Option<usize>,
}

impl Instruction {
    /// The opcode without modifiers.
    pub fn base(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    pub fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|known| known == modifier)
    }

    /// `M`, `N` and `K` of a warp group's matrix instruction, such as `HGMMA.64x128x16.F32`.
    pub fn group_shape(&self) -> Option<[u64; 3]> {
        let sides = |shape: &str| shape.split('x').map(|side| side.parse().ok()).collect::<Option<Vec<u64>>>();
        self.opcode.split('.').skip(1).filter_map(sides).find_map(|sides| sides.try_into().ok())
    }
}

/// Parses the output of `nvdisasm -c`. An unknown line is an error that quotes it.
pub fn parse(text: &str) -> Result<Vec<Function>> {
    let mut functions: Vec<Reader> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix(".section").and_then(|rest| rest.trim().strip_prefix(".text.")) {
            let name = name.split(',').next().unwrap_or_default().trim_matches('"');
            functions.push(Reader { name: name.to_owned(), labels: HashMap::new(), code: Vec::new() });
            continue;
        }
        let place = || format!("line {}: '{trimmed}'", number + 1);
        if let Some(label) = trimmed.strip_suffix(':') {
            let function = functions.last_mut().with_context(|| format!("a label outside of code, {}", place()))?;
            function.labels.insert(label.to_owned(), function.code.len());
        } else if trimmed.starts_with("/*") {
            let function = functions.last_mut().with_context(|| format!("code in no section, {}", place()))?;
            function.code.push(instruction(trimmed).with_context(|| format!("no instruction, {}", place()))?);
        } else if !(trimmed.is_empty() || trimmed.starts_with(['.', '/'])) {
            bail!("neither instruction nor label nor directive, {}", place());
        }
    }
    functions.into_iter().map(Reader::finish).collect()
}

/// Parses the output of `nvdisasm --binary` for functions in sequence, which begin at the addresses `starts`.
pub fn parse_binary<'n>(text: &str, starts: impl IntoIterator<Item = (&'n str, u64)>) -> Result<Vec<Function>> {
    let mut starts = starts.into_iter().peekable();
    let mut with_sections = String::with_capacity(text.len());
    for line in text.lines() {
        let address =
            line.trim().strip_prefix("/*").and_then(|rest| u64::from_str_radix(rest.split_once('*')?.0, 16).ok());
        if let Some((name, _)) = starts.next_if(|(_, start)| address == Some(*start)) {
            with_sections += &format!(".section .text.{name}\n");
        }
        with_sections += line;
        with_sections.push('\n');
    }
    match starts.next() {
        Some((name, start)) => bail!("{name} begins at {start:#x}, where there is no instruction"),
        None => parse(&with_sections),
    }
}

/// A function whose jumps are not resolved yet.
struct Reader {
    name: String,
    labels: HashMap<String, usize>,
    code: Vec<Instruction>,
}

impl Reader {
    fn finish(mut self) -> Result<Function> {
        let places: HashMap<u64, usize> = self.code.iter().enumerate().map(|(place, i)| (i.address, place)).collect();
        let start = self.code.first().map_or(0, |first| first.address);
        for instruction in &mut self.code {
            instruction.address -= start;
            // Targets of calls are of no interest, and may be code of another section.
            if instruction.base() != "BRA" {
                continue;
            }
            let label = instruction.operands.last().map(String::as_str).unwrap_or_default();
            instruction.target = match label.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok().and_then(|address| places.get(&address).copied()),
                None => self.labels.get(label.trim_start_matches("`(").trim_end_matches(')')).copied(),
            };
            if instruction.target.is_none() {
                bail!("{}: a jump to '{label}', which is nowhere", self.name);
            }
        }
        Ok(Function { name: self.name, code: self.code })
    }
}

/// `/*0060*/ @P0 EXIT ;`
fn instruction(line: &str) -> Option<Instruction> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim().strip_suffix(';')?;
    // A remark: `(*"SpillRefill"*)`.
    let rest = rest.split_once("(*").map_or(rest, |(rest, _)| rest).trim();
    let (guard, rest) = match rest.strip_prefix('@') {
        Some(rest) => rest.split_once(' ').map(|(guard, rest)| (Some(guard.to_owned()), rest.trim()))?,
        None => (None, rest),
    };
    let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    if !opcode.starts_with(|c: char| c.is_ascii_uppercase()) || !opcode.chars().all(is_name) {
        return None;
    }
    let operands = operands.split(',').map(|operand| operand.trim().to_owned()).filter(|operand| !operand.is_empty());
    Some(Instruction { address, guard, opcode: opcode.to_owned(), operands: operands.collect(), target: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_labels_and_jumps() {
        let functions = parse(include_str!("samples/row.sass")).unwrap();
        let [function] = &functions[..] else { panic!("{functions:?}") };
        assert_eq!(function.name, "k0_sum");
        let jump = function.code.iter().find(|i| i.base() == "BRA").unwrap();
        assert_eq!((jump.guard.as_deref(), function.code[jump.target.unwrap()].address), (Some("!P0"), 0x70));
        let load = function.code.iter().find(|i| i.base() == "LDG").unwrap();
        assert!(load.has("128") && load.has("E") && !load.has("64"));
        assert_eq!(load.operands, ["R4", "desc[UR6][R4.64]"]);
    }

    #[test]
    fn code_without_sections_is_split_by_addresses() {
        let text = "
            .headerflags @\"EF_CUDA_SM90\"
            /*0000*/ EXIT ;
            /*0010*/ NOP;
            /*0020*/ MOV R1, R2 ;
            /*0030*/ @P0 BRA 0x20;";
        let functions = parse_binary(text, [("k0", 0), ("k1", 0x20)]).unwrap();
        let [first, second] = &functions[..] else { panic!("{functions:?}") };
        assert_eq!((first.code.len(), second.code.len(), second.name.as_str()), (2, 2, "k1"));
        assert_eq!((second.code[1].target, second.code[1].address), (Some(0), 0x10));
        assert!(parse_binary(text, [("k0", 0), ("k1", 0x40)]).unwrap_err().to_string().contains("k1 begins at 0x40"));
        assert!(parse_binary(text, [("k0", 0), ("k1", 0x30)]).unwrap_err().to_string().contains("a jump to '0x20'"));
    }

    #[test]
    fn lines_that_cannot_be_read_are_named() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        let bad = error(include_str!("samples/unparsable.sass"));
        assert!(bad.contains("line 4") && bad.contains("4NOT AN INSTRUCTION"), "{bad}");
        let head = ".section .text.k,\"ax\"\n";
        assert!(error(&format!("{head}hello")).contains("line 2: 'hello'"));
        assert!(error(&format!("{head}/*0000*/ BRA `(.L_x_9) ;")).contains(".L_x_9"));
        assert!(error("/*0000*/ NOP ;").contains("in no section"));
        assert!(error(&format!("{head}/*0000*/ MOV R1, R2")).contains("MOV R1, R2"));
    }
}
