#!/usr/bin/env python3
"""`cobble plan` and `cobble pebble` from outside: JSON names, the model's numbers, small fast memories, plots.

Usage: pebble_program_test.py PROGRAM
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def cobble(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class CommandTest(unittest.TestCase):
    def json_of(self, *arguments):
        result = cobble(*arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def assert_fails(self, arguments, status, *expected):
        result = cobble(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for text in expected:
            self.assertIn(text, result.stderr)


class PlanTest(CommandTest):
    def test_json_names(self):
        document = self.json_of("plan", "window(300,20,2)", "--head-dim", 16, "--value-dim", 8, "--heads", 4,
                                "--kv-heads", 2, "--batch", 3, "--dtype", "f64", "--threads", 2, "--fast-memory", 65536)
        names = {
            "pattern": {"rows", "columns", "pairs", "density"},
            "plan": {"schedule", "regime", "split_point", "fast_memory", "row_panel", "column_panel", "feature_chunk",
                     "workspace_bytes", "ms"},
            "forward": {"theorem_bound", "compulsory", "bound", "binding"},
            "backward": {"theorem_bound", "compulsory", "bound", "binding"},
        }
        for group, members in names.items():
            self.assertLessEqual(members, set(document[group]), group)
        self.assertEqual(document["problem"], {"batch": 3, "heads": 4, "kv_heads": 2, "head_dim": 16, "value_dim": 8,
                                               "dtype": "f64", "threads": 2})
        self.assertEqual(document["plan"]["fast_memory"], 65536 // 8)
        for candidate in document["candidates"]:
            self.assertLessEqual({"name", "schedule", "row_panel", "column_panel", "feature_chunk", "forward_words",
                                  "backward_words", "forward_formula_words", "backward_formula_words", "estimated_ms",
                                  "chosen"}, set(candidate))

    def test_compulsory_traffic_reads_shared_keys_once(self):
        for heads, kv_heads in ((4, 4), (4, 2), (4, 1)):
            document = self.json_of("plan", "causal(100)", "--head-dim", 8, "--heads", heads, "--kv-heads", kv_heads)
            queries, keys = 100 * heads, 100 * kv_heads
            self.assertEqual(document["forward"]["compulsory"], queries * (8 + 8 + 1) + keys * (8 + 8))
            self.assertEqual(document["backward"]["compulsory"], queries * (4 * 8 + 1) + keys * 4 * 8)

    def test_exactly_one_candidate_is_chosen_and_it_is_the_best(self):
        for sizes, cost in (("hardware", lambda c: c["estimated_ms"]),
                            ("model", lambda c: c["forward_words"] + c["backward_words"])):
            for expression in ("causal(300)", "window(2000,30,30)", "random(500,10)"):
                with self.subTest(expression, sizes=sizes):
                    document = self.json_of("plan", expression, "--tile-sizes", sizes, "--fast-memory", 16384)
                    (chosen,) = (c for c in document["candidates"] if c["chosen"])
                    self.assertEqual(cost(chosen), min(map(cost, document["candidates"])))
                    self.assertEqual(chosen["schedule"], document["plan"]["schedule"])

    def test_the_regime_decides_between_the_model_s_schedules(self):
        # full(256), d = 16: M* = 256 words
        for words, schedule, regime in ((255, "materialize", "small_fast_memory"),
                                        (256, "recompute", "large_fast_memory")):
            plan = self.json_of("plan", "full(256)", "--head-dim", 16, "--tile-sizes", "model", "--fast-memory",
                                4 * words)["plan"]
            self.assertEqual((plan["schedule"], plan["regime"], plan["split_point"]), (schedule, regime, 256))

    def test_overrides(self):
        document = self.json_of("plan", "causal(300)", "--schedule", "recompute", "--backward-passes", "two")
        for candidate in document["candidates"]:
            self.assertEqual((candidate["schedule"], candidate["backward_passes"]), ("recompute", "two"))
        self.assertIn("asked for", document["plan"]["reason"])
        document = self.json_of("plan", "causal(300)", "--schedule", "materialize")
        self.assertEqual(document["plan"]["schedule"], "materialize")

    def test_report_for_people(self):
        result = cobble("plan", "window(2000,30,30)")
        self.assertEqual(result.returncode, 0, result.stderr)
        for text in ("window(2000,30,30)", "split point", "binds", "chosen", "candidates", "workspace"):
            self.assertIn(text, result.stdout)

    def test_faults(self):
        self.assert_fails(["plan", "full(4)", "--schedule", "best"], 2, "best")
        self.assert_fails(["plan", "full(4)", "--tile-sizes", "1"], 2)
        self.assert_fails(["plan", "full(4)", "--heads", "3", "--kv-heads", "2"], 1, "3", "2")
        self.assert_fails(["plan", "full(99)", "--schedule", "recompute", "--fast-memory", "256", "--tile-sizes",
                           "model"], 1, "64 words")

    def test_an_empty_pattern(self):
        document = self.json_of("plan", "!full(10)")
        self.assertIsNone(document["plan"]["split_point"])  # infinite


class PebbleTest(CommandTest):
    def cases_of(self, *arguments):
        cases = self.json_of("pebble", *arguments)["cases"]
        return {(case["schedule"], case["pass"], case["fast_memory"]): case for case in cases}

    def test_json_names_and_sums(self):
        cases = self.cases_of("random(128,8)", "--head-dim", 16, "--fast-memory", "2^8..2^10,5000")
        self.assertEqual(set(cases), {(schedule, name, words) for schedule in ("recompute", "materialize")
                                      for name in ("forward", "backward") for words in (256, 512, 1024, 5000)})
        for (schedule, _, words), case in cases.items():
            self.assertLessEqual({"schedule", "pass", "fast_memory", "split_point", "loads", "stores", "counted",
                                  "theorem_bound", "compulsory", "bound", "peak_resident", "index_words", "ratio",
                                  "regime_pick", "feasible"}, set(case))
            self.assertTrue(case["feasible"])
            self.assertEqual(case["counted"], case["loads"] + case["stores"])
            self.assertEqual(case["bound"], max(case["theorem_bound"], case["compulsory"]))
            self.assertAlmostEqual(case["ratio"], case["counted"] / case["bound"])
            self.assertGreaterEqual(case["ratio"], 1)
            self.assertLessEqual(case["peak_resident"], words)
            self.assertEqual(case["split_point"], (128 * 16) ** 2 / (128 * 8))
            self.assertEqual(case["regime_pick"], (schedule == "recompute") == (words >= case["split_point"]))

    def test_bounds_of_both_regimes(self):
        cases = self.cases_of("full(64)", "--head-dim", 16, "--fast-memory", "128,1024")  # M* = 256
        self.assertAlmostEqual(cases["materialize", "forward", 128]["theorem_bound"], 64 * 16 * 64 / math.sqrt(128))
        self.assertAlmostEqual(cases["recompute", "forward", 1024]["theorem_bound"], (64 * 16) ** 2 / 1024)
        self.assertEqual(cases["recompute", "forward", 1024]["compulsory"], 64 * (4 * 16 + 1))
        self.assertEqual(cases["recompute", "backward", 1024]["compulsory"], 64 * (8 * 16 + 1))

    def test_what_fits_entirely_moves_no_more_than_it_must(self):
        cases = self.cases_of("full(32)", "--head-dim", 8, "--fast-memory", 2**16)
        case = cases["recompute", "forward", 2**16]
        self.assertEqual(case["counted"], case["compulsory"])

    def test_too_small_a_fast_memory_is_listed_as_infeasible(self):
        cases = self.cases_of("causal(40)", "--head-dim", 32, "--fast-memory", "1,63,64")
        self.assertEqual({key: case["feasible"] for key, case in cases.items()},
                         {key: key[0] == "materialize" and key[2] == 64 for key in cases})
        self.assertNotIn("counted", cases["recompute", "forward", 1])
        result = cobble("pebble", "causal(40)", "--head-dim", 32, "--fast-memory", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no tile fits", result.stdout)

    def test_a_plan_predicts_what_is_counted(self):
        words = 2000
        for expression in ("window(300,20,5)", "bigbird(256,16,3,1,2)", "random(200,9)", "full(100)"):
            for schedule in ("recompute", "materialize"):
                with self.subTest(expression, schedule=schedule):
                    plan = self.json_of("plan", expression, "--head-dim", 16, "--schedule", schedule, "--tile-sizes",
                                        "model", "--fast-memory", 4 * words)
                    (chosen,) = (c for c in plan["candidates"] if c["chosen"])
                    cases = self.cases_of(expression, "--head-dim", 16, "--schedule", schedule, "--fast-memory", words)
                    for name in ("forward", "backward"):
                        self.assertEqual(chosen[f"{name}_words"], cases[schedule, name, words]["counted"])

    def test_plans_of_compressed_inputs_are_what_the_machine_counts(self):
        sizes = ["--head-dim", 64, "--value-dim", 16, "--features", 8]
        for words in (512, 8192):
            plan = self.json_of("plan", "random(512,32)", *sizes, "--fast-memory", 4 * words, "--tile-sizes", "model")
            self.assertEqual((plan["problem"]["head_dim"], plan["problem"]["features"]), (64, 8))
            self.assertEqual(plan["problem"]["feature_storage"], "csr")
            pebble = self.json_of("pebble", "random(512,32)", *sizes, "--fast-memory", words)
            (chosen,) = (candidate for candidate in plan["candidates"] if candidate["chosen"])
            self.assertEqual(plan["plan"]["z_input"], 512 * 16)
            for name in ("forward", "backward"):
                (case,) = (case for case in pebble["cases"] if case["pass"] == name
                           and case["schedule"] == chosen["schedule"])
                self.assertEqual(case["split_point"], plan["plan"]["split_point"])
                self.assertEqual(chosen[f"{name}_words"], case["counted"])
                self.assertEqual(plan[name]["bound"], case["bound"])
        dense = self.json_of("plan", "random(512,32)", "--head-dim", 64, "--value-dim", 16)
        self.assertEqual(dense["plan"]["z_input"], 512 * 64)
        self.assertNotIn("features", dense["problem"])

    def test_parameter_gradients(self):
        n, d, words = 128, 16, 512
        cases = self.cases_of("random(128,8)", "--head-dim", d, "--fast-memory", words, "--parameter-gradients")
        self.assertEqual({name for _, name, _ in cases}, {"forward", "backward", "parameter_gradients"})
        for schedule in ("recompute", "materialize"):
            case = cases[schedule, "parameter_gradients", words]
            self.assertEqual(case["compulsory"], n * 4 * d + 4 * d * d)
            # Both products with the weights come on top, and forward is part of it.
            self.assertGreater(case["theorem_bound"], cases[schedule, "backward", words]["theorem_bound"])
            self.assertGreater(case["counted"], cases[schedule, "forward", words]["counted"])

    def test_compressed_queries_and_keys(self):
        sizes = ["--head-dim", 64, "--value-dim", 8]
        for expression in ("full(256)", "random(512,32)"):
            document = self.json_of("pebble", expression, *sizes, "--features", 8, "--fast-memory", "2^8..2^14")
            self.assertEqual(document["problem"]["features"], 8)
            tokens, pairs = document["pattern"]["rows"], document["pattern"]["pairs"]
            for pebble_pass in ("forward", "backward"):
                picks = [case for case in document["cases"]
                         if case["pass"] == pebble_pass and case["regime_pick"] and case["feasible"]]
                self.assertGreater(len(picks), 3)
                for case in picks:
                    self.assertAlmostEqual(case["split_point"], (tokens * 8) ** 2 / pairs)  # Z_input^2 / Z_QK
                    self.assertGreaterEqual(case["ratio"], 1)
                bound = [case["ratio"] for case in picks if case["binding"] == "theorem"]
                if bound:
                    self.assertLessEqual(max(bound) / min(bound), 6)
            dense = self.json_of("pebble", expression, *sizes, "--fast-memory", "2^10")
            self.assertGreater(min(case["counted"] for case in dense["cases"] if case["feasible"]),
                               max(case["counted"] for case in document["cases"]
                                   if case["fast_memory"] == 2**10 and case["regime_pick"]
                                   and case["pass"] == "forward"))

    def test_value_dim(self):
        case = self.cases_of("full(20)", "--head-dim", 8, "--value-dim", 4, "--fast-memory", 2**14)[
            "recompute", "forward", 2**14]
        self.assertEqual(case["compulsory"], 20 * (8 + 8 + 4 + 4 + 1))

    def test_faults(self):
        for words in ("0", "64,", "2^41", "x", "2^9..2^8"):
            self.assert_fails(["pebble", "full(4)", "--fast-memory", words], 2, "no size of fast memory")
        self.assert_fails(["pebble", "full(4)", "--schedule", "auto"], 2)
        self.assert_fails(["pebble"], 2)
        self.assert_fails(["pebble", "full(4)", "--plot", "a.png"], 1, ".svg")
        self.assert_fails(["pebble", "full(4)", "--fast-memory", "64", "--plot", "no/such/folder/a.svg"], 1, "a.svg")

    def test_table_for_people(self):
        result = cobble("pebble", "full(64)", "--head-dim", 16, "--fast-memory", "128,1024")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split() for line in result.stdout.splitlines() if line.split()[:1] in (["128"], ["1,024"])]
        self.assertEqual(len(rows), 4)
        self.assertEqual([row[-1] == "*" for row in rows], [True, False, True, False])  # the last column: materialize
        self.assertEqual([row[3] for row in rows], ["theorem", "compulsory", "compulsory", "compulsory"])

    def test_plot_is_an_svg_with_both_schedules_and_the_split_point(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plot.svg"
            self.json_of("pebble", "random(128,8)", "--head-dim", 16, "--fast-memory", "2^7..2^12", "--plot", path)
            root = xml.etree.ElementTree.parse(path).getroot()
        texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
        self.assertEqual(texts[0], "random(128,8)")
        for text in ("forward", "backward", "recompute, counted", "materialize, counted", "compulsory traffic",
                     "fast memory M, in words", "words moved", "M* = 4,096"):
            self.assertIn(text, texts)

    def test_plot_of_nothing(self):
        for expression in ("full(0)", "!full(8)"):
            with tempfile.TemporaryDirectory() as folder, self.subTest(expression):
                path = pathlib.Path(folder) / "plot.svg"
                self.json_of("pebble", expression, "--fast-memory", "2^7..2^9", "--plot", path)
                xml.etree.ElementTree.parse(path)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
