//! Tests of the arithmetic of dimensions that algebraic rules share.

use xla_passes::internals::factor;

type Runs = Vec<(Vec<usize>, Vec<usize>)>;

#[test]
fn reshapes_split_into_the_smallest_runs() {
    let cases: [(&[usize], &[usize], Option<Runs>); 13] = [
        (&[6, 4], &[2, 3, 4], Some(vec![(vec![0], vec![0, 1]), (vec![1], vec![2])])),
        (&[2, 3, 4], &[6, 4], Some(vec![(vec![0, 1], vec![0]), (vec![2], vec![1])])),
        (&[6, 4], &[4, 6], Some(vec![(vec![0, 1], vec![0, 1])])),
        (&[6], &[1, 6], Some(vec![(vec![0], vec![0, 1])])),
        (&[1, 6], &[6], Some(vec![(vec![0, 1], vec![0])])),
        (&[6], &[6, 1], Some(vec![(vec![0], vec![0]), (vec![], vec![1])])),
        (&[6, 1], &[6], Some(vec![(vec![0], vec![0]), (vec![1], vec![])])),
        (&[], &[1, 1], Some(vec![(vec![], vec![0]), (vec![], vec![1])])),
        (&[], &[], Some(vec![])),
        (&[0, 6], &[0], None),
        (&[0], &[6, 0], None),
        (&[6], &[4], None),
        (&[4], &[6], None),
    ];
    for (from, to, runs) in cases {
        assert_eq!(factor(from, to), runs, "{from:?} to {to:?}");
    }
}
