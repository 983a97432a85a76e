/** `spt run --weights` and `--save`: inputs by name from a model file, and results to one. */
import { afterAll, expect, test } from 'vitest'
import { densePart, readTensor, type SafetensorsPart, safetensorsChunks } from '../../src/io/index.ts'
import { toBf16, toF16 } from '../../src/ir/values/half.ts'
import type { DenseTensor } from '../../src/storage/tensor.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const MODEL = folder.file(
  'model.spt',
  `kernel linear(n: size, d: size) {
  axis i = dense_fixed(n)
  axis k = dense_fixed(d)
  axis o = dense_fixed(d)
  axis s = sparse_variable(o, d)
  buffer X: f32[i, k] in
  buffer W: f32[o, s] in
  buffer Y: f32[i, o] out
  iterate sum [i, o, s] as SSR { Y[i, o] += X[i, s] * W[o, s] }
}
kernel model(n: size, d: size) {
  axis i = dense_fixed(n)
  axis k = dense_fixed(d)
  axis o = dense_fixed(d)
  buffer X: f32[i, k] inout
  buffer scale: f16[] in
  buffer R: f32[i, k] out
  repeat 2 as l {
    axis s = sparse_variable(o, d)
    buffer W: f32[o, s] in
    call X = linear(X, W)
  }
  iterate scaled [i, k] as SS { R[i, k] = X[i, k] * f32(scale[]) }
}
kernel prune(d: size) {
  axis o = dense_fixed(d)
  axis s = sparse_variable(o, d)
  buffer W: f32[o, s] inout
  iterate half [o, s] as SS { W[o, s] = W[o, s] / 2.0 }
}
`,
)

const tensor = (
  dtype: DenseTensor['dtype'],
  shape: readonly number[],
  numbers: readonly number[],
): DenseTensor => {
  const half = dtype === 'f16' ? toF16 : toBf16
  const values = dtype === 'f32' ? Float32Array.from(numbers) : Uint16Array.from(numbers, half)
  return { kind: 'dense', dtype, shape, values }
}

async function weights(name: string, parts: readonly SafetensorsPart[]): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of safetensorsChunks(parts)) chunks.push(chunk)
  return folder.file(name, Buffer.concat(chunks))
}

const X = [1, 2, 3, 4]
/** Stored as f32, bf16 and f16: the last as `W.2`. */
const all = (): Promise<string> =>
  weights('w.safetensors', [
    densePart('X', tensor('f32', [2, 2], X)),
    densePart('W_1', tensor('bf16', [2, 2], [0, 2, 1, 0])),
    densePart('W.2', tensor('f16', [2, 2], [0.5, 0, 0, 1])),
    densePart('scale', tensor('f16', [], [2])),
    densePart('other', tensor('f32', [1], [0])),
  ])

test('inputs are bound by name, copies by their number, and results are saved by name', async () => {
  const saved = folder.at('out.safetensors')
  const run = ['run', MODEL, '--kernel', 'model', '--weights', await all(), '--verify']
  const { code, err } = await spt([...run, '--save', saved])
  expect([code, err.split('/').at(-1)]).toEqual([0, "w.safetensors': other\n"])
  // X W_1ᵀ swaps the columns, and doubles the second; W_2 halves the first.
  const outputs = [2, 1, 4, 3]
  expect([...(await readTensor(`${saved}#X`)).values!]).toEqual(outputs)
  expect([...(await readTensor(`${saved}#R`)).values!]).toEqual(outputs.map((x) => 2 * x))
})

test('sparse results are saved with zeros, and read again', async () => {
  const file = await weights('p.safetensors', [densePart('W', tensor('f32', [2, 2], [0, 2, 4, 0]))])
  const saved = folder.at('pruned.safetensors')
  const { code } = await spt([
    'run',
    MODEL,
    '--kernel',
    'prune',
    '--weights',
    file,
    '--save',
    saved,
    '--repeat',
    '1',
  ])
  expect(code).toBe(0)
  expect([...(await readTensor(`${saved}#W`)).values!]).toEqual([0, 1, 2, 0])
})

test('missing tensors, wrong shapes and files without a fitting tensor are named', async () => {
  const some = await weights('some.safetensors', [
    densePart('X', tensor('f32', [2, 2], X)),
    densePart('scale', tensor('f16', [], [2])),
  ])
  const run = ['run', MODEL, '--kernel', 'model', '--weights']
  const missing = await spt([...run, some])
  expect([missing.code, missing.err]).toEqual([
    0,
    `warning: '${some}' has no tensor for inputs of kernel model: W_1, W_2\n`,
  ])
  const shape = await weights('shape.safetensors', [
    densePart('X', tensor('f32', [2, 2], X)),
    densePart('W_1', tensor('f32', [3, 2], [1, 2, 3, 4, 5, 6])),
  ])
  const wrong = await spt([...run, shape])
  expect(wrong.code).toBe(1)
  expect(wrong.err).toContain('W_1')
  const none = await spt([
    ...run,
    await weights('none.safetensors', [densePart('Y', tensor('f32', [1], [0]))]),
  ])
  expect([none.code, none.err.split(':')[0]]).toEqual([1, 'error[bind/no-weights]'])
  const npy = await spt([...run, some, '--save', 'x.npy'])
  expect(npy.err).toContain('io/unknown-extension')
})
