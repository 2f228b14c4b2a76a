//! Reads a program of 100,000 operations from bytecode and from text: time and peak memory beside the size of the file.
//!
//! `cargo run --release -p xla-stablehlo --example read_large`, perhaps with another number of operations behind `--`.
//! Bytecode should be read within 0.3 s and text within 1.5 s, in less than ten times the memory of the file.

#[path = "../tests/bytecode/writer.rs"]
mod writer;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use writer::{BUILTIN, File, VHLO, list, module, region, varint};

/// Operations of a layer.
const LAYER: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [path, form] = &arguments[..] {
        return read(Path::new(path), form);
    }
    let operations = arguments.first().map_or(Ok(100_000), |count| count.parse())?;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/read_large");
    std::fs::create_dir_all(&folder)?;
    for (form, content) in
        [("bytecode", bytecode(operations / LAYER)), ("text", text(operations / LAYER)?.into_bytes())]
    {
        let path = folder.join(form);
        std::fs::write(&path, content)?;
        // A process for each, since the peak is that of a process.
        let status = Command::new(std::env::current_exe()?).arg(&path).arg(form).status()?;
        if !status.success() {
            return Err(format!("{form}: {status}").into());
        }
    }
    Ok(())
}

/// Reads a file and reports.
#[allow(clippy::print_stdout, reason = "the report of an example")]
fn read(path: &Path, form: &str) -> Result<(), Failure> {
    let content = std::fs::read(path)?;
    let before = peak_kib()?;
    let began = Instant::now();
    let module = match form {
        "bytecode" => xla_stablehlo::bytecode::read(&content)?,
        _ => xla_stablehlo::text::read(std::str::from_utf8(&content)?)?,
    };
    let (seconds, more) = (began.elapsed().as_secs_f64(), (peak_kib()? - before) * 1024);
    let (size, count) = (content.len(), module.operations.len());
    println!(
        "{form}: {count} operations in {size} bytes, {seconds:.3} s, {:.1} times the file ({} bytes an operation)",
        more as f64 / size as f64,
        more / count
    );
    Ok(())
}

/// The most memory that this process has had, in KiB.
fn peak_kib() -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim_end_matches("kB").trim().parse()?)
}

/// Layers of `tanh(x * weight) + bias` as MLIR text with locations, as JAX writes it.
fn text(layers: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "module @jit_layers {\n  func.func public @main(%arg0: tensor<64x64xf32>) -> (tensor<64x64xf32>) {\n",
    );
    let mut locations = String::from("#loc = loc(unknown)\n");
    let (ty, mut input) = ("tensor<64x64xf32>", "%arg0".to_string());
    for layer in 0..layers {
        let first = layer * LAYER;
        let [weight, product, constant, bias, sum] = std::array::from_fn(|i| format!("%{}", first + i));
        let lines = [
            format!("{weight} = stablehlo.transpose {input}, dims = [1, 0] : ({ty}) -> {ty}"),
            format!(
                "{product} = stablehlo.dot_general {input}, {weight}, contracting_dims = [1] x [0], \
                 precision = [DEFAULT, DEFAULT] : ({ty}, {ty}) -> {ty}"
            ),
            format!("{constant} = stablehlo.constant dense<1.{layer}> : tensor<f32>"),
            format!("{bias} = stablehlo.broadcast_in_dim {constant}, dims = [] : (tensor<f32>) -> {ty}"),
            format!("{sum} = stablehlo.add {product}, {bias} : {ty}"),
        ];
        for (i, line) in lines.iter().enumerate() {
            let number = 2 * (first + i) + 1;
            writeln!(text, "    {line} loc(#loc{})", number + 1)?;
            writeln!(locations, "#loc{number} = loc(\"model/layers.py\":{}:8)", number % 997)?;
            writeln!(locations, "#loc{} = loc(\"jit(layers)/layer\"(#loc{number}))", number + 1)?;
        }
        input = sum;
    }
    writeln!(text, "    return {input} : {ty} loc(#loc)\n  }} loc(#loc)\n}} loc(#loc)\n{locations}")?;
    Ok(text)
}

/// Returns the program as a portable artifact.
fn bytecode(layers: usize) -> Vec<u8> {
    let mut file = File::new();
    file.producer = "StableHLO_v1.13.7";
    file.operations =
        vec!["func_v1", "return_v1", "transpose_v1", "dot_general_v2", "constant_v1", "broadcast_in_dim_v1", "add_v1"];
    let element = file.ty(VHLO, varint(4));
    let tensor = file.ty(VHLO, [varint(20), list(&[64 << 1, 64 << 1]), varint(element)].concat());
    let scalar = file.ty(VHLO, [varint(20), list(&[]), varint(element)].concat());
    let integer = file.ty(VHLO, varint(14));
    let none = file.ty(VHLO, varint(33));
    let function = file.ty(VHLO, [varint(8), list(&[tensor]), list(&[tensor])].concat());

    let integers = |file: &mut File, values: &[u64]| {
        let ty = file.ty(VHLO, [varint(20), list(&[values.len() << 1]), varint(integer)].concat());
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        file.attribute(VHLO, [varint(15), varint(ty), varint(bytes.len()), bytes].concat())
    };
    let text = |file: &mut File, text| {
        let string = file.string(text);
        file.attribute(BUILTIN, [varint(2), varint(string)].concat())
    };
    let references = |numbers: &[usize]| -> Vec<u8> { numbers.iter().copied().flat_map(varint).collect() };
    let (source, scope) = (text(&mut file, "model/layers.py"), text(&mut file, "jit(layers)/layer"));
    let (name, visibility) = (text(&mut file, "main"), text(&mut file, "public"));
    let function = file.attribute(BUILTIN, [varint(6), varint(function)].concat());
    let no_list = file.attribute(VHLO, [varint(1), varint(0)].concat());
    let absent = file.attribute(VHLO, [varint(17), varint(none)].concat());
    let (permutation, empty) = (integers(&mut file, &[1, 0]), integers(&mut file, &[]));
    let (zero, one) = (integers(&mut file, &[0]), integers(&mut file, &[1]));
    file.properties = vec![
        references(&[no_list, function, no_list, name, visibility]),
        references(&[permutation]),
        references(&[absent, absent, empty, absent, one, absent, absent, no_list, empty, absent, zero, absent]),
        references(&[empty]),
    ];

    let mut block = [varint((layers * LAYER + 1) << 1 | 1), list(&[tensor << 1]), vec![0]].concat();
    let mut operation = |file: &mut File, name: usize, properties: Option<usize>, ty: usize, operands: &[usize]| {
        let line = file.attributes.len() % 997;
        let place = file.attribute(BUILTIN, [varint(22), varint(source), list(&[line, 8])].concat());
        let location = file.attribute(BUILTIN, [varint(14), varint(scope), varint(place)].concat());
        let mask = 0x02 | if properties.is_some() { 0x40 } else { 0 } | if operands.is_empty() { 0 } else { 0x04 };
        block.extend([varint(name), vec![mask], varint(location)].concat());
        block.extend(properties.map(varint).unwrap_or_default());
        block.extend(list(&[ty]));
        block.extend(if operands.is_empty() { Vec::new() } else { list(operands) });
    };
    let mut input = 0;
    for layer in 0..layers {
        let first = 1 + layer * LAYER;
        let value = (1.0 + layer as f32).to_le_bytes();
        let value = file.attribute(VHLO, [varint(15), varint(scalar), varint(4), value.to_vec()].concat());
        file.properties.push(varint(value));
        let constant = file.properties.len() - 1;
        operation(&mut file, 3, Some(1), tensor, &[input]);
        operation(&mut file, 4, Some(2), tensor, &[input, first]);
        operation(&mut file, 5, Some(constant), scalar, &[]);
        operation(&mut file, 6, Some(3), tensor, &[first + 2]);
        operation(&mut file, 7, None, tensor, &[first + 1, first + 3]);
        input = first + 4;
    }
    block.extend([varint(2), vec![0x04], varint(0), list(&[input])].concat());
    let inner = [varint(1), varint(1 + layers * LAYER), block].concat();
    let isolated = [varint(1 << 1 | 1), vec![4], varint(inner.len()), inner].concat();
    let function = [varint(1), vec![0x50], varint(0), varint(0), isolated].concat();
    file.ir = module(0x10, &[region(), varint(1 << 1), function].concat());
    file.write()
}
