//! The pieces of work that a routine is here and now, with their addresses.

use std::sync::PoisonError;

use xla_hlo::eval::RandomState;
use xla_hlo::{Error, Result};
use xla_passes::buffers::Slice;
use xla_service::thunks::{ExecutionBuffers, Thunk};

use super::executor::{CudaMemory, address_on, scratch};
use super::launch::Loaded;
use super::library::{ChosenCall, LibraryCall};
use super::stream::CudaStream;
use super::tune::Ways;
use crate::autotune::Way;
use crate::choices::{Choices, Place};
use crate::cuda::driver::Driver;
use crate::device::{LibraryStep, Routine, Step, Word};
use crate::launch::{array, drawn, no_scratch};

/// Work with its addresses, in the order in which it is sent.
#[derive(Debug)]
pub(super) enum Piece {
    Launch { function: usize, blocks: u32, words: Vec<u64> },
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: ChosenCall, addresses: Vec<u64> },
}

/// Where a routine runs.
pub(super) struct Site<'a> {
    pub loaded: &'a Loaded,
    choices: &'a Choices,
    pub thunk: &'a Thunk,
    buffers: &'a ExecutionBuffers,
    pub stream: &'a CudaStream,
    /// The routine's own memory, which must live until the work is sent.
    pub scratch: Vec<CudaMemory>,
    scratch_addresses: Vec<u64>,
    /// The halves of the counter of random numbers that the routine draws from.
    counter: [u64; 2],
}

impl Piece {
    /// Sends it to a stream.
    pub fn send(&self, loaded: &Loaded, stream: &CudaStream) -> Result<()> {
        match self {
            Piece::Launch { function, blocks, words } => stream.launch(loaded.module.call(*function, *blocks, words)?),
            Piece::Copy { from, to, bytes } => stream.copy_apart(*from, *to, *bytes),
            Piece::Library { call, addresses } => loaded.libraries.run(call, addresses, stream),
        }
    }
}

impl<'a> Site<'a> {
    /// With memory for the routine.
    pub fn new(
        loaded: &'a Loaded,
        choices: &'a Choices,
        routine: &Routine,
        thunk: &'a Thunk,
        buffers: &'a ExecutionBuffers,
        (stream, random): (&'a CudaStream, &RandomState),
    ) -> Result<Site<'a>> {
        let memories = routine.scratch.iter().map(|&bytes| scratch(stream, bytes)).collect::<Result<Vec<_>>>()?;
        let addresses =
            memories.iter().zip(&routine.scratch).map(|(memory, &bytes)| memory.address_on(stream, 0, bytes));
        let scratch_addresses = addresses.collect::<Result<_>>()?;
        let counter = drawn(routine, random);
        Ok(Site { loaded, choices, thunk, buffers, stream, scratch: memories, scratch_addresses, counter })
    }

    /// Adds the pieces of steps.
    pub fn gather(&self, steps: &[Step], pieces: &mut Vec<Piece>) -> Result<()> {
        for step in steps {
            match step {
                Step::Library(library) => match self.way(library)? {
                    Way::Library(algorithm) => self.call(library, algorithm, &|word| self.word(word), pieces)?,
                    Way::Own => self.plain(&library.otherwise, &|word| self.word(word), pieces)?,
                },
                Step::Copy { .. } | Step::Launch { .. } => {
                    self.plain(std::slice::from_ref(step), &|word| self.word(word), pieces)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a library's call with what belongs to it.
    pub fn call(
        &self,
        library: &LibraryStep,
        algorithm: u32,
        word: &dyn Fn(&Word) -> Result<u64>,
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        self.plain(&library.before, word, pieces)?;
        let addresses = library.arrays.iter().map(word).collect::<Result<Vec<u64>>>()?;
        let call = ChosenCall { call: library.call.clone(), algorithm: algorithm as usize };
        pieces.push(Piece::Library { call, addresses });
        self.plain(&library.then, word, pieces)
    }

    /// Adds launches and copies.
    pub fn plain(&self, steps: &[Step], word: &dyn Fn(&Word) -> Result<u64>, pieces: &mut Vec<Piece>) -> Result<()> {
        for step in steps {
            match step {
                Step::Copy { from, to } => pieces.push(Piece::Copy {
                    from: word(&Word::Array(*from))?,
                    to: word(&Word::Array(*to))?,
                    bytes: array(self.thunk, *to)?.slice.size,
                }),
                Step::Launch { function, blocks, arguments } => {
                    let words = arguments.iter().map(word).collect::<Result<_>>()?;
                    pieces.push(Piece::Launch { function: *function, blocks: *blocks, words });
                }
                Step::Library(_) => return Err(Error::internal("a library's call inside of another one")),
            }
        }
        Ok(())
    }

    /// The value of a parameter.
    pub fn word(&self, word: &Word) -> Result<u64> {
        match *word {
            Word::Number(number) => Ok(number as u64),
            Word::Scratch(number) => self.scratch_addresses.get(number).copied().ok_or_else(no_scratch),
            Word::Counter(half) => self.counter.get(half).copied().ok_or_else(no_scratch),
            Word::Array(number) => array_address(self.thunk, number, self.buffers, self.stream),
        }
    }

    /// How a library's call is done, which is found out once: by our kernels if the library is not there or does not
    /// take it; else as was found to be fastest, or as the library likes.
    fn way(&self, library: &LibraryStep) -> Result<Way> {
        let known = || self.loaded.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&library.call).copied();
        let way = match found {
            Some(way) => way,
            None => {
                let way = self.find_way(library)?;
                // Nothing is measured while notes are taken, so that there may be a better one.
                if !self.stream.takes_notes() {
                    known().insert(library.call.clone(), way);
                }
                way
            }
        };
        // Another call of the same kind may have had a way that this one lacks.
        Ok(if way == Way::Own && library.otherwise.is_empty() { Way::Library(0) } else { way })
    }

    fn find_way(&self, library: &LibraryStep) -> Result<Way> {
        let addresses = library.arrays.iter().map(|word| self.word(word)).collect::<Result<Vec<u64>>>()?;
        // The first question to a library that is not installed says so.
        let algorithms = match self.loaded.libraries.algorithms(&library.call, &addresses) {
            Ok(algorithms) => algorithms,
            Err(Error::FailedPrecondition(_) | Error::Unimplemented(_)) if !library.otherwise.is_empty() => {
                return Ok(Way::Own);
            }
            Err(error) => return Err(error),
        };
        let has_choice = algorithms > 1 || !library.otherwise.is_empty();
        let way = if has_choice && self.choices.are_made() { self.decided(library, algorithms)? } else { None };
        Ok(way.unwrap_or(Way::Library(0)))
    }

    /// The way that is known to be the fastest, or found to be now; none where nothing is known and nothing can be
    /// measured.
    fn decided(&self, library: &LibraryStep, algorithms: usize) -> Result<Option<Way>> {
        let call: &LibraryCall = &library.call;
        let place = Place { gpu: self.stream.queue().context().info().name.clone(), driver: Driver::get()?.version };
        let version = self.loaded.libraries.version(call)?;
        if self.stream.takes_notes() {
            // Nothing can be measured here.
            return Ok(self.choices.decide(&place, &version, call, None));
        }
        let mut ways = Ways::new(self, library, algorithms);
        Ok(self.choices.decide(&place, &version, call, Some(&mut ways)))
    }
}

fn array_address(thunk: &Thunk, number: usize, buffers: &ExecutionBuffers, stream: &CudaStream) -> Result<u64> {
    let Slice { allocation, offset, size } = array(thunk, number)?.slice;
    address_on(buffers.memory(allocation)?, stream, offset, size)
}

/// A copy from one array of a thunk to another.
pub(super) fn copy(
    thunk: &Thunk,
    [from, to]: [usize; 2],
    buffers: &ExecutionBuffers,
    stream: &CudaStream,
) -> Result<Piece> {
    let bytes = array(thunk, to)?.slice.size;
    let [from, to] = [from, to].map(|number| array_address(thunk, number, buffers, stream));
    Ok(Piece::Copy { from: from?, to: to?, bytes })
}
