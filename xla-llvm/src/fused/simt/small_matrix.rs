//! Cholesky factorization and triangular solve of small matrices, one block of threads per matrix.
//!
//! Both methods keep the matrix in shared memory. The factorization proceeds by columns, with a thread for each row.
//! Each thread also computes the pivot, so that a column costs one barrier. A solve has a thread for each right-hand
//! side, and needs no synchronization between threads.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::ops::{BinaryOp, Op, TransposeKind};
use xla_hlo::{ArrayShape, ElementType, Error, Result, Scalar as Element};

use crate::elemental::{self, Value, stored_scalar};
use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::kernel_plan::KernelPlan;
use crate::fused::kernel_plan::command::{PlanArgument, PlanCommand};
use crate::fused::loops::affine::{AffineExpr, SymbolId};
use crate::fused::loops::range::Range;
use crate::fused::source::KernelSource;
use crate::fused::tuning::small_matrix::{COLUMNS, ROWS};
use crate::lanes::Lanes;
use crate::simt::{Register, WARP};
use crate::target::Target;

/// Plan of the kernel of a `cholesky` or a `triangular-solve`. The words are addresses of the operands, then of the
/// result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallMatrixPlan {
    method: Method,
    element_type: ElementType,
    rows: u64,
    matrices: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Computes the lower factor.
    Factor,
    /// Solves `a x = b` for `x`, of `columns` columns.
    Solve { lower: bool, unit_diagonal: bool, columns: u64 },
}

impl KernelPlan for SmallMatrixPlan {
    type Phase = ();

    const NAME: &'static str = "small-matrix";
    const READS_SOURCE: bool = false;

    /// Returns the plan of a `cholesky` that computes the lower factor, or of a `triangular-solve` with the matrix on
    /// the left, not transposed. The matrices have at most [`most_rows`](Self::most_rows).
    fn new(source: &KernelSource<'_>, _: &Target) -> Option<SmallMatrixPlan> {
        match (source.instruction().op(), &source.input_shapes()?[..]) {
            (Op::Cholesky(op), [a]) if op.lower => SmallMatrixPlan::of(Method::Factor, a),
            (Op::TriangularSolve(op), [a, b]) => {
                let columns = *b.dims().last().filter(|_| b.is_static())? as u64;
                let method = Method::Solve { lower: op.lower, unit_diagonal: op.unit_diagonal, columns };
                let as_it_is = op.left_side && op.transpose_a == TransposeKind::NoTranspose;
                SmallMatrixPlan::of(method, a).filter(|_| as_it_is)
            }
            _ => None,
        }
    }

    fn phases(&self) -> Vec<()> {
        vec![()]
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<()>> {
        vec![PlanCommand::launch((), PlanArgument::arrays(self.words(), None))]
    }

    fn describe(&self, (): ()) -> String {
        "small matrix".to_string()
    }

    fn emit(&self, source: &KernelSource<'_>, (): (), emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, self.words(), 0)?;
        let mut s = FusedEmitter::new(emitter, source.module, source.computation)?;
        let (blocks, threads) = match (self.method, &kernel.pointers[..]) {
            (Method::Factor, &[a, factor]) => {
                if self.rows > 0 && self.matrices > 0 {
                    Writer::new(self, &s)?.factor(&mut s, a, factor)?;
                }
                (self.matrices, self.rows.next_multiple_of(WARP.into()))
            }
            (Method::Solve { lower, unit_diagonal, columns }, &[a, b, x]) => {
                let blocks = self.matrices * columns.div_ceil(COLUMNS);
                if self.rows > 0 && blocks > 0 {
                    let system = System { lower, unit_diagonal, columns };
                    Writer::new(self, &s)?.solve(&mut s, &system, [a, b, x])?;
                }
                (blocks, COLUMNS)
            }
            _ => return Err(Error::internal(format!("kernel {name} of a small matrix has unexpected pointers"))),
        };
        let launch = Launch { work_items: if self.rows == 0 { 0 } else { blocks }, block: Some(threads as u32) };
        Kernel::end(emitter, name, launch, self.describe(()))
    }
}

impl SmallMatrixPlan {
    /// Returns the maximum number of rows of a matrix of an element type; the whole matrix must fit into shared memory.
    /// `None` for types that are not supported.
    pub fn most_rows(ty: ElementType) -> Option<usize> {
        match ty {
            ElementType::F32 | ElementType::F64 | ElementType::C64 => Some(ROWS),
            ElementType::C128 => Some(ROWS / 2),
            _ => None,
        }
    }

    /// Returns the number of 64-bit words that the kernel takes.
    fn words(&self) -> usize {
        match self.method {
            Method::Factor => 2,
            Method::Solve { .. } => 3,
        }
    }

    fn of(method: Method, a: &ArrayShape) -> Option<SmallMatrixPlan> {
        let (&rows, outer) = a.dims().split_last()?;
        let (_, batch) = outer.split_last()?;
        let matrices = batch.iter().try_fold(1u64, |count, &extent| count.checked_mul(extent as u64))?;
        let fits = a.is_static() && rows <= Self::most_rows(a.element_type())?;
        fits.then_some(SmallMatrixPlan { method, element_type: a.element_type(), rows: rows as u64, matrices })
    }
}

/// Size in bytes of the widest access to shared memory.
const VECTOR_BYTES: usize = 16;

/// Right-hand sides of a matrix, and the part of the matrix that is read.
struct System {
    lower: bool,
    unit_diagonal: bool,
    columns: u64,
}

/// Emitter of a kernel. Its numbers have 64 bits.
struct Writer<'e, 'ctx> {
    ty: ElementType,
    rows: i64,
    block: Lanes<'e, 'ctx>,
    thread: Lanes<'e, 'ctx>,
}

impl<'e, 'ctx> Writer<'e, 'ctx> {
    fn new(plan: &SmallMatrixPlan, s: &FusedEmitter<'e, 'ctx, '_>) -> Result<Writer<'e, 'ctx>> {
        let [block, thread] = [Register::Block, Register::Thread].map(|register| s.emitter.register(register));
        let (block, thread) = (block?.zext(64), thread?.zext(64));
        Ok(Writer { ty: plan.element_type, rows: plan.rows as i64, block, thread })
    }

    /// Factors the block's matrix. A pivot that is not positive makes all later elements NaN, including the last pivot.
    /// If that is NaN, the whole result is set to NaN.
    fn factor(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, a: PointerValue<'ctx>, to: PointerValue<'ctx>) -> Result<()> {
        let (rows, thread) = (self.rows, self.thread);
        // Padding against bank conflicts: adjacent threads read elements of one column.
        let pitch = rows + 1;
        let matrix = self.shared(s, rows * pitch)?;
        let pivots = self.shared(s, rows)?;
        let first = self.block * (rows * rows);
        let is_row = thread.lt(rows);
        // Initialises the padding column: see `shared`.
        s.when(is_row, &[], |s| {
            self.store(s, self.constant(s, 0.0), matrix, thread * pitch + rows);
            Ok(Vec::new())
        })?;
        self.each(s, s.full_range(rows as u64, 1), |w, s, row| {
            s.when(is_row, &[], |s| {
                let element = w.load(s, a, first + row * rows + thread);
                w.store(s, element, matrix, row * pitch + thread);
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        s.emitter.barrier()?;
        self.each(s, s.full_range(rows as u64, 1), |w, s, j| {
            let has_element = is_row & thread.ge(j);
            s.when(has_element, &[], |s| {
                w.factor_element(s, matrix, pivots, [thread * pitch, j * pitch], j)?;
                Ok(Vec::new())
            })?;
            s.emitter.barrier()
        })?;
        let last = self.load(s, pivots, s.number(rows - 1)).lanes();
        let (zero, nan) = (self.constant(s, 0.0), self.constant(s, f64::NAN));
        self.each(s, s.full_range(rows as u64, 1), |w, s, row| {
            s.when(is_row, &[], |s| {
                let below = w.load(s, matrix, row * pitch + thread);
                let element = elemental::select_lanes(thread.lt(row), below, zero);
                let element = elemental::select_lanes(thread.eq(row), w.load(s, pivots, row), element);
                let element = elemental::select_lanes(last.is_nan(), nan, element);
                w.store(s, element, to, first + row * rows + thread);
                Ok(Vec::new())
            })?;
            Ok(())
        })
    }

    /// Computes the element of column `j` in the thread's row; `[own, of_pivot]` are the offsets of the thread's row
    /// and of the pivot's row. Elements before column `j` already belong to the factor; the others and the diagonal
    /// still belong to the matrix.
    fn factor_element(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        matrix: PointerValue<'ctx>,
        pivots: PointerValue<'ctx>,
        [own, of_pivot]: [Lanes<'e, 'ctx>; 2],
        j: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        let ty = self.ty;
        let pivot = self.load(s, matrix, of_pivot + j).lanes();
        let element = self.load(s, matrix, own + j);
        let start = [element.raws(), vec![pivot.raw()]].concat();
        let before = Range { start: s.number(0), end: j, extent: None, width: 1, step: 1, whole: true };
        let sums = s.for_each(before, start, &mut |s, k, sums| {
            let k = symbol(s, k)?;
            let (x, y) = (self.load(s, matrix, own + k), conjugate(self.load(s, matrix, of_pivot + k)));
            let (element, pivot) = self.split(s, sums)?;
            let element = less_product(s, element, x, y)?;
            let square = y.imaginary().map_or(pivot, |imaginary| (-imaginary).fma(imaginary, pivot));
            let pivot = (-y.lanes()).fma(y.lanes(), square);
            Ok([element.raws(), vec![pivot.raw()]].concat())
        })?;
        let (element, pivot) = self.split(s, &sums)?;
        let [zero, nan] = [0.0, f64::NAN].map(|value| self.constant(s, value).lanes());
        let root = pivot.gt(zero).select(pivot.sqrt(), nan);
        let scaled = |lanes: Lanes<'e, 'ctx>| {
            let [x, root] = [lanes, root].map(|lanes| Value::new(self.real(), lanes));
            elemental::binary(s.emitter, BinaryOp::Divide, x, root).map(|value| value.lanes())
        };
        let column = match element.imaginary() {
            Some(imaginary) => Value::complex(ty, scaled(element.lanes())?, scaled(imaginary)?),
            None => Value::new(ty, scaled(element.lanes())?),
        };
        let diagonal = if ty.is_complex() { Value::complex(ty, root, zero) } else { Value::new(ty, root) };
        s.when(self.thread.eq(j), &[], |s| {
            self.store(s, diagonal, pivots, j);
            Ok(Vec::new())
        })?;
        // The diagonal of `matrix` is not overwritten: other threads of the warp may not have read it yet.
        s.when(self.thread.gt(j), &[], |s| {
            self.store(s, column, matrix, own + j);
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Solves [`COLUMNS`] right-hand sides of a matrix.
    fn solve(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        system: &System,
        [a, b, x]: [PointerValue<'ctx>; 3],
    ) -> Result<()> {
        let (rows, columns) = (self.rows, system.columns as i64);
        let matrix = self.shared(s, rows * rows)?;
        let unknowns = self.shared(s, rows * COLUMNS as i64)?;
        let tiles = system.columns.div_ceil(COLUMNS) as i64;
        let number = self.block.udiv(tiles);
        let column = (self.block - number * tiles) * COLUMNS as i64 + self.thread;
        let (of_matrix, of_column) = (number * (rows * rows), number * (rows * columns) + column);
        let elements = Range {
            start: self.thread,
            end: s.number(rows * rows),
            extent: Some((rows * rows) as u64),
            width: 1,
            step: COLUMNS,
            whole: true,
        };
        self.each(s, elements, |w, s, at| {
            let element = w.load(s, a, of_matrix + at);
            w.store(s, element, matrix, at);
            Ok(())
        })?;
        s.emitter.barrier()?;
        s.when(column.lt(columns), &[], |s| {
            let place = |row: Lanes<'e, 'ctx>| row * COLUMNS as i64 + self.thread;
            self.each(s, s.full_range(rows as u64, 1), |w, s, row| {
                let element = w.load(s, b, of_column + row * columns);
                w.store(s, element, unknowns, place(row));
                Ok(())
            })?;
            self.each(s, s.full_range(rows as u64, 1), |w, s, step| {
                let row = if system.lower { step } else { -step + (rows - 1) };
                let mut unknown = w.rest(s, system, [matrix, unknowns], row)?;
                if !system.unit_diagonal {
                    let diagonal = w.load(s, matrix, row * (rows + 1));
                    unknown = elemental::binary(s.emitter, BinaryOp::Divide, unknown, diagonal)?;
                }
                w.store(s, unknown, unknowns, place(row));
                w.store(s, unknown, x, of_column + row * columns);
                Ok(())
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Subtracts the products with the solved unknowns from a right-hand side at a row.
    fn rest(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, '_>,
        system: &System,
        [matrix, unknowns]: [PointerValue<'ctx>; 2],
        row: Lanes<'e, 'ctx>,
    ) -> Result<Value<'e, 'ctx>> {
        let (start, end) = if system.lower { (s.number(0), row) } else { (row + 1, s.number(self.rows)) };
        let known = Range { start, end, extent: None, width: 1, step: 1, whole: true };
        let given = self.load(s, unknowns, row * COLUMNS as i64 + self.thread);
        let rest = s.for_each(known, given.raws(), &mut |s, k, rest| {
            let k = symbol(s, k)?;
            let factor = self.load(s, matrix, row * self.rows + k);
            let known = self.load(s, unknowns, k * COLUMNS as i64 + self.thread);
            let rest = Value::from_raws(s.emitter, self.ty, rest);
            Ok(less_product(s, rest, factor, known)?.raws())
        })?;
        Ok(Value::from_raws(s.emitter, self.ty, &rest))
    }

    /// Emits `body` for each number of a range.
    fn each<'m>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        range: Range<'e, 'ctx>,
        body: impl Fn(&Self, &mut FusedEmitter<'e, 'ctx, 'm>, Lanes<'e, 'ctx>) -> Result<()>,
    ) -> Result<()> {
        s.for_each(range, Vec::new(), &mut |s, number, _| {
            let number = symbol(s, number)?;
            body(self, s, number).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Splits the values that a loop carries into an element and a pivot.
    fn split(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        carried: &[BasicValueEnum<'ctx>],
    ) -> Result<(Value<'e, 'ctx>, Lanes<'e, 'ctx>)> {
        let (&pivot, element) = carried.split_last().ok_or_else(|| Error::internal("loop carries no values"))?;
        Ok((Value::from_raws(s.emitter, self.ty, element), s.emitter.lanes(pivot)))
    }

    /// Allocates shared memory for `elements` elements. Padding to whole vectors is initialised, because LLVM may load
    /// it together with adjacent elements, although its values are unused.
    fn shared(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, elements: i64) -> Result<PointerValue<'ctx>> {
        let parts = if self.ty.is_complex() { 2 } else { 1 };
        let in_vector = VECTOR_BYTES / self.ty.byte_width().min(VECTOR_BYTES);
        let whole = (elements as usize).next_multiple_of(in_vector) as i64;
        let array = s.emitter.shared_array(stored_scalar(self.ty), whole as u64 * parts)?;
        if whole > elements {
            s.when(self.thread.lt(whole - elements), &[], |s| {
                self.store(s, self.constant(s, 0.0), array, self.thread + elements);
                Ok(Vec::new())
            })?;
        }
        Ok(array)
    }

    /// Returns the type of the real part.
    fn real(&self) -> ElementType {
        match self.ty {
            ElementType::C64 => ElementType::F32,
            ElementType::C128 => ElementType::F64,
            ty => ty,
        }
    }

    fn constant(&self, s: &FusedEmitter<'e, 'ctx, '_>, value: f64) -> Value<'e, 'ctx> {
        let imaginary = if value.is_nan() { value } else { 0.0 };
        let element = if self.ty.is_complex() { Element::Complex(value, imaginary) } else { Element::Float(value) };
        elemental::constant(s.emitter, self.ty, element)
    }

    fn load(&self, s: &FusedEmitter<'e, 'ctx, '_>, array: PointerValue<'ctx>, at: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        elemental::load(s.emitter, array, at, self.ty, 1, None)
    }

    fn store(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        value: Value<'e, 'ctx>,
        array: PointerValue<'ctx>,
        at: Lanes<'e, 'ctx>,
    ) {
        elemental::store(s.emitter, value, array, at, None);
    }
}

/// Returns the value of a loop's symbol.
fn symbol<'e, 'ctx>(s: &mut FusedEmitter<'e, 'ctx, '_>, id: SymbolId) -> Result<Lanes<'e, 'ctx>> {
    let number = s.number_of(&AffineExpr::symbol(id))?;
    Ok(s.lanes_of(number))
}

fn conjugate<'e, 'ctx>(x: Value<'e, 'ctx>) -> Value<'e, 'ctx> {
    x.imaginary().map_or(x, |imaginary| Value::complex(x.element_type(), x.lanes(), -imaginary))
}

/// Computes `z - x y`.
fn less_product<'e, 'ctx>(
    s: &FusedEmitter<'e, 'ctx, '_>,
    z: Value<'e, 'ctx>,
    x: Value<'e, 'ctx>,
    y: Value<'e, 'ctx>,
) -> Result<Value<'e, 'ctx>> {
    if z.imaginary().is_none() {
        return Ok(Value::new(z.element_type(), (-x.lanes()).fma(y.lanes(), z.lanes())));
    }
    let product = elemental::binary(s.emitter, BinaryOp::Multiply, x, y)?;
    elemental::binary(s.emitter, BinaryOp::Subtract, z, product)
}
