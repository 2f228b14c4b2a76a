//! Reads pictures (PGM as text, 8 by 8, white paper) and says which digits they show.

use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/digits.rs"));

/// Ink from 0 to 16 at each pixel, as the network knows it.
fn picture(text: &str) -> Option<[[u8; 8]; 8]> {
    let words = text.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    let mut words = words.skip_while(|&word| word != "P2").skip(1);
    let mut number = || words.next()?.parse::<u32>().ok();
    let (8, 8, white @ 1..) = (number()?, number()?, number()?) else { return None };
    let mut pixels = [[0; 8]; 8];
    for pixel in pixels.as_flattened_mut() {
        *pixel = (white.checked_sub(number()?)? * 16 / white) as u8;
    }
    Some(pixels)
}

fn main() -> ExitCode {
    let (mut arena, mut scores) = (digits::Arena::new(), [0.0; 10]);
    for path in std::env::args().skip(1) {
        let Some(pixels) = std::fs::read_to_string(&path).ok().and_then(|text| picture(&text)) else {
            eprintln!("{path} is no picture of 8 by 8 pixels as PGM text (P2)");
            return ExitCode::from(2);
        };
        digits::run(&mut arena, &pixels, &mut scores);
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or_default();
        println!("{path} shows a {best}");
    }
    ExitCode::SUCCESS
}
