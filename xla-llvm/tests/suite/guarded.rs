//! Tests of kernels against the evaluator, compiled and run with guard bytes around all memory, and dirty scratch
//! memory.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use xla_hlo::eval::evaluate;
use xla_hlo::ops::Op;
use xla_hlo::text::parse_module;
use xla_hlo::{ElementKind, Literal, Module, Scalar};
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{Kernel, KernelSource, emit_kernel};
use xla_llvm::jit::LoadedCode;
use xla_llvm::target::{MachineOptions, Target};
use xla_service::host::{HostMemory, MEMORY_ALIGNMENT, MemoryPool, PoolLimits};

use crate::masked::level;

type Entry = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// Number of guard bytes before the memory.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xcd;
/// Byte of results that no work item has written.
const UNTOUCHED: u8 = 0xee;

/// Memory aligned to 64 bytes, between guard bytes. After the last multiple of 64 follows a page that cannot be
/// accessed: a read there ends the process.
struct Guarded {
    memory: HostMemory,
    len: usize,
}

impl Guarded {
    fn new(content: &[u8]) -> Guarded {
        let pool = MemoryPool::dirty(PoolLimits::default());
        let memory = pool.allocate(GUARD + content.len().next_multiple_of(MEMORY_ALIGNMENT)).unwrap();
        let mut guarded = Guarded { memory, len: content.len() };
        guarded.memory.bytes_mut().fill(GUARD_BYTE);
        guarded.fill(content);
        guarded
    }

    fn pointer(&mut self) -> *mut u8 {
        self.memory.bytes_mut()[GUARD..].as_mut_ptr()
    }

    fn fill(&mut self, content: &[u8]) {
        self.memory.bytes_mut()[GUARD..][..self.len].copy_from_slice(content);
    }

    /// Returns the content, or `None` if a guard byte was overwritten.
    fn content(&self) -> Option<&[u8]> {
        let (front, rest) = self.memory.bytes().split_at(GUARD);
        let (content, behind) = rest.split_at(self.len);
        front.iter().chain(behind).all(|&byte| byte == GUARD_BYTE).then_some(content)
    }
}

/// Returns an argument of small integers, whose products and sums are exact or rounded once in every type. Parameters
/// whose names begin with `places` contain indices, some of them out of bounds of arrays of ten elements; with `wide`,
/// all numbers of an 8-bit integer; with `infinite`, also infinities.
fn argument(module: &Module, number: usize) -> Literal {
    let graph = module.entry();
    let parameter = &graph[graph.parameters()[number]];
    let shape = parameter.shape().expect_array().unwrap();
    let is = |name: &str| parameter.name().starts_with(name);
    let (count, least) = if is("places") { (13, -1) } else { (5, -2) };
    let ty = shape.element_type();
    let mut state = 0x9e37_79b9_u32 + number as u32;
    Literal::from_fn(shape, |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = if is("wide") { i64::from(state >> 24) } else { i64::from(state >> 28) % count + least };
        match ty.kind() {
            ElementKind::Float if is("infinite") && state >> 22 & 0x3f == 0 => Scalar::Float(f64::INFINITY),
            ElementKind::Pred => Scalar::Pred(value == 2),
            ElementKind::Complex => Scalar::Complex(value as f64, (value * value - 2) as f64),
            ElementKind::Signed | ElementKind::Unsigned | ElementKind::Float => Scalar::from_i64(ty, value).rounded(ty),
        }
    })
    .unwrap()
}

/// Returns the source of a kernel that computes the entry.
fn source(module: &Module) -> KernelSource<'_> {
    let graph = module.entry();
    match graph[graph.root()].op() {
        Op::Fft(_) | Op::Scatter(_) | Op::SelectAndScatter(_) | Op::Sort(_) | Op::TopK(_) => KernelSource {
            module,
            computation: module.entry_id(),
            root: graph.root(),
            inputs: graph.parameters().to_vec(),
            in_place: false,
            overwrites: Vec::new(),
            scalar_loop: None,
        },
        _ => KernelSource::of_computation(module, module.entry_id(), |_| false).unwrap(),
    }
}

/// Runs the entry as one kernel; returns its strategy, and its results if no guard byte was overwritten.
fn run(
    module: &Module,
    target: &Target,
    options: EmitOptions,
    arguments: &[Literal],
) -> (String, Option<Vec<Vec<u8>>>) {
    let (source, threads) = (source(module), options.threads);
    let generated = codegen::generate(target, &MachineOptions::default(), CodeKind::Object, |context| {
        let emitter = Emitter::new(context, "kernels", target, options);
        let kernel: Kernel = emit_kernel(&emitter, &source, "kernel")?;
        Ok((emitter.finish()?, kernel))
    });
    let (object, kernel) = generated.unwrap();
    let code = LoadedCode::link(&[object], &[]).unwrap();
    // SAFETY: kernels have this type.
    let entry = unsafe { std::mem::transmute::<*const c_void, Entry>(code.address("kernel").unwrap()) };
    let leaves = module.entry()[module.entry().root()].shape().leaves();
    let results = leaves.iter().filter_map(|(_, leaf)| leaf.as_array());
    let mut all: Vec<Vec<u8>> =
        results.map(|shape| vec![UNTOUCHED; shape.element_count() * shape.element_type().byte_width()]).collect();
    let mut memory: Vec<Guarded> = arguments.iter().map(|argument| Guarded::new(argument.bytes())).collect();
    memory.extend(all.iter().map(|untouched| Guarded::new(untouched)));
    memory.push(Guarded::new(&vec![0x5a; kernel.scratch_bytes as usize]));
    let pointers: Vec<*mut u8> = memory.iter_mut().map(Guarded::pointer).collect();
    for item in (0..kernel.work_items as i64).rev() {
        for result in &mut memory[arguments.len()..arguments.len() + all.len()] {
            result.fill(&vec![UNTOUCHED; result.len]);
        }
        // SAFETY: the pointers are to arrays of the kernel's shapes, and to scratch memory of the size that it needs.
        unsafe { entry(pointers.as_ptr(), item, item + 1) };
        let Some(contents) = memory.iter().map(Guarded::content).collect::<Option<Vec<&[u8]>>>() else {
            return (kernel.strategy, None);
        };
        for (all, written) in all.iter_mut().zip(&contents[arguments.len()..]) {
            let pieces = all.chunks_mut(GUARD).zip(written.chunks(GUARD));
            // Work items are many and write little: whole untouched pieces are compared quickly.
            for (all, written) in pieces.filter(|(_, written)| **written != [UNTOUCHED; GUARD][..written.len()]) {
                for (byte, &written) in all.iter_mut().zip(written).filter(|(_, written)| **written != UNTOUCHED) {
                    let again = *byte != UNTOUCHED && threads > 1;
                    assert!(!again, "two work items write to one place: {} for {threads} threads", kernel.strategy);
                    *byte = written;
                }
            }
        }
    }
    (kernel.strategy, Some(all))
}

/// Compares a program of one kernel with the evaluator at every x86 level, for one thread and for several.
pub fn check(text: &str, strategy: &str) {
    check_by(text, strategy, |found, expected| found == expected.bytes());
}

/// Compares a program with the evaluator like [`check`], with a limit for the difference of two numbers.
pub fn check_within(text: &str, strategy: &str, limit: f64) {
    let parts = |scalar| match scalar {
        Scalar::Complex(re, im) => [re, im],
        Scalar::Float(x) => [x, 0.0],
        other => panic!("{other:?} is not rounded"),
    };
    check_by(text, strategy, |found, expected| {
        let found = Literal::from_bytes(expected.array_shape(), found.to_vec()).unwrap();
        (0..expected.array_shape().element_count()).all(|i| {
            let [found, expected] = [&found, expected].map(|literal| parts(literal.get(i)));
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= limit)
        })
    });
}

/// Compares the results of a program with those of the evaluator at every x86 level, by a function of bytes and the
/// expected array.
fn check_by(text: &str, strategy: &str, agree: impl Fn(&[u8], &Literal) -> bool) {
    let host = cfg!(not(target_arch = "x86_64")).then(|| Target::host().unwrap());
    let targets = ["x86-64", "x86-64-v3", "x86-64-v4"].into_iter().filter_map(level).chain(host);
    check_on(text, &targets.collect::<Vec<_>>(), EmitOptions::default(), |chosen, target, results| {
        assert!(chosen.starts_with(strategy), "{chosen} on {}\n{text}", target.cpu());
        results.iter().all(|(found, expected)| agree(found, expected))
    });
}

/// Compares the results of a program with those of the evaluator on each target, by a function of strategy, target, and
/// pairs of bytes and expected array.
pub fn check_on(
    text: &str,
    targets: &[Target],
    options: EmitOptions,
    agree: impl Fn(&str, &Target, &[(Vec<u8>, &Literal)]) -> bool,
) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let arguments: Vec<Literal> = (0..module.entry().parameters().len()).map(|n| argument(&module, n)).collect();
    let expected = evaluate(&module, arguments.clone()).unwrap();
    let expected = expected.leaves();
    for target in targets {
        for threads in [1, 3] {
            let options = EmitOptions { threads, prefetch: threads > 1, dirt: Some(0x5a), ..options };
            let (chosen, results) = run(&module, target, options, &arguments);
            let case = format!("{chosen} on {} for {threads} threads\n{text}", target.cpu());
            let results = results.unwrap_or_else(|| panic!("writes beside its memory: {case}"));
            assert_eq!(results.len(), expected.len(), "{case}");
            let pairs: Vec<(Vec<u8>, &Literal)> = results.into_iter().zip(expected.iter().copied()).collect();
            assert!(agree(&chosen, target, &pairs), "{case}");
        }
    }
}
