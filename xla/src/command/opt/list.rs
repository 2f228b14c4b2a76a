//! `xla opt --list-passes`: all passes and the pipeline of a platform.

use std::fmt::Write as _;

use xla::passes::registry;
use xla::service::HloPasses;

/// Returns one line for each pass, with the names that XLA has for it, and the pipeline of the platform.
pub fn table(platform: &str, passes: Option<&HloPasses>) -> String {
    let mut text = "Passes:\n".to_string();
    let width = registry::list().map(|(name, _)| name.len()).max().unwrap_or_default();
    for info in registry::passes() {
        let _ = write!(text, "  {:width$}  {}", info.name, info.summary);
        if !info.aliases.is_empty() {
            let _ = write!(text, " ({})", info.aliases.join(", "));
        }
        text.push('\n');
    }
    let _ = match passes {
        Some(passes) => write!(text, "\nPipeline of platform {platform}:\n{}", passes.pipeline),
        None => writeln!(text, "\nPlatform {platform} has no pipeline of its own."),
    };
    text
}
