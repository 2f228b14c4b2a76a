//! Tests of the search for libraries, and of statuses without a name.

use std::fs;
use std::path::{Path, PathBuf};

use super::cublaslt::cublasStatus_t;
use super::library::Library;
use super::search::{Places, Wanted, package_folders, toolkit_folders};
use super::{cudnn, driver};
use crate::cuda::library::presence::{BLAS, DNN, FFT};

#[test]
fn statuses_are_numbers_that_may_have_names() {
    assert_eq!(format!("{:?}", driver::CUresult(700)), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(format!("{:?}", driver::CUresult(98_765)), "status 98765");
    assert_eq!(format!("{:?}", cublasStatus_t(15)), "CUBLAS_STATUS_NOT_SUPPORTED");
    assert_eq!(cudnn::cudnnStatus_t(3000), cudnn::cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED);
}

#[test]
fn folders_of_packages_are_those_of_loaded_files() {
    let maps = "\
7f00-7f01 r--p 00000000 fe:00 1   /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 r-xp 00000000 fe:00 2   /opt/venv/lib/python3.12/site-packages/jax_plugins/xlars/plugin.so
7f04-7f05 r-xp 00000000 fe:00 3   /opt/venv/lib/python3.12/site-packages/numpy/core.so
7f06-7f07 r-xp 00000000 fe:00 4   /usr/lib/python3/dist-packages/apt_pkg.so
7f08-7f09 rw-p 00000000 00:00 0   [heap]
";
    let expected = ["/opt/venv/lib/python3.12/site-packages", "/usr/lib/python3/dist-packages"].map(PathBuf::from);
    assert_eq!(package_folders(maps), expected);
}

#[test]
fn the_newest_toolkit_is_first() {
    let root = tempfile::tempdir().unwrap();
    for folder in
        ["cuda-12.8/lib64", "cuda-13.0/targets/x86_64-linux/lib", "cuda-9.2/lib64", "cudart/lib64", "cuda-x/lib64"]
    {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    fs::create_dir_all(root.path().join("cuda-13.0/targets/sbsa-linux/lib")).unwrap();
    let found = toolkit_folders(&[root.path(), Path::new("/nowhere")]);
    let names: Vec<_> = found.iter().map(|f| f.strip_prefix(root.path()).unwrap().display().to_string()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].starts_with("cuda-13.0/targets/"));
    assert_eq!(names[1..], ["cuda-12.8/lib64", "cuda-9.2/lib64"]);
}

/// Creates empty files, and returns those of a library, relative to their folder.
fn files(wanted: &Wanted, driver: i32, there: &[&str]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for file in there {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let places =
        Places { packages: vec![root.path().join("site-packages")], toolkits: vec![root.path().join("toolkit")] };
    let name = |file: PathBuf| file.strip_prefix(root.path()).unwrap().display().to_string();
    wanted.files(driver, &places).into_iter().map(name).collect()
}

#[test]
fn libraries_of_both_cuda_versions_are_found() {
    let there = [
        "site-packages/nvidia/cublas/lib/libcublasLt.so.12",
        "site-packages/nvidia/cu13/lib/libcublasLt.so.13",
        "toolkit/libcublasLt.so.12",
    ];
    let [old, new, toolkit] = there;
    assert_eq!(BLAS.wanted.names(13_000), ["libcublasLt.so.13", "libcublasLt.so.12"]);
    assert_eq!(files(&BLAS.wanted, 13_000, &there), [new, old, toolkit]);
    // A driver for CUDA 12 supports libraries of CUDA 12.
    assert_eq!(BLAS.wanted.names(12_080), ["libcublasLt.so.12", "libcublasLt.so.13"]);
    assert_eq!(files(&BLAS.wanted, 12_080, &there), [old, toolkit, new]);
    let there = ["site-packages/nvidia/cufft/lib/libcufft.so.11", "site-packages/nvidia/cu13/lib/libcufft.so.12"];
    assert_eq!(files(&FFT.wanted, 13_010, &there), [there[1], there[0]]);
    let there = ["site-packages/nvidia/cudnn/lib/libcudnn.so.9"];
    assert_eq!(files(&DNN.wanted, 13_010, &there), there);
}

#[test]
fn what_cannot_be_opened_is_told() {
    let wanted = Wanted {
        name: "cuNothing",
        files: &[(13_000, "libcunothing.so.13"), (12_000, "libcunothing.so.12")],
        folders: &["nvidia/cunothing/lib"],
        packages: "nvidia-cunothing-cu12",
    };
    let error = Library::open_in(&wanted, 12_080, &Places::default()).unwrap_err().to_string();
    assert!(
        error.contains("cuNothing is not installed: libcunothing.so.13 or libcunothing.so.12 was not found"),
        "{error}"
    );
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("libcunothing.so.12"), "no library").unwrap();
    let places = Places { toolkits: vec![root.path().to_path_buf()], ..Places::default() };
    let error = Library::open_in(&wanted, 12_080, &places).unwrap_err().to_string();
    assert!(error.contains("libcunothing.so.12 cannot be opened: "), "{error}");
}
