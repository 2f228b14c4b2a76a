//! Tests of views of modules: the graph for Graphviz, and the data of the HTML page.

use serde_json::Value;
use xla_hlo::Module;
use xla_hlo::text::parse_module;
use xla_passes::view;

const TEXT: &str = include_str!("programs/view.hlo");

fn module() -> Module {
    parse_module(TEXT).expect("the test's module")
}

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script id=\"data\" type=\"application/json\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").expect("an end").0).expect("JSON")
}

#[test]
fn computations_and_fusions_are_clusters() {
    insta::assert_snapshot!(view::dot(&module()));
}

#[test]
fn the_page_has_every_computation() {
    let page = view::html(&module());
    let data = data(&page);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().expect("a list").iter().map(|c| c["name"].as_str().expect("a name").to_string()).collect()
    };
    let computations = &data["computations"];
    assert_eq!(names(computations), ["main", "kernel", "add", "condition", "body"]);
    // Scalar constants are shown in their users.
    assert_eq!(names(&computations[0]["nodes"]), ["%x", "%fusion", "%total", "%start", "%loop", "%out"]);
    assert_eq!(computations[0]["nodes"][2]["what"], "reduce(_, 0) f32[8]");
    assert_eq!(computations[1]["nodes"][1]["what"], "broadcast(0.5) f32[8,16]");
    assert_eq!(computations[0]["nodes"][1]["cost"]["transcendentals"], 128);
    assert_eq!(computations[0]["nodes"][4]["calls"], serde_json::json!([3, 4]));
    assert!(computations[0]["nodes"][4]["text"].as_str().expect("text").contains("op_name=\"</script><b>\""));
}

#[test]
fn the_page_is_whole_in_itself() {
    let page = view::html(&module());
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(
        !page.contains("http://") && !page.contains("https://") && !page.contains("src=") && !page.contains("<!--")
    );
    // No text of the program ends the script or begins an element.
    assert_eq!((page.matches("</script>").count(), page.matches("<b>").count()), (2, 0));
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn computations_that_are_called_twice_are_drawn_once() {
    let text = TEXT.replace(
        "zero = f32[] constant(0)",
        "zero = f32[] constant(0)\n  again = f32[8,16] call(x), to_apply=kernel\n  more = f32[8,16] call(again), to_apply=kernel",
    );
    let module = parse_module(&text).expect("the test's module");
    let dot = view::dot(&module);
    // Once for the fusion, whose computation has no other caller, and once for both calls.
    assert_eq!(dot.matches("label=\"%e\\nexponential f32[8,16]\"").count(), 2, "{dot}");
    assert!(dot.contains("label=\"%again\\ncall f32[8,16]\""), "{dot}");
}
