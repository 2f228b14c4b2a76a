//! `xla` with the features of this crate: the platform `template` and no other backend.

#[path = "../../only.rs"]
mod only;

fn main() -> xla::Result<()> {
    println!("{}", only::only("template")?);
    Ok(())
}
