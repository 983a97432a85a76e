// Rows of the cookbook: dynamic sparsity, pruned and masked layers, dense products. See sparse-products.mjs for the fields.
const dynamic = (cast, narrow) =>
  'allowed = B.bool().repeat_interleave(b, 1).repeat_interleave(b, 2) | C.bool()[:, None, :]\n' +
  'if causal: allowed = allowed.tril()\n' +
  `q = Q${cast}.flatten(0, 1).transpose(0, 1)  # [heads, tokens, d]\n` +
  `k, v = K${cast}.transpose(0, 1), V${cast}.transpose(0, 1)\n` +
  'S = (scale * q @ k.mT).masked_fill(~allowed, -torch.inf)\n' +
  `O = (S.softmax(-1).nan_to_num() @ v).transpose(0, 1).unflatten(0, (blocks, b))${narrow}`
const PAGE = ['dynamic-sparsity-kernels', 'Fast kernels for dynamic sparsity']
const SQUARE = '--size m=20 --size n=20 --size k=20'

export const dynamicAndDense = {
  dynamic_attention: {
    group: 'Dynamic sparsity',
    operator: 'Attention over blocks and columns that are known only at run time',
    formula: 'O = softmax(scale · Q Kᵀ at the blocks of B and the columns of C) V',
    torch: dynamic('', ''),
    run: '--size blocks=2 --size b=2 --size heads=1 --size d=2 --size e=2 --size scale=0.5 --size causal=1',
    page: PAGE,
  },
  'dynamic_attention<f16>': {
    operator: 'Attention over blocks and columns that are known only at run time, f16',
    formula: 'O = softmax(scale · Q Kᵀ at the blocks of B and the columns of C) V',
    torch: dynamic('.float()', '.half()'),
    run: '--size blocks=2 --size b=2 --size heads=1 --size d=2 --size e=2 --size scale=0.5 --size causal=1',
    page: PAGE,
    note: 'The softmax weights are rounded to f16 before they are multiplied by V.',
  },
  masked_matmul: {
    operator: 'Matrix product with dynamic sparsity',
    formula: 'C[i, j] = Σ_p A[i, p] · B[p, j]',
    torch: 'C = A @ B',
    run: SQUARE,
    page: PAGE,
  },
  masked_matmul_f16: {
    operator: 'Matrix product with dynamic sparsity, f16, A stored by columns',
    formula: 'C[i, j] = Σ_p A[p, i] · B[p, j]',
    torch: 'C = (A.float().T @ B.float()).half()',
    run: SQUARE,
    page: PAGE,
  },
  masked_rows_matmul_f16: {
    operator: 'Matrix product with dynamic sparsity, f16, A stored by rows',
    formula: 'C[i, j] = Σ_p A[i, p] · B[p, j]',
    torch: 'C = (A.float() @ B.float()).half()',
    run: SQUARE,
    page: PAGE,
  },
  masked_pieces_matmul_f16: {
    operator: 'Matrix product with dynamic sparsity, f16, in pieces of 64, without atomics',
    formula: 'C[i, j] = Σ_b Σ_p A[i, b, p] · B[b, p, j]',
    torch: "C = torch.einsum('ibp,bpj->ij', A.float(), B.float()).half()",
    run: '--size m=16 --size n=16 --size pieces=3',
    page: PAGE,
  },
  rectified_matmul: {
    operator: 'ReLU followed by a matrix product',
    formula: 'C[i, j] = Σ_p max(A[i, p], 0) · B[p, j]',
    torch: 'C = torch.relu(A) @ B',
    run: SQUARE,
    page: PAGE,
  },
  rectified_matmul_f16: {
    operator: 'ReLU followed by a matrix product, f16, A stored by columns',
    formula: 'C[i, j] = Σ_p max(A[p, i], 0) · B[p, j]',
    torch: 'C = (torch.relu(A).float().T @ B.float()).half()',
    run: SQUARE,
    page: PAGE,
  },
  rectified_layer_f16: {
    operator: 'Feed-forward layer with a ReLU',
    formula: 'Y = max(X Uᵀ, 0) D',
    torch: 'H = torch.relu(X.float() @ U.float().T).half()\nY = (H.float() @ D.float()).half()',
    run: `${SQUARE} --size hidden=32`,
    page: PAGE,
  },
  rectified_layer_rows_f16: {
    operator: 'Feed-forward layer with a ReLU, hidden activations stored by token',
    formula: 'Y = max(X Uᵀ, 0) D',
    torch: 'H = torch.relu(X.float() @ U.float().T).half()\nY = (H.float() @ D.float()).half()',
    run: `${SQUARE} --size hidden=32`,
    page: PAGE,
  },
  gathered_rows: {
    operator: 'Matrix product with lists of rows (gather)',
    formula: 'C[i] = Σ_k A[i, k] B[k] over the blocks k of 64 columns that list row i',
    torch:
      'C = torch.zeros(m, n)\nfor k in range(kb):\n    C[rows[k]] += A[rows[k], k].float() @ B[k].float()  # rows[k]: the list of block k',
    run: '--size m=64 --size n=8 --size kb=2',
    gpu: 'mma',
  },
  gathered_columns: {
    operator: 'Matrix product with lists of columns (gather)',
    formula: 'C[io, ii, j] = Σ_k A[k, io, ii] · B[k, j] over the columns k that panel io lists',
    torch:
      'C = torch.stack([A[columns[p], p].T @ B[columns[p]] for p in range(mo)])  # columns[p]: the list of panel p',
    run: '--size mo=2 --size n=8 --size k=40',
    gpu: 'asynchronous',
  },
  pruned_linear: {
    group: 'Pruned and masked layers',
    operator: 'Linear layer with tile-wise pruned weights',
    formula: 'Y[j, i] = max(Σ_p W[j, p] · X[p, i] + b[j], low)',
    torch: 'Y = torch.clamp(W @ X + b[:, None], min=low)',
    run: '--size m=16 --size n=20 --size k=20 --size low=0',
    note: 'With `low = 0` the layer ends with a ReLU; with `low = -inf` it is linear.',
  },
  pruned_linear_f16: {
    operator: 'Linear layer with tile-wise pruned weights, f16',
    formula: 'Y[j, i] = max(Σ_p W[j, p] · X[p, i] + b[j], low), summed in f32',
    torch: 'Y = torch.clamp(W.to_dense().float() @ X.float() + b[:, None], min=low).half()',
    run: '--size m=16 --size n=20 --size k=20 --size low=0',
    note: 'With `low = 0` the layer ends with a ReLU; with `low = -inf` it is linear.',
  },
  masked_training: {
    operator: 'Training step of a layer under a mask',
    formula: 'V = W ∘ (M ≠ 0); Y = X Vᵀ; E = Y − T; D = E V; W −= rate · Eᵀ X at the mask',
    torch:
      'V = torch.where(M != 0, W, 0)\nY = X @ V.T\nE = Y - T\nD = E @ V\nW -= torch.where(M != 0, rate * (E.T @ X), 0)',
    run: '--size tokens=16 --size inputs=20 --size outputs=20 --size rate=0.1',
    page: PAGE,
  },
  masked_training_f16: {
    operator: 'Training step of a layer under a mask, f16',
    formula: 'V = W ∘ (M ≠ 0); Y = X Vᵀ; E = Y − T; D = E V; W −= rate · Eᵀ X at the mask',
    torch:
      'V = torch.where(M != 0, W, 0).half()\nS = X.float() @ V.float().T\nY = S.half()\nE = (S - T.float()).half()\nD = (E.float() @ V.float()).half()\nW -= torch.where(M != 0, rate * (E.float().T @ X.float()), 0)',
    run: '--size tokens=16 --size inputs=20 --size outputs=20 --size rate=0.1',
    page: PAGE,
  },
  gemm: {
    group: 'Dense products and copies',
    operator: 'Dense GEMM, f32',
    formula: 'C[i, j] = alpha · Σ_p A[i, p] · B[p, j]',
    torch: 'C = alpha * (A @ B)',
    run: `${SQUARE} --size alpha=1`,
    page: ['dense-gemm', 'Dense GEMM'],
  },
  'gemm<f16>': {
    operator: 'Dense GEMM on tensor cores, f16',
    formula: 'C[i, j] = Σ_p A[i, p] · B[p, j], summed in f32',
    torch: 'C = A @ B',
    run: SQUARE,
    measured: ['dense GEMM, f16'],
    page: ['dense-gemm', 'Dense GEMM'],
  },
  'gemm<bf16>': {
    operator: 'Dense GEMM on tensor cores, bf16',
    formula: 'C[i, j] = Σ_p A[i, p] · B[p, j], summed in f32',
    torch: 'C = A @ B',
    run: SQUARE,
    measured: ['dense GEMM, bf16'],
    page: ['dense-gemm', 'Dense GEMM'],
  },
  gemm_tf32: {
    operator: 'Dense GEMM on tensor cores, tf32',
    formula: 'C[i, j] = Σ_p A[i, p] · B[p, j], factors rounded to 19 bits',
    torch: 'torch.backends.cuda.matmul.allow_tf32 = True\nC = A @ B',
    run: SQUARE,
    measured: ['dense GEMM, tf32'],
    page: ['dense-gemm', 'Dense GEMM'],
  },
  transpose_f16: {
    operator: 'Transpose, f16',
    formula: 'Y[j, i] = X[i, j]',
    torch: 'Y = X.T.contiguous()',
    run: '--size m=20 --size n=30',
  },
}
