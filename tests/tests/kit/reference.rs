//! The book's page of operations is complete and up to date.

use xla_hlo::Opcode;
use xla_tests::reference::page;

#[test]
fn every_family_and_operation_has_its_place() {
    let page = page();
    for opcode in Opcode::ALL {
        assert!(page.contains(&format!("### `{}`\n", opcode.name())), "{opcode}");
    }
}

#[test]
fn the_book_has_the_page_as_it_is() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/operations.md");
    let text = std::fs::read_to_string(book).unwrap();
    assert!(text == page(), "docs/src/operations.md is out of date: run `cargo xtask book`");
}
