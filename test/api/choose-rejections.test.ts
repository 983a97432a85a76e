/** A compiled choice refuses what it is asked with as it refuses what it is to run. */

import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense, devices, load } from '../../src/node.ts'

test('names, ranks and shapes that prepare rejects are rejected', async () => {
  const program = await load('import "sparsetile/kernels/tile-wise.spt"')
  const compiled = await program
    .kernel('pruned_linear')
    .schedule('auto')
    .build(await devices.cpu())
  const tensors = {
    W: coords(
      [2, 2],
      [
        [0, 1],
        [0, 1],
      ],
      [1, 2],
      'f32',
    ),
  }
  const params = { m: 1, low: 0 }
  const whole = { X: dense([2, 1], new Float32Array(2)), b: new Float32Array(2) }
  const code = (work: Promise<unknown>) =>
    work.then(
      () => 'accepted',
      (e: Error) => e.message.split(':')[0],
    )
  for (const [more, expected] of [
    [{}, 'accepted'],
    [{ params: { ...params, n: 2, k: 2 } }, 'accepted'],
    [{ params: { ...params, zz: 1 } }, 'bind/unknown-size'],
    [{ params: { ...params, n: 3 } }, 'bind/size-mismatch'],
    [{ tensors: { ...tensors, b: dense([2, 1], new Float32Array(2)) } }, 'bind/rank'],
    [{ tensors: { ...tensors, X: dense([2, 2], new Float32Array(4)) } }, 'bind/size-mismatch'],
    [{ tensors: { ...tensors, nope: new Float32Array(3) } }, 'bind/unknown-name'],
  ] as const) {
    const given = { tensors, params, ...more }
    expect(await code(compiled.choose(...flatInputs(given)))).toBe(expected)
    const all = { ...given, tensors: { ...whole, ...given.tensors } }
    expect(await code(compiled.bind(...flatInputs(all)).then((p) => p.free()))).toBe(expected)
  }
  compiled.release()
})
