#!/usr/bin/env python3
"""The program cobble from outside: exit codes, one-line errors, JSON names, files and pictures.

Usage: program_test.py PROGRAM. The part on shared pattern files is skipped where they are not there.
"""

import json
import os
import pathlib
import platform
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zipfile
import zlib

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "patterns"
TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "bf16": 2e-5 + 4 * 2 ** -8, "f16": 2e-5 + 4 * 2 ** -11}
TENSORS = {"output", "lse", "grad_query", "grad_key", "grad_value"}


def cobble(*arguments, environment=None):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env=os.environ | (environment or {}))


def decode_png(data):
    """Width, height and the rows of an 8-bit RGB image; raises when a checksum or the data is wrong."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, compressed, header = 8, b"", None
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position:position + 8])
        body = data[position + 8:position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length:position + 12 + length])
        assert zlib.crc32(kind + body) == checksum, kind
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        if kind == b"IDAT":
            compressed += body
        position += 12 + length
    width, height = header[:2]
    assert header[2:4] == (8, 2)
    pixels = zlib.decompress(compressed)
    assert len(pixels) == height * (1 + 3 * width)
    return width, height


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.folder = pathlib.Path(self.directory.name)

    def json_of(self, *arguments):
        result = cobble(*arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")  # no bars where stderr is no terminal
        return json.loads(result.stdout)

    def assert_fails(self, result, status, *expected):
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("cobble: "), lines[0])
        for text in expected:
            self.assertIn(text, lines[0])


class RunTest(ProgramTest):
    def assert_check_passes(self, document, dtype, tensors=TENSORS):
        self.assertTrue(document["check"]["passed"])
        self.assertEqual(set(document["check"]["max_error"]), tensors)
        for name, error in document["check"]["max_error"].items():
            self.assertLessEqual(error, TOLERANCE[dtype], name)

    def test_json_names(self):
        document = self.json_of("run", "window(100,10,2) | leading_tokens(100,4)", "--heads", 4, "--kv-heads", 2,
                                "--head-dim", 8, "--value-dim", 12, "--batch", 2, "--threads", 1, "--check")
        names = {
            "pattern": {"rows", "columns", "pairs", "density"},
            "problem": {"batch", "heads", "kv_heads", "head_dim", "value_dim", "dtype", "threads"},
            "plan": {"schedule", "regime", "split_point", "fast_memory", "row_panel", "column_panel", "feature_chunk",
                     "workspace_bytes", "ms"},
            "forward": {"ms", "gflops"},
            "backward": {"ms", "gflops"},
            "check": {"passed", "max_error"},
        }
        for group, members in names.items():
            self.assertLessEqual(members, set(document[group]), group)
        self.assertEqual(document["problem"] | {"batch": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, "value_dim": 12,
                                                "dtype": "f32", "threads": 1}, document["problem"])
        self.assertGreater(document["peak_bytes"], 0)
        self.assertIsInstance(document["isa"], str)

    def test_cobble_isa_chooses_the_instruction_set(self):
        arguments = ("run", "causal(50)", "--head-dim", 8, "--check", "--json")
        result = cobble(*arguments, environment={"COBBLE_ISA": "baseline"})
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual(document["isa"], "baseline")
        self.assert_check_passes(document, "f32")
        for widest in ("", "automatic"):
            result = cobble(*arguments, environment={"COBBLE_ISA": widest})
            self.assertEqual(json.loads(result.stdout)["isa"], self.json_of("run", "causal(50)")["isa"])
        other = "avx2" if platform.machine() in ("aarch64", "arm64") else "neon"
        for wrong in ("avx9", other):
            result = cobble(*arguments, environment={"COBBLE_ISA": wrong})
            self.assert_fails(result, 1, wrong, "expected", "baseline")

    def test_gflops_count_useful_products_over_all_heads(self):
        document = self.json_of("run", "causal(200)", "--heads", 3, "--batch", 2, "--head-dim", 16, "--value-dim", 8)
        pairs = document["pattern"]["pairs"] * 6
        for name, per_pair in (("forward", 2 * (16 + 8)), ("backward", 2 * (3 * 16 + 2 * 8))):
            timing = document[name]
            self.assertAlmostEqual(timing["gflops"] * timing["ms"] * 1e6 / (pairs * per_pair), 1, places=9)

    def test_check_of_sampled_tokens(self):
        document = self.json_of("run", "window(6000,20,0)", "--head-dim", 8, "--check")
        self.assertEqual(document["check"]["query_tokens"], 64)
        self.assert_check_passes(document, "f32")

    def test_terms_of_scores(self):
        bias = self.folder / "bias.mtx"
        bias.write_text("%%MatrixMarket matrix coordinate real general\n"
                        "6000 6000 3\n1 1 -1.5\n4000 3990 2\n6000 6000 1e300\n")
        for pattern in ("window(6000,20,0)", "window(200,20,0)"):
            text = bias.read_text().replace("6000", "200") if "(200" in pattern else bias.read_text()
            (self.folder / "b.mtx").write_text(text.replace("4000 3990", "190 185"))
            document = self.json_of("run", pattern, "--head-dim", 8, "--heads", 4, "--kv-heads", 2, "--dtype", "f64",
                                    "--softcap", 5, "--alibi", "--bias", self.folder / "b.mtx", "--sinks", "--check",
                                    "--save", self.folder / "out.npz")
            self.assert_check_passes(document, "f64", TENSORS | {"grad_bias", "grad_sinks"})
            self.assertEqual(document["problem"]["terms"], "softcap 5, ALiBi, a bias of 3 values, sinks")

    def test_halves_pass_the_check_and_are_saved(self):
        for dtype, saved in (("bf16", b"<f4"), ("f16", b"<f2")):  # NumPy has no bfloat16
            with self.subTest(dtype):
                document = self.json_of("run", "window(300,40,3) | random(300,9)", "--head-dim", 40, "--heads", 4,
                                        "--kv-heads", 2, "--dtype", dtype, "--softcap", 5, "--alibi", "--sinks",
                                        "--check", "--save", self.folder / "out.npz")
                self.assert_check_passes(document, dtype, TENSORS | {"grad_sinks"})
                self.assertEqual(document["problem"]["dtype"], dtype)
                with zipfile.ZipFile(self.folder / "out.npz") as archive:
                    self.assertIn(saved, archive.read("output.npy")[:128])
                    self.assertIn(b"<f4", archive.read("lse.npy")[:128])

    def test_the_instruction_set_is_the_one_in_use(self):
        names = ["baseline"] + ["sse4"] * (platform.machine() == "x86_64")
        if pathlib.Path("/proc/cpuinfo").exists() and "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text():
            names += ["avx512", "avx512_bf16"]
        for name in names:
            result = subprocess.run([PROGRAM, "run", "causal(40)", "--dtype", "bf16", "--check", "--json"],
                                    env={**os.environ, "COBBLE_ISA": name}, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["isa"], name)

    def test_terms_that_do_not_fit(self):
        bias = self.folder / "bias.mtx"
        bias.write_text("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 1 1\n")
        self.assert_fails(cobble("run", "causal(9)", "--bias", bias), 1, "--bias", "3 x 4", "9 x 9")
        self.assert_fails(cobble("run", "causal(9)", "--softcap", "-1"), 2, "--softcap")

    def test_report_for_people(self):
        result = cobble("run", "causal(64)", "--check")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        for text in ("causal(64)", "2,080 pairs", "forward", "backward", "GFLOP/s", "passed"):
            self.assertIn(text, result.stdout)

    def test_seed_decides_the_numbers(self):
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.json_of("run", "causal(20)", "--head-dim", 4, "--seed", seed, "--save", self.folder / f"{name}.npz")
        a, b, c = ((self.folder / f"{name}.npz").read_bytes() for name in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_the_number_of_threads_does_not_change_a_bit(self):
        for threads in (1, 2, 3):
            self.json_of("run", "bigbird(256,16,3,1,2)", "--heads", 3, "--threads", threads, "--save",
                         self.folder / f"{threads}.npz")
        files = [(self.folder / f"{threads}.npz").read_bytes() for threads in (1, 2, 3)]
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])

    def test_empty_problems(self):
        for expression in ("full(0)", "causal(5x0)", "full(1)", "!full(7)"):
            with self.subTest(expression):
                self.assert_check_passes(self.json_of("run", expression, "--check"), "f32")

    def test_shared_files_pass_the_check(self):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is not there")
        expected = json.loads((SHARED / "expected.json").read_text())
        files = sorted((SHARED / "valid").iterdir()) + sorted((SHARED / "dialect").iterdir())
        self.assertGreater(len(files), 20)
        for path in files:
            for dtype in ("f32", "f64"):
                with self.subTest(path.name, dtype=dtype):
                    document = self.json_of("run", path, "--check", "--dtype", dtype, "--repeat", 1)
                    self.assert_check_passes(document, dtype)
                    counts = expected[f"{path.parent.name}/{path.name}"]
                    found = document["pattern"]
                    self.assertEqual((found["rows"], found["columns"], found["pairs"]),
                                     (counts["rows"], counts["cols"], counts["pairs"]))
                    self.assertEqual(found["file"]["stored_entries"], counts["stored"])

    def test_malformed_shared_files_fail_with_one_line(self):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is not there")
        files = sorted((SHARED / "malformed").iterdir())
        self.assertGreater(len(files), 20)
        for path in files:
            with self.subTest(path.name):
                result = cobble("run", path, "--check", "--json")
                self.assert_fails(result, 1, path.name)
                self.assertEqual(result.stdout, "")

    def test_own_files_pass_the_check(self):
        for entry in json.loads((ROOT / "data" / "MANIFEST.json").read_text()):
            with self.subTest(entry["file"]):
                document = self.json_of("run", ROOT / "data" / entry["file"], "--head-dim", 16, "--check")
                self.assert_check_passes(document, "f32")


class FailureTest(ProgramTest):
    def test_wrong_usage_exits_2(self):
        for arguments in ([], ["walk"], ["run"], ["run", "full(4)", "--no-such-flag"], ["run", "full(4)", "extra"],
                          ["run", "full(4)", "--dtype", "f99"], ["run", "full(4)", "--heads", "0"],
                          ["run", "full(4)", "--heads", "many"], ["run", "full(4)", "--schedule", "best"],
                          ["draw", "full(4)"], ["make", "full(4)"], ["convert", "a.mtx"],
                          ["info", "full(4)", "--list-columns", "3"]):
            with self.subTest(arguments):
                result = cobble(*arguments)
                self.assert_fails(result, 2)
                self.assertEqual(result.stdout, "")

    def test_failures_exit_1_and_say_what_was_expected(self):
        for arguments, expected in (
                (["info", "no_such_file.mtx"], "no_such_file.mtx"),
                (["info", "windw(4,1,1)"], "windw"),
                (["info", "full(4) | full(5)"], "5"),
                (["info", "full(4)", "--strict"], "--strict"),
                (["run", "full(4)", "--heads", "3", "--kv-heads", "2"], "3"),
                (["draw", "full(4)", "-o", self.folder / "a.gif"], ".png"),
                (["draw", "full(4)", "-o", self.folder / "none" / "a.png"], "a.png"),
                (["make", "full(4)", "-o", self.folder / "a.txt"], "a.txt"),
                (["make", "full(4)", "-o", self.folder / "a.mtx", "--block", "2"], ".npz"),
                (["make", "full(4)", "-o", self.folder / "a.npz", "--block", "2x"], "2x"),
                (["run", "full(4)", "--query", self.folder / "no.npy"], "no.npy")):
            with self.subTest(arguments):
                result = cobble(*arguments)
                self.assert_fails(result, 1, expected)
                self.assertEqual(result.stdout, "")

    def test_help_exits_0(self):
        for arguments in ([], ["run"], ["info"], ["plan"], ["pebble"], ["draw"], ["make"], ["convert"]):
            with self.subTest(arguments):
                result = cobble(*arguments, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertIn("Usage: cobble", result.stdout)


class InfoTest(ProgramTest):
    def test_counts_of_a_causal_pattern(self):
        document = self.json_of("info", "causal(100)", "--head-dim", 32)
        self.assertEqual(document["pattern"]["pairs"], 5050)
        self.assertEqual(document["rows"], {"min": 1, "median": 50.5, "mean": 50.5, "max": 100, "empty": 0,
                                            "heaviest": 99})
        self.assertEqual(document["columns"]["heaviest"], 0)
        self.assertEqual([tiles["size"] for tiles in document["tiles"]], [16, 32, 64, 128])
        self.assertEqual(document["tiles"][2] | {"full": 1, "partial": 2, "empty": 1}, document["tiles"][2])
        model = document["model"]
        self.assertEqual((model["z_input"], model["z_qk"]), (3200, 5050))
        self.assertAlmostEqual(model["split_point"], 3200**2 / 5050)
        self.assertTrue(model["caches"])
        for cache in model["caches"]:
            large = cache["words"] >= model["split_point"]
            self.assertEqual(cache["regime"], "large_fast_memory" if large else "small_fast_memory")

    def test_a_pattern_without_pairs(self):
        document = self.json_of("info", "!full(10)")
        self.assertEqual(document["rows"]["empty"], 10)
        self.assertIsNone(document["model"]["split_point"])  # infinite

    def test_many_tokens(self):
        document = self.json_of("info", "window(131072,256,0)")
        self.assertEqual(document["pattern"]["pairs"], 131072 * 257 - 256 * 257 // 2)
        self.assertEqual(document["columns"]["max"], 257)

    def test_padded_lists(self):
        path = self.folder / "lists.npy"
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }"
        header += b" " * (128 - 10 - len(header) - 1) + b"\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header +
                         struct.pack("<6i", 4, 0, -1, 2, -1, -1))
        document = self.json_of("info", path, "--padded-lists", "--list-columns", 5)
        self.assertEqual((document["pattern"]["columns"], document["pattern"]["pairs"]), (5, 3))


class ReorderTest(ProgramTest):
    """A pattern of blocks whose rows and columns stand in a random order."""

    BLOCK, BLOCKS, PER_ROW = 64, 16, 2

    def setUp(self):
        super().setUp()
        generator = random.Random(3)
        size = self.BLOCK * self.BLOCKS
        rows, columns = list(range(size)), list(range(size))
        generator.shuffle(rows)
        generator.shuffle(columns)
        pairs = [(rows[self.BLOCK * block + i], columns[self.BLOCK * key + j])
                 for block in range(self.BLOCKS) for key in generator.sample(range(self.BLOCKS), self.PER_ROW)
                 for i in range(self.BLOCK) for j in range(self.BLOCK)]
        self.path = self.folder / "shuffled.mtx"
        self.path.write_text(f"%%MatrixMarket matrix coordinate pattern general\n{size} {size} {len(pairs)}\n" +
                             "".join(f"{row + 1} {column + 1}\n" for row, column in pairs))

    def test_info_shows_fill_and_traffic_before_and_after(self):
        for method in ("similarity", "automatic"):
            with self.subTest(method):
                reorder = self.json_of("info", self.path, "--reorder", method)["reorder"]
                self.assertEqual((reorder["method"], reorder["asked"]), ("similarity", method))
                self.assertEqual(set(reorder["fill_before"]), {"16", "32", "64", "128"})
                before, after = reorder["fill_before"]["64"], reorder["fill_after"]["64"]
                self.assertLess(before, 0.13)
                self.assertGreater(after, before + (1 - before) / 2)
                self.assertGreater(reorder["words_after"], 0)
                self.assertGreaterEqual(reorder["words_before"], 2 * reorder["words_after"])
                self.assertGreater(reorder["ms"], 0)

    def test_identity_changes_nothing(self):
        reorder = self.json_of("info", self.path, "--reorder", "identity")["reorder"]
        self.assertEqual(reorder["fill_before"], reorder["fill_after"])
        self.assertEqual(reorder["words_before"], reorder["words_after"])
        self.assertNotIn("reorder", self.json_of("info", self.path))

    def test_report_for_people(self):
        result = cobble("info", self.path, "--reorder", "automatic")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("similarity, chosen by automatic", result.stdout)

    def test_pictures_stand_side_by_side(self):
        alone = self.json_of("draw", self.path, "-o", self.folder / "alone.svg")["picture"]
        both = self.json_of("draw", self.path, "--reorder", "similarity", "-o", self.folder / "both.svg")
        self.assertEqual(both["picture"]["width"], 2 * alone["width"])
        self.assertEqual(both["picture"]["height"], alone["height"])
        self.assertEqual(both["reorder"]["fill_after"], 1)
        texts = [text.text for text in xml.etree.ElementTree.parse(self.folder / "both.svg").getroot().iter(
            "{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts.count("query token"), 2)
        self.assertTrue(any(text.startswith("reordered (similarity)") for text in texts))
        self.json_of("draw", self.path, "--reorder", "amd", "-o", self.folder / "both.png")
        decode_png((self.folder / "both.png").read_bytes())

    def test_plans_and_runs_say_which_order_they_took(self):
        for command in ("plan", "run"):
            given = self.json_of(command, self.path)["plan"]["reordering"]
            self.assertEqual(given, {"method": "identity", "asked": "identity"})
            for method, expected in (("automatic", "similarity"), ("amd", "amd")):
                with self.subTest(command, method=method):
                    order = self.json_of(command, self.path, "--reorder", method)["plan"]["reordering"]
                    self.assertEqual((order["method"], order["asked"]), (expected, method))
                    self.assertLess(order["tile_fill_before"], 0.13)
                    if method == "automatic":
                        self.assertGreater(order["tile_fill_after"], 0.9)
            result = cobble(command, self.path, "--reorder", "automatic")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("similarity, chosen by automatic; 64 x 64 tiles filled", result.stdout)

    def test_what_is_in_order_stays(self):
        order = self.json_of("plan", "window(2048,64,0)", "--reorder", "automatic")["plan"]["reordering"]
        self.assertEqual((order["method"], order["asked"]), ("identity", "automatic"))

    def test_results_stand_in_the_order_that_is_given(self):
        same, other = self.folder / "same.npz", self.folder / "other.npz"
        self.json_of("run", self.path, "--dtype", "f64", "--save", same)
        document = self.json_of("run", self.path, "--dtype", "f64", "--save", other, "--reorder", "similarity", "--check")
        self.assertTrue(document["check"]["passed"])
        with zipfile.ZipFile(same) as a, zipfile.ZipFile(other) as b:
            for name in TENSORS:
                of_a, of_b = ([struct.unpack("<d", body[-8 * (i + 1):][:8])[0] for i in range(1000)]
                              for body in (a.read(f"{name}.npy"), b.read(f"{name}.npy")))
                for x, y in zip(of_a, of_b):
                    self.assertAlmostEqual(x, y, places=11)

    def test_an_unknown_method_is_wrong_usage(self):
        for command in ("info", "plan", "run"):
            self.assert_fails(cobble(command, self.path, "--reorder", "rcm"), 2)

    def test_positions_keep_their_order(self):
        self.assert_fails(cobble("run", self.path, "--reorder", "similarity", "--alibi"), 1)


class PictureTest(ProgramTest):
    def test_pictures_can_be_read(self):
        for index, expression in enumerate(("window(200,16,0)", "bigbird(16384,64,3,1,3)", "causal(128x9000)",
                                            "window(100000,500,0) | dilated(100000,4,5000)", "full(1)", "full(0)")):
            with self.subTest(expression):
                png, svg = self.folder / f"{index}.png", self.folder / f"{index}.svg"
                document = self.json_of("draw", expression, "-o", png)
                size = decode_png(png.read_bytes())
                self.assertEqual(size, (document["picture"]["width"], document["picture"]["height"]))
                self.json_of("draw", expression, "-o", svg)
                root = xml.etree.ElementTree.parse(svg).getroot()
                self.assertEqual((int(root.get("width")), int(root.get("height"))), size)
                texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
                self.assertEqual(texts[0], expression)
                self.assertIn("query token", texts)
                self.assertIn("key token", texts)


class FileTest(ProgramTest):
    def test_conversions_come_back_to_the_same_pattern(self):
        first = self.folder / "first.smtx"
        self.json_of("make", "random(90x70,5) & causal(90x70)", "--seed", 3, "-o", first)
        path = first
        for step, extension in enumerate(("mtx", "npz", "npy", "smtx")):
            target = self.folder / f"step{step}.{extension}"
            self.json_of("convert", path, target)
            path = target
        self.assertEqual(path.read_text(), first.read_text())

    def test_blocks(self):
        path = self.folder / "blocks.npz"
        document = self.json_of("make", "bigbird(256,32,3,1,1)", "-o", path, "--block", "32x64")
        back = self.folder / "back.smtx"
        direct = self.folder / "direct.smtx"
        self.json_of("convert", path, back)
        self.json_of("make", "bigbird(256,32,3,1,1)", "-o", direct)
        self.assertEqual(back.read_text(), direct.read_text())
        self.assertEqual(document["output"]["bytes"], path.stat().st_size)

    def test_one_line_for_people(self):
        result = cobble("make", "causal(10)", "-o", self.folder / "a.mtx")
        self.assertEqual(len(result.stdout.splitlines()), 1)
        self.assertIn("55 pairs", result.stdout)


class ManifestTest(ProgramTest):
    """The files of data/ are what MANIFEST.json says, and their expressions still make them."""

    MANIFEST = json.loads((ROOT / "data" / "MANIFEST.json").read_text())

    def test_every_file_is_listed_and_all_are_small(self):
        files = {path.name for path in (ROOT / "data").iterdir()} - {"MANIFEST.json", "make"}
        self.assertEqual(files, {entry["file"] for entry in self.MANIFEST})
        self.assertLess(sum((ROOT / "data" / name).stat().st_size for name in files), 2_000_000)
        self.assertTrue(any(entry["rows"] >= 16384 for entry in self.MANIFEST))

    def test_files_hold_what_the_manifest_says(self):
        for entry in self.MANIFEST:
            with self.subTest(entry["file"]):
                document = self.json_of("info", ROOT / "data" / entry["file"])
                for name in ("rows", "columns", "pairs"):
                    self.assertEqual(document["pattern"][name], entry[name])
                if entry["file"] == "empty_rows.npy":
                    self.assertGreater(document["rows"]["empty"], 0)

    def test_expressions_make_the_same_patterns(self):
        for entry in self.MANIFEST:
            if entry["pairs"] > 1_000_000:
                continue  # as text too large for a quick test; its counts are compared above
            with self.subTest(entry["file"]):
                stored, made = self.folder / "stored.smtx", self.folder / "made.smtx"
                self.json_of("convert", ROOT / "data" / entry["file"], stored)
                self.json_of("make", entry["expression"], "--seed", entry["seed"], "-o", made)
                self.assertEqual(stored.read_text(), made.read_text())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
