#!/usr/bin/env python3
"""Outputs and gradients of `cobble run` against dense attention in NumPy, on random small problems.

Nothing here comes from Cobble but the files it saves: masks are drawn in NumPy, the gradients are those of the dense
formulas in float64. Usage: numpy_oracle_test.py PROGRAM [SEED]
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

PROBLEMS = 30
TOLERANCE = {"f32": 2e-5, "f64": 1e-12}


def random_mask(random, rows, columns):
    kind = random.choice(["random", "sparse", "causal", "window", "blocks"])
    i, j = np.indices((rows, columns))
    position = i + columns - rows
    if kind == "random":
        return random.random((rows, columns)) < 0.4
    if kind == "sparse":  # with empty rows and columns
        return random.random((rows, columns)) < 1.5 / columns
    if kind == "causal":
        return j <= position
    if kind == "window":
        return (j >= position - 7) & (j <= position + 2)
    blocks = random.random((rows // 8 + 1, columns // 8 + 1)) < 0.3
    return blocks[i // 8, j // 8]


def write_mask(random, folder, mask):
    """Saves the mask in one of three ways and returns the path."""
    way = random.choice(["c", "fortran", "mtx"])
    if way == "mtx":
        path = folder / "mask.mtx"
        pairs = np.argwhere(mask)
        random.shuffle(pairs)
        lines = [f"{row + 1} {column + 1}\n" for row, column in pairs]
        path.write_text("%%MatrixMarket matrix coordinate pattern general\n"
                        f"{mask.shape[0]} {mask.shape[1]} {len(pairs)}\n" + "".join(lines))
        return path
    path = folder / "mask.npy"
    np.save(path, np.asfortranarray(mask) if way == "fortran" else mask)
    return path


def random_terms(random, folder, mask, heads, dtype):
    """Further terms of the scores, each with probability 1/2, and the flags that say so."""
    terms, arguments = {}, []
    if random.random() < 0.5:
        terms["softcap"] = float(random.choice([0.5, 2, 30]))
        arguments += ["--softcap", str(terms["softcap"])]
    if random.random() < 0.5:
        i, j = np.indices(mask.shape)
        slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        terms["alibi"] = -slopes[:, np.newaxis, np.newaxis] * np.abs(i + mask.shape[1] - mask.shape[0] - j)
        arguments += ["--alibi"]
    if random.random() < 0.5:
        stored = random.random(mask.shape) < 0.3
        values = random.standard_normal(mask.shape).astype(np.float32 if dtype == "f32" else np.float64)
        terms["stored"], terms["bias"] = stored, np.where(stored, values, 0).astype(np.float64)
        lines = [f"{row + 1} {column + 1} {values[row, column]!s}\n" for row, column in np.argwhere(stored)]
        (folder / "bias.mtx").write_text("%%MatrixMarket matrix coordinate real general\n"
                                         f"{mask.shape[0]} {mask.shape[1]} {len(lines)}\n" + "".join(lines))
        arguments += ["--bias", folder / "bias.mtx"]
    if random.random() < 0.5:
        terms["sinks"] = random.standard_normal(heads).astype(np.float32 if dtype == "f32" else np.float64)
        np.save(folder / "sinks.npy", terms["sinks"])
        arguments += [f"--sinks={folder / 'sinks.npy'}"]
    return terms, arguments


def dense_attention(mask, q, k, v, grad_output, grad_lse, terms):
    """Forward and backward over axes batch, head, token, feature, in float64."""
    group = q.shape[1] // k.shape[1]
    keys, values = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scale = 1 / np.sqrt(q.shape[3])
    products = scale * np.einsum("bhid,bhjd->bhij", q, keys)
    slopes = np.ones_like(products)
    if "softcap" in terms:
        tanh = np.tanh(products / terms["softcap"])
        products, slopes = terms["softcap"] * tanh, 1 - tanh ** 2
    scores = np.where(mask, products + terms.get("alibi", 0) + terms.get("bias", 0), -np.inf)
    sinks = terms.get("sinks", np.full(q.shape[1], -np.inf)).astype(np.float64)[:, np.newaxis, np.newaxis]
    largest = np.maximum(np.max(scores, axis=-1, keepdims=True, initial=-np.inf), sinks)
    shift = np.where(np.isfinite(largest), largest, 0)
    exponentials = np.exp(scores - shift)
    of_sinks = np.exp(sinks - shift)
    sums = exponentials.sum(axis=-1, keepdims=True) + of_sinks
    probabilities = np.divide(exponentials, sums, out=np.zeros_like(exponentials), where=sums > 0)
    with np.errstate(divide="ignore"):
        lse = (np.log(sums) + shift)[..., 0]
    output = np.einsum("bhij,bhjd->bhid", probabilities, values)

    grad_probabilities = np.einsum("bhid,bhjd->bhij", grad_output, values)
    inner = (probabilities * grad_probabilities).sum(axis=-1, keepdims=True)
    delta = inner - grad_lse[..., np.newaxis]
    grad_scores = probabilities * (grad_probabilities - delta)
    of_terms = {}
    if "bias" in terms:
        of_terms["grad_bias"] = grad_scores.sum(axis=(0, 1))[terms["stored"]]
    if "sinks" in terms:
        of_terms["grad_sinks"] = -(of_sinks / sums * delta).sum(axis=(0, 2, 3))
    grad_scores = grad_scores * slopes
    grad_query = scale * np.einsum("bhij,bhjd->bhid", grad_scores, keys)
    grad_keys = scale * np.einsum("bhij,bhid->bhjd", grad_scores, q)
    grad_values = np.einsum("bhij,bhid->bhjd", probabilities, grad_output)
    of_group = (k.shape[0], k.shape[1], group, k.shape[2], -1)
    return {"output": output, "lse": lse, "grad_query": grad_query,
            "grad_key": grad_keys.reshape(of_group).sum(axis=2),
            "grad_value": grad_values.reshape(of_group).sum(axis=2), **of_terms}


def relative_error(found, expected):
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite]):
        return np.inf
    largest = np.abs(expected[finite]).max(initial=0)
    difference = np.abs(found[finite] - expected[finite]).max(initial=0)
    return 0 if difference == 0 else difference / largest if largest > 0 else np.inf


def run_problem(program, random, folder):
    """The largest error over tolerance of one problem, and the problem in words."""
    # Not smaller: with a handful of pairs a gradient may cancel, and an error relative to it says nothing.
    rows, columns = int(random.integers(8, 90)), int(random.integers(8, 90))
    batch, kv_heads, group = (int(random.integers(1, 3)) for _ in range(3))
    head_dim, value_dim = int(random.integers(1, 40)), int(random.integers(1, 40))
    matrices = bool(random.random() < 0.4)
    if matrices:
        batch = kv_heads = group = 1
    heads = kv_heads * group
    dtype = str(random.choice(["f32", "f64"]))
    mask = random_mask(random, rows, columns)

    shapes = {"query": (batch, heads, rows, head_dim), "key": (batch, kv_heads, columns, head_dim),
              "value": (batch, kv_heads, columns, value_dim), "grad-output": (batch, heads, rows, value_dim)}
    with_grad_lse = bool(random.random() < 0.5)
    if with_grad_lse:
        shapes["grad-lse"] = (batch, heads, rows)
    tensors, arguments, orders = {}, [], []
    for name, shape in shapes.items():
        values = random.standard_normal(shape).astype(np.float32 if dtype == "f32" else np.float64)
        tensors[name] = values.astype(np.float64)
        saved = values.reshape(shape[2:]) if matrices else values
        order = str(random.choice(["C", "F"]))
        orders.append(order)
        np.save(folder / f"{name}.npy", np.asarray(saved, order=order))
        arguments += [f"--{name}", folder / f"{name}.npy"]
    terms, term_arguments = random_terms(random, folder, mask, heads, dtype)
    result = folder / "result.npz"
    command = [program, "run", write_mask(random, folder, mask), *arguments, *term_arguments, "--dtype", dtype, "--save",
               result, "--repeat", "1"]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)

    grad_lse = tensors.get("grad-lse", np.zeros((batch, heads, rows)))
    expected = dense_attention(mask, tensors["query"], tensors["key"], tensors["value"], tensors["grad-output"],
                               grad_lse, terms)
    words = (f"{rows} x {columns}, {mask.sum()} pairs, batch {batch}, heads {heads}/{kv_heads}, d {head_dim}, "
             f"d_v {value_dim}, {dtype}, {'2-D' if matrices else '4-D'} in order {''.join(orders)}, "
             f"dLSE {with_grad_lse}, terms {sorted(terms)}")
    worst = 0
    with np.load(result) as saved:
        assert set(saved.files) == set(expected), saved.files
        for name, value in expected.items():
            found = saved[name]
            assert found.dtype == (np.float32 if dtype == "f32" else np.float64), (name, found.dtype)
            wanted = value[0, 0] if matrices and value.ndim > 1 else value
            assert found.shape == wanted.shape, (name, found.shape, wanted.shape)
            error = relative_error(found.astype(np.float64), wanted) / TOLERANCE[dtype]
            if error > 1:
                print(f"{name} is off by {error:.3g} times the tolerance")
            worst = max(worst, error)
    return worst, words


def main():
    program = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2410
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    failures = 0
    for problem in range(PROBLEMS):
        with tempfile.TemporaryDirectory() as folder:
            worst, words = run_problem(program, random, pathlib.Path(folder))
        print(f"{'ok  ' if worst <= 1 else 'FAIL'} {problem}: {worst:.2e} of the tolerance: {words}")
        failures += worst > 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
