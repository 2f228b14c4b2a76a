//! Tests of `wgmma` against plain products of small integers, for all layouts of A and B.

use super::bench::{Bench, hopper};

/// Type of A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factors {
    Brain,
    Half,
    Tensor,
}

impl Factors {
    fn bytes(self) -> usize {
        if self == Factors::Tensor { 4 } else { 2 }
    }

    fn bits(self, value: i32) -> u32 {
        match self {
            Factors::Brain => (value as f32).to_bits() >> 16,
            Factors::Half => u32::from(half(value)),
            // The lower 13 bits are ignored.
            Factors::Tensor => (value as f32).to_bits() | 0x1fff,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Factors::Brain => "bf16",
            Factors::Half => "f16",
            Factors::Tensor => "tf32",
        }
    }
}

/// Returns a small integer as an IEEE half.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let exponent = value.unsigned_abs().ilog2();
    let fraction = (value.unsigned_abs() << (10 - exponent)) as u16 & 0x3ff;
    u16::from(value < 0) << 15 | (exponent as u16 + 15) << 10 | fraction
}

/// Bytes of a row in the depth dimension: four steps.
const DEPTH_BYTES: usize = 128;
const STEPS: usize = 4;

/// Layout of an operand in shared memory: rows of A, or columns of B, by depth.
#[derive(Clone, Copy, Debug)]
struct Layout {
    rows: usize,
    /// Bytes within which chunks are swizzled: 0, 32, 64 or 128.
    span: usize,
    transposed: bool,
    bytes: usize,
}

impl Layout {
    fn size(&self) -> usize {
        self.rows.next_multiple_of(64) * DEPTH_BYTES
    }

    fn depth(&self) -> usize {
        DEPTH_BYTES / self.bytes
    }

    /// Returns the byte offset of an element.
    fn place(&self, row: usize, k: usize) -> usize {
        let Layout { span, transposed, bytes, .. } = *self;
        let (across, along) = if transposed { (k, row) } else { (row, k) };
        let (chunk, within) = (along * bytes / 16, along * bytes % 16);
        // Eight lines of chunks form an atom.
        let (line, atom) = (across % 8, across / 8);
        match span {
            0 if transposed => (chunk * (self.depth() / 8) + atom) * 128 + line * 16 + within,
            0 => (atom * 8 + chunk) * 128 + line * 16 + within,
            _ => {
                let in_span = span / 16;
                let swizzled = (chunk % in_span) ^ (line * span / 128 % in_span);
                let atoms = if transposed { self.depth() / 8 } else { self.rows.div_ceil(8) };
                ((chunk / in_span * atoms + atom) * 8 + line) * span + swizzled * 16 + within
            }
        }
    }

    /// Returns the leading byte offset and the stride byte offset.
    fn offsets(&self) -> [usize; 2] {
        let depth = self.depth();
        match (self.span, self.transposed) {
            (0, false) => [128, 1024],
            (0, true) => [128, depth / 8 * 128],
            (span, false) => [0, 8 * span],
            (span, true) => [depth / 8 * 8 * span, 8 * span],
        }
    }

    /// Returns the descriptor of a step, for an operand at an address.
    fn descriptor(&self, address: usize, step: usize) -> u64 {
        let [leading, stride] = self.offsets();
        let start = match (self.span, self.transposed) {
            (0, false) => step * 2 * leading,
            (0, true) => step * 2 * leading,
            (span, true) => step * 2 * 8 * span,
            (span, false) => step * 32 / span * self.rows.div_ceil(8) * 8 * span + step * 32 % span,
        };
        let mode = match self.span {
            0 => 0,
            128 => 1,
            64 => 2,
            _ => 3u64,
        };
        let field = |bytes: usize, at: u32| (bytes as u64 / 16) << at;
        mode << 62 | field(address + start, 0) | field(leading, 16) | field(stride, 32)
    }
}

fn value(matrix: usize, row: usize, k: usize) -> i32 {
    (row * 7 + k * 3 + row * k % 5 + matrix * 5) as i32 % 9 - 4
}

#[derive(Clone, Copy, Debug)]
struct Case {
    factors: Factors,
    columns: usize,
    /// Swizzle span of A and whether it is transposed; `None` if A is in registers.
    a: Option<(usize, bool)>,
    b: (usize, bool),
    /// Immediate operands `scale-a` and `scale-b`: 1 or -1.
    signs: [i32; 2],
}

const CASE: Case = Case { factors: Factors::Brain, columns: 8, a: Some((128, false)), b: (128, false), signs: [1, 1] };

impl Case {
    fn layouts(&self) -> [Layout; 2] {
        let bytes = self.factors.bytes();
        let (span, transposed) = self.a.unwrap_or((128, false));
        let (of_b, b_transposed) = self.b;
        [
            Layout { rows: 64, span, transposed, bytes },
            Layout { rows: self.columns, span: of_b, transposed: b_transposed, bytes },
        ]
    }

    /// Returns the content of shared memory: both operands.
    fn image(&self) -> Vec<u32> {
        let layouts = self.layouts();
        let mut image = vec![0u8; layouts.iter().map(Layout::size).sum()];
        let mut start = 0;
        for (matrix, layout) in layouts.iter().enumerate() {
            for row in 0..layout.rows {
                for k in 0..layout.depth() {
                    let bits = self.factors.bits(value(matrix, row, k)).to_le_bytes();
                    image[start + layout.place(row, k)..][..layout.bytes].copy_from_slice(&bits[..layout.bytes]);
                }
            }
            start += layout.size();
        }
        image.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    /// Returns A in registers: four for each step of each thread.
    fn registers(&self) -> Vec<u32> {
        let in_word = 4 / self.factors.bytes();
        let mut words = Vec::new();
        for thread in 0..128 {
            let (warp, group, within) = (thread / 32, thread % 32 / 4, thread % 4);
            for step in 0..STEPS {
                for register in 0..4 {
                    let row = warp * 16 + group + register % 2 * 8;
                    let k = step * 8 * in_word + (within + register / 2 * 4) * in_word;
                    let bits = |half: usize| self.factors.bits(value(0, row, k + half)) << (half * 16 % 32);
                    words.push((0..in_word).fold(0, |word, half| word | bits(half)));
                }
            }
        }
        words
    }

    fn body(&self) -> String {
        let (image, sums) = (self.image().len() * 4, self.columns / 2);
        let list = |kind: &str, count: usize| (0..count).map(|i| format!("%{kind}{i}")).collect::<Vec<_>>().join(", ");
        let [left, right] = self.layouts();
        let mut body = format!(
            "mul.wide.u32 %rd3, %r9, 16; mov.b64 %rd4, tile; add.s64 %rd4, %rd4, %rd3; add.s64 %rd5, %rd0, %rd3; mov.b32 %r1, 0;
             $fill: ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%rd5]; st.shared.v4.b32 [%rd4], {{%a0, %a1, %a2, %a3}};
             add.s64 %rd4, %rd4, 2048; add.s64 %rd5, %rd5, 2048; add.s32 %r1, %r1, 2048; setp.lt.u32 %p1, %r1, {image};
             @%p1 bra $fill; fence.proxy.async.shared::cta; bar.sync 0; mul.wide.u32 %rd6, %r9, 64; add.s64 %rd6, %rd1, %rd6;\n"
        );
        for i in 0..sums {
            body += &format!("mov.f32 %f{i}, 0f7FC00000;\n");
        }
        body += "{ .reg .pred p; setp.ne.b32 p, 0, 0;\nwgmma.fence.sync.aligned;\n";
        let transposed = |layout: Layout| u32::from(layout.transposed);
        for step in 0..STEPS {
            let descriptors = [left.descriptor(0, step), right.descriptor(left.size(), step)];
            let a = match self.a {
                Some(_) => format!("{:#x}", descriptors[0]),
                None => {
                    body += &format!("ld.global.v4.b32 {{{}}}, [%rd6+{}];\n", list("a", 4), step * 16);
                    format!("{{{}}}", list("a", 4))
                }
            };
            let (shape, transposes) = match (self.factors, self.a) {
                (Factors::Tensor, _) => ("k8", String::new()),
                (_, Some(_)) => ("k16", format!(", {}, {}", transposed(left), transposed(right))),
                (_, None) => ("k16", format!(", {}", transposed(right))),
            };
            let (name, columns) = (self.factors.name(), self.columns);
            body += &format!(
                "wgmma.mma_async.sync.aligned.m64n{columns}{shape}.f32.{name}.{name} {{{}}}, {a}, {:#x}, p, {}, {}{transposes};
                 setp.eq.b32 p, 0, 0;\n",
                list("f", sums), descriptors[1], self.signs[0], self.signs[1]
            );
        }
        body += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }\n";
        body += &format!("mul.wide.u32 %rd7, %r9, {}; add.s64 %rd7, %rd2, %rd7;\n", sums * 4);
        (0..sums).for_each(|i| body += &format!("st.global.f32 [%rd7+{}], %f{i};\n", i * 4));
        body
    }

    fn check(&self) {
        let text = hopper(0, 3, ".reg .f32 %f<128>; .reg .b32 %a<4>;", &self.body());
        let mut bench = Bench::new();
        let image = self.image();
        let words = [bench.words(&image), bench.words(&self.registers()), bench.fresh(256 * self.columns)];
        let run = bench.try_run_with(&text, 1, 128, image.len() * 4, &words);
        run.unwrap_or_else(|finding| panic!("{finding}\n{self:?}"));
        let found = bench.read(words[2], 64 * self.columns);
        let depth = DEPTH_BYTES / self.factors.bytes();
        for (number, found) in found.iter().enumerate() {
            let (thread, register) = (number / (self.columns / 2), number % (self.columns / 2));
            let row = thread / 32 * 16 + thread % 32 / 4 + register / 2 % 2 * 8;
            let column = register / 4 * 8 + thread % 4 * 2 + register % 2;
            let sum: i32 = (0..depth).map(|k| value(0, row, k) * value(1, column, k)).sum();
            let expected = self.expected(sum);
            assert_eq!(f32::from_bits(*found), expected, "row {row}, column {column} of {self:?}");
        }
    }

    /// Returns the expected result; the lower bits of TF32 operands are set, and ignored.
    fn expected(&self, sum: i32) -> f32 {
        (sum * self.signs[0] * self.signs[1]) as f32
    }
}

#[test]
fn left_factors_of_all_layouts() {
    for span in [0, 32, 64, 128] {
        for transposed in [false, true] {
            Case { a: Some((span, transposed)), ..CASE }.check();
        }
        Case { a: Some((span, false)), factors: Factors::Tensor, ..CASE }.check();
    }
}

#[test]
fn right_factors_of_all_layouts() {
    for span in [0, 32, 64, 128] {
        for transposed in [false, true] {
            Case { b: (span, transposed), columns: 64, factors: Factors::Half, ..CASE }.check();
        }
        Case { b: (span, false), columns: 24, factors: Factors::Tensor, ..CASE }.check();
    }
}

#[test]
fn left_factors_in_registers() {
    for factors in [Factors::Brain, Factors::Half, Factors::Tensor] {
        Case { a: None, factors, columns: 16, ..CASE }.check();
    }
    Case { a: None, b: (64, true), columns: 32, ..CASE }.check();
}

#[test]
fn many_columns_and_signs() {
    for (columns, b) in [(128, (128, true)), (256, (128, false)), (256, (64, true))] {
        Case { columns, b, ..CASE }.check();
    }
    for signs in [[-1, 1], [1, -1], [-1, -1]] {
        Case { signs, ..CASE }.check();
    }
}

/// Runs a body of [`CASE`].
fn ran(body: &str) -> Result<(), String> {
    ran_by(128, body)
}

fn ran_by(threads: u32, body: &str) -> Result<(), String> {
    let text = hopper(0, 3, ".reg .f32 %f<128>; .reg .b32 %a<4>;", body);
    let mut bench = Bench::new();
    let image = CASE.image();
    let words = [bench.words(&image), bench.words(&CASE.registers()), bench.fresh(256 * CASE.columns)];
    let ran = bench.try_run_with(&text, 1, threads, image.len() * 4, &words);
    ran.map_err(|finding| finding.to_string())
}

#[test]
fn warp_groups_are_whole() {
    let told = ran_by(64, &CASE.body()).unwrap_err();
    assert!(told.contains("synccheck") && told.contains("wgmma takes four warps"), "{told}");
    let some = "setp.lt.u32 %p2, %r9, 8; @%p2 ret; wgmma.commit_group.sync.aligned;";
    let told = ran(&CASE.body().replace("wgmma.commit_group.sync.aligned;", some)).unwrap_err();
    assert!(told.contains("synccheck") && told.contains("thread 0, which has ended"), "{told}");
    // Three warps execute wgmma that the fourth one does not.
    let fewer = "wgmma.fence.sync.aligned; setp.lt.u32 %p2, %r9, 96; @!%p2 ret;";
    let told = ran(&CASE.body().replace("wgmma.fence.sync.aligned;", fewer)).unwrap_err();
    assert!(told.contains("warp 3 of a warp group has done 0 wgmma, and its first warp 4"), "{told}");
    let lanes = "cvt.u64.u32 %rd8, %r9; wgmma.mma_async";
    let apart = CASE.body().replace("wgmma.mma_async", lanes).replace(", 0x4000004000000200, p", ", %rd8, p");
    let told = ran(&apart).unwrap_err();
    assert!(told.contains("different descriptors"), "{told}\n{apart}");
}

#[test]
fn what_threads_store_is_fenced() {
    let body = CASE.body();
    ran(&body).unwrap();
    let fence = "fence.proxy.async.shared::cta; bar.sync 0;";
    assert!(body.contains(fence));
    let told = ran(&body.replace(fence, "bar.sync 0;")).unwrap_err();
    assert!(told.contains("racecheck") && told.contains("without fence.proxy.async after it, were written"), "{told}");
    // The fence must precede the barrier: a thread's fence does not cover stores of other threads.
    ran(&body.replace(fence, "bar.sync 0; fence.proxy.async;")).unwrap();
    let told = ran(&body.replace(fence, "fence.proxy.async;")).unwrap_err();
    assert!(told.contains("check: "), "{told}");
    // `cp.async` writes through the generic proxy, so it needs a fence too.
    let stored = "st.shared.v4.b32 [%rd4], {%a0, %a1, %a2, %a3};";
    let copied = body.replace(stored, "cp.async.cg.shared.global [%rd4], [%rd5], 16;");
    let copied = copied.replace(fence, &format!("cp.async.wait_all; {fence}"));
    ran(&copied).unwrap();
    let told = ran(&copied.replace(fence, "bar.sync 0;")).unwrap_err();
    assert!(told.contains("without fence.proxy.async after it, were written"), "{told}");
}

#[test]
fn unfinished_products_are_left_alone() {
    let body = CASE.body();
    // Store to an operand before the wgmma are waited for.
    let stored = "wgmma.commit_group.sync.aligned; st.shared.b32 [tile], 0;";
    let told = ran(&body.replace("wgmma.commit_group.sync.aligned;", stored)).unwrap_err();
    assert!(told.contains("are read by a wgmma begun"), "{told}");
    // A move of an accumulator does not read its value.
    let wait = "wgmma.wait_group.sync.aligned 0;";
    ran(&body.replace(wait, &format!("mov.b32 %a0, %f0; {wait}"))).unwrap();
    for early in [
        "add.f32 %f1, %f0, %f0;",
        "mov.b32 %a0, %f0; add.s32 %a1, %a0, 1;",
        "mov.b64 %rd8, {%f0, %f1}; st.global.b64 [%rd2], %rd8;",
    ] {
        let told = ran(&body.replace(wait, &format!("{early} {wait}"))).unwrap_err();
        assert!(told.contains("reads a register of a wgmma"), "{early}\n{told}");
    }
}
