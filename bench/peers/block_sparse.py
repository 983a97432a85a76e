"""Block-sparse x dense in f16 with f32 sums: PyTorch's BSR product and a Triton kernel, both tuned for each case.

How it is called and what it prints: blocks.py. Arrays lie raw at FILE-indptr and FILE-indices (i32) and FILE-values (f16),
the dense operand at FOLDER/operand (f16).
"""
import numpy as np
import torch
import triton
import triton.language as tl
from torch.sparse._triton_ops import bsr_dense_addmm

from blocks import dense, raw, run, unwritten


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


def read(cases, case):
    size, b = case["size"], case["b"]
    indptr, indices = (raw(f"{case['file']}-{part}", np.int32) for part in ("indptr", "indices"))
    values = raw(f"{case['file']}-values", np.float16).view(-1, b, b)
    bsr = torch.sparse_bsr_tensor(indptr, indices, values, size=(size, size))
    across = size // b
    whole = torch.zeros(across, b, across, b, dtype=torch.float16, device="cuda")
    rows = torch.repeat_interleave(torch.arange(across, device="cuda"), indptr.diff().long())
    whole[rows, :, indices.long(), :] = values
    m = dict(b=b, indptr=indptr, indices=indices, values=values, bsr=bsr, dense=whole.view(size, size))
    return m, dense(cases, case, "operand")


def empty(m, x):
    return unwritten(*x.shape)


def expected(m, x):
    a, b = m["dense"].double(), x.double()
    return a @ b, a.abs() @ b.abs(), a.shape[1]


if __name__ == "__main__":
    run(PEERS, read, empty, expected)
