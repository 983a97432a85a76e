/** Reference kernel for drift: constant work, so that its time reflects the speed of the device. */
import type { PreparedKernel } from '../../api/compiled/compiled.ts'
import { parseProgram } from '../../api/programs/program.ts'
import type { Device } from '../../runtime/device.ts'

/** Loads and operations per byte are similar to those of sparse kernels. */
const SOURCE = `
kernel reference(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] in
  buffer Z: f32[i] out
  iterate sum [i] as S {
    Z[i] = 3.0 * X[i] + Y[i]
  }
}
schedule reference.blocks {
  split i by 256 -> (io, ii)
  bind io to block.x, ii to thread.x
}
`

/** Number of elements: microseconds on a GPU, in its cache, and some hundred microseconds on cpu. */
const ELEMENTS = { cpu: 2 ** 18, other: 2 ** 20 } as const

/**
 * Prepares the reference kernel; the caller frees it with `reference.free()` and `reference.kernel.release()`. @throws
 * SptError as `compile` and `prepare`
 */
export async function prepareReference(device: Device): Promise<PreparedKernel> {
  const isCpu = device.kind === 'cpu'
  const program = parseProgram(SOURCE, 'reference.spt')
  const kernel = isCpu ? program.kernel() : program.kernel().schedule('blocks')
  const compiled = await kernel.compile(device)
  // The values do not affect the time.
  const n = isCpu ? ELEMENTS.cpu : ELEMENTS.other
  const values = new Float32Array(n)
  const dense = { kind: 'dense', shape: [n], values, dtype: 'f32' } as const
  return compiled.prepare({ params: { n }, tensors: { X: dense, Y: dense } })
}
