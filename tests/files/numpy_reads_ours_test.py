#!/usr/bin/env python3
"""NumPy reads the .npz and .npy pattern files that we write, and finds the pairs that belong there.

Usage: numpy_reads_ours_test.py PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROGRAM = None


def window(rows, left, right):
    i, j = np.indices((rows, rows))
    return (j >= i - left) & (j <= i + right)


class NumpyReadsOurs(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def make(self, expression, name, *options):
        path = pathlib.Path(self.directory.name) / name
        subprocess.run([PROGRAM, "make", expression, "-o", path, *options], check=True, stdout=subprocess.DEVNULL)
        return path

    def test_dense_array(self):
        array = np.load(self.make("window(50,3,1)", "a.npy"))
        self.assertEqual(array.dtype, np.dtype(bool))
        np.testing.assert_array_equal(array, window(50, 3, 1))

    def test_empty_array(self):
        self.assertEqual(np.load(self.make("full(0x7)", "a.npy")).shape, (0, 7))

    def test_compressed_rows(self):
        with np.load(self.make("window(50,3,1)", "a.npz")) as members:
            self.assertEqual(set(members), {"format", "shape", "indices", "indptr", "data"})
            self.assertEqual(members["format"].item(), b"csr")
            self.assertEqual(members["shape"].tolist(), [50, 50])
            self.assertEqual(members["indices"].dtype, np.dtype("<i4"))
            self.assertEqual(members["indptr"].dtype, np.dtype("<i4"))
            dense = np.zeros((50, 50), dtype=bool)
            rows = np.repeat(np.arange(50), np.diff(members["indptr"]))
            dense[rows, members["indices"]] = members["data"]
        np.testing.assert_array_equal(dense, window(50, 3, 1))

    def test_blocks(self):
        with np.load(self.make("documents(16,32)", "a.npz", "--block", "16x8")) as members:
            self.assertEqual(members["format"].item(), b"bsr")
            self.assertEqual(members["data"].shape, (2 + 4 + 4, 16, 8))
            self.assertTrue(members["data"].all())
            self.assertEqual(members["indptr"].tolist(), [0, 2, 6, 10])
            self.assertEqual(members["indices"].tolist(), [0, 1, 2, 3, 4, 5, 2, 3, 4, 5])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
