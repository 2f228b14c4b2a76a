//! Tests of forms that jaxlib 0.10.2 does not write: newer ones that are supported, and ones that are not.

use xla_stablehlo::ir::Module;
use xla_stablehlo::{bytecode, lower, text};

use crate::outline::outline;
use crate::writer::{BUILTIN, File, VHLO, list, program, varint};

/// File with an f32, a tensor of four, and attributes by their kinds.
struct Parts {
    file: File,
    tensor: usize,
}

impl Parts {
    fn new() -> Parts {
        let mut file = File::new();
        file.producer = "StableHLO_v1.22.0";
        let element = file.ty(VHLO, varint(4));
        let tensor = file.ty(VHLO, [varint(20), list(&[4 << 1]), varint(element)].concat());
        Parts { file, tensor }
    }

    fn integer(&mut self, value: usize) -> usize {
        let ty = self.file.ty(VHLO, varint(14));
        self.file.attribute(VHLO, [varint(9), varint(ty), varint(value << 1)].concat())
    }

    fn flag(&mut self) -> usize {
        self.file.attribute(VHLO, [varint(2), varint(0)].concat())
    }

    fn text(&mut self, text: &'static str) -> usize {
        let string = self.file.string(text);
        self.file.attribute(VHLO, [varint(14), varint(string)].concat())
    }

    fn no_list(&mut self) -> usize {
        self.file.attribute(VHLO, [varint(1), varint(0)].concat())
    }

    /// Adds the attribute `[[0, 1]]`.
    fn groups(&mut self) -> usize {
        let element = self.file.ty(VHLO, varint(14));
        let ty = self.file.ty(VHLO, [varint(20), list(&[1 << 1, 2 << 1]), varint(element)].concat());
        let bytes = [0u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
        self.file.attribute(VHLO, [varint(15), varint(ty), varint(bytes.len()), bytes].concat())
    }

    /// Returns a sum as the body of an operation: a region of two arguments, isolated in a separate section.
    fn sum(&mut self) -> Vec<u8> {
        let scalar = self.file.ty(VHLO, [varint(20), varint(0), varint(0)].concat());
        let arguments = [list(&[scalar << 1, scalar << 1]), vec![0]].concat();
        let add = [varint(4), vec![0x06], varint(0), list(&[scalar]), list(&[0, 1])].concat();
        let end = [varint(2), vec![0x04], varint(0), list(&[2])].concat();
        let region = [varint(1), varint(3), varint(2 << 1 | 1), arguments, add, end].concat();
        [varint(1 << 1 | 1), vec![4], varint(region.len()), region].concat()
    }

    fn write(mut self, operation: &'static str, operands: usize, properties: &[usize], body: &[u8]) -> Vec<u8> {
        let tensors = vec![self.tensor; operands];
        program(&mut self.file, operation, &tensors, &[self.tensor], properties, body);
        if !body.is_empty() {
            self.file.operations.push("add_v1");
        }
        self.file.write()
    }
}

fn read(bytes: &[u8]) -> Module {
    bytecode::read(bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that an artifact and a text are equal programs; returns the error, if it is rejected.
fn same(bytes: &[u8], operation: &str) -> String {
    let signature = "func.func public @main(%0: tensor<4xf32>) -> tensor<4xf32>";
    let text = format!("module {{ {signature} {{ %1 = {operation} return %1 : tensor<4xf32> }} }}");
    let of_text = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outline(&read(bytes)), outline(&of_text));
    let errors = [&read(bytes), &of_text].map(|module| lower(module).err().map(|error| error.to_string()));
    assert_eq!(errors[0].is_some(), errors[1].is_some(), "{errors:?}");
    errors.into_iter().next().flatten().unwrap_or_default()
}

const CHANNEL: &str = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>";

#[test]
fn custom_call_with_tilings() {
    let mut parts = Parts::new();
    let version = parts.file.attribute(VHLO, [varint(5), varint(1)].concat());
    let (config, target) = (parts.text(""), parts.text("target"));
    let (flag, none) = (parts.flag(), parts.no_list());
    let properties = [version, config, target, none, flag, none, none, none, none];
    let bytes = parts.write("custom_call_v2", 1, &properties, &[]);
    let refused = same(&bytes, "stablehlo.custom_call @target(%0) : (tensor<4xf32>) -> tensor<4xf32>");
    assert_eq!(refused, "");
}

#[test]
fn collective_broadcast_of_several() {
    let mut parts = Parts::new();
    let properties = [parts.integer(1), parts.flag(), parts.groups()];
    let bytes = parts.write("collective_broadcast_v2", 1, &properties, &[]);
    let attributes = format!("{CHANNEL}, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
    let operation =
        format!("\"stablehlo.collective_broadcast\"(%0) <{{{attributes}}}> : (tensor<4xf32>) -> tensor<4xf32>");
    assert_eq!(same(&bytes, &operation), "");
}

/// Returns an artifact with a `collective_reduce`.
pub fn collective_reduce_artifact() -> Vec<u8> {
    let mut parts = Parts::new();
    let properties = [parts.integer(1), parts.flag(), parts.groups(), parts.flag()];
    let sum = parts.sum();
    parts.write("collective_reduce_v1", 1, &properties, &sum)
}

#[test]
fn collective_reduce() {
    let attributes = format!("{CHANNEL}, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>");
    let body = "^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = stablehlo.add %a, %b : tensor<f32> \
                stablehlo.return %c : tensor<f32>";
    let operation = format!(
        "\"stablehlo.collective_reduce\"(%0) <{{{attributes}}}> ({{{body}}}) : (tensor<4xf32>) -> tensor<4xf32>"
    );
    assert_eq!(same(&collective_reduce_artifact(), &operation), "");
}

#[test]
fn quantized_values() {
    let quantized = |file: &mut File| {
        let storage = file.ty(VHLO, varint(11));
        // The pattern of a float is a signed varint: zigzag, in nine bytes.
        let scale = [vec![0], ((0.5f64.to_bits()) << 1).to_le_bytes().to_vec()].concat();
        let numbers = [varint(3 << 1), varint(255), varint(127 << 1)].concat();
        let element = file.ty(VHLO, [varint(24), varint(1), varint(storage), varint(0), scale, numbers].concat());
        file.ty(VHLO, [varint(20), list(&[4 << 1]), varint(element)].concat())
    };
    for operation in ["uniform_quantize_v1", "uniform_dequantize_v1"] {
        let Parts { mut file, tensor } = Parts::new();
        let other = quantized(&mut file);
        let (from, to) = if operation == "uniform_quantize_v1" { (tensor, other) } else { (other, tensor) };
        program(&mut file, operation, &[from], &[to], &[], &[]);
        let stem = operation.trim_end_matches("_v1");
        let spelled = |ty| if ty == tensor { "tensor<4xf32>" } else { "tensor<4x!quant.uniform<i8:f32, 0.5:3>>" };
        let (from, to) = (spelled(from), spelled(to));
        let text = format!(
            "module {{ func.func public @main(%0: {from}) -> {to} {{ %1 = stablehlo.{stem} %0 : ({from}) -> {to} return %1 : {to} }} }}"
        );
        let (of_bytes, of_text) = (read(&file.write()), text::read(&text).unwrap_or_else(|error| panic!("{error}")));
        assert_eq!(outline(&of_bytes), outline(&of_text));
        for module in [of_bytes, of_text] {
            let error = lower(&module).expect_err("quantized").to_string();
            assert!(error.contains("quantized has no counterpart in HLO"), "{error}");
        }
    }
}

/// Returns the errors for an operation, an attribute and so on of a later version.
pub fn later_versions() -> Vec<String> {
    let mut messages = Vec::new();
    for name in ["warp_v1", "add_v2"] {
        messages.push(bytecode::read(&Parts::new().write(name, 1, &[], &[])).map(|_| ()));
    }
    // The next attribute and the next type of VHLO, an attribute of MLIR, and a precision without a name.
    let attribute = |dialect, payload| {
        let mut parts = Parts::new();
        parts.file.attribute(dialect, payload);
        bytecode::read(&parts.write("abs_v1", 1, &[], &[])).map(|_| ())
    };
    messages.push(attribute(VHLO, varint(26)));
    messages.push(attribute(BUILTIN, varint(99)));
    messages.push(attribute(VHLO, [varint(11), varint(3)].concat()));
    let mut parts = Parts::new();
    parts.file.ty(VHLO, varint(43));
    messages.push(bytecode::read(&parts.write("abs_v1", 1, &[], &[])).map(|_| ()));
    let unknown = "module { func.func @main() { \"stablehlo.warp\"() : () -> () return } }";
    messages.push(text::read(unknown).map(|_| ()));
    messages.into_iter().map(|read| read.expect_err("unknown").to_string()).collect()
}

#[test]
fn forms_of_later_versions_are_refused_by_name_and_version() {
    insta::assert_snapshot!("later_versions", later_versions().join("\n"));
}
