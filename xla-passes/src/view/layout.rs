//! Layered drawing of a directed acyclic graph: Sugiyama's method, adapted to programs of thousands of instructions.
//!
//! 1. Layers: each node is placed one layer below its lowest operand. Nodes without operands are placed directly above
//!    their first reader.
//! 2. A line across many layers is replaced by a word at the reader. This keeps the drawing legible and the work
//!    linear: a program's graph has few relevant long edges, and many that would cross everything.
//! 3. Order within layers: barycenters, in sweeps down and up.
//! 4. Positions within layers: each node should be centered among its neighbors. The nearest positions that keep order
//!    and distance are an isotonic regression, solved exactly by pooling adjacent violators.

/// Maximum number of layers that a line crosses; a longer line becomes a word at the reader.
const MAX_SPAN: usize = 10;

/// Number of readers above which a value is only drawn to readers in the next few layers.
const MANY_READERS: usize = 12;

/// Maximum span, in layers, of lines from a value with many readers.
const SHORT_SPAN: usize = 3;

/// Maximum number of lines from a node's operands.
const MAX_LINES: usize = 12;

const ORDER_SWEEPS: usize = 12;
const PLACE_SWEEPS: usize = 10;

/// Distance between neighbors in a layer.
const GAP: f64 = 22.0;

/// Weight of the straightness of a line between bends, relative to the weight at a node.
const BEND_WEIGHT: f64 = 4.0;

/// A graph to draw: operands have smaller indices than their readers.
#[derive(Debug, Default)]
pub struct LayeredGraph {
    /// Widths of the nodes.
    pub widths: Vec<f64>,
    /// Operands of each node, all of smaller index, without duplicates.
    pub operands: Vec<Vec<usize>>,
}

/// Positions of nodes and lines.
#[derive(Debug, Default)]
pub struct Layout {
    /// Layer of each node; 0 is at the top.
    pub layers: Vec<usize>,
    /// Center of each node.
    pub x: Vec<f64>,
    /// Lines from operands to readers.
    pub lines: Vec<LayeredEdge>,
    /// Width of the drawing.
    pub width: f64,
}

/// A line from an operand down to a reader.
#[derive(Debug)]
pub struct LayeredEdge {
    /// The operand.
    pub from: usize,
    /// The reader.
    pub to: usize,
    /// Positions in the layers in between.
    pub bends: Vec<f64>,
}

/// Computes the layout of a graph.
pub fn layout(graph: &LayeredGraph) -> Layout {
    let layers = layers(graph);
    let mut drawing = Drawing::new(graph, &layers);
    drawing.order();
    drawing.place();
    drawing.finish(layers)
}

/// Computes the layer of each node.
fn layers(graph: &LayeredGraph) -> Vec<usize> {
    let count = graph.operands.len();
    let mut layers = vec![0; count];
    let mut readers = vec![0usize; count];
    let mut first_reader = vec![usize::MAX; count];
    for (node, operands) in graph.operands.iter().enumerate() {
        layers[node] = operands.iter().map(|&o| layers[o] + 1).max().unwrap_or(0);
        operands.iter().for_each(|&o| readers[o] += 1);
    }
    // Nodes without operands can be in any layer above their readers, and so can a single reader of such a value.
    let mut movable = vec![false; count];
    for (node, operands) in graph.operands.iter().enumerate() {
        movable[node] = match operands[..] {
            [] => true,
            [operand] => movable[operand] && readers[operand] == 1,
            _ => false,
        };
    }
    for node in (0..count).rev() {
        if movable[node] && first_reader[node] != usize::MAX {
            layers[node] = first_reader[node] - 1;
        }
        for &operand in &graph.operands[node] {
            first_reader[operand] = first_reader[operand].min(layers[node]);
        }
    }
    layers
}

/// A node, or the point where a line crosses a layer.
#[derive(Clone, Debug, Default)]
struct Item {
    layer: usize,
    width: f64,
    bend: bool,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Drawing {
    /// Nodes in their order, then bends.
    items: Vec<Item>,
    rows: Vec<Vec<usize>>,
    x: Vec<f64>,
    /// Lines, each with the index of its first bend.
    lines: Vec<(usize, usize, usize)>,
    nodes: usize,
}

impl Drawing {
    fn new(graph: &LayeredGraph, layers: &[usize]) -> Drawing {
        let node = |(&width, &layer): (&f64, &usize)| Item { layer, width, ..Item::default() };
        let items: Vec<Item> = graph.widths.iter().zip(layers).map(node).collect();
        let nodes = items.len();
        let mut drawing = Drawing { items, rows: Vec::new(), x: Vec::new(), lines: Vec::new(), nodes };
        let mut readers = vec![0usize; nodes];
        graph.operands.iter().flatten().for_each(|&o| readers[o] += 1);
        for (to, operands) in graph.operands.iter().enumerate() {
            let span = |&from: &usize| layers[to] - layers[from];
            let near = |from: &usize| span(from) <= if readers[*from] > MANY_READERS { SHORT_SPAN } else { MAX_SPAN };
            let mut near: Vec<usize> = operands.iter().copied().filter(near).collect();
            near.sort_by_key(span);
            near.truncate(MAX_LINES);
            near.into_iter().for_each(|from| drawing.connect(from, to));
        }
        let depth = layers.iter().max().map_or(0, |&l| l + 1);
        drawing.rows = vec![Vec::new(); depth];
        for id in drawing.first_order() {
            drawing.rows[drawing.items[id].layer].push(id);
        }
        drawing
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.lines.push((from, to, self.items.len()));
        let mut last = from;
        for layer in self.items[from].layer + 1..self.items[to].layer {
            let bend = self.items.len();
            self.items.push(Item { layer, bend: true, ..Item::default() });
            self.join(last, bend);
            last = bend;
        }
        self.join(last, to);
    }

    fn join(&mut self, above: usize, below: usize) {
        self.items[above].below.push(below);
        self.items[below].above.push(above);
    }

    /// Returns all items in depth-first order from nodes without readers to their operands, so that related nodes are
    /// close.
    fn first_order(&self) -> Vec<usize> {
        let mut seen = vec![false; self.items.len()];
        let mut order = Vec::with_capacity(self.items.len());
        for start in (0..self.nodes).rev() {
            let mut stack = vec![start];
            while let Some(id) = stack.pop() {
                if !std::mem::replace(&mut seen[id], true) {
                    order.push(id);
                    stack.extend(self.items[id].above.iter().rev());
                }
            }
        }
        order
    }

    /// Sorts each row by the positions of its neighbors in the previous row, then in the next row, several times.
    fn order(&mut self) {
        let mut place = vec![0.0; self.items.len()];
        let number = |row: &[usize], place: &mut [f64]| {
            let middle = row.len() as f64 / 2.0;
            row.iter().enumerate().for_each(|(i, &id)| place[id] = i as f64 - middle);
        };
        self.rows.iter().for_each(|row| number(row, &mut place));
        for sweep in 0..ORDER_SWEEPS {
            let down = sweep % 2 == 0;
            let depth = self.rows.len();
            for step in 0..depth {
                let layer = if down { step } else { depth - 1 - step };
                let mut row = std::mem::take(&mut self.rows[layer]);
                let wanted: Vec<f64> = row
                    .iter()
                    .map(|&id| {
                        let item = &self.items[id];
                        let neighbours = if down { &item.above } else { &item.below };
                        mean(neighbours.iter().map(|&n| (place[n], 1.0))).unwrap_or(place[id])
                    })
                    .collect();
                let mut sorted: Vec<usize> = (0..row.len()).collect();
                sorted.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
                row = sorted.into_iter().map(|i| row[i]).collect();
                number(&row, &mut place);
                self.rows[layer] = row;
            }
        }
    }

    /// Assigns each item a position near its neighbors that keeps the order of its row.
    fn place(&mut self) {
        self.x = vec![0.0; self.items.len()];
        for row in &self.rows {
            let mut at = 0.0;
            for &id in row {
                self.x[id] = at + self.items[id].width / 2.0;
                at += self.items[id].width + GAP;
            }
            row.iter().for_each(|&id| self.x[id] -= at / 2.0);
        }
        for sweep in 0..PLACE_SWEEPS {
            let depth = self.rows.len();
            for step in 0..depth {
                let layer = if sweep % 2 == 0 { step } else { depth - 1 - step };
                // The last two sweeps use both adjacent rows.
                let (above, below) =
                    (sweep % 2 == 0 || sweep + 2 >= PLACE_SWEEPS, sweep % 2 == 1 || sweep + 2 >= PLACE_SWEEPS);
                self.place_row(layer, above, below);
            }
        }
    }

    fn place_row(&mut self, layer: usize, above: bool, below: bool) {
        let row = &self.rows[layer];
        let Some(&first) = row.first() else { return };
        // Subtracts the distances, so that only the order remains as a constraint.
        let mut offsets = vec![0.0; row.len()];
        let mut wishes = Vec::with_capacity(row.len());
        let mut left = first;
        for (i, &id) in row.iter().enumerate() {
            let item = &self.items[id];
            if i > 0 {
                offsets[i] = offsets[i - 1] + (self.items[left].width + item.width) / 2.0 + GAP;
            }
            left = id;
            let straight = |&n: &usize| (self.x[n], if item.bend && self.items[n].bend { BEND_WEIGHT } else { 1.0 });
            let up = item.above.iter().filter(|_| above).map(straight);
            let down = item.below.iter().filter(|_| below).map(straight);
            let weight: f64 = up.clone().chain(down.clone()).map(|(_, w)| w).sum();
            let wish = mean(up.chain(down)).unwrap_or(self.x[id]);
            wishes.push((wish - offsets[i], if weight > 0.0 { weight } else { 0.1 }));
        }
        for ((&id, offset), x) in row.iter().zip(offsets).zip(isotonic(&wishes)) {
            self.x[id] = x + offset;
        }
    }

    fn finish(self, layers: Vec<usize>) -> Layout {
        let ends = |id: usize| (self.x[id] - self.items[id].width / 2.0, self.x[id] + self.items[id].width / 2.0);
        let left = (0..self.items.len()).map(|id| ends(id).0).fold(f64::INFINITY, f64::min);
        let right = (0..self.items.len()).map(|id| ends(id).1).fold(f64::NEG_INFINITY, f64::max);
        let x: Vec<f64> = self.x.iter().map(|x| x - left).collect();
        let line = |(from, to, first): (usize, usize, usize)| {
            let bends = layers[to].saturating_sub(layers[from] + 1);
            LayeredEdge { from, to, bends: x[first..first + bends].to_vec() }
        };
        let lines = self.lines.iter().copied().map(line).collect();
        let width = if right > left { right - left } else { 0.0 };
        Layout { x: x[..self.nodes].to_vec(), lines, width, layers }
    }
}

/// Returns the weighted mean of values; `None` if there are none.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weight) = values.fold((0.0, 0.0), |(sum, weight), (x, w)| (sum + w * x, weight + w));
    (weight > 0.0).then(|| sum / weight)
}

/// Returns the nearest non-decreasing values to weighted ones, by least squares (pool adjacent violators).
pub fn isotonic(wishes: &[(f64, f64)]) -> Vec<f64> {
    // Mean, weight and number of the pooled values.
    let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(wishes.len());
    for &(value, weight) in wishes {
        let mut pool = (value, weight, 1);
        while let Some(&(mean, w, n)) = pools.last().filter(|last| last.0 > pool.0) {
            pools.pop();
            pool = ((mean * w + pool.0 * pool.1) / (w + pool.1), w + pool.1, n + pool.2);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, _, n)| std::iter::repeat_n(mean, n)).collect()
}
