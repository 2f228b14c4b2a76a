//! Tests of the data structures: literals, floats as text, shapes in memory, users of instructions, shardings, and the
//! reserve of memory.

mod literal;
mod memory_order;
mod numbers;
mod out_of_memory;
mod sdy;
mod users;
