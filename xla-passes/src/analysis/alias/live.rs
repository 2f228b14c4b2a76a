//! Live ranges: intervals of a timeline in which control flow is folded into regions.

/// A step's position in the linear order of a whole program.
pub(crate) type Time = u32;

/// A straight run of steps: the entry, a loop's condition or body, a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegionId(u32);

/// A loop or a choice of branches: it lies in a region and runs other regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockId(u32);

#[derive(Clone, Debug)]
struct Region {
    /// The block this region belongs to; the entry has none.
    block: Option<BlockId>,
    start: Time,
    end: Time,
}

#[derive(Clone, Debug)]
struct LiveBlock {
    /// Its region.
    region: RegionId,
    start: Time,
    end: Time,
    is_loop: bool,
    /// Condition and body, or branches.
    regions: Vec<RegionId>,
}

/// A closed interval of times.
pub(crate) type Interval = (Time, Time);

/// The nesting of a program's regions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
    blocks: Vec<LiveBlock>,
}

/// A place that reads a value.
pub(crate) type Use = (Time, RegionId);

impl Regions {
    /// Opens the region of the entry computation.
    pub(crate) fn open_entry(&mut self) -> RegionId {
        self.push_region(None, 0)
    }

    /// The region of the entry computation, once it was opened.
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

    /// Ends a region with its last step.
    pub(crate) fn close_region(&mut self, region: RegionId, end: Time) {
        self.regions[region.0 as usize].end = end;
    }

    /// Ends a block with the step at which its results are there.
    pub(crate) fn close_block(&mut self, block: BlockId, end: Time) {
        self.blocks[block.0 as usize].end = end;
    }

    fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.0 as usize]
    }

    fn block(&self, id: BlockId) -> &LiveBlock {
        &self.blocks[id.0 as usize]
    }

    /// The block of `outer` that `inner` lies in; `None` when it is the same region.
    fn block_around(&self, outer: RegionId, mut inner: RegionId) -> Option<&LiveBlock> {
        let mut found = None;
        while inner != outer {
            let block = self.block(self.region(inner).block?);
            found = Some(block);
            inner = block.region;
        }
        found
    }

    /// When a value is needed that is there from `from` on in `region`, for `uses` in time order in that region and the
    /// regions inside it.
    ///
    /// A value used inside a loop it was not made in is needed until the loop ends, since iterations repeat. A value
    /// whose last uses are in branches is needed in each branch only as far as that branch uses it.
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

    /// When the state of a loop, or the result of a choice, is needed.
    ///
    /// State is needed from the start through the condition (after which it may be the result), then in the body as far
    /// as the body uses it: from there on the values for the next iteration may take its place. The result is there
    /// from the block's end on.
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

/// The uses from `start` to `end`.
fn within(uses: &[Use], start: Time, end: Time) -> &[Use] {
    let first = uses.partition_point(|u| u.0 < start);
    let last = uses.partition_point(|u| u.0 <= end);
    &uses[first..last.max(first)]
}
