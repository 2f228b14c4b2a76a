//! Files of several modules; tests of other crates include this file.

/// Returns the modules of a file.
pub fn modules(text: &str) -> Vec<String> {
    let mut modules: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("HloModule") {
            modules.push(String::new());
        }
        if let Some(module) = modules.last_mut() {
            *module += &format!("{line}\n");
        }
    }
    modules
}
