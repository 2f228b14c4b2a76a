//! Features of x86 processors, queried from LLVM: the features of each processor, and their implications.
//!
//! LLVM inlines a function only into functions whose processor has all features of the first one. One module has a
//! function for each feature, and callers of them all for each processor and feature; the calls that `opt` leaves show
//! the missing features. Only tuning features and APX do not hinder inlining; code of `llc` shows APX.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::shell::program;

/// Feature under which APX is listed; LLVM splits APX into several features that processors have together.
const APX: &str = "ndd";

/// The text of the file: a line `NAME: FEATURES` for each processor, and `+FEATURE: FEATURES` for each feature that
/// implies others. Features that others of a line imply are left out.
pub fn text(llc: &Path, processors: &[&str], features: &[&str]) -> Result<String> {
    // The triple chooses the mode.
    let features: Vec<&str> = features.iter().copied().filter(|feature| !feature.ends_with("bit-mode")).collect();
    let with_plus: Vec<String> = features.iter().map(|feature| format!("+{feature}")).collect();
    let callers: Vec<(&str, &str)> =
        processors.iter().map(|cpu| (*cpu, "")).chain(with_plus.iter().map(|feature| ("i386", &feature[..]))).collect();
    // Both have the release in their names, or neither has.
    let opt =
        llc.with_file_name(llc.file_name().map_or("opt".into(), |name| name.to_string_lossy().replace("llc", "opt")));
    let inlined = llvm(&opt, &["-passes=inline", "-S", "-"], &callees(&features, &callers))?;
    let mut has: Vec<BTreeSet<&str>> = callers.iter().map(|_| features.iter().copied().collect()).collect();
    let mut caller = None;
    for line in inlined.lines() {
        if let Some(rest) = line.strip_prefix("define void @c") {
            caller = rest.split('(').next().and_then(|number| number.parse::<usize>().ok());
        } else if let Some((number, caller)) = line.split("call i32 @f").nth(1).zip(caller) {
            let number: usize = number.split('(').next().unwrap_or_default().parse()?;
            has[caller].remove(features[number]);
        }
    }
    let (processors_have, implied) = has.split_at(processors.len());
    let always: BTreeSet<&str> = processors
        .iter()
        .zip(processors_have)
        .find(|(cpu, _)| **cpu == "i386")
        .map(|(_, has)| has.clone())
        .context("LLVM has no i386")?;
    let mut implies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (feature, implied) in features.iter().zip(implied) {
        implies.insert(
            feature,
            implied.iter().copied().filter(|other| other != feature && !always.contains(other)).collect(),
        );
    }
    let with_apx = with_apx(llc, processors)?;
    let mut text =
        "# Features of x86 processors, and features that features imply, from `cargo xtask llvm-names`.\n".to_string();
    let short = |all: &BTreeSet<&str>| {
        let is_implied = |feature: &str| {
            all.iter()
                .any(|other| *other != feature && implies.get(other).is_some_and(|implied| implied.contains(feature)))
        };
        all.iter().copied().filter(|feature| !is_implied(feature)).collect::<Vec<&str>>().join(" ")
    };
    for (cpu, has) in processors.iter().zip(processors_have) {
        let mut all: BTreeSet<&str> = has.difference(&always).copied().collect();
        all.extend(with_apx.contains(cpu).then_some(APX));
        writeln!(text, "{cpu}: {}", short(&all))?;
    }
    for (feature, implied) in implies.iter().filter(|(_, implied)| !implied.is_empty()) {
        writeln!(text, "+{feature}: {}", short(implied))?;
    }
    Ok(text)
}

/// A module with a function that needs each feature, and callers of all of them.
fn callees(features: &[&str], callers: &[(&str, &str)]) -> String {
    let mut text = "target triple = \"i386-unknown-linux-gnu\"\n".to_string();
    for (number, feature) in features.iter().enumerate() {
        let attributes = format!("\"target-cpu\"=\"i386\" \"target-features\"=\"+{feature}\"");
        text +=
            &format!("define i32 @f{number}(i32 %x) {attributes} {{\n  %y = add i32 %x, {number}\n  ret i32 %y\n}}\n");
    }
    for (number, (cpu, feature)) in callers.iter().enumerate() {
        let attributes = format!("\"target-cpu\"=\"{cpu}\" \"target-features\"=\"{feature}\"");
        text += &format!("define void @c{number}(i32 %x, ptr %p) {attributes} {{\n");
        for callee in 0..features.len() {
            text += &format!("  %r{callee} = call i32 @f{callee}(i32 %x)\n  store volatile i32 %r{callee}, ptr %p\n");
        }
        text += "  ret void\n}\n";
    }
    text
}

/// The processors with APX: their code subtracts into a third register.
fn with_apx<'c>(llc: &Path, processors: &[&'c str]) -> Result<BTreeSet<&'c str>> {
    let mut text = "target triple = \"x86_64-unknown-linux-gnu\"\n".to_string();
    for (number, cpu) in processors.iter().enumerate() {
        let attributes = format!("\"target-cpu\"=\"{cpu}\" \"target-features\"=\"+64bit\"");
        text += &format!(
            "define i32 @f{number}(i32 %x, i32 %y) {attributes} {{\n  %z = sub i32 %x, %y\n  ret i32 %z\n}}\n"
        );
    }
    let code = llvm(llc, &["-o", "-", "-"], &text)?;
    let mut function = None;
    let mut found = BTreeSet::new();
    for line in code.lines() {
        if let Some(number) = line.strip_prefix('f').and_then(|rest| rest.split(':').next()?.parse::<usize>().ok()) {
            function = Some(number);
        } else if line.split_whitespace().any(|word| word == "subl") && line.split(',').count() == 3 {
            found.extend(function.and_then(|number| processors.get(number)));
        }
    }
    Ok(found)
}

/// Output of a tool of LLVM for a module.
fn llvm(tool: &Path, words: &[&str], module: &str) -> Result<String> {
    let mut command = program(tool, words);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        started.with_context(|| format!("{} is not there; Debian: apt-get install llvm-22", tool.display()))?;
    let (stdin, module) = (child.stdin.take(), module.to_string());
    let writer = std::thread::spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(module.as_bytes())));
    let done = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{} failed: {}", tool.display(), said.trim());
    writer.join().ok().context("the module was not written")??;
    Ok(String::from_utf8(done.stdout)?)
}
