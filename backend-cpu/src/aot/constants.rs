//! `NAME.bin`: file of large constants to map, instead of data in the object.
//!
//! The file starts with a hash of its contents, by which the entry function detects a wrong file. The hash and the
//! constants are in the target's byte order. Constants are aligned, and equal ones are stored once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use xla_hlo::{Error, Layout, Literal, Module, Op, Result};
use xla_llvm::elemental::array_bytes;
use xla_passes::buffers::{Allocation, AllocationKind};
use xla_service::thunks::ThunkProgram;

/// Alignment in bytes of the mapped file, and of each constant in it.
pub(super) const ALIGNMENT: u64 = 64;
/// Minimum size in bytes of the constants in the file. For smaller ones, loading the address would cost more than the
/// smaller object saves.
const LARGE: usize = 1024;
/// Readable title at the start of the file, after the hash.
const TITLE: &[u8] = b" constants of programs compiled ahead of time\n";

/// Builder of the constants file of several programs.
#[derive(Debug)]
pub(super) struct ConstantsFile {
    bytes: Vec<u8>,
    /// Offset and length of known constants, by the hash of their bytes.
    known: HashMap<u64, Vec<(usize, usize)>>,
    big_endian: bool,
}

/// Properties of the file that calls check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    /// Size of the file in bytes.
    pub size: u64,
    /// Hash at the start of the file.
    pub stamp: u32,
}

impl ConstantsFile {
    pub fn new(big_endian: bool) -> ConstantsFile {
        let mut bytes = vec![0; ALIGNMENT as usize];
        bytes[4..4 + TITLE.len()].copy_from_slice(TITLE);
        ConstantsFile { bytes, known: HashMap::new(), big_endian }
    }

    /// Adds the large constants of a program. Returns the offset in the file for each allocation.
    pub fn add(&mut self, module: &Module, program: &ThunkProgram) -> Result<Vec<Option<u64>>> {
        let mut places = Vec::with_capacity(program.assignment.allocations().len());
        for allocation in program.assignment.allocations() {
            let is_constant = matches!(allocation.kind, AllocationKind::Constant { .. });
            let literal = if is_constant { Some(constant(module, allocation)?) } else { None };
            let large = literal.filter(|literal| literal.byte_len() >= LARGE);
            places.push(large.map(|literal| self.place(literal)).transpose()?);
        }
        Ok(places)
    }

    /// Returns the offset of a constant, which is added if it is new.
    fn place(&mut self, literal: &Literal) -> Result<u64> {
        let data = array_bytes(literal, self.big_endian);
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        let places = self.known.entry(hasher.finish()).or_default();
        let same = |place: &&(usize, usize)| self.bytes[place.0..place.0 + place.1] == *data;
        if let Some(&(start, _)) = places.iter().find(same) {
            return Ok(start as u64);
        }
        let start = self.bytes.len();
        places.push((start, data.len()));
        self.bytes.extend_from_slice(&data);
        let end = self.bytes.len().checked_next_multiple_of(ALIGNMENT as usize);
        let end = end.ok_or_else(|| Error::resource_exhausted("the constants are larger than the address space"))?;
        self.bytes.resize(end, 0);
        Ok(start as u64)
    }

    /// Returns the bytes of the file, and the properties that calls check.
    pub fn finish(mut self) -> (Vec<u8>, Constants) {
        // 32-bit FNV-1a.
        let stamp =
            self.bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let word = if self.big_endian { stamp.to_be_bytes() } else { stamp.to_le_bytes() };
        self.bytes[..4].copy_from_slice(&word);
        let constants = Constants { size: self.bytes.len() as u64, stamp };
        (self.bytes, constants)
    }
}

/// Returns the array of a constant allocation.
pub(super) fn constant<'m>(module: &'m Module, allocation: &Allocation) -> Result<&'m Literal> {
    let AllocationKind::Constant { value } = &allocation.kind else {
        return Err(Error::internal("the allocation is not that of a constant"));
    };
    let instruction = &module[value.computation][value.instruction];
    let Op::Constant(constant) = instruction.op() else {
        return Err(Error::internal(format!("%{} is not a constant", instruction.name())));
    };
    let leaf = value.path.iter().try_fold(&constant.literal, |literal, &i| literal.elements().get(i));
    let leaf = leaf.ok_or_else(|| Error::internal(format!("%{} has no leaf {:?}", instruction.name(), value.path)))?;
    let row_major = instruction.shape().subshape(&value.path).and_then(|shape| shape.as_array());
    match row_major.is_some_and(|shape| shape.layout().is_none_or(Layout::is_row_major)) {
        true => Ok(leaf),
        false => Err(Error::internal(format!("the constant %{} is not row major", instruction.name()))),
    }
}
