/** Guards around reductions over padded copies, straight into what a kernel gives: gone where what is combined is there anyway. */
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from '../properties/agree.ts'

const PROGRAM = parseProgram(`format groups over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_variable(io, j)
  axis ko = sparse_fixed(go, j, 4)
  map (i, j) -> (i, rank(j by i) / 4, j)
  inverse (io, go, ko) -> (io, ko)
}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}`)
const stored = PROGRAM.kernel().as('A', 'groups').require('d', { equal: 8 })
const A = coords(
  [5, 40],
  [
    [0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4],
    [1, 2, 39, 0, ...Array.from({ length: 17 }, (_, e) => 2 * e), 7],
  ],
  Float32Array.from({ length: 22 }, (_, e) => e + 1),
) // prettier-ignore
const B = dense(
  [40, 8],
  Float32Array.from({ length: 320 }, (_, e) => e - 100),
)

const copied = (k: typeof stored): typeof stored =>
  k
    .reorder('io', 'go', 'f', 'ko')
    .cacheRead('A', 'go', 'shared', 'As', { padded: 0 })
    .cacheRead('B', 'go', 'shared', 'Bs', { padded: 0 })
const around = (k: typeof stored): string =>
  k
    .show(2)
    .split('\n')
    .find((l) => l.includes(' ko in '))!

test('padding slots add nothing to an existing element', async () => {
  const k = copied(stored.bind({ io: 'block.x', f: 'thread.x' }))
  expect(around(k)).not.toContain('where')
  await agreeOnAll(k.compilation, { tensors: { A, B } })
})

test.each([
  // As many atomic updates as there are elements.
  ['atomic', copied(stored.atomic('C'))],
  // What B holds there is anything.
  ['one copy', stored.reorder('io', 'go', 'f', 'ko').cacheRead('A', 'go', 'shared', 'As', { padded: 0 })],
])('%s: the guards are removed', async (_, k) => {
  expect(around(k)).toContain('where')
  await agreeOnAll(k.compilation, { tensors: { A, B } })
})
