//! Dots and convolutions as GEMMs: batch, M, N, K, and whether a tiled kernel pays off.
//!
//! `result[batch, m, n] = Σ_k left[batch, m, k] · right[batch, k, n]`, where each of the four is a list of dimensions.
//! M of a convolution is the window positions in all images, and K is the offsets in the window with the input
//! channels: a GEMM whose left operand does not exist in memory (implicit GEMM, as in Chetlur et al., cuDNN, 2014).

use xla_hlo::ops::{Convolution, Dot, DotAlgorithm, DotOperandDims, Family, Op, Precision};
use xla_hlo::{ArrayShape, Computation, ElementKind, ElementType, Error, InstrId, Result};

use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::tma_layout::TmaLayout;
use crate::fused::core::address::strides_of;
use crate::fused::core::addressing::Addressing;
use crate::fused::core::convolution::{Tap, input_index, kernel_index};
use crate::fused::core::reduce::{accumulator, placed};
use crate::fused::loops::affine::{AffineExpr, Index, row_major_strides};
use crate::fused::tuning::matmul::{LEAST_EXTENT, LEAST_WORK};
use crate::mma::OperandType;

/// Dot or convolution as a batch of GEMMs.
pub(crate) struct Matmul<'m> {
    pub id: InstrId,
    /// Left and right operand.
    pub operands: [InstrId; 2],
    contraction: Contraction<'m>,
    /// Extents of the batch dimensions.
    pub batch: Vec<u64>,
    /// Extents of the dimensions of M, and of N.
    pub free: [Vec<u64>; 2],
    /// Extents of the dimensions of K, in loop order.
    pub contracting: Vec<u64>,
    /// Numbers of the dimensions of M and of K in the operation.
    order: [Vec<usize>; 2],
    /// Type of the multiplication: operands are converted to it first, and the result from it.
    pub element_type: ElementType,
    /// Type of the accumulators: fills whole registers.
    pub accumulator_type: ElementType,
    /// Element type of the operands on tensor cores, with f32 accumulators; `None` if tensor cores cannot be used.
    pub operand_type: Option<OperandType>,
    /// Contiguous neighbours of an element of each operand.
    pub neighbours: [Neighbours; 2],
    /// Element types of the operands.
    pub types: [ElementType; 2],
    /// Narrowest known types that represent the operands' elements: of a `convert` to a wider type, its operand's.
    pub exact_types: [ElementType; 2],
    /// Bytes of an element of each operand.
    pub bytes: [u64; 2],
    /// Stride between steps of K, in elements, of operands that are arrays in memory; `None` if it is not constant.
    pub k_strides: [Option<u64>; 2],
    /// TMA layouts of operands that are arrays in memory.
    pub bulk: [Option<TmaLayout>; 2],
}

#[derive(Clone, Copy)]
enum Contraction<'m> {
    Dot(&'m Dot),
    Convolution(&'m Convolution),
}

impl Contraction<'_> {
    /// Whether f32 operands may be rounded to TF32.
    fn allows_tf32(self) -> bool {
        let algorithm = match self {
            Contraction::Dot(dot) => dot.algorithm,
            Contraction::Convolution(op) => op.algorithm,
        };
        algorithm == Some(DotAlgorithm::Tf32Tf32F32)
    }

    /// Returns the algorithm, and whether all operands have the default precision.
    fn precision(self) -> (Option<DotAlgorithm>, bool) {
        let (precision, algorithm) = match self {
            Contraction::Dot(dot) => (&dot.precision, dot.algorithm),
            Contraction::Convolution(op) => (&op.precision, op.algorithm),
        };
        (algorithm, precision.iter().all(|&p| p == Precision::Default))
    }
}

/// One of the two operands of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MatmulSide {
    Left,
    Right,
}

impl MatmulSide {
    pub fn other(self) -> MatmulSide {
        match self {
            MatmulSide::Left => MatmulSide::Right,
            MatmulSide::Right => MatmulSide::Left,
        }
    }
}

/// Contiguous neighbours of an operand's element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub along: Along,
    /// Length of aligned groups of contiguous elements whose coordinates are known to be consecutive; 1 if unknown.
    pub run: u64,
}

/// Direction along which an operand is contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// The last dimension of M, or of N.
    Free,
    /// The last dimension of K.
    K,
}

impl<'m> FusedKernel<'_, 'm> {
    /// Returns the GEMM of a kernel whose strategy requires one.
    pub(crate) fn matmul(&self) -> Result<Matmul<'m>> {
        self.only_matmul().ok_or_else(|| Error::internal("kernel has no matmul, which its strategy requires"))
    }

    /// Returns the only contraction of the kernel, if all other instructions are elementwise functions of its results.
    pub(crate) fn only_matmul(&self) -> Option<Matmul<'m>> {
        let graph = self.graph();
        if self.source.in_place {
            return None;
        }
        let computed = self.computed();
        let is_contraction = |id: &&InstrId| matches!(graph[**id].op(), Op::Dot(_) | Op::Convolution(_));
        let mut contractions = computed.iter().filter(is_contraction);
        let (Some(&id), None) = (contractions.next(), contractions.next()) else { return None };
        let matmul = self.matmul_of(id)?;
        let all_alike = self.outputs.iter().all(|output| output.shape.dims() == self.dims);
        let cheap = |&id: &InstrId| !matches!(graph[id].op(), Op::Reduce(_) | Op::ReduceWindow(_));
        (all_alike && computed.iter().all(cheap) && self.is_elementwise_of(id, &computed)).then_some(matmul)
    }

    /// Returns a contraction of the kernel as a GEMM.
    pub(crate) fn matmul_of(&self, id: InstrId) -> Option<Matmul<'m>> {
        let graph = self.graph();
        let mut matmul = Matmul::new(graph, id)?;
        for side in [MatmulSide::Left, MatmulSide::Right] {
            let is_input = self.source.inputs.contains(&matmul.operands[side as usize]);
            matmul.k_strides[side as usize] = is_input.then(|| matmul.k_stride(graph, side)).flatten();
            matmul.bulk[side as usize] = is_input.then(|| matmul.tma_layout(graph, side)).flatten();
        }
        Some(matmul)
    }

    /// Whether all instructions that depend on `id` are elementwise.
    fn is_elementwise_of(&self, id: InstrId, computed: &[InstrId]) -> bool {
        let graph = self.graph();
        let dims = |id: InstrId| graph[id].shape().as_array().map(|a| a.dims());
        let mut reached = vec![id];
        let mut next = 0;
        while let Some(&from) = reached.get(next) {
            next += 1;
            for &user in computed.iter().filter(|&&user| graph[user].operands().contains(&from)) {
                let op = graph[user].op();
                let keeps = match op {
                    Op::Tuple(_) => user == self.source.root,
                    Op::Copy(_) | Op::Map(_) => dims(user) == dims(id),
                    _ => op.opcode().family() == Family::Elementwise && dims(user) == dims(id),
                };
                if !keeps {
                    return false;
                }
                if !reached.contains(&user) {
                    reached.push(user);
                }
            }
        }
        true
    }
}

impl<'m> Matmul<'m> {
    pub fn new(graph: &'m Computation, id: InstrId) -> Option<Matmul<'m>> {
        let array = |id: InstrId| graph[id].shape().as_array();
        let operands = [*graph[id].operands().first()?, *graph[id].operands().get(1)?];
        let (left, right, result) = (array(operands[0])?, array(operands[1])?, array(id)?);
        let extents = |of: &[usize], dims: &[usize]| dims.iter().map(|&d| of[d] as u64).collect::<Vec<u64>>();
        let (contraction, batch, free, sums, element_type, neighbours) = match graph[id].op() {
            Op::Dot(dot) => {
                let [l, r] = dot.dims.operands([left.rank(), right.rank()]);
                let neighbours = [dot_neighbours(left.dims(), &l), dot_neighbours(right.dims(), &r)];
                let batch = extents(left.dims(), l.batch);
                let free = [extents(left.dims(), &l.free), extents(right.dims(), &r.free)];
                let sums = extents(left.dims(), l.contracting);
                let ty = accumulator(result.element_type());
                (Contraction::Dot(dot), batch, free, sums, ty, neighbours)
            }
            Op::Convolution(op) => {
                let d = &op.dims;
                let [channels, features] =
                    [d.kernel_input_feature, d.kernel_output_feature].map(|d| right.dims()[d] as u64);
                let groups = op.groups() as u64;
                let mut rows = extents(result.dims(), &[d.output_batch]);
                rows.extend(extents(result.dims(), &d.output_spatial));
                let mut sums = extents(right.dims(), &d.kernel_spatial);
                sums.push(channels);
                let ty = Convolution::sum_type(left.element_type(), right.element_type(), result.element_type());
                let neighbours = convolution_neighbours(op, [left.rank(), right.rank()], [channels, features / groups]);
                (Contraction::Convolution(op), vec![groups], [rows, vec![features / groups]], sums, ty, neighbours)
            }
            _ => return None,
        };
        let accumulator_type = in_registers(element_type);
        let ty = left.element_type();
        let alike = ty == right.element_type()
            && accumulator_type == ElementType::F32
            && (element_type == ty || element_type == accumulator_type);
        let operand_type = match ty {
            _ if !alike => None,
            ElementType::F32 => contraction.allows_tf32().then_some(OperandType::Tf32),
            narrow => OperandType::of(narrow),
        };
        let types = [left, right].map(ArrayShape::element_type);
        let bytes = types.map(|ty| ty.byte_width() as u64);
        let order = [free[0].len(), sums.len()].map(|count| (0..count).collect());
        Some(Matmul {
            id,
            operands,
            contraction,
            batch,
            free,
            contracting: sums,
            order,
            element_type,
            accumulator_type,
            operand_type,
            neighbours,
            types,
            exact_types: operands.map(|id| exact_type(graph, id)),
            bytes,
            k_strides: [None; 2],
            bulk: [None, None],
        })
    }

    /// Returns the stride between steps of K in a dot's operand, if the operand is row-major and the stride is
    /// constant.
    fn k_stride(&self, graph: &Computation, side: MatmulSide) -> Option<u64> {
        let Contraction::Dot(dot) = self.contraction else { return None };
        let array = graph[self.operands[side as usize]].shape().as_array()?;
        let contracting = match side {
            MatmulSide::Left => dot.dims.lhs(array.rank()).contracting,
            MatmulSide::Right => dot.dims.rhs(array.rank()).contracting,
        };
        let strides = strides_of(array);
        let (&last, outer) = contracting.split_last()?;
        let mut expected = strides[last] * array.dims()[last];
        for &d in outer.iter().rev() {
            if strides[d] != expected {
                return None;
            }
            expected *= array.dims()[d];
        }
        (strides == row_major_strides(array.dims())).then_some(strides[last] as u64)
    }

    /// Returns the TMA layout of a dot's operand.
    fn tma_layout(&self, graph: &Computation, side: MatmulSide) -> Option<TmaLayout> {
        let Contraction::Dot(dot) = self.contraction else { return None };
        let array = graph[self.operands[side as usize]].shape().as_array()?;
        let dims = match side {
            MatmulSide::Left => dot.dims.lhs(array.rank()),
            MatmulSide::Right => dot.dims.rhs(array.rank()),
        };
        TmaLayout::new(array, &dims)
    }

    /// Reorders the dimensions of M to the memory order of the left operand, and those of K to the memory order of the
    /// right operand if that is contiguous along N.
    pub fn in_memory_order(mut self) -> Matmul<'m> {
        if let Contraction::Convolution(op) = self.contraction {
            let d = &op.dims;
            let place = |number: usize| if number == 0 { d.input_batch } else { d.input_spatial[number - 1] };
            (self.free[0], self.order[0]) = sorted(&self.free[0], &self.order[0], place);
            if d.input_batch > d.input_feature.max(d.input_spatial.iter().copied().max().unwrap_or(0)) {
                let run = self.free[0].last().copied().unwrap_or(1);
                self.neighbours[0] = Neighbours { along: Along::Free, run };
            }
        }
        if self.neighbours[1].along == Along::Free {
            let place = |number: usize| match self.contraction {
                Contraction::Dot(dot) => dot.dims.rhs_contracting[number],
                Contraction::Convolution(op) => {
                    op.dims.kernel_spatial.get(number).copied().unwrap_or(op.dims.kernel_input_feature)
                }
            };
            (self.contracting, self.order[1]) = sorted(&self.contracting, &self.order[1], place);
            if !self.order[1].is_sorted() {
                // They are strides of the first order.
                self.k_strides = [None; 2];
            }
        }
        self
    }

    /// Returns the number of GEMMs in the batch.
    pub fn batches(&self) -> u64 {
        count(&self.batch)
    }

    /// Returns M for the left operand, N for the right one.
    pub fn extent(&self, side: MatmulSide) -> u64 {
        count(&self.free[side as usize])
    }

    /// Returns K: the number of products that are summed for each result.
    pub fn k(&self) -> u64 {
        count(&self.contracting)
    }

    /// Whether the result is large enough in both directions that neighbouring results share operand tiles.
    pub fn fills_tiles(&self) -> bool {
        let extents = [self.extent(MatmulSide::Left), self.extent(MatmulSide::Right), self.k()];
        extents.iter().all(|&extent| extent >= LEAST_EXTENT) && self.is_worthwhile()
    }

    /// Whether there is enough work for many threads.
    pub fn is_worthwhile(&self) -> bool {
        let extents = [self.extent(MatmulSide::Left), self.extent(MatmulSide::Right), self.k(), self.batches()];
        count(&extents) >= LEAST_WORK
    }

    /// Returns the number of results of the whole batch.
    pub fn results(&self) -> u64 {
        count(&[self.batches(), self.extent(MatmulSide::Left), self.extent(MatmulSide::Right)])
    }

    /// Whether operands may be rounded to bf16, and pairs of their products added to an f32 in any order: the elements
    /// are bf16 and have the default precision, or the algorithm allows it.
    pub fn allows_bf16_products(&self) -> bool {
        let types = self.exact_types;
        let is_narrow = types == [ElementType::BF16; 2];
        match self.contraction.precision() {
            (Some(DotAlgorithm::Bf16Bf16F32), _) => {
                types.iter().all(|ty| [ElementType::BF16, ElementType::F32].contains(ty))
            }
            (Some(DotAlgorithm::Bf16Bf16Bf16), _) => is_narrow,
            (Some(_), _) => false,
            (None, is_default) => is_default && is_narrow,
        }
    }

    pub fn is_dot(&self) -> bool {
        matches!(self.contraction, Contraction::Dot(_))
    }

    /// Returns the index of an operand's element, and adds the condition that it exists; otherwise it counts as 0.
    pub fn operand_index<A: Addressing<'m>>(
        &self,
        s: &mut A,
        side: MatmulSide,
        (batch, free, sums): (&[AffineExpr], &[AffineExpr], &[AffineExpr]),
        condition: &mut Option<A::Condition>,
    ) -> Result<Index> {
        let free = match side {
            MatmulSide::Left => &in_order(&self.order[0], free),
            MatmulSide::Right => free,
        };
        let sums = &in_order(&self.order[1], sums)[..];
        match self.contraction {
            Contraction::Dot(dot) => {
                let rank = batch.len() + free.len() + sums.len();
                let dims = match side {
                    MatmulSide::Left => dot.dims.lhs(rank),
                    MatmulSide::Right => dot.dims.rhs(rank),
                };
                Ok(placed(rank, [(dims.batch, batch), (&dims.free, free), (dims.contracting, sums)]))
            }
            Contraction::Convolution(op) => {
                let (group, none) = (batch.first().cloned().unwrap_or_default(), AffineExpr::default());
                let (channel, window) = sums.split_last().unwrap_or((&none, &[]));
                let (image, positions, output) = match (side, free) {
                    (MatmulSide::Left, [image, positions @ ..]) => (image, positions, &none),
                    (_, free) => (&none, &[][..], free.first().unwrap_or(&none)),
                };
                let tap = Tap { group: &group, image, positions, window, channel, output };
                match side {
                    MatmulSide::Left => input_index(s, self.id, op, &tap, condition),
                    MatmulSide::Right => kernel_index(s.graph(), self.id, op, &tap),
                }
            }
        }
    }

    /// Returns the index of a result.
    pub fn result_index(&self, batch: &[AffineExpr], rows: &[AffineExpr], columns: &[AffineExpr]) -> Index {
        let rows = &in_order(&self.order[0], rows)[..];
        match self.contraction {
            Contraction::Dot(_) => [batch, rows, columns].concat(),
            Contraction::Convolution(op) => {
                let group = batch.first().cloned().unwrap_or_default();
                let feature = group.scaled(count(&self.free[1]) as i64);
                let feature = columns.first().map_or(feature.clone(), |column| feature.plus(column));
                let (image, positions) = rows.split_at(rows.len().min(1));
                let lists = [(&[op.dims.output_batch][..], image), (&op.dims.output_spatial, positions)];
                placed(rows.len() + 1, [lists[0], lists[1], (&[op.dims.output_feature], &[feature])])
            }
        }
    }
}

/// Returns the narrowest known type that represents the elements of an array.
fn exact_type(graph: &Computation, mut id: InstrId) -> ElementType {
    let element_type = |id: InstrId| graph[id].shape().as_array().map_or(ElementType::Pred, ArrayShape::element_type);
    let ty = element_type(id);
    while let Op::Copy(_) | Op::Transpose(_) | Op::Reshape(_) | Op::Broadcast(_) | Op::Slice(_) = graph[id].op() {
        id = graph[id].operand(0);
    }
    let Op::Convert(_) = graph[id].op() else { return ty };
    let from = element_type(graph[id].operand(0));
    let is_exact = match (from.kind(), ty.kind()) {
        // The sign of a negative number is lost in a wider unsigned type.
        (ElementKind::Signed, ElementKind::Signed) => true,
        (ElementKind::Unsigned, ElementKind::Signed | ElementKind::Unsigned) => true,
        (ElementKind::Float, ElementKind::Float) => ty.bit_width() >= 32,
        _ => false,
    };
    if is_exact && from.bit_width() < ty.bit_width() { from } else { ty }
}

/// Sorts extents and numbers of dimensions by their positions in memory.
fn sorted(extents: &[u64], numbers: &[usize], place: impl Fn(usize) -> usize) -> (Vec<u64>, Vec<usize>) {
    let mut dims: Vec<(u64, usize)> = extents.iter().copied().zip(numbers.iter().copied()).collect();
    dims.sort_by_key(|&(_, number)| place(number));
    dims.into_iter().unzip()
}

/// Permutes coordinates, where `numbers` are the dimensions that they belong to.
fn in_order(numbers: &[usize], coordinates: &[AffineExpr]) -> Vec<AffineExpr> {
    let mut all = vec![AffineExpr::default(); coordinates.len()];
    for (&number, at) in numbers.iter().zip(coordinates) {
        all[number] = at.clone();
    }
    all
}

fn count(extents: &[u64]) -> u64 {
    extents.iter().fold(1, |n: u64, &extent| n.saturating_mul(extent))
}

/// Returns the accumulator type for an element type: it fills whole registers. Sums of integers wrap correctly in wider
/// types, and truth values are counted.
fn in_registers(ty: ElementType) -> ElementType {
    match ty.kind() {
        ElementKind::Pred => ElementType::U32,
        ElementKind::Signed if ty.bit_width() < 32 => ElementType::S32,
        ElementKind::Unsigned if ty.bit_width() < 32 => ElementType::U32,
        ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => accumulator(ty),
    }
}

fn dot_neighbours(dims: &[usize], side: &DotOperandDims<'_>) -> Neighbours {
    let Some(last) = dims.len().checked_sub(1) else { return Neighbours { along: Along::Free, run: 1 } };
    let extent = dims[last] as u64;
    match (side.contracting.last() == Some(&last), side.free.last() == Some(&last)) {
        (true, _) => Neighbours { along: Along::K, run: extent },
        (_, true) => Neighbours { along: Along::Free, run: extent },
        _ if side.contracting.contains(&last) => Neighbours { along: Along::K, run: 1 },
        _ => Neighbours { along: Along::Free, run: 1 },
    }
}

fn convolution_neighbours(op: &Convolution, ranks: [usize; 2], [channels, outputs]: [u64; 2]) -> [Neighbours; 2] {
    let [input_last, kernel_last] = ranks.map(|rank| rank.saturating_sub(1));
    let sums = |run| Neighbours { along: Along::K, run };
    let input = match op.dims.input_feature == input_last {
        true => sums(channels),
        // Neighbours are window positions, each of which may be outside of the input.
        false => Neighbours { along: Along::Free, run: 1 },
    };
    let kernel = match kernel_last {
        last if last == op.dims.kernel_output_feature => Neighbours { along: Along::Free, run: outputs },
        last if last == op.dims.kernel_input_feature => sums(channels),
        _ => sums(1),
    };
    [input, kernel]
}
