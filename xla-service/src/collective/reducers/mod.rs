//! Reducers of the service: for single operations, and for any computation through the evaluator.

mod computation;
mod native;
mod scalars;
mod simple;
mod table;

pub(super) use computation::ComputationReducer;
pub(super) use simple::SimpleReducer;
