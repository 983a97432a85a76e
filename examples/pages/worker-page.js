// SpMM in a worker.
const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
const message = () =>
  new Promise((resolve) => worker.addEventListener('message', (e) => resolve(e.data), { once: true }))

await message()
const output = message()
worker.postMessage({
  j_indptr: Int32Array.of(0, 2, 2, 3),
  j_indices: Int32Array.of(0, 1, 1),
  A: Float32Array.of(1, 2, 3),
  B: Float32Array.of(1, 2, 3, 4),
  m: 3,
  n: 2,
  d: 2,
})
document.body.textContent = `C = ${[...(await output)].join(', ')}`
