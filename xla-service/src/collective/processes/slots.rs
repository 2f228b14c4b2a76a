//! Division of an all-reduce among processes.

use crate::collective::CollectiveSpec;

/// Largest number of bytes of a slot. The slots of a block, one for each process, stay in the caches. Allocations of
/// 128 KiB and more are mapped anew each time, which makes an all-reduce of 64 MB take twice as long.
const SLOT_BYTES: usize = 120 << 10;

/// Least number of bytes of a slot, at least the size of an element.
const LEAST_BYTES: usize = 1 << 10;

/// Contiguous range of bytes of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Index of the operand.
    pub array: usize,
    /// Offset of the first byte.
    pub at: usize,
    /// Number of bytes.
    pub bytes: usize,
}

/// Ranges that one process reduces, of at most one per array. Slot `i` belongs to process `i % P` of `P`.
pub(super) type Slot = Vec<Segment>;

/// Cuts the arrays of an all-reduce into slots of whole elements.
pub(super) fn slots(spec: &CollectiveSpec, processes: usize) -> Vec<Slot> {
    let total: usize = spec.operand_bytes().sum();
    let size = total.div_ceil(processes).clamp(LEAST_BYTES, SLOT_BYTES);
    let (mut slots, mut slot, mut used) = (vec![], vec![], 0);
    for (array, (part, end)) in spec.arrays().iter().zip(spec.operand_bytes()).enumerate() {
        let width = part.element_type.byte_width();
        let mut at = 0;
        while at < end {
            let bytes = (end - at).min((size - used) / width * width);
            if bytes == 0 {
                slots.push(std::mem::take(&mut slot));
                used = 0;
                continue;
            }
            slot.push(Segment { array, at, bytes });
            (at, used) = (at + bytes, used + bytes);
        }
    }
    slots.extend((!slot.is_empty()).then_some(slot));
    slots
}

#[cfg(test)]
mod tests {
    use xla_hlo::ElementType;
    use xla_hlo::ops::BinaryOp;

    use super::*;
    use crate::collective::{Operation, Part, Reduction};

    #[test]
    fn slots_cover_each_element_once_in_order() {
        let types = [ElementType::C128, ElementType::U8, ElementType::F16, ElementType::F64];
        for (processes, scale) in [(2, 1), (3, 1000), (4, 300_000)] {
            let count = |i: usize| [3, 0, 17, 1, 5][i % 5] * scale;
            let parts: Vec<Part> = (0..40).map(|i| Part::whole(types[i % 4], count(i))).collect();
            let operation = Operation::AllReduce(Reduction::simple(BinaryOp::Add, ElementType::F32));
            let spec = CollectiveSpec::new(operation, parts, processes).unwrap();
            let mut covered = vec![0; 40];
            let slots = slots(&spec, processes);
            for Segment { array, at, bytes } in slots.iter().flatten() {
                let width = types[array % 4].byte_width();
                assert_eq!((covered[*array], at % width, bytes % width), (*at, 0, 0));
                covered[*array] += bytes;
            }
            assert_eq!(covered, spec.operand_bytes().collect::<Vec<_>>());
            let sizes = slots.iter().map(|slot| slot.iter().map(|segment| segment.bytes).sum::<usize>());
            assert!(sizes.clone().all(|size| (1..=SLOT_BYTES).contains(&size)), "{sizes:?}");
            assert!(slots.len() >= processes.min(2), "{} slots", slots.len());
        }
    }
}
