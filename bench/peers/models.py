"""Whole steps of models with PyTorch and PyG: recorded as a CUDA graph, and as calls.

    python3 models.py CASES.json    one line of JSON for each result

CASES.json: {"cases": [{"id", "file", "model", "sizes", "results"}]}; inputs lie raw at FILE-NAME, the results of sparsetile at
FILE-ours-NAME. Each step is computed in float64 first; both its own results and those of sparsetile are compared with that.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import FastRGCNConv, RGCNConv, SAGEConv
from torch_geometric.utils import to_torch_csr_tensor

from clock import Clock, print_fastest, print_result, read_cases

TOLERANCE = 2e-4  # Of the largest value: sums in f32 in another order.


def array(case, name, *shape):
    kind = np.float32 if shape else np.int32
    found = torch.from_numpy(np.fromfile(f"{case['file']}-{name}", dtype=kind)).cuda()
    return found.view(shape) if shape else found.long()


def worst(got, want):
    """The largest difference of several tensors, relative to the largest value of each."""
    return max(float((g.double().flatten() - w.flatten()).abs().max() / w.abs().max().clamp_min(1e-30)) for g, w in zip(got, want))


class GraphSage:
    """Loss and gradients of all weights; sparse products by `torch.sparse`, by `index_add`, and by the layers of PyG."""

    def __init__(self, case):
        n, d, h, c = (case["sizes"][x] for x in "ndhc")
        self.edges = torch.stack([array(case, "columns"), array(case, "rows")])
        self.X, self.T = array(case, "X", n, d), array(case, "T", n, c)
        shapes = dict(W1=(d, h), N1=(d, h), b1=(h,), W2=(h, c), N2=(h, c), b2=(c,))
        self.weights = [array(case, name, *shape).requires_grad_() for name, shape in shapes.items()]
        self.kept = self.T.sum(1).nonzero().flatten()
        self.labels = self.T.argmax(1)[self.kept]
        degrees = torch.zeros(n, device="cuda").index_add_(0, self.edges[1], torch.ones_like(self.edges[1], dtype=torch.float))
        values = (1 / degrees)[self.edges[1]]
        self.A = torch.sparse_coo_tensor(self.edges.flip(0), values, (n, n)).coalesce().to_sparse_csr()
        self.At = self.A.to_sparse_coo().t().coalesce().to_sparse_csr()
        self.csr = to_torch_csr_tensor(self.edges, size=(n, n)).t().to_sparse_csr()
        self.layers = [SAGEConv(d, h).cuda(), SAGEConv(h, c).cuda()]
        with torch.no_grad():
            for layer, (W, N, b) in zip(self.layers, (self.weights[:3], self.weights[3:])):
                layer.lin_r.weight.copy_(W.t()), layer.lin_l.weight.copy_(N.t()), layer.lin_l.bias.copy_(b)
        # After the transformation, which is cheaper: A (X N) in place of (A X) N.
        mul = torch.autograd.Function
        A, At = self.A, self.At

        class Aggregate(mul):
            @staticmethod
            def forward(ctx, x):
                return A @ x

            @staticmethod
            def backward(ctx, g):
                return At @ g

        self.aggregate = Aggregate.apply

    def loss(self, Z):
        return F.cross_entropy(Z[self.kept], self.labels, reduction="sum")

    def by_hand(self):
        W1, N1, b1, W2, N2, b2 = self.weights
        H = torch.relu(self.X @ W1 + self.aggregate(self.X @ N1) + b1)
        loss = self.loss(H @ W2 + self.aggregate(H @ N2) + b2)
        return [loss, *torch.autograd.grad(loss, self.weights)]

    def with_pyg(self, graph):
        first, second = self.layers
        loss = self.loss(second(torch.relu(first(self.X, graph)), graph))
        parameters = [p for l in self.layers for p in (l.lin_r.weight, l.lin_l.weight, l.lin_l.bias)]
        grads = torch.autograd.grad(loss, parameters)
        return [loss, *(g.t() if g.dim() == 2 else g for g in grads)]

    def expected(self):
        W1, N1, b1, W2, N2, b2 = weights = [w.detach().double().requires_grad_() for w in self.weights]
        dense = self.A.to_dense().double()
        H = torch.relu(self.X.double() @ W1 + dense @ (self.X.double() @ N1) + b1)
        loss = self.loss(H @ W2 + dense @ (H @ N2) + b2)
        return [t.detach() for t in (loss, *torch.autograd.grad(loss, weights))]

    def peers(self):
        yield "PyG, edge list", lambda: self.with_pyg(self.edges)
        yield "PyG, CSR", lambda: self.with_pyg(self.csr)
        yield "PyTorch, products first", self.by_hand


class Rgcn:
    """Two layers; PyG's layers, and the sums by hand in the order that suits few edges."""

    def __init__(self, case):
        n, r, d = (case["sizes"][x] for x in ("n", "relations", "d"))
        self.n, self.r, self.d = n, r, d
        self.rel, self.dst, self.src = (array(case, x) for x in ("rel", "dst", "src"))
        order = torch.argsort(self.rel, stable=True)
        self.rel, self.dst, self.src = (x[order] for x in (self.rel, self.dst, self.src))
        self.X = array(case, "X", n, d)
        self.W = [array(case, f"W{k}", r, d, d) for k in (1, 2)]
        self.R = [array(case, f"R{k}", d, d) for k in (1, 2)]
        self.edges = torch.stack([self.src, self.dst])
        key = self.rel * n + self.dst
        counts = torch.zeros(r * n, device="cuda").index_add_(0, key, torch.ones_like(key, dtype=torch.float))
        self.values = 1 / counts[key]
        self.offsets = torch.searchsorted(self.rel, torch.arange(1, r + 1, device="cuda")).to(torch.int32)
        self.layers = {}
        for kind in (RGCNConv, FastRGCNConv):
            self.layers[kind] = [kind(d, d, r, bias=False).cuda() for _ in self.W]
            with torch.no_grad():
                for layer, W, R in zip(self.layers[kind], self.W, self.R):
                    layer.weight.copy_(W), layer.root.copy_(R)

    @torch.no_grad()
    def with_pyg(self, kind):
        first, second = self.layers[kind]
        return [second(torch.relu(first(self.X, self.edges, self.rel)), self.edges, self.rel)]

    def sums(self, X, W, values):
        """All products first, then one sparse product over pairs of relation and node."""
        T = torch.matmul(X, W).view(self.r * self.n, self.d)
        return torch.zeros_like(X).index_add_(0, self.dst, T[self.rel * self.n + self.src] * values[:, None])

    def grouped(self, X, W, values):
        """Edges sorted by relation: a padded product would not fit, so a product per edge from its relation's weights."""
        messages = torch.bmm(X[self.src].unsqueeze(1), W[self.rel]).squeeze(1)
        return torch.zeros_like(X).index_add_(0, self.dst, messages * values[:, None])

    @torch.no_grad()
    def by_hand(self, sums, kind=torch.float32):
        cast = lambda t: t.to(kind)
        H, values = cast(self.X), cast(self.values)
        H = torch.relu(sums(H, cast(self.W[0]), values) + H @ cast(self.R[0]))
        return [sums(H, cast(self.W[1]), values) + H @ cast(self.R[1])]

    def expected(self):
        return self.by_hand(self.grouped, torch.float64)

    def peers(self):
        yield "PyG RGCNConv", lambda: self.with_pyg(RGCNConv)
        yield "PyG FastRGCNConv", lambda: self.with_pyg(FastRGCNConv)
        yield "PyTorch, product per edge", lambda: self.by_hand(self.grouped)
        if self.r * self.n * self.d < 2**31:
            yield "PyTorch, products first", lambda: self.by_hand(self.sums)


class Encoder:
    """Dense layers in f16 on tokens × features, attention by `scaled_dot_product_attention`; also compiled as a whole."""

    tolerance = 1e-2  # Of the largest value: f16 between the parts.

    def __init__(self, case):
        self.s, self.t, self.h, hidden, self.d = (case["sizes"][x] for x in ("sequences", "tokens", "heads", "hidden", "d"))
        n, m = self.h * self.d, self.s * self.t
        shapes = dict(Q=(n, n), K=(n, n), V=(n, n), O=(n, n), U=(hidden, n), Z=(n, hidden))
        self.n, self.p = n, {}
        for name, shape in shapes.items():
            self.p[name] = array(case, name, *shape)
            self.p["b" + name] = array(case, "b" + name, shape[0])
        for k in "12":
            self.p["g" + k], self.p["a" + k] = (array(case, f"{x}{k}", n) for x in "ga")
        self.X = array(case, "X", n, m).t().contiguous()

    def layer(self, kind):
        p = {name: value.to(kind) for name, value in self.p.items()}
        stacked, bias = torch.cat([p[x] for x in "QKV"]), torch.cat([p["b" + x] for x in "QKV"])

        def call(x):
            q, k, v = F.linear(x, stacked, bias).view(self.s, self.t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, self.n)
            x = F.layer_norm(x + F.linear(a, p["O"], p["bO"]), (self.n,), p["g1"], p["a1"])
            u = F.gelu(F.linear(x, p["U"], p["bU"]))
            return F.layer_norm(x + F.linear(u, p["Z"], p["bZ"]), (self.n,), p["g2"], p["a2"])

        return call

    def result(self, y):
        """As [features, tokens]."""
        return [y.t()]

    @torch.no_grad()
    def expected(self):
        return self.result(self.layer(torch.float64)(self.X.double()))

    def peers(self):
        x, layer = self.X.half(), torch.no_grad()(self.layer(torch.float16))
        yield "PyTorch dense f16", lambda: self.result(layer(x))
        for mode in ("default", "max-autotune-no-cudagraphs"):
            compiled = torch.compile(layer, mode=mode)
            yield f"PyTorch dense f16, compiled ({mode})", lambda: self.result(compiled(x))


class Experts:
    """Tokens sorted by expert, grouped or padded products, and the gradients of autograd."""

    # In the norm: whether a hidden value within rounding of 0 is positive decides single elements. Values are rounded to bf16.
    tolerance = 3e-2

    def __init__(self, case):
        self.e, self.m, self.k, self.h, self.n = (case["sizes"][x] for x in ("experts", "tokens", "k", "h", "n"))
        e, m, k, h, n = self.e, self.m, self.k, self.h, self.n
        self.G = array(case, "G", m, e)
        self.X, self.C = array(case, "X", m, k), array(case, "C", m, n)
        self.U, self.D = array(case, "U", e, k, h), array(case, "D", e, h, n)
        self.ids = torch.arange(e, device="cuda")
        self.places = torch.arange(2 * m, device="cuda")
        self.most = int(torch.bincount(torch.topk(self.G, 2, 1).indices.flatten(), minlength=e).max())

    def step(self, kind, layer):
        X, U, D = (t.to(kind).requires_grad_() for t in (self.X, self.U, self.D))
        G, C = self.G.detach().requires_grad_(), self.C.to(kind)

        def call():
            logits, experts = torch.topk(G, 2, dim=1)
            gates = torch.softmax(logits, 1).flatten()
            inorder, slots = torch.sort(experts.flatten())
            Z = layer(X[slots // 2], U, D, inorder)
            by_slot = torch.zeros_like(Z).index_copy(0, slots, Z * gates[slots].to(kind)[:, None])
            Y = by_slot.view(self.m, 2, self.n).sum(1)
            return [Y.detach(), *torch.autograd.grad(Y, (X, U, D, G), C)]

        return call

    def grouped(self, rows, U, D, inorder):
        ends = torch.searchsorted(inorder, self.ids, right=True, out_int32=True)
        return torch._grouped_mm(torch.relu(torch._grouped_mm(rows, U, offs=ends)), D, offs=ends)

    def padded(self, rows, U, D, inorder):
        place = inorder * self.most + (self.places - torch.searchsorted(inorder, self.ids)[inorder])
        wide = torch.zeros(self.e * self.most, self.k, device="cuda", dtype=rows.dtype).index_copy(0, place, rows)
        H = torch.relu(torch.bmm(wide.view(self.e, self.most, self.k), U))
        return torch.bmm(H, D).view(-1, self.n)[place]

    def one_by_one(self, rows, U, D, inorder):
        parts = rows.split(torch.bincount(inorder, minlength=self.e).tolist())
        return torch.cat([torch.relu(x @ u) @ d for x, u, d in zip(parts, U, D)])

    def expected(self):
        return self.step(torch.float64, self.one_by_one)()

    def error(self, got, want):
        return max(float((g.double().flatten() - w.flatten()).norm() / w.norm()) for g, w in zip(got, want))

    def peers(self):
        yield "PyTorch grouped_mm, bf16", self.step(torch.bfloat16, self.grouped)
        yield "PyTorch grouped_mm, f16", self.step(torch.float16, self.grouped)
        yield "PyTorch padded bmm of known sizes, f16", self.step(torch.float16, self.padded)


MODELS = {"experts": Experts, "graph-sage": GraphSage, "rgcn": Rgcn, "encoder": Encoder}


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    clock = Clock()
    for case in read_cases():
        model = MODELS[case["model"]](case)
        want = model.expected()

        def right(got):
            error = getattr(model, "error", worst)(got, want)
            return error < getattr(model, "tolerance", TOLERANCE), error

        def ours(result):
            got = [torch.from_numpy(np.fromfile(f"{case['file']}-ours-{x}", dtype=np.float32)).cuda() for x in case["results"]]
            ok, result["error"] = right(got)
            return ok

        print_result(case, "sparsetile", ours)
        peers = model.peers()
        for name, call in [next(peers)] if case["quick"] else peers:
            for recorded in (True,) if case["quick"] else (True, False):
                way = "recorded" if recorded else "as calls"
                print_fastest(clock, case, f"{name}, {way}", lambda: [(way, call)], lambda call: right(call()), recorded)
        del model
        torch.cuda.empty_cache()


main()
