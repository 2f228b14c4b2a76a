//! Packing of the part of the input that a chunk reads, without padding, holes and gaps between groups.
#![expect(unsafe_code, reason = "copies between raw buffers")]

/// Source of an element of the packed array that the input does not have; the element is 0.
pub(super) const HOLE: usize = usize::MAX;

/// Maximum number of elements of the inner axes that are described individually; the outer axes repeat the description.
const DESCRIBED: usize = 4096;

/// Dimension of the packed array: the offset in the input of each step, in elements, or [`HOLE`].
pub(super) type Sources = Vec<usize>;

/// Part of a packed row: elements that are contiguous in the input, or that it does not have.
struct Segment {
    source: usize,
    length: usize,
}

/// Returns the number of elements of a packed array with those axes.
pub(super) fn size(axes: &[Sources]) -> usize {
    axes.iter().map(Vec::len).product()
}

/// Fills a packed array, row-major in the order of `axes`.
///
/// # Safety
/// Sums of one source of each axis must be offsets of elements of the array at `input`. `packed` must have space for
/// [`size`] elements, and no other code may access them during the call.
pub(super) unsafe fn pack<T: Copy>(input: *const T, axes: &[Sources], zero: T, packed: *mut T) {
    let (outer, segments) = describe(axes);
    let row: usize = segments.iter().map(|s| s.length).sum();
    let counts: Vec<usize> = outer.iter().map(Vec::len).collect();
    let mut rows = xla_hlo::IndexIter::new(&counts);
    let mut to = packed;
    while let Some(index) = rows.next_index() {
        let sources = index.iter().zip(outer).map(|(&i, axis)| axis[i]);
        let source = sources.fold(0, add);
        // SAFETY: guaranteed by the caller: rows are contiguous, and each segment is inside the input or a hole.
        unsafe {
            if source == HOLE {
                fill(to, row, zero);
                to = to.add(row);
                continue;
            }
            for segment in &segments {
                match segment.source {
                    HOLE => fill(to, segment.length, zero),
                    _ if segment.length == 1 => *to = *input.add(source + segment.source),
                    from => std::ptr::copy_nonoverlapping(input.add(source + from), to, segment.length),
                }
                to = to.add(segment.length);
            }
        }
    }
}

fn add(a: usize, b: usize) -> usize {
    if a == HOLE || b == HOLE { HOLE } else { a + b }
}

/// # Safety
/// `to` must have space for `count` elements.
unsafe fn fill<T: Copy>(to: *mut T, count: usize, value: T) {
    for i in 0..count {
        // SAFETY: guaranteed by the caller.
        unsafe { to.add(i).write(value) };
    }
}

/// Splits the axes into the outer ones and the segments of a row of the inner ones.
fn describe(axes: &[Sources]) -> (&[Sources], Vec<Segment>) {
    let mut inner = vec![Segment { source: 0, length: 1 }];
    let mut rest = axes;
    let mut elements = 1;
    while let Some((axis, outer)) = rest.split_last() {
        if elements > 1 && elements * axis.len() > DESCRIBED {
            break;
        }
        elements *= axis.len();
        let mut all: Vec<Segment> = Vec::new();
        for &step in axis {
            for segment in &inner {
                let source = add(step, segment.source);
                match all.last_mut() {
                    Some(last) if follows(last, source) => last.length += segment.length,
                    _ => all.push(Segment { source, length: segment.length }),
                }
            }
        }
        (inner, rest) = (all, outer);
    }
    (rest, inner)
}

/// Whether an element of that source continues a segment.
fn follows(segment: &Segment, source: usize) -> bool {
    match segment.source {
        HOLE => source == HOLE,
        first => source == first + segment.length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_where_its_sources_say() {
        let input: Vec<i32> = (0..1000).collect();
        for axes in [
            vec![vec![0, 100, HOLE], vec![HOLE, 10, 20, 30], vec![0, 1, 2]],
            vec![vec![5; 3], (0..900).step_by(2).collect(), vec![0, 1]],
            vec![vec![0, 400], (0..64).collect(), vec![0; 8], vec![0, 300, HOLE]],
            vec![vec![7]],
            vec![vec![], vec![3]],
            vec![],
        ] {
            let mut packed = vec![-1; size(&axes)];
            // SAFETY: sums of the sources are below 1000, and the room is that of the axes.
            unsafe { pack(input.as_ptr(), &axes, 0, packed.as_mut_ptr()) };
            let counts: Vec<usize> = axes.iter().map(Vec::len).collect();
            let mut indices = xla_hlo::IndexIter::new(&counts);
            let mut i = 0;
            while let Some(index) = indices.next_index() {
                let source = index.iter().zip(&axes).map(|(&i, axis)| axis[i]).fold(0, add);
                assert_eq!(packed[i], if source == HOLE { 0 } else { source as i32 }, "{axes:?} at {index:?}");
                i += 1;
            }
            assert_eq!(i, packed.len());
        }
    }
}
