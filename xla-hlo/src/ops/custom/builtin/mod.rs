//! Built-in handlers of custom calls that frameworks emit: textbook decompositions in double precision.

mod eigen;
mod flags;
mod geev;
mod hessenberg;
mod householder;
mod lapack;
mod lu;
mod matrix;
mod pivoted;
mod schur;
mod singular;
mod sparse;
mod tridiagonal;

use super::CustomCallHandler;

/// Returns the built-in handler of a target.
pub(super) fn find(target: &str) -> Option<&'static dyn CustomCallHandler> {
    let handler: &'static dyn CustomCallHandler = match target {
        "Eigh" => &eigen::eigh,
        "Qr" => &householder::qr,
        "ProductOfElementaryHouseholderReflectors" => &householder::product,
        "tridiagonal_solve_perturbed_ffi" => &tridiagonal::solve_perturbed,
        "cpu_csr_sparse_dense_ffi" => &sparse::compressed_rows_times_dense,
        _ => return lapack::find(target),
    };
    Some(handler)
}
