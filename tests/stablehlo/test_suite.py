"""Tests of the runner of StableHLO's tests: `python3 -m unittest discover -s tests/stablehlo`."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

import command
import programs
import records
import report
import source

TWO_PARTS = """
// RUN: something %s
#map = affine_map<(d0) -> (d0)>
func.func private @declared(tensor<f32>) -> tensor<f32>
func.func @callee(%a: tensor<f32>) -> (tensor<f32> {x = "}"}) attributes {y = 1} { // }
  return %a : tensor<f32>
}
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @callee(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
func @caller() -> tensor<2xf32> {
  %0 = call @main() : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func @main() -> tensor<2xf32> { %0 = stablehlo.constant dense<1.0> : tensor<2xf32> return %0 : tensor<2xf32> }
"""

CHECKED = """
func.func @add() {
  %x = stablehlo.constant dense<[[1, 2],
                                 [3, 4]]> : tensor<2x2xi64>
  %shape = stablehlo.constant dense<[4]> : tensor<1xi64>
  %y = stablehlo.dynamic_reshape %x, %shape : (tensor<2x2xi64>, tensor<1xi64>) -> tensor<4xi64>
  %z = "stablehlo.custom"() ({
    %inner = stablehlo.constant dense<1> : tensor<i64>
    stablehlo.return %inner : tensor<i64>
  }) : () -> tensor<4xi64>
  check.expect_eq_const %y, dense<[1, 2,
                                   3, 4]> : tensor<4xi64>
  check.expect_almost_eq %y, %z#0, tolerance = 0.1 : tensor<4xi64>
  check.expect_close %y, %z, max_ulp_difference = 3 : tensor<4xi64>, tensor<4xi64>
  func.return
}
"""


class SourceTest(unittest.TestCase):
    def test_a_function_has_its_callees_alone(self):
        first, second = source.parts(TWO_PARTS)
        known = source.functions(first)
        self.assertEqual([function.name for function in known], ["callee", "main"])
        text = source.alone(first, known, known[1])
        self.assertIn("#map = affine_map", text)
        self.assertIn("func.func @main(%a: tensor<f32>)", text)
        self.assertIn("func.func private @callee(%a", text)
        self.assertNotIn("func.func", source.alone(first, known, known[0]).split("@main", 1)[1])
        known = source.functions(second)
        text = source.alone(second, known, known[0])
        self.assertIn("call @main.callee()", text)
        self.assertIn("func.func private @main.callee() -> tensor<2xf32>", text)

    def test_strings_and_arrows_are_no_brackets(self):
        text = '{a = "}" : (f32) -> f32, {}} rest'
        self.assertEqual(text[source.end_of_group(text, 0):], " rest")
        kind = "tensor<2x!f<(f32) -> f32>> rest"
        self.assertEqual(kind[source.end_of_type(kind, 0):], " rest")
        self.assertEqual(source.end_of_group("{ open", 0), -1)


class ProgramTest(unittest.TestCase):
    def test_checked_values_are_results(self):
        (program,) = programs.programs(CHECKED, "add.mlir")
        self.assertEqual(program.name, "add.mlir:0:add")
        kinds = ", ".join(["tensor<4xi64>"] * 5)
        self.assertIn(f"func.func @main() -> ({kinds}) {{", program.text)
        self.assertIn(f"return %y, %y, %z#0, %y, %z : {kinds}", program.text)
        self.assertNotIn("check.", program.text)
        self.assertEqual([check["kind"] for check in program.checks], ["eq", "almost_eq", "close"])
        self.assertEqual((program.checks[1]["tolerance"], program.checks[1]["expected"]), (0.1, 2))
        self.assertEqual(program.checks[2]["most"], 3)
        self.assertEqual(program.constants[0][1], "tensor<4xi64>")

    def test_constants_are_arguments_but_sizes_and_those_of_regions(self):
        (program,) = programs.programs(CHECKED, "add.mlir")
        self.assertEqual(len(program.arguments), 1)
        self.assertIn("@main(%x: tensor<2x2xi64>) -> (", program.text_of_arguments)
        for kept in ("%shape = ", "%inner = "):
            self.assertIn(kept, program.text_of_arguments)

    def test_programs_of_the_interpreter_alone_are_left_out(self):
        text = CHECKED.replace('"stablehlo.custom"', '"interpreter.run_parallel"')
        self.assertEqual(programs.programs(text, "x")[0].left_out, "several devices")

    def test_an_unknown_check_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no rule for check.expect_odd"):
            programs.programs(CHECKED.replace("expect_close", "expect_odd"), "x")


HAS_ARRAYS = all(map(importlib.util.find_spec, ("numpy", "ml_dtypes")))


@unittest.skipUnless(HAS_ARRAYS, "needs numpy and ml_dtypes")
class CheckTest(unittest.TestCase):
    def rejects(self, kind, actual, expected, dtype="float32", **fields):
        import arrays
        import numpy as np
        check = {"kind": kind, "tolerance": 1e-4, "most": 1, "least": 0} | fields
        return arrays.difference(check, np.array(actual, arrays.dtype(dtype)), np.array(expected, arrays.dtype(dtype)))

    def test_rules(self):
        nan, inf, step = float("nan"), float("inf"), 2.0**-23
        self.assertEqual(self.rejects("eq", [1, 2], [1, 3]), "element [1] is 2.0 instead of 3.0")
        self.assertTrue(self.rejects("eq", nan, nan))
        self.assertFalse(self.rejects("almost_eq", [nan, inf, 1], [nan, inf, 1.00005]))
        self.assertTrue(self.rejects("almost_eq", inf, 1e30))
        self.assertTrue(self.rejects("almost_eq", 1 + 2j, 1 + 2.1j, "complex64"))
        self.assertFalse(self.rejects("close", [1, nan, -0.0], [1 + step, nan, 0]))
        self.assertTrue(self.rejects("close", 1, 1 + 2 * step))
        self.assertTrue(self.rejects("close", 1, 1, least=1))
        self.assertFalse(self.rejects("close", 1, 1 + 2.0**-6, "bfloat16", most=2))
        self.assertTrue(self.rejects("close", inf, 1))

    def test_types_that_numpy_lacks_return_from_files(self):
        import arrays
        import numpy as np
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.npz"
            values = [np.array([[1, 2]], arrays.dtype(name)) for name in ("bfloat16", "int4", "float8_e4m3fn", "bool")]
            arrays.store(path, "out", values)
            again = arrays.load(path, "out", [value.dtype.name for value in values])
            for one, other in zip(values, again):
                self.assertEqual((one.dtype, one.tolist()), (other.dtype, other.tolist()))


class RecordTest(unittest.TestCase):
    def test_a_run_continues_with_the_command_of_before(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "part.jsonl")
            first = records.Records(path, "one", keep=True)
            first.add("a", "text", result="passed")
            with open(path, "a") as file:
                file.write('{"name": "cut')
            again = records.Records(path, "one", keep=True)
            self.assertEqual(again.find("a", "text")["result"], "passed")
            self.assertIsNone(again.find("a", "other text"))
            self.assertEqual(len(records.read(path)), 1)
            self.assertIsNone(records.Records(path, "two", keep=True).find("a", "text"))

    def test_the_share_decides(self):
        found = [{"name": str(number), "result": "accepted", "message": ""} for number in range(8)]
        found.append({"name": "size", "result": "sizes", "message": ""})
        found.append({"name": "no", "result": "refused", "message": "why"})
        found.append({"name": "theirs", "result": "not converted", "message": ""})
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertTrue(report.show("accepted", found, 90))
            self.assertFalse(report.show("accepted", found, 91))
            self.assertFalse(report.show("accepted", [], 0))
        self.assertIn("refused: no: why", printed.getvalue())
        self.assertRegex(printed.getvalue(), r"accepted functions +10 +9 +90.0 %")


class CommandTest(unittest.TestCase):
    def test_results(self):
        for script, expected in [
            ("exit 0", ("passed", "")),
            ("echo warning >&2; echo error: bad >&2; exit 1", ("refused", "error: bad")),
            ("echo \"thread 'main' panicked\" >&2; exit 1", ("crashed", "thread 'main' panicked")),
            ("kill -9 $$", ("crashed", "no message")),
            ("exec sleep 9", ("timed out", "more than 1 s")),
        ]:
            self.assertEqual(command.run(["sh", "-c", script], 1), expected)


if __name__ == "__main__":
    unittest.main()
