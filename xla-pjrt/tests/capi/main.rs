//! Tests of the C API as a caller in C uses it.

mod buffers;
mod callbacks;
mod client;
mod devices;
mod hostile;
mod objects;
mod processes;
mod profiler;
mod programs;
mod store;
mod table;
mod values;
mod waiting;
