//! Integration tests: PTX text in, memory out.

mod suite {
    mod bench;
    mod boxes;
    mod collectives;
    mod computing;
    mod copies;
    mod loading;
    mod memory;
    mod mma;
    mod phases;
    mod products;
    mod sanitizer;
}
