//! Tests of buffers: strided arrays as input, bytes as output, references, views, deletion.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::{F32, buffer, buffer_of, client, fetch, fetch_f32, finish, handles, of};
use crate::table::{Args, Failure, bytes, counting_callback, counting_release};

fn device(client: usize) -> usize {
    handles("Client_Devices", client)[0]
}

/// Dimensions, strides, offset of the first byte, and the values in row-major order.
type Strided = (&'static [i64], &'static [i64], usize, &'static [f32]);

/// Returns the numbers from 0 on, as bytes.
fn numbers(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| (i as f32).to_ne_bytes()).collect()
}

#[test]
fn strides_of_every_kind_are_read() {
    let client = client(1);
    let host = numbers(12);
    let cases: [Strided; 6] = [
        (&[3, 4], &[16, 4], 0, &[0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11.]),
        (&[4, 3], &[4, 16], 0, &[0., 4., 8., 1., 5., 9., 2., 6., 10., 3., 7., 11.]),
        (&[3, 2], &[-16, 4], 32, &[8., 9., 4., 5., 0., 1.]),
        (&[2, 2], &[0, 8], 4, &[1., 3., 1., 3.]),
        (&[0, 3], &[0, 0], 0, &[]),
        (&[], &[], 20, &[5.]),
    ];
    for (dims, strides, offset, expected) in cases {
        let buffer = buffer_of(client, device(client), F32, dims, &host, strides, offset).expect("a buffer");
        assert_eq!(fetch_f32(buffer).expect("values"), expected, "{dims:?} {strides:?}");
        assert_eq!(of("Buffer_Dimensions", buffer).expect("fine").get_words(24, 32), dims);
        of("Buffer_Destroy", buffer).expect("fine");
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn every_element_type_goes_in_and_out() {
    let client = client(1);
    let widths = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    for (ty, width) in (1..).zip(widths) {
        let host: Vec<u8> = vec![1; 3 * width];
        let made = buffer_of(client, device(client), ty, &[3], &host, &[], 0);
        if width == 0 {
            assert_eq!(made.expect_err("tokens").code, 12);
            continue;
        }
        let buffer = made.expect("a buffer");
        assert_eq!(fetch(buffer).expect("bytes"), host, "type {ty}");
        assert_eq!(of("Buffer_ElementType", buffer).expect("fine").get_i32(24), ty);
        of("Buffer_Destroy", buffer).expect("fine");
    }
    for ty in [0, 34, -1] {
        assert_eq!(buffer_of(client, device(client), ty, &[1], &[0; 16], &[], 0).expect_err("no type").code, 3);
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn impossible_arrays_are_refused() {
    let client = client(1);
    let make = |dims: &[i64], strides: &[i64]| buffer_of(client, device(client), F32, dims, &[0; 64], strides, 0);
    for (dims, strides) in [
        (&[-1][..], &[][..]),
        (&[i64::MAX, i64::MAX], &[]),
        (&[2], &[4, 4]),
        (&[i64::MAX / 8], &[0]),
        (&[2], &[i64::MIN]),
    ] {
        let failure = make(dims, strides).expect_err("refused");
        assert!([3, 8].contains(&failure.code), "{dims:?} {strides:?}: {failure:?}");
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn a_deleted_buffer_is_an_error() {
    let client = client(1);
    let buffer = buffer(client, device(client), &[2], &[1.0, 2.0]);
    assert!(!of("Buffer_IsDeleted", buffer).expect("fine").get_flag(24));
    of("Buffer_Delete", buffer).expect("fine");
    of("Buffer_Delete", buffer).expect("twice is fine");
    assert!(of("Buffer_IsDeleted", buffer).expect("fine").get_flag(24));
    assert_eq!(fetch(buffer).expect_err("deleted").message, "Buffer has been deleted or donated.");
    let event = of("Buffer_ReadyEvent", buffer).expect("an event").get(24);
    assert_eq!(finish(event).expect_err("deleted").code, 3);
    assert_eq!(of("Buffer_Dimensions", buffer).expect("still known").get_words(24, 32), [2]);
    of("Buffer_Destroy", buffer).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn an_external_reference_keeps_the_memory() {
    let client = client(1);
    let buffer = buffer(client, device(client), &[2], &[3.0, 4.0]);
    of("Buffer_IncreaseExternalReferenceCount", buffer).expect("fine");
    let address = of("Buffer_OpaqueDeviceMemoryDataPointer", buffer).expect("an address").get(24);
    assert_eq!(address % 64, 0);
    of("Buffer_Delete", buffer).expect("fine");
    assert_eq!(bytes(address, 4), 3.0_f32.to_ne_bytes());
    assert_eq!(of("Buffer_UnsafePointer", buffer).expect("the same").get(24), address);
    of("Buffer_DecreaseExternalReferenceCount", buffer).expect("fine");
    assert_eq!(of("Buffer_DecreaseExternalReferenceCount", buffer).err().expect("one too many").code, 3);
    of("Buffer_Destroy", buffer).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn the_owner_of_viewed_memory_is_told_once() {
    let client = client(1);
    // Room for an address that is a multiple of 64, and one that is not.
    let host: Vec<u8> = numbers(64);
    let start = host.as_ptr().expose_provenance();
    let aligned = start.next_multiple_of(64);
    for address in [aligned, aligned + 4] {
        let told = AtomicUsize::new(0);
        let args = Args::of("Client_CreateViewOfDeviceBuffer").put(16, client).put(24, address).put_words(32, &[2, 3]);
        let args = args.put_i32(48, F32).put(64, device(client)).put(72, counting_release());
        let args = args.put(80, std::ptr::from_ref(&told).expose_provenance());
        let view = args.call("Client_CreateViewOfDeviceBuffer").expect("a view").get(96);
        let first = ((address - start) / 4) as f32;
        let expected: Vec<f32> = (0..6).map(|i| first + i as f32).collect();
        assert_eq!(fetch_f32(view).expect("values"), expected);
        of("Buffer_Destroy", view).expect("fine");
        assert_eq!(told.load(Ordering::SeqCst), 1);
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn memory_of_large_arrays_is_used_in_place_and_of_small_ones_free_at_once() {
    let client = client(1);
    let host: Vec<u8> = numbers(96);
    let aligned = host.as_ptr().expose_provenance().next_multiple_of(64);
    for (count, stays) in [(64, false), (65, true)] {
        // `kImmutableZeroCopy`.
        let args = Args::of("Client_BufferFromHostBuffer").put(16, client).put(24, aligned).put_i32(32, F32);
        let args = args.put_words(40, &[count]).put_i32(72, 2).put(80, device(client));
        let args = args.call("Client_BufferFromHostBuffer").expect("a buffer");
        let (done, buffer) = (args.get(104), args.get(112));
        assert_eq!(of("Event_IsReady", done).expect("fine").get_flag(24), !stays, "{count} numbers");
        assert_eq!(fetch_f32(buffer).expect("values").len() as i64, count);
        of("Buffer_Destroy", buffer).expect("fine");
        assert!(of("Event_IsReady", done).expect("fine").get_flag(24));
        of("Event_Destroy", done).expect("fine");
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn layouts_of_views_need_not_say_their_size() {
    let client = client(1);
    let host = numbers(6);
    for size in [0, 80] {
        let told = AtomicUsize::new(0);
        let mut layout = Args::new(size).put_words(32, &[0, 1]);
        let args = Args::of("Client_CreateViewOfDeviceBuffer").put(16, client).put_words(32, &[2, 3]);
        let args = args.put(24, host.as_ptr().expose_provenance()).put_i32(48, F32).put(56, layout.address());
        let args = args.put(64, device(client)).put(72, counting_release());
        let args = args.put(80, std::ptr::from_ref(&told).expose_provenance());
        let view = args.call("Client_CreateViewOfDeviceBuffer").expect("a view").get(96);
        assert_eq!(fetch_f32(view).expect("values"), [0., 2., 4., 1., 3., 5.]);
        of("Buffer_Destroy", view).expect("fine");
    }
    of("Client_Destroy", client).expect("fine");
}

/// The C API's header specifies this for a null layout.
#[test]
fn without_a_layout_the_bytes_are_in_the_source_s() {
    let client = client(1);
    let host = numbers(6);
    let told = AtomicUsize::new(0);
    let mut layout = Args::new(80).put_words(32, &[0, 1]);
    let args = Args::of("Client_CreateViewOfDeviceBuffer").put(16, client).put_words(32, &[2, 3]);
    let args = args.put(24, host.as_ptr().expose_provenance()).put_i32(48, F32).put(56, layout.address());
    let args = args.put(64, device(client)).put(72, counting_release());
    let args = args.put(80, std::ptr::from_ref(&told).expose_provenance());
    let view = args.call("Client_CreateViewOfDeviceBuffer").expect("a view").get(96);
    let mut values = [0.0_f32; 6];
    let args = Args::of("Buffer_ToHostBuffer").put(16, view);
    let args = args.put(32, values.as_mut_ptr().expose_provenance()).put(40, 24);
    finish(args.call("Buffer_ToHostBuffer").expect("an event").get(48)).expect("fine");
    assert_eq!(values.map(|value| value as usize), [0, 1, 2, 3, 4, 5]);
    assert_eq!(fetch_f32(view).expect("values"), [0., 2., 4., 1., 3., 5.]);
    of("Buffer_Destroy", view).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

/// jaxlib 0.12 fetches elements of less than a byte in this form.
#[test]
fn a_layout_that_names_no_dimensions_is_row_major() {
    let client = client(1);
    let buffer = buffer(client, device(client), &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let mut layout = Args::new(80);
    let mut values = [0.0_f32; 4];
    let args = Args::of("Buffer_ToHostBuffer").put(16, buffer).put(24, layout.address());
    let args = args.put(32, values.as_mut_ptr().expose_provenance()).put(40, 16);
    finish(args.call("Buffer_ToHostBuffer").expect("an event").get(48)).expect("fine");
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    of("Buffer_Destroy", buffer).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn bytes_are_copied_raw() {
    let client = client(1);
    let buffer = buffer(client, device(client), &[3], &[1.0, 2.0, 3.0]);
    let copy = |offset: usize, size: usize| -> Result<Vec<u8>, Failure> {
        let mut target = vec![0_u8; size];
        let place = target.as_mut_ptr().expose_provenance();
        let args = Args::of("Buffer_CopyRawToHost").put(16, buffer).put(24, place).put(32, offset).put(40, size);
        finish(args.call("Buffer_CopyRawToHost")?.get(48))?;
        Ok(bytes(place, size))
    };
    assert_eq!(copy(4, 4).expect("bytes"), 2.0_f32.to_ne_bytes());
    for (offset, size) in [(8, 8), (13, 0), (usize::MAX, 1), (0, 13)] {
        assert_eq!(copy(offset, size).expect_err("out of range").code, 3);
    }
    of("Buffer_Destroy", buffer).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn copies_go_to_other_devices_and_memories() {
    let client = client(2);
    let devices = handles("Client_Devices", client);
    let source = buffer(client, devices[0], &[2], &[5.0, 6.0]);
    let copy = Args::of("Buffer_CopyToDevice").put(16, source).put(24, devices[1]).call("Buffer_CopyToDevice");
    let copy = copy.expect("a copy").get(32);
    assert_eq!(of("Buffer_Device", copy).expect("fine").get(24), devices[1]);
    assert_eq!(fetch_f32(copy).expect("values"), [5.0, 6.0]);
    let pinned = handles("Device_AddressableMemories", devices[0])[1];
    let moved = Args::of("Buffer_CopyToMemory").put(16, source).put(24, pinned).call("Buffer_CopyToMemory");
    let moved = moved.expect("a copy").get(32);
    assert_eq!(of("Buffer_Memory", moved).expect("fine").get(24), pinned);
    [source, copy, moved].iter().for_each(|&buffer| drop(of("Buffer_Destroy", buffer).expect("fine")));
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn an_event_is_set_once_and_calls_back() {
    let event = Args::of("Event_Create").call("Event_Create").expect("an event").get(16);
    assert!(!of("Event_IsReady", event).expect("fine").get_flag(24));
    assert_eq!(of("Event_Error", event).err().expect("not ready").code, 9);
    let called = AtomicUsize::new(0);
    let wait = || {
        let args = Args::of("Event_OnReady").put(16, event).put(24, counting_callback());
        args.put(32, std::ptr::from_ref(&called).expose_provenance()).call("Event_OnReady").expect("fine");
    };
    wait();
    assert_eq!(called.load(Ordering::SeqCst), 0);
    let set = |code| Args::of("Event_Set").put(16, event).put_i32(24, code).put_bytes(32, b"late").call("Event_Set");
    set(4).expect("fine");
    wait();
    assert_eq!(called.load(Ordering::SeqCst), 2);
    let error = of("Event_Await", event).err().expect("the error");
    assert_eq!((error.code, error.message.as_str()), (4, "late"));
    assert_eq!(set(0).err().expect("set before").code, 9);
    of("Event_Destroy", event).expect("fine");
}

#[test]
fn an_event_that_nobody_sets_ends_with_it() {
    let event = Args::of("Event_Create").call("Event_Create").expect("an event").get(16);
    let called = AtomicUsize::new(0);
    let args = Args::of("Event_OnReady").put(16, event).put(24, counting_callback());
    args.put(32, std::ptr::from_ref(&called).expose_provenance()).call("Event_OnReady").expect("fine");
    of("Event_Destroy", event).expect("fine");
    assert_eq!(called.load(Ordering::SeqCst), 1);
}
