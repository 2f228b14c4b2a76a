//! Execution of a launch: its blocks run in sequence.

use super::block::Block;
use super::launch::{Launch, Outside, coordinates};
use super::memory::Memory;
use crate::finding::{Class, Finding, Problem};

/// Maximum number of threads of a block.
const MOST_THREADS: u64 = 1024;

/// Runs a kernel to its end, or to its first finding.
pub fn launch(memory: &mut Memory, launch: &Launch<'_>, outside: &mut dyn Outside) -> Result<(), Box<Finding>> {
    let at_first = |message: String| {
        let problem = Problem::new(Class::Launch, message);
        Box::new(Finding { problem, kernel: launch.kernel.name.clone(), block: [0; 3], thread: [0; 3], line: 0 })
    };
    let threads = product(launch.block);
    let most = u64::from(launch.kernel.most_threads).min(MOST_THREADS);
    if threads == 0 || threads > most {
        return Err(at_first(format!("it is launched with {threads} threads in a block, and can have 1 to {most}")));
    }
    if launch.kernel.exact_threads.is_some_and(|exact| exact != launch.block) {
        return Err(at_first(format!("it is launched with blocks of {:?}, against its .reqntid", launch.block)));
    }
    let blocks = product(launch.grid);
    if blocks == 0 || blocks > 1 << 40 {
        return Err(at_first(format!("it is launched in {blocks} blocks")));
    }
    let wanted = launch.kernel.parameters.last().map_or(0, |(start, bytes)| start + bytes);
    if launch.parameters.len() != wanted {
        return Err(at_first(format!("it has {wanted} bytes of parameters, and is given {}", launch.parameters.len())));
    }
    let since = memory.segments;
    let mut block = Block::new(memory, launch, since, outside);
    let mut starts = Vec::new();
    for number in 0..blocks {
        let number = if launch.backwards { blocks - 1 - number } else { number };
        starts.push((block.next_segment(), number));
        if let Err(fault) = block.run(coordinates(number, launch.grid)) {
            return Err(Box::new(block.finding(fault, &starts)));
        }
    }
    Ok(())
}

fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().fold(1, |product: u64, size| product.saturating_mul(u64::from(*size)))
}
