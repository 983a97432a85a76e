/** Sums recomputed inside of reduction loops of their consumers, and the steps that refusals of `compute_at` and `fuse` name. */
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Kernel } from '../../src/node.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { standard } from '../support/packaged-formats.ts'
import { refusal } from '../support/refusal.ts'

const integers = (shape: readonly number[], by: number) =>
  dense(
    shape,
    Int32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, e) => Math.max(((e * by) % 7) - 3, 0)),
  )

const TOTAL = `
kernel k(n: size, d: size) {
  axis j = dense_fixed(n)
  axis q = dense_fixed(d)
  buffer A: i32[j, q] in
  buffer D: i32[j] local
  buffer E: i32[] out
  iterate p [j, q] as SR { D[j] += A[j, q] }
  iterate e [j] as R { E[] += max(D[j], 1) }
}`

const of = (text: string, steps: string): Kernel =>
  parseProgram(`${text}\nschedule k.s { ${steps} }`).kernel('k').schedule('s')

test.each([
  'compute_at p at e.j recompute',
  'split e.j by 4 -> (o, t)  compute_at p at t recompute',
  'split e.j by 4 -> (o, t)  compute_at p at o recompute',
  'atomic E  split e.j by 4 -> (o, t)  compute_at p at t recompute  bind o to block.x, t to thread.x',
])('sums are initialised in memory of an iteration of the reduction: %s', async (steps) => {
  const k = of(TOTAL, steps)
  expect(print2(k.compilation.loops)).toContain('alloc D_register: ')
  for (const n of [0, 1, 7])
    await agreeOnAll(k.compilation, { tensors: { A: integers([n, 3], 5) }, params: { n, d: 3 } })
})

const SAMPLED = `${standard('bsr', 'csr')}
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(d)
  buffer M: i32[i, j] in
  buffer X: i32[i, q] in
  buffer Y: i32[j, q] in
  buffer T: i32[i, j] local
  buffer O: i32[i] out
  iterate sc [i, j, q] as SSR { if (M[i, j] != 0) { T[i, j] += X[i, q] * Y[j, q] } }
  iterate o [i, j] as SR { O[i] += M[i, j] * max(T[i, j], 2) }
}`

test.each([
  'compute_at sc at o.jo recompute',
  'fuse (sc.io, sc.jo) -> g  fuse (o.io, o.jo) -> g  compute_at sc at o.g recompute',
])('entries of a format built at run time: %s', async (steps) => {
  const tensors = { M: integers([5, 9], 3), X: integers([5, 3], 2), Y: integers([9, 3], 4) }
  const k = of(SAMPLED, `M as csr live in place  ${steps}`)
  await agreeOnAll(k.compilation, { tensors, params: { m: 5, n: 9, d: 3 } })
})

test.each(['csr', 'bsr(2)'])(
  'lists in %s as one loop of the consumer: the hint fuses those of the producer',
  (format) => {
    const consumer = 'fuse (o.io, o.jo) -> g  compute_at sc at o.g recompute'
    const { code, hint } = refusal(() => of(SAMPLED, `M as ${format} live in place  ${consumer}`))
    expect(code).toBe('schedule/too-large')
    const [step] = hint!.split(', before the first step on loops, or leave sc a separate loop nest')
    expect(step).toBe('fuse (sc.io, sc.jo) -> g')
    of(SAMPLED, `M as ${format} live in place  ${step}  ${consumer}`)
  },
)

test.each([
  'M as bsr(2) live in place  fuse (o.io, o.jo) -> g  atomic O  split o.g by 3 -> (a, b)  bind a to block.x, b to thread.x  compute_at sc at b recompute',
])('threads of a reduction cannot partition a global buffer: %s', (steps) => {
  expect(refusal(() => of(SAMPLED, steps).compilation.plan).code).toBe('schedule/too-large')
})

test('the hint does not propose to join nests that cannot be joined', () => {
  const steps = 'M as bsr(2) where (j < 4) + csr live in place  compute_at sc_bsr at o_bsr.jo_bsr recompute'
  expect(refusal(() => of(SAMPLED, steps))).toMatchObject({
    code: 'schedule/used-elsewhere',
    hint: 'leave sc_bsr a separate loop nest',
  })
})

const SHARED = `
kernel k(n: size, d: size) {
  axis j = dense_fixed(n)
  axis q = dense_fixed(d)
  buffer A: i32[j, q] in
  buffer D: i32[j] local
  buffer E: i32[j] out
  buffer F: i32[j] out
  iterate p [j, q] as SR { D[j] += A[j, q] }
  iterate x [j] as S { E[j] = D[j] + 1 }
  iterate f [j] as S { F[j] = D[j] * 2 }
}`
const TWICE = SAMPLED.replace(
  /iterate o [^\n]*/,
  'iterate o [i] as S { iterate a [j] as R { O[i] += T[i, j] } }',
).replace('O[i] += T[i, j] }', 'O[i] += T[i, j] } iterate b [j] as R { O[i] += 2 * T[i, j] }')

const DENSE = SAMPLED.replace(/if \([^)]*\) { ([^}]*) }/, '$1')

/** Steps refused, and what the hint says to take instead, which is taken. */
const HINTS: readonly (readonly [string, string, string])[] = [
  [TOTAL, 'compute_at p at e.j', 'compute_at p at e.j recompute: each iteration has memory of its own'],
  [
    DENSE,
    'compute_at sc at o.j',
    'compute_at sc at o.i, or compute_at sc at o.j recompute: each iteration has memory of its own',
  ],
  [SHARED, 'compute_at p at x.j', 'join (x, f) at x.j, then compute_at p at joined.j'],
  [SHARED, 'compute_at p at f.j', 'join (x, f) at f.j, then compute_at p at joined.j'],
  [TWICE, 'compute_at sc at a.j', 'compute_at sc at o.i'],
  [SAMPLED, 'fuse (sc.i, sc.j, sc.q) -> t', 'fuse (i, j)'],
]
test.each(HINTS.map(([text, ...of]) => [...of, text] as const))(
  '%s is rejected, with the hint %s',
  (step, hint, text) => {
    expect(refusal(() => of(text, step)).hint).toBe(hint)
    for (const way of hint.replace(/:.*/, '').split(', or '))
      of(text, way.replace(', then', ' ').replace('(i, j)', '(sc.i, sc.j)'))
  },
)

test.each(['fuse (i, j, q) -> t', 'fuse (j, q) -> t', 'atomic C  fuse (j, q) -> t'])(
  'dense loops with some reductions: %s',
  (step) => {
    const text = `
kernel k(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  axis q = dense_fixed(n)
  buffer C: i32[i, j] out
  iterate mul [i, j, q] as SSR { C[i, j] += i + j * q }
}`
    expect(refusal(() => of(text, step)).code).toBe('schedule/mixed-reduction')
  },
)

test('loops of joined nests are named with their nest', () => {
  expect(refusal(() => of(SHARED, 'join (x, f) at x.j  compute_at p at x.j'))).toMatchObject({
    message: expect.stringContaining('j was merged into joined.j by step 1'),
    expected: 'joined.j',
  })
  of(SHARED, 'join (x, f) at x.j  compute_at p at joined.j')
})
