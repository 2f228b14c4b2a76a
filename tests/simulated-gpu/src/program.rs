//! Loaded module: decoded kernels, and variables in device memory.

use std::collections::HashMap;

use crate::code::{Approximations, Kernel, Type, decode};
use crate::machine::Memory;
use crate::ptx::{self, Operand, Space, SyntaxError, Variable};

/// Reason that a module cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Syntax error, or an instruction that the simulator does not support.
    #[error("PTX {0}")]
    Text(#[from] SyntaxError),
    /// Module that was compiled for another device.
    #[error("the module is for {wanted}, and the device is sm_{capability}")]
    Target {
        /// Target of the module.
        wanted: String,
        /// Capability of the device.
        capability: u32,
    },
    /// Out of memory for a variable of the module.
    #[error("there is no memory for the variable {0}")]
    Memory(String),
}

/// Loaded module.
#[derive(Debug)]
pub struct Program {
    text: String,
    kernels: Vec<Kernel>,
    /// Names, addresses and sizes of variables.
    variables: Vec<(String, u64, usize)>,
}

impl Program {
    /// Loads a module into memory. `capability` is the device's compute capability, 90 for `sm_90`.
    pub fn load(
        text: &str,
        memory: &mut Memory,
        capability: u32,
        approximations: Approximations,
    ) -> Result<Program, LoadError> {
        let module = ptx::parse(text)?;
        if !is_for(module.target, capability) {
            return Err(LoadError::Target { wanted: module.target.to_owned(), capability });
        }
        let mut program = Program { text: text.to_owned(), kernels: Vec::new(), variables: Vec::new() };
        let loaded = program.fill(&module, memory, approximations);
        if loaded.is_err() {
            program.unload(memory);
        }
        loaded.map(|()| program)
    }

    fn fill(
        &mut self,
        module: &ptx::Module<'_>,
        memory: &mut Memory,
        approximations: Approximations,
    ) -> Result<(), LoadError> {
        for variable in module.variables.iter().filter(|v| matches!(v.space, Space::Global | Space::Const)) {
            let content = content(variable)?;
            let no_memory = || LoadError::Memory(variable.name.to_owned());
            let address = memory.allocate(content.len()).ok_or_else(no_memory)?;
            self.variables.push((variable.name.to_owned(), address, content.len()));
            memory.write(address, &content).map_err(|_| no_memory())?;
        }
        let addresses: HashMap<String, u64> =
            self.variables.iter().map(|(name, address, _)| (name.clone(), *address)).collect();
        for function in module.functions.iter().filter(|function| function.is_entry) {
            self.kernels.push(decode(module, function, &addresses, approximations)?);
        }
        Ok(())
    }

    /// Returns the PTX text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the kernel with a symbol name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Returns all kernels in the order of the text.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Frees the memory of variables.
    pub fn unload(&mut self, memory: &mut Memory) {
        for (_, address, _) in self.variables.drain(..) {
            memory.free(address);
        }
    }
}

/// Whether code for a target such as `sm_80` runs on a device. Later devices run it as well; targets with a suffix
/// (`sm_90a`) run on that device only.
fn is_for(target: &str, capability: u32) -> bool {
    let Some(number) = target.strip_prefix("sm_") else { return false };
    match number.parse::<u32>() {
        Ok(number) => number <= capability,
        Err(_) => number.strip_suffix('a').and_then(|number| number.parse().ok()) == Some(capability),
    }
}

/// Returns the initial bytes of a variable.
fn content(variable: &Variable<'_>) -> Result<Vec<u8>, SyntaxError> {
    let error = |message: &str| SyntaxError::new(variable.line, format!("the variable {} {message}", variable.name));
    let ty = Type::parse(variable.element).ok_or_else(|| error("has no type that is known"))?;
    let size = variable.count.filter(|_| !variable.is_extern).ok_or_else(|| error("is defined elsewhere"))?;
    let bytes = size.checked_mul(ty.bytes()).filter(|bytes| *bytes <= 1 << 32);
    let mut content = vec![0; bytes.ok_or_else(|| error("is too big"))? as usize];
    let width = ty.bytes() as usize;
    if variable.initial.len() > content.len() / width {
        return Err(error("has more values than elements"));
    }
    for (into, value) in content.chunks_mut(width).zip(&variable.initial) {
        let value = match value {
            Operand::Integer(value) | Operand::Double(value) => *value,
            Operand::Single(bits) => u64::from(*bits),
            _ => return Err(error("has a value that is not a number")),
        };
        into.copy_from_slice(&value.to_le_bytes()[..width]);
    }
    Ok(content)
}
