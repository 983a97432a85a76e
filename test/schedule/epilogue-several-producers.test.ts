/** Consumers of what several loops of an iteration produce, which combine over lists that a run finds and start their own sums. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'

const text = (steps: string, sums = ''): string => `${standard('csr')}
kernel tiles(m: size, n: size) {
  axis a = dense_fixed(m)
  axis b = dense_fixed(n)
  axis r = dense_fixed(4)
  axis c = dense_fixed(4)
  axis f = dense_fixed(6)
  buffer A: f32[a, b] in
  buffer X: f32[a, b, r, c] in
  buffer V: f32[b, c, f] in
  buffer M: f32[a, b, r] local
  buffer Z: f32[a, b, r] local
  buffer W: f32[a, b, r, f] local
  buffer S: f32[a, r] out
  buffer Y: f32[a, r, f] out
  iterate peak [a, b, r, c] as SSSR { if (A[a, b] != 0) { M[a, b, r] max= X[a, b, r, c] } }
  iterate total [a, b, r, c] as SSSR { if (A[a, b] != 0) { Z[a, b, r] += X[a, b, r, c] } }
  iterate mix [a, b, r, c, f] as SSSRS {
    if (A[a, b] != 0) { W[a, b, r, f] += select(M[a, b, r] != 2, X[a, b, r, c] * V[b, c, f], 0) }
  }
  iterate sums [a, b, r] as SRS ${sums} { if (A[a, b] != 0) { S[a, r] += M[a, b, r] * Z[a, b, r] } }
  iterate gather [a, b, r, f] as SRSS { if (A[a, b] != 0) { Y[a, r, f] min= W[a, b, r, f] - M[a, b, r] } }
}
schedule tiles.run { A as csr live in place; ${steps} }`

const made = (steps: string, sums?: string): Kernel =>
  parseProgram(text(steps, sums)).kernel('tiles').schedule('run')

const JOINED = 'join (peak, total, mix) at peak.jo'
const START =
  'cache_write M at joined.jo in register; cache_write Z at joined.jo in register; cache_write W at joined.jo in register'
const THREADS = `bind peak.r to thread.y, total.r to thread.y, mix.r to thread.y, mix.f to thread.x
  bind joined.io to block.x`

const WAYS: Readonly<Record<string, string>> = {
  'one after the other': `${JOINED}; ${START}; compute_at sums at joined.jo; compute_at gather at joined.jo`,
  'in registers for good': `${JOINED}; ${START}; compute_at sums at joined.jo; compute_at gather at joined.jo
    ${START}; cache_write S at joined.io in register; cache_write Y at joined.io in register`,
  'the other first': `${JOINED}; ${START}; compute_at gather at joined.jo; compute_at sums at joined.jo`,
  'by threads, each with its own of a tile': `${JOINED}; reorder (mix.r, mix.f, mix.c); ${THREADS}; ${START}
    compute_at sums at joined.jo; compute_at gather at joined.jo
    ${START}; cache_write S at joined.io in register; cache_write Y at joined.io in register`,
  'tiles of threads of several elements each': `${JOINED}
    split peak.r by 2 -> (ro, ri); split total.r by 2 -> (ro, ri); split mix.r by 2 -> (ro, ri); split mix.f by 3 -> (fo, fi)
    reorder (mix.ro, mix.fo, mix.c, mix.ri, mix.fi); split mix.c by 2 -> (co, ci)
    bind joined.io to block.x, peak.ro to thread.y, total.ro to thread.y, mix.ro to thread.y, mix.fo to thread.x
    ${START}; compute_at sums at joined.jo; compute_at gather at joined.jo; ${START}
    cache_write S at joined.io in register; cache_write Y at joined.io in register
    cache_read V at mix.co in shared`,
  'all in one loop': `cache_write M at peak.jo in register; cache_write Z at total.jo in register; cache_write W at mix.jo in register
    join (peak, total, mix, sums, gather) at peak.jo
    cache_write S at joined.io in register; cache_write Y at joined.io in register`,
  'rows apart': `split peak.r by 2 -> (ro, ri); split total.r by 2 -> (ro, ri); split mix.r by 2 -> (ro, ri)
    reorder (peak.ro, peak.jo, peak.ri); reorder (total.ro, total.jo, total.ri); reorder (mix.ro, mix.jo, mix.ri)
    ${JOINED}; ${START}; compute_at sums at joined.jo; compute_at gather at joined.jo`,
}

const values = (length: number, most: number) =>
  fc.array(fc.integer({ min: -most, max: most }), { minLength: length, maxLength: length })

const inputs: fc.Arbitrary<Inputs> = fc.record({ m: fc.nat(3), n: fc.nat(4) }).chain(({ m, n }) =>
  fc.record({ A: values(m * n, 1), X: values(m * n * 16, 3), V: values(n * 24, 3) }).map(
    ({ A, X, V }): Inputs => ({
      tensors: {
        A: dense([m, n], Float32Array.from(A)),
        X: dense([m, n, 4, 4], Float32Array.from(X)),
        V: dense([n, 4, 6], Float32Array.from(V)),
      },
    }),
  ),
)

test.each(Object.entries(WAYS))(
  '%s: every stage, the cpu and webgpu agree with the reference',
  async (_, way) => {
    const c = made(way).compilation
    const gpu = way.includes('thread') ? [await createNodeWebGpu()] : []
    await fc.assert(
      fc.asyncProperty(inputs, async (given) => {
        const bound = bindInputs(c.kernel, given)
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        agreeOnStages(c, bound, expected)
        for (const device of gpu) await agreeOnDevice(device, c, bound, expected)
      }),
      { numRuns: runs(3) },
    )
    for (const device of gpu) await device.dispose()
  },
)

/** Ways to have rows of a tile in loops of which all but one have one iteration: where to split them, and in which order they stand. */
const ROWS: Readonly<Record<string, (nest: string) => string>> = {
  'as they are': () => '',
  'by 1': (n) => `split ${n}.r by 1 -> (ro, ri)`,
  'by all': (n) => `split ${n}.r by 4 -> (ro, ri)`,
  'by 1, the inner first': (n) => `split ${n}.r by 1 -> (ro, ri); reorder (${n}.ri, ${n}.ro)`,
  'by all, and those by 1': (n) => `split ${n}.r by 4 -> (rs, rt); split ${n}.rt by 1 -> (ro, ri)`,
  'by 1, twice': (n) => `split ${n}.r by 1 -> (ro, rs); split ${n}.rs by 1 -> (ri, rt)`,
}

test('loops of one iteration equal the loop without the split', () => {
  const rows = fc.constantFrom(...Object.values(ROWS))
  const alike = rows.map((r) => [r, r] as const)
  const first = fc.constantFrom('sums gather', 'gather sums')
  fc.assert(
    fc.property(fc.oneof(alike, fc.tuple(rows, rows)), first, inputs, ([peak, total], order, given) => {
      const splits = [peak('peak'), total('total'), peak('mix')].filter((step) => step !== '').join('; ')
      const ends = order.split(' ').map((nest) => `compute_at ${nest} at joined.jo`)
      // A copy has its elements by one index: where those of nests differ, only before they are consumed together.
      const again = peak === total ? START : ''
      const c = made(`${JOINED}; ${splits}; ${START}; ${ends.join('; ')}; ${again}`).compilation
      const bound = bindInputs(c.kernel, given)
      agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
    }),
    { numRuns: runs(6) },
  )
})

test.each([1, 2, 4])('threads with %d rows of a tile each compute jointly read elements together', (by) => {
  const nests = ['peak', 'total', 'mix']
  const steps = nests.map((n) => `split ${n}.r by ${by} -> (ro, ri); bind ${n}.ro to thread.y`)
  const ends = 'compute_at sums at joined.jo; compute_at gather at joined.jo'
  const c = made(`${JOINED}; ${steps.join('; ')}; ${START}; ${ends}; ${START}`).compilation
  expect(loopsOf(c.loops.body).filter((l) => l.nest === 'sums' && l.name === 'ri')).toHaveLength(1)
  expect(loopsOf(c.loops.body).filter((l) => l.nest === 'sums' && l.name === 'ro')).toHaveLength(1)
})

test('a thread may compute the tile elements that it alone reads', () => {
  const kernel = parseProgram(`kernel k(m: size) {
    axis a = dense_fixed(m)
    axis f = dense_fixed(4)
    buffer X: f32[a, f] in
    buffer T: f32[a, f] local
    buffer Y: f32[a, f] out
    iterate twice [a, f] as SS { T[a, f] = X[a, f] * 2 }
    iterate one [a, f] as SS { Y[a, f] = T[a, f] + 1 }
  }
  schedule k.run { join (twice, one) at twice.a; cache_write T at joined.a in register; bind one.f to thread.x }`)
  const c = kernel.kernel('k').schedule('run').compilation
  const bound = bindInputs(c.kernel, {
    tensors: { X: dense([2, 4], Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8)) },
  })
  agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
})

test('a thread allocates only its own elements of a tile', () => {
  const { plan } = made(WAYS['by threads, each with its own of a tile']!).compilation
  const text = JSON.stringify(plan.steps, (_, x) => (typeof x === 'bigint' ? String(x) : x))
  const shapes = [...text.matchAll(/"scope":"register","role":"local","shape":\[\{[^}]*"value":(\d+)/g)].map(
    (x) => Number(x[1]),
  )
  expect(Math.max(0, ...shapes)).toBeLessThanOrEqual(1)
})

test.each([
  ['loops that are not alike make what is read', 'other-elements', 'split total.r by 2 -> (ro, ri)', ''],
  ['which elements are reached is asked in each iteration', 'starts-in-reduction', '', 'where (b < 2)'],
])('%s: %s', (_, code, steps, where) => {
  const way = `${JOINED}; ${steps}; ${START}; compute_at sums at joined.jo`
  expect(refusal(() => void made(way, where).compilation.loops).code).toBe(`schedule/${code}`)
})

test('an initialisation within another nest’s reduction loop is rejected', () => {
  const code = refusal(() => void made('join (peak, sums) at peak.jo').compilation.loops).code
  expect(code).toBe('schedule/starts-in-reduction')
})

test.each([
  ['other data', 'D[a] > 1', true, 'a'],
  ['what names the element', 'L[a] > 1', false, 'L[a]'],
  ['where the element is', 'a > 1', false, 'a'],
  ['a size', 'n > 1', false, 'a'],
])('reads that depend on %s: copied %s', (_, condition, copied, at) => {
  const kernel = parseProgram(`kernel k(m: size, n: size, q: size) {
    axis a = dense_fixed(m)
    axis b = dense_fixed(n)
    axis c = dense_fixed(q)
    buffer L: i32[a] in
    buffer D: i32[a] in
    buffer X: f32[a, c] in
    buffer Y: f32[a, c] out
    iterate take [a, c] as SS { Y[a, c] = select(${condition}, X[${at}, c], 1) }
  }
  schedule k.run { cache_read X at c in register }`)
  const made = (): string | undefined =>
    diagnosticOf(() => void kernel.kernel('k').schedule('run').compilation.loops)?.code
  expect(made()).toBe(copied ? undefined : 'schedule/conditional-read')
})
