"""What scipy takes for the same conversion: python3 bench/scipy-formats.py MATRIX.npz BLOCK REPEATS

The matrix is CSR; its shape is rounded up to whole blocks, as scipy asks. One JSON object: medians in milliseconds,
wall and user time, of `csr_matrix.tobsr((BLOCK, BLOCK))`.
"""

import json
import os
import statistics
import sys
import time

import numpy
import scipy
import scipy.sparse

path, block, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
read = scipy.sparse.load_npz(path).tocsr()
shape = tuple(-(-n // block) * block for n in read.shape)
indptr = numpy.pad(read.indptr, (0, shape[0] - read.shape[0]), "edge")
matrix = scipy.sparse.csr_matrix((read.data, read.indices, indptr), shape=shape)
wall, user = [], []
for k in range(repeats + 1):
    made = None
    t, u = time.perf_counter(), os.times()
    made = matrix.tobsr((block, block))
    v = os.times()
    if k > 0:
        wall.append(1e3 * (time.perf_counter() - t))
        user.append(1e3 * (v.user - u.user + v.system - u.system))
print(
    json.dumps(
        {
            "version": scipy.__version__,
            "wall": statistics.median(wall),
            "user": statistics.median(user),
            "bytes": made.data.nbytes + made.indices.nbytes + made.indptr.nbytes,
        }
    )
)
