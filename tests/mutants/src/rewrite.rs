//! A source file rewritten to hold all its mutants, each chosen at run time by its number.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use anyhow::{Context, Result};

use crate::places::{Change, find};
use crate::{Mutant, Place};

/// Text of a file with its mutants.
pub struct Rewritten {
    pub text: String,
    /// Mutants that the file has, with the places of their text, and of the expression or function that they change.
    pub branches: Vec<Branch>,
}

/// Places of one mutant in the rewritten text.
pub struct Branch {
    pub id: u32,
    pub own: Range<usize>,
    pub around: Range<usize>,
    /// Whether the mutant changes an arm of a match.
    pub is_arm: bool,
}

/// Writes a file's mutants into its text, without the dropped ones.
pub fn rewrite(source: &str, mutants: &[&Mutant], dropped: &HashSet<u32>) -> Result<Rewritten> {
    let mut at: HashMap<Place, Vec<&Mutant>> = HashMap::new();
    for mutant in mutants.iter().filter(|mutant| !dropped.contains(&mutant.id)) {
        at.entry(mutant.start).or_default().push(mutant);
    }
    let changes = find(source, &at)?;
    let mut inserts = Vec::new();
    for (order, change) in changes.iter().enumerate() {
        insert(change, order, &mut inserts);
    }
    // At one position, ends come before starts; outer changes start first and end last.
    inserts.sort_by_key(|insert| (insert.at, insert.order));
    Ok(apply(source, &inserts, &changes))
}

/// Text to be inserted at a byte of the source.
struct Insert {
    at: usize,
    order: (bool, i64),
    parts: Vec<(Option<u32>, String)>,
}

fn insert(change: &Change<'_>, order: usize, inserts: &mut Vec<Insert>) {
    let order = order as i64;
    let (mut before, mut after) = (Vec::new(), String::new());
    match change {
        Change::Expression { mutants, .. } => {
            before.push((None, "(".to_owned()));
            for (mutant, text) in mutants {
                before.push((Some(mutant.id), format!("if {} {{ {text} }} else ", is(mutant.id))));
            }
            before.push((None, "{ ".to_owned()));
            after.push_str(" })");
        }
        Change::Body { mutants, .. } => {
            for mutant in mutants {
                let text = format!(" if {} {{ return {}; }} ", is(mutant.id), mutant.replacement);
                before.push((Some(mutant.id), text));
            }
        }
        Change::Guard { mutants, is_new, .. } => {
            before.push((None, if *is_new { " if true" } else { "" }.to_owned()));
            let id_of = |wanted: &str| mutants.iter().find(|m| m.genre == "MatchArmGuard" && m.replacement == wanted);
            let arm = mutants.iter().find(|mutant| mutant.genre == "MatchArm");
            let condition = |id: u32, text: String| (Some(id), text);
            let and = if *is_new { " && " } else { "" };
            let next = if *is_new { "" } else { " && " };
            before.extend(arm.map(|m| condition(m.id, format!("{and}!{}{next}", is(m.id)))));
            if !is_new {
                before.push((None, "(".to_owned()));
                before.extend(id_of("true").map(|m| condition(m.id, format!("{} || ", is(m.id)))));
                before.extend(id_of("false").map(|m| condition(m.id, format!("!{} && ", is(m.id)))));
                before.push((None, "(".to_owned()));
                after.push_str("))");
            }
        }
    }
    let range = change.range();
    inserts.push(Insert { at: range.start, order: (true, order), parts: before });
    if !after.is_empty() {
        inserts.push(Insert { at: range.end, order: (false, -order), parts: vec![(None, after)] });
    }
}

fn is(id: u32) -> String {
    format!("crate::mutant::is({id})")
}

fn apply(source: &str, inserts: &[Insert], changes: &[Change<'_>]) -> Rewritten {
    let mut text = String::with_capacity(source.len() * 4);
    let (mut own, mut moved, mut from) = (Vec::new(), Vec::new(), 0);
    for insert in inserts {
        text.push_str(&source[from..insert.at]);
        from = insert.at;
        moved.push((insert.at, text.len()));
        for (id, part) in &insert.parts {
            let start = text.len();
            text.push_str(part);
            own.extend(id.map(|id| (id, start..text.len())));
        }
        moved.push((insert.at, text.len()));
    }
    text.push_str(&source[from..]);
    // Bytes of the rewritten text that a byte of the source starts and ends at.
    let place = |at: usize| {
        let after = moved.partition_point(|&(source, _)| source <= at);
        after.checked_sub(1).map_or(at, |last| moved[last].1 + at - moved[last].0)
    };
    let first = |at: usize| moved.iter().find(|&&(source, _)| source == at).map_or(place(at), |&(_, to)| to);
    let around: HashMap<u32, (Range<usize>, bool)> = changes
        .iter()
        .flat_map(|change| {
            let whole = change.around();
            let whole = first(whole.start)..place(whole.end);
            let is_arm = matches!(change, Change::Guard { .. });
            change.ids().into_iter().map(move |id| (id, (whole.clone(), is_arm)))
        })
        .collect();
    let branch = |(id, own): (u32, Range<usize>)| {
        let (around, is_arm) = around[&id].clone();
        Branch { id, own, around, is_arm }
    };
    Rewritten { branches: own.into_iter().map(branch).collect(), text }
}

/// Module that rewritten crates have: whether a mutant is the chosen one, and which mutants a run reaches.
pub fn support(count: usize) -> Result<String> {
    let text = include_str!("support.rs.txt");
    let (before, after) = text.split_once("COUNT").context("the support module has no COUNT")?;
    Ok(format!("{before}{}{after}", count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(id: u32, genre: &str, start: Place, replacement: &str) -> Mutant {
        let [file, name, genre, replacement] = ["p/src/a.rs", "", genre, replacement].map(str::to_owned);
        Mutant { id, file, name, genre, replacement, start, is_chosen: true }
    }

    #[test]
    fn a_file_holds_each_kind_of_mutant_and_none_of_a_constant() {
        let source = "const N: u32 = 1 + 2;\nfn f(a: u32) -> u32 {\n    match !a {\n        0 if a > 1 => a,\n        _ => 2,\n    }\n}\n";
        let mutants = [
            mutant(1, "BinaryOperator", (1, 18), "-"),
            mutant(2, "FnValue", (3, 5), "0"),
            mutant(3, "UnaryOperator", (3, 11), ""),
            mutant(4, "MatchArm", (4, 9), ""),
            mutant(5, "MatchArmGuard", (4, 14), "true"),
            mutant(6, "BinaryOperator", (4, 16), "<"),
        ];
        let done = rewrite(source, &mutants.iter().collect::<Vec<_>>(), &HashSet::new()).unwrap();
        let expected = "const N: u32 = 1 + 2;\nfn f(a: u32) -> u32 { if is(2) { return 0; } \n    \
             match (if is(3) {   a } else { !a }) {\n        \
             0 if !is(4) && (is(5) || ((if is(6) { a  <  1 } else { a > 1 }))) => a,\n        _ => 2,\n    }\n}\n";
        assert_eq!(done.text.replace("crate::mutant::", ""), expected);
        let mut ids: Vec<u32> = done.branches.iter().map(|branch| branch.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [2, 3, 4, 5, 6]);
        let without = rewrite(source, &mutants.iter().collect::<Vec<_>>(), &HashSet::from([2, 3, 4, 5, 6])).unwrap();
        assert_eq!(without.text, source);
    }
}
