/** What is no number is not lost in a softmax: a row that attends to it has none as its result, the others theirs. */
import { expect, test } from 'vitest'
import { dense, devices, load } from '../../src/node.ts'

test('a NaN query gives a NaN row, packed sequences', async () => {
  const kernel = (await load('kernels/ragged-attention.spt'))
    .kernel('ragged_attention')
    .schedule('cpu', 2, 1, 1)
  const compiled = await kernel.build(await devices.cpu())
  const of = (...values: number[]) => dense([2, 2, 1, 1], Float32Array.from(values))
  const run = async (q: number) => {
    const tensors = {
      E: dense([1], Int32Array.of(4)),
      Q: of(q, 1, 1, 1),
      K: of(1, 1, 1, 1),
      V: of(1, 2, 3, 6),
    }
    return [...(await compiled({ ...tensors, scale: 1, causal: 0 })).O!.values!]
  }
  expect(await run(1)).toEqual([3, 3, 3, 3])
  expect(await run(Number.NaN)).toEqual([Number.NaN, 3, 3, 3])
  // Scores without an end have no weights.
  expect(await run(Number.POSITIVE_INFINITY)).toEqual([Number.NaN, 3, 3, 3])
})

test('a NaN key reaches only the rows that attend to it, blocks and columns', async () => {
  const kernel = (await load('kernels/dynamic-attention.spt'))
    .kernel('dynamic_attention')
    .schedule('cpu', 2, 1, 1, 1)
  const compiled = await kernel.build(await devices.cpu())
  const run = async (k: number) => {
    const tensors = {
      B: dense([1, 2, 2], Int32Array.of(1, 0, 0, 1)),
      C: dense([1, 4], Int32Array.of(0, 0, 0, 0)),
      Q: dense([2, 2, 1, 1], Float32Array.of(1, 1, 1, 1)),
      K: dense([4, 1, 1], Float32Array.of(k, 1, 1, 1)),
      V: dense([4, 1, 1], Float32Array.of(1, 3, 4, 6)),
    }
    return [...(await compiled({ ...tensors, scale: 1, causal: 0 })).O!.values!]
  }
  expect(await run(1)).toEqual([2, 2, 5, 5])
  expect(await run(Number.NaN)).toEqual([Number.NaN, Number.NaN, 5, 5])
})
