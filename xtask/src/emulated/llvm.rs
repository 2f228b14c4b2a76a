//! LLVM for AArch64, from the distribution's packages, in a folder of its own: nothing is installed, and none of the
//! host's packages changes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::packages;
use crate::shell::{has, output, program, run as run_program};

/// Files of another machine, under a folder in the place of its root.
#[derive(Debug)]
pub struct Llvm {
    root: PathBuf,
}

/// Libraries that the build links by names that only packages for development have, and the files that they are.
const LINKED: &[(&str, &str)] = &[("libstdc++.so", "libstdc++.so.6"), ("libffi.so", "libffi.so.8")];

/// LLVM's folder in the packages.
const PREFIX: &str = "usr/lib/llvm-22";

/// Folders of shared libraries in the packages.
const LIBRARIES: [&str; 2] = ["usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu"];

impl Llvm {
    /// Finds LLVM in the folder, or fetches and unpacks it there.
    pub fn provide(folder: &Path) -> Result<Llvm> {
        let root = folder.join("root");
        // The build is done anew whenever the folder changes, so that nothing is touched in one that is complete.
        if !root.exists() {
            let partial = folder.join("partial");
            fetch(&partial)?;
            fs::rename(&partial, &root)?;
        }
        Ok(Llvm { root })
    }

    /// The folder in the place of the machine's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// LLVM's prefix, whose `bin/llvm-config` runs on the host.
    pub fn prefix(&self) -> PathBuf {
        self.root.join(PREFIX)
    }

    /// Search path of the linker for dependencies of shared libraries.
    pub fn libraries(&self) -> String {
        LIBRARIES.map(|folder| self.root.join(folder).display().to_string()).join(":")
    }
}

/// Unpacks LLVM, its libraries and its headers, and creates the files that the build looks for.
fn fetch(root: &Path) -> Result<()> {
    ensure!(
        has("apt-get") && has("dpkg-deb"),
        "LLVM for AArch64 comes from packages of Debian (12 or later), with apt-get and dpkg-deb, which are not here"
    );
    for folder in [root.to_path_buf(), root.with_file_name("apt")] {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
    }
    let apt = Apt::new(root.with_file_name("apt"))?;
    apt.run(&["update"])?;
    apt.run(&["install", "--yes", "--download-only", "--no-install-recommends", "libllvm22"])?;
    // Without the dependencies of its programs; only headers and links are needed.
    apt.run(&["download", "llvm-22-dev"])?;
    for package in apt.packages()? {
        run_program(program("dpkg-deb", &[Path::new("--extract"), &package, root]))?;
    }
    fs::remove_dir_all(&apt.folder)?;
    let libraries = root.join(PREFIX).join("lib");
    remove_static_libraries(&libraries)?;
    for (name, file) in LINKED {
        let target = format!("../../aarch64-linux-gnu/{file}");
        run_program(program("ln", &[Path::new("-s"), Path::new(&target), &libraries.join(name)]))?;
    }
    write_llvm_config(&root.join(PREFIX).join("bin"))
}

/// Static libraries, which take most of the place; the shared one is linked.
fn remove_static_libraries(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "a") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A script that answers as the host's does, of the same release, with the folder that it is in.
fn write_llvm_config(folder: &Path) -> Result<()> {
    let host = packages::find_llvm().map_err(anyhow::Error::msg)?;
    let prefix = output(program(&host.config, &["--prefix"])).context("llvm-config does not know its prefix")?;
    let script = format!(
        "#!/bin/sh\nprefix=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit\nsaid=$({} \"$@\") || exit\n\
         printf '%s\\n' \"$said\" | sed \"s,{prefix},$prefix,g\"\n",
        host.config.display()
    );
    fs::create_dir_all(folder)?;
    let path = folder.join("llvm-config");
    fs::write(&path, script)?;
    run_program(program("chmod", &[Path::new("+x"), &path]))
}

/// APT with an empty state in a folder of its own, so that it needs no root rights and installs nothing here.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: PathBuf) -> Result<Apt> {
        fs::create_dir_all(folder.join("lists/partial"))?;
        fs::create_dir_all(folder.join("archives/partial"))?;
        fs::write(folder.join("status"), "")?;
        Ok(Apt { folder })
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let folder = self.folder.display();
        let options = [
            "APT::Architecture=arm64".to_owned(),
            "APT::Architectures=arm64".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            format!("Dir::State={folder}"),
            format!("Dir::State::status={folder}/status"),
            format!("Dir::Cache={folder}"),
        ];
        let words: Vec<&str> =
            options.iter().flat_map(|option| ["--option", option]).chain(args.iter().copied()).collect();
        let mut command = program("apt-get", &words);
        // `download` writes into the folder that it is called in.
        command.current_dir(self.folder.join("archives"));
        run_program(command).context("the packages are libllvm22 and llvm-22-dev for arm64")
    }

    /// The packages that were fetched.
    fn packages(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder.join("archives"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                found.push(path);
            }
        }
        Ok(found)
    }
}
