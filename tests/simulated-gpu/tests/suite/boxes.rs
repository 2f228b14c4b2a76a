//! Tests of bulk copies of tensor boxes, against copies of single elements.

use simulated_gpu::machine::{Swizzle, TensorMap};

use super::bench::{Bench, hopper, map_words};

/// Returns a kernel body: one thread starts the copy of a box, all wait for it, and store `words` words of shared
/// memory.
fn body(coordinates: &[i32], words: usize) -> String {
    let listed: Vec<String> = coordinates.iter().map(i32::to_string).collect();
    let (rank, listed, bytes) = (coordinates.len(), listed.join(", "), words * 4);
    format!(
        "setp.ne.u32 %p1, %r9, 0; mov.b64 %rd3, bar; @%p1 bra $made; mbarrier.init.shared::cta.b64 [%rd3], 1;
         fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; prefetch.tensormap [%m0];
         {{ .reg .b64 %rd<2>; mov.b64 %rd1, tile; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd1], [%m0, {{{listed}}}], [bar]; }}
         $made: bar.sync 0;
         {{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], 0; @!p bra WAIT; }}
         mul.wide.u32 %rd4, %r9, 4; mov.b64 %rd5, tile; add.s64 %rd5, %rd5, %rd4; add.s64 %rd6, %rd0, %rd4; mov.b32 %r2, %r9;
         $store: setp.ge.u32 %p3, %r2, {words}; @%p3 bra $end; ld.shared.b32 %r3, [%rd5]; st.global.b32 [%rd6], %r3;
         add.s64 %rd5, %rd5, 128; add.s64 %rd6, %rd6, 128; add.s32 %r2, %r2, 32; bra $store; $end:"
    )
}

/// Tensor of consecutive numbers as halves, and a box of it.
struct Box<'a> {
    sizes: &'a [u64],
    extents: &'a [u32],
    steps: &'a [u32],
    coordinates: &'a [i32],
    swizzle: Swizzle,
}

impl Box<'_> {
    /// Returns the distance of rows of the tensor in elements; rows are padded to 16 bytes.
    fn row(&self) -> u64 {
        self.sizes[0].next_multiple_of(8)
    }

    fn map(&self, address: u64) -> TensorMap {
        let mut strides = [2; 5];
        for d in 1..self.sizes.len() {
            strides[d] = if d == 1 { self.row() * 2 } else { strides[d - 1] * self.sizes[d - 1] };
        }
        let padded = |from: &[u32]| std::array::from_fn(|d| from.get(d).copied().unwrap_or(1));
        TensorMap {
            width: 2,
            rank: self.sizes.len(),
            address,
            sizes: std::array::from_fn(|d| self.sizes.get(d).copied().unwrap_or(1)),
            strides,
            extents: padded(self.extents),
            steps: padded(self.steps),
            swizzle: self.swizzle,
        }
    }

    /// Returns the element at a position in the tensor; zero outside of it.
    fn element(&self, place: &[i64]) -> u16 {
        let mut number = 0;
        for (d, &at) in place.iter().enumerate().rev() {
            if at < 0 || at as u64 >= self.sizes[d] {
                return 0;
            }
            number = number * if d == 0 { self.row() } else { self.sizes[d] } + at as u64;
        }
        number as u16 + 1
    }

    fn expected(&self, words: usize) -> Vec<u32> {
        let step = |d: usize| if d == 0 { 1 } else { self.steps[d] };
        let taken: Vec<u32> = (0..self.sizes.len()).map(|d| self.extents[d].div_ceil(step(d))).collect();
        let mut halves = vec![0u16; words * 2];
        for number in 0..taken.iter().product::<u32>() {
            let mut rest = number;
            let place: Vec<i64> = (0..taken.len())
                .map(|d| {
                    let at = rest % taken[d];
                    rest /= taken[d];
                    i64::from(self.coordinates[d]) + i64::from(at * step(d))
                })
                .collect();
            let byte = number as usize * 2;
            let (line, chunk) = (byte / 128, byte / 16 % 8);
            let chunk = match self.swizzle {
                Swizzle::None => chunk,
                Swizzle::Bytes32 => chunk ^ (line % 2),
                Swizzle::Bytes64 => chunk ^ (line % 4),
                Swizzle::Bytes128 => chunk ^ (line % 8),
            };
            halves[(line * 128 + chunk * 16 + byte % 16) / 2] = self.element(&place);
        }
        halves.chunks(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect()
    }

    fn check(&self) {
        let mut bench = Bench::new();
        let elements = self.row() * self.sizes[1..].iter().product::<u64>();
        let tensor: Vec<u32> = (0..elements as u32 / 2).map(|i| (2 * i + 1) | ((2 * i + 2) << 16)).collect();
        let map = self.map(bench.words(&tensor));
        let words = map.box_bytes() / 4;
        let into = bench.fresh(words * 4);
        let parameters = [map_words(&map.encode()), vec![into]].concat();
        let text = hopper(1, 1, ".shared .align 8 .b8 bar[8];", &body(self.coordinates, words));
        let ran = bench.try_run_with(&text, 1, 32, words * 4, &parameters);
        ran.unwrap_or_else(|finding| panic!("{finding}\n{text}"));
        assert_eq!(bench.read(into, words), self.expected(words), "{:?} at {:?}", map, self.coordinates);
    }
}

const PLAIN: Box<'_> = Box { sizes: &[], extents: &[], steps: &[1; 5], coordinates: &[], swizzle: Swizzle::None };

#[test]
fn boxes_of_each_rank() {
    Box { sizes: &[100], extents: &[64], coordinates: &[7], ..PLAIN }.check();
    Box { sizes: &[20, 9], extents: &[8, 4], coordinates: &[3, 2], ..PLAIN }.check();
    Box { sizes: &[20, 9, 5], extents: &[16, 4, 3], coordinates: &[1, 2, 1], ..PLAIN }.check();
    Box { sizes: &[16, 3, 4, 3], extents: &[8, 2, 2, 2], coordinates: &[0, 1, 1, 0], ..PLAIN }.check();
    Box { sizes: &[16, 3, 2, 3, 2], extents: &[8, 2, 2, 2, 2], coordinates: &[8, 1, 0, 1, 0], ..PLAIN }.check();
}

#[test]
fn zeros_are_outside() {
    Box { sizes: &[100], extents: &[64], coordinates: &[-7], ..PLAIN }.check();
    Box { sizes: &[20, 9], extents: &[16, 8], coordinates: &[-3, 5], ..PLAIN }.check();
    Box { sizes: &[20, 9], extents: &[16, 8], coordinates: &[12, -4], ..PLAIN }.check();
    Box { sizes: &[20, 9], extents: &[16, 8], coordinates: &[20, 0], ..PLAIN }.check();
    Box { sizes: &[13, 3, 2, 3, 2], extents: &[16, 2, 2, 2, 3], coordinates: &[-1, -1, 1, 2, -1], ..PLAIN }.check();
}

#[test]
fn chunks_are_swizzled() {
    for (swizzle, inner) in [(Swizzle::Bytes32, 16), (Swizzle::Bytes64, 32), (Swizzle::Bytes128, 64)] {
        Box { sizes: &[80, 40], extents: &[inner, 24], coordinates: &[8, 5], swizzle, ..PLAIN }.check();
        Box { sizes: &[80, 40], extents: &[inner, 32], coordinates: &[60, -3], swizzle, ..PLAIN }.check();
        Box { sizes: &[80, 5, 7], extents: &[inner, 4, 8], coordinates: &[0, 2, -1], swizzle, ..PLAIN }.check();
        Box { sizes: &[80], extents: &[inner], coordinates: &[30], swizzle, ..PLAIN }.check();
        Box { sizes: &[72, 3, 2, 3], extents: &[inner, 2, 2, 4], coordinates: &[9, 1, -1, 0], swizzle, ..PLAIN }
            .check();
        let extents = [inner, 3, 2, 2, 2];
        Box { sizes: &[64, 3, 2, 3, 2], extents: &extents, coordinates: &[5, 0, 0, 2, 1], swizzle, ..PLAIN }.check();
    }
}

#[test]
fn elements_are_left_out() {
    Box { sizes: &[24, 20, 9], extents: &[8, 7, 8], steps: &[1, 3, 2], coordinates: &[8, 1, 2], ..PLAIN }.check();
}

/// Runs a valid two-dimensional copy with a change of its map or kernel, and checks the finding.
fn finding(change: impl Fn(&mut TensorMap), text: impl Fn(String) -> String, expected: &str) {
    let plain = Box { sizes: &[64, 16], extents: &[64, 8], coordinates: &[0, 0], swizzle: Swizzle::Bytes128, ..PLAIN };
    let mut bench = Bench::new();
    let mut map = plain.map(bench.words(&[1; 512]));
    change(&mut map);
    let into = bench.fresh(1024);
    let parameters = [map_words(&map.encode()), vec![into]].concat();
    let text = text(hopper(1, 1, ".shared .align 8 .b8 bar[8];", &body(&[0, 0], 256)));
    let told = bench.try_run_with(&text, 1, 32, 1024, &parameters).expect_err(expected).to_string();
    assert!(told.contains(expected), "{told}\n{text}");
}

#[test]
fn what_is_wrong_with_a_copy_is_found() {
    let same = |_: &mut TensorMap| {};
    let replaced = |from: &'static str, to: &'static str| {
        move |text: String| {
            assert!(text.contains(from), "{text}");
            text.replace(from, to)
        }
    };
    let plain = |text: String| text;
    finding(|map| map.sizes[1] = 17, replaced("{0, 0}", "{0, 9}"), "memcheck");
    finding(|map| map.address += 4096, plain, "outside of the device's memory");
    finding(|map| map.rank = 3, plain, "2 coordinates of a tensor of 3");
    finding(same, replaced("[%rd1],", "[%rd1+64],"), "not aligned to 128 bytes");
    finding(same, replaced("[%rd1],", "[%rd1+128],"), "outside of the 2048 bytes of shared memory");
    // The copy has more, and fewer, bytes than the barrier expects.
    finding(same, replaced("], 1024;", "], 1008;"), "expects 1008");
    finding(same, replaced("], 1024;", "], 1040;"), "(0 arrivals and 16 bytes are missing)");
    // The parameter is not a tensor map.
    finding(
        same,
        replaced("cvta.param.u64 %m0, %m0;", "add.s64 %m0, %m0, 64; cvta.param.u64 %m0, %m0;"),
        "no tensor map",
    );
    finding(
        same,
        replaced("cvta.param.u64 %m0, %m0;", "add.s64 %m0, %m0, 8; cvta.param.u64 %m0, %m0;"),
        "not aligned to 64",
    );
    // No thread waits, or one thread waits and does not synchronize with the others.
    let wait = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], 0; @!p bra WAIT;";
    finding(same, replaced(wait, ""), "nobody has written");
    finding(same, replaced(wait, "ret;"), "nobody has waited for the bulk copy");
    let by_one = "setp.ne.u32 p, %r9, 0; @p bra ON; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], 0; @!p bra WAIT; ON:";
    finding(same, replaced(wait, by_one), "no wait for its mbarrier that it knows of, are written by a bulk copy");
}

#[test]
fn who_hears_of_a_wait_knows_of_its_bytes() {
    let tensor = Box { sizes: &[64, 16], extents: &[64, 8], coordinates: &[0, 0], ..PLAIN };
    let mut bench = Bench::new();
    let map = tensor.map(bench.words(&[1; 512]));
    let parameters = [map_words(&map.encode()), vec![bench.fresh(1024)]].concat();
    let text = hopper(1, 1, ".shared .align 8 .b8 bar[8];", &body(&[0, 0], 256));
    let by_one =
        "setp.ne.u32 p, %r9, 0; @p bra ON; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], 0; @!p bra WAIT;
        ON: bar.warp.sync -1;";
    let wait = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], 0; @!p bra WAIT;";
    bench.try_run_with(&text.replace(wait, by_one), 1, 32, 1024, &parameters).unwrap();
}
