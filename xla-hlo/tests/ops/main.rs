//! Tests of the operation families: text, shape rules, verifier rules and evaluation.

mod async_;
mod collective;
mod convolution;
mod custom;
mod dot;
mod dynamic;
mod indexing;
mod linalg;
mod movement;
mod normalization;
mod ragged_dot;
mod random;
mod reduction;
mod scan;
mod sorting;
mod testing;
mod token;
mod transform;
mod window;
