"""Two layers in f16 with a rectification between them, relu(X U^T) D, dense, with PyTorch: in a graph and as calls, with the maximum by
itself, in the epilogue of the library's product and compiled, and with what is hidden either way round.

    python3 rectified_layer.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "kept", "tokens", "inputs", "hidden", "outputs"}]}; the first `kept` inputs, which
decide what is zero, lie raw at FILE-x ([tokens, kept], f16) and FILE-u ([hidden, kept], f16). Times in microseconds.
"""

import math

import numpy as np
import torch

from clock import Clock, print_both, read_cases

F32 = 2.0**-24
F16 = 2.0**-11
ROWS = 256  # Rows of results that are computed in f64.


class Layer:
    """Operands of one case on the device: the sizes of all cases are the same."""

    def __init__(self, case):
        self.m, self.k, self.h, self.n = (case[x] for x in ("tokens", "inputs", "hidden", "outputs"))
        normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float16)
        self.X, self.D = normal(self.m, self.k), normal(self.h, self.n)
        self.U = normal(self.h, self.k) / math.sqrt(self.k)
        self.none = torch.zeros(self.h, device="cuda", dtype=torch.float16)
        self.Y = torch.empty(self.m, self.n, device="cuda", dtype=torch.float16)
        self.compiled = None
        self.before = (self.X.clone(), self.U[:, : min(self.k, 512)].clone())

    def decide(self, case):
        kept = case["kept"]
        raw = lambda part: torch.from_numpy(np.fromfile(f"{case['file']}-{part}", dtype=np.float16)).view(-1, kept).cuda()
        self.X.copy_(self.before[0])
        self.U[:, : self.before[1].shape[1]] = self.before[1]
        self.X[:, :kept], self.U[:, :kept] = raw("x"), raw("u")

    def plain(self):
        return torch.mm(torch.relu_(torch.mm(self.X, self.U.t())), self.D, out=self.Y)

    def fused(self):
        return torch.mm(torch._addmm_activation(self.none, self.X, self.U.t(), use_gelu=False), self.D, out=self.Y)

    def turned(self):
        return torch.mm(torch.relu_(torch.mm(self.U, self.X.t())).t(), self.D, out=self.Y)

    def calls(self):
        yield "ReLU by itself", self.plain
        yield "ReLU in the epilogue", self.fused
        yield "ReLU by itself, H by neurons", self.turned
        if self.compiled is None:
            self.compiled = torch.compile(lambda x, u, d: torch.relu(x @ u.t()) @ d)
        yield "compiled", lambda: self.compiled(self.X, self.U, self.D)

    def right(self, call):
        self.Y.fill_(float("nan"))
        got = call()
        rows = torch.randperm(self.m, device="cuda")[:ROWS]
        x, u, d = self.X[rows].double(), self.U.t().double(), self.D.double()
        rounding = lambda length: 2 * F32 + F32 * (8 + 2 * math.sqrt(length))
        hidden = (x @ u).clamp_min(0)
        off = (x.abs() @ u.abs()) * rounding(self.k) + 2 * F16 * hidden
        want, scale = hidden @ d, hidden @ d.abs()
        bound = scale * rounding(self.h) + off @ d.abs() + F16 * want.abs()
        error = (got[rows].double() - want).abs()
        return bool((error <= bound).all()), float((error / scale.clamp_min(1e-30)).max())


def main():
    cases = read_cases()
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    clock = Clock()
    layer = Layer(cases[0])
    for case in cases:
        layer.decide(case)
        print_both(clock, case, "PyTorch", layer.calls, layer.right)


if __name__ == "__main__":
    main()
