//! Caller of the C API that uses only offsets: structures are bytes, functions are pointers in slots.
#![expect(unsafe_code, reason = "calls functions of C")]

use std::ffi::c_void;
use std::sync::OnceLock;

use xla_service::{PlatformRegistry, interpreter};

use crate::callbacks;

/// Names of the functions in the order of their slots, with the sizes of their arguments.
const SLOTS: &str = include_str!("../data/slots.txt");
/// Bytes of the table before the first slot.
const FIRST_SLOT: usize = 40;

fn platforms() -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    registry.custom_calls().register(callbacks::TARGET, std::sync::Arc::new(callbacks::call));
    registry
}

/// Returns the address of the table.
pub fn table() -> usize {
    static TABLE: OnceLock<usize> = OnceLock::new();
    *TABLE.get_or_init(|| std::ptr::from_ref(xla_pjrt::api(platforms)).expose_provenance())
}

/// Reads a value from memory of the API.
pub fn read<T: Copy>(address: usize) -> T {
    // SAFETY: tests read only memory that the API provides.
    unsafe { std::ptr::with_exposed_provenance::<T>(address).read_unaligned() }
}

/// Reads bytes from memory of the API.
pub fn bytes(address: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| read(address + i)).collect()
}

/// Returns all functions: name and size of the arguments.
pub fn functions() -> impl Iterator<Item = (&'static str, usize)> {
    SLOTS.lines().map(|line| {
        let (name, size) = line.split_once(' ').expect("a name and a size");
        (name, size.parse().expect("a size"))
    })
}

/// Error of the API.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: i32,
    pub message: String,
}

/// Argument structure of the API.
pub struct Args {
    words: Vec<u64>,
    /// Texts and arrays that the structure points to.
    kept: Vec<Vec<u8>>,
}

impl Args {
    /// Creates a structure of a size, which is its first field.
    pub fn new(size: usize) -> Args {
        Args { words: std::iter::once(size as u64).chain([0; 31]).collect(), kept: Vec::new() }
    }

    /// Creates the arguments of a function.
    pub fn of(function: &str) -> Args {
        Args::new(functions().find(|(name, _)| *name == function).expect("a function of the API").1)
    }

    pub fn put(mut self, offset: usize, value: usize) -> Args {
        self.words[offset / 8] = value as u64;
        self
    }

    pub fn put_i32(mut self, offset: usize, value: i32) -> Args {
        let (word, shift) = (&mut self.words[offset / 8], offset % 8 * 8);
        *word = *word & !(0xffff_ffff << shift) | u64::from(value as u32) << shift;
        self
    }

    /// Sets a pointer to bytes, and their number in the next field.
    pub fn put_bytes(mut self, offset: usize, bytes: &[u8]) -> Args {
        self.kept.push(bytes.to_vec());
        let start = self.kept.last().expect("just pushed").as_ptr().expose_provenance();
        self.put(offset, start).put(offset + 8, bytes.len())
    }

    /// Sets a pointer to words, and their number in the next field.
    pub fn put_words(self, offset: usize, words: &[i64]) -> Args {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.put_bytes(offset, &bytes).put(offset + 8, words.len())
    }

    pub fn get(&self, offset: usize) -> usize {
        self.words[offset / 8] as usize
    }

    pub fn get_i32(&self, offset: usize) -> i32 {
        (self.words[offset / 8] >> (offset % 8 * 8)) as i32
    }

    pub fn get_flag(&self, offset: usize) -> bool {
        (self.words[offset / 8] >> (offset % 8 * 8)) & 0xff != 0
    }

    /// Returns bytes whose address is in one field, and whose number is in another.
    pub fn get_bytes(&self, start: usize, len: usize) -> Vec<u8> {
        bytes(self.get(start), self.get(len))
    }

    pub fn get_text(&self, offset: usize) -> String {
        String::from_utf8(self.get_bytes(offset, offset + 8)).expect("a text")
    }

    pub fn get_words(&self, start: usize, len: usize) -> Vec<i64> {
        (0..self.get(len)).map(|i| read(self.get(start) + 8 * i)).collect()
    }

    pub fn address(&mut self) -> usize {
        self.words.as_mut_ptr().expose_provenance()
    }

    /// Calls a function with this structure.
    pub fn call(mut self, function: &str) -> Result<Args, Failure> {
        let error = call_raw(slot(function), self.address());
        failure(error).map_or(Ok(self), Err)
    }
}

/// Returns the slot of a function.
pub fn slot(function: &str) -> usize {
    functions().position(|(name, _)| name == function).expect("a function of the API")
}

/// Calls the function of a slot with an arbitrary pointer; returns the error or null.
pub fn call_raw(slot: usize, args: usize) -> usize {
    call_at(table() + FIRST_SLOT + 8 * slot, args)
}

/// Calls the function whose pointer is at an address.
pub fn call_at(place: usize, args: usize) -> usize {
    let function: *const c_void = std::ptr::with_exposed_provenance(read::<usize>(place));
    assert!(!function.is_null());
    // SAFETY: by the API's contract there is a function of this type.
    let function: unsafe extern "C" fn(*mut c_void) -> *mut c_void = unsafe { std::mem::transmute(function) };
    // SAFETY: tests pass valid structures, or arguments that the API promises to reject.
    unsafe { function(std::ptr::with_exposed_provenance_mut(args)) }.expose_provenance()
}

/// Returns the address of the extension with a number.
pub fn extension(number: i32) -> usize {
    let extensions = std::iter::successors(Some(read::<usize>(table() + 8)), |&extension| Some(read(extension + 16)));
    let mut present = extensions.take_while(|&extension| extension != 0);
    present.find(|&extension| read::<i32>(extension + 8) == number).expect("an extension of that number")
}

/// Returns code and message of an error, and destroys it.
pub fn failure(error: usize) -> Option<Failure> {
    if error == 0 {
        return None;
    }
    let code = Args::of("Error_GetCode").put(16, error).call("Error_GetCode").expect("never fails").get_i32(24);
    let mut message = Args::of("Error_Message").put(16, error);
    let address = message.address();
    call_raw(slot("Error_Message"), address);
    let message = message.get_text(24);
    let mut destroy = Args::of("Error_Destroy").put(16, error);
    call_raw(slot("Error_Destroy"), destroy.address());
    Some(Failure { code, message })
}

/// Returns the address of a callback that adds 1 to the counter that its last argument points to.
pub fn counting_callback() -> usize {
    unsafe extern "C" fn count(first: *mut c_void, counter: *mut c_void) {
        // An event's callback owns the error that it receives.
        failure(first.expose_provenance());
        // SAFETY: tests pass the address of a counter that lives until the callback has been called.
        let counter = unsafe { &*counter.cast::<std::sync::atomic::AtomicUsize>() };
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    (count as *const c_void).expose_provenance()
}

/// Returns the address of a callback like [`counting_callback`], whose first argument is memory.
pub fn counting_release() -> usize {
    unsafe extern "C" fn count(_: *mut c_void, counter: *mut c_void) {
        // SAFETY: tests pass the address of a counter that lives until the callback has been called.
        let counter = unsafe { &*counter.cast::<std::sync::atomic::AtomicUsize>() };
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
    (count as *const c_void).expose_provenance()
}
