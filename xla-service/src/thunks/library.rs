//! Library calls of backends: the operation that the library does, and the entry of the backend's own table.

use std::fmt;

/// A library call of the backend; displayed as `library call: matmul f32 512x512x512`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LibraryRef {
    /// Index into the backend's table of calls, where its configuration is.
    pub index: u32,
    /// The operation.
    pub op: LibraryOp,
    /// Types and sizes, for people: `f32 512x512x512`.
    pub name: String,
}

macro_rules! library_ops {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// An operation of a library.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LibraryOp {
            $($(#[$doc])* $variant,)*
        }

        impl LibraryOp {
            /// All operations.
            pub const ALL: &[LibraryOp] = &[$(LibraryOp::$variant,)*];

            /// The name: `matmul`.
            pub fn name(self) -> &'static str {
                match self { $(LibraryOp::$variant => $name,)* }
            }

            /// The kind of a thunk that calls it: `library call: matmul`.
            pub fn label(self) -> &'static str {
                match self { $(LibraryOp::$variant => concat!("library call: ", $name),)* }
            }
        }
    };
}

library_ops! {
    /// Matrix multiplication, with the library's epilogue.
    Matmul "matmul";
    /// Convolution, or the gradient of one.
    Convolution "convolution";
    /// Fourier transform.
    Fft "fft";
    /// Cholesky decomposition.
    Cholesky "cholesky";
    /// Solution of triangular systems.
    TriangularSolve "triangular-solve";
    /// Sort.
    Sort "sort";
    /// Selection of the greatest or smallest elements.
    TopK "topk";
    /// Scatter.
    Scatter "scatter";
    /// Advance of the device's random state.
    RandomState "rng-get-and-update-state";
}

impl LibraryOp {
    /// The operation of that name.
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
