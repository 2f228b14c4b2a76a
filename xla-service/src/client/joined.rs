//! Multi-device programs: one device executes the joined program of all devices, see [`xla_passes::join`].
//!
//! Shards of arguments on other devices are copied to it, and their shards of the results are copied back.

use std::sync::Arc;

use xla_hlo::{Error, LeafSharding, ProgramShape, Result, ResultExt, VerifiedModule};
use xla_passes::join::{Joined, Spread, join_devices, join_each_device};
use xla_passes::localize;

use super::buffer::Buffer;
use super::device::{Client, protect};
use super::inputs::{Input, Inputs};
use super::launch::DeviceResults;
use super::loaded::{Arrangement, LoadedExecutable, Together};
use super::options::ExecuteOptions;
use super::shards::Shards;
use super::value::Work;
use crate::collective::PlannedCollective;
use crate::options::CompileOptions;
use crate::signature::Signature;

impl Client {
    /// Compiles the joined program of a module; `reason` is the property of module or platform that requires it.
    pub(super) fn compile_joined(
        &self,
        module: &VerifiedModule,
        reason: String,
        options: &CompileOptions,
    ) -> Result<LoadedExecutable> {
        let Joined { module: joined, arguments, results, shape, devices } =
            protect(|| join_devices(module).or_else(|error| join_local(module).map_err(|_| error)))?;
        self.check_device_count(module, devices)?;
        let program = self.compile_for_one(&joined, options)?;
        let signature = Signature::with_shapes(module, &shape, |array| self.0.transfer.device_shape(array))?;
        let parts = Shards::new(module.clone(), signature, shape, (arguments, results), devices);
        program.together(Arc::new(parts), reason.into())
    }
}

/// Joins the program of each device of a program on global values. It succeeds for some programs that cannot be joined
/// as they are: values of several manual computations over the same devices meet in one operation.
fn join_local(module: &VerifiedModule) -> Result<Joined> {
    let local = localize(module)?;
    let mut joined = join_each_device(&local.module)?;
    let spread = |spreads: &mut Vec<Spread>, shardings: Vec<LeafSharding>| {
        spreads.iter_mut().zip(shardings).for_each(|(spread, sharding)| spread.sharding = sharding);
    };
    spread(&mut joined.arguments, local.arguments);
    spread(&mut joined.results, local.results);
    Ok(joined)
}

impl LoadedExecutable {
    /// Returns the shape of parameters and result of each device, including tuples and tokens, with layouts.
    pub fn program_shape(&self) -> ProgramShape {
        self.as_together().map_or_else(|| self.module().caller_layout(), |together| together.parts.shape.clone())
    }

    /// Returns the sharding of each argument array of a multi-device program; `None` for other programs.
    pub fn argument_shardings(&self) -> Option<Vec<&LeafSharding>> {
        match self.arrangement() {
            Arrangement::Independent => None,
            Arrangement::PerDevice(own) => Some(own.shardings[0].iter().collect()),
            Arrangement::Joined(Together { parts, .. }) => {
                Some(parts.arguments.iter().map(|spread| &spread.sharding).collect())
            }
        }
    }

    /// Returns the sharding of each result array of a multi-device program; `None` for other programs.
    pub fn result_shardings(&self) -> Option<Vec<&LeafSharding>> {
        match self.arrangement() {
            Arrangement::Independent => None,
            Arrangement::PerDevice(own) => Some(own.shardings[1].iter().collect()),
            Arrangement::Joined(Together { parts, .. }) => {
                Some(parts.results.iter().map(|spread| &spread.sharding).collect())
            }
        }
    }

    /// Returns how the devices execute the collectives of a program that each device runs on its own values: those that
    /// have been executed so far, by instruction and device. Empty for other programs.
    pub fn planned_collectives(&self) -> Vec<PlannedCollective> {
        match self.arrangement() {
            Arrangement::PerDevice(own) => own.plans.planned(),
            Arrangement::Independent | Arrangement::Joined(_) => Vec::new(),
        }
    }

    /// Returns the reason why one device does the work of all; `None` unless the program is joined.
    pub fn join_reason(&self) -> Option<&str> {
        self.as_together().map(|together| &*together.reason)
    }

    /// Returns the original module of a multi-device program; `None` for other programs. [`LoadedExecutable::module`]
    /// is the module after the passes: that of each device, or the joined module, which one device executes.
    pub fn source(&self) -> Option<&VerifiedModule> {
        match self.arrangement() {
            Arrangement::Independent => None,
            Arrangement::PerDevice(own) => Some(&own.source),
            Arrangement::Joined(Together { parts, .. }) => Some(&parts.source),
        }
    }
}

impl Together {
    /// Launches the joined program on inputs taken from the arguments of all devices.
    pub fn launch(
        &self,
        devices: &[usize],
        mut arguments: Vec<Vec<Option<Input>>>,
        after: Vec<Work>,
        options: &ExecuteOptions,
    ) -> Result<Vec<DeviceResults>> {
        let Together { program, parts, .. } = self;
        let client = program.client();
        let own = client.device_at(devices[0]);
        let mut inputs = Vec::with_capacity(parts.inputs.len());
        for &(number, holder) in &parts.inputs {
            // Each part belongs to exactly one argument, so a donated part has no other share.
            let input = arguments[holder][number].take();
            let input = input.ok_or_else(|| Error::internal("a shard of an argument is missing"))?;
            if holder == 0 {
                inputs.push(input);
                continue;
            }
            let shape = parts.signature.arguments()[number].shape.clone();
            let lent = Buffer::new(client.device_at(devices[holder]), shape, input.value);
            let value = lent.copy_to_device(&own)?.value()?;
            inputs.push(Input { value, donated: true, resized: None });
        }
        let done = program.launch_on(devices[0], Inputs { arguments: inputs, after }, options);
        let mut all = Vec::with_capacity(devices.len());
        for (number, &device) in devices.iter().enumerate() {
            let device = client.device_at(device);
            let buffers = parts.results.iter().map(|spread| {
                let part = &done.buffers[spread.parts[number]];
                if number == 0 { Ok(part.clone()) } else { part.copy_to_device(&device) }
            });
            let buffers = buffers.collect::<Result<_>>().context(|| format!("results for device {number}"))?;
            all.push(done.for_device(device, buffers));
        }
        Ok(all)
    }
}
