//! Dimension arithmetic shared by rules of several files.

use std::cmp::Ordering;

pub(crate) use crate::layout::{inverse, is_identity};

/// Returns the dimensions whose size is not 1.
pub fn nontrivial(dims: &[usize]) -> Vec<usize> {
    (0..dims.len()).filter(|&d| dims[d] != 1).collect()
}

/// Whether two lists of sizes are equal except for ones.
pub fn equal_but_ones(a: &[usize], b: &[usize]) -> bool {
    a.iter().filter(|&&n| n != 1).eq(b.iter().filter(|&&n| n != 1))
}

/// Maps each dimension of `from` to a dimension of `to`, if the reshape only adds or removes dimensions of size 1;
/// those map to `None`. Returns `None` if the reshape does more.
pub fn reshape_map(from: &[usize], to: &[usize]) -> Option<Vec<Option<usize>>> {
    if !equal_but_ones(from, to) {
        return None;
    }
    let mut targets = nontrivial(to).into_iter();
    Some(from.iter().map(|&n| if n == 1 { None } else { targets.next() }).collect())
}

/// Splits a reshape into the smallest groups of dimensions that map to each other: `[6,4]` to `[2,3,4]` is `([0],
/// [0,1])` and `([1], [2])`. Dimensions of size 1 belong to the group that they precede; at the end, they form groups
/// of their own. `None` if the array has no elements, since its sizes do not determine a factorization.
pub fn factor(from: &[usize], to: &[usize]) -> Option<Vec<(Vec<usize>, Vec<usize>)>> {
    if from.contains(&0) || to.contains(&0) {
        return None;
    }
    let mut runs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let (start_i, start_j) = (i, j);
        let (mut a, mut b) = (1usize, 1usize);
        if i < from.len() {
            a = from[i];
            i += 1;
        }
        if j < to.len() {
            b = to[j];
            j += 1;
        }
        loop {
            match a.cmp(&b) {
                Ordering::Less => {
                    a = a.checked_mul(*from.get(i)?)?;
                    i += 1;
                }
                Ordering::Greater => {
                    b = b.checked_mul(*to.get(j)?)?;
                    j += 1;
                }
                Ordering::Equal => break,
            }
        }
        runs.push(((start_i..i).collect(), (start_j..j).collect()));
    }
    Some(runs)
}
