//! Tests of the kit itself: planted bugs are found, generators and files are complete, tolerances are right.

mod agreement;
mod corpus;
mod coverage;
mod each_pass;
mod expected;
mod grid_programs;
mod idioms;
mod planted_bugs;
mod reference;
mod rounding;
mod worker;
