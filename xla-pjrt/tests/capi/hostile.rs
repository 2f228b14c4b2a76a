//! Tests of invalid calls: every one returns an error, none terminates the process.

use std::fmt::Write as _;

use crate::client::{client, handles, of};
use crate::table::{Args, call_raw, failure, functions, read, slot, table};

/// Returns the outcome of a call as text.
fn outcome(error: usize) -> String {
    failure(error).map_or("fine".to_string(), |failure| format!("{} {}", failure.code, failure.message))
}

/// Functions that cannot return an error.
const SILENT: [&str; 2] = ["Error_Destroy", "Error_Message"];

#[test]
fn the_table_says_its_size_and_version() {
    assert_eq!(read::<usize>(table()), 1144);
    assert_eq!([read::<i32>(table() + 32), read::<i32>(table() + 36)], [0, 112]);
    assert_eq!(functions().count(), 138);
}

#[test]
fn extensions_are_a_list_of_known_numbers() {
    let mut extension: usize = read(table() + 8);
    let mut found = Vec::new();
    while extension != 0 {
        found.push((read::<i32>(extension + 8), read::<usize>(extension)));
        extension = read(extension + 16);
    }
    insta::assert_snapshot!(format!("{found:?}"));
}

#[test]
fn null_is_refused_everywhere() {
    let calls = functions().filter(|(name, _)| !SILENT.contains(name));
    for (name, _) in calls {
        assert_eq!(outcome(call_raw(slot(name), 0)), format!("3 PJRT_{name}_Args must not be null"));
    }
    for name in SILENT {
        call_raw(slot(name), 0);
    }
}

#[test]
fn structures_that_are_too_short_are_refused() {
    for (name, _) in functions().filter(|(name, _)| !SILENT.contains(name)) {
        let error = outcome(call_raw(slot(name), Args::new(8).address()));
        assert!(error.starts_with(&format!("3 Unexpected PJRT_{name}_Args size: expected ")), "{error}");
    }
}

#[test]
fn structures_of_zeros_are_answered() {
    let mut text = String::new();
    for (name, size) in functions().filter(|(name, _)| !SILENT.contains(name)) {
        writeln!(text, "{name}: {}", outcome(call_raw(slot(name), Args::new(size).address()))).expect("text");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn objects_of_another_kind_are_refused() {
    let client = client(1);
    for function in ["Device_GetDescription", "Buffer_Dimensions", "Executable_Name", "Event_IsReady", "Event_Destroy"]
    {
        let failure = of(function, client).err().expect("an error");
        assert_eq!(failure.code, 3, "{function}");
        assert!(failure.message.starts_with("the pointer is not a PJRT_"), "{}", failure.message);
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn fields_beyond_an_older_structure_are_not_written() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let mut args = Args::new(185).put(16, device).put(192, usize::MAX).put(200, usize::MAX);
    assert_eq!(call_raw(slot("Device_MemoryStats"), args.address()), 0);
    assert!(args.get_flag(40), "peak bytes are set");
    assert_eq!((args.get(192), args.get(200)), (usize::MAX, usize::MAX));
    // The byte of the last flag is written, but not the bytes after it.
    let mut args = Args::new(185).put(16, device).put(184, usize::MAX);
    assert_eq!(call_raw(slot("Device_MemoryStats"), args.address()), 0);
    assert_eq!(args.get(184), usize::MAX & !0xff);
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn structures_of_the_future_are_read_as_far_as_they_are_known() {
    let mut args = Args::new(248).put(32, usize::MAX);
    assert_eq!(call_raw(slot("Plugin_Attributes"), args.address()), 0);
    assert_eq!(args.get(24), 3, "three attributes");
    assert_eq!(args.get(32), usize::MAX);
}

#[test]
fn no_error_has_code_ok() {
    let args = Args::of("Error_GetCode").call("Error_GetCode").expect("never fails");
    assert_eq!(args.get_i32(24), 0);
    Args::of("Error_ForEachPayload").call("Error_ForEachPayload").expect("never fails");
}
