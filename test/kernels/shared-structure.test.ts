/** Tensors that share axes share their structure: made of what all of them need, or refused. */
import { expect, test } from 'vitest'
import { coords, devices, load, stored } from '../../src/node.ts'

const SOURCE = `
kernel both(m: size, n: size, l: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = sparse_variable(j, l)
  buffer A: f32[i, j, k] in
  buffer B: f32[i, j] in
  buffer C: f32[i, j] out
  iterate scale [i, j] as SS { C[i, j] = 10 * B[i, j] }
  iterate sum [i, j, k] as SSR { C[i, j] += A[i, j, k] }
}
kernel twins(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer B: f32[i, j] in
  buffer C: f32[i, j] out
  iterate add [i, j] as SS { C[i, j] = A[i, j] + B[i, j] }
}`

test('a pair stored in one of two tensors is visible to both', async () => {
  const compiled = await (await load(SOURCE)).kernel('both').build(await devices.cpu())
  const A = coords(
    [3, 4, 2],
    [
      [0, 0, 2],
      [1, 1, 3],
      [0, 1, 0],
    ],
    [1, 2, 3],
  )
  const B = coords(
    [3, 4],
    [
      [0, 1],
      [2, 0],
    ],
    [4, 5],
  )
  const prepared = await compiled.bind({ A, B })
  expect((await prepared.verify()).problems).toEqual([])
  const C = await prepared.get('C')
  expect(C.kind === 'coords' && C.coords.map((c) => [...c])).toEqual([
    [0, 0, 1, 2],
    [1, 2, 0, 3],
  ])
  expect([...C.values!]).toEqual([3, 40, 50, 3])
})

test('index arrays of equal length and different contents are rejected', async () => {
  const compiled = await (await load(SOURCE)).kernel('twins').build(await devices.cpu())
  const csr = (indptr: number[], indices: number[]) =>
    stored(
      [2, 4],
      { j: { indptr: Int32Array.from(indptr), indices: Int32Array.from(indices) } },
      Float32Array.of(1, 2),
    )
  const run = (a: [number[], number[]], b: [number[], number[]]) => compiled({ A: csr(...a), B: csr(...b) })
  expect([
    ...(
      await run(
        [
          [0, 1, 2],
          [0, 3],
        ],
        [
          [0, 1, 2],
          [0, 3],
        ],
      )
    ).C!.values!,
  ]).toEqual([2, 4])
  for (const other of [
    [
      [0, 2, 2],
      [0, 3],
    ],
    [
      [0, 1, 2],
      [1, 3],
    ],
  ] as [number[], number[]][])
    await expect(
      run(
        [
          [0, 1, 2],
          [0, 3],
        ],
        other,
      ),
    ).rejects.toThrow('different structure')
})
