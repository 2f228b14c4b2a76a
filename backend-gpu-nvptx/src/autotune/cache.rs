//! Autotune cache on disk: the fastest candidate of each library call, and of each matmul kernel of our own.
//!
//! The cache has one JSON file for each GPU model and driver version. A file is written under a temporary name and
//! renamed, so readers, including other processes, see a complete file or none. Before each write the file is read
//! again, which keeps the entries of other processes. Only an entry that another process writes at the same moment can
//! get lost; it is measured again later. A file that cannot be parsed counts as absent.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use xla_service::CompileOptions;

use crate::autotune::{Candidate, Trial, Work, fastest};

/// Version of the file format and of the meaning of its entries.
const VERSION: u32 = 4;
/// Maximum number of entries of a file; the oldest are dropped first.
const MOST_ENTRIES: usize = 4096;

/// Device on which an entry was measured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeviceKey {
    /// GPU model.
    pub gpu: String,
    /// Newest CUDA version that the driver supports, as `cuDriverGetVersion` returns it.
    pub driver: i32,
}

/// Cache entry: the fastest candidate for some work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AutotuneEntry {
    /// Name and version of the library; empty if no library is involved.
    library: String,
    work: Work,
    candidate: Candidate,
}

impl AutotuneEntry {
    /// Whether both entries are for the same work.
    fn is_of(&self, other: &AutotuneEntry) -> bool {
        self.library == other.library && self.work == other.work
    }
}

/// Content of a cache file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AutotuneFile {
    version: u32,
    gpu: String,
    driver: i32,
    entries: Vec<AutotuneEntry>,
}

/// Autotune cache of a process.
#[derive(Debug)]
pub(crate) struct AutotuneCache {
    folder: Option<PathBuf>,
    /// Whether candidates for unknown work are measured.
    measures: bool,
    known: Mutex<HashMap<DeviceKey, Vec<AutotuneEntry>>>,
    /// Held during a measurement, so that no other measurement runs at the same time.
    measuring: Mutex<()>,
}

impl AutotuneCache {
    /// Creates a cache that reads its files on first use.
    pub fn new(options: &CompileOptions) -> AutotuneCache {
        AutotuneCache {
            folder: options.cache_dir.as_ref().map(|folder| folder.join("autotune")),
            measures: options.autotune,
            known: Mutex::default(),
            measuring: Mutex::default(),
        }
    }

    /// Returns the candidate for `work`, for which `library` (name and version) and `ways` alternatives of our own
    /// kernels compete. Returns a known candidate; otherwise measures `trial`, stores the fastest candidate and returns
    /// it. `None` if the work is unknown and cannot be measured now.
    pub fn decide(
        &self,
        device: &DeviceKey,
        library: &str,
        (work, ways): (&Work, usize),
        trial: Option<&mut dyn Trial>,
    ) -> Option<Candidate> {
        if let Some(candidate) = self.known_candidate(device, library, (work, ways)) {
            return Some(candidate);
        }
        let trial = trial.filter(|_| self.measures)?;
        let _alone = self.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have measured it in the meantime.
        if let Some(candidate) = self.known_candidate(device, library, (work, ways)) {
            return Some(candidate);
        }
        let candidate = fastest(trial)?;
        self.remember(device, AutotuneEntry { library: library.to_string(), work: work.clone(), candidate });
        Some(candidate)
    }

    /// Whether results are stored on disk or may be measured.
    pub fn is_enabled(&self) -> bool {
        self.measures || self.folder.is_some()
    }

    /// Returns the known candidate if this program has it: a file may hold any number.
    fn known_candidate(&self, device: &DeviceKey, library: &str, (work, ways): (&Work, usize)) -> Option<Candidate> {
        let mut known = self.known();
        let entries = known.entry(device.clone()).or_insert_with(|| self.read(device));
        let is_there = |candidate: &Candidate| match *candidate {
            Candidate::Library(_) => work.call.is_some(),
            Candidate::Own(number) => (number as usize) < ways,
        };
        let candidate_of = |is_it: &dyn Fn(&Work) -> bool| {
            let found = entries.iter().filter(|entry| entry.library == library && is_it(&entry.work));
            found.map(|entry| entry.candidate).find(is_there)
        };
        candidate_of(&|other| other == work).or_else(|| {
            // A program without alternatives lacks only these, so a measurement of the same call with alternatives
            // applies.
            let is_usual = work.own.is_none() && work.call.is_some();
            is_usual.then(|| candidate_of(&|other| other.call == work.call)).flatten()
        })
    }

    fn remember(&self, device: &DeviceKey, entry: AutotuneEntry) {
        let mut known = self.known();
        // The file may have new entries of other processes.
        let mut entries = self.read(device);
        for ours in known.remove(device).unwrap_or_default() {
            if !entries.iter().any(|other| other.is_of(&ours)) {
                entries.push(ours);
            }
        }
        // An older entry for the same work names a candidate that does not exist. Replace it.
        entries.retain(|other| !other.is_of(&entry));
        entries.push(entry);
        let superfluous = entries.len().saturating_sub(MOST_ENTRIES);
        entries.drain(..superfluous);
        if let Err(error) = self.write(device, &entries) {
            tracing::debug!(%error, "a measured candidate was not written to the autotune cache");
        }
        known.insert(device.clone(), entries);
    }

    fn path(&self, device: &DeviceKey) -> Option<PathBuf> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = device.gpu.chars().map(plain).take(100).collect();
        Some(self.folder.as_ref()?.join(format!("{name}-{}.json", device.driver)))
    }

    /// Reads the entries on disk; none if the file is absent or cannot be parsed.
    fn read(&self, device: &DeviceKey) -> Vec<AutotuneEntry> {
        let Some(path) = self.path(device) else { return Vec::new() };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "the autotune cache cannot be read");
                }
                return Vec::new();
            }
        };
        match serde_json::from_slice::<AutotuneFile>(&bytes) {
            Ok(file) if file.version == VERSION && file.gpu == device.gpu && file.driver == device.driver => {
                file.entries
            }
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the autotune cache is corrupt; its candidates are measured again");
                Vec::new()
            }
        }
    }

    fn write(&self, device: &DeviceKey, entries: &[AutotuneEntry]) -> std::io::Result<()> {
        let (Some(path), Some(folder)) = (self.path(device), &self.folder) else { return Ok(()) };
        let file = AutotuneFile {
            version: VERSION,
            gpu: device.gpu.clone(),
            driver: device.driver,
            entries: entries.to_vec(),
        };
        let bytes = serde_json::to_vec_pretty(&file)?;
        std::fs::create_dir_all(folder)?;
        if let Err(error) = xla_service::delete_abandoned_files(folder) {
            tracing::debug!(%error, "a temporary file of the autotune cache cannot be deleted");
        }
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        written.write_all(&bytes)?;
        written.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<DeviceKey, Vec<AutotuneEntry>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use xla_hlo::ElementType::F32;

    use super::*;
    use crate::autotune::tests::Fake;
    use crate::program::library_call::LibraryCall;
    use crate::program::library_call::matmul::Matmul;

    fn cache(folder: &Path, autotune: bool) -> AutotuneCache {
        AutotuneCache::new(&CompileOptions {
            cache_dir: Some(folder.to_path_buf()),
            autotune,
            ..CompileOptions::default()
        })
    }

    fn device() -> DeviceKey {
        DeviceKey { gpu: "NVIDIA H200/1".to_string(), driver: 12_080 }
    }

    /// Returns work with a library call and `ways` alternatives of our own kernels.
    fn work(m: usize, ways: usize) -> Work {
        let call = LibraryCall::Matmul(Matmul::dense(1, [m, 64, 64], [F32; 3]));
        Work { call: Some(call), own: (ways > 1).then(|| format!("{ways} ways")) }
    }

    fn trial(library: u64, own: u64) -> Fake {
        let candidates = vec![(Candidate::Library(0), Some(library)), (Candidate::Own(0), Some(own))];
        Fake { candidates, ..Fake::default() }
    }

    #[test]
    fn what_was_measured_once_is_known_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let first = cache(folder.path(), true);
        let mut own = trial(100, 50);
        assert_eq!(first.decide(&device(), "cuBLASLt 1", (&work(64, 1), 1), Some(&mut own)), Some(Candidate::Own(0)));
        assert!(own.runs > 0);
        // Another process whose trial would favour the library, with and without permission to measure.
        for autotune in [true, false] {
            let mut library = trial(50, 100);
            let second = cache(folder.path(), autotune);
            assert_eq!(
                second.decide(&device(), "cuBLASLt 1", (&work(64, 1), 1), Some(&mut library)),
                Some(Candidate::Own(0))
            );
            assert_eq!(library.runs, 0, "it is not measured again");
        }
    }

    #[test]
    fn every_part_of_what_it_is_for_counts() {
        let folder = tempfile::tempdir().unwrap();
        cache(folder.path(), true).decide(&device(), "cuBLASLt 1", (&work(64, 1), 1), Some(&mut trial(100, 50)));
        let known = |device: &DeviceKey, library: &str, m: usize| {
            cache(folder.path(), false).decide(device, library, (&work(m, 1), 1), None)
        };
        assert_eq!(known(&device(), "cuBLASLt 1", 64), Some(Candidate::Own(0)));
        assert_eq!(known(&device(), "cuBLASLt 2", 64), None);
        assert_eq!(known(&device(), "cuBLASLt 1", 65), None);
        assert_eq!(known(&DeviceKey { driver: 12_090, ..device() }, "cuBLASLt 1", 64), None);
        // A different GPU name that maps to the same file name.
        assert_eq!(known(&DeviceKey { gpu: "NVIDIA H200_1".to_string(), ..device() }, "cuBLASLt 1", 64), None);
    }

    #[test]
    fn nothing_is_measured_or_kept_unless_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut fake = trial(100, 50);
        assert_eq!(cache(folder.path(), false).decide(&device(), "l", (&work(64, 1), 1), Some(&mut fake)), None);
        assert_eq!(fake.runs, 0);
        let without_disk = AutotuneCache::new(&CompileOptions { autotune: true, ..CompileOptions::default() });
        assert_eq!(without_disk.decide(&device(), "l", (&work(64, 1), 1), Some(&mut fake)), Some(Candidate::Own(0)));
        assert_eq!(without_disk.decide(&device(), "l", (&work(64, 1), 1), None), Some(Candidate::Own(0)));
        assert!(!AutotuneCache::new(&CompileOptions::default()).is_enabled());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn garbled_files_count_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let decide =
            |measures| cache(folder.path(), measures).decide(&device(), "l", (&work(64, 1), 1), Some(&mut trial(9, 5)));
        decide(true);
        let path = cache(folder.path(), false).path(&device()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for garbled in [&whole[..whole.len() / 2], b"", b"{}", b"\xff\xfe"] {
            std::fs::write(&path, garbled).unwrap();
            assert_eq!(decide(false), None);
        }
        let other = String::from_utf8(whole.clone()).unwrap().replace("\"version\": 4", "\"version\": 1");
        std::fs::write(&path, other).unwrap();
        assert_eq!(decide(false), None);
        assert_eq!(decide(true), Some(Candidate::Own(0)), "measured again");
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_number_that_is_no_way_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (work, own) = (work(64, 3), |number| (Candidate::Own(number), Some(10 + u64::from(number))));
        let decide = |measures| {
            let mut fake = Fake { candidates: (0..3).map(own).collect(), ..Fake::default() };
            cache(folder.path(), measures).decide(&device(), "l", (&work, 3), Some(&mut fake))
        };
        let path = cache(folder.path(), false).path(&device()).unwrap();
        assert_eq!(decide(true), Some(Candidate::Own(0)));
        let whole = std::fs::read_to_string(&path).unwrap();
        for number in [3, u32::MAX] {
            let other = whole.replace("\"Own\": 0", &format!("\"Own\": {number}"));
            assert_ne!(other, whole);
            std::fs::write(&path, &other).unwrap();
            assert_eq!(decide(false), None);
            assert_eq!(decide(true), Some(Candidate::Own(0)), "measured again");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "and kept instead");
        }
        std::fs::write(&path, whole.replace("\"Own\": 0", "\"Own\": 2")).unwrap();
        assert_eq!(decide(true), Some(Candidate::Own(2)));
    }

    #[test]
    fn without_alternatives_what_was_measured_with_them_counts_as_far_as_it_is_there() {
        let known = |candidate| {
            let folder = tempfile::tempdir().unwrap();
            let entry = AutotuneEntry { library: "l".to_string(), work: work(64, 3), candidate };
            cache(folder.path(), false).remember(&device(), entry);
            let decide = |ways| cache(folder.path(), false).decide(&device(), "l", (&work(64, ways), ways), None);
            [3, 1, 2].map(decide)
        };
        use Candidate::{Library, Own};
        assert_eq!(known(Library(2)), [Some(Library(2)), Some(Library(2)), None]);
        assert_eq!(known(Own(0)), [Some(Own(0)), Some(Own(0)), None]);
        assert_eq!(known(Own(1)), [Some(Own(1)), None, None]);
        // Without a library call, a candidate that names a library algorithm is invalid.
        let folder = tempfile::tempdir().unwrap();
        let own = Work { call: None, own: Some("2 ways".to_string()) };
        let entry = AutotuneEntry { library: String::new(), work: own.clone(), candidate: Library(1) };
        cache(folder.path(), false).remember(&device(), entry);
        assert_eq!(cache(folder.path(), false).decide(&device(), "", (&own, 2), None), None);
    }

    #[test]
    fn processes_share_a_file_and_it_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let processes = [(); 2].map(|()| cache(folder.path(), true));
        for m in 1..20 {
            let process = &processes[m % 2];
            process.decide(&device(), "l", (&work(m, 1), 1), Some(&mut trial(9, 5)));
        }
        let other = cache(folder.path(), false);
        assert!((1..20).all(|m| other.decide(&device(), "l", (&work(m, 1), 1), None).is_some()));
        let many = (0..MOST_ENTRIES).map(|m| AutotuneEntry {
            library: "l".to_string(),
            work: work(m + 100, 1),
            candidate: Candidate::Own(0),
        });
        other.write(&device(), &many.collect::<Vec<_>>()).unwrap();
        processes[0].remember(
            &device(),
            AutotuneEntry { library: "l".to_string(), work: work(7, 1), candidate: Candidate::Own(0) },
        );
        assert_eq!(cache(folder.path(), false).read(&device()).len(), MOST_ENTRIES);
    }

    #[test]
    fn threads_decide_alike() {
        let folder = tempfile::tempdir().unwrap();
        let shared = cache(folder.path(), true);
        let candidates: Vec<Option<Candidate>> = std::thread::scope(|scope| {
            let decide =
                |i: u64| shared.decide(&device(), "l", (&work(64, 1), 1), Some(&mut trial(50 + 50 * (i % 2), 75)));
            let threads: Vec<_> = (0..4).map(|i| scope.spawn(move || decide(i))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(
            candidates.iter().all(|candidate| candidate.is_some() && candidate == &candidates[0]),
            "{candidates:?}"
        );
    }
}
