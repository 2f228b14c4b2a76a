//! `cargo xtask tidy`
use anyhow::Result;
use pico_args::Arguments;
pub const HELP: &str = "";
pub fn run(_: Arguments) -> Result<()> {
    Ok(())
}
pub fn check() -> Result<()> {
    Ok(())
}
