//! Sharding rules of single operations, compared with jaxlib's, and their text.

use xla_hlo::sdy::{RuleContext, ShardingRule};
use xla_hlo::text::parse_module;
use xla_hlo::{CompId, InstrId, Module, VerifiedModule};

/// One case of `rules.txt`.
pub struct Case {
    pub name: String,
    pub module: Module,
    directives: Vec<(String, String)>,
}

impl Case {
    /// Returns the entry computation and its root, the operation of the case.
    pub fn operation(&self) -> (CompId, InstrId) {
        let entry = self.module.entry_id();
        (entry, self.module[entry].root())
    }

    pub fn rule(&self) -> Option<ShardingRule> {
        let (entry, root) = self.operation();
        let cx = RuleContext::new(&self.module, entry, root);
        self.module[entry][root].op().sharding_rule(&cx).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the words of a directive.
    pub fn words(&self, directive: &str) -> Vec<&str> {
        self.text(directive).map_or(Vec::new(), |text| text.split_whitespace().collect())
    }

    fn text(&self, directive: &str) -> Option<&str> {
        self.directives.iter().find(|(name, _)| name == directive).map(|(_, text)| text.as_str())
    }

    /// Whether a directive names the factor.
    pub fn names(&self, directive: &str, factor: usize) -> bool {
        let symbol = char::from(b'i' + factor as u8).to_string();
        self.words(directive).contains(&symbol.as_str())
    }
}

/// Reads all cases.
pub fn cases() -> Vec<Case> {
    let blocks = include_str!("rules.txt").split("\ncase ").skip(1);
    blocks.map(|block| case(block, include_str!("prelude.hlo"))).collect()
}

fn case(block: &str, prelude: &str) -> Case {
    let mut lines = block.lines();
    let name = lines.next().unwrap_or_default().to_string();
    let (body, directives): (Vec<&str>, Vec<&str>) =
        lines.filter(|line| !line.is_empty()).partition(|line| line.contains(" = "));
    let text = format!("HloModule m\n{prelude}\nENTRY e {{\n{}\n}}\n", body.join("\n"));
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let module = VerifiedModule::new(module).unwrap_or_else(|error| panic!("{name}: {error}"));
    let directive = |line: &str| {
        let (name, text) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} is not a directive"));
        (name.to_string(), text.to_string())
    };
    Case { name, module: module.into_inner(), directives: directives.into_iter().map(directive).collect() }
}

#[test]
fn rules_are_the_expected_ones() {
    let mut wrong = Vec::new();
    for case in cases() {
        let rule = case.rule().map_or("none".to_string(), |rule| rule.to_string());
        let expected = case.text("rule").or(case.text("shardy")).unwrap_or("a missing line");
        if rule != expected {
            wrong.push(format!("{}: expected {expected}, found {rule}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn text_of_rules_reads_back_as_itself() {
    for case in cases() {
        let Some(rule) = case.rule() else { continue };
        let read = ShardingRule::parse(&format!("#sdy.op_sharding_rule{rule}"));
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        // Text does not say whether a rule is elementwise.
        assert_eq!(ShardingRule { is_elementwise: rule.is_elementwise, ..read }, rule, "{}", case.name);
    }
    for text in [
        "<([i, z], [z, z_1z_2])->([i, z_1z_2]) {i=8, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1, r=1, s=1, t=1, u=1, v=1, \
         w=1, x=1, y=1, z=16, z_1=4, z_2=2} reduction={z} need_replication={j} permutation={k} blocked_propagation={l}>",
        "<()->([])>",
    ] {
        assert_eq!(ShardingRule::parse(text).expect(text).to_string(), text);
    }
    let custom = "#sdy.op_sharding_rule<([i])->([i]) {i=8}, custom>";
    assert_eq!(ShardingRule::parse(custom).expect(custom).to_string(), "<([i])->([i]) {i=8}>");
}

#[test]
fn wrong_text_of_rules_is_refused() {
    for (text, message) in [
        ("<([i])->([j]) {i=8}>", "factor j"),
        ("<([i])->([i]) {i=8, i=4}>", "is defined twice"),
        ("<([i])->([i]) {i=8} reduction={k}>", "factor k"),
        ("<([i])([i]) {i=8}>", "expected `->`"),
        ("<([i])->([i]) {i=8} x>", "expected `>`"),
    ] {
        let error = ShardingRule::parse(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn stated_rules_of_custom_calls_must_fit() {
    let rule_of = |rule: &str| {
        let text = format!(
            "HloModule m\nENTRY e {{\n a = f32[4,6] parameter(0)\n ROOT r = f32[4] custom-call(a), \
             custom_call_target=\"f\", frontend_attributes={{xla.sdy.sharding_rule=\"#sdy.op_sharding_rule{rule}\"}}\n}}"
        );
        let module = parse_module(&text).expect("a module");
        let (entry, root) = (module.entry_id(), module[module.entry_id()].root());
        module[entry][root].op().sharding_rule(&RuleContext::new(&module, entry, root))
    };
    let rule = "<([i, j])->([i]) {i=4, j=6} need_replication={j}>";
    assert_eq!(rule_of(rule).expect("a rule").expect("a rule").to_string(), rule);
    // A dimension may be larger than its factor.
    let rule = "<([i, j])->([i]) {i=4, j=3}>";
    assert_eq!(rule_of(rule).expect("a rule").expect("a rule").to_string(), rule);
    for (rule, message) in [
        ("<([i])->([i]) {i=4}>", "does not have the ranks of its operands and results"),
        ("<([i, j], [i])->() {i=4, j=6}>", "does not have the ranks of its operands and results"),
        ("<([i, ])->([i]) {i=4}>", "has no factor for a dimension of size 6"),
        ("<([i, i])->([i]) {i=4}>", "uses a factor twice in one array"),
        ("<([i, jj])->([i]) {i=4, j=6}>", "uses a factor twice in one array"),
        ("<([i, jk])->([i]) {i=4, j=2, k=2}>", "has factors whose product is not 6, the dimension's size"),
        (
            "<([i, jk])->([i]) {i=4, j=9223372036854775807, k=9223372036854775807}>",
            "has factors whose product is not 6, the dimension's size",
        ),
    ] {
        let error = rule_of(rule).expect_err(rule).to_string();
        assert!(error.contains(&format!("the sharding rule {rule} of %r {message}")), "{rule}: {error}");
    }
}

#[test]
fn calls_with_other_arrays_than_their_target_has_share_no_factors() {
    for (instruction, rule) in [
        (
            "f32[4,6] custom-call(a, b), custom_call_target=\"Cholesky\"",
            "<([i, j], [k])->([l, m]) {i=1, j=1, k=1, l=1, m=1}>",
        ),
        ("f32[4,6] custom-call(), custom_call_target=\"Cholesky\"", "<()->([i, j]) {i=4, j=6}>"),
        ("f32[] custom-call(), custom_call_target=\"Eigh\"", "<()->([])>"),
        ("f32[4,6] custom-call(a), custom_call_target=\"Eigh\"", "<([i, j])->([k, l]) {i=1, j=1, k=1, l=1}>"),
        ("f32[4] custom-call(a), custom_call_target=\"Qr\"", "<([i, j])->([k]) {i=1, j=1, k=1}>"),
        (
            "f32[6] custom-call(a), custom_call_target=\"ProductOfElementaryHouseholderReflectors\"",
            "<([i, j])->([k]) {i=1, j=1, k=1}>",
        ),
        ("f32[4] custom-call(), custom_call_target=\"TopK\"", "<()->([i]) {i=1}>"),
        (
            "f32[4,6] custom-call(a, b), custom_call_target=\"ApproxTopK\"",
            "<([i, j], [k])->([l, m]) {i=1, j=1, k=1, l=1, m=1}>",
        ),
        ("f32[4] custom-call(), custom_call_target=\"f\", frontend_attributes={num_batch_dims=\"1\"}", "none"),
        (
            "f32[4,6] custom-call(a, b), custom_call_target=\"Sharding\"",
            "<([i, j], [k])->([l, m]) {i=1, j=1, k=1, l=1, m=1}>",
        ),
        ("f32[4,6] all-to-all(t), dimensions={0}", "<([i, j], [k])->([l, m]) {i=1, j=1, k=1, l=1, m=1}>"),
    ] {
        let text = format!(
            "HloModule m\nENTRY e {{\n a = f32[4,6] parameter(0)\n b = f32[6] parameter(1)\n \
             t = (f32[4,6], f32[6]) tuple(a, b)\n ROOT r = {instruction}\n}}"
        );
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let (entry, root) = (module.entry_id(), module[module.entry_id()].root());
        let found = module[entry][root].op().sharding_rule(&RuleContext::new(&module, entry, root)).expect(instruction);
        assert_eq!(found.map_or("none".to_string(), |rule| rule.to_string()), rule, "{instruction}");
    }
}
