/** `sparsetile/runtime` with all arrays of a sparse format, indices too, in GPUBuffers of the caller. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { planIn, planRequest } from '../../src/bundler/plan-request.ts'
import { devices, load, type Plan } from '../../src/node.ts'
import { instantiate } from '../../src/web/runtime.ts'
import { ownDevice } from './own-device.ts'

const D = 4
const gpu = await ownDevice()
const device = await devices.webgpu({ device: gpu })
const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const plan = (await kernel.schedule('gpu', 8, 32).build(device)).plan as Plan
const fn = await instantiate(plan, { device: gpu })

function bufferOf(values: Int32Array | Float32Array): GPUBuffer {
  const size = Math.max(16, Math.ceil(values.byteLength / 16) * 16)
  const buffer = gpu.createBuffer({ size, usage: 0x80 | 0x4 | 0x8 })
  gpu.queue.writeBuffer(buffer, 0, values.buffer as ArrayBuffer, values.byteOffset, values.byteLength)
  return buffer
}

const rows = fc.array(fc.uniqueArray(fc.nat(6), { maxLength: 7 }), { minLength: 1, maxLength: 9 })

test('offsets, indices, values and results stay in the memory of the caller', async () => {
  await fc.assert(
    fc.asyncProperty(rows, async (lists) => {
      const [m, n] = [lists.length, 7]
      const indices = Int32Array.from(lists.flatMap((l) => l.toSorted((a, b) => a - b)))
      const indptr = new Int32Array(m + 1)
      for (const [i, l] of lists.entries()) indptr[i + 1] = indptr[i]! + l.length
      const A = Float32Array.from(indices, (_, p) => (p % 5) - 2)
      const B = Float32Array.from({ length: n * D }, (_, k) => (k % 7) - 3)
      const expected = new Float32Array(m * D)
      for (let i = 0; i < m; i++)
        for (let p = indptr[i]!; p < indptr[i + 1]!; p++)
          for (let f = 0; f < D; f++) expected[i * D + f]! += A[p]! * B[indices[p]! * D + f]!
      const C = bufferOf(new Float32Array(m * D))
      const arrays = {
        A: bufferOf(A),
        B: bufferOf(B),
        j_indptr: bufferOf(indptr),
        j_indices: bufferOf(indices),
        C,
      }
      const binding = await fn.bind({ ...arrays, m, n, d: D, j_count: indices.length })
      await binding.run()
      expect(binding.buffer('C')).toBe(C)
      expect(await binding.get('C')).toEqual(expected)
      binding.free()
      for (const b of Object.values(arrays)) b.destroy()
    }),
    { numRuns: 20 },
  )
})

test('an array that shares its buffer with others cannot be a GPUBuffer', async () => {
  const program = await load(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis p = sparse_variable(i, n)
  axis q = sparse_variable(i, n)
  axis d = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[i, p] in
  buffer C: f32[i, q] in
  buffer x: f32[d] in
  buffer y: f32[d] in
  buffer o: f32[i] out
  iterate sum [i, j] as SR { o[i] += A[i, j] * (B[i, j] + C[i, j]) * x[j] + y[j] }
}`)
  // With the limits that every device has.
  const packing = (await planIn(program, planRequest('k.spt?plan'))) as Plan
  const [packed] = packing.packed!
  const instance = await instantiate(packing, { device: gpu })
  const wrong = instance.bind({ [packed!.name]: bufferOf(Int32Array.of(0)), m: 0, n: 0 })
  await expect(wrong).rejects.toThrow(`bind/value-type: ${packed!.name} is GPUBuffer`)
})
