//! Level 3: programs with their arguments from files, run in every mode.

use std::path::{Path, PathBuf};

use xla::{
    ArrayShape, CompileOptions, Dispatch, ElementType, ExecuteOptions, Literal, LoadedExecutable, VerifiedModule,
};
use xla_hlo::eval::Evaluator;
use xla_hlo::{Scalar, linear_index, multi_index};
use xla_service::Signature;

use crate::conformance::case::{Case, Check, Level, Stop, Subject, ensure};
use crate::conformance::{judge, launch};
use crate::data;
use crate::program::Program;

const THREADS: usize = 4;

/// Mode of execution.
type Way = fn(&Run) -> Check;

pub fn cases() -> Vec<Case> {
    let files = files();
    let ways: [(&str, Way); 5] = [
        ("shared", Run::shared),
        ("donated", Run::donated),
        ("queued", Run::queued),
        ("threads", Run::threads),
        ("reloaded", Run::reloaded),
    ];
    let case = |path: &PathBuf| {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let path = path.clone();
        ways.map(move |(way, work)| {
            let path = path.clone();
            Case::new(Level::Programs, format!("{name}/{way}"), move |subject| work(&Run::new(subject, &path)?))
        })
    };
    let mut cases: Vec<Case> = files.iter().flat_map(case).collect();
    cases.push(Case::new(Level::Programs, "entry-layouts", entry_layouts));
    cases.push(Case::new(Level::Programs, "files", move |_| {
        ensure!(!files.is_empty(), "there are no files in tests/conformance/programs");
        Ok(())
    }));
    cases
}

/// Checks that arguments and results have the layouts of the entry.
fn entry_layouts(subject: &Subject) -> Check {
    let client = subject.client()?;
    let module = VerifiedModule::new(xla_hlo::text::parse_module(
        "HloModule m, entry_computation_layout={(s32[2,3,5]{0,1,2})->(s32[2,3,5]{1,2,0}, s32[2,3,5]{0,1,2})}\n\
         ENTRY main {\n x = s32[2,3,5] parameter(0)\n y = s32[2,3,5] add(x, x)\n \
         ROOT r = (s32[2,3,5], s32[2,3,5]) tuple(y, x)\n}",
    )?)?;
    let compiled = launch::compile(&client, &module)?;
    let (once, twice) = (counted(&[2, 3, 5], &[0, 1, 2], 1)?, counted(&[2, 3, 5], &[0, 1, 2], 2)?);
    let argument = compiled.argument_buffer(0, &once)?;
    let results = compiled.execute(&[&argument])?;
    let expected =
        [(&argument, &once, [0, 1, 2], 1), (&results[0], &twice, [1, 2, 0], 2), (&results[1], &once, [0, 1, 2], 1)];
    for (buffer, literal, minor_to_major, step) in expected {
        ensure!(buffer.shape().minor_to_major() == minor_to_major, "{} has another order", buffer.shape());
        ensure!(buffer.to_literal()? == *literal, "{} has other values", buffer.shape());
        let major_to_minor: Vec<usize> = minor_to_major.into_iter().rev().collect();
        let values = counted(&[2, 3, 5], &major_to_minor, step)?;
        // In an array of all-ones elements, bytes that are not all ones are padding, whatever it contains.
        let places = client.buffer(&Literal::splat(values.array_shape(), Scalar::Signed(-1))?)?.to_bytes()?;
        let elements = |bytes: Vec<u8>| -> Vec<u8> {
            bytes.into_iter().zip(&places).filter(|(_, place)| **place == 0xff).map(|(byte, _)| byte).collect()
        };
        let (found, plain) = (buffer.to_bytes()?, client.buffer(&values)?.to_bytes()?);
        let is_same = found.len() == plain.len() && elements(found) == elements(plain);
        ensure!(is_same, "{} lies in another order in memory", buffer.shape());
    }
    Ok(())
}

/// Returns an array of `dims` whose elements are multiples of `step` in row-major order, with its dimensions permuted.
fn counted(dims: &[usize], order: &[usize], step: usize) -> xla::Result<Literal> {
    let shape = ArrayShape::new(ElementType::S32, order.iter().map(|&d| dims[d]).collect::<Vec<_>>());
    Literal::from_fn(&shape, |i| {
        let mut index = vec![0; dims.len()];
        order.iter().zip(multi_index(shape.dims(), i)).for_each(|(&d, at)| index[d] = at);
        Scalar::Signed((linear_index(dims, &index) * step) as i64)
    })
}

/// Returns the programs, sorted.
pub fn files() -> Vec<PathBuf> {
    let root = data::folder();
    let folders = ["conformance/programs", "conformance/programs/kernels", "regressions"].map(|name| root.join(name));
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "hlo"));
    files.sort();
    files
}

/// Checks that two signatures agree, except for the names of parameters.
fn same_signature(written: &Signature, loaded: &Signature) -> Check {
    let arguments = |signature: &Signature| -> Vec<_> {
        let leaves = signature.arguments().iter();
        leaves.map(|leaf| (leaf.parameter, leaf.path.clone(), leaf.shape.clone(), leaf.donation)).collect()
    };
    ensure!(arguments(written) == arguments(loaded), "the loaded program takes other arguments");
    ensure!(written.results() == loaded.results(), "the loaded program has other results");
    let shapes = (written.parameters(), written.result()) == (loaded.parameters(), loaded.result());
    ensure!(shapes, "the loaded program puts its arguments or results together in another way");
    Ok(())
}

/// Compiled program with its expected results.
pub struct Run {
    pub program: Program,
    pub compiled: LoadedExecutable,
    pub expected: Literal,
}

impl Run {
    /// Compiles the program of a file for a new client.
    pub fn new(subject: &Subject, path: &Path) -> Result<Run, Stop> {
        Run::on(&subject.client()?, path)
    }

    /// Compiles the program of a file for a client.
    pub fn on(client: &xla::Client, path: &Path) -> Result<Run, Stop> {
        let program = Program::from_text(&std::fs::read_to_string(path)?)?;
        let module = VerifiedModule::new(program.module.clone())?;
        let expected = Evaluator::new(&module).call_entry(program.arguments.clone())?;
        let expected = Literal::tuple(expected.leaves().into_iter().cloned().collect());
        let compiled = launch::compile(client, &module)?;
        Ok(Run { program, compiled, expected })
    }

    /// Compares results with the expected ones.
    pub fn judge(&self, actual: &Literal) -> Check {
        // A root with several results has one tolerance for all of them.
        let outputs = &self.program.outputs;
        let tolerance = |i: usize| self.program.tolerance(*outputs.get(i).unwrap_or(&outputs[0]));
        judge::same(&self.compiled, &self.program.arguments, &self.expected, actual, &tolerance)
    }

    /// Compares results with the expected ones, and bit for bit with the results of the first run.
    fn judge_again(&self, first: &Literal, again: &Literal, what: &str) -> Check {
        self.judge(again)?;
        ensure!(first == again, "{what} returns other bits than the first run");
        Ok(())
    }

    /// Runs twice with shared arguments, which must not be written.
    fn shared(&self) -> Check {
        let arguments = &self.program.arguments;
        let options = launch::keeping(&self.compiled);
        let consumed = launch::required(&self.compiled);
        let buffers = launch::buffers(&self.compiled, arguments)?;
        let results = launch::launch(&self.compiled, &buffers, &options)?;
        for (i, buffer) in buffers.iter().enumerate().filter(|(i, _)| !consumed.contains(i)) {
            ensure!(buffer.to_literal()? == arguments[i], "the program wrote its argument {i}, which is shared");
        }
        if consumed.is_empty() {
            let again = launch::launch(&self.compiled, &buffers, &options)?;
            let first = launch::read(&results)?;
            self.judge(&first)?;
            return self.judge_again(&first, &launch::read(&again)?, "the same arguments again");
        }
        self.judge(&launch::read(&results)?)
    }

    /// Runs with all arguments donated, which makes them unusable. A result of an earlier run must not change.
    fn donated(&self) -> Check {
        let kept = launch::buffers(&self.compiled, &self.program.arguments)?;
        let kept = launch::launch(&self.compiled, &kept, &launch::keeping(&self.compiled))?;
        let buffers = launch::buffers(&self.compiled, &self.program.arguments)?;
        let results = launch::launch(&self.compiled, &buffers, &launch::donating(&self.compiled))?;
        for (i, buffer) in buffers.iter().enumerate() {
            ensure!(buffer.is_donated() && buffer.to_literal().is_err(), "argument {i} can be used after its donation");
        }
        let first = launch::read(&kept)?;
        self.judge(&first)?;
        self.judge_again(&first, &launch::read(&results)?, "a run with donated arguments")
    }

    /// Submits several runs without waiting for any of them.
    fn queued(&self) -> Check {
        let options = ExecuteOptions { dispatch: Dispatch::Queued, ..launch::keeping(&self.compiled) };
        let launches = (0..5).map(|_| {
            let buffers = launch::buffers(&self.compiled, &self.program.arguments)?;
            launch::launch(&self.compiled, &buffers, &options)
        });
        let launches = launches.collect::<xla::Result<Vec<_>>>()?;
        let first = launch::read(&launches[0])?;
        self.judge(&first)?;
        launches[1..].iter().try_for_each(|results| self.judge_again(&first, &launch::read(results)?, "a queued run"))
    }

    /// Runs in several threads concurrently, with shared arguments if possible.
    fn threads(&self) -> Check {
        let options = launch::keeping(&self.compiled);
        let shared = launch::buffers(&self.compiled, &self.program.arguments)?;
        let work = || -> Result<Literal, Stop> {
            let mut first = None;
            for _ in 0..3 {
                let own = if launch::required(&self.compiled).is_empty() {
                    None
                } else {
                    Some(launch::buffers(&self.compiled, &self.program.arguments)?)
                };
                let results = launch::launch(&self.compiled, own.as_ref().unwrap_or(&shared), &options)?;
                let value = launch::read(&results)?;
                self.judge(&value)?;
                let first = first.get_or_insert_with(|| value.clone());
                self.judge_again(first, &value, "another run at the same time")?;
            }
            first.ok_or_else(|| Stop::Failed("nothing ran".to_string()))
        };
        let values = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(Stop::Failed("a thread panicked".to_string())))
            };
            threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        values[1..].iter().try_for_each(|value| self.judge_again(&values[0], value, "another thread"))
    }

    /// Serializes the program, loads it as another client would, and runs it.
    fn reloaded(&self) -> Check {
        let bytes = match self.compiled.serialize() {
            Err(xla::Error::Unimplemented(why)) => return Err(Stop::Skipped(why.to_string())),
            bytes => bytes?,
        };
        let (client, options) = (self.compiled.client(), CompileOptions::default());
        let loaded = client.load(&bytes, &options)?;
        same_signature(self.compiled.signature(), loaded.signature())?;
        let run =
            |compiled: &LoadedExecutable| launch::run(compiled, &self.program.arguments, &launch::keeping(compiled));
        let first = run(&self.compiled)?;
        self.judge(&first)?;
        self.judge_again(&first, &run(&loaded)?, "the loaded program")?;
        for damaged in [&bytes[..bytes.len() / 2], &bytes[..0], &[&bytes[..], &[0]].concat()] {
            let refused = matches!(client.load(damaged, &options), Err(xla::Error::InvalidArgument(_)));
            ensure!(refused, "{} of {} bytes of a program must be InvalidArgument", damaged.len(), bytes.len());
        }
        Ok(())
    }
}
