//! Tests of the C API as a caller in C uses it.

mod buffers;
mod callbacks;
mod client;
mod devices;
mod hostile;
mod objects;
mod profiler;
mod programs;
mod table;
mod values;
mod waiting;
