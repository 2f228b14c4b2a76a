//! Ways that were found to be the fastest, kept on disk.
//!
//! A file for each kind of GPU and driver, in JSON. It is written under another name and renamed, so that readers, of
//! other processes too, see all of it or none. Before that it is read again, so that what others chose meanwhile stays,
//! but for a choice made in the very same moment, which is then made again one day. A file that cannot be understood
//! counts as absent.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use xla_service::CompileOptions;

use crate::autotune::{Trial, Way, fastest};
use crate::cuda::library::LibraryCall;

/// The version of the files' form.
const VERSION: u32 = 1;
/// Choices that a file has at most; those made first go.
const MOST_CHOICES: usize = 4096;

/// What a choice is for, besides the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The model of the GPU.
    pub gpu: String,
    /// The newest version of CUDA that its driver serves, as the driver writes it.
    pub driver: i32,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    /// The library and its version.
    library: String,
    call: LibraryCall,
    way: Way,
}

/// A file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Choosing {
    version: u32,
    gpu: String,
    driver: i32,
    choices: Vec<Choice>,
}

/// The choices of a process.
#[derive(Debug)]
pub(crate) struct Choices {
    folder: Option<PathBuf>,
    /// Whether what is not known is measured.
    measures: bool,
    known: Mutex<HashMap<Place, Vec<Choice>>>,
    /// Held while something is measured, so that nothing else is at the same time.
    measuring: Mutex<()>,
}

impl Choices {
    /// Nothing is read before it is needed.
    pub fn new(options: &CompileOptions) -> Choices {
        Choices {
            folder: options.cache_dir.as_ref().map(|folder| folder.join("choices")),
            measures: options.autotune,
            known: Mutex::default(),
            measuring: Mutex::default(),
        }
    }

    /// The way for a call of a library, its name and version: the one that is known, else the fastest of a trial, which
    /// is then known. `None` if it is not known and cannot be measured now.
    pub fn decide(
        &self,
        place: &Place,
        library: &str,
        call: &LibraryCall,
        trial: Option<&mut dyn Trial>,
    ) -> Option<Way> {
        if let Some(way) = self.known_way(place, library, call) {
            return Some(way);
        }
        let trial = trial.filter(|_| self.measures)?;
        let _alone = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have measured it meanwhile.
        if let Some(way) = self.known_way(place, library, call) {
            return Some(way);
        }
        let way = fastest(trial)?;
        self.remember(place, Choice { library: library.to_string(), call: call.clone(), way });
        Some(way)
    }

    /// Whether asking may be worth it: something is kept, or may be measured.
    pub fn are_made(&self) -> bool {
        self.measures || self.folder.is_some()
    }

    fn known_way(&self, place: &Place, library: &str, call: &LibraryCall) -> Option<Way> {
        let mut known = self.known();
        let choices = known.entry(place.clone()).or_insert_with(|| self.read(place));
        choices.iter().find(|choice| choice.library == library && choice.call == *call).map(|choice| choice.way)
    }

    fn remember(&self, place: &Place, choice: Choice) {
        let mut known = self.known();
        // What others have chosen meanwhile is on disk.
        let mut choices = self.read(place);
        let ours = known.remove(place).unwrap_or_default().into_iter().chain([choice]);
        for choice in ours {
            let is_same = |other: &Choice| other.library == choice.library && other.call == choice.call;
            if !choices.iter().any(is_same) {
                choices.push(choice);
            }
        }
        let superfluous = choices.len().saturating_sub(MOST_CHOICES);
        choices.drain(..superfluous);
        if let Err(error) = self.write(place, &choices) {
            tracing::debug!(%error, "a choice was not kept");
        }
        known.insert(place.clone(), choices);
    }

    fn path(&self, place: &Place) -> Option<PathBuf> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = place.gpu.chars().map(plain).take(100).collect();
        Some(self.folder.as_ref()?.join(format!("{name}-{}.json", place.driver)))
    }

    /// What is on disk; nothing if that is not there or not to be understood.
    fn read(&self, place: &Place) -> Vec<Choice> {
        let Some(path) = self.path(place) else { return Vec::new() };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "choices cannot be read");
                }
                return Vec::new();
            }
        };
        match serde_json::from_slice::<Choosing>(&bytes) {
            Ok(file) if file.version == VERSION && file.gpu == place.gpu && file.driver == place.driver => file.choices,
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "choices are garbled, and made again");
                Vec::new()
            }
        }
    }

    fn write(&self, place: &Place, choices: &[Choice]) -> std::io::Result<()> {
        let (Some(path), Some(folder)) = (self.path(place), &self.folder) else { return Ok(()) };
        let file =
            Choosing { version: VERSION, gpu: place.gpu.clone(), driver: place.driver, choices: choices.to_vec() };
        let bytes = serde_json::to_vec_pretty(&file)?;
        std::fs::create_dir_all(folder)?;
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        written.write_all(&bytes)?;
        written.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Place, Vec<Choice>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use xla_hlo::ElementType::F32;

    use super::*;
    use crate::autotune::tests::Fake;
    use crate::cuda::library::matmul::Matmul;

    fn choices(folder: &Path, autotune: bool) -> Choices {
        Choices::new(&CompileOptions { cache_dir: Some(folder.to_path_buf()), autotune, ..CompileOptions::default() })
    }

    fn place() -> Place {
        Place { gpu: "NVIDIA H200/1".to_string(), driver: 12_080 }
    }

    fn call(m: usize) -> LibraryCall {
        LibraryCall::Matmul(Matmul::dense(1, [m, 64, 64], [F32; 3]))
    }

    fn trial(library: u64, own: u64) -> Fake {
        Fake { ways: vec![(Way::Library(0), Some(library)), (Way::Own, Some(own))], runs: 0 }
    }

    #[test]
    fn what_was_measured_once_is_known_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let first = choices(folder.path(), true);
        let mut own = trial(100, 50);
        assert_eq!(first.decide(&place(), "cuBLASLt 1", &call(64), Some(&mut own)), Some(Way::Own));
        assert!(own.runs > 0);
        // Another process, whose trial would say otherwise and which may measure or not.
        for autotune in [true, false] {
            let mut library = trial(50, 100);
            let second = choices(folder.path(), autotune);
            assert_eq!(second.decide(&place(), "cuBLASLt 1", &call(64), Some(&mut library)), Some(Way::Own));
            assert_eq!(library.runs, 0, "it is not measured again");
        }
    }

    #[test]
    fn every_part_of_what_it_is_for_counts() {
        let folder = tempfile::tempdir().unwrap();
        choices(folder.path(), true).decide(&place(), "cuBLASLt 1", &call(64), Some(&mut trial(100, 50)));
        let known = |place: &Place, library: &str, m: usize| {
            choices(folder.path(), false).decide(place, library, &call(m), None)
        };
        assert_eq!(known(&place(), "cuBLASLt 1", 64), Some(Way::Own));
        assert_eq!(known(&place(), "cuBLASLt 2", 64), None);
        assert_eq!(known(&place(), "cuBLASLt 1", 65), None);
        assert_eq!(known(&Place { driver: 12_090, ..place() }, "cuBLASLt 1", 64), None);
        // Names that make the same file name.
        assert_eq!(known(&Place { gpu: "NVIDIA H200_1".to_string(), ..place() }, "cuBLASLt 1", 64), None);
    }

    #[test]
    fn nothing_is_measured_or_kept_unless_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut fake = trial(100, 50);
        assert_eq!(choices(folder.path(), false).decide(&place(), "l", &call(64), Some(&mut fake)), None);
        assert_eq!(fake.runs, 0);
        let without_disk = Choices::new(&CompileOptions { autotune: true, ..CompileOptions::default() });
        assert_eq!(without_disk.decide(&place(), "l", &call(64), Some(&mut fake)), Some(Way::Own));
        assert_eq!(without_disk.decide(&place(), "l", &call(64), None), Some(Way::Own));
        assert!(!Choices::new(&CompileOptions::default()).are_made());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn garbled_files_count_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let decide =
            |measures| choices(folder.path(), measures).decide(&place(), "l", &call(64), Some(&mut trial(9, 5)));
        decide(true);
        let path = choices(folder.path(), false).path(&place()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for garbled in [&whole[..whole.len() / 2], b"", b"{}", b"\xff\xfe"] {
            std::fs::write(&path, garbled).unwrap();
            assert_eq!(decide(false), None);
        }
        let other = String::from_utf8(whole.clone()).unwrap().replace("\"version\": 1", "\"version\": 2");
        std::fs::write(&path, other).unwrap();
        assert_eq!(decide(false), None);
        assert_eq!(decide(true), Some(Way::Own), "measured again");
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn processes_share_a_file_and_it_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let processes = [(); 2].map(|()| choices(folder.path(), true));
        for m in 1..20 {
            let process = &processes[m % 2];
            process.decide(&place(), "l", &call(m), Some(&mut trial(9, 5)));
        }
        let other = choices(folder.path(), false);
        assert!((1..20).all(|m| other.decide(&place(), "l", &call(m), None).is_some()));
        let many = (0..MOST_CHOICES).map(|m| Choice { library: "l".to_string(), call: call(m + 100), way: Way::Own });
        other.write(&place(), &many.collect::<Vec<_>>()).unwrap();
        processes[0].remember(&place(), Choice { library: "l".to_string(), call: call(7), way: Way::Own });
        assert_eq!(choices(folder.path(), false).read(&place()).len(), MOST_CHOICES);
    }

    #[test]
    fn threads_decide_alike() {
        let folder = tempfile::tempdir().unwrap();
        let shared = choices(folder.path(), true);
        let ways: Vec<Option<Way>> = std::thread::scope(|scope| {
            let decide = |i: u64| shared.decide(&place(), "l", &call(64), Some(&mut trial(50 + 50 * (i % 2), 75)));
            let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || decide(i))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ways.iter().all(|way| way.is_some() && way == &ways[0]), "{ways:?}");
    }
}
