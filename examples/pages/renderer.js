// The output is a vertex buffer of a renderer on the same device; the kernel is recorded into its encoder.
import spmm from 'sparsetile/kernels/spmm.spt?plan&kernel=spmm&schedule=gpu(8,32)'

const device = await (await navigator.gpu.requestAdapter()).requestDevice()
const vertices = device.createBuffer({
  size: 24,
  usage: GPUBufferUsage.STORAGE | GPUBufferUsage.VERTEX | GPUBufferUsage.COPY_SRC,
})
const fn = await spmm.build(device)
const layer = await fn.bind({
  j_indptr: Int32Array.of(0, 2, 2, 3),
  j_indices: Int32Array.of(0, 1, 1),
  A: Float32Array.of(1, 2, 3),
  B: Float32Array.of(1, 2, 3, 4),
  C: vertices,
  m: 3,
  n: 2,
  d: 2,
})
const encoder = device.createCommandEncoder()
layer.record(encoder)
// … the renderer's passes, which read `vertices`
device.queue.submit([encoder.finish()])
document.body.textContent = `C = ${[...(await layer.get('C'))].join(', ')}`
