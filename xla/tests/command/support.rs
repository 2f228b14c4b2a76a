//! Runs the command in a temporary folder, with given files.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Module that computes (x + y, x * 2) of two arrays.
pub const MODULE: &str = "\
HloModule sums, entry_computation_layout={(f32[2,3]{1,0}, f32[2,3]{1,0})->(f32[2,3]{1,0}, f32[2,3]{1,0})}

ENTRY %main (x: f32[2,3], y: f32[2,3]) -> (f32[2,3], f32[2,3]) {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[2,3]{1,0} parameter(1)
  %sum = f32[2,3]{1,0} add(%x, %y)
  %double = f32[2,3]{1,0} add(%x, %x)
  ROOT %both = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(%sum, %double)
}
";

/// Temporary folder with `module.hlo` in it.
pub struct Folder(TempDir);

/// Outcome of a run of the command.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("module.hlo", MODULE);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Writes an archive of `.npy` files, each a header and data.
    pub fn archive(&self, name: &str, arrays: &[(&str, Vec<u8>)]) {
        let mut zip = ZipWriter::new(File::create(self.path(name)).unwrap());
        for (array, content) in arrays {
            zip.start_file(format!("{array}.npy"), SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
    }

    /// Runs the command with arguments separated by spaces.
    pub fn xla(&self, words: &str) -> Done {
        self.xla_with(words, "")
    }

    /// Runs the command with text on its standard input.
    pub fn xla_with(&self, words: &str, input: &str) -> Done {
        self.xla_args(&words.split_whitespace().collect::<Vec<_>>(), input)
    }

    /// Runs the command with arguments that may contain spaces.
    pub fn xla_args(&self, args: &[&str], input: &str) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xla"));
        command.args(args).current_dir(self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the command, which must fail with an exit code and exactly one error on standard error; returns that.
    pub fn fails(&self, code: i32, words: &str) -> String {
        let done = self.xla(words);
        assert_eq!(done.code, code, "{words}: {done:?}");
        assert!(done.out.is_empty(), "{words}: {done:?}");
        assert_eq!(done.err.matches("error: ").count(), 1, "{words}: {done:?}");
        done.err.strip_prefix("error: ").unwrap().trim_end().to_string()
    }
}

/// Returns an `.npy` file of 32-bit floats.
pub fn floats(dims: &[usize], values: &[f32]) -> Vec<u8> {
    array("<f4", dims, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

/// Returns an `.npy` file.
pub fn array(descr: &str, dims: &[usize], data: &[u8]) -> Vec<u8> {
    let dims: String = dims.iter().map(|d| format!("{d}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}\n");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}
