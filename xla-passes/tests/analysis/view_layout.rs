//! Tests of layered drawings of graphs.

use xla_passes::internals::layout::{LayeredGraph, Layout, isotonic, layout};

/// Checks that nodes of a layer do not overlap, operands are above readers, and lines have a bend per layer in
/// between.
fn check(graph: &LayeredGraph) -> Layout {
    let layout = layout(graph);
    let mut rows: std::collections::BTreeMap<usize, Vec<usize>> = Default::default();
    for (node, &layer) in layout.layers.iter().enumerate() {
        rows.entry(layer).or_default().push(node);
        assert!(graph.operands[node].iter().all(|&o| layout.layers[o] < layer));
    }
    for mut row in rows.into_values() {
        row.sort_by(|&a, &b| layout.x[a].total_cmp(&layout.x[b]));
        for pair in row.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let apart = (graph.widths[a] + graph.widths[b]) / 2.0;
            assert!(layout.x[b] - layout.x[a] >= apart, "{a} and {b} overlap");
        }
    }
    for line in &layout.lines {
        assert_eq!(line.bends.len() + 1, layout.layers[line.to] - layout.layers[line.from]);
    }
    layout
}

#[test]
fn isotonic_values_are_the_nearest() {
    let wishes = [(1.0, 1.0), (3.0, 1.0), (2.0, 1.0), (2.0, 2.0), (5.0, 1.0)];
    assert_eq!(isotonic(&wishes), [1.0, 2.25, 2.25, 2.25, 5.0]);
    assert_eq!(isotonic(&[]), [] as [f64; 0]);
}

#[test]
fn a_diamond_is_symmetric() {
    let operands = vec![vec![], vec![0], vec![0], vec![1, 2]];
    let layout = check(&LayeredGraph { widths: vec![40.0; 4], operands });
    assert_eq!(layout.layers, [0, 1, 1, 2]);
    assert!((layout.x[0] - layout.x[3]).abs() < 1.0 && (layout.x[1] + layout.x[2] - 2.0 * layout.x[0]).abs() < 1.0);
}

#[test]
fn what_reads_nothing_goes_down_to_its_reader() {
    // A chain of five nodes, and a constant that its last node reads through a broadcast.
    let operands = vec![vec![], vec![0], vec![1], vec![2], vec![], vec![4], vec![3, 5]];
    let layout = check(&LayeredGraph { widths: vec![40.0; 7], operands });
    assert_eq!(layout.layers, [0, 1, 2, 3, 2, 3, 4]);
}

#[test]
fn long_lines_are_not_drawn() {
    let chain = 40;
    let mut operands: Vec<Vec<usize>> = (0..chain).map(|i| if i == 0 { vec![] } else { vec![i - 1] }).collect();
    operands.push(vec![0, chain - 1]);
    let layout = check(&LayeredGraph { widths: vec![40.0; chain + 1], operands });
    assert_eq!(layout.lines.len(), chain);
}

#[test]
fn nothing_is_drawn_as_nothing() {
    assert_eq!(check(&LayeredGraph::default()).width, 0.0);
}

#[test]
fn large_graphs_are_quick() {
    // Each node reads a few of the preceding ones: a program of 100,000 instructions.
    let mut random = 1u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let count = 100_000;
    let operands: Vec<Vec<usize>> = (0..count)
        .map(|i: usize| {
            let mut operands: Vec<usize> = (0..next(4)).map(|_| i.saturating_sub(1 + next(30))).collect();
            operands.retain(|&o| o < i);
            operands.sort_unstable();
            operands.dedup();
            operands
        })
        .collect();
    let start = std::time::Instant::now();
    check(&LayeredGraph { widths: vec![60.0; count], operands });
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
