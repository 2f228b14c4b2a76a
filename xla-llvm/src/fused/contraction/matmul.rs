//! Dots and convolutions as matmuls: batch, M, N, K, and whether they are worth a kernel of tiles.
//!
//! `result[batch, m, n] = Σ_k left[batch, m, k] · right[batch, k, n]`, each of the four a list of dimensions. M of a
//! convolution is the window's positions in all images, and K the places in the window with the input's channels, so
//! that it is a matmul with an operand that lies nowhere (implicit GEMM, as in Chetlur et al., cuDNN, 2014).

use xla_hlo::ops::{Convolution, Dot, DotAlgorithm, DotOperandDims, Family, Op};
use xla_hlo::{ArrayShape, Computation, ElementKind, ElementType, Error, InstrId, Result};

use crate::fused::analysis::FusedKernel;
use crate::fused::contraction::bulk::BulkLayout;
use crate::fused::core::address::strides_of;
use crate::fused::core::convolution::Tap;
use crate::fused::core::reduce::{accumulator, placed};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index, row_major_strides};
use crate::fused::tuning::matmul::{LEAST_EXTENT, LEAST_WORK};
use crate::fused::value::Guard;
use crate::mma::OperandType;

/// A dot or a convolution as a batch of matmuls.
pub(crate) struct Matmul<'m> {
    pub id: InstrId,
    /// Left, right.
    pub operands: [InstrId; 2],
    contraction: Contraction<'m>,
    /// Extents of the batch dimensions.
    pub batch: Vec<u64>,
    /// Extents of M's dimensions, and of N's.
    pub free: [Vec<u64>; 2],
    /// Extents of K's dimensions, in the order in which they are gone through.
    pub contracting: Vec<u64>,
    /// The number that each dimension of M and of K has in the operation.
    order: [Vec<usize>; 2],
    /// Type of the multiplication: operands are converted to it first, the result from it.
    pub element_type: ElementType,
    /// Type of accumulators: it takes a register, or several, by itself.
    pub accumulator_type: ElementType,
    /// Type of the operands' elements on tensor cores, with accumulators of f32.
    pub operand_type: Option<OperandType>,
    /// Of the operands.
    pub neighbours: [Neighbours; 2],
    /// Element types of the operands, and bytes of an element.
    pub types: [ElementType; 2],
    pub bytes: [u64; 2],
    /// Elements from one step of K to the next of operands that are arrays in memory, where that is the same all along.
    pub k_strides: [Option<u64>; 2],
    /// Operands that are arrays in memory, as ones that boxes can be copied from.
    pub bulk: [Option<BulkLayout>; 2],
}

#[derive(Clone, Copy)]
enum Contraction<'m> {
    Dot(&'m Dot),
    Convolution(&'m Convolution),
}

impl Contraction<'_> {
    /// Whether operand_type of f32 may be rounded to TF32.
    fn allows_tf32(self) -> bool {
        let algorithm = match self {
            Contraction::Dot(dot) => dot.algorithm,
            Contraction::Convolution(op) => op.algorithm,
        };
        algorithm == Some(DotAlgorithm::Tf32Tf32F32)
    }
}

/// An operand of a matmul.
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

/// Direction in memory of the neighbours of an operand's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub along: Along,
    /// As many of them, from a multiple of it on, have coordinates that are neighbours too; 1 where that is not known.
    pub run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Along the last dimension of M, or of N.
    Free,
    /// Along the last dimension of K.
    K,
}

impl<'m> FusedKernel<'_, 'm> {
    /// The matmul of a kernel whose strategy is one.
    pub(crate) fn matmul(&self) -> Result<Matmul<'m>> {
        self.only_matmul().ok_or_else(|| Error::internal("a kernel without the matmul that it was chosen for"))
    }

    /// The one matmul that the kernel computes, if all else is a function of its elements, each of its own.
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

    /// A contraction of the kernel.
    pub(crate) fn matmul_of(&self, id: InstrId) -> Option<Matmul<'m>> {
        let graph = self.graph();
        let mut matmul = Matmul::new(graph, id)?;
        for side in [MatmulSide::Left, MatmulSide::Right] {
            let is_input = self.source.inputs.contains(&matmul.operands[side as usize]);
            matmul.k_strides[side as usize] = is_input.then(|| matmul.k_stride(graph, side)).flatten();
            matmul.bulk[side as usize] = is_input.then(|| matmul.bulk_layout(graph, side)).flatten();
        }
        Some(matmul)
    }

    /// Whether everything that is computed from an instruction is so element by element.
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
    fn new(graph: &'m Computation, id: InstrId) -> Option<Matmul<'m>> {
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
            bytes,
            k_strides: [None; 2],
            bulk: [None, None],
        })
    }

    /// Elements from one step of K to the next in a dot's operand, if it lies row by row and they are always as many.
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

    /// A dot's operand as an array that boxes can be copied from.
    fn bulk_layout(&self, graph: &Computation, side: MatmulSide) -> Option<BulkLayout> {
        let Contraction::Dot(dot) = self.contraction else { return None };
        let array = graph[self.operands[side as usize]].shape().as_array()?;
        let dims = match side {
            MatmulSide::Left => dot.dims.lhs(array.rank()),
            MatmulSide::Right => dot.dims.rhs(array.rank()),
        };
        BulkLayout::new(array, &dims)
    }

    /// The same with the dimensions of M in the order in which the left operand lies in memory, and those of K in that
    /// of the right one, if its neighbours are along N.
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
        }
        self
    }

    /// Matmuls of the batch.
    pub fn batches(&self) -> u64 {
        count(&self.batch)
    }

    /// M for the left operand, N for the right one.
    pub fn extent(&self, side: MatmulSide) -> u64 {
        count(&self.free[side as usize])
    }

    /// K: products that are added up for each result.
    pub fn k(&self) -> u64 {
        count(&self.contracting)
    }

    /// Whether the result is large enough in both directions that neighbouring results share operand tiles.
    pub fn fills_tiles(&self) -> bool {
        let extents = [self.extent(MatmulSide::Left), self.extent(MatmulSide::Right), self.k()];
        extents.iter().all(|&extent| extent >= LEAST_EXTENT) && self.is_worthwhile()
    }

    /// Whether there is work for many threads.
    pub fn is_worthwhile(&self) -> bool {
        let extents = [self.extent(MatmulSide::Left), self.extent(MatmulSide::Right), self.k(), self.batches()];
        count(&extents) >= LEAST_WORK
    }

    /// Results of the whole batch.
    pub fn results(&self) -> u64 {
        count(&[self.batches(), self.extent(MatmulSide::Left), self.extent(MatmulSide::Right)])
    }

    pub fn is_dot(&self) -> bool {
        matches!(self.contraction, Contraction::Dot(_))
    }

    /// The index of an operand's element, and when it counts at all.
    pub fn operand_index<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        side: MatmulSide,
        (batch, free, sums): (&[AffineExpr], &[AffineExpr], &[AffineExpr]),
        condition: &mut Option<Guard<'e, 'ctx>>,
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
                    MatmulSide::Left => s.input_index(self.id, op, &tap, condition),
                    MatmulSide::Right => s.kernel_index(self.id, op, &tap),
                }
            }
        }
    }

    /// The index of a result.
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

/// Extents and numbers of dimensions, sorted by their places in memory.
fn sorted(extents: &[u64], numbers: &[usize], place: impl Fn(usize) -> usize) -> (Vec<u64>, Vec<usize>) {
    let mut dims: Vec<(u64, usize)> = extents.iter().copied().zip(numbers.iter().copied()).collect();
    dims.sort_by_key(|&(_, number)| place(number));
    dims.into_iter().unzip()
}

/// Coordinates of dimensions, given those of the dimensions of these numbers.
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

/// The type that holds an element of another one in whole registers, with all that sums need of it: integers wrap in
/// wider ones as well, and truth values are counted.
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
        // Positions of the window, whose elements each are inside of the input or not.
        false => Neighbours { along: Along::Free, run: 1 },
    };
    let kernel = match kernel_last {
        last if last == op.dims.kernel_output_feature => Neighbours { along: Along::Free, run: outputs },
        last if last == op.dims.kernel_input_feature => sums(channels),
        _ => sums(1),
    };
    [input, kernel]
}
