"""What the peers whose operands are blocks have in common: for each case and peer, tune, check, measure, one line of JSON.

    python3 PROGRAM.py CASES.json              one line of JSON for each result
    python3 PROGRAM.py CASES.json --warm B W   only compiles what that block size and width need

CASES.json: {"folder", "quick", "cases": [{"id", "file", "size", "b", "width"}]}; times in microseconds. Calls are
recorded in a graph between two events, as those of the other peers are.
"""
import json
import os
import subprocess
import sys

import numpy as np
import torch
import triton

from clock import Clock, print_fastest

F32 = 2.0**-24
F16 = 2.0**-11


def raw(file, dtype, count=-1):
    return torch.from_numpy(np.fromfile(file, dtype=dtype, count=count)).cuda()


def dense(cases, case, name):
    """The operand of that name, f16, size x width: the first elements of a file for all cases."""
    size, width = case["size"], case["width"]
    return raw(os.path.join(cases["folder"], name), np.float16, size * width).view(size, width)


def unwritten(*shape):
    return torch.full(shape, float("nan"), device="cuda", dtype=torch.float16)


def verdict(out, want, scale, depth):
    """Whether every element is within rounding, and the worst error as a share of the sum of magnitudes."""
    off = (out.double() - want).abs()
    bound = scale * (2 * F32 + F32 * (8 + 2 * depth**0.5)) + F16 * want.abs()
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def run(peers, read, empty, expected):
    """
    `peers`: names, and for operands and an output the named configurations of a call. `read(cases, case)` gives the
    operands, `empty(*operands)` an output, `expected(*operands)` in f64 the result, its sums of magnitudes, and of how many
    products each is a sum.
    """
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    if "--warm" in sys.argv:
        at = sys.argv.index("--warm")
        b, width = (int(text) for text in sys.argv[at + 1 : at + 3])
        operands = read(cases, next(c for c in cases["cases"] if c["b"] == b and c["width"] == width))
        warm(peers, operands, empty(*operands))
        return
    print(f"PyTorch {torch.__version__}, Triton {triton.__version__}", flush=True)
    warm_all(cases)
    clock = Clock()
    for case in cases["cases"]:
        operands = read(cases, case)
        out = empty(*operands)

        def check(call):
            out.fill_(float("nan"))
            call()
            return verdict(out, *expected(*operands))

        for name, calls in peers:
            print_fastest(clock, case, name, lambda: calls(*operands, out), check)


def warm(peers, operands, out):
    for _, calls in peers:
        for _, call in calls(*operands, out):
            try:
                call()
            except Exception:
                pass
    torch.cuda.synchronize()


def warm_all(cases):
    """Compiling takes a second for each configuration, and processes share what is compiled through the disk."""
    pairs = sorted({(c["b"], c["width"]) for c in cases["cases"]})
    command = lambda b, width: [sys.executable, *sys.argv[:2], "--warm", str(b), str(width)]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at_once = max(1, min(len(pairs), (os.cpu_count() or 2) // 2))
    for k in range(0, len(pairs), at_once):
        for p in [subprocess.Popen(command(*pair), **quiet) for pair in pairs[k : k + at_once]]:
            try:
                p.wait(timeout=120)
            except subprocess.TimeoutExpired:
                p.kill()
