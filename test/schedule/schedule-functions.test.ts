/** Schedule functions: equal to their steps with the arguments in place, and errors at the call and in the function. */
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { Compilation } from '../../src/run/compile/compile.ts'
import { loadProgram } from '../../src/schedule/steps/language.ts'
import { stepsOf } from '../../src/schedule/steps/resolve.ts'
import { refusal as refused } from '../support/refusal.ts'

const KERNEL = `
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis x = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[x, f] in
  buffer S: f32[i, f] local
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { S[i, f] += A[i, j] * B[j, f] }
  iterate act [i, f] as SS { C[i, f] = max(S[i, f], 0) }
}`
const FUNCTIONS = `
memory line(t: f32 or f16, w): t[w] in shared aligned 16 {
  require w % 4 == 0
  examples (f32, 4)
  address (e) -> e
}
schedule threads(i: loop, by, axis: loop) -> (o, r) {
  split i by by -> (o, r)
  bind o to block.x, r to thread.x
}
schedule tile2(i: loop, f: loop, rows, cols) -> (io, fo, ii, fi) {
  use halves(i, rows) -> (io, ii)
  use halves(f, cols) -> (fo, fi)
  reorder (io, fo, ii, fi)
}
schedule halves(i: loop, by) -> (outer, inner) { split i by by -> (outer, inner) }
schedule entries(i: loop, j: loop, by) {
  fuse (i, j) -> e
  use inner(e, by)
}
schedule inner(i: loop, by) { split i by by -> (o, r); unroll r }
schedule rowwise(n: nest, X: buffer, f: loop, place: memory) {
  split n.f by 4 -> (o, r)
  cache_write X at o in place
}
format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const outcomeOf = (steps: string) => {
  const k = parseProgram(`${FUNCTIONS}${KERNEL}\nschedule k.s(rows = 8) {\n${steps}\n}`)
    .kernel('k')
    .schedule('s')
  return { trace: k.trace, loops: print2(k.compilation.loops) }
}
const same = (calls: string, steps: string): void => expect(outcomeOf(calls)).toEqual(outcomeOf(steps))
const refusal = (steps: string, functions = '') =>
  refused(() =>
    parseProgram(`${FUNCTIONS}${functions}${KERNEL}\nschedule k.s(rows = 8) {\n${steps}\n}`)
      .kernel('k')
      .schedule('s'),
  )

describe('a schedule function', () => {
  test('applies its steps to the loops of the call', () => {
    same(
      'use tile2(act.i, act.f, rows, 2 * rows) -> (io, fo, ii, fi)\nunroll fi',
      'split act.i by 8 -> (io, ii); split act.f by 16 -> (fo, fi); reorder (act.io, act.fo, act.ii, act.fi); unroll fi',
    )
  })

  test('makes names that differ from those of the schedule and of other calls', () => {
    same(
      'use inner(sum.i, 4)\nuse inner(sum.f, 2)\nsplit act.i by 2 -> (o, r3)',
      'split sum.i by 4 -> (o2, r); unroll sum.r; split sum.f by 2 -> (o3, r2); unroll sum.r2; split act.i by 2 -> (o, r3)',
    )
  })

  test('names loops by a loop of another nest, and takes nests, buffers and memories', () => {
    same(
      'use rowwise(act, C, sum.f, register)',
      'split act.f by 4 -> (o, r); cache_write C at act.o in register',
    )
  })

  test('applies to each loop of a group, with results of the same names', () => {
    same(
      'use halves((sum, act).i, rows) -> (o, r)\nunroll (sum, act).r',
      'split sum.i by 8 -> (o, r); split act.i by 8 -> (o, r); unroll sum.r; unroll act.r',
    )
  })

  test('may be used in blocks for parts', () => {
    same(
      `A as rows where (i < 3) + rows
       each part of A as p { use inner(p.io, 2) }`,
      `A as rows where (i < 3) + rows
       each part of A as p { split p.io by 2 -> (o, r); unroll r }`,
    )
    same(
      `A as rows where (i < 3) + rows
       each part of A as p { use entries(p.io, p.jo, 2) }`,
      `A as rows where (i < 3) + rows
       each part of A as p { fuse (p.io, p.jo) -> e; split e by 2 -> (o, r); unroll r }`,
    )
  })

  test('shows the place of an error and of the calls', () => {
    const d = refusal('use tile2(sum.i, sum.f, rows, 0)')
    expect(d.code).toBe('schedule/bad-factor')
    const text = `${FUNCTIONS}${KERNEL}\nschedule k.s(rows = 8) {\nuse tile2(sum.i, sum.f, rows, 0)\n}`
    const at = (s: { start: number; end: number } | undefined) => s && text.slice(s.start, s.end)
    expect(at(d.span)).toBe('split i by by -> (outer, inner)')
    expect(d.labels?.map((l) => at(l.span))).toEqual([
      'use halves(f, cols) -> (fo, fi)',
      'use tile2(sum.i, sum.f, rows, 0)',
    ])
  })

  test.each([
    ['use tile2(sum.i)', 'check/arguments', '4: (i, f, rows, cols)'],
    ['use tile2(8, sum.f, 1, 1)', 'check/argument-type', 'a loop: NAME or NEST.NAME'],
    ['use inner(sum.i, sum.f)', 'check/unknown-name', undefined],
    ['use tile2(sum.i, sum.f, 1, 1) -> (a, b)', 'check/arguments', '-> (io, fo, ii, fi)'],
    ['use tyle2(sum.i, sum.f, 1, 1)', 'check/unknown-schedule', undefined],
    ['use rowwise(sum, Q, act.i, register)', 'check/unknown-buffer', undefined],
    ['use rowwise(sum, S, act.i, lime)', 'check/unknown-memory', undefined],
  ])('rejects %s', (step, code, expected) => {
    const d = refusal(step)
    expect(d.code).toBe(code)
    if (expected !== undefined) expect(d.expected).toBe(expected)
  })

  test.each([
    ['schedule g(i: loop) { unroll j }', 'check/unknown-name', 'function g has no loop j'],
    [
      'schedule g(i: loop) { cache_read B at i in shared }',
      'check/unknown-name',
      'function g has no buffer B',
    ],
    ['schedule g(i: loop) { require m % 4 == 0 }', 'check/unknown-name', 'function g cannot require m'],
    ['schedule g(i: loop) -> (o) { unroll i }', 'check/unknown-name', 'no step of function g makes o'],
    ['schedule g(i: loop) { use g(i) }', 'check/schedule-cycle', 'schedule g uses itself'],
    ['schedule g(i: loop = 3) { unroll i }', 'check/parameter-kind', 'i of kind loop has a default'],
    ['schedule g(o: loop) { split o by 2 -> (o, r) }', 'check/duplicate', 'o is a parameter of function g'],
    ['schedule k.g(i: loop) { unroll i }', 'check/parameter-kind', 'k.g has a parameter of kind loop'],
    ['schedule g(i: lop) { unroll i }', 'parse/type', 'there is no type `lop` here'],
  ])('is checked where it is declared: %s', (text, code, message) => {
    const d = refusal('unroll sum.i by 2', text)
    expect(d.code).toBe(code)
    expect(d.message).toContain(message)
  })

  test('is imported by name or with its file', async () => {
    const files: Record<string, string> = {
      'lib.spt': 'schedule halves(i: loop, by) -> (o, r) { split i by by -> (o, r) }',
      'all.spt': `import "./lib.spt"\n${KERNEL}\nschedule k.s { use halves(sum.i, 0) -> (a, b) }`,
      'one.spt': `import { halves as parts } from "./lib.spt"\n${KERNEL}\nschedule k.s { use parts(sum.i, 4) -> (a, b) }`,
    }
    const scheduled = async (entry: string) => {
      const made = elaborate(await loadProgram(entry, (path) => Promise.resolve(files[path]!)))
      const steps = () => stepsOf(made.schedules.get('k')!.get('s')!)
      return () => steps().reduce((c, s) => c.step(s), Compilation.of(made.kernels.get('k')!))
    }
    expect((await scheduled('one.spt'))().printedLoopSteps).toEqual(['split sum.i by 4 -> (a, b)'])
    const d = refused(await scheduled('all.spt'))
    expect([d.span?.source, d.labels?.[0]?.span.source]).toEqual(['lib.spt', 'all.spt'])
  })
})
