//! Handlers of targets that frameworks emit: decompositions of matrices, by textbook methods in double precision.

mod eigen;
mod geev;
mod hessenberg;
mod householder;
mod lapack;
mod lu;
mod matrix;
mod pivoted;
mod schur;
mod singular;

use super::CustomCallHandler;

/// The handler that is built in for a target.
pub(super) fn find(target: &str) -> Option<&'static dyn CustomCallHandler> {
    let handler: &'static dyn CustomCallHandler = match target {
        "Eigh" => &eigen::eigh,
        "Qr" => &householder::qr,
        "ProductOfElementaryHouseholderReflectors" => &householder::product,
        _ => return lapack::find(target),
    };
    Some(handler)
}
