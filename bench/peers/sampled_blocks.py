"""Sampled dense x dense into dense blocks, in f16 with f32 sums: PyTorch and a Triton kernel, for each case.

    python3 sampled_blocks.py CASES.json              one line of JSON for each result
    python3 sampled_blocks.py CASES.json --warm B K   only compiles what that block size and depth need

CASES.json: {"folder", "quick", "cases": [{"id", "file", "size", "b", "width"}]}; the pattern lies raw at FILE-indptr and
FILE-indices (i32), the factors at FOLDER/X and FOLDER/Y (f16, size x width of each case, from the start). Calls are
recorded in a graph between two events; times in microseconds.
"""
import json
import os
import subprocess
import sys

import numpy as np
import torch
import triton
import triton.language as tl
from torch.sparse import _triton_ops

from clock import Clock, tuned

F32 = 2.0**-24
F16 = 2.0**-11


@triton.jit
def sample(rows, columns, x, y, out, K, B: tl.constexpr, BK: tl.constexpr):
    """A stored block; K in steps of BK."""
    e = tl.program_id(0)
    lines = tl.arange(0, B)
    steps = tl.arange(0, BK)
    left = x + (tl.load(rows + e) * B + lines)[:, None] * K + steps[None, :]
    right = y + (tl.load(columns + e) * B + lines)[None, :] * K + steps[:, None]
    total = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(tl.load(left + k), tl.load(right + k), total)
    tl.store(out + e * (B * B) + lines[:, None] * B + lines[None, :], total.to(tl.float16))


def triton_calls(m, x, y, out):
    b, k = m["b"], x.shape[1]
    for bk in (32, 64, 128):
        if k % bk:
            continue
        for warps, stages in ((1, 4), (2, 4), (4, 3), (4, 4), (8, 3)):

            def call(bk=bk, warps=warps, stages=stages):
                sample[(len(m["rows"]),)](
                    m["rows"], m["columns"], x, y, out, k, B=b, BK=bk, num_warps=warps, num_stages=stages
                )

            yield f"BK {bk}, {warps} warps, {stages} stages", call


def torch_calls(m, x, y, out):
    bsr, t = m["bsr"], y.t()
    target = torch.sparse_bsr_tensor(bsr.crow_indices(), bsr.col_indices(), out, size=bsr.shape)
    yield "beta 0", lambda: _triton_ops.sampled_addmm(bsr, x, t, beta=0.0, out=target, skip_checks=True)


def dense_calls(m, x, y, out):
    size, b = x.shape[0], m["b"]
    across = size // b
    whole = torch.empty(size, size, dtype=torch.float16, device="cuda")
    tiles = whole.view(across, b, across, b).permute(0, 2, 1, 3)
    rows, columns = m["rows"].long(), m["columns"].long()

    def call():
        torch.mm(x, y.t(), out=whole)
        out.copy_(tiles[rows, columns])

    yield "mm and gather", call


PEERS = (
    ("PyTorch dense product, blocks gathered", dense_calls),
    ("PyTorch sampled_addmm of BSR", torch_calls),
    ("Triton, tuned", triton_calls),
)


def read(case):
    size, b = case["size"], case["b"]
    raw = lambda part: torch.from_numpy(np.fromfile(case["file"] + "-" + part, dtype=np.int32)).cuda()
    indptr, indices = raw("indptr"), raw("indices")
    rows = torch.repeat_interleave(torch.arange(size // b, device="cuda"), indptr.diff().long()).int()
    values = torch.zeros(len(indices), b, b, dtype=torch.float16, device="cuda")
    bsr = torch.sparse_bsr_tensor(indptr, indices, values, size=(size, size))
    return dict(b=b, rows=rows, columns=indices, bsr=bsr)


def factors(cases, case):
    count = case["size"] * case["width"]
    raw = lambda name: np.fromfile(os.path.join(cases["folder"], name), dtype=np.float16, count=count)
    return [torch.from_numpy(raw(name)).cuda().view(case["size"], case["width"]) for name in ("X", "Y")]


def verdict(m, x, y, out):
    """The worst error as a share of the sum of magnitudes, and whether every element is within rounding."""
    b = m["b"]
    across = x.shape[0] // b
    pick = lambda whole: whole.view(across, b, across, b).permute(0, 2, 1, 3)[m["rows"].long(), m["columns"].long()]
    want = pick(x.double() @ y.double().t())
    scale = pick(x.double().abs() @ y.double().abs().t())
    off = (out.double() - want).abs()
    bound = scale * (2 * F32 + F32 * (8 + 2 * x.shape[1] ** 0.5)) + F16 * want.abs()
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def empty(m):
    b = m["b"]
    return torch.full((len(m["rows"]), b, b), float("nan"), device="cuda", dtype=torch.float16)


def warm(cases, b, width):
    case = next(c for c in cases["cases"] if c["b"] == b and c["width"] == width)
    m = read(case)
    x, y = factors(cases, case)
    for _, calls in PEERS[1:]:
        for _, call in calls(m, x, y, empty(m)):
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
    for case in cases["cases"]:
        m = read(case)
        x, y = factors(cases, case)
        for name, calls in PEERS:
            out = empty(m)
            result = dict(id=case["id"], name=name, note="", error=None, times=None)
            try:
                config, call, tried = tuned(clock, calls(m, x, y, out))
                out.fill_(float("nan"))
                call()
                torch.cuda.synchronize()
                ok, result["error"] = verdict(m, x, y, out)
                result["facts"] = dict(configuration=config, tried=tried)
                if ok:
                    result["times"] = clock.measure(call)
                result["result"] = "ok" if ok else "wrong"
                result["note"] = "" if ok else "elements are not within rounding of float64"
            except Exception as error:
                result["result"] = "failed"
                result["note"] = str(error).strip().split("\n")[0][:300]
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
