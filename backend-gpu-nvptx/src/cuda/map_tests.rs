//! Tests of kernels that use TMA, on a GPU that supports it. Without one, they print a message and pass.

use std::io::Write;

use xla_hlo::Error;
use xla_service::StreamExecutor;

use super::driver::Driver;
use super::graph::GraphSlot;
use super::graph::recording::Recording;
use super::library::Libraries;
use super::module::CudaModule;
use super::stream::CudaStream;
use super::tests::{bytes, executor, filled, image, launch};
use crate::executor::CudaExecutor;
use crate::program::image::ModuleImage;
use crate::program::kernel_map::tests::map;

/// Kernel that copies a box of 8 x 8 words, from a given column on, to shared memory by TMA, and stores it in the order
/// of shared memory.
const PTX: &str = include_str!("copy_box.ptx");

const ROWS: usize = 5;
const COLUMNS: usize = 12;

fn executor_with_bulk_copies() -> Option<CudaExecutor> {
    let executor = executor()?;
    let has_them = executor.context().info().capability >= (9, 0) && Driver::get().is_ok_and(Driver::has_maps);
    if !has_them {
        writeln!(std::io::stderr(), "skipped: no bulk copies").unwrap_or_default();
    }
    has_them.then_some(executor)
}

fn copy_box() -> ModuleImage {
    let mut image = image(PTX, "copy_box");
    let function = &mut image.functions[0];
    (function.threads, function.shared_bytes, function.parameters) = (64, 256 + 8, 3);
    function.maps = vec![map()];
    image
}

/// Returns the bytes of an array of consecutive numbers that starts with `first`.
fn array(first: u32) -> Vec<u8> {
    (first..first + (ROWS * COLUMNS) as u32).flat_map(u32::to_ne_bytes).collect()
}

/// Returns the words of the box from `column` on, in the order of shared memory. Words outside of the array are zero,
/// and the 16-byte chunks of rows 4 to 7 are swapped (32-byte swizzle).
fn box_words(first: u32, column: usize) -> Vec<u32> {
    let word = |number: usize| {
        let (row, chunk, rest) = (number / 8, number / 4 % 2, number % 4);
        let column = column + (chunk ^ (row / 4)) * 4 + rest;
        if row < ROWS && column < COLUMNS { first + (row * COLUMNS + column) as u32 } else { 0 }
    };
    (0..64).map(word).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])).collect()
}

#[test]
fn boxes_are_copied_by_launches_and_by_graphs_that_change() {
    let Some(executor) = executor_with_bulk_copies() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let module = CudaModule::load(executor.context(), &copy_box()).unwrap();
    let libraries = Libraries::new(executor.context());
    let slot = GraphSlot::default();
    for (first, column) in [(7, 0), (1000, 0), (1000, 8), (3, 4)] {
        let from = filled(&executor, &*stream, &array(first));
        let [sent, recorded] = [(); 2].map(|()| filled(&executor, &*stream, &[0xff; 256]));
        let at = |memory| cuda.address_of(memory, 0, 4).unwrap();
        launch(&module, 0, &[at(&from), at(&sent), column as u64], cuda).unwrap();
        let mut recording = Recording::default();
        recording.kernel(module.call(0, 1, &[at(&from), at(&recorded), column as u64]).unwrap(), &[]);
        slot.run(recording, None, &libraries, cuda).unwrap();
        for memory in [sent, recorded] {
            assert_eq!(words(&bytes(&*stream, &memory)), box_words(first, column), "{first} from column {column}");
        }
    }
    assert_eq!(slot.counts().launches, 4);
}

#[test]
fn an_array_that_is_not_aligned_is_told() {
    let Some(executor) = executor_with_bulk_copies() else { return };
    let module = CudaModule::load(executor.context(), &copy_box()).unwrap();
    let error = module.call(0, 1, &[0x1008, 0x2000, 0]).unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error}");
    assert!(error.message().starts_with("kernel copy_box: the array of parameter 0 is copied with TMA"), "{error}");
    assert!(error.message().contains("0x1008, which is not a multiple of 16"), "{error}");
    let call = |array| module.call(0, 1, &[array, 0x2000, 0]).unwrap();
    assert_eq!(call(0x1010), call(0x1010));
    assert_ne!(call(0x1010).maps, call(0x1020).maps);
}
