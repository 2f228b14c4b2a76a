//! Array kernels around an emission, compiled and run: `out[i] = f(in0[i], in1[i], ...)`.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use inkwell::context::Context;
use inkwell::values::BasicValueEnum;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::jit::LoadedCode;
use xla_llvm::lanes::{Lanes, Scalar};
use xla_llvm::target::{MachineOptions, Target};

/// A compiled array kernel with up to three inputs.
pub struct Kernel {
    _code: LoadedCode,
    entry: Entry,
    width: usize,
}

type Entry = unsafe extern "C" fn(*const *const c_void, *mut c_void, i64);

impl Kernel {
    /// Compiles `body`, which maps lanes of the input scalar types to lanes of `output`, at the given width.
    pub fn new(
        target: &Target,
        width: u32,
        inputs: &[Scalar],
        output: Scalar,
        body: impl for<'e, 'c> Fn(&'e Emitter<'c>, &[Lanes<'e, 'c>]) -> Lanes<'e, 'c>,
    ) -> Kernel {
        let object = target.machine(&MachineOptions::default()).unwrap();
        let context = Context::create();
        let module = emit(&context, target, width, inputs, output, body);
        module.verify().unwrap_or_else(|e| panic!("{}", e.to_string()));
        let object = object.object(&module).unwrap();
        let code = LoadedCode::link(&[object], &[]).unwrap();
        let address = code.address("kernel").unwrap();
        // SAFETY: `emit` gives the function of that name this signature.
        let entry = unsafe { std::mem::transmute::<*const c_void, Entry>(address) };
        Kernel { _code: code, entry, width: width as usize }
    }

    /// Runs the kernel over equally long arrays; lengths are padded to the width by repeating the last element.
    pub fn run<I: Copy, O: Copy + Default>(&self, inputs: &[&[I]]) -> Vec<O> {
        let count = inputs[0].len();
        let padded = count.next_multiple_of(self.width);
        let inputs: Vec<Vec<I>> = inputs
            .iter()
            .map(|input| {
                assert_eq!(input.len(), count);
                let mut input = input.to_vec();
                input.resize(padded, *input.last().unwrap());
                input
            })
            .collect();
        let inputs: Vec<&[I]> = inputs.iter().map(Vec::as_slice).collect();
        let mut output = vec![O::default(); padded];
        self.run_into(&inputs, &mut output);
        output.truncate(count);
        output
    }

    /// Runs the kernel over arrays whose equal lengths are multiples of the width.
    pub fn run_into<I: Copy, O: Copy>(&self, inputs: &[&[I]], output: &mut [O]) {
        let count = output.len();
        assert!(count > 0 && count.is_multiple_of(self.width) && inputs.iter().all(|input| input.len() == count));
        let pointers: Vec<*const c_void> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
        // SAFETY: the code reads `count` elements of each input and writes as many of the output; the test states the
        // element types it compiled for. The code lives as long as `self`.
        unsafe { (self.entry)(pointers.as_ptr(), output.as_mut_ptr().cast(), count as i64) }
    }
}

/// Emits `kernel(inputs: *const *const void, out: *mut void, n: i64)`, a loop in steps of the width.
pub fn emit<'c>(
    context: &'c Context,
    target: &Target,
    width: u32,
    inputs: &[Scalar],
    output: Scalar,
    body: impl for<'e> Fn(&'e Emitter<'c>, &[Lanes<'e, 'c>]) -> Lanes<'e, 'c>,
) -> inkwell::module::Module<'c> {
    let emitter = Emitter::new(context, "test", target, EmitOptions::default());
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
    let count = function.get_nth_param(2).unwrap().into_int_value();
    let bases: Vec<_> = (0..inputs.len())
        .map(|i| {
            let index = emitter.lanes(long.const_int(i as u64, false));
            let slot = emitter.element_address(table, index, Scalar::Int(64)).into_pointer_value();
            builder.build_load(pointer, slot, "").unwrap().into_pointer_value()
        })
        .collect();
    builder.build_unconditional_branch(head).unwrap();
    builder.position_at_end(head);
    let phi = builder.build_phi(long, "i").unwrap();
    let index = emitter.lanes(phi.as_basic_value());
    let values: Vec<_> =
        bases.iter().zip(inputs).map(|(&base, &scalar)| emitter.load_lanes(base, index, scalar, width, None)).collect();
    let result = body(&emitter, &values);
    assert_eq!(result.scalar(), output);
    emitter.store_lanes(result, out, index, None);
    let next = (index + i64::from(width)).raw();
    let more = emitter.lanes(next).lt(emitter.lanes(BasicValueEnum::from(count))).raw().into_int_value();
    let end = builder.get_insert_block().unwrap();
    builder.build_conditional_branch(more, head, done).unwrap();
    phi.add_incoming(&[(&long.const_zero(), entry), (&next, end)]);
    builder.position_at_end(done);
    builder.build_return(None).unwrap();
    emitter.finish().unwrap()
}
