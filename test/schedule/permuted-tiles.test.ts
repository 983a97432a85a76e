/** Loops over tiles that a permutation of the tiles names reach all elements, and other loops with tables in their indices do not. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Assign, Iter, Iteration, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { add, type Binary, ceildiv, type Expr, lt, mul, sub } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { deriveInitialisation } from '../../src/lower/positions/output-initialization.ts'
import { type Device, devices, type Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { replay } from '../../src/schedule/state/state.ts'
import { kernelOf } from '../elaborate/support.ts'
import { agreeOnAll, agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'
import { at, buffer, expr, kernel2, loop, store } from '../support/stage2-builders.ts'

/** Rows in tiles, in orders of their own: tiles by a permutation, rows in them perhaps by another. */
interface Drawn {
  readonly g: number
  /** Rows with elements first, or rows as they are. */
  readonly sorted: boolean
  /** Tiles with the most, or with the fewest, columns first, or all alike. */
  readonly by: '-count(k by to)' | 'count(k by to)' | '0 * count(k by to)'
  readonly role: 'local' | 'out'
  readonly way: number
}

const WAYS = [
  'compute_at act at sum.f',
  'compute_at act at ji; bind to to block.x',
  'compute_at act at to; bind to to block.x',
  'split ji by 2 -> (jo, jr); reorder (to, jo, sum.f, jr, q); compute_at act at jo; bind to to block.x, jo to thread.x',
  'compute_at act at ji; split to by 2 -> (tq, tr); bind tq to block.x, tr to thread.x',
  `split sum.f by 4 -> (fo, fi); reorder (to, fo, ji, fi, q); bind to to block.x, fo to block.y, ji to thread.x
   compute_at act at ji`,
]

const HALVES = 3

const text = ({ g, sorted, by, role, way }: Drawn): string => `
format tiles(g) over (j, k) {
  ${sorted ? 'sort j by -min(count(k by j), 1) -> (place, row)' : ''}
  sort to by ${by} -> (rank_of, tile)
  axis to = dense_fixed(ceildiv(j, g))
  axis ji = dense_fixed(to, g)
  axis q = sparse_variable(ji, k)
  map (j, k) -> (rank_of[${sorted ? 'place[j]' : 'j'} / g], ${sorted ? 'place[j]' : 'j'} % g, k)
  inverse (to, ji, q) -> (${sorted ? 'row[tile[to] * g + ji]' : 'tile[to] * g + ji'}, q)
}
kernel layer(m: size, n: size) {
  axis j = dense_fixed(m)
  axis k = sparse_variable(j, n)
  axis kd = dense_fixed(n)
  axis i = dense_fixed(6)
  buffer W: i32[j, k] in
  buffer X: i32[kd, i] in
  buffer b: i32[j] in
  buffer S: i32[j, i] ${role}
  buffer Y: i32[j, i] out
  iterate sum [j, k, f in i] as SRS { S[j, f] += W[j, k] * X[k, f] }
  iterate act [j, f in i] as SS { Y[j, f] = max(S[j, f] + b[j], -2) }
}
schedule layer.run {
  W as tiles(${g})
  ${[HALVES, 5].includes(way) ? '' : 'reorder (to, ji, sum.f, q)'}
  ${WAYS[way]}
}`

const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    g: fc.constantFrom(2, 3, 4, 8),
    sorted: fc.boolean(),
    by: fc.constantFrom<Drawn['by']>('-count(k by to)', 'count(k by to)', '0 * count(k by to)'),
    role: fc.constantFrom<Drawn['role']>('local', 'out'),
    way: fc.nat(WAYS.length - 1),
  })
  // Halves of tiles are whole.
  .map((d) => (d.way === HALVES && d.g === 3 ? { ...d, g: 4 } : d))

/** Rows of so many elements each, some of them in no column at all. */
const rowLengths = fc.oneof(
  fc.array(fc.oneof(fc.constant(0), fc.nat(5)), { maxLength: 11 }),
  fc.array(fc.constant(0), { maxLength: 5 }),
)

const numbers = (n: number, seed: number): Int32Array =>
  Int32Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)

function inputsFor(rows: readonly number[], seed: number): Inputs {
  const n = 7
  const at = rows.flatMap((length, j) =>
    Array.from({ length }, (_, e) => [j, (e * 3 + seed + j) % n] as const),
  )
  const W = coords(
    [rows.length, n],
    [at.map((x) => x[0]), at.map((x) => x[1])],
    numbers(at.length, seed),
    'i32',
  )
  return {
    tensors: {
      W,
      X: dense([n, 6], numbers(6 * n, seed + 1), 'i32'),
      b: dense([rows.length], numbers(rows.length, seed + 2), 'i32'),
    },
  }
}

const kernelFor = (d: Drawn): Kernel => parseProgram(text(d)).kernel().schedule('run')
const filled = (k: Kernel1): readonly string[] => deriveInitialisation(k).fills.map((f) => f.buffer)
/** The tables are ordinary ones. */
const undone = (k: Kernel1): Kernel1 => ({
  ...k,
  buffers: k.buffers.map(({ distinct: _, ...b }) => b),
})

test('formats: the epilogue is fused into the sum, without zero-fill, and all stages agree', () => {
  fc.assert(
    fc.property(drawn, rowLengths, fc.nat(), (d, rows, seed) => {
      const k = kernelFor(d)
      const c = k.compilation
      expect(new Set(c.loops.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))).toEqual(
        new Set(['sum']),
      )
      expect(filled(c.kernel)).toEqual([])
      expect(c.plan.steps.map((s) => s.kind)).toEqual(['launch'])
      // Were they not permutations, some elements might have nothing.
      expect(filled(undone(c.kernel))).toEqual(['S'])
      const bound = bindInputs(c.kernel, inputsFor(rows, seed))
      agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
    }),
    { numRuns: runs(20) },
  )
})

describe('devices', () => {
  const present: Device[] = []
  beforeAll(async () => void present.push(await devices.cpu(), await devices.webgpu()))
  afterAll(async () => {
    for (const d of present) await d.dispose()
  })

  test('agree with the reference on memory that is poisoned', async () => {
    await fc.assert(
      fc.asyncProperty(
        drawn,
        fc.array(rowLengths, { minLength: 3, maxLength: 3 }),
        fc.nat(),
        async (d, lists, seed) => {
          const c = kernelFor(d).compilation
          for (const rows of lists) {
            const bound = bindInputs(c.kernel, inputsFor(rows, seed))
            const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
            for (const device of present) await agreeOnDevice(device, c, bound, expected)
          }
        },
      ),
      { numRuns: runs(3) },
    )
  })
})

/** Loops `t` and `u` write C where an index says; a nest after it reads all of C. */
interface Loops {
  readonly count: number
  readonly g: number
  /** Of the table: as the loop, or another. */
  readonly length: number
  readonly permutation: boolean
  readonly index: keyof typeof INDICES
}
const tile = at('tile', ['t'], 'index')
const other = at('other', ['t'], 'index')
/** The index, and whether its values are all below count · g whatever the permutations are. */
const INDICES: Readonly<Record<string, readonly [(g: number) => Expr, whole: boolean]>> = {
  'tile[t] g + u': [(g) => add(mul(tile, expr(g)), expr('u')), true],
  'u count + tile[t]': [(g) => add(tile, mul(expr('u'), expr(COUNT / g))), true],
  '2 tile[t] g - t g + u': [
    (g) => add(sub(mul(tile, expr(2 * g)), mul(expr('t'), expr(g))), expr('u')),
    false,
  ],
  'tile[t] g + other[t] g - t g + u': [
    (g) => add(sub(mul(add(tile, other), expr(g)), mul(expr('t'), expr(g))), expr('u')),
    false,
  ],
  'tile[tile[t]] g + u': [(g) => add(mul(at('tile', [tile], 'index'), expr(g)), expr('u')), false],
  'tile[t + 0 u] g + u, from 1': [(g) => add(add(mul(tile, expr(g)), expr('u')), expr(1)), false],
  'tile[t] g + 2 u': [(g) => add(mul(tile, expr(g)), mul(expr('u'), expr(2))), false],
}
const COUNT = 12

const loops: fc.Arbitrary<Loops> = fc
  .record({
    g: fc.constantFrom(2, 3, 4, 6),
    more: fc.constantFrom(0, 0, 0, 1, -1),
    permutation: fc.constantFrom(true, true, true, false),
    index: fc.constantFrom(...Object.keys(INDICES)),
  })
  .map(({ g, more, permutation, index }) => ({
    g,
    count: COUNT / g,
    length: COUNT / g + more,
    permutation,
    index,
  }))

function made({ g, count, length, permutation, index }: Loops) {
  const c = at('C', [INDICES[index]![0](g)])
  const buffers = [
    buffer('tile', [length], 'in', { dtype: 'i32' }),
    buffer('other', [length], 'in', { dtype: 'i32' }),
    buffer('X', [COUNT], 'in'),
    buffer('C', [COUNT], 'local'),
    buffer('Y', [COUNT], 'out'),
  ]
  const body = [
    loop('t', count, [loop('u', g, [store(c, at('X', ['u']))], { nest: 'make' })], { nest: 'make' }),
    loop('k', COUNT, [store(at('Y', ['k']), at('C', ['k']))], { nest: 'use' }),
  ]
  const kernel = kernel2('named', [], buffers, body)
  return permutation ? { ...kernel, permutations: ['tile', 'other'] } : kernel
}

test('a loop is replaced by the permutation that it loads only if it covers the whole permutation', () => {
  const seen = new Set<boolean>()
  fc.assert(
    fc.property(loops, (l) => {
      const d = diagnosticOf(() => replay(made(l), [{ kind: 'compute_at', nest: 'use', at: 'u' }]))
      const whole = INDICES[l.index]![1] && l.permutation && l.length === l.count
      seen.add(whole)
      expect(d?.code).toBe(whole ? undefined : 'schedule/not-every-element')
    }),
    { numRuns: runs(150) },
  )
  expect(seen.size).toBe(2)
})

test('tiles with a partial last one', () => {
  const buffers = (length: Expr) => [
    buffer('tile', [length], 'in', { dtype: 'i32' }),
    buffer('X', ['m'], 'in'),
    buffer('C', ['m'], 'local'),
    buffer('Y', ['m'], 'out'),
  ]
  const index = add(mul(tile, expr(4)), expr('u'))
  const where = [lt(index, expr('m'))]
  const body = [
    loop(
      't',
      ceildiv(expr('m'), expr(4)),
      [loop('u', 4, [store(at('C', [index]), at('X', ['u']))], { nest: 'make', guards: where })],
      { nest: 'make' },
    ),
    loop('k', 'm', [store(at('Y', ['k']), at('C', ['k']))], { nest: 'use' }),
  ]
  const fused = (length: Expr, permutations?: readonly string[]) =>
    replay({ ...kernel2('named', ['m'], buffers(length), body), permutations }, [
      { kind: 'compute_at', nest: 'use', at: 'u' },
    ]).kernel
  const code = (length: Expr, permutations?: readonly string[]): string =>
    refusal(() => fused(length, permutations)).code
  expect(print2(fused(ceildiv(expr('m'), expr(4)), ['tile']), { bodyOnly: true })).toBe(`\
for t in 0..ceildiv(m, 4)
  for u in 0..4  where tile[t] * 4 + u < m
    C[tile[t] * 4 + u] = X[u]
    Y[tile[t] * 4 + u] = C[tile[t] * 4 + u]`)
  expect(code(ceildiv(expr('m'), expr(4)))).toBe('schedule/not-every-element')
  expect(code(ceildiv(expr('m'), expr(2)), ['tile'])).toBe('schedule/not-every-element')
})

/** What is filled where loops `to` and `ii` sum up at an index; `tab` and `tab2` are over as many tiles, or more of them. */
function summed(index: string, { more = '', distinct = true, twice = false } = {}): readonly string[] {
  const k = kernelOf(`kernel k(m: size, n: size) {
  axis to = dense_fixed(${twice ? '4' : 'ceildiv(m, 4)'})
  axis all = dense_fixed(${twice ? '4' : 'ceildiv(m, 4)'}${more})
  axis ii = dense_fixed(4)
  axis five = dense_fixed(5)
  axis i = dense_fixed(${twice ? '16' : 'm'})
  axis p = dense_fixed(n)
  buffer A: f32[p] in
  buffer tab: i32[all] in
  buffer tab2: i32[all] in
  buffer M: f32[i] out
  iterate sum [to, ii, five, p] as RRRR where (${index} < ${twice ? '16' : 'm'}) { M[${index}] += A[p] }
}`)
  // As formats make them, where what loops have to themselves is known.
  const [nest] = k.body as readonly [Iteration]
  const named = nest.iters.flatMap((it): Iter[] =>
    it.name === 'p' ? [it] : new RegExp(`\\b${it.name}\\b`).test(index) ? [{ ...it, kind: 'S' }] : [],
  )
  const buffers = k.buffers.map((b) => (b.name.startsWith('tab') && distinct ? { ...b, distinct: true } : b))
  const [sum] = nest.body as readonly [Assign]
  const [row] = sum.targets[0]!.index
  const [where] = nest.where as readonly [Binary]
  return filled({ ...k, buffers, body: [{ ...nest, iters: named, where: [lt(row!, where.b)] }] })
}

describe('sums over all entries of a permutation are initialised in their loops, otherwise zero-filled', () => {
  test('of loops alone', () => {
    expect(summed('to * 4 + ii')).toEqual([])
    expect(summed('to * 4 + ii', { twice: true })).toEqual([])
  })

  test.each(['tab[to] * 4 + ii', 'tab[tab2[to]] * 4 + ii'])('%s', (index) => {
    expect(summed(index)).toEqual([])
    expect(summed(index, { twice: true })).toEqual([])
    expect(summed(index, { distinct: false })).toEqual(['M'])
    expect(summed(index, { more: ' + 1' })).toEqual(['M'])
  })

  test.each([
    'tab[to] * 4 + five',
    'tab[to] * 2 + ii',
    'tab[to] + ii',
    'tab[to] * 4 + 3',
    'tab[to + ii] * 4 + ii',
    'tab[to / 2] * 4 + ii',
    'tab[2] * 4 + ii',
  ])('not %s', (index) => expect(summed(index)).toEqual(['M']))

  test.each([
    'tab[to] * 4 + to',
    'to * 4 + tab[to]',
    'tab[to] * 4 + tab[to]',
    'tab[to] * 4 + tab2[to]',
    'to * 4 + to',
  ])('nor with a loop twice: %s', (index) => expect(summed(index, { twice: true })).toEqual(['M']))
})

test('a loop that indexes two dimensions covers a diagonal', () => {
  const buffers = [
    buffer('tile', [4], 'in', { dtype: 'i32' }),
    buffer('C', [4, 4], 'local'),
    buffer('Y', [4, 4], 'out'),
  ]
  for (const index of [
    ['t', tile],
    [tile, 't'],
    [tile, tile],
    ['t', 't'],
  ]) {
    const body = [
      loop('t', 4, [store(at('C', index), expr(1))], { nest: 'make' }),
      loop('k', 4, [loop('l', 4, [store(at('Y', ['k', 'l']), at('C', ['k', 'l']))], { nest: 'use' })], {
        nest: 'use',
      }),
    ]
    const kernel = { ...kernel2('named', [], buffers, body), permutations: ['tile'] }
    const d = refusal(() => replay(kernel, [{ kind: 'compute_at', nest: 'use', at: 't' }]))
    expect(d.code).toBe('schedule/not-every-element')
    expect(d.message).toContain('t matches k and l')
    const k = kernelOf(`kernel k(n: size) {
  axis to = dense_fixed(4)
  axis i = dense_fixed(4)
  axis i2 = dense_fixed(4)
  axis p = dense_fixed(n)
  buffer A: f32[p] in
  buffer tab: i32[to] in
  buffer M: f32[i, i2] out
  iterate sum [to, p] as RR { M[${index.map((x) => (x === 't' ? 'to' : 'tab[to]')).join(', ')}] += A[p] }
}`)
    const [nest] = k.body as readonly [Iteration]
    const iters = nest.iters.map((it): Iter => (it.name === 'p' ? it : { ...it, kind: 'S' }))
    const buffers2 = k.buffers.map((b) => (b.name.startsWith('tab') ? { ...b, distinct: true } : b))
    expect(filled({ ...k, buffers: buffers2, body: [{ ...nest, iters }] })).toEqual(['M'])
  }
})

test('a matrix with sums on its diagonal is zero-filled and consumed entirely', async () => {
  const k = parseProgram(`kernel k(n: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  axis p = dense_fixed(3)
  buffer A: i32[i, p] in
  buffer C: i32[i, j] out
  buffer Y: i32[i, j] out
  iterate sum [i, p] as SR { C[i, i] += A[i, p] }
  iterate act [i, j] as SS { Y[i, j] = C[i, j] + 1 }
}
schedule k.at { compute_at act at sum.i }`).kernel()
  for (const n of [0, 1, 4])
    await agreeOnAll(k.compilation, { tensors: { A: dense([n, 3], numbers(3 * n, n), 'i32') } })
  expect(refusal(() => k.schedule('at')).code).toBe('schedule/not-every-element')
})
