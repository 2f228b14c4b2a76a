//! Integration tests: each runs PTX text and checks memory or findings.

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
