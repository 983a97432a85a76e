/** Which buffers are filled first, which reductions start their targets themselves: every element has a value. */
import { describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { lt, variable } from '../../src/ir/expressions/expr.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { deriveInitialisation } from '../../src/lower/positions/output-initialization.ts'
import { kernelOf } from '../elaborate/support.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { interpretedPlan } from '../support/interpreted.ts'
import { POISON, run, runPlan } from '../support/kernel2.ts'
import { at, buffer, expr, kernel2, loop, reduce } from '../support/stage2-builders.ts'

/** Rows that are listed: nothing visits all elements of `M`. */
const listed = (body: string, role = 'local'): string => `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis l = sparse_variable(m)
  axis j = sparse_variable(l, n)
  buffer A: f32[l, j] in
  buffer M: f32[i] ${role}
  ${['P: f32[l, j]', 'y: f32[i]', 's: f32[]'].map((b) => (body.includes(` ${b[0]}[`) ? `buffer ${b} out` : '')).join('\n')}
  ${body}
}`
const PEAK = 'iterate peak [j] as R { M[l] max= A[l, j] }'
const LESS = 'iterate less [j] as S { P[l, j] = A[l, j] - M[l] }'

/** What is filled, and the buffers whose reductions start them. */
function started(text: string): { filled: string[]; inNest: string[] } {
  const { fills, inNest } = deriveInitialisation(kernelOf(text))
  return {
    filled: fills.map((f) => f.buffer).filter((b) => b === 'M'),
    inNest: [...inNest].flatMap((s) => s.targets.map((t) => t.buffer)).filter((b) => b === 'M'),
  }
}
const own = { filled: [], inNest: ['M'] }
const filled = { filled: ['M'], inNest: [] }

describe('elements of single steps', () => {
  test('are initialised in the step', () => {
    expect(started(listed(`iterate each [l] as S { ${PEAK} ${LESS} }`))).toEqual(own)
    // Whatever the element is called.
    const named = 'let x = l iterate peak [j] as R { M[x] max= A[l, j] }'
    expect(started(listed(`iterate each [l] as S { ${named} ${LESS} }`))).toEqual(own)
  })

  test.each([
    ['a result', listed(`iterate each [l] as S { ${PEAK} ${LESS} }`, 'out')],
    ['steps that combine', listed(`iterate each [l] as R { ${PEAK} s[] += M[l] }`)],
    [
      'steps without a start',
      listed(`iterate each [l] as S { ${PEAK.replace('as R', 'as R where (l > 3)')} ${LESS} }`),
    ],
    ['a condition', listed(`iterate each [l] as S { if (l > 3) { ${PEAK} } ${LESS} }`)],
    [
      'other readers',
      listed(`iterate each [l] as S { ${PEAK} ${LESS} } iterate last [i] as S { y[i] = M[i] }`),
    ],
  ])('are zero-filled otherwise: %s', (_, text) => {
    expect(started(text)).toEqual(filled)
  })
})

/** Tiles of 4 rows, of which the last may go beyond m, and a nest after that reads what has been summed up. */
const tiles = (reads: string, where = 'where (io * 4 + ii < m)', role = 'local'): string => `
kernel k(m: size, n: size) {
  axis io = dense_fixed(ceildiv(m, 4))
  axis ii = dense_fixed(4)
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer c: i32[ii] ${reads.includes('c[ii] =') ? 'inout' : 'in'}
  buffer M: f32[io, ii] ${role}
  ${['y: f32[io, ii]', 's: f32[]'].map((b) => (reads.includes(` ${b[0]}[`) ? `buffer ${b} out` : '')).join('\n')}
  iterate sum [io, ii, j] as SSR ${where} { M[io, ii] += A[io * 4 + ii, j] }
  ${reads}
}`

describe('reads under the conditions of the writes', () => {
  const asked = 'where (io * 4 + ii < m)'
  test.each([
    ['the same', tiles(`iterate last [io, ii] as SS ${asked} { y[io, ii] = M[io, ii] }`)],
    [
      'by other names',
      tiles('iterate last [a in io, b in ii] as SS where (a * 4 + b < m) { y[a, b] = M[a, b] }'),
    ],
    [
      'of data',
      tiles('iterate last [io, ii] as SS where (c[ii] > 0) { y[io, ii] = M[io, ii] }', 'where (c[ii] > 0)'),
    ],
    [
      'and further ones',
      tiles(
        `iterate last [io] as R { iterate each [ii] as R ${asked} { if (io > 0) { s[] += M[io, ii] } } }`,
      ),
    ],
  ])('are initialised in their nest: %s', (_, text) => {
    expect(started(text)).toEqual(own)
  })

  test.each([
    ['a result', tiles(`iterate last [io, ii] as SS ${asked} { y[io, ii] = M[io, ii] }`, asked, 'out')],
    ['none', tiles('iterate last [io, ii] as SS { y[io, ii] = M[io, ii] }')],
    ['others', tiles('iterate last [io, ii] as SS where (io * 4 + ii < n) { y[io, ii] = M[io, ii] }')],
    ['of other elements', tiles(`iterate last [io, ii, b in ii] as SSR ${asked} { y[io, ii] += M[io, b] }`)],
    ['at other places', tiles(`iterate last [io, ii] as SS ${asked} { y[io, ii] = M[io, 3 - ii] }`)],
    [
      'of what is summed up, asked again',
      tiles(
        'iterate last [io, ii, j] as SSR where (c[ii] > j) { y[io, ii] += M[io, ii] }',
        'where (c[ii] > j)',
      ),
    ],
    [
      'of what is summed up',
      tiles(
        'iterate last [io, ii] as SS where (c[ii] > 0) { y[io, ii] = M[io, ii] }',
        'where (c[ii] > 0 and j < 3)',
      ),
    ],
    [
      'of what changes',
      tiles(
        `iterate more [ii] as S { c[ii] = 1 - c[ii] }
         iterate last [io, ii] as SS where (c[ii] > 0) { y[io, ii] = M[io, ii] }`,
        'where (c[ii] > 0)',
      ),
    ],
  ])('are zero-filled otherwise: %s', (_, text) => {
    expect(started(text)).toEqual(filled)
  })

  test('no uninitialised element is read', async () => {
    const k = parseProgram(tiles(`iterate last [io, ii] as SS ${asked} { y[io, ii] = M[io, ii] }`)).kernel()
    for (const m of [0, 1, 4, 7]) {
      const A = dense(
        [m, 3],
        Float32Array.from({ length: 3 * m }, (_, x) => (x % 5) - 2),
      )
      await agreeOnAll(k.compilation, { tensors: { A, c: dense([4], Int32Array.of(1, 0, 1, 2), 'i32') } })
    }
  })
})

test('a conditional reduction initialises nothing, whatever its loops cover', () => {
  const sums = (body: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer M: f32[i] out
  ${body}
}`
  expect(started(sums('iterate all [i, j] as SR { M[i] += A[i, j] }'))).toEqual(own)
  for (const body of [
    'iterate all [i] as S { if (i > 1) { iterate each [j] as R { M[i] += A[i, j] } } }',
    'iterate all [i] as S { if (i > 1) { } else { iterate each [j] as R { M[i] += A[i, j] } } }',
    'iterate all [i, j] as SR { if (A[i, j] > 0) { M[i] += A[i, j] } }',
  ])
    expect(started(sums(body)).filled).toEqual(['M'])
})

test('a condition on constant coordinates does not skip an initialisation', () => {
  // The one place of a bitmap of one is 0, and so is what the condition reads: it stands around all loops.
  const k = parseProgram(`kernel k(m: size, d: size) {
  axis i = dense_fixed(m)
  axis j = bitmap(i, 1)
  axis u = fused(i, j)
  axis f = dense_fixed(d)
  axis one = dense_fixed(1)
  buffer A: i32[i, j] in
  buffer W: i32[one] in
  buffer Y: i32[f] out
  iterate first [u, f] as RS where (W[j] > 2) { Y[f] min= A[i, j] }
}`).kernel()
  const A = { kind: 'dense' as const, shape: [2, 1], values: Int32Array.of(5, 4), dtype: 'i32' as const }
  const least = [2 ** 31 - 1, 4]
  for (const [w, y] of least.entries()) {
    const W = { kind: 'dense' as const, shape: [1], values: Int32Array.of(2 + w), dtype: 'i32' as const }
    for (const c of [k, k.parallel()])
      expect(interpretedPlan(c, { tensors: { A, W }, params: { d: 2 } }).get('Y')).toEqual([y, y])
  }
})

test('an element that is stored twice is not fully written by its coordinates', async () => {
  const k = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n) nonunique
  axis r = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[r] in
  buffer y: f32[i, j] out
  iterate all [i, r] as SS { y[i, r] = x[r] }
}`).kernel()
  const A = coords(
    [2, 2],
    [
      [0, 0, 0, 1, 1],
      [0, 1, 1, 0, 1],
    ],
    [1, 2, 3, 4, 5],
  )
  await agreeOnAll(k.compilation, { tensors: { A, x: dense([2], [1, 2]) } })
})

test('a single thread fills elements that a single thread computes', () => {
  const k = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer most: f32[c] out
  iterate all [i, j] as RS { most[j] max= A[i, j] }
}
schedule k.threads { split j by 32 -> (jo, ji)  bind ji to thread.x }`).kernel()
  const threads = ({ compilation }: Kernel): readonly (readonly number[])[] =>
    compilation.plan.steps.flatMap((s) => (s.kind === 'launch' ? [s.block] : []))
  expect(threads(k)).toEqual([
    [1, 1, 1],
    [1, 1, 1],
  ])
  expect(threads(k.schedule('threads'))).toEqual([
    [256, 1, 1],
    [32, 1, 1],
  ])
})

test.each([false, true])(
  'elements excluded by a condition are initialised in a cross-thread reduction; atomic: %s',
  (atomic) => {
    const [m, f] = [2, variable('f')]
    const update = { ...reduce(at('C', ['i', 'f']), 'max', at('X', ['i', 'f'])), init: true, atomic }
    const threads = loop('q', 4, [loop('f', 3, [when(lt(f, expr(2)), [update])])], {
      reduce: true,
      mode: { kind: 'bind', to: 'thread.x' },
    })
    const shape = [expr('m'), 3] as const
    const kernel = kernel2(
      'k',
      ['m'],
      [buffer('X', shape, 'in'), buffer('C', shape, 'out')],
      [loop('i', 'm', [threads])],
    )
    const arrays = new Map([
      ['X', [1, -2, 3, 4, 5, -6]],
      ['C', new Array<number>(m * 3).fill(POISON)],
    ])
    const started = { C: [1, -2, Number.NEGATIVE_INFINITY, 4, 5, Number.NEGATIVE_INFINITY] }
    const data = { params: new Map([['m', m]]), arrays }
    expect(run(kernel, data, 'threads')).toEqual(started)
    expect(runPlan(kernel, data)).toEqual(started)
  },
)

test('a tuple with a target that has values already does not start its targets', () => {
  const text = (role: string): string => `
monoid pair(s: f32, m: f32) {
  identity (0, -inf)
  combine (a, b) = (a.s + b.s, max(a.m, b.m))
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer S: f32[i] out
  buffer M: f32[i] ${role}
  iterate sum [i, j] as SR { (S[i], M[i]) pair= (A[i, j], A[i, j]) }
}`
  const of = (role: string) => {
    const { fills, inNest } = deriveInitialisation(kernelOf(text(role)))
    return [fills.map((f) => f.buffer), inNest.size]
  }
  expect(of('out')).toEqual([[], 1])
  expect(of('inout')).toEqual([['S'], 0])
})
