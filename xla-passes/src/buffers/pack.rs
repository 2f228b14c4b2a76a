//! Packing: offsets in one allocation for items that are live at different times.
//!
//! Uses two greedy heuristics for dynamic storage allocation (offline strip packing, NP-hard in general) and takes the
//! better result. A small number of items is packed several times, with the items that ended at the top placed first.
//! Sizes are multiples of the alignment, so that every offset is aligned. Before packing, items may be placed in
//! existing memory that is not needed yet.

use std::collections::{BTreeMap, BTreeSet};

use xla_hlo::{Error, Result};

/// A piece of memory to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Size in bytes, a multiple of the alignment.
    pub size: usize,
    /// Bytes in use. The last item of a block need not be padded, so that the block may end with these.
    pub used: usize,
    /// First step at which the item is live.
    pub first: u32,
    /// Last step at which the item is live.
    pub last: u32,
}

impl Item {
    fn meets(&self, other: (u32, u32)) -> bool {
        self.first <= other.1 && other.0 <= self.last
    }
}

/// Memory that exists for another purpose, and the times of its use.
#[derive(Clone, Debug)]
pub struct Lender {
    /// Size in bytes.
    pub size: usize,
    /// Intervals (first and last step) in which all of it is in use.
    pub busy: Vec<(u32, u32)>,
}

/// Offsets of all items and the total size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// Offset of each item.
    pub offsets: Vec<usize>,
    /// Size in bytes of the allocation.
    pub size: usize,
}

/// Maximum number of items for `n^2` packing. Larger lists are only packed in time order, which takes `n log n` steps.
pub const MAX_QUADRATIC: usize = 8192;

/// Packs all items.
pub fn pack(items: &[Item]) -> Result<Packing> {
    items.iter().try_fold(0usize, |sum, i| sum.checked_add(i.size)).filter(|&s| s <= isize::MAX as usize).ok_or_else(
        || Error::resource_exhausted("the program's temporary values have more bytes than can be addressed"),
    )?;
    let by_time = pack_by_time(items);
    if items.len() > MAX_QUADRATIC {
        return Ok(by_time);
    }
    let mut order = by_size(items);
    let by_size = pack_in_order(items, &order);
    let mut last = by_size.clone();
    let mut best = if by_size.size <= by_time.size { by_size } else { by_time };
    if items.len() > MAX_IMPROVED {
        return Ok(best);
    }
    let least = most_at_once(items);
    for _ in 0..IMPROVEMENTS {
        if best.size <= least {
            break;
        }
        // Items that end at the top found all gaps occupied, so place them first now. Sorting is stable.
        order.sort_by_key(|&i| items[i].size == 0 || last.offsets[i] + items[i].size < last.size);
        last = pack_in_order(items, &order);
        if last.size < best.size {
            best = last.clone();
        }
    }
    Ok(best)
}

/// Number of times that items are packed again.
const IMPROVEMENTS: usize = 8;
/// Maximum number of items that are packed again; each repetition takes `n^2` steps.
pub const MAX_IMPROVED: usize = 256;

/// Returns the peak sum of live items, a lower bound for any packing.
pub fn most_at_once(items: &[Item]) -> usize {
    let mut changes: Vec<(u32, bool, usize)> = Vec::with_capacity(2 * items.len());
    for item in items {
        changes.extend([(item.first, true, item.size), (item.last.saturating_add(1), false, item.size)]);
    }
    // At equal times, ends come first.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, begins, size) in changes {
        now = if begins { now + size } else { now - size };
        most = most.max(now);
    }
    most
}

/// A lender and an offset in it for each item that was placed there.
pub type Lent = Vec<Option<(usize, usize)>>;

/// Places items in lenders where they fit, and packs the rest. In a chain of values, every second one fits into a
/// result. The chain's end determines whether the even or the odd ones leave less memory, so that both ends are tried
/// as the start.
pub fn lend_and_pack(items: &[Item], lenders: &[Lender]) -> Result<(Lent, Packing)> {
    let rest = |lent: &Lent| -> Vec<Item> {
        items.iter().zip(lent).filter(|(_, lent)| lent.is_none()).map(|(item, _)| *item).collect()
    };
    let from_start = lend(items, lenders, |item| i64::from(item.first));
    let packed = pack(&rest(&from_start))?;
    if from_start.iter().all(Option::is_none) || packed.size == 0 {
        return Ok((from_start, packed));
    }
    let from_end = lend(items, lenders, |item| -i64::from(item.last));
    let other = pack(&rest(&from_end))?;
    Ok(if other.size < packed.size { (from_end, other) } else { (from_start, packed) })
}

/// Returns a lender and an offset for each item; `None` if no lender has room. Large items come first; among equal
/// sizes, `rank` decides. Each item is placed in the smallest lender with room, which leaves the most for later items.
pub fn lend(items: &[Item], lenders: &[Lender], rank: impl Fn(&Item) -> i64) -> Lent {
    let mut order: Vec<usize> = (0..items.len()).filter(|&i| items[i].size > 0).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(items[i].size), rank(&items[i]), i));
    // Quadratic: each item is compared with all placed ones. The smallest items hardly matter.
    order.truncate(MAX_QUADRATIC);
    let mut by_size: Vec<usize> = (0..lenders.len()).collect();
    by_size.sort_by_key(|&l| (lenders[l].size, l));
    let mut placed = vec![Placed::default(); lenders.len()];
    let mut places = vec![None; items.len()];
    for i in order {
        let item = items[i];
        let free = |&l: &usize| item.used <= lenders[l].size && !lenders[l].busy.iter().any(|&time| item.meets(time));
        let found = by_size.iter().copied().filter(free).find_map(|l| {
            let offset = placed[l].best_fit(items, item);
            (offset + item.used <= lenders[l].size).then_some((l, offset))
        });
        if let Some((lender, offset)) = found {
            placed[lender].0.insert((offset, i));
        }
        places[i] = found;
    }
    places
}

/// Placed items as (offset, index) in ascending order.
#[derive(Clone, Default)]
struct Placed(BTreeSet<(usize, usize)>);

impl Placed {
    /// Returns the offset of the smallest sufficient gap between items that are live at the same time, or the offset
    /// above all of them.
    fn best_fit(&self, items: &[Item], item: Item) -> usize {
        let mut best: Option<(usize, usize)> = None;
        let mut top = 0;
        for &(offset, other) in &self.0 {
            let other = items[other];
            if !item.meets((other.first, other.last)) {
                continue;
            }
            let gap = offset.saturating_sub(top);
            if gap >= item.size && offset >= top && best.is_none_or(|(size, _)| gap < size) {
                best = Some((gap, top));
            }
            top = top.max(offset + other.size);
        }
        best.map_or(top, |(_, at)| at)
    }
}

/// Returns the item indices by decreasing size.
pub fn by_size(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(items[i].size), items[i].first, i));
    order
}

/// Packs items in the given order, each into the smallest gap between items that are live at the same time.
pub fn pack_in_order(items: &[Item], order: &[usize]) -> Packing {
    let mut packing = Packing { offsets: vec![0; items.len()], size: 0 };
    let mut placed = Placed::default();
    for &i in order {
        let offset = placed.best_fit(items, items[i]);
        packing.offsets[i] = offset;
        packing.size = packing.size.max(offset + items[i].size);
        if items[i].size > 0 {
            placed.0.insert((offset, i));
        }
    }
    packing
}

/// Packs items in time order, each into the smallest free block, like a heap allocator.
pub fn pack_by_time(items: &[Item]) -> Packing {
    let mut starts: Vec<usize> = (0..items.len()).collect();
    starts.sort_by_key(|&i| (items[i].first, std::cmp::Reverse(items[i].size), i));
    let mut ends: Vec<usize> = starts.clone();
    ends.sort_by_key(|&i| (items[i].last, i));
    let mut heap = Heap::default();
    let mut packing = Packing { offsets: vec![0; items.len()], size: 0 };
    let mut ended = ends.into_iter().peekable();
    for i in starts {
        while let Some(over) = ended.next_if(|&e| items[e].last < items[i].first) {
            heap.free(packing.offsets[over], items[over].size);
        }
        packing.offsets[i] = heap.allocate(items[i].size);
    }
    packing.size = heap.top;
    packing
}

/// Free blocks below `top`; adjacent blocks are merged.
#[derive(Default)]
struct Heap {
    top: usize,
    by_offset: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
}

impl Heap {
    fn allocate(&mut self, size: usize) -> usize {
        if size == 0 {
            return 0;
        }
        if let Some(&(block, offset)) = self.by_size.range((size, 0)..).next() {
            self.remove(offset, block);
            self.add(offset + size, block - size);
            return offset;
        }
        // A free block at the top only needs to grow by the difference.
        let offset = match self.by_offset.last_key_value() {
            Some((&offset, &block)) if offset + block == self.top => {
                self.remove(offset, block);
                offset
            }
            _ => self.top,
        };
        self.top = offset + size;
        offset
    }

    fn free(&mut self, mut offset: usize, mut size: usize) {
        if size == 0 {
            return;
        }
        if let Some((&before, &block)) = self.by_offset.range(..offset).next_back()
            && before + block == offset
        {
            self.remove(before, block);
            (offset, size) = (before, block + size);
        }
        if let Some(&block) = self.by_offset.get(&(offset + size)) {
            self.remove(offset + size, block);
            size += block;
        }
        self.add(offset, size);
    }

    fn add(&mut self, offset: usize, size: usize) {
        if size > 0 {
            self.by_offset.insert(offset, size);
            self.by_size.insert((size, offset));
        }
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}
