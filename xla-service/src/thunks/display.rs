//! Thunk sequences as text: one line per thunk, nested ones indented.

use std::fmt;

use super::{ArraySlice, Thunk, ThunkId, ThunkKind, ThunkSequence};
use xla_passes::buffers::Slice;

impl fmt::Display for ThunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

impl fmt::Debug for ThunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Thunk {
    /// Describes the thunk for error messages: `thunk t3 (%fusion.2)`.
    pub fn place(&self) -> String {
        format!("thunk {} (%{})", self.id, self.name)
    }
}

impl fmt::Display for ThunkSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_sequence(self, f, 0)
    }
}

impl ThunkSequence {
    /// Returns the text without names: kernels and library calls are numbers in the backend's tables.
    ///
    /// A module that was serialised and parsed again may have other names, because the message format makes names
    /// unique within the module.
    pub(super) fn without_names(&self) -> String {
        let mut sequence = self.clone();
        remove_names(&mut sequence);
        sequence.to_string()
    }
}

fn remove_names(sequence: &mut ThunkSequence) {
    for thunk in &mut sequence.thunks {
        thunk.name.clear();
        match &mut thunk.kind {
            ThunkKind::Kernel(kernel) => kernel.name = kernel.index.to_string(),
            ThunkKind::LibraryCall(call) => call.name = call.index.to_string(),
            ThunkKind::While { condition, body, .. } => [condition, body].into_iter().for_each(remove_names),
            ThunkKind::Conditional { branches, .. } => branches.iter_mut().for_each(remove_names),
            ThunkKind::Copy | ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => {}
        }
    }
}

fn write_sequence(sequence: &ThunkSequence, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    let indent = 2 * depth;
    if !sequence.forks.is_empty() {
        let streams: Vec<u32> = sequence.forks.iter().map(|stream| stream.0).collect();
        writeln!(f, "{:indent$}begin streams={streams:?}", "")?;
    }
    sequence.thunks.iter().try_for_each(|thunk| write_thunk(thunk, f, depth))?;
    if !sequence.joins.is_empty() {
        writeln!(f, "{:indent$}end waits={:?}", "", sequence.joins)?;
    }
    Ok(())
}

/// Writes `t3: kernel add_fusion %fusion.2 (a0[0..64] f32[16]{0}) -> (a2[0..64] f32[16]{0})`.
fn write_thunk(thunk: &Thunk, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    write!(f, "{:indent$}{}: ", "", thunk.id, indent = 2 * depth)?;
    match &thunk.kind {
        ThunkKind::Kernel(kernel) => write!(f, "kernel {}", kernel.name)?,
        ThunkKind::LibraryCall(call) => write!(f, "{call}")?,
        ThunkKind::Copy => f.write_str("copy")?,
        ThunkKind::While { .. } => f.write_str("while")?,
        ThunkKind::Conditional { .. } => f.write_str("conditional")?,
        ThunkKind::Collective(None) => f.write_str("collective")?,
        ThunkKind::Collective(Some(name)) => write!(f, "collective by {name}")?,
        ThunkKind::CustomCall => f.write_str("custom-call")?,
        ThunkKind::HostFallback => f.write_str("host-fallback")?,
    }
    write!(f, " %{} ", thunk.name)?;
    write_arrays(&thunk.operands, f)?;
    f.write_str(" -> ")?;
    write_arrays(&thunk.results, f)?;
    if thunk.stream.0 != 0 {
        write!(f, " stream={}", thunk.stream.0)?;
    }
    if !thunk.waits.is_empty() {
        write!(f, " waits={:?}", thunk.waits)?;
    }
    write_nested(&thunk.kind, f, depth)
}

fn write_nested(kind: &ThunkKind, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    let indent = 2 * depth + 1;
    match kind {
        ThunkKind::While { condition, body, predicate, trip_count } => {
            let count = trip_count.map_or(String::new(), |n| format!(" trip-count={n}"));
            writeln!(f, "{count}\n{:indent$}condition, predicate in {}:", "", range(predicate))?;
            write_sequence(condition, f, depth + 1)?;
            writeln!(f, "{:indent$}body:", "")?;
            write_sequence(body, f, depth + 1)
        }
        ThunkKind::Conditional { selector, slice, branches } => {
            writeln!(f, " by {selector:?} in {}", range(slice))?;
            branches.iter().enumerate().try_for_each(|(i, branch)| {
                writeln!(f, "{:indent$}branch {i}:", "")?;
                write_sequence(branch, f, depth + 1)
            })
        }
        ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => writeln!(f),
        ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => writeln!(f),
    }
}

fn write_arrays(arrays: &[ArraySlice], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("(")?;
    for (i, array) in arrays.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        write!(f, "{comma}{} {}", range(&array.slice), array.shape)?;
    }
    f.write_str(")")
}

fn range(slice: &Slice) -> String {
    format!("{}[{}..{}]", slice.allocation, slice.offset, slice.offset.saturating_add(slice.size))
}
