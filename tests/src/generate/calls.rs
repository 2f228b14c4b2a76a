//! Custom calls of built-in functions: matrix decompositions, for which all platforms use one handler.

use xla_hlo::ops::{CustomCall, CustomCallApi};
use xla_hlo::{ElementType, InstrId, Shape};

use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::values::Temper;

/// Greatest size of a matrix; diagonalization by rotations is slow.
const MOST_ROWS: usize = 12;

/// Form of a call's configuration.
enum Words {
    /// Opaque text.
    Config(&'static str),
    /// Typed attributes.
    Typed(&'static str),
}

impl Graph<'_> {
    /// Generates a matrix decomposition. All implementations get equal operands and run the same code, so that the
    /// results are equal in every bit.
    pub(super) fn custom_call(&mut self) -> Option<Value> {
        use ElementType::{C64, C128, F32, F64, S32};
        let (ty, letter) = self.random.pick(&[(F32, 's'), (F64, 'd'), (C64, 'c'), (C128, 'z')]);
        let mut batch: Vec<usize> = (0..self.random.pick(&[0, 0, 1, 2])).map(|_| self.random.between(0, 3)).collect();
        let (rows, columns) = (self.random.between(1, MOST_ROWS), self.random.between(1, MOST_ROWS));
        let (kind, least) = (self.random.below(7), rows.min(columns));
        let is_square = matches!(kind, 0 | 3 | 5 | 6);
        let columns = if is_square { rows } else { columns };
        let dims = [batch.clone(), vec![rows, columns]].concat();
        let a = self.settled_matrix(ty, &dims);
        let vector = |n: usize, ty: ElementType| Shape::array(ty, [batch.clone(), vec![n]].concat());
        let (whole, info) = (Shape::array(ty, dims.clone()), Shape::array(S32, batch.clone()));
        let real = ty.real_part();
        let complex = ty.is_complex();
        let triangle = self.random.pick(&["{uplo = 76 : ui8}", "{uplo = 85 : ui8}"]);
        let lower = self.random.pick(&["1", "0"]);
        let (target, words, results) = match kind {
            0 => ("Eigh".to_string(), Words::Config(lower), vec![whole, vector(rows, real)]),
            1 => ("Qr".to_string(), Words::Config(""), vec![whole, vector(least, ty)]),
            2 => (format!("lapack_{letter}geqrf_ffi"), Words::Typed("{}"), vec![whole, vector(least, ty)]),
            3 => (format!("lapack_{letter}potrf_ffi"), Words::Typed(triangle), vec![whole, info]),
            4 => {
                let pivots = vector(least, S32);
                (format!("lapack_{letter}getrf_ffi"), Words::Typed("{}"), vec![whole, pivots, info])
            }
            5 => {
                let name = if complex { "heevd" } else { "syevd" };
                let target = format!("lapack_{letter}{name}_ffi");
                (target, Words::Typed(triangle), vec![whole, vector(rows, real), info])
            }
            _ => {
                batch.extend([rows, self.random.between(1, 4)]);
                let b = self.settled_matrix(ty, &batch);
                return self.solve(letter, &a, &b);
            }
        };
        let call = self.called(&target, &words, Shape::Tuple(results.clone()), [a.id])?;
        let mut last = None;
        for i in 0..results.len() {
            last = self.put(Some(Numbers::EXACT), |b| b.get_tuple_element(call, i));
        }
        last
    }

    fn settled_matrix(&mut self, ty: ElementType, dims: &[usize]) -> Value {
        match self.random.percent(40) {
            true => self.like(ty, dims, Numbers::is_settled),
            false => self.leaf(ty, dims, Temper::Smooth),
        }
    }

    fn solve(&mut self, letter: char, a: &Value, b: &Value) -> Option<Value> {
        let words = self.random.pick(&[
            "{side = 76 : ui8, uplo = 76 : ui8, diag = 78 : ui8, trans_x = 78 : ui8}",
            "{side = 76 : ui8, uplo = 85 : ui8, diag = 85 : ui8, trans_x = 84 : ui8}",
            "{side = 76 : ui8, uplo = 76 : ui8, diag = 78 : ui8, trans_x = 67 : ui8}",
        ]);
        let (target, shape) = (format!("lapack_{letter}trsm_ffi"), b.shape.clone().into());
        let call = self.called(&target, &Words::Typed(words), shape, [a.id, b.id])?;
        self.put(Some(Numbers::EXACT), |_| Ok(call))
    }

    fn called(
        &mut self,
        target: &str,
        words: &Words,
        shape: Shape,
        operands: impl Into<Vec<InstrId>>,
    ) -> Option<InstrId> {
        let (config, api) = match words {
            Words::Config(text) => (*text, CustomCallApi::Original),
            Words::Typed(text) => (*text, CustomCallApi::TypedFfi),
        };
        self.b.custom_call(CustomCall { api, ..CustomCall::new(target) }, config, shape, operands).ok()
    }
}
