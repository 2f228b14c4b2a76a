//! The protocol of a process that checks random programs.

use xla_tests::worker::{Checker, Reply, Request};

#[test]
fn requests_are_answered_line_by_line() {
    let checker = Checker::new(&xla::registry(), "cpu").unwrap();
    let seed = Request::Seed { family: "movement".into(), seed: 3 };
    let none = Request::Seed { family: "sculpture".into(), seed: 3 };
    let [seed, none] = [seed, none].map(|request| serde_json::to_string(&request).unwrap());
    let mut replies = Vec::new();
    checker.serve(format!("{seed}\nnonsense\n{none}\n").as_bytes(), &mut replies).unwrap();
    let replies = String::from_utf8(replies).unwrap();
    let replies: Vec<Reply> = replies.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(replies[..], [Reply::Agree(_), Reply::Invalid(_), Reply::Invalid(_)]), "{replies:?}");
}
