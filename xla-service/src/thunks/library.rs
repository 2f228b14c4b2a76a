//! Library calls of backends: the operation, and an index into the backend's table of calls.

use std::fmt;

/// Library call of a backend; displayed as `library call: matmul f32 512x512x512`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LibraryRef {
    /// Index into the backend's table of calls, which holds its configuration.
    pub index: u32,
    /// Operation of the library.
    pub op: LibraryOp,
    /// Types and sizes for display: `f32 512x512x512`.
    pub name: String,
}

macro_rules! library_ops {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// Operation of a library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LibraryOp {
            $($(#[$doc])* $variant,)*
        }

        impl LibraryOp {
            /// All operations.
            pub const ALL: &[LibraryOp] = &[$(LibraryOp::$variant,)*];

            /// Returns the name: `matmul`.
            pub fn name(self) -> &'static str {
                match self { $(LibraryOp::$variant => $name,)* }
            }

            /// Returns the kind of a thunk that calls it: `library call: matmul`.
            pub fn label(self) -> &'static str {
                match self { $(LibraryOp::$variant => concat!("library call: ", $name),)* }
            }
        }
    };
}

library_ops! {
    /// Matrix multiplication, with a fused epilogue if the library supports it.
    Matmul "matmul";
    /// Convolution, or a gradient of one.
    Convolution "convolution";
    /// Fourier transform.
    Fft "fft";
    /// Cholesky decomposition.
    Cholesky "cholesky";
    /// Solution of triangular systems.
    TriangularSolve "triangular-solve";
    /// Sort.
    Sort "sort";
    /// Selection of the largest or smallest elements.
    TopK "topk";
    /// Scatter.
    Scatter "scatter";
    /// Update of the device's random state.
    RandomState "rng-get-and-update-state";
}

impl LibraryOp {
    /// Returns the operation of this name.
    pub fn from_name(name: &str) -> Option<LibraryOp> {
        LibraryOp::ALL.iter().copied().find(|op| op.name() == name)
    }
}

impl fmt::Display for LibraryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for LibraryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op.label(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_by_their_names() {
        for &op in LibraryOp::ALL {
            assert_eq!(LibraryOp::from_name(op.name()), Some(op));
        }
        let call = LibraryRef { index: 0, op: LibraryOp::Matmul, name: "f32 2x3x4".to_string() };
        assert_eq!(call.to_string(), "library call: matmul f32 2x3x4");
    }
}
