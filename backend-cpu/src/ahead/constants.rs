//! `NAME.bin`: large constants as a file to map, in the place of data in the object.
//!
//! The file begins with a number that stands for its contents, in the target's byte order, by which the entry tells it
//! from others. Constants are in the target's byte order too, aligned, each once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use xla_hlo::{Error, Layout, Literal, Module, Op, Result};
use xla_llvm::elemental::array_bytes;
use xla_passes::buffers::{Allocation, AllocationKind};
use xla_service::thunks::ThunkProgram;

/// Alignment in bytes of the file in memory, and of each constant in it.
pub(super) const ALIGNMENT: u64 = 64;
/// Bytes from which on a constant is in the file; an address costs more than smaller ones gain.
const LARGE: usize = 1024;
/// Words for people at the file's beginning, after its number.
const TITLE: &[u8] = b" constants of programs compiled ahead of time\n";

/// Constants of several programs, to be written to a file.
#[derive(Debug)]
pub(super) struct ConstantsFile {
    bytes: Vec<u8>,
    /// Constants by a hash: first byte and length of each.
    known: HashMap<u64, Vec<(usize, usize)>>,
    big_endian: bool,
}

/// The file, as calls need to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    /// Bytes of the file.
    pub size: u64,
    /// The number that the file begins with.
    pub stamp: u32,
}

impl ConstantsFile {
    pub fn new(big_endian: bool) -> ConstantsFile {
        let mut bytes = vec![0; ALIGNMENT as usize];
        bytes[4..4 + TITLE.len()].copy_from_slice(TITLE);
        ConstantsFile { bytes, known: HashMap::new(), big_endian }
    }

    /// Adds the large constants of a program; their places in the file, by allocation.
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

    /// Place of a constant.
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
        let end = end.ok_or_else(|| Error::resource_exhausted("constants take more than memory can be"))?;
        self.bytes.resize(end, 0);
        Ok(start as u64)
    }

    /// The file's bytes, and what calls know of it.
    pub fn finish(mut self) -> (Vec<u8>, Constants) {
        // FNV-1a, of 32 bits.
        let stamp =
            self.bytes.iter().fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let word = if self.big_endian { stamp.to_be_bytes() } else { stamp.to_le_bytes() };
        self.bytes[..4].copy_from_slice(&word);
        let constants = Constants { size: self.bytes.len() as u64, stamp };
        (self.bytes, constants)
    }
}

/// The array that a constant allocation holds.
pub(super) fn constant<'m>(module: &'m Module, allocation: &Allocation) -> Result<&'m Literal> {
    let AllocationKind::Constant { value } = &allocation.kind else {
        return Err(Error::internal("an allocation is no constant's"));
    };
    let instruction = &module[value.computation][value.instruction];
    let Op::Constant(constant) = instruction.op() else {
        return Err(Error::internal(format!("%{} is no constant", instruction.name())));
    };
    let leaf = value.path.iter().try_fold(&constant.literal, |literal, &i| literal.elements().get(i));
    let leaf = leaf.ok_or_else(|| Error::internal(format!("%{} has no leaf {:?}", instruction.name(), value.path)))?;
    let row_major = instruction.shape().subshape(&value.path).and_then(|shape| shape.as_array());
    match row_major.is_some_and(|shape| shape.layout().is_none_or(Layout::is_row_major)) {
        true => Ok(leaf),
        false => Err(Error::internal(format!("the constant %{} is not row major", instruction.name()))),
    }
}
