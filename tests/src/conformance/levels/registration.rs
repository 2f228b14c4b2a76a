//! Level 0: the platform is registered, responds, and compiles.

use std::sync::Arc;

use xla::{Availability, CompileOptions, ElementType, Error, Shape, VerifiedModule};
use xla_hlo::builder::ModuleBuilder;

use crate::conformance::case::{Case, Check, Level, Subject, ensure};

pub fn cases() -> Vec<Case> {
    let case = |name, work: fn(&Subject) -> Check| Case::new(Level::Registration, name, work);
    vec![
        case("name", name),
        case("check", check),
        case("device-count", device_count),
        case("executor/same", same_executor),
        case("executor/beyond", beyond),
        case("executor/description", description),
        case("executor/memory-stats", memory_stats),
        case("parts/same", same_parts),
        case("parts/many-threads", many_threads),
        case("compiler/no-device-needed", compiles),
        case("compiler/same-module-each-time", compiles_the_same),
    ]
}

fn name(subject: &Subject) -> Check {
    let name = subject.name();
    ensure!(!name.is_empty() && name == name.to_lowercase(), "the name {name:?} is not in lower case");
    let found = subject.registry().get(name)?;
    ensure!(found.name() == name, "registered as {name}, it calls itself {}", found.name());
    Ok(())
}

fn check(subject: &Subject) -> Check {
    let statuses = subject.registry().check();
    let status = statuses.iter().find(|status| status.name == subject.name());
    match status.map(|status| &status.availability) {
        Some(Availability::Usable { devices }) => {
            ensure!(*devices == subject.platform().device_count(), "the registry counts {devices} devices");
            Ok(())
        }
        Some(Availability::Unusable(why)) => {
            ensure!(matches!(why, Error::FailedPrecondition(_)), "check() must fail with FailedPrecondition: {why}");
            ensure!(false, "this machine cannot run it: {why}");
            Ok(())
        }
        Some(Availability::CompiledOut(_)) | None => {
            ensure!(false, "the registry does not list it");
            Ok(())
        }
    }
}

fn device_count(subject: &Subject) -> Check {
    let count = subject.platform().device_count();
    ensure!(count > 0, "check() succeeds, so there must be a device");
    for ordinal in 0..count {
        let found = subject.platform().executor(ordinal)?.description().ordinal;
        ensure!(found == ordinal, "device {ordinal} says that it is device {found}");
    }
    Ok(())
}

fn same_executor(subject: &Subject) -> Check {
    let (first, second) = (subject.executor()?, subject.executor()?);
    ensure!(Arc::ptr_eq(&first, &second), "executor(0) gives another executor each time");
    Ok(())
}

fn beyond(subject: &Subject) -> Check {
    let count = subject.platform().device_count();
    for ordinal in [count, count + 7, usize::MAX] {
        match subject.platform().executor(ordinal) {
            Ok(_) => ensure!(false, "there are {count} devices, and executor({ordinal}) gives one more"),
            Err(Error::NotFound(detail)) => {
                let message = detail.to_string();
                ensure!(
                    message.contains(&count.to_string()),
                    "the error does not tell that there are {count}: {message}"
                );
            }
            Err(error) => ensure!(false, "executor({ordinal}) must be NotFound: {error:?}"),
        }
    }
    Ok(())
}

fn description(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let first = executor.description().clone();
    ensure!(first.platform == subject.name(), "the device says that it is of platform {:?}", first.platform);
    ensure!(first.ordinal == 0, "device 0 says that it is device {}", first.ordinal);
    ensure!(!first.model.trim().is_empty(), "the model has no name");
    ensure!(first.cores > 0, "no cores");
    ensure!(first.memory_bytes != Some(0), "no memory; None stands for unknown");
    ensure!(first.memory_alignment.is_power_of_two(), "the alignment {} is not a power of two", first.memory_alignment);
    ensure!(first.attributes.iter().all(|(name, _)| !name.is_empty()), "an attribute without a name");
    ensure!(*executor.description() == first, "the description changes");
    Ok(())
}

fn memory_stats(subject: &Subject) -> Check {
    let stats = subject.executor()?.memory_stats();
    ensure!(stats.bytes_in_use <= stats.peak_bytes_in_use, "more in use than at the peak: {stats:?}");
    ensure!(stats.bytes_limit.is_none_or(|limit| stats.bytes_in_use <= limit), "more in use than the limit: {stats:?}");
    ensure!(stats.pool_hits <= stats.allocations, "more pool hits than allocations: {stats:?}");
    Ok(())
}

fn same_parts(subject: &Subject) -> Check {
    let platform = subject.platform();
    // Stateless parts may be created anew; they must be of one kind.
    let compilers = [platform.compiler(), platform.compiler()].map(|compiler| format!("{compiler:?}"));
    ensure!(compilers[0] == compilers[1], "another compiler each time: {compilers:?}");
    let transfers = [platform.transfer_manager(), platform.transfer_manager()].map(|transfer| format!("{transfer:?}"));
    ensure!(transfers[0] == transfers[1], "another transfer manager each time: {transfers:?}");
    Ok(())
}

fn many_threads(subject: &Subject) -> Check {
    let platform = subject.platform();
    let ask = || -> Check {
        for _ in 0..50 {
            platform.check()?;
            let executor = platform.executor(0)?;
            let _ = (executor.memory_stats(), platform.compiler(), platform.transfer_manager());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().try_for_each(super::support::joined)
    })
}

/// Returns the program `x -> x + x` on four floats.
fn doubling() -> xla::Result<VerifiedModule> {
    let mut module = ModuleBuilder::new("double");
    let mut b = module.computation("main");
    let x = b.parameter(Shape::array(ElementType::F32, [4]))?;
    let double = b.add(x, x)?;
    let main = b.finish(double);
    module.finish(main)
}

fn compiles(subject: &Subject) -> Check {
    let (compiler, options) = (subject.platform().compiler(), CompileOptions::default());
    let optimized = compiler.run_hlo_passes(doubling()?, &options)?;
    let executable = compiler.run_backend(optimized, &options)?;
    let signature = executable.signature();
    ensure!(signature.arguments().len() == 1 && signature.results().len() == 1, "the signature is {signature:?}");
    let shapes = [&signature.arguments()[0].shape, &signature.results()[0].shape];
    for shape in shapes {
        ensure!(shape.element_type() == ElementType::F32 && *shape.dims() == [4], "f32[4] became {shape}");
        ensure!(shape.layout().is_some(), "an argument or result without a layout: {shape}");
    }
    Ok(())
}

fn compiles_the_same(subject: &Subject) -> Check {
    let (compiler, options) = (subject.platform().compiler(), CompileOptions::default());
    let optimize = || -> xla::Result<String> { Ok(compiler.run_hlo_passes(doubling()?, &options)?.to_string()) };
    let (first, second) = (optimize()?, optimize()?);
    ensure!(first == second, "the same module becomes two different ones:\n{first}\n{second}");
    Ok(())
}
