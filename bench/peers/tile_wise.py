"""Layers in f16, dense and with 2 of 4 weights through cuSPARSELt, and two dense layers with their epilogues.

    python3 tile_wise.py CASES.json    one line of JSON for each result

CASES.json: {"cases": [{"id", "file", "what", "outputs", "inputs", "columns"}]}; what: dense (weights at FILE-values, raw f16,
[outputs, inputs]), 2:4 or 2:4 searched (at FILE-2of4), or network: inputs -> outputs -> inputs, rectified between. Times in microseconds.
"""
import math

import numpy as np
import torch

from clock import Clock, checked, print_result, read_cases, tuned

F32 = 2.0**-24
F16 = 2.0**-11
ROWS = 256  # Rows of results that are computed in f64.


def weights(case, part):
    values = torch.from_numpy(np.fromfile(f"{case['file']}-{part}", dtype=np.float16)).cuda()
    return values.view(case["outputs"], case["inputs"])


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def some(count):
    return torch.randperm(count, device="cuda")[:ROWS]


def within(got, want, scale, depth, more=0.0):
    """Whether all is within rounding, and the worst error as a share of the sum of magnitudes."""
    off = (got.double() - want).abs()
    bound = scale * (2 * F32 + F32 * (8 + 2 * math.sqrt(depth))) + F16 * want.abs() + more
    return bool((off <= bound).all()), float((off / scale.clamp_min(1e-30)).max())


def unwritten(result):
    """What a call allocates next is memory that holds no numbers: a result's, or what is freed here."""
    result.fill_(float("nan"))
    torch.full_like(result, float("nan"))


def timed(clock, calls, result):
    """The fastest in a graph; where none can be recorded, the fastest call, and that is said."""
    calls = list(calls)
    try:
        config, call, tried = tuned(clock, calls)
        result["facts"] = dict(configuration=config, tried=tried)
        return call, clock.measure
    except Exception as error:
        torch.cuda.synchronize()
        config, call, tried = tuned(clock, calls, recorded=False)
        note = f"calls: not recorded ({str(error).strip().splitlines()[0][:80]})"
        result["facts"] = dict(configuration=config, tried=tried, timing=note)
        return call, clock.measure_calls


def written(check):
    """The check of a call whose result nothing wrote before."""

    def right(call):
        unwritten(call())
        return check(call())

    return right


def dense(clock, case):
    """X [columns, inputs] times the transpose of W."""
    w, x = weights(case, "values"), normal(case["columns"], case["inputs"])
    out = torch.empty(case["columns"], case["outputs"], device="cuda", dtype=torch.float16)

    def call():
        return torch.mm(x, w.t(), out=out)

    def check(got):
        rows = some(case["columns"])
        a, b = x[rows].double(), w.t().double()
        return within(got[rows], a @ b, a.abs() @ b.abs(), case["inputs"])

    def measured(result):
        return checked(result, call, written(check), clock.measure)

    return "PyTorch dense (cuBLAS)", measured


def half(clock, case):
    """W, half of which is left, times X: both ways that X and the result can lie; with `searched`, by the library's own search."""
    w = weights(case, "2of4")
    rows = normal(case["inputs"], case["columns"])
    forms = (("X [inputs, columns]", rows), ("X [columns, inputs]", rows.t().contiguous().t()))

    def calls():
        packed = torch._cslt_compress(w)
        for form, x in forms:
            for turned in (False, True):
                option = {}
                if case["what"] == "2:4 searched":
                    found = torch._C._cusparselt.mm_search(packed, x, None, None, None, turned)
                    option = dict(alg_id=found[0], split_k=found[1], split_k_mode=found[2])

                def call(x=x, turned=turned, option=option):
                    y = torch._cslt_sparse_mm(packed, x, transpose_result=turned, **option)
                    return y.t() if turned else y

                yield f"{form}{', result transposed' if turned else ''}, {option or 'as it comes'}", call

    def check(got):
        lines = some(case["outputs"])
        a, b = w[lines].double(), rows.double()
        # Whichever way the library gives a result.
        got = got if got.shape[0] == case["outputs"] else got.t()
        return within(got[lines], a @ b, a.abs() @ b.abs(), case["inputs"])

    def measured(result):
        call, measure = timed(clock, calls(), result)
        return checked(result, call, written(check), measure)

    return f"cuSPARSELt {case['what']}", measured


def network(clock, case):
    """max(0, X W1ᵀ + b1) W2ᵀ + b2, X [columns, inputs]: bias and maximum are epilogues of the library."""
    narrow, wide = case["inputs"], case["outputs"]
    x = normal(case["columns"], narrow)
    w1, b1, w2, b2 = normal(wide, narrow), normal(wide), normal(narrow, wide), normal(narrow)

    def fused():
        return torch.addmm(b2, torch._addmm_activation(b1, x, w1.t(), use_gelu=False), w2.t())

    def plain():
        return torch.addmm(b2, torch.relu_(torch.addmm(b1, x, w1.t())), w2.t())

    def check(got):
        rows = some(case["columns"])
        a = x[rows].double()
        hidden = (a @ w1.t().double() + b1.double()).clamp_min(0)
        around = a.abs() @ w1.t().double().abs() + b1.double().abs()
        off = around * (2 * F32 + F32 * (8 + 2 * math.sqrt(narrow))) + F16 * hidden
        second = w2.t().double()
        want = hidden @ second + b2.double()
        scale = hidden @ second.abs() + b2.double().abs()
        return within(got[rows], want, scale, wide, off @ second.abs())

    def measured(result):
        call, measure = timed(clock, [("ReLU in the epilogue", fused), ("ReLU by itself", plain)], result)
        return checked(result, call, written(check), measure)

    return "PyTorch, two layers with epilogues", measured


MAKERS = {"dense": dense, "2:4": half, "2:4 searched": half, "network": network}


def main():
    cases = read_cases()
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    clock = Clock()
    for case in cases:
        try:
            name, measured = MAKERS[case["what"]](clock, case)
        except Exception as error:  # Of what is made before anything is timed.
            text = str(error).strip().split("\n")[0][:200]

            def measured(result, text=text):
                raise RuntimeError(text)

            name = f"PyTorch, {case['what']}"
        print_result(case, name, measured)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
