//! Tests of `xla bench`.

use serde_json::Value;

use crate::support::Folder;

const BENCH: &str = "bench module.hlo --platform interpreter --min-seconds 0.01";

#[test]
fn json_has_every_field() {
    let folder = Folder::new();
    let done = folder.xla(&format!("{BENCH} --json --threads 1 --inputs-seed 0"));
    assert_eq!((done.code, done.err.as_str(), done.out.lines().count()), (0, "", 1));
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["name"], "module");
    assert!(json["impl"].as_str().unwrap().contains("interpreter"));
    for field in [
        "compile_ms",
        "compile_first_ms",
        "parse_ms",
        "run_us",
        "run_p10_us",
        "run_p90_us",
        "run_min_us",
        "peak_rss_mb",
        "rss_start_mb",
        "peak_over_start_mb",
        "peak_rss_compile_mb",
        "peak_rss_run_mb",
    ] {
        assert!(json[field].as_f64().unwrap() >= 0.0, "{field}: {json}");
    }
    assert_eq!(json["threads"], 1);
    assert!(json["reps"].as_u64().unwrap() >= 7 && json["process_threads"].as_u64().unwrap() >= 1);
    assert!(json["temp_bytes"].is_u64() && json["compile_all_ms"].as_array().unwrap().len() == 3);
    let ordered = ["run_min_us", "run_p10_us", "run_us", "run_p90_us"].map(|field| json[field].as_f64().unwrap());
    assert!(ordered.is_sorted() && ordered[0] > 0.0, "{json}");

    let outputs = json["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), 2);
    let number = |field: &str| outputs[1][field].as_f64().unwrap();
    assert!(number("abs_sum") > number("sum").abs() && number("wsum").abs() < 0.1 && number("nonfinite") == 0.0);
}

#[test]
fn repetitions_and_compiles_are_counted() {
    let folder = Folder::new();
    let done = folder.xla(&format!("{BENCH} --json --reps 9 --compiles 2"));
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((json["reps"].as_u64(), json["compile_all_ms"].as_array().unwrap().len()), (Some(9), 2));
}

#[test]
fn people_get_a_table() {
    let done = Folder::new().xla(&format!("{BENCH} --compiles 1 --reps 7"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let rows: Vec<&str> = done.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["module,", "parse", "compile", "run", "memory", "output", "output"]);
}

#[test]
fn a_profile_names_kernels_and_library_calls_with_their_rates() {
    let folder = Folder::new();
    folder.write(
        "product.hlo",
        "HloModule m\n\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT c = pred[] compare(a, b), direction=LT\n}\n\nENTRY e {\n  a = f32[64,64] parameter(0)\n  \
         d = f32[64,64] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  \
         s = f32[64,64] sort(d), dimensions={1}, to_apply=less\n  ROOT t = f32[64,64] tanh(s)\n}\n",
    );
    let done = folder.xla("bench product.hlo --platform cpu --compiles 1 --reps 7 --json --profile --cache-dir none");
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["profile"]["runs"], 7);
    let thunks = json["profile"]["thunks"].as_array().unwrap();
    let of = |name: &str| thunks.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {json}"));
    assert!(of("d")["flops"].as_f64().unwrap() > 0.0 && of("d")["bytes"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&of("d")["count"], &of("d")["kind"], &of("s")["kind"], &of("t")["kind"]),
        (&1.0.into(), &"library call: matmul".into(), &"kernel".into(), &"kernel".into())
    );
    let trace = folder.xla("run product.hlo --platform cpu --inputs-seed 0 --trace trace.json");
    assert_eq!(trace.code, 0);
    assert!(
        std::fs::read_to_string(folder.path("trace.json"))
            .unwrap()
            .contains("\"kind\":\"library call: matmul\",\"name\":\"d\"")
    );
}

#[test]
fn device_time_is_beside_the_latency() {
    let folder = Folder::new();
    let done = folder.xla(&format!("{BENCH} --json --device-time --compiles 1 --reps 3"));
    let json: Value = serde_json::from_str(&done.out).unwrap();
    let time = &json["device_time"];
    let ordered = ["device_min_us", "device_p10_us", "device_us", "device_p90_us"].map(|f| time[f].as_f64().unwrap());
    assert!(ordered.is_sorted() && ordered[0] > 0.0 && time["queued_us"].as_f64().unwrap() > 0.0, "{json}");
    assert!(time["runs"].as_u64().unwrap() >= 2 && time["queued_calls"].as_u64().unwrap() >= 3, "{json}");
    assert_eq!((&time["rounds"], &time["recorded"]), (&3.into(), &false.into()));
    assert_eq!(time["reason"], "the platform cannot record programs");
    let done = folder.xla(&format!("{BENCH} --device-time --compiles 1 --reps 3"));
    let rows: Vec<&str> = done.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(rows, ["module,", "parse", "compile", "run", "device", "no", "queued", "memory", "output", "output"]);
    let emulated = folder.xla("bench module.hlo --platform gpu-emulated --device-time --reps 1 --compiles 1");
    assert_eq!(emulated.code, 1);
    assert!(emulated.err.contains("platform gpu-emulated cannot measure how long work takes on its devices"));
}

#[test]
fn failures_are_a_line_of_json_too() {
    let folder = Folder::new();
    folder.write("bad.hlo", "HloModule m\nENTRY %e {\n");
    let done = folder.xla("bench bad.hlo --platform interpreter --json");
    assert_eq!(done.code, 2);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert!(json["error"].as_str().unwrap().starts_with("bad.hlo: ") && json.as_object().unwrap().len() == 1);
    assert!(done.err.starts_with("error: bad.hlo: "));
}

#[test]
fn an_input_that_must_be_given_away_is_made_anew() {
    let folder = Folder::new();
    let header = "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }";
    folder.write(
        "module.hlo",
        format!("{header}\n\nENTRY %e {{\n  %x = f32[4]{{0}} parameter(0)\n  ROOT %y = f32[4]{{0}} add(%x, %x)\n}}\n"),
    );
    let done = folder.xla(&format!("{BENCH} --compiles 1 --reps 7 --json"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(folder.xla("run module.hlo --platform interpreter --inputs-seed 0").code, 0);
}
