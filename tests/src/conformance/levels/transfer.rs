//! Level 1: literals of every element type and rank survive a round trip to the device bit for bit, at any offset.

use xla::{ArrayShape, ElementType, Error, Layout, Literal};
use xla_service::{DeviceMemory, Stream, TransferManager};

use super::copies::elsewhere;
use super::support::{bytes, filled};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};
use crate::generate::{Random, Temper, literal};

/// Ranks 0 to 5, sizes around tile sizes, and empty arrays.
const DIMS: &[&[usize]] = &[
    &[],
    &[1],
    &[7],
    &[128],
    &[129],
    &[0],
    &[3, 5],
    &[8, 128],
    &[9, 130],
    &[1, 300],
    &[300, 1],
    &[0, 4],
    &[4, 0],
    &[2, 9, 17],
    &[3, 0, 2],
    &[2, 3, 4, 5],
    &[2, 1, 3, 2, 9],
];

pub fn cases() -> Vec<Case> {
    let case = |name: &str, work: fn(&Subject) -> Check| Case::new(Level::Device, format!("transfer/{name}"), work);
    let mut cases = vec![
        case("device-shape", device_shape),
        case("byte-size", byte_size),
        case("layouts", layouts),
        case("huge-shapes", huge),
        case("wrong-sizes", wrong_sizes),
        case("foreign-memory", foreign),
        case("many-threads", many_threads),
    ];
    for &ty in ElementType::ALL {
        let name = format!("transfer/round-trip/{ty}");
        cases.push(Case::new(Level::Device, name, move |subject| round_trips(subject, ty)));
    }
    cases
}

/// Returns the shape without a layout, and with a few layouts.
fn with_layouts(shape: &ArrayShape) -> Vec<ArrayShape> {
    let rank = shape.rank();
    let rotated = (0..rank).map(|d| (d + 1) % rank.max(1)).collect();
    let orders = [(0..rank).rev().collect(), (0..rank).collect(), rotated];
    let with = |order| shape.clone().with_layout(Some(Layout::from_minor_to_major(order)));
    std::iter::once(shape.clone()).chain(orders.into_iter().map(with)).collect()
}

fn shapes() -> impl Iterator<Item = ArrayShape> {
    let of_type = |&ty: &ElementType| DIMS.iter().map(move |dims| ArrayShape::new(ty, *dims));
    ElementType::ALL.iter().flat_map(of_type)
}

/// Returns a literal with arbitrary bits that are values of the type.
fn any(shape: &ArrayShape, seed: u64) -> Literal {
    literal(&mut Random::new(seed), &shape.clone().with_layout(None), Temper::Wild).0
}

fn device_shape(subject: &Subject) -> Check {
    let transfer = subject.platform().transfer_manager();
    for shape in shapes().flat_map(|shape| with_layouts(&shape)) {
        let device = transfer.device_shape(&shape)?;
        ensure!(device.element_type() == shape.element_type() && device.same_dims(&shape), "{shape} became {device}");
        let Some(layout) = device.layout() else {
            ensure!(false, "{shape} has no layout on the device");
            continue;
        };
        ensure!(layout.is_permutation_of(shape.rank()), "the layout of {device} does not fit its rank");
        let again = transfer.device_shape(&device)?;
        ensure!(again == device, "{shape} became {device}, and that became {again}");
    }
    Ok(())
}

fn byte_size(subject: &Subject) -> Check {
    let transfer = subject.platform().transfer_manager();
    for shape in shapes() {
        let device = transfer.device_shape(&shape)?;
        let (size, bits) = (transfer.byte_size(&device)?, shape.element_count() * shape.element_type().bit_width());
        ensure!(size >= bits.div_ceil(8), "{device} cannot have its values in {size} bytes");
    }
    Ok(())
}

/// Copies the array to a device and back, at an offset and with memory after it.
fn round_trip(transfer: &dyn TransferManager, subject: &Subject, device: &ArrayShape, value: &Literal) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let (size, alignment) = (transfer.byte_size(device)?, executor.description().memory_alignment);
    for (front, behind) in [(0, 0), (alignment, 0), (3 * alignment, 129)] {
        let before = vec![0xa5; front + size + behind];
        let mut memory = filled(&*executor, &*stream, &before)?;
        transfer.write(&*stream, value, device, &mut memory, front)?;
        let found = transfer.read(&*stream, &memory, front, device)?;
        ensure!(found == *value, "{device} at offset {front} comes back as something else");
        let after = bytes(&*stream, &memory)?;
        let outside = after[..front].iter().chain(&after[front + size..]).all(|&byte| byte == 0xa5);
        ensure!(outside, "writing {device} at offset {front} wrote outside of its {size} bytes");
    }
    Ok(())
}

fn round_trips(subject: &Subject, ty: ElementType) -> Check {
    let transfer = subject.platform().transfer_manager();
    for (seed, dims) in DIMS.iter().enumerate() {
        let device = transfer.device_shape(&ArrayShape::new(ty, *dims))?;
        round_trip(&*transfer, subject, &device, &any(&device, seed as u64))?;
    }
    Ok(())
}

fn layouts(subject: &Subject) -> Check {
    let transfer = subject.platform().transfer_manager();
    for ty in [ElementType::Pred, ElementType::S4, ElementType::BF16, ElementType::F32, ElementType::C128] {
        for dims in DIMS {
            for shape in with_layouts(&ArrayShape::new(ty, *dims)) {
                let device = transfer.device_shape(&shape)?;
                round_trip(&*transfer, subject, &device, &any(&device, 9))?;
            }
        }
    }
    Ok(())
}

fn huge(subject: &Subject) -> Check {
    let transfer = subject.platform().transfer_manager();
    for dims in [[1 << 40, 1 << 40], [usize::MAX, 2], [1 << 62, 16]] {
        let shape = ArrayShape::new(ElementType::F32, dims);
        let size = transfer.device_shape(&shape).and_then(|device| transfer.byte_size(&device));
        ensure!(size.is_err(), "{shape} takes {} bytes", size.unwrap_or_default());
    }
    Ok(())
}

/// Writes and reads with given memory and offset; returns both outcomes.
fn both(
    transfer: &dyn TransferManager,
    stream: &dyn Stream,
    value: &Literal,
    device: &ArrayShape,
    (memory, offset): (&mut DeviceMemory, usize),
) -> [xla::Result<()>; 2] {
    let written = transfer.write(stream, value, device, memory, offset).and_then(|()| stream.synchronize());
    [written, transfer.read(stream, memory, offset, device).map(drop)]
}

fn wrong_sizes(subject: &Subject) -> Check {
    let (executor, transfer) = (subject.executor()?, subject.platform().transfer_manager());
    let device = transfer.device_shape(&ArrayShape::new(ElementType::F32, [6, 5]))?;
    let (value, size) = (any(&device, 1), transfer.byte_size(&device)?);
    for (memory, offset) in [(0, 0), (size - 1, 0), (size, 1), (size, usize::MAX), (2 * size, size + 1)] {
        let stream = executor.create_stream()?;
        let mut small = filled(&*executor, &*stream, &vec![0x5a; memory])?;
        for result in both(&*transfer, &*stream, &value, &device, (&mut small, offset)) {
            ensure!(
                matches!(result, Err(Error::Internal(_))),
                "{device} at offset {offset} of {memory} bytes must be Internal: {result:?}"
            );
        }
    }
    let stream = executor.create_stream()?;
    let mut memory = executor.allocate(2 * size)?;
    for other in [ArrayShape::new(ElementType::F32, [6, 4]), ArrayShape::new(ElementType::F64, [6, 5])] {
        let result = transfer.write(&*stream, &any(&other, 2), &device, &mut memory, 0);
        ensure!(result.is_err(), "{other} was written as {device}");
    }
    Ok(())
}

fn foreign(subject: &Subject) -> Check {
    let (executor, transfer) = (subject.executor()?, subject.platform().transfer_manager());
    let stream = executor.create_stream()?;
    let device = transfer.device_shape(&ArrayShape::new(ElementType::S8, [2]))?;
    for result in both(&*transfer, &*stream, &any(&device, 1), &device, (&mut elsewhere(), 0)) {
        let refused = matches!(result, Err(Error::InvalidArgument(_)));
        ensure!(refused, "memory of another device must be InvalidArgument: {result:?}");
    }
    Ok(())
}

fn many_threads(subject: &Subject) -> Check {
    let (executor, transfer) = (subject.executor()?, subject.platform().transfer_manager());
    let stream = executor.create_stream()?;
    let work = |thread: u64| -> Check {
        for iteration in 0..20 {
            let shape = ArrayShape::new(ElementType::F32, DIMS[(thread + iteration) as usize % DIMS.len()]);
            let device = transfer.device_shape(&shape)?;
            let value = any(&device, 100 * thread + iteration);
            let mut memory = executor.allocate(transfer.byte_size(&device)?)?;
            transfer.write(&*stream, &value, &device, &mut memory, 0)?;
            let found = transfer.read(&*stream, &memory, 0, &device)?;
            ensure!(found == value, "thread {thread}: {device} comes back as something else");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(super::support::joined)
    })
}
