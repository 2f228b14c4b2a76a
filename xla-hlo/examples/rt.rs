//! Scratch: prints a module read from a file.
#![allow(clippy::print_stdout)]
fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap();
        let start = std::time::Instant::now();
        match xla_hlo::text::parse_module(&text) {
            Ok(m) => {
                let t = start.elapsed().as_secs_f64();
                if std::env::var("QUIET").is_ok() {
                    let start = std::time::Instant::now();
                    let p = m.to_string();
                    let tp = start.elapsed().as_secs_f64();
                    println!(
                        "{} MB parsed at {:.1} MB/s, printed {} MB at {:.1} MB/s",
                        text.len() / 1_000_000,
                        text.len() as f64 / 1e6 / t,
                        p.len() / 1_000_000,
                        p.len() as f64 / 1e6 / tp
                    );
                } else {
                    print!("{m}")
                }
            }
            Err(e) => println!("{e}"),
        }
    }
}
