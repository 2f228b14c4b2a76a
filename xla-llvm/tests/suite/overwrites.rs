//! Tests of kernels whose results overwrite their inputs: checked by running them in shared and in separate memory.

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Result};
use xla_llvm::codegen::{self, CodeKind};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, KernelTable, Overwrite, check_overwrites, emit_kernel};
use xla_llvm::jit::LoadedCode;
use xla_llvm::target::{MachineOptions, Target};
use xla_passes::analysis::alias::ReadOrder;

/// Checks the entry's kernel with its result 0 stored over its input 0.
fn checked(module: &Module, order: ReadOrder) -> Result<()> {
    let source = KernelSource::of_computation(module, module.entry_id(), |_| false).unwrap();
    let source = KernelSource { overwrites: vec![Overwrite { input: 0, result: 0, order }], ..source };
    let target = Target::host().unwrap();
    let (object, kernel) = codegen::generate(&target, &MachineOptions::default(), CodeKind::Object, |context| {
        let emitter = Emitter::new(context, "kernels", &target, EmitOptions::default());
        let kernel = emit_kernel(&emitter, &source, "kernel")?;
        Ok((emitter.finish()?, kernel))
    })
    .unwrap();
    check_overwrites(&source, &source.overwrites, &kernel, &LoadedCode::link(&[object], &[]).unwrap())
}

fn entry(body: &str) -> Module {
    parse_module(&format!(
        "sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }} ENTRY main {{ {body} }}"
    ))
    .unwrap()
}

#[test]
fn elements_and_rows_may_be_overwritten_after_they_were_read() {
    for extent in [1, 2, 15, 16, 17, 97, 1000] {
        let elements = format!("x = f32[3,{extent}] parameter(0) ROOT r = f32[3,{extent}] exponential(x)");
        checked(&entry(&elements), ReadOrder::Element).unwrap();
        for rows in [1, 2, 5] {
            let shape = format!("f32[{rows},{extent}]");
            let softmax = format!(
                "x = {shape} parameter(0) e = {shape} exponential(x) z = f32[] constant(0)
                 t = f32[{rows}] reduce(e, z), dimensions={{1}}, to_apply=sum
                 b = {shape} broadcast(t), dimensions={{0}} ROOT r = {shape} divide(e, b)"
            );
            checked(&entry(&softmax), ReadOrder::Row).unwrap();
        }
    }
}

/// Reads of elements that earlier iterations have overwritten, in one call or by another work item, where the share of
/// wrong elements ranges from nearly all to few.
#[test]
fn reads_of_overwritten_elements_are_found() {
    for wrong in [
        "x = f32[200] parameter(0) ROOT r = f32[200] reverse(x), dimensions={0}",
        "x = f32[300,300] parameter(0) ROOT r = f32[300,300] transpose(x), dimensions={1,0}",
        "x = f32[5,30] parameter(0) z = f32[] constant(0) t = f32[30] reduce(x, z), dimensions={0}, to_apply=sum
         b = f32[5,30] broadcast(t), dimensions={1} ROOT r = f32[5,30] add(x, b)",
        "x = f32[20000] parameter(0) z = f32[] constant(0) s = f32[2] slice(x), slice={[0:2]}
         p = f32[20000] pad(s, z), padding=19998_0 e = f32[20000] exponential(x)
         ROOT r = f32[20000] add(e, p)",
    ] {
        let error = checked(&entry(wrong), ReadOrder::Element).expect_err(wrong).to_string();
        assert!(error.contains("reads an input after it was overwritten"), "{error}");
    }
}

/// Arrays of more than 16 MiB are not run again, whatever the kernel does with them.
#[test]
fn kernels_of_large_arrays_are_not_checked() {
    for (columns, is_checked) in [(1 << 11, true), ((1 << 11) + 1, false)] {
        let shape = format!("c128[256,{columns}]");
        let module = entry(&format!("x = {shape} parameter(0) ROOT r = {shape} reverse(x), dimensions={{0}}"));
        assert_eq!(checked(&module, ReadOrder::Element).is_err(), is_checked, "{columns} columns");
    }
}

/// Code depends on whether an input is overwritten, not on which one. Two fusions of a training step that differ only
/// in this share one kernel, and each of their lists of overwritten inputs is checked.
#[test]
fn kernels_that_overwrite_different_inputs_share_their_code() {
    let module = entry("x = f32[8] parameter(0) y = f32[8] parameter(1) ROOT r = f32[8] add(x, y)");
    let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
    let over = |input| vec![Overwrite { input, result: 0, order: ReadOrder::Element }];
    let mut table = KernelTable::default();
    let mut number = |overwrites| table.number(KernelSource { overwrites, ..source.clone() });
    assert_eq!([number(over(0)), number(over(1)), number(over(0)), number(vec![])], [0, 0, 0, 1]);
    assert_eq!(table.overwrites(), [(0, over(0)), (0, over(1))]);
}
