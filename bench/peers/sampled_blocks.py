"""Sampled dense x dense into dense blocks, in f16 with f32 sums: PyTorch and a Triton kernel, for each case.

How it is called and what it prints: blocks.py. The pattern lies raw at FILE-indptr and FILE-indices (i32), the factors at
FOLDER/X and FOLDER/Y (f16); a case's width is its depth.
"""
import numpy as np
import torch
import triton
import triton.language as tl
from torch.sparse import _triton_ops

from blocks import dense, raw, run, unwritten


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


def read(cases, case):
    size, b = case["size"], case["b"]
    indptr, indices = (raw(f"{case['file']}-{part}", np.int32) for part in ("indptr", "indices"))
    rows = torch.repeat_interleave(torch.arange(size // b, device="cuda"), indptr.diff().long()).int()
    values = torch.zeros(len(indices), b, b, dtype=torch.float16, device="cuda")
    bsr = torch.sparse_bsr_tensor(indptr, indices, values, size=(size, size))
    return dict(b=b, rows=rows, columns=indices, bsr=bsr), dense(cases, case, "X"), dense(cases, case, "Y")


def empty(m, x, y):
    return unwritten(len(m["rows"]), m["b"], m["b"])


def expected(m, x, y):
    b = m["b"]
    across = x.shape[0] // b
    pick = lambda whole: whole.view(across, b, across, b).permute(0, 2, 1, 3)[m["rows"].long(), m["columns"].long()]
    x, y = x.double(), y.double().t()
    return pick(x @ y), pick(x.abs() @ y.abs()), x.shape[1]


if __name__ == "__main__":
    run(PEERS, read, empty, expected)
