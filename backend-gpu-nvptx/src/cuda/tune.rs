//! The ways to do a library's call, run for their time: on the program's own operands, with results that nobody sees.

use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::executor::{CudaMemory, scratch};
use super::gather::{Piece, Site};
use crate::autotune::{Trial, Way};
use crate::device::{LibraryStep, Word};

/// The ways of one call.
pub(super) struct Ways<'a> {
    site: &'a Site<'a>,
    library: &'a LibraryStep,
    ways: Vec<Way>,
    /// In the place of the thunk's results; made when the first way is run.
    results: Option<Vec<(CudaMemory, u64)>>,
}

impl<'a> Ways<'a> {
    /// The library's algorithms in its own order, then our kernels.
    pub fn new(site: &'a Site<'a>, library: &'a LibraryStep, algorithms: usize) -> Ways<'a> {
        let own = (!library.otherwise.is_empty()).then_some(Way::Own);
        let ways = (0..algorithms as u32).map(Way::Library).chain(own).collect();
        Ways { site, library, ways, results: None }
    }

    /// The addresses of memory that results are written to while ways are tried.
    fn results(&mut self) -> Result<Vec<u64>> {
        if self.results.is_none() {
            let (stream, results) = (self.site.stream, &self.site.thunk.results);
            let memory = |bytes| {
                let memory = scratch(stream, bytes)?;
                let address = memory.address_on(stream, 0, bytes)?;
                Ok((memory, address))
            };
            self.results = Some(results.iter().map(|result| memory(result.slice.size)).collect::<Result<_>>()?);
        }
        Ok(self.results.iter().flatten().map(|(_, address)| *address).collect())
    }

    /// The work of a way.
    fn pieces(&mut self, way: Way) -> Result<Vec<Piece>> {
        let results = self.results()?;
        let (site, operands) = (self.site, self.site.thunk.operands.len());
        let word = |word: &Word| match *word {
            Word::Array(number) if number >= operands => {
                let address = results.get(number - operands).copied();
                address.ok_or_else(|| Error::internal("a result that the thunk has not"))
            }
            Word::Array(_) | Word::Scratch(_) | Word::Counter(_) | Word::Number(_) => site.word(word),
        };
        let mut pieces = Vec::new();
        match way {
            Way::Library(algorithm) => site.call(self.library, algorithm, &word, &mut pieces)?,
            Way::Own => site.plain(&self.library.otherwise, &word, &mut pieces)?,
        }
        Ok(pieces)
    }
}

impl Trial for Ways<'_> {
    fn ways(&self) -> Vec<Way> {
        self.ways.clone()
    }

    fn time(&mut self, way: Way, runs: u32) -> Result<Duration> {
        let pieces = self.pieces(way)?;
        let stream = self.site.stream;
        stream.queue().synchronize()?;
        let begin = Instant::now();
        for _ in 0..runs {
            pieces.iter().try_for_each(|piece| piece.send(self.site.loaded, stream))?;
        }
        stream.queue().synchronize()?;
        Ok(begin.elapsed())
    }
}
