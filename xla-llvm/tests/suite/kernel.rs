//! Array kernels around an emission, compiled and run: `out[i] = f(in0[i], in1[i], ...)`.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use xla_hlo::{ElementType, Result};
use xla_llvm::elemental::{self, Value};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::jit::LoadedCode;
use xla_llvm::target::{MachineOptions, Target};

/// Inputs, output and lanes of a kernel.
pub struct Signature<'a> {
    /// Lanes per step.
    pub width: u32,
    /// Element types of the inputs.
    pub inputs: &'a [ElementType],
    /// Element type of the output.
    pub output: ElementType,
    /// Whether any length is allowed; otherwise lengths are multiples of the width.
    pub masked: bool,
    /// Options of the emission.
    pub options: EmitOptions,
}

/// A compiled array kernel.
pub struct Kernel {
    _code: LoadedCode,
    entry: Entry,
    /// Required divisor of the length.
    multiple: usize,
    inputs: Vec<usize>,
    output: usize,
}

type Entry = unsafe extern "C" fn(*const *const c_void, *mut c_void, i64);

impl Kernel {
    #[allow(dead_code, reason = "not everybody who includes this file runs its kernels")]
    /// Compiles `body`, which maps elements of the inputs to an element of the output; returns an error if the emission
    /// fails.
    pub fn new(
        target: &Target,
        signature: &Signature<'_>,
        body: impl for<'e, 'c> Fn(&'e Emitter<'c>, &[Value<'e, 'c>]) -> Result<Value<'e, 'c>>,
    ) -> Result<Kernel> {
        let machine = target.machine(&MachineOptions::default()).unwrap();
        let context = Context::create();
        let module = emit(&context, target, signature, body)?;
        module.verify().unwrap_or_else(|e| panic!("{}", e.to_string()));
        let object = machine.object(&module).unwrap();
        let code = LoadedCode::link(&[object], &[]).unwrap();
        let flushes = signature.options.flush_denormals;
        let address = code.address(if flushes { "kernel.flushing" } else { "kernel" }).unwrap();
        // SAFETY: `emit` defines the functions of these names with this signature.
        let entry = unsafe { std::mem::transmute::<*const c_void, Entry>(address) };
        let bytes = |ty: &ElementType| ty.byte_width();
        Ok(Kernel {
            _code: code,
            entry,
            multiple: if signature.masked { 1 } else { signature.width as usize },
            inputs: signature.inputs.iter().map(bytes).collect(),
            output: bytes(&signature.output),
        })
    }

    /// Runs the kernel on the bytes of arrays with equal numbers of elements, a multiple of the kernel's `multiple`.
    pub fn run_bytes(&self, inputs: &[&[u8]], output: &mut [u8]) {
        let count = output.len() / self.output;
        assert!(count > 0 && count.is_multiple_of(self.multiple) && inputs.len() == self.inputs.len());
        assert!(inputs.iter().zip(&self.inputs).all(|(input, size)| input.len() == count * size));
        let pointers: Vec<*const c_void> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
        // SAFETY: the code reads `count` elements of each input and writes `count` elements of the output, whose
        // lengths were checked above. It lives as long as `self`.
        unsafe { (self.entry)(pointers.as_ptr(), output.as_mut_ptr().cast(), count as i64) }
    }

    /// Runs the kernel on arrays of equal length, padded to the multiple by repeating the last element.
    #[allow(dead_code, reason = "not everybody who includes this file has typed arrays")]
    pub fn run<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let count = inputs[0].len();
        let padded = count.next_multiple_of(self.multiple);
        let inputs: Vec<Vec<u8>> = inputs
            .iter()
            .map(|input| {
                let last = *input.last().unwrap();
                input.iter().copied().chain(std::iter::repeat_n(last, padded - count)).flat_map(T::bytes).collect()
            })
            .collect();
        let mut output = vec![0; padded * self.output];
        self.run_bytes(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut output);
        output.chunks(self.output).take(count).map(T::read).collect()
    }
}

/// Number whose bytes kernels read and write.
pub trait Number: Copy {
    /// Returns the bytes in memory.
    fn bytes(self) -> impl Iterator<Item = u8>;
    /// Reads a number from its bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($type:ident)*) => { $(
        impl Number for $type {
            fn bytes(self) -> impl Iterator<Item = u8> {
                self.to_ne_bytes().into_iter()
            }

            fn read(bytes: &[u8]) -> $type {
                $type::from_ne_bytes(bytes.try_into().unwrap())
            }
        }
    )* };
}

numbers!(u16 f32 f64);

/// Emits `kernel(inputs: *const *const void, out: *mut void, n: i64)`, a loop in steps of the width, and also
/// `kernel.flushing` if subnormals may be flushed.
pub fn emit<'c>(
    context: &'c Context,
    target: &Target,
    signature: &Signature<'_>,
    body: impl for<'e> Fn(&'e Emitter<'c>, &[Value<'e, 'c>]) -> Result<Value<'e, 'c>>,
) -> Result<Module<'c>> {
    let emitter = Emitter::new(context, "test", target, signature.options);
    let pointer = context.ptr_type(Default::default());
    let long = context.i64_type();
    let kind = context.void_type().fn_type(&[pointer.into(), pointer.into(), long.into()], false);
    let function = emitter.module().add_function("kernel", kind, None);
    emitter.decorate(function);
    let builder = emitter.builder();
    let entry = context.append_basic_block(function, "entry");
    let head = context.append_basic_block(function, "head");
    let done = context.append_basic_block(function, "done");
    builder.position_at_end(entry);
    let table = function.get_nth_param(0).unwrap().into_pointer_value();
    let out = function.get_nth_param(1).unwrap().into_pointer_value();
    let count = function.get_nth_param(2).unwrap();
    let bases: Vec<_> = (0..signature.inputs.len())
        .map(|i| {
            let index = emitter.lanes(long.const_int(i as u64, false));
            let slot = emitter.element_address(table, index, xla_llvm::lanes::Scalar::Int(64)).into_pointer_value();
            builder.build_load(pointer, slot, "").unwrap().into_pointer_value()
        })
        .collect();
    builder.build_unconditional_branch(head).unwrap();
    builder.position_at_end(head);
    let phi = builder.build_phi(long, "i").unwrap();
    let index = emitter.lanes(phi.as_basic_value());
    let mask = signature.masked.then(|| {
        (index.splat(signature.width) + emitter.lane_numbers(64, signature.width))
            .lt(emitter.lanes(count).splat(signature.width))
    });
    let values: Vec<_> = bases
        .iter()
        .zip(signature.inputs)
        .map(|(&base, &ty)| elemental::load(&emitter, base, index, ty, signature.width, mask))
        .collect();
    let result = body(&emitter, &values)?;
    assert_eq!(result.element_type(), signature.output);
    elemental::store(&emitter, result, out, index, mask);
    let next = (index + i64::from(signature.width)).raw();
    let more = emitter.lanes(next).lt(emitter.lanes(count)).raw().into_int_value();
    let end = builder.get_insert_block().unwrap();
    builder.build_conditional_branch(more, head, done).unwrap();
    phi.add_incoming(&[(&long.const_zero(), entry), (&next, end)]);
    builder.position_at_end(done);
    builder.build_return(None).unwrap();
    if signature.options.flush_denormals {
        emitter.flushing(function).set_linkage(Linkage::External);
    }
    emitter.finish()
}
