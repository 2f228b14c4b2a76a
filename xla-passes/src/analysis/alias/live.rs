//! Live ranges: intervals on a timeline whose control flow is nested into regions.

/// Position of a step in the linear order of a whole program.
pub(crate) type Time = u32;

/// A straight-line sequence of steps: the entry, a loop's condition or body, or a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionId(u32);

/// A loop or conditional: it is placed in a region and runs regions of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockId(u32);

#[derive(Clone, Debug)]
struct Region {
    /// The block that this region belongs to; `None` for the entry.
    block: Option<BlockId>,
    start: Time,
    end: Time,
}

#[derive(Clone, Debug)]
struct LiveBlock {
    /// The region that contains the block.
    region: RegionId,
    start: Time,
    end: Time,
    is_loop: bool,
    /// Regions of the block: condition and body, or branches.
    regions: Vec<RegionId>,
}

/// A closed interval of times.
pub(crate) type Interval = (Time, Time);

/// Nesting of a program's regions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    blocks: Vec<LiveBlock>,
}

/// Time and region of an instruction that reads a value.
pub(crate) type Use = (Time, RegionId);

impl Regions {
    /// Opens the region of the entry computation.
    pub(crate) fn open_entry(&mut self) -> RegionId {
        self.push_region(None, 0)
    }

    /// Returns the region of the entry computation. It must be open.
    pub(crate) fn entry(&self) -> RegionId {
        RegionId(0)
    }

    /// Opens a block inside `region`.
    pub(crate) fn open_block(&mut self, region: RegionId, start: Time, is_loop: bool) -> BlockId {
        self.blocks.push(LiveBlock { region, start, end: start, is_loop, regions: Vec::new() });
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// Opens the next region of a block.
    pub(crate) fn open_region(&mut self, block: BlockId, start: Time) -> RegionId {
        let id = self.push_region(Some(block), start);
        self.blocks[block.0 as usize].regions.push(id);
        id
    }

    fn push_region(&mut self, block: Option<BlockId>, start: Time) -> RegionId {
        self.regions.push(Region { block, start, end: start });
        RegionId(self.regions.len() as u32 - 1)
    }

    /// Closes a region after its last step.
    pub(crate) fn close_region(&mut self, region: RegionId, end: Time) {
        self.regions[region.0 as usize].end = end;
    }

    /// Closes a block at the step that makes its results available.
    pub(crate) fn close_block(&mut self, block: BlockId, end: Time) {
        self.blocks[block.0 as usize].end = end;
    }

    fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.0 as usize]
    }

    fn block(&self, id: BlockId) -> &LiveBlock {
        &self.blocks[id.0 as usize]
    }

    /// Returns the outermost block inside `outer` that contains `inner`; `None` if both are the same region.
    fn block_around(&self, outer: RegionId, mut inner: RegionId) -> Option<&LiveBlock> {
        let mut found = None;
        while inner != outer {
            let block = self.block(self.region(inner).block?);
            found = Some(block);
            inner = block.region;
        }
        found
    }

    /// Appends the live range of a value that is defined at `from` in `region`. `uses` are in time order, in that
    /// region and the regions nested in it.
    ///
    /// A value that is used inside a loop but defined outside of it is live until the loop ends, since iterations
    /// repeat. A value whose last uses are in branches is live in each branch only up to the last use in that branch.
    pub(crate) fn live(&self, region: RegionId, from: Time, uses: &[Use], out: &mut Vec<Interval>) {
        let Some(&(last, used_in)) = uses.last() else { return };
        let Some(block) = self.block_around(region, used_in) else {
            out.push((from, last));
            return;
        };
        if block.is_loop {
            out.push((from, block.end));
            return;
        }
        out.push((from, block.start));
        for &branch in &block.regions {
            let Region { start, end, .. } = *self.region(branch);
            self.live(branch, start, within(uses, start, end), out);
        }
    }

    /// Appends the live range of a loop's state or of a conditional's result.
    ///
    /// Loop state is live from the start to the end of the condition, after which it may become the result. In the
    /// body, it is live up to its last use there; then the values for the next iteration may take its place. The result
    /// is live from the block's end.
    pub(crate) fn live_join(&self, block: BlockId, uses: &[Use], out: &mut Vec<Interval>) {
        let block = self.block(block);
        let after = &uses[uses.partition_point(|u| u.0 < block.end)..];
        if let (true, [condition, body]) = (block.is_loop, &block.regions[..]) {
            out.push((block.start, self.region(*condition).end));
            let Region { start, end, .. } = *self.region(*body);
            self.live(*body, start, within(uses, start, end), out);
        } else if after.is_empty() {
            out.push((block.end, block.end));
        }
        self.live(block.region, block.end, after, out);
    }
}

/// Returns the uses in the closed interval from `start` to `end`.
fn within(uses: &[Use], start: Time, end: Time) -> &[Use] {
    let first = uses.partition_point(|u| u.0 < start);
    let last = uses.partition_point(|u| u.0 <= end);
    &uses[first..last.max(first)]
}
