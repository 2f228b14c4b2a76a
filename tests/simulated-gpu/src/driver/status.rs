//! Status codes of the driver, by their names in NVIDIA's header without the prefix.

/// Status of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Status(pub u32);

impl Status {
    /// Work cannot go on before work of another device; no program receives it.
    pub(crate) const BLOCKED: Status = Status(u32::MAX);
}

macro_rules! statuses {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        #[allow(missing_docs, reason = "the texts say what they are")]
        impl Status {
            $(pub const $name: Status = Status($number);)*

            /// Returns the name in the header.
            pub fn name(self) -> Option<&'static std::ffi::CStr> {
                const PREFIXED: &[(u32, &str)] = &[$(($number, concat!("CUDA_ERROR_", stringify!($name), "\0"))),*];
                let (_, name) = PREFIXED.iter().find(|(number, _)| *number == self.0)?;
                let name = if self.0 == 0 { "CUDA_SUCCESS\0" } else { name };
                std::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()
            }

            /// Returns the description of the status.
            pub fn text(self) -> Option<&'static std::ffi::CStr> {
                const TEXTS: &[(u32, &str)] = &[$(($number, concat!($text, "\0"))),*];
                let (_, text) = TEXTS.iter().find(|(number, _)| *number == self.0)?;
                std::ffi::CStr::from_bytes_with_nul(text.as_bytes()).ok()
            }
        }
    };
}

statuses! {
    SUCCESS = 0, "no error";
    INVALID_VALUE = 1, "an argument is wrong";
    OUT_OF_MEMORY = 2, "there is not enough memory";
    NOT_INITIALIZED = 3, "cuInit has not been called";
    NO_DEVICE = 100, "there is no device";
    INVALID_DEVICE = 101, "there is no such device";
    INVALID_IMAGE = 200, "the image of a module is garbled";
    INVALID_CONTEXT = 201, "no context is current";
    NO_BINARY_FOR_GPU = 209, "there is no code for this device";
    INVALID_PTX = 218, "the PTX cannot be compiled";
    UNSUPPORTED_PTX_VERSION = 222, "the PTX is of a version that is too new";
    INVALID_HANDLE = 400, "there is no such handle";
    NOT_FOUND = 500, "there is nothing of that name";
    NOT_READY = 600, "work is not done yet";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "a launch wants more than there is";
    LAUNCH_TIMEOUT = 702, "a kernel takes too long";
    MISALIGNED_ADDRESS = 716, "an address is not aligned";
    LAUNCH_FAILED = 719, "a kernel failed";
    NOT_SUPPORTED = 801, "this is not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "this cannot be captured";
    STREAM_CAPTURE_INVALIDATED = 901, "the capture has failed already";
    GRAPH_EXEC_UPDATE_FAILURE = 910, "the graph cannot be changed so";
}
