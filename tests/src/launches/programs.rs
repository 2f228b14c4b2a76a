//! Programs of a campaign, compiled once, and their expected results.

use xla::{Client, CompileOptions, LoadedExecutable};
use xla_hlo::eval::grid;
use xla_hlo::{Error, Literal, Result};

use super::plan::Campaign;
use super::steps;
use crate::generate::Random;
use crate::grid_programs::{self, GridProgram, Kinds};

/// Generated program for a number of devices.
pub(super) struct Generated {
    pub name: String,
    pub program: LoadedExecutable,
    /// Arguments of each device.
    pub arguments: Vec<Vec<Literal>>,
    /// Result of each device.
    pub expected: Vec<Literal>,
}

/// Programs of all numbers of devices.
pub(super) struct Programs {
    /// Generated programs.
    generated: Vec<Generated>,
    /// Programs of [steps](steps), for 2 devices and more; none if the platform has no collectives.
    steps: Vec<LoadedExecutable>,
}

impl Programs {
    pub fn new(client: &Client, kinds: Kinds, campaign: &Campaign) -> Result<Programs> {
        if campaign.devices < 2 || campaign.programs == 0 {
            return Err(Error::invalid_argument("launches over sets of devices need 2 devices and a program"));
        }
        if kinds == Kinds::Joined && campaign.failures > 0 {
            return Err(Error::invalid_argument("without collectives, one device runs the programs of all others"));
        }
        let counts = 2..=campaign.devices;
        let of_count = |devices| (0..campaign.programs).map(move |number| (devices, campaign.seed + number));
        let all = counts.clone().flat_map(of_count);
        let generated = all.map(|(devices, seed)| Generated::new(client, kinds, seed, devices));
        let steps = counts.filter(|_| kinds != Kinds::Joined).map(|devices| steps::compile(client, devices));
        Ok(Programs { generated: generated.collect::<Result<_>>()?, steps: steps.collect::<Result<_>>()? })
    }

    /// Returns one of the generated programs.
    pub fn generated(&self, random: &mut Random) -> &Generated {
        &self.generated[random.below(self.generated.len())]
    }

    /// Returns a program of steps for some number of devices, if there are any.
    pub fn steps(&self, random: &mut Random) -> Option<&LoadedExecutable> {
        (!self.steps.is_empty()).then(|| &self.steps[random.below(self.steps.len())])
    }
}

impl Generated {
    fn new(client: &Client, kinds: Kinds, seed: u64, devices: usize) -> Result<Generated> {
        let GridProgram { module, arguments } = grid_programs::program(seed, devices, kinds)?;
        let expected = grid::evaluate(&module, arguments.clone())?;
        let opt_level = grid_programs::level(seed);
        let options = CompileOptions { opt_level, excess_precision: false, ..CompileOptions::default() };
        let program = client.compile(&module, &options)?;
        Ok(Generated { name: format!("program {seed} for {devices} devices"), program, arguments, expected })
    }
}
