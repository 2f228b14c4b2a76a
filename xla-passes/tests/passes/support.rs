//! Helpers of pass tests: cases in files, random inputs, comparison of results.

use std::sync::Arc;

use xla_hlo::eval::Evaluator;
use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::ops::{CustomCallRegistry, OnMemory, RawCall, RawCustomCall};
use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Module, Result, Scalar, Shape};

/// Case of a file of cases.
pub struct Case {
    /// Text after `// ===`.
    pub name: String,
    /// Whether rounding may differ.
    pub approximate: bool,
    /// Text of the module.
    pub text: String,
}

/// Returns the passes named in the first line, and the cases of a file.
pub fn parse_file(text: &str) -> (String, Vec<Case>) {
    let passes = text.lines().next().and_then(|l| l.strip_prefix("// passes: ")).expect("a line `// passes: ...`");
    let cases = text.split("\n// === ").skip(1).map(|case| {
        let (title, body) = case.split_once('\n').expect("a case has a body");
        let name = title.trim_end_matches(" (approximate)");
        Case { name: name.to_string(), approximate: name != title, text: body.to_string() }
    });
    (passes.to_string(), cases.collect())
}

/// Small deterministic random generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn float(&mut self, special: bool) -> f64 {
        const SPECIAL: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-40, -1e30, 1.0];
        if special && self.bits().is_multiple_of(4) {
            return SPECIAL[(self.bits() % 8) as usize];
        }
        4.0 * self.unit() - 2.0
    }

    fn scalar(&mut self, ty: ElementType, special: bool) -> Scalar {
        let small = (self.bits() % 9) as i64 - 3;
        let wide = special && self.bits().is_multiple_of(4);
        match ty.kind() {
            ElementKind::Pred => Scalar::Pred(self.bits() & 1 == 1),
            ElementKind::Signed => Scalar::Signed(if wide { self.bits() as i64 } else { small }).rounded(ty),
            ElementKind::Unsigned => {
                Scalar::Unsigned(if wide { self.bits() } else { small.unsigned_abs() }).rounded(ty)
            }
            ElementKind::Float => Scalar::Float(self.float(special)).rounded(ty),
            ElementKind::Complex => Scalar::Complex(self.float(special), self.float(special)).rounded(ty),
        }
    }

    /// Returns a value of a shape, optionally with occasional special values (NaN, infinities, zeros, extremes).
    pub fn literal(&mut self, shape: &Shape, special: bool) -> Literal {
        match shape {
            Shape::Array(array) => self.array(array, special),
            Shape::Buffer(array) => self.array(array, special),
            Shape::Tuple(elements) => Literal::tuple(elements.iter().map(|e| self.literal(e, special)).collect()),
            Shape::Token | Shape::Opaque => Literal::token(),
        }
    }

    fn array(&mut self, shape: &ArrayShape, special: bool) -> Literal {
        let ty = shape.element_type();
        Literal::from_fn(shape, |_| self.scalar(ty, special)).expect("test inputs are small")
    }
}

/// Handler of target `bytes`: fills each result with the repeated bytes of the first operand, in memory order.
struct Bytes;

impl RawCustomCall for Bytes {
    fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
        let from = call.operands[0].bytes;
        for result in &mut call.results {
            result.bytes.iter_mut().zip(from.iter().cycle()).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

/// Evaluates a module's entry on random inputs, for at most `steps` instructions. Returns a tuple of the results of all
/// devices if there are several.
pub fn evaluate(module: &Module, seed: u64, special: bool, steps: u64) -> Result<Literal> {
    let mut random = Random(seed);
    let entry = module.entry();
    let mut inputs = || entry.parameters().iter().map(|&p| random.literal(entry[p].shape(), special)).collect();
    let handlers = CustomCallRegistry::new();
    handlers.register("bytes", Arc::new(OnMemory(Bytes)));
    let evaluator = || Evaluator::new(module).with_step_limit(steps).with_custom_calls(&handlers);
    match Grid::of(module)?.device_count() {
        1 => evaluator().call_entry(inputs()),
        devices => {
            let inputs = (0..devices).map(|_| inputs()).collect();
            Ok(Literal::tuple(grid::evaluate_with(module, inputs, |_| evaluator())?))
        }
    }
}

/// Returns the first difference between two results, if any; all NaNs are equal.
pub fn difference(a: &Literal, b: &Literal, approximate: bool) -> Option<String> {
    let (a, b) = (a.leaves(), b.leaves());
    if a.len() != b.len() {
        return Some(format!("{} leaves against {}", a.len(), b.len()));
    }
    a.iter().zip(b).enumerate().find_map(|(leaf, (a, b))| {
        let shape = a.shape().as_array()?;
        if !a.shape().compatible(b.shape()) {
            return Some(format!("leaf {leaf} is {} against {}", a.shape(), b.shape()));
        }
        let count = shape.element_count();
        let differs = |i: &usize| !same(a.get(*i), b.get(*i), shape.element_type(), approximate);
        let i = (0..count).find(differs)?;
        Some(format!("leaf {leaf} element {i} is {:?} against {:?}", a.get(i), b.get(i)))
    })
}

fn same(a: Scalar, b: Scalar, ty: ElementType, approximate: bool) -> bool {
    match (a, b) {
        (Scalar::Float(x), Scalar::Float(y)) => same_float(x, y, ty, approximate),
        (Scalar::Complex(a, b), Scalar::Complex(x, y)) => {
            same_float(a, x, ty.real_part(), approximate) && same_float(b, y, ty.real_part(), approximate)
        }
        _ => a == b,
    }
}

fn same_float(x: f64, y: f64, ty: ElementType, approximate: bool) -> bool {
    if (x.is_nan() && y.is_nan()) || x.to_bits() == y.to_bits() {
        return true;
    }
    let tolerance = match ty {
        ElementType::F64 => 1e-12,
        ElementType::F32 => 1e-5,
        _ => 2e-2,
    };
    approximate && (x == y || (x - y).abs() <= tolerance * (1.0 + x.abs().max(y.abs())))
}
