"""Causal attention over blocks and columns that change from call to call, or over packed sequences, with PyTorch: FlexAttention with its mask
built in each call and with one that is there, dense attention under a mask, and where sequences are packed jagged and variable-length ones.

    python3 dynamic_attention.py CASES.json    one line of JSON for each result

CASES.json: {"folder", "quick", "cases": [{"id", "file", "b", "type", "tokens", "heads", "d"}]}; raw i32: FILE-blocks ([heads, tokens / b,
tokens / b]) and FILE-columns ([heads, tokens]), or FILE-ends where b is null. Times in microseconds.
"""

import math

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from clock import Clock, print_both, read_cases

F32 = 2.0**-24
ROWS = 128  # Tokens that are computed in f64.
SIZES = (128, 64)  # Compiling each takes most of the time.
TYPES = {"f32": torch.float32, "f16": torch.float16}
# Tiles of FlexAttention: its own, of half floats also others, since its own may need more shared memory than there is.
SMALL = dict(BLOCK_M=64, BLOCK_N=64, num_stages=3, num_warps=4)
HIGH = dict(BLOCK_M=128, BLOCK_N=64, num_stages=3, num_warps=8)
TILES = {torch.float32: (None,), torch.float16: (None, SMALL, HIGH)}


class Attention:
    """Operands and pattern of one case on the device: Q, K and V are heads × tokens × d."""

    def __init__(self, case, device="cuda"):
        self.tokens, self.heads, self.d, self.b = (case[x] for x in ("tokens", "heads", "d", "b"))
        self.device, self.dtype = device, TYPES[case["type"]]
        torch.manual_seed(1)
        shape = (1, self.heads, self.tokens, self.d)
        self.Q, self.K, self.V = (torch.randn(*shape, device=device, dtype=self.dtype) for _ in range(3))
        self.scale = 1 / math.sqrt(self.d)
        raw = lambda part: torch.from_numpy(np.fromfile(f"{case['file']}-{part}", dtype=np.int32)).to(device)
        self.at = torch.arange(self.tokens, device=device, dtype=torch.int32)
        if self.b is None:
            self.ends = raw("ends")
            self.offsets = torch.cat([torch.zeros_like(self.ends[:1]), self.ends])
            lengths = self.offsets.diff()
            self.shortest, self.longest = int(lengths.min()), int(lengths.max())
            self.rows = [x[0].transpose(0, 1).contiguous() for x in (self.Q, self.K, self.V)]
        else:
            n = self.tokens // self.b
            self.blocks, self.columns = raw("blocks").view(self.heads, n, n), raw("columns").view(self.heads, -1)

    def counts(self):
        """What tells FlexAttention which pairs count; of packed tokens it takes finding their sequences."""
        if self.b is None:
            own = torch.searchsorted(self.ends, self.at, right=True)
            return lambda _, h, q, k: (k <= q) & (own[q] == own[k])
        blocks, columns, b = self.blocks, self.columns, self.b
        return lambda _, h, q, k: (k <= q) & ((blocks[h, q // b, k // b] != 0) | (columns[h, k] != 0))

    def mask(self):
        past = self.at[:, None] >= self.at[None, :]
        if self.b is None:
            own = torch.searchsorted(self.ends, self.at, right=True)
            return (past & (own[:, None] == own[None, :]))[None, None]
        blocks = (self.blocks != 0).repeat_interleave(self.b, 1).repeat_interleave(self.b, 2)
        return ((blocks | (self.columns != 0)[:, None, :]) & past)[None]

    def flex(self, builds):
        attend = torch.compile(flex_attention, dynamic=False)
        build = torch.compile(create_block_mask, dynamic=False)
        # Heads of packed tokens have one mask.
        heads = None if self.b is None else self.heads
        for how, make, sizes in (("compiled", build, SIZES), ("eager", create_block_mask, SIZES[:1])):
            for size, tiles in ((size, tiles) for size in sizes for tiles in TILES[self.dtype]):
                if tiles is not None and size % tiles["BLOCK_M"]:
                    continue

                def mask(make=make, size=size):
                    return make(self.counts(), None, heads, self.tokens, self.tokens, device=self.device, BLOCK_SIZE=size)

                # Where none is built, how it was does not matter.
                there = {}

                def call(mask=mask, there=there, tiles=tiles):
                    if not builds and "mask" not in there:
                        there["mask"] = mask()
                    block_mask = mask() if builds else there["mask"]
                    return attend(self.Q, self.K, self.V, block_mask=block_mask, scale=self.scale, kernel_options=tiles)

                shape = f", tiles of {tiles['BLOCK_M']} x {tiles['BLOCK_N']}" if tiles else ""
                yield f"blocks of {size}{shape}{f', mask {how}' if builds else ''}", call
            if not builds:
                return

    def dense(self, builds):
        there = None if builds else self.mask()

        def call():
            mask = self.mask() if builds else there
            return scaled_dot_product_attention(self.Q, self.K, self.V, attn_mask=mask, scale=self.scale)

        yield "as chosen", call

    def jagged(self):
        def call():
            known = dict(min_seqlen=self.shortest, max_seqlen=self.longest)
            nested = [torch.nested.nested_tensor_from_jagged(x, self.offsets, **known).transpose(1, 2) for x in self.rows]
            O = scaled_dot_product_attention(*nested, is_causal=True, scale=self.scale)
            return O.transpose(1, 2).values().transpose(0, 1)[None]

        yield "nested", call

    def variable(self):
        """The operations below, which take offsets; the host knows the longest sequence."""
        result = lambda O: O.view(self.tokens, self.heads, self.d).transpose(0, 1)[None]

        def flash():
            from torch.nn.attention.varlen import varlen_attn

            Q, K, V = self.rows
            most = self.longest
            try:
                O = varlen_attn(Q, K, V, self.offsets, self.offsets, most, most, window_size=(-1, 0), scale=self.scale)
            except TypeError:
                O = varlen_attn(Q, K, V, self.offsets, self.offsets, most, most, is_causal=True)
            return result(O)

        def efficient():
            Q, K, V = (x[None] for x in self.rows)
            most = self.longest
            O = torch.ops.aten._efficient_attention_forward(
                Q, K, V, None, self.offsets, self.offsets, most, most, 0.0, 1, False, scale=self.scale
            )[0]
            return result(O)

        yield "varlen_attn", flash
        yield "_efficient_attention_forward", efficient

    def right(self, O, unit):
        """`unit`: the roundoff of factors."""
        rows = torch.randperm(self.tokens, device=self.device)[:ROWS]
        mask = self.mask()[:, :, rows]
        q, k, v = self.Q[:, :, rows].double(), self.K.double(), self.V.double()
        scores = (q @ k.mT) * self.scale
        off = (q.abs() @ k.abs().mT).masked_fill(~mask, 0).amax(-1, keepdim=True) * self.scale
        off = off * (2 * unit + F32 * (8 + 2 * math.sqrt(self.d)))
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), -1)
        want, scale = weights @ v, weights @ v.abs()
        output = 2.0**-11 if self.dtype == torch.float16 else F32
        spread = 8 * scores.abs().amax(-1, keepdim=True)
        bound = (2 * (off + F32 * (16 + spread)) + F32 * 2 * math.sqrt(self.tokens) + 2 * unit + 2 * output) * scale
        bound = bound + output * want.abs() + (2.0**-25 * self.tokens if output != F32 else 0)
        error = (O[:, :, rows].double() - want).abs()
        return bool((error <= bound).all()), float((error / scale.clamp_min(1e-30)).max())


def peers(m):
    yield "FlexAttention, mask built", lambda: m.flex(True)
    yield "FlexAttention, mask there", lambda: m.flex(False)
    yield "dense under a mask, built", lambda: m.dense(True)
    yield "dense under a mask, there", lambda: m.dense(False)
    if m.b is None:
        yield "jagged, longest known", m.jagged
        yield "variable length, longest known", m.variable


def run(clock, case, tf32):
    m = Attention(case)
    unit = 2.0**-11 if tf32 else F32
    for what, calls in peers(m):
        # Recordings that fail may leave nothing usable behind; jagged tensors may wait for the device.
        ways = (False,) if what.startswith("jagged") else (False, True)
        name = f"PyTorch {what}{', tf32' if tf32 else ''}"
        print_both(clock, case, name, calls, lambda call: m.right(call(), unit), ways)


def main():
    cases = read_cases()
    torch._dynamo.config.cache_size_limit = 256
    clock = Clock()
    # What ours are compared with comes first: the time may end.
    for tf32 in (False, True):
        torch._dynamo.reset()
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        for case in cases:
            if not tf32 or case["type"] == "f32":
                run(clock, case, tf32)


if __name__ == "__main__":
    main()
