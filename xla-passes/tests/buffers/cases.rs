//! Programs whose copies and buffers are known.
