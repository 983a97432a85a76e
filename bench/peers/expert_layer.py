"""A layer of a mixture of experts from the logits of its router to the result, with PyTorch: topk, softmax, tokens sorted by expert, two
grouped products with a rectification between them, or padded ones, gates, and sums of each token.

    python3 expert_layer.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "experts", "tokens", "top", "inputs", "hidden", "outputs"}]}; logits lie raw at
FILE-logits (f32, [tokens, experts]). Times in microseconds. What waits for the device cannot be recorded: its times are those of calls.
"""

import numpy as np
import torch

from clock import Clock, print_fastest, read_cases

F32 = 2.0**-24
UNIT = {torch.float32: F32, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
# By a float32 exponential and a quotient.
GATE = 2.0**-18
SHORT = {torch.float16: "f16", torch.bfloat16: "bf16"}


class Layer:
    """Operands of one case on the device."""

    def __init__(self, case, dtype):
        self.experts, self.tokens, self.top = case["experts"], case["tokens"], case["top"]
        self.k, self.h, self.n = case["inputs"], case["hidden"], case["outputs"]
        logits = torch.from_numpy(np.fromfile(f"{case['file']}-logits", dtype=np.float32))
        self.logits = logits.view(self.tokens, self.experts).cuda()
        torch.manual_seed(1)
        normal = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype)
        self.dtype = dtype
        self.X = normal(self.tokens, self.k)
        self.U = normal(self.experts, self.k, self.h)
        self.D = normal(self.experts, self.h, self.n)
        self.ids = torch.arange(self.experts, device="cuda")
        self.places = torch.arange(self.tokens * self.top, device="cuda")

    def routed(self):
        """Gates by slot (a token's choices one after the other), experts in order, the slots they come from and those slots' tokens."""
        logits, experts = torch.topk(self.logits, self.top, dim=1)
        gates = torch.softmax(logits, 1).reshape(-1)
        inorder, slots = torch.sort(experts.reshape(-1))
        return gates, inorder, slots, torch.div(slots, self.top, rounding_mode="floor")


def endings(m, half):
    """How rows in the order of experts come to be rows of tokens; every element is written anew."""
    dtype = m.dtype if half else torch.float32
    Y = torch.full((m.tokens, m.n), float("nan"), device="cuda", dtype=dtype)
    by_slot = torch.empty(m.tokens * m.top, m.n, device="cuda", dtype=dtype)

    def weighed(Z, gates, slots):
        return Z.to(dtype) * gates[slots].to(dtype)[:, None]

    def added(Z, gates, slots, tokens):
        return Y.zero_().index_add_(0, tokens, weighed(Z, gates, slots))

    def copied(Z, gates, slots, tokens):
        by_slot.index_copy_(0, slots, weighed(Z, gates, slots))
        return by_slot if m.top == 1 else torch.sum(by_slot.view(m.tokens, m.top, m.n), 1, out=Y)

    yield "index_add", added
    yield "index_copy, sum", copied


def layouts(W):
    yield "by rows", W
    yield "by columns", W.transpose(1, 2).contiguous().transpose(1, 2)


def grouped(m, half):
    for (layout, U), (_, D) in zip(layouts(m.U), layouts(m.D)):
        for ending, end in endings(m, half):

            def call(U=U, D=D, end=end):
                gates, inorder, slots, tokens = m.routed()
                ends = torch.searchsorted(inorder, m.ids, right=True, out_int32=True)
                H = torch.relu_(torch._grouped_mm(m.X[tokens], U, offs=ends))
                return end(torch._grouped_mm(H, D, offs=ends), gates, slots, tokens)

            yield f"matrices {layout}, {ending}", call


def padded(m, half, capacity=None):
    """`capacity`: rows of an expert where the host knows them; otherwise it waits for them."""
    for ending, end in endings(m, half):

        def call(end=end):
            gates, inorder, slots, tokens = m.routed()
            starts = torch.searchsorted(inorder, m.ids)
            most = capacity
            if most is None:
                ends = torch.searchsorted(inorder, m.ids, right=True)
                most = int((ends - starts).max())
            place = inorder * most + (m.places - starts[inorder])
            # What is in no token's row reaches no token's row.
            rows = torch.empty(m.experts * most, m.k, device="cuda", dtype=m.dtype)
            rows.index_copy_(0, place, m.X[tokens])
            H = torch.relu_(torch.bmm(rows.view(m.experts, most, m.k), m.U))
            Z = torch.bmm(H, m.D).view(-1, m.n)
            return end(Z[place], gates, slots, tokens)

        yield ending, call


def expected(m):
    """In f64 the result, the sums of magnitudes, and what it may be off by before it is stored."""
    logits, experts = torch.topk(m.logits, m.top, dim=1)
    gates = torch.softmax(logits.double(), 1)
    want, scale, bound = (torch.zeros(m.tokens, m.n, dtype=torch.float64, device="cuda") for _ in range(3))
    unit = UNIT[m.dtype]
    rounding = lambda length: F32 * (10 + 2 * length**0.5)
    for e in range(m.experts):
        tokens, which = (experts == e).nonzero(as_tuple=True)
        if len(tokens) == 0:
            continue
        x, u, d, g = m.X[tokens].double(), m.U[e].double(), m.D[e].double(), gates[tokens, which][:, None]
        h = (x @ u).clamp_min(0)
        off = (x.abs() @ u.abs()) * rounding(m.k) + 2 * unit * h
        z, s = h @ d, h @ d.abs()
        want.index_add_(0, tokens, g * z)
        scale.index_add_(0, tokens, g * s)
        # Products of groups are stored in the type of the factors.
        bound.index_add_(0, tokens, g * (s * rounding(m.h) + off @ d.abs() + (2 * unit + GATE) * z.abs()))
    return want, scale, bound


def right(m, Y, reference):
    want, scale, bound = reference
    off = (Y.double() - want).abs()
    if Y.dtype != torch.float32:
        bound = bound + (2 + m.top) * UNIT[Y.dtype] * scale
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def most(m):
    experts = torch.topk(m.logits, m.top, dim=1).indices
    return int(torch.bincount(experts.reshape(-1), minlength=m.experts).max())


def run(clock, case, dtype, peers):
    m = Layer(case, dtype)
    reference = expected(m)
    for what, calls, recorded in peers(m):
        for half in (False, True):
            name = f"PyTorch {what}, {SHORT[dtype]}{', sums too' if half else ''}{', recorded' if recorded else ''}"
            check = lambda call: right(m, call(), reference)
            print_fastest(clock, case, name, lambda: calls(half), check, recorded)
    del m, reference
    torch.cuda.empty_cache()


def usual(m):
    if hasattr(torch, "_grouped_mm"):
        yield "grouped_mm", lambda half: grouped(m, half), False
        if m.dtype == torch.bfloat16:
            yield "grouped_mm", lambda half: grouped(m, half), True
    yield "padded bmm", lambda half: padded(m, half), False
    capacity = most(m)
    yield "padded bmm of known sizes", lambda half: padded(m, half, capacity), True


def refused(m):
    """The grouped product of f16 waits for the host in some versions: a recording that fails may leave nothing usable behind."""
    if hasattr(torch, "_grouped_mm"):
        yield "grouped_mm", lambda half: grouped(m, half), True


def main():
    cases = read_cases()
    clock = Clock()
    for case in cases:
        for dtype in (torch.bfloat16, torch.float16):
            run(clock, case, dtype, usual)
    for case in cases:
        run(clock, case, torch.float16, refused)


if __name__ == "__main__":
    main()
