// Rows of the cookbook: reductions, relational layers, experts, ragged batches. See sparse-products.mjs for the fields.
const RELATIONS = 'Y = sum(A[r] @ (X @ W[r]) for r in range(relations))  # A[r]: sparse m × n'
const GROUPS = 'Y = sum(A[g] @ (X.float() @ W[g].float()) for g in range(groups))  # A[g]: sparse m × n'
const RGCN = '--size relations=3 --size m=20 --size n=20 --size d=8 --size e=8'
const GGS = '--size groups=3 --size m=20 --size n=20 --size channels=8 --size out_channels=8'
const EXPERTS = "Y = torch.einsum('et,tk,eko->to', P, X.float(), W.float())  # P dense, 0: not routed"
const LAYER =
  'gate, e = G.topk(2 if top > 1 else 1, dim=1)\ngate = gate.softmax(1)\n' +
  "H = torch.relu(torch.einsum('tk,ekh->eth', X.float(), U.float())).half()\n" +
  "Z = torch.einsum('eth,eho->eto', H.float(), D.float())\n" +
  'Y = (gate.T[..., None] * Z[e.T, torch.arange(len(X))]).sum(0)'
const LAYER_RUN = '--size experts=4 --size tokens=16 --size k=8 --size h=16 --size n=8 --size top=2'
const ragged = (cast, narrow) =>
  'token = torch.arange(blocks * b)\nsequence = torch.searchsorted(E, token, right=True)\n' +
  'own = (sequence[:, None] == sequence[None, :]) & (sequence < len(E))[:, None]\n' +
  'if causal: own = own.tril()\n' +
  `q, k, v = (x${cast}.flatten(0, 1).transpose(0, 1) for x in (Q, K, V))  # [heads, tokens, …]\n` +
  'S = (scale * q @ k.mT).masked_fill(~own, -torch.inf)\n' +
  `O = (S.softmax(-1).nan_to_num() @ v).transpose(0, 1).unflatten(0, (blocks, b))${narrow}`
const PAGE = ['dynamic-sparsity-kernels', 'Fast kernels for dynamic sparsity']
const pool = (torch) => ({ torch, run: '--bind j=sparsetile/data/cora.mtx --size d=16', gpu: 'gpu' })

/** Attention to extend, in a type. */
const tiled = (suffix, dtype) => ({
  operator: `Attention with a mask and a score function of your own${suffix}`,
  formula: 'O = softmax(score(scale · Q Kᵀ)) V over the pairs of the mask',
  torch: `O = flex_attention(Q, K, V, score_mod, create_block_mask(mask_mod, ...), scale)  # Q.dtype is ${dtype}`,
  run: '--size blocks=2 --size key_blocks=2 --size b=2 --size heads=1 --size d=4 --size e=4 --size scale=0.5',
  note: 'You extend this kernel: [attention with a mask of your own](../how-to/attention-masks.md).',
})

export const networks = {
  segment_sum: {
    group: 'Reductions over segments and neighbours',
    operator: 'Segment sum',
    formula: 'Y[i, f] = Σ_p X[i, p, f] over the positions p of segment i',
    torch: "Y = torch.segment_reduce(X, 'sum', lengths=lengths)  # X: [positions, d]",
    run: '--size m=20 --size n=8 --size d=8',
    gpu: 'cooperative',
  },
  segment_max: {
    operator: 'Segment maximum',
    formula: 'Y[i, f] = max_p X[i, p, f] over the positions p of segment i; −∞ if empty',
    torch: "Y = torch.segment_reduce(X, 'max', lengths=lengths)  # X: [positions, d]",
    run: '--size m=20 --size n=8 --size d=8',
    gpu: 'cooperative',
  },
  pool_max: {
    operator: 'Maximum over neighbours (i32)',
    formula: 'Y[i, f] = max_j X[j, f] over the neighbours j of i',
    ...pool(
      "Y = torch.full((m, d), torch.iinfo(torch.int32).min, dtype=torch.int32)\nY.scatter_reduce_(0, i[:, None].expand(-1, d), X[j], 'amax')  # (i, j): the edges",
    ),
  },
  pool_min: {
    operator: 'Minimum over neighbours (u8)',
    formula: 'Y[i, f] = min_j X[j, f] over the neighbours j of i; 255 without any',
    ...pool(
      "Y = torch.full((m, d), 255, dtype=torch.uint8)\nY.scatter_reduce_(0, i[:, None].expand(-1, d), X[j], 'amin')  # (i, j): the edges",
    ),
  },
  pool_any: {
    operator: 'Logical or over neighbours (bool)',
    formula: 'Y[i, f] = X[j, f] for any neighbour j of i',
    ...pool('Y = torch.zeros(m, d, dtype=torch.int32).index_add_(0, i, X[j].int()) > 0  # (i, j): the edges'),
  },
  pool_all: {
    operator: 'Logical and over neighbours (bool)',
    formula: 'Y[i, f] = X[j, f] for all neighbours j of i; true without any',
    ...pool(
      'Y = torch.zeros(m, d, dtype=torch.int32).index_add_(0, i, (~X[j]).int()) == 0  # (i, j): the edges',
    ),
  },
  rgcn: {
    group: 'Relational layers and sparse convolution',
    operator: 'RGCN layer',
    formula: 'Y[i, o] = Σ_r Σ_j Σ_f A[r, i, j] · X[j, f] · W[r, f, o]',
    torch: RELATIONS,
    run: RGCN,
    gpu: 'hyb',
    measured: ['RGCN layer'],
    page: ['gathered-tiles', 'RGCN and sparse convolution'],
  },
  rgcn_transform: {
    operator: 'RGCN layer, features transformed first',
    formula: 'T[r] = X W[r]; Y = Σ_r A[r] T[r]',
    torch: RELATIONS,
    run: RGCN,
    gpu: 'hyb',
  },
  rgcn_aggregate: {
    operator: 'RGCN layer, neighbours added first',
    formula: 'S[r] = A[r] X; Y = Σ_r S[r] W[r]',
    torch: 'Y = sum((A[r] @ X) @ W[r] for r in range(relations))',
    run: RGCN,
    gpu: 'gpu',
  },
  rgcn_normalised: {
    operator: 'RGCN layer with a weight per row and relation',
    formula: 'Y[i, o] = Σ_r N[i, r] · Σ_j Σ_f A[r, i, j] · X[j, f] · W[r, f, o]',
    torch: 'Y = sum(N[:, r, None] * ((A[r] @ X) @ W[r]) for r in range(relations))  # N dense',
    run: RGCN,
  },
  gather_gemm_scatter: {
    operator: 'Gather, GEMM, scatter (RGCN, sparse convolution)',
    formula: 'Y[i, o] = Σ_g Σ_j Σ_c A[g, i, j] · X[j, c] · W[g, c, o]',
    torch: 'Y = sum(A[g] @ (X @ W[g]) for g in range(groups))  # A[g]: sparse m × n',
    run: GGS,
    measured: ['RGCN layer', 'sparse convolution'],
    page: ['gathered-tiles', 'RGCN and sparse convolution'],
  },
  'gather_gemm_scatter<f16>': {
    operator: 'Gather, GEMM, scatter in f16',
    formula: 'Y[i, o] = Σ_g Σ_j Σ_c A[g, i, j] · X[j, c] · W[g, c, o], summed in f32',
    torch: GROUPS,
    run: GGS,
    measured: ['RGCN layer'],
  },
  'gather_gemm_scatter<bf16>': {
    operator: 'Gather, GEMM, scatter in bf16',
    formula: 'Y[i, o] = Σ_g Σ_j Σ_c A[g, i, j] · X[j, c] · W[g, c, o], summed in f32',
    torch: GROUPS,
    run: GGS,
    measured: ['RGCN layer'],
  },
  convolution: {
    operator: 'Sparse convolution over a kernel map',
    formula: 'Y[omap[k, p], o] += Σ_c X[imap[k, p], c] · W[k, c, o] for each offset k and pair p',
    torch:
      'Y = torch.zeros(out_voxels, out_channels)\nfor k in range(offsets):\n    Y.index_add_(0, omap[k], X[imap[k]] @ W[k])',
    program: `const compiled = await program.kernel('convolution').build(await devices.cpu())
const tensors = {
  p: [0, 2, 3],        // offset 0 has two pairs, offset 1 has one
  imap: [0, 1, 1],
  omap: [1, 0, 1],
  X: dense([2, 1], [10, 20]),
  W: dense([2, 1, 1], [1, 3]),
}
const { Y } = await compiled({ ...tensors, out_voxels: 2 })
console.log([...Y.values!])`,
    printed: '[ 20, 70 ]',
    gpu: 'gpu',
  },
  convolution_tree: {
    operator: 'Sparse convolution, pairs stored as a sparse tensor',
    formula: 'Y[i, o] = Σ_k Σ_j Σ_c A[k, i, j] · X[j, c] · W[k, c, o]',
    torch: 'Y = sum(A[k] @ (X @ W[k]) for k in range(offsets))  # A[k]: sparse out_voxels × voxels',
    run: '--size offsets=3 --size voxels=20 --size out_voxels=20 --size channels=8 --size out_channels=8',
    gpu: 'gpu',
    measured: ['sparse convolution'],
  },
  experts_f16: {
    group: 'Mixture of experts',
    operator: 'Mixture of experts with given routing (grouped GEMM)',
    formula: 'Y[t, o] = Σ_e P[e, t] · Σ_k X[t, k] · W[e, k, o]',
    torch: EXPERTS,
    run: '--size experts=4 --size tokens=16 --size k=8 --size n=8',
    measured: ['mixture of experts'],
  },
  experts_routed_f16: {
    operator: 'Mixture of experts, routing computed at run time',
    formula: 'Y[t, o] = Σ_e P[e, t] · Σ_k X[t, k] · W[e, k, o]',
    torch: EXPERTS,
    run: '--size experts=4 --size tokens=16 --size k=8 --size n=8',
    page: PAGE,
  },
  expert_layer_f16: {
    operator: 'Mixture-of-experts layer, including the router',
    formula: 'Y[t] = Σ_e gate[t, e] · max(X[t] U[e], 0) D[e] over the `top` experts of token t (1 or 2)',
    torch: LAYER,
    run: LAYER_RUN,
    page: PAGE,
  },
  expert_layer_ordered_f16: {
    operator: 'Mixture-of-experts layer, including the router, without atomics',
    formula: 'Y[t] = Σ_e gate[t, e] · max(X[t] U[e], 0) D[e], summed in the order of the experts',
    torch: LAYER,
    run: LAYER_RUN,
    page: PAGE,
  },
  ragged_bmm: {
    group: 'Ragged batches',
    operator: 'Ragged batched GEMM',
    formula: 'C[b, i, o] = Σ_k A[b, i, k] · B[b, k, o], each batch b with its own sizes',
    torch: 'C = [A_b @ B_b for A_b, B_b in zip(A, B)]',
    program: `// Batch 0 has 1 × 2 times 2 × 1, batch 1 has 2 × 1 times 1 × 2.
const compiled = await program.kernel('ragged_bmm').build(await devices.cpu())
const tensors = {
  i: [0, 1, 3],        // rows of A by batch
  k: [0, 2, 3, 4],     // columns of A by row
  o: [0, 1, 3, 5],     // columns of C by row
  kb: [0, 2, 3],       // rows of B by batch
  ob: [0, 1, 2, 4],    // columns of B by row
  A: [1, 2, 3, 4],
  B: [10, 20, 5, 6],
}
const { C } = await compiled(tensors)
console.log([...C.values!])`,
    printed: '[ 50, 15, 18, 20, 24 ]',
    gpu: 'gpu',
  },
  ragged_attention: {
    operator: 'Attention over sequences of variable length',
    formula: 'O = softmax(scale · Q Kᵀ) V, each token over its own sequence',
    torch: ragged('', ''),
    run: '--size blocks=2 --size key_blocks=2 --size b=2 --size sequences=2 --size heads=1 --size d=4 --size e=4 --size scale=0.5 --size causal=1',
    page: PAGE,
  },
  'ragged_attention<f16>': {
    operator: 'Attention over sequences of variable length, f16',
    formula: 'O = softmax(scale · Q Kᵀ) V, each token over its own sequence',
    torch: ragged('.float()', '.half()'),
    run: '--size blocks=2 --size key_blocks=2 --size b=2 --size sequences=2 --size heads=1 --size d=4 --size e=4 --size scale=0.5 --size causal=1',
    page: PAGE,
    note: 'The softmax weights are rounded to f16 before they are multiplied by V.',
  },
  tiled_attention: {
    ...tiled('', 'torch.float32'),
    also: '; `mask_attention` extends it and derives the blocks from the mask',
  },
  'tiled_attention<f16>': tiled(', f16', 'torch.float16'),
  'tiled_attention<bf16>': tiled(', bf16', 'torch.bfloat16'),
}
