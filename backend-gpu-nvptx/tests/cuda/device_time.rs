//! Tests of the device time of runs: as graphs, and with separate launches.

use std::time::Duration;

use xla_service::{Buffer, Client, CompileOptions, DeviceTimes};

use super::{arguments, client, compiled, is_simulated};

/// Dots that depend on each other, two of them concurrent.
pub(super) const CHAIN: &str = include_str!("programs/chain.hlo");

/// Loop whose trip count is unknown at compile time.
const LOOP: &str = include_str!("programs/loop.hlo");

/// Returns a branch selected by the first number.
fn branch(less: &str) -> String {
    format!(
        "HloModule branch
    less {{
      a = f32[300] parameter(0)
      {less}
    }}
    order {{
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT
    }}
    more {{
      a = f32[300] parameter(0)
      ROOT b = f32[300] sort(a), dimensions={{0}}, to_apply=order
    }}
    ENTRY main {{
      x = f32[300] parameter(0)
      first = f32[1] slice(x), slice={{[0:1]}}
      one = f32[] reshape(first)
      limit = f32[] constant(3)
      is_less = pred[] compare(one, limit), direction=LT
      ROOT c = f32[300] conditional(is_less, x, x), true_computation=less, false_computation=more
    }}"
    )
}

/// Branch that the device selects.
const PLAIN: &str = "ROOT b = f32[300] negate(a)";

/// Branch that draws random numbers, all of them 2: the host advances the random state.
const DRAWS: &str = "two = f32[] constant(2)
      twos = f32[300] rng(two, two), distribution=rng_uniform
      ROOT b = f32[300] multiply(a, twos)";

const ROUNDS: usize = 3;

fn times(client: &Client, text: &str, options: &CompileOptions, runs: usize) -> DeviceTimes {
    let program = compiled(client, text, options);
    let lists = arguments(&program, runs);
    let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
    let times = program.device_time(&lists, ROUNDS).unwrap();
    assert_eq!(times.rounds.len(), ROUNDS);
    assert!(times.rounds.iter().all(|time| *time > Duration::ZERO && *time < Duration::from_secs(100)), "{times:?}");
    // Measurement does not change the program's results.
    let result = |options: &CompileOptions| {
        let program = compiled(client, text, options);
        program.execute(&lists[0]).unwrap()[0].to_literal().unwrap()
    };
    let with_graphs = CompileOptions { graphs: true, ..options.clone() };
    assert_eq!(result(options), result(&with_graphs));
    times
}

fn nanoseconds(times: &DeviceTimes) -> u128 {
    (times.rounds.iter().sum::<Duration>() / ROUNDS as u32).as_nanos()
}

#[test]
fn more_runs_take_as_many_times_longer_as_graphs_and_without() {
    let Some(client) = client() else { return };
    for text in [CHAIN, LOOP, &branch(PLAIN)] {
        let graphs = [true, false].map(|graphs| {
            let options = CompileOptions { graphs, ..CompileOptions::default() };
            let [one, many] = [1, 6].map(|runs| times(&client, text, &options, runs));
            assert_eq!(one.recorded, many.recorded);
            assert_eq!(one.recorded.is_ok(), graphs, "{one:?}");
            if is_simulated(&client) {
                // The clock returns milliseconds as f32.
                assert!(nanoseconds(&many).abs_diff(6 * nanoseconds(&one)) <= 6, "{one:?} {many:?}");
            }
            nanoseconds(&one)
        });
        if is_simulated(&client) && text == CHAIN {
            assert!(graphs[0].abs_diff(graphs[1]) <= 1, "{graphs:?}");
        }
    }
}

#[test]
fn what_needs_the_host_is_timed_run_by_run_and_told() {
    let Some(client) = client() else { return };
    let told = times(&client, &branch(DRAWS), &CompileOptions::default(), 3).recorded.unwrap_err();
    assert!(told.contains("needs the host"), "{told}");
}

#[test]
fn runs_of_a_graph_have_memory_of_their_own() {
    let Some(client) = client() else { return };
    let text = "HloModule m\nENTRY main {\n  x = f32[50000] parameter(0)\n  ROOT y = f32[50000] add(x, x)\n}";
    let used = |runs| {
        times(&client, text, &CompileOptions::default(), runs);
        client.first_device().memory_stats().peak_bytes_in_use
    };
    // Each has 200 KB of argument and of result.
    let (few, many) = (used(1), used(9));
    assert!(many - few >= 8 * 400_000, "{few} {many}");
}

#[test]
fn an_argument_that_must_be_given_away_is_kept() {
    let Some(client) = client() else { return };
    let text = "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
        ENTRY main {
          x = f32[300] parameter(0)
          ROOT y = f32[300] add(x, x)
        }";
    let program = compiled(&client, text, &CompileOptions::default());
    let lists = arguments(&program, 2);
    let before = lists[0][0].to_literal().unwrap();
    let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
    assert_eq!(program.device_time(&lists, 3).unwrap().rounds.len(), 3);
    assert_eq!(lists[0][0].to_literal().unwrap(), before);
}
