//! Engines that compute a graph, their numerical notes, and the heuristics that propose them.
//!
//! Engines whose notes warn of a deviation are proposed first, and deviate as the notes say. So a program that takes
//! them without allowing the deviation gets wrong results.

use super::rules::{ConvolutionKind, Graph, Step};
use crate::element::Element;

/// `cudnnBackendNumericalNote_t`.
const TENSOR_CORE: u32 = 0;
const DOWN_CONVERT_INPUTS: u32 = 1;
const REDUCED_PRECISION_REDUCTION: u32 = 2;
const NONDETERMINISTIC: u32 = 4;
const WINOGRAD: u32 = 5;
const STRICT_NAN_PROP: u32 = 9;

/// Workspace sizes are multiples of this.
const UNIT: usize = 256;

/// Method to compute a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// Turns all results to NaN if one operand is not finite.
    Winograd,
    /// Rounds f32 operands to f16.
    Narrowed,
    /// Rounds sums to the precision of bf16.
    ShortSums,
    /// Changes the order of sums in each call.
    Atomic,
    /// Uses tensor cores, which round f32 operands to TF32.
    TensorCores,
    /// Computes in tiles, with a workspace; its `relu` turns NaN into 0.
    Tiles,
    /// Has no deviation.
    Direct,
}

impl Engine {
    /// Returns the numerical notes.
    pub fn notes(self) -> &'static [u32] {
        match self {
            Engine::Winograd => &[WINOGRAD, STRICT_NAN_PROP],
            Engine::Narrowed => &[TENSOR_CORE, DOWN_CONVERT_INPUTS, STRICT_NAN_PROP],
            Engine::ShortSums => &[REDUCED_PRECISION_REDUCTION, STRICT_NAN_PROP],
            Engine::Atomic => &[NONDETERMINISTIC, STRICT_NAN_PROP],
            Engine::TensorCores => &[TENSOR_CORE, STRICT_NAN_PROP],
            Engine::Tiles => &[],
            Engine::Direct => &[STRICT_NAN_PROP],
        }
    }

    /// Whether the engine supports a graph on a GPU of a compute capability.
    fn takes(self, graph: &Graph, capability: u32) -> bool {
        let convolution = &graph.convolution;
        let element = convolution.input.element;
        let is_plain = convolution.operation.dilation.iter().all(|&dilation| dilation == 1);
        let is_aligned = graph.tensors().all(|tensor| tensor.is_virtual || tensor.alignment >= 16);
        match self {
            Engine::Winograd => is_plain && convolution.kind == ConvolutionKind::Forward && element != Element::F64,
            Engine::Narrowed => is_aligned && element == Element::F32,
            Engine::ShortSums => is_aligned && element != Element::F64,
            Engine::Atomic => convolution.kind != ConvolutionKind::Forward,
            Engine::TensorCores => is_aligned && element != Element::F64 && capability >= 80,
            Engine::Tiles => is_plain && graph.steps.iter().all(|step| *step != Step::Gelu),
            Engine::Direct => true,
        }
    }

    /// Returns the bytes of workspace.
    pub fn workspace(self, graph: &Graph) -> usize {
        let filter: usize = graph.convolution.filter.sizes.iter().product();
        let bytes = match self {
            Engine::Tiles | Engine::TensorCores => filter * 4,
            Engine::Winograd => filter * 8,
            Engine::Narrowed | Engine::ShortSums | Engine::Atomic | Engine::Direct => 0,
        };
        bytes.next_multiple_of(UNIT)
    }
}

/// `cudnnBackendHeurMode_t`.
pub(super) const HEURISTIC_B: i64 = 1;
pub(super) const HEURISTIC_FALLBACK: i64 = 2;
pub(super) const HEURISTIC_A: i64 = 3;

/// Returns the engines for a graph in a heuristic mode, the best first. Dilated convolutions need mode B and cannot
/// have an epilogue; grouped convolutions need the fallback mode.
pub(super) fn proposed(graph: &Graph, mode: i64, capability: u32) -> Vec<Engine> {
    use Engine::{Atomic, Direct, Narrowed, ShortSums, TensorCores, Tiles, Winograd};
    let convolution = &graph.convolution;
    let lies = |channels_last: bool| {
        [&convolution.input, &convolution.filter, &convolution.output].iter().all(|tensor| tensor.lies(channels_last))
    };
    let is_known = lies(false) || (lies(true) && convolution.input.element != Element::F64);
    let has_holes = convolution.operation.dilation.iter().any(|&dilation| dilation > 1);
    let is_alone = convolution.input.element == Element::F64 || has_holes;
    if !is_known || (is_alone && !graph.steps.is_empty()) {
        return Vec::new();
    }
    let engines: &[Engine] = match mode {
        HEURISTIC_A if has_holes || convolution.groups() > 1 => &[Winograd, Atomic],
        HEURISTIC_A => &[Winograd, Narrowed, ShortSums, Atomic, TensorCores, Tiles, Direct],
        HEURISTIC_B if convolution.groups() > 1 => &[Winograd],
        HEURISTIC_B => &[Winograd, TensorCores, Direct],
        _ => &[Direct],
    };
    engines.iter().copied().filter(|engine| engine.takes(graph, capability)).collect()
}
