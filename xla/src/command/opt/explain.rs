//! `xla opt --explain`: fusion decisions and their reasons.

use std::fmt::Write as _;

use xla::hlo::VerifiedModule;
use xla::passes::{FusionDecision, FusionRecorder};
use xla::service::{CompileOptions, HloPasses, optimize};

use super::super::failure::{Failure, Outcome};

/// Returns the fusion decisions about the instructions with these comma-separated names, or about all instructions if
/// there are no names.
pub fn run(names: &str, module: VerifiedModule, passes: &HloPasses, options: &CompileOptions) -> Outcome<String> {
    let recorder = FusionRecorder::default();
    optimize(module, passes, options, Some(&recorder))?;
    let decisions = recorder.take();
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| !decisions.iter().any(|d| d.concerns(name))) {
        return Err(Failure::usage(format!(
            "there are no decisions about {unknown}; names are those of instructions when fusion begins (--until FUSE-PASS \
             shows them), and there are none about plain instructions such as parameters of dots"
        )));
    }
    let wanted = |d: &&FusionDecision| names.is_empty() || names.iter().any(|name| d.concerns(name));
    Ok(table(decisions.iter().filter(wanted)))
}

/// Formats decisions by computation, with the number of each kind.
fn table<'a>(decisions: impl Iterator<Item = &'a FusionDecision>) -> String {
    let mut text = String::new();
    let mut computation = "";
    let (mut fused, mut apart) = (0, 0);
    for decision in decisions {
        if decision.computation != computation {
            computation = &decision.computation;
            let _ = writeln!(text, "in %{computation}:");
        }
        let _ = writeln!(text, "  {decision}");
        *(if decision.reason.is_fused() { &mut fused } else { &mut apart }) += 1;
    }
    let _ = writeln!(text, "{fused} fused, {apart} not fused");
    text
}
