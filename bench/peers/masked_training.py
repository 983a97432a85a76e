"""A step of training a linear layer under a mask with PyTorch, dense in f16 with f32 weights: the weights are multiplied by the mask in each
call, as are their gradients. In a graph and as calls, with what is elementwise by itself and compiled.

    python3 masked_training.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "tokens", "inputs", "outputs", "rate"}]}; the mask lies raw at FILE-mask
([outputs, inputs], f16). Times in microseconds.
"""

import math

import numpy as np
import torch

from clock import Clock, print_both, read_cases

F32 = 2.0**-24
F16 = 2.0**-11
ROWS = 256  # Tokens and outputs that are computed in f64.


class Step:
    """Operands of one case on the device: the sizes of all cases are the same."""

    def __init__(self, case):
        self.m, self.k, self.n, self.rate = (case[x] for x in ("tokens", "inputs", "outputs", "rate"))
        normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float16)
        self.X, self.T = normal(self.m, self.k), normal(self.m, self.n)
        self.drawn = normal(self.n, self.k).float() * (1.0007 / math.sqrt(self.k))
        self.W = self.drawn.clone()
        self.M = torch.empty(self.n, self.k, device="cuda", dtype=torch.float16)
        half = lambda *shape: torch.empty(*shape, device="cuda", dtype=torch.float16)
        self.Y, self.D, self.G = half(self.m, self.n), half(self.m, self.k), half(self.n, self.k)
        self.compiled = None

    def mask(self, case):
        self.M.copy_(torch.from_numpy(np.fromfile(f"{case['file']}-mask", dtype=np.float16)).view(self.n, self.k))

    def plain(self):
        V = (self.W * self.M).half()
        torch.mm(self.X, V.t(), out=self.Y)
        E = self.Y - self.T
        torch.mm(E, V, out=self.D)
        torch.mm(E.t(), self.X, out=self.G)
        self.W.addcmul_(self.G, self.M, value=-self.rate)

    def fused(self):
        keep, loss, update = self.compiled
        V = keep(self.W, self.M)
        torch.mm(self.X, V.t(), out=self.Y)
        E = loss(self.Y, self.T)
        torch.mm(E, V, out=self.D)
        torch.mm(E.t(), self.X, out=self.G)
        update(self.W, self.G, self.M)

    def whole(self):
        self.step(self.X, self.T, self.W, self.M, self.Y, self.D)

    def calls(self):
        self.W.copy_(self.drawn)
        yield "elementwise by themselves", self.plain
        if self.compiled is None:
            rate = self.rate

            def step(X, T, W, M, Y, D):
                V = (W * M).half()
                Y.copy_(X @ V.t())
                E = Y - T
                D.copy_(E @ V)
                W.sub_(rate * (E.t() @ X).float() * M)

            self.compiled = (
                torch.compile(lambda W, M: (W * M).half()),
                torch.compile(lambda Y, T: Y - T),
                torch.compile(lambda W, G, M: W.sub_(rate * G.float() * M)),
            )
            self.step = torch.compile(step)
        yield "elementwise compiled", self.fused
        yield "compiled", self.whole

    def right(self, call):
        """One step from the weights as drawn; G may be stored in f16."""
        self.W.copy_(self.drawn)
        for result in (self.Y, self.D):
            result.fill_(float("nan"))
        call()
        rounding = lambda length: 2 * F32 + F32 * (8 + 2 * math.sqrt(length))
        V = (self.drawn * self.M).half().double()
        X, T = self.X.double(), self.T.double()

        def error_of(x, v, target):
            y, scale = x @ v.t(), x.abs() @ v.abs().t()
            off = scale * rounding(self.k) + F16 * y.abs()
            return y, off, y - target, off + F16 * (y - target).abs()

        tokens, outputs = (torch.randperm(size, device="cuda")[:ROWS] for size in (self.m, self.n))
        y, off, e, e_off = error_of(X[tokens], V, T[tokens])
        d, scale = e @ V, e.abs() @ V.abs()
        checks = [(self.Y[tokens], y, off), (self.D[tokens], d, scale * rounding(self.n) + e_off @ V.abs() + F16 * d.abs())]
        _, _, e, e_off = error_of(X, V[outputs], T[:, outputs])
        g, scale = e.t() @ X, e.abs().t() @ X.abs()
        g_off = scale * rounding(self.m) + e_off.t() @ X.abs() + F16 * g.abs()
        before, mask = self.drawn[outputs].double(), self.M[outputs].double()
        step = self.rate * g * mask
        checks.append((self.W[outputs], before - step, self.rate * g_off * mask + 4 * F32 * (before.abs() + step.abs()) * mask))
        worst = 0.0
        for got, want, bound in checks:
            error = (got.double() - want).abs()
            if not bool((error <= bound).all()):
                return False, float(error.max())
            worst = max(worst, float((error / want.abs().max()).max()))
        return True, worst


def main():
    cases = read_cases()
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    clock = Clock()
    step = Step(cases[0])
    for case in cases:
        step.mask(case)
        print_both(clock, case, "PyTorch", step.calls, step.right)


if __name__ == "__main__":
    main()
