//! Expansion: rewrites operations as others that every target has, one pass per file.
//!
//! An expansion computes the evaluator's result for the operation itself, up to rounding where the pass documents it.

mod allow_tf32;
mod counted;
mod erf;
mod expand_batch_norms;
mod expand_bit_generators;
mod expand_bitcast_converts;
mod expand_cholesky;
mod expand_clamps;
pub(crate) mod expand_ffts;
mod expand_functions;
mod expand_ragged_dots;
mod expand_rng;
mod expand_scaled_dots;
mod expand_scans;
mod expand_select_and_scatter;
mod expand_stochastic_converts;
mod expand_top_k;
mod expand_triangular_solves;
mod formulas;
mod matrix;
mod normalize_floats;
mod philox;
mod random_words;
mod threefry;
mod unify_convolution_types;
mod unify_dot_types;
mod widen_linalg;

pub use allow_tf32::AllowTf32;
pub use expand_batch_norms::ExpandBatchNorms;
pub use expand_bit_generators::ExpandBitGenerators;
pub use expand_bitcast_converts::ExpandBitcastConverts;
pub(crate) use expand_bitcast_converts::pattern_type;
pub use expand_cholesky::ExpandCholesky;
pub use expand_clamps::ExpandClamps;
pub use expand_ffts::ExpandFfts;
pub use expand_functions::ExpandFunctions;
pub use expand_ragged_dots::ExpandRaggedDots;
pub use expand_rng::ExpandRng;
pub use expand_scaled_dots::ExpandScaledDots;
pub use expand_scans::ExpandScans;
pub use expand_select_and_scatter::ExpandSelectAndScatter;
pub use expand_stochastic_converts::ExpandStochasticConverts;
pub use expand_top_k::ExpandTopK;
pub use expand_triangular_solves::ExpandTriangularSolves;
pub use normalize_floats::NormalizeFloats;
pub use unify_convolution_types::UnifyConvolutionTypes;
pub use unify_dot_types::UnifyDotTypes;
pub use widen_linalg::WidenLinalg;

use std::collections::BTreeMap;

use xla_hlo::{Computation, ElementType, InstrId, Module, Opcode, Result};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::is_static;
use crate::rewrite::replace::replace_each;
use crate::{Pass, PassContext};

/// Replaces each instruction with this opcode if the target lacks it. Dynamic sizes must be eliminated before.
fn expand_lacking(
    pass: &dyn Pass,
    opcode: Opcode,
    module: &mut Module,
    cx: &PassContext<'_>,
    expand: impl Fn(&mut Inserter<'_>, InstrId) -> Result<InstrId>,
) -> Result<()> {
    if !cx.profile().lacks.contains(&opcode) {
        return Ok(());
    }
    replace_each(pass, module, cx, |graph, id| graph[id].opcode() == opcode && is_static(graph, id), expand)
}

/// Whether operand 0 is a nonempty batch of matrices with at most the number of rows in `own` for its element type.
fn is_small_matrix(graph: &Computation, id: InstrId, own: &BTreeMap<ElementType, usize>) -> bool {
    let Some(a) = graph[graph[id].operand(0)].shape().as_array() else { return false };
    let fits = a.dims().last().zip(own.get(&a.element_type())).is_some_and(|(n, most)| n <= most);
    fits && graph[id].shape().as_array().is_some_and(|result| result.element_count() > 0)
}

/// Returns the element type in which an expansion computes with arrays of type `ty`: `f32` for narrower floats.
fn computed_in(ty: ElementType) -> ElementType {
    if ty.is_float() && ty.bit_width() < 32 { ElementType::F32 } else { ty }
}
