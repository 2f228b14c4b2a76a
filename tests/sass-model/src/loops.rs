//! Control flow of machine code: basic blocks, and loops by their back edges.

use std::collections::BTreeSet;

use crate::sass::{Function, Instruction};

/// Natural loop: a header, and all instructions from which a path returns to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Loop {
    /// Index of the first instruction.
    pub header: usize,
    /// Indices of its instructions, in order.
    pub body: Vec<usize>,
    /// Whether no other loop is in it.
    pub is_innermost: bool,
}

/// Basic block, and its successors.
struct Block {
    start: usize,
    end: usize,
    next: Vec<usize>,
}

/// Returns the loops reachable from the entry, in program order. Excluded are called functions, which are rare slow
/// paths of arithmetic, spin loops that only wait, and loops over the threads of a warp.
pub fn loops(function: &Function) -> Vec<Loop> {
    let blocks = blocks(function);
    let dominators = dominators(&blocks);
    let mut found: Vec<(usize, BTreeSet<usize>)> = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let Some(above) = &dominators[number] else { continue };
        for &header in block.next.iter().filter(|header| above.contains(header)) {
            let body = natural(&blocks, &dominators, header, number);
            let code = |&block: &usize| &function.code[blocks[block].start..blocks[block].end];
            if body.iter().flat_map(code).all(waits) || function.code[block.end - 1].has("ANY") {
                continue;
            }
            match found.iter_mut().find(|(known, _)| *known == header) {
                Some((_, known)) => known.extend(body),
                None => found.push((header, body)),
            }
        }
    }
    found.sort();
    let is_innermost = |header: usize, body: &BTreeSet<usize>| {
        !found.iter().any(|(other, _)| *other != header && body.contains(other))
    };
    let instructions = |body: &BTreeSet<usize>| body.iter().flat_map(|&b| blocks[b].start..blocks[b].end).collect();
    let as_loop = |(header, body): &(usize, BTreeSet<usize>)| Loop {
        header: blocks[*header].start,
        body: instructions(body),
        is_innermost: is_innermost(*header, body),
    };
    found.iter().map(as_loop).collect()
}

/// Whether an instruction may be one of a loop that waits for a barrier in shared memory, and does nothing else.
fn waits(instruction: &Instruction) -> bool {
    matches!(instruction.base(), "SYNCS" | "BRA" | "NOP" | "NANOSLEEP" | "YIELD")
}

/// Blocks that reach the back edge's end without passing the header, and the header.
fn natural(blocks: &[Block], reached: &[Option<BTreeSet<usize>>], header: usize, end: usize) -> BTreeSet<usize> {
    let mut body = BTreeSet::from([header]);
    let mut open = vec![end];
    while let Some(block) = open.pop() {
        if body.insert(block) {
            let before = (0..blocks.len()).filter(|&b| reached[b].is_some() && blocks[b].next.contains(&block));
            open.extend(before);
        }
    }
    body
}

fn blocks(function: &Function) -> Vec<Block> {
    let code = &function.code;
    let mut starts = BTreeSet::from([0]);
    for (place, instruction) in code.iter().enumerate() {
        if instruction.base() == "BRA" {
            starts.extend(instruction.target);
        }
        if matches!(instruction.base(), "BRA" | "EXIT" | "RET" | "BRX") {
            starts.insert(place + 1);
        }
    }
    starts.retain(|&start| start < code.len());
    let starts: Vec<usize> = starts.into_iter().collect();
    let number = |start: usize| starts.binary_search(&start).ok();
    let block = |(place, &start): (usize, &usize)| {
        let end = starts.get(place + 1).copied().unwrap_or(code.len());
        let last = &code[end - 1];
        let ends = matches!(last.base(), "BRA" | "EXIT" | "RET" | "BRX");
        // A jump may have a condition among its operands as well.
        let conditions = last.guard.is_some() || last.base() == "BRA" && last.operands.len() > 1;
        let falls = (!ends || conditions).then_some(end).and_then(number);
        let jumps = if last.base() == "BRA" { last.target.and_then(number) } else { None };
        Block { start, end, next: falls.into_iter().chain(jumps).collect() }
    };
    starts.iter().enumerate().map(block).collect()
}

/// Dominators of each block; `None` for an unreachable block.
fn dominators(blocks: &[Block]) -> Vec<Option<BTreeSet<usize>>> {
    let mut found: Vec<Option<BTreeSet<usize>>> = vec![None; blocks.len()];
    if blocks.is_empty() {
        return found;
    }
    found[0] = Some(BTreeSet::from([0]));
    let mut changed = true;
    while changed {
        changed = false;
        for number in 0..blocks.len() {
            let Some(above) = found[number].clone() else { continue };
            for &next in &blocks[number].next {
                let mut through = match &found[next] {
                    Some(known) => known.intersection(&above).copied().collect(),
                    None => above.clone(),
                };
                through.insert(next);
                if found[next].as_ref() != Some(&through) {
                    found[next] = Some(through);
                    changed = true;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass;

    /// Header, last instruction and whether it is innermost, of each loop, by addresses.
    fn found(text: &str) -> Vec<(u64, u64, bool)> {
        let function = sass::parse(text).unwrap().remove(0);
        let address = |place: usize| function.code[place].address;
        let ends = |l: &Loop| (address(l.header), address(l.body[l.body.len() - 1]), l.is_innermost);
        loops(&function).iter().map(ends).collect()
    }

    #[test]
    fn loops_and_those_around_them() {
        assert_eq!(found(include_str!("samples/row.sass")), [(0x70, 0xf0, true)]);
        assert_eq!(found(include_str!("samples/nested.sass")), [(0x20, 0x90, false), (0x30, 0x60, true)]);
    }

    #[test]
    fn waiting_is_no_loop() {
        let loops = found(include_str!("samples/boxes.sass"));
        assert_eq!(loops, [(0x130, 0x3f0, true)]);
    }

    #[test]
    fn code_that_is_never_reached_is_no_loop() {
        let text = ".section .text.k,\"ax\"\n/*0000*/ EXIT ;\n.L_x_0:\n/*0010*/ BRA `(.L_x_0);\n";
        assert_eq!(found(text), []);
    }
}
