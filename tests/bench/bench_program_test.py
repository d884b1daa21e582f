#!/usr/bin/env python3
"""`cobble bench` from outside: JSON names, what it refuses, the page, the environment, and peers that agree.

Usage: bench_program_test.py PROGRAM.
"""

import html.parser
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = None
QUICK = ("--seconds", "0.001", "--threads", "1")
NAMES = {"name", "pattern", "pairs", "head_dim", "heads", "batch", "dtype", "threads", "schedule", "plan_ms",
         "forward_ms", "forward_mad_ms", "backward_ms", "backward_mad_ms", "forward_gflops", "backward_gflops",
         "gemm_gflops", "forward_fraction_of_gemm", "backward_fraction_of_gemm", "flop_bound_speedup", "dense_speedup",
         "peak_bytes", "max_error", "peers"}
PEER_NAMES = {"name", "version", "forward_ms", "backward_ms", "max_difference"}
VOID = {"meta", "br", "link", "img", "hr", "input"}


def cobble(*arguments, environment=None):
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True,
                          env=os.environ | (environment or {}))


class Nesting(html.parser.HTMLParser):
    """Every element that is opened is closed, in order; ids are distinct."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.count = [], set(), {}

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        for name, value in attributes:
            if name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
            assert name not in ("src", "href"), (tag, value)  # nothing from outside
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


class BenchTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.folder = pathlib.Path(self.directory.name)

    def json_of(self, *arguments, **options):
        result = cobble(*arguments, *QUICK, "--json", **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), result.stderr

    def test_json_names_and_what_they_mean(self):
        document, errors = self.json_of("causal(200)", "window(300,20,0)", "--heads", 2, "--batch", 2, "--head-dim",
                                        "8,16", "--dtype", "f32,f64")
        self.assertEqual(errors, "")
        cases = document["cases"]
        self.assertEqual(len(cases), 8)
        for case in cases:
            self.assertLessEqual(NAMES, set(case), case["name"])
            d = case["head_dim"]
            self.assertEqual((case["heads"], case["batch"], case["threads"]), (2, 2, 1))
            self.assertAlmostEqual(case["forward_gflops"], 2 * case["pairs"] * 2 * d / (case["forward_ms"] * 1e6))
            self.assertAlmostEqual(case["backward_gflops"], 2 * case["pairs"] * 5 * d / (case["backward_ms"] * 1e6))
            self.assertAlmostEqual(case["flop_bound_speedup"], 4 * case["rows"] * case["columns"] / case["pairs"])
            self.assertLess(case["max_error"], 1e-12 if case["dtype"] == "f64" else 2e-5)
            self.assertGreater(case["peak_bytes"], 0)
            self.assertEqual(case["peers"], [])
            if case["gemm_gflops"] is not None:
                self.assertAlmostEqual(case["forward_fraction_of_gemm"], case["forward_gflops"] / case["gemm_gflops"])
        self.assertEqual(cases[0]["pairs"], 4 * 200 * 201 // 2)
        for name in ("cpu", "cores", "caches", "isa", "compiler", "cobble", "commit", "os", "governor", "openblas"):
            self.assertIn(name, document["machine"])
        self.assertEqual({roof["dtype"] for roof in document["roofs"]}, {"f32", "f64"})

    def test_halves(self):
        document, _ = self.json_of("causal(200)", "--head-dim", 16, "--dtype", "bf16,f16,f32", "--peers", "--regret")
        sizes = {"f32": 4, "bf16": 2, "f16": 2}
        roundings = {"f32": 0, "bf16": 2 ** -8, "f16": 2 ** -11}
        self.assertEqual([case["dtype"] for case in document["cases"]], ["bf16", "f16", "f32"])
        for case in document["cases"]:
            with self.subTest(case["dtype"]):
                self.assertLess(case["max_error"], 2e-5 + 4 * roundings[case["dtype"]])
                self.assertGreater(case["max_error"], roundings[case["dtype"]] / 8)  # what is measured are halves
                self.assertEqual(case["tensor_bytes"], 8 * 200 * 16 * sizes[case["dtype"]] + 200 * 4)
                self.assertGreaterEqual(case["regret"], 1)
                if case["dtype"] != "f32":
                    self.assertEqual(case["peers"], [])
        result = cobble("causal(50)", "--features", 4, "--dtype", "bf16", *QUICK)
        self.assertEqual(result.returncode, 1)
        self.assertIn("compressed features are f32 or f64", result.stderr)

    def test_a_case_of_a_suite(self):
        document, _ = self.json_of("--suite", "unstructured", "--only", "random(4096,8)", "--no-check", "--regret")
        (case,) = document["cases"]
        self.assertEqual(document["suite"], "unstructured")
        self.assertIsNone(case["max_error"])
        self.assertGreaterEqual(case["regret"], 1)
        self.assertEqual(sum(candidate["chosen"] for candidate in case["candidates"]), 1)
        best = min(candidate["forward_ms"] + candidate["backward_ms"] for candidate in case["candidates"])
        (chosen,) = (candidate for candidate in case["candidates"] if candidate["chosen"])
        self.assertAlmostEqual(case["regret"], (chosen["forward_ms"] + chosen["backward_ms"]) / best)

    def test_compressed_inputs_beside_the_same_in_full(self):
        for storage in ("csr", "bsr"):
            with self.subTest(storage):
                document, _ = self.json_of("window(300,40,0)", "--head-dim", 32, "--features", 4, "--feature-storage",
                                           storage, "--dtype", "f32,f64")
                for case in document["cases"]:
                    self.assertEqual((case["head_dim"], case["value_dim"], case["feature_storage"]), (32, 32, storage))
                    self.assertAlmostEqual(case["features_per_token"], 4, delta=0.5 if storage == "bsr" else 0)
                    stored = case["features_per_token"]
                    self.assertAlmostEqual(case["forward_gflops"],
                                           2 * case["pairs"] * (stored + 32) / (case["forward_ms"] * 1e6))
                    self.assertAlmostEqual(case["backward_gflops"],
                                           2 * case["pairs"] * (3 * stored + 64) / (case["backward_ms"] * 1e6))
                    self.assertAlmostEqual(case["flop_bound_speedup"],
                                           300 * 300 * 7 * 32 / (case["pairs"] * (4 * stored + 96)))
                    self.assertLess(case["max_error"], 1e-12 if case["dtype"] == "f64" else 2e-5)
                    counterpart = case["counterpart"]
                    self.assertEqual(counterpart["name"], "densified")
                    self.assertLess(case["tensor_bytes"], counterpart["tensor_bytes"])
                    self.assertAlmostEqual(case["counterpart_speedup"],
                                           (counterpart["forward_ms"] + counterpart["backward_ms"])
                                           / (case["forward_ms"] + case["backward_ms"]))
                    self.assertIsNone(case["reordering"])

    def test_dense_inputs_have_no_counterpart(self):
        document, _ = self.json_of("causal(64)", "--head-dim", 16)
        (case,) = document["cases"]
        self.assertEqual((case["features_per_token"], case["feature_storage"]), (16, "dense"))
        for name in ("counterpart", "counterpart_speedup", "reordering"):
            self.assertIsNone(case[name])

    def test_reordered_beside_the_order_that_is_given(self):
        document, _ = self.json_of("--suite", "unstructured", "--only", "blocks(8192,64,4), shuffled")
        (case,) = document["cases"]
        self.assertTrue(case["shuffled"])
        self.assertEqual(case["pairs"], 8192 * 256)
        order = case["reordering"]
        self.assertEqual((order["asked"], order["method"]), ("automatic", "similarity"))
        lost = 1 - order["tile_fill_before"]
        self.assertLess(order["tile_fill_before"], 0.1)
        self.assertGreater(order["tile_fill_after"], order["tile_fill_before"] + lost / 2)
        counterpart = case["counterpart"]
        self.assertEqual(counterpart["name"], "as it stands")
        traffic = [sum(of[f"{name}_traffic_bytes"] for name in ("forward", "backward")) for of in (counterpart, case)]
        self.assertGreater(traffic[0], 2 * traffic[1])
        self.assertGreater(case["plan_ms"], counterpart["plan_ms"])
        self.assertLess(case["max_error"], 2e-5)

    def test_an_order_of_the_users_choice(self):
        document, _ = self.json_of("graph(300,6)", "--reorder", "amd")
        self.assertEqual(document["cases"][0]["reordering"]["method"], "amd")
        self.assertEqual(document["cases"][0]["counterpart"]["name"], "as it stands")

    def test_a_pattern_file_of_the_user(self):
        path = self.folder / "mine.mtx"
        path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 1\n2 4\n3 2\n")
        document, _ = self.json_of(path, "--threads", "2,1")
        self.assertEqual([(case["pairs"], case["threads"]) for case in document["cases"]], [(3, 1), (3, 2)])

    def test_wrong_usage_exits_2_and_failures_exit_1(self):
        for arguments, status in ((["--suite", "none"], 2), (["--threads", "0"], 2),
                                  (["--dtype", "f99"], 2), (["--json", "causal(4)"], 2), (["--seconds", "-1"], 2),
                                  (["full(4)", "--suite", "quick"], 2), (["--suite", "dense", "--only", "nothing"], 2),
                                  (["full(4)", "--reorder", "rcm"], 2), (["full(4)", "--features", "0"], 2),
                                  (["full(4)", "--head-dim", "8", "--features", "9"], 1), (["windw(4)"], 1), (["no_such_file.mtx"], 1), (["--from", "no_such_file.json"], 1)):
            with self.subTest(arguments):
                result = cobble(*arguments)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_the_environment_does_not_weaken_the_yardstick(self):
        document, _ = self.json_of("full(16)", environment={"OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual(set(document["machine"]["cleared_environment"]), {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS"})
        openblas = document["machine"]["openblas"]
        if openblas is None:
            self.skipTest("OpenBLAS is not installed")
        plain, _ = self.json_of("full(16)")
        self.assertEqual(plain["machine"]["cleared_environment"], [])
        self.assertEqual(openblas, plain["machine"]["openblas"])

    def test_the_page_is_well_formed_and_comes_from_json_too(self):
        first = self.folder / "first.json"
        result = cobble("full(64)", "causal(128)", "--threads", "1,2", "--seconds", 0.001, "--regret", "--json", first,
                        "--html", self.folder / "a.html")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("causal(128)", result.stdout)
        result = cobble("--from", first, "--html", self.folder / "b.html", "--plots", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        page = (self.folder / "a.html").read_text()
        self.assertEqual(page, (self.folder / "b.html").read_text())
        nesting = Nesting()
        nesting.feed(page)
        self.assertEqual(nesting.open, [])
        self.assertEqual(nesting.count["tr"], 3 + 1 + 4)
        plots = sorted(self.folder.glob("*.svg"))
        self.assertEqual(nesting.count["svg"], len(plots))
        self.assertIn("threads.svg", [plot.name for plot in plots])
        for plot in plots:
            self.assertNotIn("nan", plot.read_text())
            xml.etree.ElementTree.parse(plot)

    def test_the_plot_of_compressed_inputs_marks_the_crossover(self):
        document, _ = self.json_of("window(300,40,0)", "--head-dim", 32, "--features", 4)
        (measured,) = document["cases"]
        document["cases"] = []
        for features, gain in ((2, 4), (4, 2), (16, 0.5), (32, 0.25)):  # gain = 8 / features
            case = measured | {"features_per_token": features, "counterpart_speedup": gain}
            case["counterpart"] = measured["counterpart"] | {
                name: gain * measured[name] for name in ("forward_ms", "backward_ms")}
            document["cases"].append(case)
        path = self.folder / "made.json"
        path.write_text(json.dumps(document))
        result = cobble("--from", path, "--html", self.folder / "page.html", "--plots", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        nesting = Nesting()
        nesting.feed((self.folder / "page.html").read_text())
        self.assertEqual(nesting.open, [])
        self.assertEqual(nesting.count["tr"], 2 + 1 + 2 * 4)  # each with its counterpart below
        plot = (self.folder / "features.svg").read_text()
        xml.etree.ElementTree.fromstring(plot)
        self.assertIn("crossover at K / d = 0.25<", plot)
        self.assertIn("as fast as densified", plot)
        self.assertEqual(plot.count("<circle"), 4 + 1)  # forward, and in the legend

    def test_peers_agree_or_are_named_as_absent(self):
        document, errors = self.json_of("random(150,9)", "--heads", 2, "--head-dim", 24, "--peers", "--dtype", "f32,f64")
        for line in errors.splitlines():
            self.assertRegex(line, r"^cobble: .* is absent: .")
        found = set()
        for case in document["cases"]:
            for peer in case["peers"]:
                with self.subTest(case["name"], peer=peer["name"]):
                    self.assertEqual(set(peer), PEER_NAMES)
                    self.assertGreater(peer["forward_ms"], 0)
                    self.assertLess(peer["max_difference"], 1e-11 if case["dtype"] == "f64" else 2e-5)
                    found.add(peer["name"])
        absent = {name for name in ("GraphBLAS", "dense on OpenBLAS", "PyTorch", "ONNX Runtime")
                  if f"{name} is absent" in errors}
        self.assertEqual(found | absent, {"GraphBLAS", "dense on OpenBLAS", "PyTorch", "ONNX Runtime"})
        self.assertIn("GraphBLAS", found)  # tests/run installs it


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
