#!/usr/bin/env python3
"""`cobble run` with compressed Q, K and V: from files, made by --features, gradients in the input's own storage.

Usage: compressed_run_test.py PROGRAM
"""

import ast
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = None


def cobble(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def read_npz(path):
    """Name -> (shape, flat list of numbers)."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            (size,) = struct.unpack("<H", data[8:10])
            header = ast.literal_eval(data[10:10 + size].decode())
            kind = {"<f4": "f", "<f8": "d", "<i8": "q"}[header["descr"]]
            count = (len(data) - 10 - size) // struct.calcsize(kind)
            arrays[name.removesuffix(".npy")] = header["shape"], list(struct.unpack(f"<{count}{kind}", data[10 + size:]))
    return arrays


def npy(values, shape, kind, descr):
    """The bytes of a .npy file."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{kind}", *values)


def write_scipy(path, layout, tokens, features, entries, values):
    """The .npz that SciPy saves of a matrix, entries sorted by row: csr, csc or coo."""
    order = sorted(range(len(entries)), key=lambda k: entries[k] if layout == "csr" else entries[k][::-1])
    rows, columns = [entries[k][0] for k in order], [entries[k][1] for k in order]
    arrays = {"data": npy([values[k] for k in order], (len(order),), "d", "<f8"),
              "shape": npy([tokens, features], (2,), "q", "<i8"),
              "format": b"\x93NUMPY\x01\x00" + struct.pack("<H", 54)
                        + b"{'descr': '|S3', 'fortran_order': False, 'shape': ()}\n" + layout.encode()}
    if layout == "coo":
        arrays |= {"row": npy(rows, (len(order),), "q", "<i8"), "col": npy(columns, (len(order),), "q", "<i8")}
    else:
        major, minor, count = (rows, columns, tokens) if layout == "csr" else (columns, rows, features)
        offsets = [sum(index < i for index in major) for i in range(count + 1)]
        arrays |= {"indices": npy(minor, (len(order),), "q", "<i8"), "indptr": npy(offsets, (count + 1,), "q", "<i8")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in arrays.items():
            archive.writestr(f"{name}.npy", body)


class CompressedRunTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def json_of(self, *arguments):
        result = cobble("run", *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def write_mtx(self, name, tokens, features, kept, seed):
        """A matrix with `kept` entries a row; returns its path and the sorted entries (row, column)."""
        numbers = random.Random(seed)
        entries = sorted((i, f) for i in range(tokens) for f in numbers.sample(range(features), kept))
        path = self.folder / name
        lines = [f"{i + 1} {f + 1} {numbers.gauss(0, 1)!r}" for i, f in entries]
        path.write_text("\n".join(["%%MatrixMarket matrix coordinate real general",
                                   f"{tokens} {features} {len(entries)}", *lines, ""]))
        return path, entries

    def test_made_features_pass_the_check_in_both_storages_and_types(self):
        for storage in ("csr", "bsr"):
            for dtype in ("f32", "f64"):
                with self.subTest(storage=storage, dtype=dtype):
                    document = self.json_of("window(300,40,3)", "--head-dim", 40, "--value-dim", 24, "--heads", 4,
                                            "--kv-heads", 2, "--features", 8, "--feature-storage", storage, "--dtype",
                                            dtype, "--check")
                    self.assertTrue(document["check"]["passed"])
                    compressed = document["problem"]["compressed"]
                    self.assertEqual(set(compressed), {"query", "key"})
                    self.assertEqual({entry["storage"] for entry in compressed.values()}, {storage})
                    if storage == "csr":
                        self.assertEqual(compressed["query"]["entries"], 4 * 300 * 8)
                        self.assertEqual(compressed["key"]["entries"], 2 * 300 * 8)

    def test_gradients_of_files_are_saved_in_their_storage(self):
        query, query_entries = self.write_mtx("query.mtx", 50, 32, 5, 1)
        key, key_entries = self.write_mtx("key.mtx", 50, 32, 3, 2)
        value, value_entries = self.write_mtx("value.mtx", 50, 16, 12, 3)
        saved = self.folder / "out.npz"
        document = self.json_of("causal(50)", "--query", query, "--key", key, "--value", value, "--dtype", "f64",
                                "--check", "--save", saved)
        self.assertTrue(document["check"]["passed"])
        self.assertEqual(document["problem"]["head_dim"], 32)
        self.assertEqual(document["problem"]["value_dim"], 16)
        arrays = read_npz(saved)
        self.assertEqual(arrays["output"][0], (50, 16))
        for name, entries, features in (("grad_query", query_entries, 32), ("grad_key", key_entries, 32),
                                        ("grad_value", value_entries, 16)):
            self.assertNotIn(name, arrays)
            self.assertEqual(arrays[f"{name}_shape"][1], [50, features])
            indptr = arrays[f"{name}_indptr"][1]
            indices = arrays[f"{name}_indices"][1]
            rows = [i for i in range(50) for _ in range(indptr[i], indptr[i + 1])]
            self.assertEqual(list(zip(rows, indices)), entries)
            self.assertEqual(len(arrays[f"{name}_data"][1]), len(entries))
            self.assertGreater(max(map(abs, arrays[f"{name}_data"][1])), 0)

    def test_every_layout_of_scipy_gives_what_the_dense_file_gives(self):
        numbers = random.Random(4)
        entries = sorted((i, f) for i in range(40) for f in numbers.sample(range(24), 3))
        values = [numbers.gauss(0, 1) for _ in entries]
        full = [0.0] * (40 * 24)
        for (i, f), value in zip(entries, values):
            full[24 * i + f] = value
        dense, saved = self.folder / "dense.npy", self.folder / "saved.npz"
        dense.write_bytes(npy(full, (40, 24), "d", "<f8"))
        self.json_of("causal(40)", "--query", dense, "--key", dense, "--dtype", "f64", "--save", saved)
        expected = read_npz(saved)
        for layout in ("csr", "csc", "coo"):
            with self.subTest(layout):
                path = self.folder / f"{layout}.npz"
                write_scipy(path, layout, 40, 24, entries, values)
                document = self.json_of("causal(40)", "--query", path, "--key", path, "--dtype", "f64", "--save", saved)
                self.assertEqual(document["problem"]["compressed"]["key"], {"storage": "csr", "entries": len(entries)})
                arrays = read_npz(saved)
                for x, y in zip(arrays["output"][1], expected["output"][1]):
                    self.assertAlmostEqual(x, y, places=12)
                of_entries = [expected["grad_key"][1][24 * i + f] for i, f in entries]
                for x, y in zip(arrays["grad_key_data"][1], of_entries):
                    self.assertAlmostEqual(x, y, places=12)

    def test_saved_blocks_have_the_shape_that_scipy_expects(self):
        saved = self.folder / "out.npz"
        self.json_of("causal(64)", "--head-dim", 32, "--features", 16, "--feature-storage", "bsr", "--save", saved)
        arrays = read_npz(saved)
        self.assertEqual(arrays["grad_query_data"][0], (4, 16, 16))
        self.assertEqual(arrays["grad_query_indptr"][1], [0, 1, 2, 3, 4])
        self.assertIn("grad_value", arrays)

    def test_features_that_do_not_fit_are_named(self):
        query, _ = self.write_mtx("query.mtx", 40, 32, 5, 1)
        for arguments, expected in (
                (["causal(50)", "--query", query], "40 tokens, but the pattern has 50 rows"),
                (["causal(40)", "--query", query, "--head-dim", 16], "head dimension"),
                (["causal(40)", "--head-dim", 16, "--features", 17], "--features 17 exceeds the head dimension 16")):
            with self.subTest(arguments=arguments):
                result = cobble("run", *arguments)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertIn(expected, result.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
