//! Examples of the book, as documentation tests.

macro_rules! pages {
    ($($name:ident = $file:literal;)*) => {
        $(#[doc = include_str!(concat!("../../docs/src/", $file))] struct $name;)*
    };
}

pages! {
    Library = "guide/library.md";
    NoLlvm = "backend/no-llvm.md";
    Conformance = "backend/conformance.md";
}
