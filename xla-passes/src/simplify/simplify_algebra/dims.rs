//! Dimension arithmetic for rules of several families.

/// Positions of the dimensions whose size is not 1.
pub fn nontrivial(dims: &[usize]) -> Vec<usize> {
    (0..dims.len()).filter(|&d| dims[d] != 1).collect()
}

/// Whether two lists of sizes are the same but for ones.
pub fn equal_but_ones(a: &[usize], b: &[usize]) -> bool {
    a.iter().filter(|&&n| n != 1).eq(b.iter().filter(|&&n| n != 1))
}

/// For each dimension of `from` whose size is not 1, the dimension of `to` that it becomes when a reshape only adds or
/// removes ones; `None` for ones. `None` in all when the reshape does more.
pub fn reshape_map(from: &[usize], to: &[usize]) -> Option<Vec<Option<usize>>> {
    if !equal_but_ones(from, to) {
        return None;
    }
    let mut targets = nontrivial(to).into_iter();
    Some(from.iter().map(|&n| if n == 1 { None } else { targets.next() }).collect())
}

/// Whether `permutation` leaves everything in place.
pub fn is_identity(permutation: &[usize]) -> bool {
    permutation.iter().enumerate().all(|(i, &d)| i == d)
}

/// Inverse of a permutation: the new place of each position.
pub fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
    inverse
}

/// Splits a reshape into the smallest runs of dimensions that become each other: `[6,4]` to `[2,3,4]` is
/// `([0], [0,1])` and `([1], [2])`. Ones go with the run they stand in front of, at the end with the last.
/// `None` when there is no element, where nothing is told by sizes.
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
        while a != b {
            if a < b {
                a = a.checked_mul(*from.get(i)?)?;
                i += 1;
            } else {
                b = b.checked_mul(*to.get(j)?)?;
                j += 1;
            }
        }
        runs.push(((start_i..i).collect(), (start_j..j).collect()));
    }
    Some(runs)
}
