"""As much of PyTorch as examples/prune-in-stages.py asks for: every step of training changes every element."""

from types import SimpleNamespace

_state = [1]


def _draw():
    _state[0] = _state[0] * 48271 % 2147483647
    # Seldom 0, and exact in float32.
    return float(_state[0] % 2001 - 1000)


class Tensor:
    def __init__(self, values, shape, dtype):
        self.values, self.shape, self.dtype = values, shape, dtype

    def detach(self):
        return self

    def contiguous(self):
        return self

    def to(self, other):
        return Tensor([float(v) for v in self.values], self.shape, other.dtype)

    def mul_(self, other):
        assert self.shape == other.shape and self.dtype == other.dtype and _grad[0] == 1
        self.values = [a * b for a, b in zip(self.values, other.values)]

    def __or__(self, other):
        assert self.shape == other.shape and self.dtype == other.dtype == "BOOL"
        return Tensor([a or b for a, b in zip(self.values, other.values)], self.shape, "BOOL")


# How many no_grad there are around.
_grad = [0]


class no_grad:
    def __enter__(self):
        _grad[0] += 1

    def __exit__(self, *_):
        _grad[0] -= 1


class Linear:
    def __init__(self, inputs, outputs):
        # Fewer than asked for: this is no test of speed.
        inputs, outputs = inputs // 16, outputs // 16
        self.own = {
            "weight": Tensor([_draw() for _ in range(inputs * outputs)], [outputs, inputs], "F32"),
            "bias": Tensor([_draw() for _ in range(outputs)], [outputs], "F32"),
        }


class ReLU:
    own = {}


class Sequential:
    def __init__(self, *parts):
        self.parts = parts

    def named_parameters(self):
        return [(f"{k}.{name}", p) for k, part in enumerate(self.parts) for name, p in part.own.items()]

    def parameters(self):
        return [p for _, p in self.named_parameters()]

    def __call__(self, x):
        return x


class AdamW:
    def __init__(self, parameters, lr):
        self.parameters, self.ready = parameters, False

    def zero_grad(self):
        _backward[0] = False

    def step(self):
        assert _backward[0]
        for p in self.parameters:
            p.values = [v + _draw() for v in p.values]


_backward = [False]


class Loss:
    def backward(self):
        _backward[0] = True


def manual_seed(seed):
    _state[0] = seed + 1


def randn(*shape):
    return None


nn = SimpleNamespace(
    Linear=Linear, ReLU=ReLU, Sequential=Sequential, functional=SimpleNamespace(mse_loss=lambda x, y: Loss())
)
optim = SimpleNamespace(AdamW=AdamW)
