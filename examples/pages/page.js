// SpMM of a graph with three nodes: on WebGPU, or on the CPU if the browser has no WebGPU.

import onGpu from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&schedule=gpu(8,32)'
import onCpu from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&target=cpu'

const adapter = await navigator.gpu?.requestAdapter()
const fn = adapter ? await onGpu.build(await adapter.requestDevice()) : await onCpu.build()
const { C } = await fn({
  j_indptr: Int32Array.of(0, 2, 2, 3),
  j_indices: Int32Array.of(0, 1, 1),
  A: Float32Array.of(1, 2, 3),
  B: Float32Array.of(1, 2, 3, 4),
  m: 3,
  n: 2,
  d: 2,
})
document.body.textContent = `C = ${[...C].join(', ')}`
