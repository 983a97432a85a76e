"""Block-sparse x dense in f16 with f32 sums: PyTorch's BSR product and a Triton kernel, both tuned for each case.

    python3 block_sparse.py CASES.json              one line of JSON for each result
    python3 block_sparse.py CASES.json --warm B N   only compiles what that block size and width need

CASES.json: {"folder", "quick", "cases": [{"id", "file", "size", "b", "width"}]}; arrays lie raw at FILE-indptr and
FILE-indices (i32), FILE-values (f16), the dense operand at FOLDER/operand. Every call is recorded in a graph
between two events, as those of the other peers are; times in microseconds.
"""
import json
import os
import subprocess
import sys

import numpy as np
import torch
import triton
import triton.language as tl
from torch.sparse._triton_ops import bsr_dense_addmm

from clock import Clock, tuned

F32 = 2.0**-24
F16 = 2.0**-11


@triton.jit
def product(indptr, indices, values, x, out, N, B: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A row of blocks times BN columns; K in steps of BK, all blocks in one loop so that loads are pipelined."""
    row = tl.program_id(1)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    lines = tl.arange(0, B)
    steps = tl.arange(0, BK)
    each: tl.constexpr = B // BK
    start = tl.load(indptr + row) * each
    end = tl.load(indptr + row + 1) * each
    total = tl.zeros((B, BN), dtype=tl.float32)
    for t in range(start, end):
        e = t // each
        k = (t % each) * BK
        column = tl.load(indices + e)
        a = tl.load(values + e * (B * B) + lines[:, None] * B + k + steps[None, :])
        b = tl.load(x + (column * B + k + steps)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    place = (row * B + lines)[:, None] * N + columns[None, :]
    tl.store(out + place, total.to(tl.float16))


def triton_calls(m, x, out):
    b, n = m["b"], x.shape[1]
    wide = [w for w in ((64, 128, 256) if n >= 4096 else (32, 64, 128)) if w <= n]
    for bn in wide:
        for bk in sorted({min(b, 64), min(b, 32)} if b > 32 else {b}):
            for warps, stages in ((4, 3), (4, 5), (8, 3), (8, 4)):
                grid = (n // bn, x.shape[0] // b)

                def call(bn=bn, bk=bk, warps=warps, stages=stages, grid=grid):
                    product[grid](
                        m["indptr"], m["indices"], m["values"], x, out, n,
                        B=b, BN=bn, BK=bk, num_warps=warps, num_stages=stages,
                    )

                yield f"BN {bn}, BK {bk}, {warps} warps, {stages} stages", call


def torch_calls(m, x, out):
    b, n = m["b"], x.shape[1]
    wide = [w for w in ((64, 128, 256) if n >= 4096 else (32, 64, 128)) if w <= n]
    for bn in wide:
        for warps, stages in ((4, 2), (4, 3), (4, 4), (8, 3)):
            meta = dict(SPLIT_N=n // bn, GROUP_SIZE_ROW=4, num_warps=warps, num_stages=stages)

            def call(meta=meta):
                bsr_dense_addmm(out, m["bsr"], x, beta=0, out=out, meta=dict(meta))

            yield f"BN {bn}, {warps} warps, {stages} stages", call


PEERS = (("PyTorch BSR, tuned", torch_calls), ("Triton, tuned", triton_calls))


def read(case):
    size, b = case["size"], case["b"]
    raw = lambda part, dtype: np.fromfile(case["file"] + "-" + part, dtype=dtype)
    indptr = torch.from_numpy(raw("indptr", np.int32)).cuda()
    indices = torch.from_numpy(raw("indices", np.int32)).cuda()
    values = torch.from_numpy(raw("values", np.float16)).cuda().view(-1, b, b)
    bsr = torch.sparse_bsr_tensor(indptr, indices, values, size=(size, size))
    across = size // b
    dense = torch.zeros(across, b, across, b, dtype=torch.float16, device="cuda")
    rows = torch.repeat_interleave(torch.arange(across, device="cuda"), indptr.diff().long())
    dense[rows, :, indices.long(), :] = values
    return dict(b=b, indptr=indptr, indices=indices, values=values, bsr=bsr, dense=dense.view(size, size))


def verdict(out, dense, x):
    """The worst error as a share of the sum of magnitudes, and whether every element is within rounding."""
    a, b = dense.double(), x.double()
    want, scale = a @ b, a.abs() @ b.abs()
    off = (out.double() - want).abs()
    bound = scale * (2 * F32 + F32 * (8 + 2 * dense.shape[1] ** 0.5)) + F16 * want.abs()
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def warm(cases, b, n):
    case = next(c for c in cases["cases"] if c["b"] == b and c["width"] == n)
    m = read(case)
    x = torch.randn(case["size"], n, device="cuda", dtype=torch.float16)
    out = torch.empty_like(x)
    for _, calls in PEERS:
        for _, call in calls(m, x, out):
            try:
                call()
            except Exception:
                pass
    torch.cuda.synchronize()


def warm_all(path, cases):
    """Compiling takes a second for each configuration, and processes share what is compiled through the disk."""
    pairs = sorted({(c["b"], c["width"]) for c in cases["cases"]})
    command = lambda b, n: [sys.executable, __file__, path, "--warm", str(b), str(n)]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at_once = max(1, min(len(pairs), (os.cpu_count() or 2) // 2))
    for k in range(0, len(pairs), at_once):
        for p in [subprocess.Popen(command(*pair), **quiet) for pair in pairs[k : k + at_once]]:
            try:
                p.wait(timeout=120)
            except subprocess.TimeoutExpired:
                p.kill()


def main():
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    if "--warm" in sys.argv:
        at = sys.argv.index("--warm")
        warm(cases, int(sys.argv[at + 1]), int(sys.argv[at + 2]))
        return
    print(f"PyTorch {torch.__version__}, Triton {triton.__version__}", flush=True)
    warm_all(sys.argv[1], cases)
    clock = Clock()
    operand = torch.from_numpy(np.fromfile(os.path.join(cases["folder"], "operand"), dtype=np.float16)).cuda()
    for case in cases["cases"]:
        size, n = case["size"], case["width"]
        m = read(case)
        x = operand[: size * n].view(size, n)
        for name, calls in PEERS:
            out = torch.full((size, n), float("nan"), device="cuda", dtype=torch.float16)
            result = dict(id=case["id"], name=name, note="", error=None, times=None)
            try:
                config, call, tried = tuned(clock, calls(m, x, out))
                out.fill_(float("nan"))
                call()
                torch.cuda.synchronize()
                ok, result["error"] = verdict(out, m["dense"], x)
                result["facts"] = dict(configuration=config, tried=tried)
                if ok:
                    result["times"] = clock.measure(call)
                result["result"] = "ok" if ok else "wrong"
                result["note"] = "" if ok else "elements are not within rounding of float64"
            except Exception as error:
                result["result"] = "failed"
                result["note"] = str(error).strip().split("\n")[0][:300]
            print(json.dumps(result), flush=True)


main()
