/** What comes after a complete sum, moved into the loops that make it: every element once, in formats that permute rows or part them. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { add, ceildiv, type Expr, sub } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { type Device, devices, type Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { heldOf } from '../../src/schedule/loops/nests/merge-disjoint-rows.ts'
import { replay } from '../../src/schedule/state/state.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs, sample } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { refusal } from '../support/refusal.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'
import { rowSums } from '../support/stage2-samples.ts'

const TEXT = `
${standard('csr', 'by_length', 'bsr_by_length', 'sell', 'dcsr', 'coo', 'ell', 'rows_ell', 'pieces_ell')}
${standard('rows_by_length', 'hyb', 'hyb_pieces')}
format by_three(s) over (i, j) {
  part short = by_length where (count(j by i) <= s)
  part long = dcsr where (count(j by i) > 2 * s)
  part middle = dcsr
}
format by_width(s) over (i, j) {
  part short = ell where (count(j by i) <= s)
  part long = dcsr
}
format long_first(s) over (i, j) {
  part long = dcsr where (count(j by i) > s)
  part short = by_length
}
kernel layer(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(6)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer bias: f32[f] in
  buffer C: f32[i, f] local
  buffer Y: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
  iterate activate [i, f] as SS { Y[i, f] = max(C[i, f] + bias[f], -2) }
}
// The sum is wanted as well.
kernel both(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(6)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer bias: f32[f] in
  buffer C: f32[i, f] out
  buffer Y: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
  iterate activate [i, f] as SS { Y[i, f] = max(C[i, f] + bias[f], -2) }
}`

/** Steps by what they store `A` as. */
const WAYS: Readonly<Record<string, readonly string[]>> = {
  csr: [
    'compute_at activate at io',
    'split io by 2 -> (rq, ri); split rq by 3 -> (ro, rt); compute_at activate at ri; bind ro to block.x, rt to thread.x',
    'reorder (io, sum.f, jo); bind io to block.x, sum.f to thread.x; compute_at activate at sum.f; cache_write C at sum.f in register',
  ],
  by_length: [
    'compute_at activate at io',
    'reorder (io, sum.f, jo); compute_at activate at sum.f',
    // Tiles of a permutation are bound afterwards: no two have a row in common.
    'split io by 4 -> (ro, ri); reorder (ro, ri, jo, sum.f); compute_at activate at ro; bind ro to block.x',
    `split io by 4 -> (ro, ri); split sum.f by 4 -> (fo, fi); reorder (ro, fo, ri, fi, jo)
     bind ro to block.x, fo to block.y, ri to thread.y, fi to thread.x
     compute_at activate at fo`,
    `split io by 4 -> (ro, ri); split sum.f by 4 -> (fo, fi); reorder (ro, fo, ri, jo, fi)
     bind ro to block.x, fo to block.y, ri to thread.x
     compute_at activate at ri; cache_write C at ri in register; cache_read row at ri in register -> rows`,
    `split io by 2 -> (ro, ri); split jo by 4 -> (jq, jl); reorder (ro, ri, jl, sum.f, jq)
     bind ro to block.x, ri to thread.y, jl to thread.x
     compute_at activate at ri; cache_write C at ri in register`,
  ],
  'bsr_by_length(2)': [
    'compute_at activate at io',
    `reorder (io, sum.f, ii, jo, ji); bind io to block.x, sum.f to thread.y, ii to thread.x
     compute_at activate at ii; cache_write C at ii in register`,
    `reorder (io, ii, jo, sum.f, ji); bind io to block.x, ii to thread.x
     compute_at activate at io; cache_write C at io in shared; cache_read row at io in shared -> rows`,
  ],
  'sell(2, 4)': [
    'compute_at activate at so',
    `split sum.f by 4 -> (fo, fi); reorder (so, fo, ii, fi, k, jo)
     bind so to block.x, fo to block.y, ii to thread.y, fi to thread.x
     compute_at activate at fi; cache_write C at fi in register`,
    'split sum.f by 2 -> (fo, fi); reorder (so, ii, fo, fi, k, jo); compute_at activate at ii',
  ],
  // Lists come first in the one, so that the part with all rows is the last that adds to them.
  'long_first(2)': ['compute_at activate at io_short'],
  'rows_by_length(2)': [
    'compute_at activate at io_short',
    'each part of A as p { compute_at activate at p.io }',
    'compute_at activate at io_short; split activate.i by 2 -> (ao, ai); bind ao to block.x, ai to thread.x',
    `each part of A as p { reorder (p.io, sum.f, p.jo); bind p.io to block.x, sum.f to thread.x; compute_at activate at sum.f }
     each part of A as p { cache_write C at sum.f in register }
     merge (sum_long, sum_short)`,
    `split io_short by 4 -> (ro, ri); reorder (ro, sum_short.f, ri, jo_short)
     bind ro to block.x, sum_short.f to thread.y, ri to thread.x
     compute_at activate at ri; cache_write C_short at ri in register
     split jo_long by 4 -> (kq, kl); reorder (io_long, sum_long.f, kl, kq)
     bind io_long to block.x, sum_long.f to thread.y, kl to thread.x
     compute_at activate at sum_long.f; cache_write C_long at sum_long.f in register
     merge (sum_long, sum_short)`,
    `each part of A as p { split p.jo by 4 -> (q, l); reorder (p.io, l, sum.f, q); bind p.io to block.x, l to thread.x }
     each part of A as p { compute_at activate at p.io }
     each part of A as p { cache_write C at p.io in register }
     merge parts of A`,
  ],
  'by_width(2)': [
    'each part of A as p { compute_at activate at p.io }',
    'each part of A as p { bind p.io to block.x; compute_at activate at p.io }; merge parts of A',
  ],
  'by_three(1)': [
    'each part of A as p { compute_at activate at p.io }',
    'compute_at activate at io_short; compute_at activate at io_long',
    'each part of A as p { bind p.io to block.x; compute_at activate at p.io }; merge parts of A',
  ],
}

const CASES = Object.entries(WAYS).flatMap(([format, ways]) => ways.map((way) => [format, way] as const))

const scheduled = (kernel: string, format: string, way: string): Kernel =>
  parseProgram(`${TEXT}\nschedule ${kernel}.run { A as ${format}; ${way} }`).kernel(kernel).schedule('run')

const numbers = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)

/** Rows of so many elements each. */
function inputsFor(rows: readonly number[], seed: number): Inputs {
  const n = Math.max(1, ...rows)
  const i = rows.flatMap((l, r) => Array<number>(l).fill(r))
  const j = rows.flatMap((l, r) => Array.from({ length: l }, (_, k) => (k + r) % n))
  const A = coords([rows.length, n], [i, j], numbers(i.length, seed))
  return {
    tensors: { A, B: dense([n, 6], numbers(6 * n, seed + 1)), bias: dense([6], numbers(6, seed + 2)) },
  }
}

const rowLengths = fc.oneof(
  fc.array(fc.oneof(fc.constant(0), fc.nat(3), fc.integer({ min: 4, max: 9 })), { maxLength: 9 }),
  // Nothing at all, and one row that has everything.
  fc.array(fc.constant(0), { maxLength: 5 }),
  fc
    .tuple(fc.nat(4), fc.nat(4))
    .map(([a, b]) => [...Array<number>(a).fill(0), 40, ...Array<number>(b).fill(0)]),
)

function onStages(k: Kernel, inputs: Inputs): void {
  const c = k.compilation
  const bound = bindInputs(c.kernel, inputs)
  agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
}

const nests = (k: Kernel): readonly string[] =>
  k.compilation.loops.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : []))

describe.each(['layer', 'both'])(
  '%s agrees with the reference at every stage, on memory that holds NaN',
  (kernel) => {
    // What is kept in registers or merged is each part's own, which a buffer that leaves the kernel is not.
    const cases = CASES.filter(([, way]) => kernel === 'layer' || !/C_|merge|each.*cache/s.test(way))
    test.each(cases)('%s: %s', (format, way) => {
      const k = scheduled(kernel, format, way)
      fc.assert(
        fc.property(rowLengths, fc.nat(), (rows, seed) => onStages(k, inputsFor(rows, seed))),
        { numRuns: runs(3) },
      )
    })
  },
)

test('elements unchanged by a condition are consumed too', () => {
  const k = parseProgram(`kernel some(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis f = dense_fixed(6)
    buffer A: f32[i, j] in
    buffer bias: f32[f] in
    buffer C: f32[i, f] local
    buffer Y: f32[i, f] out
    iterate sum [i, f, j] as SSR { if (bias[f] > 0) { C[i, f] max= A[i, j] } }
    iterate activate [i, f] as SS { Y[i, f] = C[i, f] + bias[f] }
  }
  schedule some.run { compute_at activate at sum.i }`)
    .kernel()
    .schedule('run')
  const { tensors } = inputsFor([2, 0, 3], 4)
  onStages(k, { tensors: { A: tensors!.A!, bias: tensors!.bias! } })
})

test('an axis of one element is iterated only by its writer', () => {
  const k = parseProgram(`kernel sums(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis one = dense_fixed(1)
    buffer A: f32[i, j] in
    buffer C: f32[i, one] local
    buffer Y: f32[i, one] out
    iterate sum [i, one, j] as SSR { C[i, one] += A[i, j] }
    iterate activate [i, one] as SS { Y[i, one] = C[i, one] * 2 }
  }
  schedule sums.run { compute_at activate at sum.one }`)
    .kernel()
    .schedule('run')
  onStages(k, { tensors: { A: inputsFor([2, 0, 3], 4).tensors!.A! } })
})

test('lists of columns are distributed over groups of threads, and the last group may be empty', () => {
  const text = (steps: string): string => `${standard('panels')}
  kernel sampled(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis jd = dense_fixed(n)
    axis f = dense_fixed(6)
    buffer A: f32[i, j] in
    buffer X: f32[i, f] in
    buffer B: f32[jd, f] in
    buffer H: f32[i, j] local
    buffer C: f32[i, j] out
    iterate dot [i, j, f] as SSR { H[i, j] += X[i, f] * B[j, f] }
    iterate scale [i, j] as SS { C[i, j] = A[i, j] * H[i, j] }
  }
  schedule sampled.run {
    A as panels(4, 2)
    fuse (dot.io, dot.go) -> g
    fuse (scale.io, scale.go) -> kept
    ${steps}
  }`
  const made = (steps: string): Kernel => parseProgram(text(steps)).kernel('sampled').schedule('run')
  // Tiles that do not divide the rows of a list end with them.
  const uneven = made('split dot.ii by 3 -> (b, w); compute_at scale at g')
  const k = made(`split g by 3 -> (b, w); reorder (b, w, dot.ii, dot.ji, f); bind b to block.x, w to thread.y
    compute_at scale at w; cache_write H at w in register`)
  for (const scheduled of [k, uneven]) expect(nests(scheduled)).toEqual(['dot'])
  fc.assert(
    fc.property(rowLengths, fc.nat(), fc.constantFrom(k, uneven), (rows, seed, scheduled) => {
      const { A, B } = inputsFor(rows, seed).tensors!
      onStages(scheduled, {
        tensors: { A: A!, B: B!, X: dense([rows.length, 6], numbers(6 * rows.length, seed + 3)) },
      })
    }),
    { numRuns: runs(6) },
  )
})

test('lists of one position are consumed like those of several', () => {
  const program = parseProgram(`format lanes(s) over (e, t) {
    axis eo = sparse_variable(e)
    axis go = dense_variable(eo, t)
    list to = sparse_fixed(go, t, s)
    axis p = dense_fixed(go, to)
    map (e, t) -> (e, rank(t by e) / s, t, position(to))
    inverse (eo, go, p) -> (eo, to[p])
    mask there
  }
  kernel k(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis c = dense_fixed(d)
    buffer A: f32[i, j] in
    buffer X: f32[c] in
    buffer H: f32[i, j] local
    buffer G: f32[i, j] out
    iterate product [i, j, c] as SSR { H[i, j] += A[i, j] * X[c] }
    iterate relu [i, j] as SS { G[i, j] = max(H[i, j], 0) }
  }
  schedule k.s(s = 4) {
    A as lanes(s)
    fuse (product.eo, product.go) -> g
    fuse (relu.eo, relu.go) -> rg
    compute_at relu at product.p
  }`)
  for (const width of [1, 2, 3]) {
    const k = program.kernel('k').schedule('s', width)
    expect(nests(k)).toEqual(['product'])
    fc.assert(
      fc.property(rowLengths, fc.nat(), (rows, seed) => {
        const { A } = inputsFor(rows, seed).tensors!
        onStages(k, { tensors: { A: A!, X: dense([3], numbers(3, seed)) } })
      }),
      { numRuns: runs(4) },
    )
  }
})

test('the epilogue is entirely within the loops of its producer', () => {
  const left = CASES.filter(([format, way]) => nests(scheduled('layer', format, way)).includes('activate'))
  expect(left).toEqual([
    ['rows_by_length(2)', WAYS['rows_by_length(2)']![0]],
    ['rows_by_length(2)', WAYS['rows_by_length(2)']![2]],
    ['by_three(1)', WAYS['by_three(1)']![1]],
  ])
})

test('merged parts are one launch, without stores of values in registers', () => {
  for (const [format, way] of CASES.filter((c) => c[1].includes('merge'))) {
    const { plan } = scheduled('layer', format, way).compilation
    expect(plan.steps.map((s) => s.kind)).toEqual(['launch'])
    if (way.includes('cache_write')) expect(plan.buffers.filter((b) => b.role === 'local')).toEqual([])
  }
})

test('a row is searched in a list only if the part with all rows has no element of it', () => {
  const k = scheduled('layer', 'rows_by_length(2)', WAYS['rows_by_length(2)']![1]!)
  expect(print2(k.compilation.loops)).toContain(
    'select(0 < jo_short_indptr[io_short + 1] - jo_short_indptr[io_short], 0, io_long_count)',
  )
})

test('an empty segment means an empty row only if all reductions run over it', () => {
  const start = at('j_indptr', ['i'], 'index')
  const held = sub(at('j_indptr', [add(expr('i'), expr(1))], 'index'), start)
  const summed = (name: string, extent: Expr) =>
    loop(name, extent, [reduce(at('C', ['i']), '+', at('A', [name]))], { reduce: true })
  const row = (...body: For[]) => loop('i', 'm', body)
  expect(heldOf(rowSums, row(summed('j', held)), expr('i'))).toEqual(held)
  expect(heldOf(rowSums, row(summed('q', ceildiv(held, expr(4)))), expr('i'))).toEqual(held)
  expect(heldOf(rowSums, row(summed('j', held), summed('k', expr(4))), expr('i'))).toBeUndefined()
})

describe('rejections with a hint', () => {
  const CASES: readonly (readonly [string, string, string, RegExp])[] = [
    ['dcsr', 'compute_at activate at io', 'not-every-element', /choose a format that iterates over every i;/],
    ['coo', 'compute_at activate at io', 'not-complete', /leave activate a separate loop nest/],
    [
      'hyb(1, 1)',
      'each part of A as p { compute_at activate at p.io }',
      'order-matters',
      /leave activate a separate loop nest/,
    ],
    [
      'hyb_pieces(1, 1)',
      'each part of A as p { compute_at activate at p.io }',
      'order-matters',
      /sum_w2 may share elements of C with other iterations/,
    ],
    [
      'rows_by_length(2)',
      'compute_at activate at io_long',
      'not-every-element',
      /begin at a loop of sum_short/,
    ],
    [
      'rows_by_length(2)',
      'atomic C; compute_at activate at io_short',
      'order-matters',
      /sum_long may share elements of C with other iterations/,
    ],
    ['by_length', 'compute_at activate at jo', 'not-complete', /choose a loop outside of jo/],
  ]
  test.each(CASES)('%s: %s', (format, way, code, hint) => {
    const d = refusal(() => scheduled('layer', format, way))
    expect(d.code).toBe(`schedule/${code}`)
    expect(d.hint).toMatch(hint)
  })
})

test('a table covers every element only if it is known to be a permutation', () => {
  const buffers = [
    buffer('row', ['m'], 'in', { dtype: 'i32' }),
    buffer('X', ['m'], 'in'),
    buffer('C', ['m'], 'local'),
    buffer('Y', ['m'], 'out'),
  ]
  const made = loop('i', 'm', [store(at('C', [at('row', ['i'], 'index')]), at('X', ['i']))], { nest: 'make' })
  const used = loop('k', 'm', [store(at('Y', ['k']), at('C', ['k']))], { nest: 'use' })
  const kernel = kernel2('named', ['m'], buffers, [made, used])
  const fused = (k: typeof kernel) => replay(k, [{ kind: 'compute_at', nest: 'use', at: 'i' }]).kernel
  expect(refusal(() => fused(kernel)).code).toBe('schedule/not-every-element')
  expect(print2(fused({ ...kernel, permutations: ['row'] }), { bodyOnly: true })).toBe(`\
for i in 0..m
  C[row[i]] = X[i]
  Y[row[i]] = C[row[i]]`)
})

describe('devices', () => {
  const present: Device[] = []
  beforeAll(async () => void present.push(await devices.cpu(), await devices.webgpu()))
  afterAll(async () => {
    for (const d of present) await d.dispose()
  })
  const rows = [[], [0, 0], [0, 40, 0], [5, 0, 1, 9, 0, 2, 2, 3], [1, 1, 1]]

  test.each(sample(CASES, 8))('agree with the reference, %s: %s', async (format, way) => {
    const c = scheduled('layer', format, way).compilation
    for (const lengths of rows) {
      const bound = bindInputs(c.kernel, inputsFor(lengths, lengths.length))
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      for (const device of present) await agreeOnDevice(device, c, bound, expected)
    }
  })
})
