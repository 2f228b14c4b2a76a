//! C functions of NVIDIA's libraries: looked up at run time, and called by their own names.
//!
//! ```text
//! driver, cublaslt, cudnn, cufft, nccl   functions and status codes of each library
//!   library                              an open library: its path, its functions
//!     search                             names and folders of libraries
//! ```
//!
//! The types are cudarc's. Its functions are not used: it looks for the libraries of one CUDA version, and its statuses
//! are enumerations, so an unknown number from a newer library would be undefined behaviour. Here statuses are numbers.

pub(crate) mod cublaslt;
pub(crate) mod cudnn;
pub(crate) mod cufft;
pub(crate) mod driver;
pub(crate) mod library;
pub(crate) mod nccl;
pub(crate) mod search;
#[cfg(test)]
mod tests;

/// Result of a function that is not loaded: an error value.
pub(crate) trait Absent {
    /// Error value.
    const ABSENT: Self;
}

/// The version 0, which does not exist.
impl Absent for usize {
    const ABSENT: usize = 0;
}

/// A null pointer instead of a text.
impl Absent for *const std::ffi::c_char {
    const ABSENT: *const std::ffi::c_char = std::ptr::null();
}

/// Declares the statuses of a library: numbers, some of which have names.
macro_rules! statuses {
    ($(#[$doc:meta])* $name:ident { $($status:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        pub(crate) struct $name(pub u32);

        #[allow(dead_code, reason = "all have their names, whether they are asked for or not")]
        impl $name {
            $(pub const $status: $name = $name($number);)*
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match *self {
                    $($name::$status => f.write_str(stringify!($status)),)*
                    $name(other) => write!(f, "status {other}"),
                }
            }
        }

        impl super::Absent for $name {
            /// Number that no library returns.
            const ABSENT: $name = $name(u32::MAX);
        }
    };
}

/// Declares functions of a library: `bind` looks up all of them, and each is called by its name.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) -> $result,)*
        }

        static FUNCTIONS: std::sync::OnceLock<Functions> = std::sync::OnceLock::new();

        /// Looks up the functions, once per process. The error is the name of the first missing one.
        pub(crate) fn bind(library: &$crate::cuda::api::library::Library) -> Result<(), &'static str> {
            if FUNCTIONS.get().is_some() {
                return Ok(());
            }
            let functions = Functions {
                // SAFETY: the type matches the function of this name in NVIDIA's headers.
                $($name: unsafe { library.function(stringify!($name)) }.ok_or(stringify!($name))?,)*
            };
            FUNCTIONS.get_or_init(|| functions);
            Ok(())
        }

        $(
            /// # Safety
            ///
            /// The requirements are those that NVIDIA documents for the function.
            pub(crate) unsafe fn $name($($argument: $ty),*) -> $result {
                match FUNCTIONS.get() {
                    // SAFETY: the caller guarantees it; the library stays open until the process ends.
                    Some(functions) => unsafe { (functions.$name)($($argument),*) },
                    None => <$result as $crate::cuda::api::Absent>::ABSENT,
                }
            }
        )*
    };
}

pub(crate) use {functions, statuses};
