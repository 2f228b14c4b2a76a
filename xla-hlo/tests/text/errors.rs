//! Tests of malformed text: every error contains its location and the expected token, and nothing panics, hangs or
//! exhausts memory.

use xla_hlo::text::{parse_literal, parse_module, parse_shape};
use xla_hlo::{Error, Module, Result};

/// Returns a module with one instruction under test; `a`, `b` are `f32[2,3]`, `i` is `s32[]`.
fn with(line: &str) -> String {
    format!(
        "HloModule m\n\nsum {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}}\n\n\
         ENTRY main {{\n  a = f32[2,3] parameter(0)\n  b = f32[2,3] parameter(1)\n  i = s32[] parameter(2)\n  {line}\n}}\n"
    )
}

fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("wrong text was accepted"),
        Err(Error::Internal(why)) => panic!("a bug was found: {why}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages() {
    let lines = [
        "r = f32[2,3] ad(a, b)",
        "r = f32[2,3] shuffle(a, b)",
        "r = f32[2,3] add-start(a, b)",
        "r = f32[2,3] add(a)",
        "r = f32[2,3] add(a, c)",
        "r = f32[2,3] add(a, f32[3,2] b)",
        "r = f32[2,3] add(a, b), dimensions={0}",
        "r = f32[2,3] add(a, b), metadata={op_name=\"x\"}, metadata={op_name=\"y\"}",
        "r = f32[2,3] add(a, b), metadata={op_nam=\"x\"}",
        "a = f32[2,3] add(a, b)",
        "r=f32[2,3] add(a, b)",
        "r = f32[2,3] add(a, b",
        "r = f32[2,3] add(a b)",
        "r = f32[2,x] add(a, b)",
        "r = f32[2,3]{1,1} add(a, b)",
        "r = f32[2,3]{1,0:X(2)} add(a, b)",
        "r = f33[2,3] add(a, b)",
        "r = f32[2,3] transpose(a)",
        "r = f32[3,2] transpose(a), dimension={1,0}",
        "r = f32[3,2] transpose(a), dimensions={1,-1}",
        "r = f32[3,2] transpose(a), dimensions=1",
        "r = f32[3,2] transpose(a), dimensions={1,0}, dimensions={1,0}",
        "r = f32[3,2] transpose(a), dimensions={1,0",
        "r = f32[2] reduce(a, i), dimensions={1}, to_apply=sun",
        "r = f32[2] reduce(a, i), dimensions={1}, to_apply={ p = f32[] parameter(0) ROOT q = f32[] ad(p, p) }",
        "r = pred[2,3] compare(a, b), direction=LESS",
        "r = f32[2,3] pad(a, i), padding=0_1xq",
        "r = f32[2,3] reduce-window(a, i), window={stride=2}, to_apply=sum",
        "r = f32[2,3] reduce-window(a, i), window={size=2x2 stride=2}, to_apply=sum",
        "r = f32[2,3] add(a, b), sharding={devices=[2,2]0,1,2}",
        "r = f32[2,3] add(a, b), sharding={all}",
        "r = f32[2,3] add(a, b), control-predecessors={c}",
        "r = f32[2] concatenate(a, b), dimensions={0,1}",
        "r = f32[2] constant({1, 2, 3})",
        "r = f32[2] constant({1})",
        "r = f32[2,2] constant({1, 2})",
        "r = f32[2] constant({{1, 2}})",
        "r = f32[2] constant({1, x})",
        "r = s8[2] constant({1, 128})",
        "r = u8[] constant(-1)",
        "r = s64[] constant(18446744073709551616)",
        "r = f32[] constant(1e39)",
        "r = f32[] constant(nan(0x0))",
        "r = f8e4m3fn[] constant(inf)",
        "r = pred[] constant(2)",
        "r = c64[] constant(1)",
        "r = constant(1)",
        "r = token[] constant(1)",
        "r = f32[2,3] parameter(x)",
        "r = reshape(a)",
        "r = add(a, i)",
        "r = f32[1000000000,1000000000,1000000000] broadcast(i), dimensions={}",
        "r = f32[100000,100000] constant(1)",
        "r = f32[2,3] add(a, b) /* never ends",
        "r = f32[2,3] add(a, b), backend_config=\"never ends",
        "r = f32[2,3] add(a, b), backend_config={\"never\": \"ends",
        "r = f32[2,3] add(a, b), metadata={op_name=\"a\\xff\"}",
        "r = f32[2,3] add(a, b), backend_config=\"\\q\"",
        "r = f32[2,3] add(a, $)",
        "ROOT r = f32[2,3] add(a, b) ROOT s = f32[2,3] add(a, b)",
        "ä = f32[2,3] add(a, b)",
    ];
    let report: Vec<String> = lines.iter().map(|line| message(parse_module(&with(line)))).collect();
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn messages_about_modules() {
    let texts = [
        "",
        "HloModule",
        "HloModule m",
        "HloModule m, is_scheduled=yes",
        "HloModule m, is_sheduled=true",
        "HloModule m, is_scheduled=true, is_scheduled=true\nmain { a = f32[] parameter(0) }",
        "HloModule m, entry_computation_layout={(f32[2]{0}->f32[]}",
        "HloModule m, input_output_alias={ {0}: 1 }",
        "HloModule m\nFileNames\n1 \"a\"\n3 \"b\"",
        "HloModule m\nFileLocations\n1 {file=1}",
        "HloModule m\nmain {}",
        "HloModule m\nmain { a = f32[] parameter(0) }\nmain { a = f32[] parameter(0) }",
        "HloModule m\nENTRY main { a = f32[] parameter(0) }\nENTRY other { a = f32[] parameter(0) }",
        "HloModule m\nmain (a: f32[]) -> f32[2] { a = f32[] parameter(0) }",
        "HloModule m\nmain { a = f32[] parameter(0) }, thread=\"x\"",
        "HloModule m\nmain { a = f32[] parameter(0) } }",
        "add(x, y)",
        "f32[2] add(f32[2] x, f32[2] y) z",
        "ENTRY main",
    ];
    let report: Vec<String> = texts.iter().map(|text| format!("{text:?}\n{}", message(parse_module(text)))).collect();
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn shapes_and_literals_alone() {
    let mut report = Vec::new();
    for text in
        ["", "f32", "f32[2", "f32[-1]", "f32[2]{0} x", "(f32[], ", "f32[<=]", "b(token[])", "f32[4]{0:P(f32[4])}"]
    {
        report.push(format!("{text:?}\n{}", message(parse_shape(text))));
    }
    for text in ["", "f32[2]", "f32[2] {1}", "(s32[] 1", "1", "f32[] 1 2", "f32[2]{0} {...,1}"] {
        report.push(format!("{text:?}\n{}", message(parse_literal(text))));
    }
    insta::assert_snapshot!(report.join("\n\n"));
}

/// A long line is cut around the caret.
#[test]
fn long_lines_are_cut() {
    let text = format!("ROOT r = f32[] constant({}x{})", " ".repeat(300), " ".repeat(300));
    insta::assert_snapshot!(message(parse_module(&format!("HloModule m main {{ {text} }}"))));
}

/// Long names, numbers and strings are truncated in messages.
#[test]
fn citations_are_short() {
    let long = "9".repeat(100_000);
    for line in [
        format!("r = s32[] constant({long})"),
        format!("r = f32[] constant({long}.5)"),
        format!("r = f32[2,3] a{long}(a, b)"),
        format!("r = f32[2,3] add(a, b{long})"),
        format!("r = f32[2,3] add(a, b), c{long}=1"),
        format!("r = f32[2,3] add(a, \"{long}\")"),
        format!("r = f32[2] reduce(a, i), dimensions={{1}}, to_apply=c{long}"),
        format!("r = f32[2,3]{{1,0}} transpose(a), dimensions={{{long}}}"),
    ] {
        let message = message(parse_module(&with(&line)));
        assert!(message.len() < 1000, "{message}");
    }
}

const SMALL: &str = r#"HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}, input_output_alias={ {}: (0, {}, may-alias) }

FileNames
1 "a.py"

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

/* the entry */
ENTRY %main (a: f32[2,3]) -> f32[2] {
  %a = f32[2,3]{1,0:T(2,128)} parameter(0), sharding={devices=[2,1]<=[2] metadata={op_name="a"}}
  %c = f32[2]{0} constant({nan(0x1), -1e-3})
  %w = f32[2,3]{1,0} reduce-window(%a, f32[] constant(0)), window={size=1x2 pad=0_0x0_1}, to_apply=%sum
  %r = f32[2]{0} reduce(%w, f32[] constant(0)), dimensions={1}, to_apply={ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }
  ROOT %t = f32[2]{0} add(%r, /*index=1*/%c), control-predecessors={%w}, metadata={op_name="n" source_line=3}, backend_config={"a": "}"}
}
"#;

#[test]
fn truncated_anywhere() {
    let whole = parse_module(SMALL).expect("the text is right");
    assert_eq!(whole.instruction_count(), 13);
    let complete = SMALL.trim_end().len();
    let accepted = (0..complete).map(|end| &SMALL[..end]).filter(|text| parse_module(text).is_ok());
    // A text cut between computations is a module of the previous ones.
    for text in accepted {
        assert!(text.trim_end().ends_with("\n}") || text.trim_end().ends_with("*/"), "accepted {text}");
    }
}

/// Replacing or deleting any byte results in a module or an error, but no panic.
#[test]
fn garbled_anywhere() {
    let bytes = SMALL.as_bytes();
    let accepted = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| parse_module(text).is_ok());
    let mut refused = 0;
    for at in 0..bytes.len() {
        for replacement in b"{}()[],:=-9\"'x%*?\n" {
            let mut garbled = bytes.to_vec();
            garbled[at] = *replacement;
            refused += usize::from(!accepted(&garbled));
        }
        let mut shortened = bytes.to_vec();
        shortened.remove(at);
        refused += usize::from(!accepted(&shortened));
    }
    assert!(refused > bytes.len() * 10, "only {refused} of the garbled texts were refused");
}

/// Runs a function on a stack of the default size of threads.
fn on_a_small_stack<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 << 20).spawn(f).expect("a thread").join().expect("no overflow")
}

#[test]
fn nesting_is_limited() {
    on_a_small_stack(|| {
        let deep =
            |open: &str, middle: &str, close: &str, n: usize| format!("{}{middle}{}", open.repeat(n), close.repeat(n));
        for n in [199, 8192, 1_000_000] {
            let texts = [
                (deep("(", "f32[]", ")", n), true),
                (with(&format!("r = {} parameter(3)", deep("(", "f32[]", ")", n))), false),
                (with(&format!("r = f32[2,3] {}", deep("negate(f32[2,3] ", "copy(a)", ")", n.min(100_000)))), false),
                (
                    with(&format!(
                        "r = f32[] {}",
                        deep(
                            "map(i), to_apply={ i = s32[] parameter(0) ROOT r = f32[] ",
                            "negate(i)",
                            "}",
                            n.min(100_000)
                        )
                    )),
                    false,
                ),
            ];
            for (text, is_shape) in texts {
                let result = if is_shape { parse_shape(&text).map(drop) } else { parse_module(&text).map(drop) };
                if n > 200 {
                    let message = message(result);
                    assert!(message.contains("levels deep"), "{message}");
                } else {
                    result.unwrap_or_else(|e| panic!("{e}"));
                }
            }
            // Braces in attributes and literals do not recurse.
            for value in [deep("{", "", "}", n), deep("[", "", "]", n)] {
                message(parse_module(&with(&format!("r = f32[2,3] transpose(a), dimensions={value}"))));
                message(parse_module(&with(&format!("r = f32[2,3] constant({value})"))));
            }
        }
    });
}

/// The module of the deepest accepted text can be printed, copied and dropped.
#[test]
fn the_deepest_module_is_safe() {
    on_a_small_stack(|| {
        let shape = format!("{}f32[]{}", "(".repeat(198), ")".repeat(198));
        let text = with(&format!("r = {shape} parameter(3)"));
        let module: Module = parse_module(&text).expect("the depth is allowed");
        let again = parse_module(&module.clone().to_string()).expect("printed text parses");
        assert_eq!(module.to_string(), again.to_string());
    });
}

/// Sizes in text allocate no memory beyond the size of the text.
#[test]
fn sizes_are_not_trusted() {
    for line in [
        "r = f32[1000000000000000000] parameter(3)",
        "r = f32[4611686018427387904,4] parameter(3)",
        "r = (f32[], s8[9223372036854775807,3]) parameter(3)",
        "r = f32[10000000000] constant({1, 2})",
        "r = f64[9223372036854775807] constant({...})",
    ] {
        message(parse_module(&with(line)));
    }
    // An empty array with a large dimension: nothing to store and nothing to print.
    let module = parse_module(&with("r = f32[1000000000000,0] constant({...})")).expect("the array is empty");
    assert!(module.to_string().contains("constant({...})"));
}

/// A long text is parsed in linear time: twenty times the text takes about twenty times as long, far below a timeout.
#[test]
fn long_texts_are_read_in_linear_time() {
    let n = 200_000;
    let chain: String = (0..n).map(|i| format!("  c{} = f32[] negate(c{i})\n", i + 1)).collect();
    let texts = [
        format!("HloModule m\nmain {{ c0 = f32[] parameter(0)\n{chain} }}"),
        with(&format!("r = f32[{n}] constant({{{}}})", "1.5, ".repeat(n))),
        with(&format!("r = f32[2,3] add(a, b), control-predecessors={{{}}}", vec!["a"; n].join(","))),
        with(&format!("r = f32[2,3] add(a, b) {}", "/* */".repeat(n))),
        with(&format!("r = f32[2,3] add(a, b), backend_config=\"{}\"", "\\n".repeat(n))),
    ];
    for text in texts {
        parse_module(&text).unwrap_or_else(|e| panic!("{e}"));
    }
}
