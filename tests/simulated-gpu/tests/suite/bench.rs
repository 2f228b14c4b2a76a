//! Test bench: a device, arrays in its memory, and launches of kernels from PTX text.

use simulated_gpu::code::Approximations;
use simulated_gpu::finding::Finding;
use simulated_gpu::machine::{Launch, Memory, Outside, launch};
use simulated_gpu::program::Program;

pub struct Bench {
    memory: Memory,
    approximations: Approximations,
}

/// Driver without graphs, and so without conditions.
struct NoGraph;

impl Outside for NoGraph {
    fn set_condition(&mut self, _: u64, _: u32) -> bool {
        false
    }
}

/// Returns a module with one kernel `k`. Its parameters `p0`, `p1`, ... are 64-bit words, loaded into `%rd0`, `%rd1`,
/// ... There are ten registers of each kind, and `%r9` is the index of the thread in its block.
pub fn kernel(parameters: usize, declarations: &str, body: &str) -> String {
    let listed: Vec<String> = (0..parameters).map(|p| format!(".param .u64 p{p}")).collect();
    let loads: String = (0..parameters).map(|p| format!("ld.param.u64 %rd{p}, [p{p}];\n")).collect();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({})\n{{\n.reg .b64 %rd<10>; .reg .b32 %r<10>; .reg .b16 %rs<10>; \
         .reg .pred %p<10>;\n{declarations}\n{loads}mov.u32 %r9, %tid.x;\n{body}\nret;\n}}\n",
        listed.join(", ")
    )
}

/// Returns a module like [`kernel`], for sm_90a. Tensor maps `m0`, `m1`, ... precede the other parameters, with their
/// generic addresses in `%m0`, `%m1`, ..., and `tile` is dynamic shared memory.
pub fn hopper(maps: usize, parameters: usize, declarations: &str, body: &str) -> String {
    let listed: String = (0..maps).map(|m| format!(".param .align 64 .b8 m{m}[128], ")).collect();
    let addresses: String = (0..maps).map(|m| format!("mov.b64 %m{m}, m{m}; cvta.param.u64 %m{m}, %m{m};\n")).collect();
    let text = kernel(parameters, &format!(".reg .b64 %m<4>; {declarations}"), &format!("{addresses}{body}"));
    let text = text.replace("k(.param", &format!("k({listed}.param")).replace("sm_80", "sm_90a").replace("8.0", "8.6");
    text.replace(".visible", ".extern .shared .align 1024 .b8 tile[];\n.visible")
}

/// Returns a tensor map as words of parameters.
pub fn map_words(map: &[u8; 128]) -> Vec<u64> {
    map.chunks_exact(8).map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))).collect()
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(Approximations::Exact)
    }

    pub fn with(approximations: Approximations) -> Bench {
        Bench { memory: Memory::new(1 << 20, true), approximations }
    }

    /// Creates a device that does not detect reads of uninitialised memory.
    pub fn unchecked() -> Bench {
        Bench { memory: Memory::new(1 << 20, false), ..Bench::new() }
    }

    /// Allocates uninitialised memory.
    pub fn fresh(&mut self, bytes: usize) -> u64 {
        self.memory.allocate(bytes).expect("there is room")
    }

    pub fn words(&mut self, words: &[u32]) -> u64 {
        let address = self.fresh(words.len() * 4);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.write(address, &bytes).expect("it was allocated");
        address
    }

    pub fn free(&mut self, address: u64) {
        assert!(self.memory.free(address));
    }

    pub fn read(&mut self, address: u64, words: usize) -> Vec<u32> {
        let bytes = self.memory.read(address, words * 4).expect("it was written");
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    /// Launches the first kernel of a module.
    pub fn try_run(&mut self, text: &str, blocks: u32, threads: u32, words: &[u64]) -> Result<(), Box<Finding>> {
        self.try_run_with(text, blocks, threads, 0, words)
    }

    /// Launches with dynamic shared memory, in ascending and in descending order of threads; both must succeed.
    pub fn try_run_with(
        &mut self,
        text: &str,
        blocks: u32,
        threads: u32,
        shared: usize,
        words: &[u64],
    ) -> Result<(), Box<Finding>> {
        let program = Program::load(text, &mut self.memory, 90, self.approximations);
        let program = program.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let parameters: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let how = Launch {
            kernel: &program.kernels()[0],
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            dynamic_shared: shared,
            parameters: &parameters,
            backwards: threads % 2 == 1,
        };
        launch(&mut self.memory, &how, &mut NoGraph)
    }

    pub fn run(&mut self, text: &str, blocks: u32, threads: u32, words: &[u64]) {
        self.try_run(text, blocks, threads, words).unwrap_or_else(|finding| panic!("{finding}\n{text}"));
    }
}
