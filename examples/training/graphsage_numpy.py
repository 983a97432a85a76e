"""The training of graphsage.mjs in numpy, with gradients by hand: `python3 graphsage_numpy.py ../../data/cora.npz`.

Prints the losses and the accuracy that graphsage.mjs has to reach from the same seed.
"""
import sys

import numpy as np
from scipy.sparse import csr_array

EPOCHS, SEED, HIDDEN, RATE, KEEP, DECAY = 100, 1, 32, 1e-2, 0.5, 5e-4


def philox(counter, key):
    """Philox-4x32-10: four words for each counter, an array of four columns."""
    a, b, c, d = (counter[:, k].astype(np.uint64) for k in range(4))
    k, l = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        x, y = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        high = np.uint64(32)
        a, b, c, d = (y >> high) ^ b ^ np.uint64(k), y & low, (x >> high) ^ d ^ np.uint64(l), x & low
        k, l = (k + 0x9E3779B9) % 2**32, (l + 0xBB67AE85) % 2**32
    return np.stack([a, b, c, d], 1)


def counters(n):
    out = np.zeros((n, 4), np.uint64)
    out[:, 0] = np.arange(n)
    return out


def normals(shape, stream):
    count = int(np.prod(shape))
    u = (philox(counters((count + 1) // 2), (SEED, stream))[:, :2] + 0.5) / 2.0**32
    length = np.sqrt(-2 * np.log(u[:, 0]))
    both = np.stack([length * np.cos(2 * np.pi * u[:, 1]), length * np.sin(2 * np.pi * u[:, 1])], 1)
    return both.reshape(-1)[:count].reshape(shape)


data = np.load(sys.argv[1])
n, classes = len(data["labels"]), 7
features = int(data["feature_shape"][1])
A = csr_array((np.ones(len(data["indices"])), data["indices"], data["indptr"]), (n, n))
A.setdiag(0)
A.eliminate_zeros()
A = csr_array(A.multiply(1 / np.maximum(A.sum(1), 1)[:, None]))
X = csr_array((np.ones(len(data["feature_indices"])), data["feature_indices"], data["feature_indptr"]), (n, features))
X = csr_array(X.multiply(1 / np.maximum(X.sum(1), 1)[:, None]))
labels, split = data["labels"].astype(int), data["split"]
train, test = np.flatnonzero(split == 1), np.flatnonzero(split == 3)

shapes = {"Ws1": (features, HIDDEN), "Wn1": (features, HIDDEN), "b1": (HIDDEN,)}
shapes |= {"Ws2": (HIDDEN, classes), "Wn2": (HIDDEN, classes), "b2": (classes,)}
W = {
    name: normals(s, k) * np.sqrt(2 / sum(s)) if len(s) == 2 else np.zeros(s)
    for k, (name, s) in enumerate(shapes.items())
}
M = {name: np.zeros(s) for name, s in shapes.items()}
V = {name: np.zeros(s) for name, s in shapes.items()}


def forward(mask):
    S = X @ W["Ws1"] + A @ (X @ W["Wn1"]) + W["b1"]
    D = np.maximum(S, 0) * mask
    return S, D, D @ W["Ws2"] + A @ (D @ W["Wn2"]) + W["b2"]


for t in range(1, EPOCHS + 1):
    words = philox(counters((n * HIDDEN + 3) // 4), (SEED, t)).reshape(-1)[: n * HIDDEN]
    mask = ((words >> np.uint64(8)) / 2.0**24 < KEEP).reshape(n, HIDDEN) / KEEP
    S, D, Z = forward(mask)
    p = np.exp(Z - Z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[train, labels[train]]).mean()
    G = np.zeros_like(p)
    G[train] = p[train] / len(train)
    G[train, labels[train]] -= 1 / len(train)
    N = A.T @ G
    gradients = {"Ws2": D.T @ G, "Wn2": D.T @ N, "b2": G.sum(0)}
    H = (G @ W["Ws2"].T + N @ W["Wn2"].T) * mask * (S >= 0)
    gradients |= {"Ws1": X.T @ H, "Wn1": X.T @ (A.T @ H), "b1": H.sum(0)}
    rate = RATE * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    for name, g in gradients.items():
        if name in ("Ws1", "Wn1"):
            g = g + DECAY * W[name]
        M[name] = 0.9 * M[name] + 0.1 * g
        V[name] = 0.999 * V[name] + 0.001 * g * g
        W[name] = W[name] - rate * M[name] / (np.sqrt(V[name]) + 1e-8)
    if t in (1, 5) or t % 20 == 0:
        print(f"epoch {t}: loss {loss:.5f}")
_, _, Z = forward(np.ones((n, HIDDEN)))
print("test accuracy", (Z[test].argmax(1) == labels[test]).mean())
