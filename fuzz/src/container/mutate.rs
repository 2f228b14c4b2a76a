//! Random structured mutations of a file: of a table, a payload, a name, or an operation.

use xla_stablehlo::ir::forms::FORMS;

use super::ir::{Block, Operation, Region};
use super::numbers::{Numbers, put};
use super::random::Random;
use super::{Entry, File};

/// Producer strings: versions with different permitted contents, an unknown version, and none.
const PRODUCERS: [&[u8]; 5] =
    [b"StableHLO_v0.9.0", b"StableHLO_v1.5.0", b"StableHLO_v1.17.0", b"StableHLO_v9.9.9", b""];

/// Changes a file in a few places; `None` for bytes that cannot be decoded.
pub fn mutate(bytes: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut file = File::decode(bytes)?;
    let mut random = Random::new(seed);
    for _ in 0..=random.below(3) {
        change(&mut file, &mut random);
    }
    Some(file.encode())
}

fn change(file: &mut File, random: &mut Random) {
    match random.below(16) {
        0 => file.version = random.below(8) as u64,
        1 => file.producer = PRODUCERS[random.below(PRODUCERS.len())].to_vec(),
        2 | 3 => strings(file, random),
        4 => names(file, random),
        5..8 => entries(&mut file.attributes, random),
        8 | 9 => entries(&mut file.types, random),
        10 => {
            if let Some(at) = random.place(&file.properties) {
                payload(&mut file.properties[at], random);
            }
        }
        _ => {
            let sizes = [file.properties.len(), file.types.len(), file.attributes.len()];
            let names = file.names.iter().map(|names| names.operations.len()).sum();
            operation(&mut file.top, random, names, sizes);
        }
    }
}

/// Replaces the name of an operation, or changes a byte of a string.
fn strings(file: &mut File, random: &mut Random) {
    let Some(at) = random.place(&file.strings) else { return };
    if random.one_in(3) {
        payload(&mut file.strings[at], random);
        return;
    }
    let form = FORMS[random.below(FORMS.len())].name;
    let known = |string: &Vec<u8>| FORMS.iter().any(|form| form.name.as_bytes() == string.as_slice());
    let at = file.strings.iter().cycle().skip(at).take(file.strings.len()).position(known).map_or(at, |more| at + more);
    let count = file.strings.len();
    file.strings[at % count] = form.as_bytes().to_vec();
}

fn names(file: &mut File, random: &mut Random) {
    let strings = file.strings.len();
    let Some(at) = random.place(&file.names) else { return };
    let names = &mut file.names[at];
    match random.place(&names.operations) {
        Some(operation) => names.operations[operation] = random.below(2 * strings) as u64,
        None => names.operations.push(random.below(2 * strings) as u64),
    }
    if random.one_in(4) {
        names.dialect = random.below(file.dialects.len()) as u64;
    }
}

/// Changes an entry of a table: its code, its payload or its position.
fn entries(table: &mut Vec<Entry>, random: &mut Random) {
    let Some(at) = random.place(table) else { return };
    let other = random.below(table.len());
    match random.below(8) {
        0 => table[at] = table[other].clone(),
        1 => table.swap(at, other),
        2 => table.push(table[at].clone()),
        3 => table[at].is_encoded ^= random.one_in(4),
        4 => table[at].dialect = table[other].dialect,
        _ => payload(&mut table[at].payload, random),
    }
}

/// Changes a number in the part of a payload that is a sequence of varints, or a byte.
fn payload(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut numbers = Vec::new();
    let mut r = Numbers(bytes);
    let mut rest = r;
    while let Some(number) = r.varint() {
        numbers.push(number);
        rest = r;
    }
    let rest = rest.0.to_vec();
    let Some(at) = random.place(&numbers) else {
        bytes.push(random.next() as u8);
        return;
    };
    match random.below(8) {
        0 => numbers.insert(at, random.below(32) as u64),
        1 => {
            numbers.remove(at);
        }
        2 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            return;
        }
        _ => numbers[at] = random.number(numbers[at]),
    }
    bytes.clear();
    numbers.iter().for_each(|&number| put(bytes, number));
    bytes.extend(rest);
}

/// Changes an operation somewhere in a block; `names` and `sizes` are the sizes of the tables that it refers to.
fn operation(block: &mut Block, random: &mut Random, names: usize, sizes: [usize; 3]) {
    let Some(at) = random.place(&block.operations) else { return };
    let nested = &mut block.operations[at].regions;
    if let Some(region) = random.place(nested).filter(|_| !random.one_in(8)) {
        let region = &mut nested[region];
        if let Some(inner) = random.place(&region.blocks).filter(|_| !random.one_in(16)) {
            return operation(&mut region.blocks[inner], random, names, sizes);
        }
        return regions(region, random);
    }
    match random.below(12) {
        0 => {
            block.operations.remove(at);
        }
        1 => block.operations.insert(at, block.operations[at].clone()),
        2 => {
            let other = random.below(block.operations.len());
            block.operations.swap(at, other);
        }
        3 => match random.place(&block.arguments) {
            Some(argument) if random.one_in(2) => block.arguments[argument].0 = random.below(2 * sizes[1]) as u64,
            Some(argument) if random.one_in(2) => {
                block.arguments.remove(argument);
            }
            _ => block.arguments.push((2 * random.below(sizes[1]) as u64, None)),
        },
        4 => {
            // Nest a copy of the operation in a new region of itself.
            let inner = block.operations[at].clone();
            let blocks = vec![Block { arguments: Vec::new(), operations: vec![inner] }];
            block.operations[at].regions.push(Region { surplus: 0, blocks });
        }
        _ => references(&mut block.operations[at], random, names, sizes),
    }
}

fn regions(region: &mut Region, random: &mut Random) {
    match random.below(4) {
        0 => region.surplus = random.number(region.surplus),
        1 => region.blocks.clear(),
        2 => region.blocks.push(Block::default()),
        _ => region.blocks.extend(region.blocks.first().cloned()),
    }
}

/// Changes a reference of an operation.
fn references(operation: &mut Operation, random: &mut Random, names: usize, sizes: [usize; 3]) {
    let [properties, types, attributes] = sizes;
    let list = |list: &mut Vec<u64>, bound: usize, random: &mut Random| match random.place(list) {
        Some(at) if random.one_in(3) => {
            list.remove(at);
        }
        Some(at) if random.one_in(2) => list[at] = random.number(list[at]),
        Some(at) => list[at] = random.below(bound) as u64,
        None => list.push(random.below(bound) as u64),
    };
    match random.below(8) {
        0 | 1 => operation.name = random.below(names) as u64,
        2 => operation.properties = Some(random.below(properties) as u64).filter(|_| !random.one_in(4)),
        3 => operation.attributes = Some(random.below(attributes) as u64).filter(|_| !random.one_in(4)),
        4 | 5 => list(&mut operation.operands, 16, random),
        6 => list(&mut operation.results, types, random),
        _ => operation.is_isolated ^= true,
    }
}
