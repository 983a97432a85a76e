"""Which tiles of a dense f16 matrix hold anything, as lists, with PyTorch.

    python3 tile_lists.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "rows", "columns", "high", "wide"}]}; the matrix lies raw at FILE-values
(f16), tiles are high x wide. All of them wait for the device, so that they cannot be recorded: times, in microseconds, are
those of calls.
"""

import numpy as np
import torch

from clock import Clock, checked, print_result, read_cases


def held(a, case):
    rows, columns, high, wide = (case[k] for k in ("rows", "columns", "high", "wide"))
    if high == wide == 1:
        return a != 0
    return (a.view(rows // high, high, columns // wide, wide) != 0).any(3).any(1)


def by_nonzero(a, case):
    return lambda: held(a, case).nonzero()


def as_csr(a, case):
    if case["high"] * case["wide"] > 1:
        return None
    return lambda: a.to_sparse_csr()


def as_bsr(a, case):
    if case["high"] * case["wide"] == 1:
        return None
    return lambda: a.to_sparse_bsr((case["high"], case["wide"]))


def coordinates(found):
    """Sorted by rows, whichever way they are stored."""
    if found.layout == torch.strided:
        return found
    indptr, columns = found.crow_indices(), found.col_indices()
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1, device="cuda"), indptr.diff())
    return torch.stack((rows, columns.long()), 1)


PEERS = (("PyTorch any, nonzero", by_nonzero), ("PyTorch to_sparse_csr", as_csr), ("PyTorch to_sparse_bsr", as_bsr))


def main():
    cases = read_cases()
    clock = Clock()
    for case in cases:
        values = torch.from_numpy(np.fromfile(case["file"] + "-values", dtype=np.float16))
        a = values.view(case["rows"], case["columns"]).cuda()
        want = np.argwhere(held(values.view(case["rows"], case["columns"]), case).numpy())
        check = lambda call: (np.array_equal(coordinates(call()).cpu().numpy(), want), 0.0)
        for name, peer in PEERS:
            call = peer(a, case)
            if call is None:
                continue
            print_result(case, name, lambda result: checked(result, call, check, clock.measure_calls))
        del a


if __name__ == "__main__":
    main()
