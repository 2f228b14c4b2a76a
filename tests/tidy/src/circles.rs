//! Circles of imports: files of a crate that need each other, found from `use` declarations and paths in the code.
//!
//! A file imports another if it names something that the other one declares. A name that a module only passes on
//! (`pub use`) counts for the file that declares it, so that a `mod.rs` of declarations is part of no circle. Tests are
//! left out: they may import anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::lexer::{self, is_word};

/// The files of one crate by the paths of their modules: `["fused", "kernel"]` is `src/fused/kernel.rs`.
type Modules<'a> = BTreeMap<Vec<String>, Module<'a>>;

struct Module<'a> {
    path: &'a str,
    /// Names that the module re-exports, and the whole path of each.
    passed_on: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names the module passes on.
    passed_on_all: Vec<Vec<String>>,
    /// Paths that the code names, from the root of the crate.
    named: BTreeSet<Vec<String>>,
}

/// The circles of a crate, largest first, each in the order of its paths. `files` are paths below the crate's `src`,
/// with contents.
pub fn circles(files: &[(String, String)]) -> Vec<Vec<String>> {
    let modules: Modules<'_> =
        files.iter().filter_map(|(path, content)| Some((module_path(path)?, Module::new(path, content)?))).collect();
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for module in modules.values() {
        for named in &module.named {
            let Some(found) = declared_in(&modules, named, 0).filter(|&found| found != module.path) else { continue };
            edges.entry(module.path).or_default().insert(found);
        }
    }
    let mut found: Vec<Vec<String>> = Components::of(&edges);
    found.sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
    found
}

/// Each circle of a crate in `folder` as a finding.
pub fn check(folder: &str, files: &[(String, String)]) -> Vec<Finding> {
    let advice = |circle: &Vec<String>| {
        format!("imported by and imports {}; put what they share below them", circle[1..].join(", "))
    };
    let finding =
        |circle: Vec<String>| Finding::failure(&format!("{folder}/src/{}", circle[0]), 0, "circle", advice(&circle));
    circles(files).into_iter().map(finding).collect()
}

/// `fused/kernel.rs` as the path of a module; `None` for tests.
fn module_path(path: &str) -> Option<Vec<String>> {
    let mut parts: Vec<String> = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if parts.iter().any(|part| part == "tests" || part.ends_with("_tests")) {
        return None;
    }
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    Some(parts)
}

impl<'a> Module<'a> {
    fn new(path: &'a str, content: &str) -> Option<Module<'a>> {
        let own = module_path(path)?;
        let code = code_without_tests(content);
        let mut module = Module { path, passed_on: BTreeMap::new(), passed_on_all: Vec::new(), named: BTreeSet::new() };
        let mut rest = code.as_str();
        while let Some((before, declaration, after)) = next_use(rest) {
            module.name_paths(&own, before);
            let (is_public, tree) = declaration;
            for (segments, alias) in use_paths(tree) {
                let Some(whole) = from_root(&own, &segments) else { continue };
                match (is_public, alias.as_str()) {
                    (true, "*") => module.passed_on_all.push(whole),
                    (true, _) => drop(module.passed_on.insert(alias, whole)),
                    (false, _) => drop(module.named.insert(whole)),
                }
            }
            rest = after;
        }
        module.name_paths(&own, rest);
        Some(module)
    }

    /// Adds the paths in code that begin with `crate::` or `super::`.
    fn name_paths(&mut self, own: &[String], code: &str) {
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                if code[..at].ends_with(|c: char| is_word(c) || c == ':') {
                    continue;
                }
                let end = code[at..].find(|c: char| !is_word(c) && c != ':').map_or(code.len(), |end| at + end);
                let segments: Vec<String> = code[at..end].split("::").map(str::to_owned).collect();
                self.named.extend(from_root(own, &segments));
            }
        }
    }
}

/// The code of a file without comments, contents of strings, and the tests at its end.
fn code_without_tests(content: &str) -> String {
    let lines = lexer::lines(content);
    let tests = lines
        .windows(2)
        .position(|pair| pair[0].code.trim() == "#[cfg(test)]" && pair[1].code.starts_with("mod tests {"));
    let kept = &lines[..tests.unwrap_or(lines.len())];
    kept.iter().map(|line| line.code.as_str()).collect::<Vec<_>>().join("\n")
}

/// The text before the next `use` declaration, whether that is public and its path, and the text after it.
fn next_use(code: &str) -> Option<(&str, (bool, &str), &str)> {
    let is_start = |at: &usize| {
        let before = code[..*at].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '}', ';', '{', ')']) || before.ends_with("pub")
    };
    let at = code.match_indices("use ").map(|(at, _)| at).find(is_start)?;
    let end = at + code[at..].find(';')?;
    let line = code[..at].rfind('\n').map_or(0, |newline| newline + 1);
    Some((&code[..line], (code[line..at].contains("pub"), &code[at + 4..end]), &code[end + 1..]))
}

/// The paths of a `use` tree, each with the name that it is known by; `*` for all names.
fn use_paths(tree: &str) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    add_paths(tree.trim(), &[], &mut found);
    found
}

fn add_paths(tree: &str, prefix: &[String], found: &mut Vec<(Vec<String>, String)>) {
    if let Some((head, group)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
        let group = group.rfind('}').map_or(group, |end| &group[..end]);
        return split_group(group).iter().for_each(|part| add_paths(part.trim(), &prefix, found));
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut segments = prefix.to_vec();
    segments.extend(path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
    if segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let Some(last) = segments.last().cloned() else { return };
    if last == "*" {
        segments.pop();
    }
    found.push((segments, alias.map_or(last, str::to_owned)));
}

/// Splits at commas that are in no inner group.
fn split_group(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0usize, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[from..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// A path as the module `own` writes it, from the root of the crate. A path that begins with something else may be that
/// of a child, or lead out of the crate, where nothing is found.
fn from_root(own: &[String], segments: &[String]) -> Option<Vec<String>> {
    let mut base = match segments.first()?.as_str() {
        "crate" => Vec::new(),
        "super" | "self" => own.to_vec(),
        _ => return Some([own, segments].concat()),
    };
    for segment in segments {
        match segment.as_str() {
            "super" => drop(base.pop()?),
            "crate" | "self" | "" => {}
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

/// Names may be passed on so often.
const DEPTH: usize = 8;

/// The file that declares the item at a path from the root.
fn declared_in<'a>(modules: &Modules<'a>, path: &[String], depth: usize) -> Option<&'a str> {
    let known = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n]))?;
    let module = &modules[&path[..known]];
    let Some(name) = path.get(known).filter(|_| depth < DEPTH) else {
        // A module itself, as in `use super::rules`: the code then names the items it uses.
        return Some(module.path);
    };
    if let Some(target) = module.passed_on.get(name) {
        return declared_in(modules, target, depth + 1);
    }
    Some(module.path)
}

/// Tarjan's algorithm for strongly connected components.
struct Components<'g> {
    edges: &'g BTreeMap<&'g str, BTreeSet<&'g str>>,
    /// Number of each file by when it was met, and the lowest number that it leads back to.
    numbers: BTreeMap<&'g str, (usize, usize)>,
    stack: Vec<&'g str>,
    found: Vec<Vec<String>>,
}

impl<'g> Components<'g> {
    /// Components of more than one file.
    fn of(edges: &'g BTreeMap<&'g str, BTreeSet<&'g str>>) -> Vec<Vec<String>> {
        let mut search = Components { edges, numbers: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
        for &file in edges.keys() {
            if !search.numbers.contains_key(file) {
                search.visit(file);
            }
        }
        search.found
    }

    fn visit(&mut self, file: &'g str) -> usize {
        let number = self.numbers.len();
        self.numbers.insert(file, (number, number));
        self.stack.push(file);
        let mut low = number;
        for &next in self.edges.get(file).into_iter().flatten() {
            match self.numbers.get(next) {
                None => low = low.min(self.visit(next)),
                Some(&(met, _)) if self.stack.contains(&next) => low = low.min(met),
                Some(_) => {}
            }
        }
        if low == number {
            let at = self.stack.iter().position(|&f| f == file).unwrap_or(0);
            let mut component: Vec<String> = self.stack.drain(at..).map(str::to_owned).collect();
            component.sort();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<(String, String)> = files.iter().map(|&(p, c)| (p.to_owned(), c.to_owned())).collect();
        circles(&files)
    }

    #[test]
    fn two_files_that_need_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::{B, Other as Name};\npub struct A;\n"),
            ("b.rs", "pub struct B(super::a::A);\npub struct Other;\n"),
            ("c.rs", "use super::a::A;\n"),
        ];
        assert_eq!(found(&files), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn a_name_that_is_passed_on_counts_for_the_file_that_declares_it() {
        let files = [
            ("lib.rs", "mod room;\n"),
            ("room/mod.rs", "mod a;\nmod b;\npub use a::A;\npub(crate) use b::{B};\n"),
            ("room/a.rs", "pub struct A;\n"),
            ("room/b.rs", "use super::A;\npub struct B(A);\n"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_module_that_works_with_its_children_which_work_with_it() {
        let files = [
            ("room/mod.rs", "mod a;\nuse a::A;\npub struct Room(A);\n"),
            ("room/a.rs", "use super::Room;\npub struct A(Box<Room>);\n"),
        ];
        assert_eq!(found(&files), [["room/a.rs", "room/mod.rs"]]);
    }

    #[test]
    fn comments_strings_and_tests_import_nothing() {
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            (
                "b.rs",
                "// crate::a::A\nconst X: &str = \"crate::a::A\";\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
            ("b/tests.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }
}
