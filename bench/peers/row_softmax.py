"""Softmax of each row of a sparse matrix over its stored elements, in f32, with PyTorch.

    python3 row_softmax.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "rows", "columns"}]}; the matrix lies raw at FILE-indptr and
FILE-indices (i32) and FILE-values (f32). Times in microseconds. torch.sparse.softmax takes coordinates and waits for the
device, so that it cannot be recorded: its times are those of calls. segment_reduce works on rows.
"""

import numpy as np
import torch

from clock import Clock, checked, print_result, read_cases

F32 = 2.0**-24


def read(case):
    raw = lambda part, dtype: torch.from_numpy(np.fromfile(case["file"] + "-" + part, dtype=dtype)).cuda()
    indptr, indices, values = raw("indptr", np.int32).long(), raw("indices", np.int32).long(), raw("values", np.float32)
    rows = torch.repeat_interleave(torch.arange(case["rows"], device="cuda"), indptr.diff())
    return dict(indptr=indptr, indices=indices, values=values, rows=rows, size=(case["rows"], case["columns"]))


def expected(m):
    a, rows, count = m["values"].double(), m["rows"], m["size"][0]
    largest = torch.full((count,), -torch.inf, dtype=torch.float64, device="cuda")
    largest.scatter_reduce_(0, rows, a, "amax")
    off = a - largest[rows]
    weights = off.exp()
    total = torch.zeros(count, dtype=torch.float64, device="cuda").index_add_(0, rows, weights)
    lengths = m["indptr"].diff()[rows].double()
    return weights / total[rows], F32 * (16 + 2 * off.abs() + 2 * lengths.sqrt())


def by_coordinates(m):
    x = torch.sparse_coo_tensor(torch.stack((m["rows"], m["indices"])), m["values"], m["size"], is_coalesced=True)
    return lambda: torch.sparse.softmax(x, 1)._values(), False


def by_segments(m):
    offsets, rows, a = m["indptr"], m["rows"], m["values"]
    reduce = lambda data, how: torch.segment_reduce(data, how, offsets=offsets, unsafe=True)

    def call():
        weights = torch.exp(a - reduce(a, "max")[rows])
        return weights / reduce(weights, "sum")[rows]

    return call, True


PEERS = (("PyTorch segment_reduce", by_segments), ("torch.sparse.softmax, not recorded", by_coordinates))


def main():
    cases = read_cases()
    clock = Clock()
    for case in cases:
        m = read(case)
        want, bound = expected(m)

        def check(call):
            off = (call().double() - want).abs()
            return bool((off <= bound * want + 1e-37).all()), float(off.max()) if len(off) else 0.0

        for name, peer in PEERS:

            def measured(result):
                call, recorded = peer(m)
                return checked(result, call, check, lambda call: clock.measure(call, recorded))

            print_result(case, name, measured)
        del m, want, bound


if __name__ == "__main__":
    main()
