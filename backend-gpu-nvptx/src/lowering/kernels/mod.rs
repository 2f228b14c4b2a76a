//! Kernels of a program with their numbers; equal kernels share their code.

pub(crate) mod alternatives;
pub(crate) mod block_loop;
pub(crate) mod helper;
pub(crate) mod planned;

use std::collections::{BTreeSet, HashMap};

use xla_llvm::fused::{KernelCode, KernelTable};

use crate::program::commands::{Command, KernelArgument};

/// Number of blocks of a launch whose kernel is not generated yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotGenerated;

/// Kernels of a program, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Kernels<'m> {
    codes: Vec<KernelCode<'m>>,
    /// Table that finds equal sources.
    sources: KernelTable<'m>,
    /// Numbers of the kernels of each source, and of kernels whose code does not depend on one.
    known: HashMap<Option<u32>, Vec<usize>>,
    /// Number of arguments of each launched kernel, by its number.
    parameters: HashMap<usize, usize>,
    /// Read-only arguments of each launched kernel, by its number.
    unwritten: HashMap<usize, BTreeSet<u32>>,
}

impl<'m> Kernels<'m> {
    /// Returns the number of a kernel in the program, which is new unless an equal kernel exists.
    pub fn number(&mut self, code: KernelCode<'m>) -> usize {
        let source = code.source().map(|source| self.sources.number(source.clone()));
        let known = self.known.entry(source).or_default();
        if let Some(&number) = known.iter().find(|&&number| self.codes[number].is_same(&code)) {
            return number;
        }
        known.push(self.codes.len());
        self.codes.push(code);
        self.codes.len() - 1
    }

    /// Returns the launch of a numbered kernel.
    pub fn launch(&mut self, function: usize, arguments: Vec<KernelArgument>) -> Command<NotGenerated> {
        self.parameters.insert(function, arguments.len());
        Command::Launch { function, blocks: NotGenerated, arguments }
    }

    /// Records the read-only arguments of a launch; the kernel keeps the intersection over all of its launches.
    pub fn launched(&mut self, kernel: usize, unwritten: BTreeSet<u32>) {
        let known = self.unwritten.entry(kernel).or_insert_with(|| unwritten.clone());
        known.retain(|argument| unwritten.contains(argument));
    }

    /// Returns the number of 64-bit arguments of a kernel: first addresses, then numbers.
    pub fn parameters(&self, kernel: usize) -> usize {
        self.parameters.get(&kernel).copied().unwrap_or_default()
    }

    /// Returns the read-only arguments of a kernel.
    pub fn unwritten(&self, kernel: usize) -> impl Iterator<Item = u32> {
        self.unwritten.get(&kernel).into_iter().flatten().copied()
    }

    /// Returns the kernels in the order of their numbers.
    pub fn codes(&self) -> &[KernelCode<'m>] {
        &self.codes
    }
}
