/** Producers computed in tiles of their consumers (`compute_at`): regions, recomputation and memory, against the reference. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Kernel } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { standard } from '../support/packaged-formats.ts'
import { refusal } from '../support/refusal.ts'

/** Pointwise, a sum, beside its own index, with elements that nothing writes, and in two steps. */
const PRODUCERS = [
  'iterate d [i, f] as SS { D[i, f] = A[i, f] * 3 + 1 }',
  'iterate d [i, f, c] as SSR { D[i, f] += A[i, f] * B[c, f] }',
  'iterate d [i, f] as SS where (i + 1 < n) { D[i + 1, f] = A[i, f] - 2 }',
  'iterate d [i, f] as SS where (i % 3 != 1) { D[i, f] = A[i, f] }',
  `iterate d [i] as S {
    iterate first [f] as S { D[i, f] = A[i, f] + 1 }
    iterate second [f, c] as SR { D[i, f] += B[c, f] }
  }`,
]

/** `E[i, f] = D[…] + …`. */
const kernelOf = (producer: string, consumer: string): string => `
kernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis f = dense_fixed(m)
  axis c = dense_fixed(3)
  axis w = dense_fixed(3)
  buffer A: i32[i, f] in
  buffer B: i32[c, f] in
  buffer D: i32[i, f] local
  buffer E: i32[i, f] out
  ${producer}
  ${consumer}
}`

const row = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -3, max: 3 }).map((c) => `i + ${c}`) },
  fc.nat(3).map((c) => `max(i - ${c}, 0)`),
  fc.nat(3).map((c) => `min(i + ${c}, n - 1)`),
  fc.nat(3).map((c) => `(i + ${c}) % n`),
  fc.constantFrom('2 * i', '2 * i + 1', 'i / 2', 'n - 1 - i', 'max(min(i + 2, n - 1), 1)', '0'),
)
const column = fc.constantFrom('f', 'f', 'f + 1', 'max(f - 1, 0)', 'm - 1 - f')
const reads = fc.array(fc.tuple(row, column), { minLength: 1, maxLength: 3 })
const window = (read: string): string => `iterate e [i, f, w] as SSR { E[i, f] += ${read} }`
const consumer = fc.oneof(
  { weight: 3, arbitrary: reads.map((rs) => `iterate e [i, f] as SS { E[i, f] = ${sum(rs)} }`) },
  fc.constantFrom('D[i + w, f]', 'D[i + w - 1, f] * w', 'D[2 * i + w, f]', 'D[max(i - w, 0), f]').map(window),
)
const sum = (rs: readonly (readonly [string, string])[]): string =>
  rs.map(([r, c], k) => `${k + 1} * D[${r}, ${c}]`).join(' + ')

/** Loops of the consumer, where the producer goes, and what comes after that. */
const WAYS: readonly {
  readonly before: string
  readonly at: readonly string[]
  readonly after: readonly string[]
}[] = [
  {
    before: 'split e.i by TILE -> (o, t)',
    at: ['o', 't', 'e.f', 'e.w'],
    after: ['', 'bind o to block.x', 'split d.f by 2', 'reorder (t, e.f)', 'unroll t', 'vectorize e.f'],
  },
  {
    before: 'tile (e.i, e.f) by (TILE, 2) -> (o, fo, t, ft)',
    at: ['o', 'fo', 't', 'ft'],
    after: [
      '',
      'bind o to block.y, fo to block.x',
      'bind o to block.y, fo to block.x, t to thread.y, ft to thread.x',
      'bind o to block.y, fo to block.x; bind d.i to thread.x',
      'fuse (t, ft) -> q',
    ],
  },
  {
    before:
      'tile (e.i, e.f) by (TILE, 2) -> (o, fo, t, ft); bind o to block.y, fo to block.x, t to thread.y, ft to thread.x',
    at: ['fo', 't', 'ft'],
    after: ['', 'bind d.i to thread.y', 'bind d.i to thread.y, d.f to thread.x'],
  },
  { before: '', at: ['e.i', 'e.f', 'e.w'], after: ['', 'bind e.i to block.x', 'split e.i by TILE'] },
]

const drawn = fc.record({
  consumer,
  producer: fc.constantFrom(...PRODUCERS),
  way: fc.nat(WAYS.length - 1),
  at: fc.nat(3),
  after: fc.nat(5),
  tile: fc.integer({ min: 1, max: 5 }),
  how: fc.constantFrom(
    '',
    ' recompute',
    ' recompute',
    ' recompute in register',
    ' recompute in shared',
    ' in register',
  ),
  n: fc.nat(11),
  m: fc.integer({ min: 1, max: 5 }),
})
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

const scheduled = ({ consumer: e, producer, way, at, after, tile, how }: Drawn, take: number) => {
  const { before, at: loops, after: later } = WAYS[way]!
  const steps = [
    before.replaceAll('TILE', String(tile)),
    `compute_at d at ${loops[at % loops.length]}${how}`,
    later[after % later.length]!.replaceAll('TILE', String(tile)),
  ]
  const text = `${kernelOf(producer, e)}\nschedule k.s { ${steps.slice(0, take).filter(Boolean).join('\n')} }`
  return { text, kernel: () => parseProgram(text).kernel('k').schedule('s').compilation }
}

const inputsOf = ({ n, m }: Drawn) => ({
  tensors: {
    A: dense(
      [n, m],
      Int32Array.from({ length: n * m }, (_, e) => ((e * 7) % 11) - 5),
    ),
    B: dense(
      [3, m],
      Int32Array.from({ length: 3 * m }, (_, e) => ((e * 5) % 7) - 3),
    ),
  },
  params: { n, m },
})

const codeOf = (make: () => { loops: unknown }): string | undefined => {
  try {
    void make().loops
    return undefined
  } catch (e) {
    return refusal(() => {
      throw e
    }).code
  }
}

/** Of the step itself. */
const ALLOWED = new Set([
  'schedule/computed-again',
  'schedule/too-large',
  'schedule/starts-in-reduction',
  'schedule/condition-in-reduction',
  'schedule/shared-by-threads',
  'schedule/block-not-outermost',
])

test('tiles of a producer equal the reference, for any reads', async () => {
  let carried = 0
  await fc.assert(
    fc.asyncProperty(drawn, async (d) => {
      const step = scheduled(d, 2)
      const refused = codeOf(step.kernel)
      if (refused !== undefined) {
        if (refused === 'schedule/unknown-loop' && step.text.includes('at e.w')) return
        const isOwn = d.how !== '' && refused === 'schedule/starts-in-reduction'
        if (isOwn || !ALLOWED.has(refused)) throw new Error(`${refused}\n${step.text}`)
        return
      }
      const whole = scheduled(d, 3)
      const later = codeOf(whole.kernel)
      const { text, kernel } = later === undefined ? whole : step
      carried++
      try {
        await agreeOnAll(kernel(), inputsOf(d))
      } catch (e) {
        if (
          codeOf(() => {
            throw e
          })?.startsWith('schedule/')
        )
          return
        throw new Error(`${e instanceof Error ? e.stack : e}\n${text}`)
      }
    }),
    { numRuns: runs(120) },
  )
  expect(carried).toBeGreaterThan(runs(120) / 10)
})

const tiles = (reads: string, step: string): string => `
kernel c(n: size) {
  axis i = dense_fixed(n)
  buffer A: f32[i] in
  buffer D: f32[i] local
  buffer E: f32[i] out
  iterate d [i] as S { D[i] = A[i] * 2.0 }
  iterate e [i] as S { E[i] = ${reads} }
}
schedule c.s {
  split e.i by 32 -> (o, t)
  ${step}
}`
const scheduledIn = (text: string): Kernel => parseProgram(text).kernel().schedule('s')
const loopsIn = (text: string): string => print2(scheduledIn(text).compilation.loops)

test('a tile computes the elements that it reads', () => {
  expect(loopsIn(tiles('D[i] + 1.0', 'compute_at d at o'))).toContain(`
for o in 0..ceildiv(n, 32)
  for i in 0..32  where o * 32 + i < n
    D[o * 32 + i] = A[o * 32 + i] * 2
  for t in 0..32  where o * 32 + t < n
    E[o * 32 + t] = D[o * 32 + t] + 1`)
})

test('overlapping tiles have separate memory, as large as the read region', () => {
  const text = loopsIn(tiles('D[max(i - 1, 0)] + D[i]', 'compute_at d at o recompute'))
  expect(text).toContain(`
  alloc D_register: f32[33] register
  for i in 0..33  where o * 32 + i - 1 >= 0 and o * 32 + i - 1 < n
    D_register[i] = A[o * 32 + i - 1] * 2`)
  expect(text).not.toContain('  D: f32')
})

test('threads inside the tile share it', () => {
  const bound = 'bind o to block.x, t to thread.x  compute_at d at o recompute'
  expect(loopsIn(tiles('D[i] + D[i + 1]', bound))).toContain('alloc D_shared: f32[33] shared')
})

test.each([
  [
    'D[i] + D[i - 1]',
    'compute_at d at o',
    'each iteration of o would compute its elements of D, and several may read the same elements',
    'compute_at d at o recompute: each iteration computes elements in private memory',
  ],
  [
    'D[i]',
    'split d.i by 32 -> (do, dt)  compute_at d at o',
    'every iteration of o would compute the elements of D that do, dt cover',
    'move compute_at before the steps on do, dt',
  ],
])('%s: %s is rejected', (reads, step, message, hint) => {
  const found = refusal(() => loopsIn(tiles(reads, step)))
  expect(found).toMatchObject({ code: 'schedule/computed-again', hint })
  expect(found.message).toContain(message)
})

test('a write that may be lost is kept', () => {
  const text = tiles('D[i]', 'compute_at d at o').replace('D[i] = A', 'D[i + 1] = A')
  expect(refusal(() => loopsIn(text))).toMatchObject({
    code: 'schedule/lost-writes',
    hint: 'iterate d … where (i + 1 < n)',
  })
})

const SCORES = `${standard('ell', 'bsr', 'dcsr')}
kernel score(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis k  = dense_fixed(d)
  buffer S: i32[i, j] in
  buffer X: i32[i, k] in
  buffer Y: i32[jd, k] in
  buffer P: i32[i, j] local
  buffer R: i32[i] out
  iterate dot [i, j, k] as SSR { P[i, j] += S[i, j] * X[i, k] * Y[j, k] }
  iterate rows [i, j] as SR { R[i] += max(P[i, j], 0) }
}`

test.each([
  'split rows.i by 4 -> (o, t)  compute_at dot at o',
  'S as ell  split rows.io by 3 -> (o, t)  compute_at dot at o  bind o to block.x, t to thread.x',
  'S as bsr(2)  split rows.io by 2 -> (o, t)  compute_at dot at o',
  'S as dcsr  split rows.io by 2 -> (o, t)  compute_at dot at t',
])('rows of sparse producers: %s', async (steps) => {
  const k = parseProgram(`${SCORES}\nschedule score.s { ${steps} }`).kernel().schedule('s')
  const at = Array.from({ length: 63 }, (_, e) => e).filter((e) => (e * 5) % 7 < 3 && e % 9 !== 4)
  const S = coords(
    [7, 9],
    [at.map((e) => Math.floor(e / 9)), at.map((e) => e % 9)],
    Int32Array.from(at, (e) => (e % 5) - 2),
  )
  const X = dense(
    [7, 3],
    Int32Array.from({ length: 21 }, (_, e) => (e % 7) - 3),
  )
  const Y = dense(
    [9, 3],
    Int32Array.from({ length: 27 }, (_, e) => (e % 4) - 1),
  )
  await agreeOnAll(k.compilation, { tensors: { S, X, Y }, params: { m: 7, n: 9, d: 3 } })
})

test('calls from TypeScript equal steps of program text', () => {
  const k = parseProgram(tiles('D[i] + D[i - 1]', '')).kernel().split('e.i', 32, ['o', 't'])
  expect(k.computeAt('d', 'o', { recompute: true, place: 'shared' }).trace.at(-1)).toBe(
    'compute_at d at o recompute in shared',
  )
  expect(refusal(() => k.computeAt('d', 'o', { recomputed: true } as object)).code).toBe('api/unknown-option')
})

const SIZES = [1, 31, 32, 33, 70]
const ON_DEVICES = [
  'compute_at d at o recompute',
  'bind o to block.x, t to thread.x  compute_at d at o recompute  bind d.i to thread.x',
  'bind o to block.x, t to thread.x  compute_at d at o recompute',
  'compute_at d at t recompute  bind o to block.x, t to thread.x',
]
const webgpu = await createNodeWebGpu().catch(() => undefined)
test.skipIf(!webgpu)('overlapping tiles on webgpu', async () => {
  for (const step of ON_DEVICES) {
    const k = scheduledIn(tiles('D[max(i - 1, 0)] + D[i] * D[min(i + 2, n - 1)]', step))
    const compiled = await k.build(webgpu!)
    for (const n of SIZES) {
      const prepared = await compiled.bind({ A: dense([n], integers(n, n)) })
      await prepared.run()
      expect((await prepared.verify()).ok, `${step}, n = ${n}`).toBe(true)
    }
  }
  await webgpu!.dispose()
})
