"""Rows gathered, multiplied by the matrix of their group, weighted and added up, with PyTorch: relational layers, sparse
convolutions (whose pairs have no weights), tokens of experts with gates.

    python3 grouped.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "kind", "groups", "rows", "columns", "inputs", "outputs", "type"}]}; pairs
lie raw, sorted by group, at FILE-groups, FILE-rows, FILE-columns (i32) and FILE-values (f32). Times in microseconds. The
grouped product of f16 waits for the device, so that it cannot be recorded: its times are those of calls.
"""

import numpy as np
import torch

from clock import Clock, print_fastest, read_cases

UNIT = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
TYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)
# Rows of one group that are multiplied together.
TILES = (32, 64, 128)
# More products than these, one after the other, are no contest.
FEW_GROUPS = 64
# Bytes that X W of all groups may take.
MOST = 4e10


class Case:
    """Pairs and factors of one case on the device."""

    def __init__(self, case):
        raw = lambda part, dtype: torch.from_numpy(np.fromfile(f"{case['file']}-{part}", dtype=dtype)).cuda()
        self.kind = case["kind"]
        self.groups, self.rows, self.columns = case["groups"], case["rows"], case["columns"]
        self.inputs, self.outputs = case["inputs"], case["outputs"]
        self.g, self.i, self.j = (raw(part, np.int32).long() for part in ("groups", "rows", "columns"))
        self.pairs = len(self.g)
        self.weighted = self.kind != "offsets"
        self.v = raw("values", np.float32)[:, None] if self.weighted else None
        self.sizes = torch.bincount(self.g, minlength=self.groups)
        self.ends = torch.cumsum(self.sizes, 0)
        # Known to the host: what products one by one need.
        bounds = [0, *self.ends.tolist()]
        self.spans = [(k, a, b) for k, (a, b) in enumerate(zip(bounds, bounds[1:])) if a < b]
        # Each row has one pair.
        self.single = len(torch.unique(self.i)) == self.pairs == self.rows
        self.type = TYPES[case["type"]]

    def factors(self, dtype):
        torch.manual_seed(1)
        X = torch.randn(self.columns, self.inputs, device="cuda", dtype=dtype)
        W = torch.randn(self.groups, self.inputs, self.outputs, device="cuda", dtype=dtype)
        return X, W


def weigh(H, weight, dtype):
    """Rows of pairs in the type of what they are added to."""
    return H.to(dtype) if weight is None else H * weight


def by_tiles(m, X, W, half):
    """Tiles of as many rows, padded, and a batched product with a copy of the matrix for each."""
    for s in TILES:
        tiles = (m.sizes + s - 1) // s
        count = int(tiles.sum())
        group = torch.repeat_interleave(torch.arange(m.groups, device="cuda"), tiles)
        first = torch.cumsum(tiles, 0) - tiles
        slot = first[m.g] * s + torch.arange(m.pairs, device="cuda") - (m.ends - m.sizes)[m.g]
        fill = lambda x, rest: torch.full((count * s, *x.shape[1:]), rest, dtype=x.dtype, device="cuda").index_put_((slot,), x)
        # Padding is added to a row more.
        source, target = fill(m.j, 0), fill(m.i, m.rows)
        Y = torch.empty(m.rows + 1, m.outputs, device="cuda", dtype=X.dtype if half else torch.float32)
        weight = fill(m.v.to(Y.dtype), 0.0) if m.weighted else None

        def call(s=s, count=count, group=group, source=source, target=target, weight=weight, Y=Y):
            H = torch.bmm(X[source].view(count, s, m.inputs), W[group]).view(-1, m.outputs)
            return Y.zero_().index_add_(0, target, weigh(H, weight, Y.dtype))[: m.rows]

        yield f"{s} rows a tile", call


def transformed(m, X, W, half):
    """X times all matrices, and one sparse product, whose rows are those of Y."""
    order = torch.argsort(m.i, stable=True)
    starts = torch.zeros(m.rows + 1, dtype=torch.int32, device="cuda")
    starts[1:] = torch.cumsum(torch.bincount(m.i, minlength=m.rows), 0)
    values = m.v[order, 0] if m.weighted else torch.ones(m.pairs, device="cuda")
    columns = (m.g * m.columns + m.j)[order].int()
    S = torch.sparse_csr_tensor(starts, columns, values, size=(m.rows, m.groups * m.columns))
    yield "CSR", lambda: S @ torch.matmul(X, W).view(-1, m.outputs)


def layouts(W):
    yield "W by rows", W
    yield "W by columns", W.transpose(1, 2).contiguous().transpose(1, 2)


def endings(m, dtype, half):
    """How rows of all pairs come to be rows of the result."""
    Y = torch.full((m.rows, m.outputs), float("nan"), device="cuda", dtype=dtype if half else torch.float32)
    weight = m.v.to(Y.dtype) if m.weighted else None
    if m.single:
        yield "index_copy", lambda H: Y.index_copy_(0, m.i, weigh(H, weight, Y.dtype))
    yield "index_add", lambda H: Y.zero_().index_add_(0, m.i, weigh(H, weight, Y.dtype))


def by_groups(m, X, W, half):
    """All rows gathered and one product of groups."""
    offsets = m.ends.to(torch.int32)
    for layout, matrices in layouts(W):
        for ending, end in endings(m, X.dtype, half):
            yield f"{layout}, {ending}", lambda matrices=matrices, end=end: end(torch._grouped_mm(X[m.j], matrices, offs=offsets))


def one_by_one(m, X, W, half):
    """All rows gathered and a product for each group, whose sizes the host knows."""
    H = torch.empty(m.pairs, m.outputs, device="cuda", dtype=X.dtype)
    for layout, matrices in layouts(W):
        for ending, end in endings(m, X.dtype, half):

            def call(matrices=matrices, end=end):
                rows = X[m.j]
                for k, a, b in m.spans:
                    torch.mm(rows[a:b], matrices[k], out=H[a:b])
                return end(H)

            yield f"{layout}, {ending}", call


F32 = torch.float32
# Names, calls, for which cases and types, and which types can be recorded.
PEERS = (
    ("tiles and bmm", by_tiles, lambda m, dtype: m.kind != "experts", lambda dtype: True),
    (
        "X W of all groups, cuSPARSE",
        transformed,
        lambda m, dtype: dtype == F32 and 4.0 * m.groups * m.columns * m.outputs <= MOST,
        lambda dtype: True,
    ),
    (
        "grouped_mm",
        by_groups,
        lambda m, dtype: dtype != F32 and hasattr(torch, "_grouped_mm"),
        lambda dtype: dtype != torch.float16,
    ),
    ("mm for each group", one_by_one, lambda m, dtype: m.groups <= FEW_GROUPS, lambda dtype: True),
)


def expected(m, X, W):
    """In f64 the result, the sums of magnitudes of products, those of pairs' rows, and how many pairs a row has."""
    shape = dict(size=(m.rows, m.outputs), dtype=torch.float64, device="cuda")
    want, scale, rows = (torch.zeros(**shape) for _ in range(3))
    for k, a, b in m.spans:
        x, w, i = X[m.j[a:b]].double(), W[k].double(), m.i[a:b]
        v = m.v[a:b].double() if m.weighted else torch.ones(b - a, 1, dtype=torch.float64, device="cuda")
        h = x @ w * v
        want.index_add_(0, i, h)
        rows.index_add_(0, i, h.abs())
        scale.index_add_(0, i, x.abs() @ w.abs() * v.abs())
    return want, scale, rows, torch.bincount(m.i, minlength=m.rows)[:, None].double()


def right(m, Y, X, reference):
    """Whether every element is within rounding of the types, and the worst error as a share of the sum of magnitudes."""
    want, scale, rows, count = reference
    off = (Y.double() - want).abs()
    f32, unit = UNIT[torch.float32], UNIT[X.dtype]
    bound = scale * f32 * (10 + 2 * (count * m.inputs).sqrt())
    if X.dtype != torch.float32:
        # Products of groups are stored in the type of the factors, where libraries may add parts of sums up, too.
        bound = bound + 4 * unit * (rows + scale / m.inputs**0.5)
    if Y.dtype != torch.float32:
        bound = bound + (2 + count) * unit * rows
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def measure(clock, case, m, dtype):
    X, W = m.factors(dtype)
    reference = expected(m, X, W)
    for label, calls, applies, recorded in PEERS:
        if not applies(m, dtype):
            continue
        for half in (False,) if dtype == F32 else (False, True):
            graph = recorded(dtype)
            other = "" if dtype == m.type else f", {str(dtype)[6:]}"
            name = f"PyTorch {label}{other}{', all half' if half else ''}{'' if graph else ', not recorded'}"
            check = lambda call: right(m, call(), X, reference)
            print_fastest(clock, case, name, lambda: calls(m, X, W, half), check, graph)


def main():
    cases = read_cases()
    clock = Clock()
    for case in cases:
        m = Case(case)
        measure(clock, case, m, m.type)
        # What is not recorded of f16 has its like in the other type of as many bits.
        if m.kind == "experts" and m.type == torch.float16:
            measure(clock, case, m, torch.bfloat16)
        del m
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
