"""PageRank and conjugate gradients with SciPy in double precision, to compare with iterative.spt.

python3 iterative_scipy.py prepare GRAPH.mtx MATRIX.npz DIR    writes DIR/graph.npz, DIR/matrix.npz and DIR/b.npy
python3 iterative_scipy.py compare DIR                         compares DIR/{pagerank,until,cg}.npy with SciPy
"""

import sys
import numpy as np
import scipy.io
import scipy.sparse as sp

DAMPING, ROUNDS, EPS, CG_EPS = 0.85, 20, 1e-4, 1e-4


def prepare(graph, matrix, folder):
    links = (scipy.io.mmread(graph).tocsr() != 0).astype(np.float64)
    degrees = np.maximum(np.asarray(links.sum(0)).ravel(), 1)
    sp.save_npz(f"{folder}/graph.npz", (links @ sp.diags(1 / degrees)).tocsr().astype(np.float32))
    a = sp.load_npz(matrix).tocsr().astype(np.float64)
    scale = sp.diags(1 / np.sqrt(a.diagonal()))
    sp.save_npz(f"{folder}/matrix.npz", (scale @ a @ scale).tocsr().astype(np.float32))
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    np.save(f"{folder}/b.npy", b.astype(np.float32))


def pagerank(a, rounds=None):
    n = a.shape[0]
    x, change, count = np.full(n, 1 / n), np.inf, 0
    while count < rounds if rounds is not None else change > EPS:
        z = (1 - DAMPING) / n + DAMPING * (a @ x)
        x, change, count = z, np.abs(z - x).sum(), count + 1
    return x, count


def cg(a, b):
    x, r, p, rr, count = np.zeros_like(b), b.copy(), b.copy(), b @ b, 0
    while rr > CG_EPS:
        q = a @ p
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        p, rr, count = r + (r @ r) / rr * p, r @ r, count + 1
    return x, count


def compare(folder):
    graph = sp.load_npz(f"{folder}/graph.npz").astype(np.float64)
    matrix = sp.load_npz(f"{folder}/matrix.npz").astype(np.float64)
    b = np.load(f"{folder}/b.npy").astype(np.float64)
    for name, (x, count) in {
        "pagerank": pagerank(graph, ROUNDS),
        "until": pagerank(graph),
        "cg": cg(matrix, b),
    }.items():
        got = np.load(f"{folder}/{name}.npy")
        error = np.linalg.norm(got - x) / np.linalg.norm(x)
        print(f"{name}: {count} rounds in SciPy, relative error of the kernel {error:.1e}")


{"prepare": prepare, "compare": compare}[sys.argv[1]](*sys.argv[2:])
