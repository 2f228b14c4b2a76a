//! Tests of code in memory: linking of several modules, runtime functions, errors.
#![expect(unsafe_code, reason = "generated code is called through a pointer")]

use std::ffi::c_void;

use inkwell::context::Context;
use xla_hlo::Error;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::jit::{LoadedCode, RuntimeSymbol};
use xla_llvm::target::{MachineOptions, Target};

extern "C" fn twice(x: i64) -> i64 {
    2 * x
}

/// Returns an object with the function `name(x) = callee(x) + number`.
fn object(target: &Target, name: &str, callee: &str, number: i64) -> Vec<u8> {
    let context = Context::create();
    let emitter = Emitter::new(&context, name, target, EmitOptions::default());
    let long = context.i64_type();
    let kind = long.fn_type(&[long.into()], false);
    let called = emitter.module().add_function(callee, kind, None);
    let function = emitter.module().add_function(name, kind, None);
    emitter.decorate(function);
    emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
    let call = emitter.builder().build_call(called, &[function.get_nth_param(0).unwrap().into()], "").unwrap();
    let sum = emitter.lanes(call.try_as_basic_value().basic().unwrap()) + number;
    emitter.builder().build_return(Some(&sum.raw())).unwrap();
    let machine = target.machine(&MachineOptions::default()).unwrap();
    machine.object(&emitter.finish().unwrap()).unwrap()
}

fn twice_symbol() -> RuntimeSymbol<'static> {
    RuntimeSymbol { name: "runtime.twice", address: twice as *const c_void }
}

fn call(code: &LoadedCode, name: &str, x: i64) -> i64 {
    let address = code.address(name).unwrap();
    // SAFETY: `object` defines every function of these tests with this type; the code outlives the call.
    let function = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(i64) -> i64>(address) };
    function(x)
}

#[test]
fn modules_made_on_threads_call_each_other_and_the_runtime() {
    let target = Target::host().unwrap();
    let objects: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let target = &target;
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let callee = if i == 0 { "runtime.twice".to_string() } else { format!("f{}", i - 1) };
                scope.spawn(move || object(target, &format!("f{i}"), &callee, 1))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let code = LoadedCode::link(&objects, &[twice_symbol()]).unwrap();
    assert_eq!(call(&code, "f0", 20), 41);
    assert_eq!(call(&code, "f7", 20), 48);
    // Programs with equal symbol names can coexist.
    let other = LoadedCode::link(&[object(&target, "f7", "runtime.twice", 5)], &[twice_symbol()]).unwrap();
    assert_eq!(call(&other, "f7", 20), 45);
    drop(code);
    assert_eq!(call(&other, "f7", 20), 45);
}

#[test]
fn what_cannot_be_linked_is_an_error() {
    let target = Target::host().unwrap();
    let code = LoadedCode::link(&[object(&target, "f", "nowhere.to.be.found", 1)], &[]).unwrap();
    let message = code.address("f").unwrap_err().to_string();
    assert!(message.contains("cannot link") && message.contains("nowhere.to.be.found"), "{message}");
    assert!(code.address("g").is_err());
    assert!(matches!(code.address("a\0b"), Err(Error::InvalidArgument(_))));
    let twin = object(&target, "f", "runtime.twice", 1);
    assert!(LoadedCode::link(&[twin.clone(), twin], &[twice_symbol()]).is_err());
    assert!(LoadedCode::link(&[b"no object".to_vec()], &[]).is_err());
}

#[test]
fn mistakes_of_an_emission_are_reported_once_it_is_finished() {
    let context = Context::create();
    let emitter = Emitter::new(&context, "wrong", &Target::host().unwrap(), EmitOptions::default());
    emitter.kernel("kernel", 1);
    let (int, float) = (context.i32_type().const_zero(), context.f32_type().const_zero());
    let _ = emitter.lanes(int) + emitter.lanes(float);
    let message = emitter.finish().unwrap_err().to_string();
    assert!(message.contains("have different types"), "{message}");
}
