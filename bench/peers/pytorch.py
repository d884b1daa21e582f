"""Attention with a dense boolean mask by PyTorch, backward by autograd. A peer of `cobble bench`; bench/cobble/peers.hpp
says how it is called.
"""

import json
import math
import pathlib
import statistics
import sys
import time

import numpy
import torch


def measure(seconds, work):
    """Medians, as bench/cobble/statistics.cpp measures them. `work` returns the seconds that count."""
    least = 1 if work() > seconds else 3
    times = []
    while len(times) < least or (sum(times) < seconds and len(times) < 50):
        times.append(work())
    return 1e3 * statistics.median(times)


def attention(query, key, value, mask, scale):
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):  # from PyTorch 2.0 on
        # Its scale is 1 / sqrt(d).
        factor = scale * math.sqrt(query.shape[-1])
        return torch.nn.functional.scaled_dot_product_attention(query * factor, key, value, attn_mask=mask)
    scores = (query @ key.transpose(-1, -2)) * scale
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ value


def main(folder):
    problem = json.loads((folder / "problem.json").read_text())
    torch.set_num_threads(problem["threads"])
    load = lambda name: torch.from_numpy(numpy.load(folder / f"{name}.npy"))
    query, key, value = (load(name).requires_grad_() for name in ("query", "key", "value"))
    grad_output, mask = load("grad_output"), load("mask")
    output = None

    def forward():
        nonlocal output
        start = time.perf_counter()
        output = attention(query, key, value, mask, problem["scale"])
        return time.perf_counter() - start

    def backward():  # needs a graph of its own each time
        forward()
        query.grad = key.grad = value.grad = None
        start = time.perf_counter()
        output.backward(grad_output)
        return time.perf_counter() - start

    times = {"forward_ms": measure(problem["seconds"], forward), "backward_ms": measure(problem["seconds"], backward)}
    save = lambda name, tensor: numpy.save(folder / f"{name}.npy", tensor.detach().numpy())
    save("output", output)
    for name, tensor in (("grad_query", query), ("grad_key", key), ("grad_value", value)):
        save(name, tensor.grad)
    print(json.dumps(times))


if __name__ == "__main__":
    if sys.argv[1] == "--version":
        print(torch.__version__)
    else:
        main(pathlib.Path(sys.argv[1]))
