//! Tests of buffers: deletion, holds, views, external memory, copies, promises.

use std::sync::Mutex;

use super::*;
use crate::host::{ExternalMemory, HostOrder, StridedShape};

/// Returns the bytes of 32-bit floats.
fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Creates external memory with these bytes, `skew` bytes after an aligned address, and a counter of its drops.
fn outside(bytes: &[u8], skew: usize) -> (ExternalMemory, Arc<AtomicUsize>) {
    let mut block = vec![0xee; bytes.len() + 128];
    // The final address is known only after the bytes are moved into the shared allocation.
    let shared: Arc<[u8]> = Arc::from(std::mem::take(&mut block));
    let start = (64 - shared.as_ptr().addr() % 64) % 64 + skew;
    let mut shared = shared;
    Arc::get_mut(&mut shared).unwrap()[start..start + bytes.len()].copy_from_slice(bytes);
    let drops = Arc::new(AtomicUsize::new(0));
    let count = drops.clone();
    let memory = ExternalMemory::shared(shared, start..start + bytes.len(), move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    (memory, drops)
}

fn floats(count: usize) -> StridedShape<'static> {
    const DIMS: [[usize; 1]; 4] = [[0], [1], [2], [3]];
    StridedShape::dense(F32, &DIMS[count])
}

#[test]
fn holds_and_views_outlive_deletion_and_donation() {
    let client = client();
    let program = sum_program(&client);
    for donate in [false, true] {
        let x = client.buffer(&f32s(&[1.0, 2.0, 3.0])).unwrap();
        let one = client.buffer(&f32s(&[1.0; 3])).unwrap();
        let hold = x.hold().unwrap();
        let view = x.view(&ArrayShape::new(ElementType::S32, [3, 1])).unwrap();
        let address = hold.address().unwrap();
        assert_eq!(address % 64, 0);
        if donate {
            let options = ExecuteOptions { donate: vec![0].into(), ..ExecuteOptions::default() };
            let results = program.execute_with(&[&x, &one], &options).unwrap();
            assert_eq!(results[0].to_literal().unwrap(), f32s(&[2.0, 3.0, 4.0]));
            assert_ne!(results[1].hold().unwrap().address().unwrap(), address, "a result reuses memory that is held");
        } else {
            x.delete();
            x.delete();
        }
        assert_eq!((x.is_deleted(), x.is_donated()), (true, donate));
        assert!(matches!(x.to_literal(), Err(Error::FailedPrecondition(_))));
        assert!(matches!(x.hold(), Err(Error::FailedPrecondition(_))));
        assert_eq!(hold.host_bytes().unwrap(), bytes_of(&[1.0, 2.0, 3.0]));
        assert_eq!(view.to_bytes().unwrap(), bytes_of(&[1.0, 2.0, 3.0]));
        assert_eq!(view.shape().to_string(), "s32[3,1]{1,0}");
    }
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let error = message(x.view(&ArrayShape::new(F32, [4])));
    assert_eq!(error, "a view of f32[3]{0} must have its 12 bytes, f32[4]{0} has 16");
}

#[test]
fn raw_bytes_go_both_ways_and_whoever_has_a_share_sees_no_change() {
    let client = client();
    let x = client.buffer(&f32s(&[1.0, 2.0, 3.0])).unwrap();
    let hold = x.hold().unwrap();
    x.copy_raw_from_host(4, &bytes_of(&[9.0])).unwrap();
    assert_eq!(x.to_literal().unwrap(), f32s(&[1.0, 9.0, 3.0]));
    assert_eq!(hold.host_bytes().unwrap(), bytes_of(&[1.0, 2.0, 3.0]));
    let mut part = [0; 8];
    x.copy_raw_to_host(4, &mut part).unwrap();
    assert_eq!(&part[..], bytes_of(&[9.0, 3.0]));
    let error = message(x.copy_raw_to_host(8, &mut part));
    assert_eq!(error, "8 bytes at offset 8 are not inside of an array of 12 bytes");
    assert!(x.copy_raw_from_host(usize::MAX, &[0]).is_err());
}

#[test]
fn aligned_memory_from_outside_is_read_in_place_until_nobody_needs_it() {
    let client = client();
    let program = sum_program(&client);
    let device = client.first_device();
    let (memory, drops) = outside(&bytes_of(&[1.0, 2.0, 3.0]), 0);
    let address = memory.bytes().as_ptr().addr();
    let x = device.buffer_from_external(memory, &floats(3), None).unwrap();
    assert_eq!(x.hold().unwrap().address(), Some(address));
    // External memory is never donated, whatever the caller requests, and never written.
    let options = ExecuteOptions { donate: vec![0, 1].into(), ..ExecuteOptions::default() };
    let y = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let hold = x.hold().unwrap();
    let results = program.execute_with(&[&x, &y], &options).unwrap();
    assert_eq!(results[0].to_literal().unwrap(), f32s(&[2.0, 3.0, 4.0]));
    assert!(x.is_donated());
    assert_eq!(hold.host_bytes().unwrap(), bytes_of(&[1.0, 2.0, 3.0]));
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    let view = Buffer::clone(&x);
    drop((hold, results, x, view));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn other_memory_from_outside_is_copied_and_free_at_once() {
    let client = client();
    let device = client.first_device();
    let (memory, drops) = outside(&bytes_of(&[1.0, 2.0, 3.0]), 4);
    let x = device.buffer_from_external(memory, &floats(3), None).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(x.to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));
    // A negative stride: dense, but not representable as a layout.
    let (memory, drops) = outside(&bytes_of(&[1.0, 2.0, 3.0]), 0);
    let backwards = StridedShape { strides: Some(&[-4]), offset: 8, ..floats(3) };
    let x = device.buffer_from_external(memory, &backwards, None).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(x.to_literal().unwrap(), f32s(&[3.0, 2.0, 1.0]));
    let (memory, drops) = outside(&bytes_of(&[1.0, 2.0]), 0);
    let error = message(device.buffer_from_external(memory, &floats(3), None));
    assert!(error.contains("is not inside of 8 bytes"), "{error}");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn the_drop_of_outside_memory_may_use_the_client() {
    let client = client();
    let device = client.first_device();
    let (memory, _) = outside(&[0; 12], 0);
    let seen: Arc<Mutex<Option<Buffer>>> = Arc::default();
    let (inner, outer) = (seen.clone(), client.clone());
    let bytes: Arc<[u8]> = Arc::from(memory.bytes());
    let start = (64 - bytes.as_ptr().addr() % 64) % 64;
    // Empty arrays are aligned if the memory is; this test needs only the memory, not its contents.
    let memory = ExternalMemory::shared(bytes, start..start, move || {
        *inner.lock().unwrap() = Some(outer.buffer(&f32s(&[5.0])).unwrap());
    });
    let buffer = device.buffer_from_external(memory, &floats(0), None).unwrap();
    buffer.delete();
    assert_eq!(seen.lock().unwrap().take().unwrap().to_literal().unwrap(), f32s(&[5.0]));
}

#[test]
fn strided_arrays_come_in_and_any_order_goes_out() {
    let client = client();
    let device = client.first_device();
    let source: Vec<u8> = (0..48).collect();
    // Rows in reverse order, every other column; rows of 8 bytes.
    let array = StridedShape { element_type: ElementType::S8, dims: &[3, 4], strides: Some(&[-8, 2]), offset: 16 };
    let layout = Layout::from_minor_to_major(vec![0, 1]);
    for layout in [None, Some(&layout)] {
        let x = device.buffer_from_host(&source, &array, layout).unwrap();
        let mut target = vec![0; 12];
        x.copy_to_host(HostOrder::RowMajor, &mut target).unwrap();
        assert_eq!(target, [16, 18, 20, 22, 8, 10, 12, 14, 0, 2, 4, 6]);
        x.copy_to_host(HostOrder::MinorToMajor(&[0, 1]), &mut target).unwrap();
        assert_eq!(target, [16, 8, 0, 18, 10, 2, 20, 12, 4, 22, 14, 6]);
        let mut gaps = vec![0xee; 18];
        x.copy_to_host(HostOrder::Strides(&[6, 1]), &mut gaps).unwrap();
        assert_eq!(gaps[..10], [16, 18, 20, 22, 0xee, 0xee, 8, 10, 12, 14]);
        assert!(message(x.copy_to_host(HostOrder::MinorToMajor(&[1, 1]), &mut target)).contains("not an order of 2"));
        assert!(message(x.copy_to_host(HostOrder::RowMajor, &mut target[..11])).contains("but the target has 11"));
        assert!(message(x.copy_to_host(HostOrder::Strides(&[-4, 1]), &mut target)).contains("must not be negative"));
    }
    let outside = StridedShape { offset: 44, ..array };
    assert!(message(device.buffer_from_host(&source, &outside, None)).contains("is not inside of 48 bytes"));
}

#[test]
fn promised_buffers_get_values_or_errors() {
    let client = client();
    let device = client.first_device();
    let shape = ArrayShape::new(F32, [3]);
    let program = sum_program(&client);
    let real = client.buffer(&f32s(&[1.0, 2.0, 3.0])).unwrap();

    let (alias, promise) = device.alias_buffer(&shape).unwrap();
    let queued = ExecuteOptions { dispatch: Dispatch::Queued, ..ExecuteOptions::default() };
    let results = program.execute_with(&[&alias, &real], &queued).unwrap();
    assert!(!alias.is_ready().unwrap() && !results[0].is_ready().unwrap());
    promise.fulfil(Ok(&real)).unwrap();
    assert_eq!(results[0].to_literal().unwrap(), f32s(&[2.0, 4.0, 6.0]));
    assert_eq!(alias.hold().unwrap().address(), real.hold().unwrap().address());

    let (alias, promise) = device.alias_buffer(&shape).unwrap();
    drop(promise);
    assert!(matches!(alias.wait(), Err(Error::Cancelled(_))));

    let (alias, promise) = device.alias_buffer(&shape).unwrap();
    let other = client.buffer(&f32s(&[1.0])).unwrap();
    assert!(message(promise.fulfil(Ok(&other))).contains("an alias of f32[3]{0}"));
    assert!(message(alias.wait()).contains("an alias of f32[3]{0}"));

    let (staged, mut filling) = device.staged_buffer(&shape).unwrap();
    filling.write(4, &bytes_of(&[2.0, 3.0])).unwrap();
    filling.write(0, &bytes_of(&[1.0])).unwrap();
    assert!(filling.write(8, &[0; 8]).is_err());
    assert!(!staged.is_ready().unwrap());
    filling.finish(Ok(()));
    assert_eq!(staged.to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));

    let errored = device.errored_buffer(&shape, Error::resource_exhausted("no more")).unwrap();
    assert_eq!(message(errored.to_literal()), "no more");
    assert!(!errored.is_deleted());
    let anything = device.uninitialized_buffer(&shape).unwrap();
    assert_eq!(anything.to_bytes().unwrap().len(), 12);
}

#[test]
fn callbacks_of_buffers_may_use_the_client() {
    let client = client();
    let program = sum_program(&client);
    let device = client.first_device();
    let (alias, promise) = device.alias_buffer(&ArrayShape::new(F32, [3])).unwrap();
    let real = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let (own, x) = (alias.clone(), real.clone());
    alias.on_ready(move |outcome| {
        let value = outcome.and_then(|()| program.execute(&[&own, &x])).and_then(|results| results[0].to_literal());
        sender.send(value).unwrap();
    });
    let read = alias.read_when_ready(|buffer| Err(Error::cancelled(format!("read {}", buffer?.to_literal()?))));
    promise.fulfil(Ok(&real)).unwrap();
    assert_eq!(receiver.recv().unwrap().unwrap(), f32s(&[2.0; 3]));
    assert_eq!(message(read.wait()), "read f32[3] {1, 1, 1}");
    assert!(real.read_when_ready(|buffer| buffer?.wait()).is_done());
}

#[test]
fn devices_of_the_host_share_memory_and_values_go_between_them() {
    let client = client_of(3);
    assert_eq!(client.devices().len(), 3);
    let ordinals: Vec<usize> = client.devices().map(|device| device.description().ordinal).collect();
    assert_eq!(ordinals, [0, 1, 2]);
    assert_eq!(message(client.device(3)), "the client has 3 devices, but no device 3");
    let x = client.buffer(&f32s(&[1.0, 2.0, 3.0])).unwrap();
    let third = client.device(2).unwrap();
    let copy = x.copy_to_device(&third).unwrap();
    assert_eq!(copy.device(), &third);
    assert_eq!(copy.to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));
    assert_ne!(copy.hold().unwrap().address(), x.hold().unwrap().address());
    assert_eq!(third.memory_stats().bytes_in_use, client.memory_stats().bytes_in_use);
    let error = message(sum_program(&client).execute(&[&x, &copy]));
    assert!(error.contains("argument 1 (parameter 1 \"y\") of sum must be on device 0, it is on 2"), "{error}");
    assert!(x.copy_to_device(&super::client().first_device()).is_err());
    // A copy of a pending buffer becomes ready after the buffer.
    let (alias, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
    let copy = alias.copy_to_device(&third).unwrap();
    alias.delete();
    assert!(!copy.is_ready().unwrap());
    promise.fulfil(Ok(&x)).unwrap();
    assert_eq!(copy.to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));
}
