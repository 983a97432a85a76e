/** Steps on coordinates: the documented examples, refusals, and equal results. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
// The host that reads the package's files, wherever this file runs.
import '../../src/node.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { COORD_STEPS } from '../../src/schedule/coordinates/steps.ts'
import { checkStep } from '../../src/schedule/steps/step-data.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { ROW_SUMS } from '../support/product.ts'
import { refusal } from '../support/refusal.ts'
import { COORD_EXAMPLES } from '../support/step-examples.ts'
import { nest, parts } from './parts-examples.ts'

const EXAMPLES = {
  ...COORD_EXAMPLES,
  'as in parts': parts,
  'as of a nest': nest,
}

const apply = (text: string, steps: string) =>
  parseProgram(`${text}\nschedule k.s() {\n${steps}\n}`).kernel('k').schedule('s')

test('a quotient of reals is passed unchanged, one of integers is rounded down', () => {
  const text = `format f(b, t: real) over (i, j) { part bsr(b) where (density(b) >= t) part csr }
${standard('bsr', 'csr')}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
schedule k.s(half = 2) {`
  const argsOf = (args: string) =>
    parseProgram(`${text} A as f(${args}) }`)
      .kernel()
      .steps('s')
      .flatMap((s) => (s.stage === 1 && s.step.kind === 'as' ? [s.step.args] : []))
  expect(argsOf('5 / half, 1 / 4.0')).toEqual([[2, 0.25]])
  expect(argsOf('2, (1.0 + half) / 4')).toEqual([[2, 0.75]])
  expect(argsOf('2, 7 / half')).toEqual([[2, 3]])
})

describe.each(Object.entries(EXAMPLES))('%s', (_, example) => {
  test('keeps the result', async () => {
    const device = createCpuDevice()
    const k = apply(example.program, example.steps)
    const compiled = await k.build(device)
    for (const seed of [1, 2, 3]) {
      const params = Object.fromEntries(
        ['m', 'n', 'd', 'q']
          .filter((p) => k.compilation.source.params.some((x) => x.name === p))
          .map((p, at) => [p, 3 + ((seed * 5 + at * 3) % 9)]),
      )
      const prepared = await compiled.bind(params, { seed })
      expect((await prepared.verify()).problems).toEqual([])
    }
  })

  test('can be undone', () => {
    const k = apply(example.program, example.steps)
    expect(k.undo().show(1)).toBe(parseProgram(example.program).kernel('k').show(1))
  })

  test('its trace replays', () => {
    const k = apply(example.program, example.steps)
    const again = parseProgram(example.program)
      .kernel('k')
      .replay(JSON.parse(JSON.stringify(k)))
    expect(again.show(1)).toBe(k.show(1))
  })
})

// The pages of the steps have the results of the other examples.
test.each([parts, nest])('%# turns the program into the printed kernel', ({ program, steps, after }) =>
  expect(apply(program, steps).show(1)).toBe(after),
)

const K = COORD_EXAMPLES.reorder.program
const refusals: readonly (readonly [string, string, string])[] = [
  ['a child before its parent', 'reorder (j, i)', 'schedule/parent-first'],
  ['an unknown iterator', 'reorder (i, q)', 'schedule/unknown-loop'],
  ['the same iterator twice', 'reorder (i, i)', 'schedule/repeated-loop'],
  ['fusing independent roots on coordinates', 'fuse (i, f)', 'schedule/not-a-chain'],
  ['fusing a sum over a child with another root', 'fuse (j, f)', 'schedule/mixed-reduction'],
  ['fusing into a taken name', 'fuse (i, j) -> f', 'schedule/name-taken'],
  ['attaching where nothing is joined', 'attach j to f', 'schedule/no-join'],
  ['attaching a root', 'attach f to i', 'schedule/no-parent'],
]
test.each(refusals)('rejects %s', (_, steps, expected) => {
  expect(refusal(() => apply(K, steps)).code).toBe(expected)
})

const TWICE = (iters: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer C: i32[] out
  iterate sum [${iters}] as RRR { C[] += i + 2 * v + 3 * j }
}`
test.each([
  ['i, j, v in i', 'reorder (v, j)', 'schedule/another-parent'],
  ['i, j, v in i', 'reorder (v, i)', null],
  ['v in i, i, j', 'reorder (i, v)', 'schedule/another-parent'],
  ['i, v in i, j', 'fuse (i, j)', 'schedule/not-a-chain'],
  ['i, v in i, j', 'reorder (v, i)', 'schedule/another-parent'],
  ['i, j, v in i', 'fuse (v, j)', 'schedule/not-a-chain'],
  ['v in i, i, j', 'fuse (i, j)', null],
])('two iterators over one axis, [%s]: %s', (iters, steps, code) => {
  const steps1 = (): string => apply(TWICE(iters), steps).show(1)
  if (code) expect(refusal(steps1).code).toBe(code)
  else expect(steps1()).toContain('iterate sum')
})

test.each([
  ['reorder (f, i)', 'f, i, j'],
  ['reorder (f, i, j)', 'f, i, j'],
  ['reorder (i, f)', 'i, j, f'],
  ['reorder (f, j)', 'i, f, j'],
])('%s is legal', (steps, order) => {
  expect(apply(K, steps).show(1)).toContain(`iterate sum [${order}]`)
})

test('a child before its parent: the hint has the legal order', () => {
  const { expected, hint } = refusal(() => apply(K, 'reorder (j, i, f)'))
  expect(expected).toBe('an axis after the parent: i, j, f')
  expect(hint).toContain('keep their order')
})

test('an unknown format: the hint names the package file', () => {
  const unknown = refusal(() => apply(K, 'A as hyb(2, 5)'))
  expect(unknown.hint).toContain('import "sparsetile/kernels/formats-composed.spt"')
})

describe('a row entered by a coordinate', () => {
  const HOP = `${standard('csr', 'bsr', 'csc', 'dcsr', 'by_length')}${COORD_EXAMPLES.attach.program}`
  const as = (steps: string): string => apply(HOP, `attach v to j\n${steps}`).show(1)

  test('belongs to each part of its tensor', () => {
    expect(as('H as csr')).toMatch(/axis jo_at_j = attached\(jo, j\)[\s\S]*\* H\[j, v\] \* x\[v\]/)
    const parts = as('H as csr where (j > 3) + dcsr')
    expect(parts).toMatch(/iterate hop_csr \[i, j, v in jo_csr_at_j\][\s\S]*H_csr\[j, v\]/)
    expect(parts).toMatch(/iterate hop_dcsr \[i, j, v in jo_dcsr_at_j\][\s\S]*H_dcsr\[j, v\]/)
    for (const format of ['bsr(2)', 'csc'])
      expect(refusal(() => as(`H as ${format}`)).message).toBe(
        `iteration hop enters v by coordinates of j, and ${format} has no rows indexed by a coordinate of p`,
      )
  })

  test('is entered through the axis with the coordinate', () => {
    for (const format of ['csr', 'csc', 'dcsr', 'by_length'])
      expect(as(`A as ${format}`)).toMatch(/axis v_at_jo = attached\(v, jo\)[\s\S]*v in v_at_jo/)
    const r = refusal(() => as('A as bsr(2)'))
    expect(r.code).toBe('schedule/format-children')
    expect(r.message).toBe('iteration hop enters v by j, which bsr(2) computes: jo * 2 + ji')
    expect(as('A as csr\nH as dcsr')).toContain('axis jo_2_at_jo = attached(jo_2, jo)')
  })

  test('of the same tensor is in the same part, if it has one part', () => {
    const text = `${standard('csr', 'dcsr')}kernel k(n: size) {
      axis i = dense_fixed(n)
      axis j = sparse_variable(i, n)
      axis at = attached(j, j)
      buffer A: f32[i, j] in
      buffer y: f32[i] out
      iterate hop [i, j, k in at] as SRR { y[i] += A[i, j] * A[j, k] }
    }`
    expect(apply(text, 'A as dcsr').show(1)).toMatch(/attached\(jo, jo\)[\s\S]*A\[io, jo\] \* A\[jo, k\]/)
    expect(refusal(() => apply(text, 'A as csr where (j > 3) + dcsr')).message).toContain(
      'has the rows of both in several parts',
    )
  })

  test('is not padded with coordinates of elements', () => {
    const text = (value: string): string => `${standard('ell_at')}kernel k(n: size) {
      axis i = dense_fixed(n)
      axis j = sparse_variable(i, n)
      axis at = attached(j, j)
      buffer A: f32[i, j] in
      buffer y: f32[i] out
      iterate hop [i, j, k in at] as SRR { y[i] += ${value} }
    }`
    const code = (value: string): string => refusal(() => apply(text(value), 'A as ell_at(0)')).code
    expect(code('A[i, j] * A[j, k]')).toBe('schedule/format-children')
    for (const value of ['A[i, j] * (A[j, k] + 1)', '(A[i, j] + 1) * A[j, k]', 'A[i, j] + A[j, k]'])
      expect(code(value)).toBe('schedule/format-padding')
    expect(
      refusal(() =>
        apply(standard('ell_at') + COORD_EXAMPLES.attach.program, 'attach v to j\nH as ell_at(0)'),
      ).code,
    ).toBe('schedule/format-children')
  })
})

test('a loop of each part has the name of the part', () => {
  const steps = 'A as csr where (i < 2) + csr\neach part of A as p { bind io to block.x }'
  const r = refusal(() => apply(standard('csr') + K, steps).compilation.loops)
  expect(r.hint).toBe('write p.io in this block')
})

test('formats of untyped callers are checked', () => {
  const as = (format: object) => () => checkStep({ kind: 'as', buffer: 'A', format, args: [] }, COORD_STEPS)
  as({ kind: 'format', params: [], axes: [] })()
  for (const format of [{ kind: 'format', axes: [] }, { kind: 'composition', params: [] }, { params: [] }])
    expect(refusal(as(format)).message).toBe('format of as cannot be an object')
})

test('rejects a format whose padding would have an effect', () => {
  const text = COORD_EXAMPLES.as.program.replace('y[i] += A[i, j] * x[j]', 'y[i] max= A[i, j] * x[j]')
  expect(refusal(() => apply(text, 'A as blocks(2)')).code).toBe('schedule/format-padding')
  for (const [value, legal] of [
    ['A[i, j] * x[j] - 1', false],
    ['1 - A[i, j]', false],
    ['0 + A[i, j] * x[j] - 0', true],
  ] as const) {
    const sum = () => apply(COORD_EXAMPLES.as.program.replace('A[i, j] * x[j]', value), 'A as blocks(2)')
    if (legal) sum()
    else expect(refusal(sum).code).toBe('schedule/format-padding')
  }
})

const STANDARD = standard('csr', 'dcsr', 'coo', 'ell', 'csc')
const rows = (root: string, child: string): string => `kernel k(m: size, n: size) {
  axis i = ${root}
  axis j = ${child}
  buffer A: i32[i, j] in
  buffer Y: i32[] out
  iterate count [i] as R { Y[] += 1 }
}`
test.each([
  ['sparse_variable(m)', 'sparse_variable(i, n)', ['csr', 'coo', 'ell', 'csc']],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 1)', ['csr', 'dcsr', 'coo', 'ell', 'csc']],
] as const)('counts of rows on %s are kept or rejected', async (root, child, refused) => {
  const text = STANDARD + rows(root, child)
  for (const format of ['csr', 'dcsr', 'coo', 'ell', 'csc']) {
    if ((refused as readonly string[]).includes(format)) {
      const d = refusal(() => apply(text, `A as ${format}`))
      expect(d.code).toBe('schedule/format-partial')
      if (format === 'csr')
        expect(d.hint).toMatch(/^choose another format \(such as dcsr, where rows are stored\)/)
      continue
    }
    const compiled = await apply(text, `A as ${format}`).build(createCpuDevice())
    const prepared = await compiled.bind({ m: 6, n: 4 }, { seed: 3 })
    await prepared.run()
    expect((await prepared.verify()).problems).toEqual([])
  }
})

test('a dense axis with duplicate coordinates cannot visit them once', () => {
  const twice = `format twice over (i, j) {
  axis io = dense_fixed(2 * i)
  axis jo = dense_fixed(j)
  map (i, j) -> (2 * i, j)
  inverse (io, jo) -> (io / 2, jo)
}`
  const text = `${twice}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer Y: i32[] out
  iterate sum [i, j] as RR { Y[] += A[i, j] + 1 }
}`
  expect(refusal(() => apply(text, 'A as twice')).code).toBe('schedule/format-padding')
})

test('a format step after a step on loops is too late', () => {
  expect(refusal(() => apply(COORD_EXAMPLES.as.program, 'split i by 2\nA as blocks(2)')).code).toBe(
    'schedule/too-late',
  )
})

test('a rejection prints the current kernel', () => {
  try {
    apply(K, 'reorder (j, i)')
  } catch (e) {
    expect((e as SptError).diagnostics[0]!.notes?.[0]).toContain('iterate sum [i, j, f] as SRS')
    return
  }
  expect.unreachable()
})

test('the reason of a rejected order is correct', () => {
  const made = parseProgram(`format tall over (i, j) {
  axis io = dense_fixed(ceildiv(i, 4))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, 2)
  axis ji = dense_fixed(go, jo)
  axis ii = dense_fixed(ji, 4)
  map (i, j) -> (i / 4, rank(j by i / 4) / 2, j, position(jo), i % 4)
  inverse (io, go, ji, ii) -> (io * 4 + ii, jo[ji])
}
${ROW_SUMS}
schedule k.x { A as tall }`)
    .kernel('k')
    .schedule('x')
  const chain = ['io', 'go', 'ji', 'ii']
  let refused = 0
  fc.assert(
    fc.property(fc.shuffledSubarray(chain, { minLength: 2 }), (names) => {
      const queue = [...names]
      const asked = chain.map((x) => (names.includes(x) ? queue.shift()! : x))
      try {
        expect(made.reorder(...names).show(1)).toContain('iterate s')
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        refused++
        const [, child, parent] = /: (\w+) would come before (\w+),/.exec(e.message)!
        expect(chain.indexOf(parent!)).toBe(chain.indexOf(child!) - 1)
        expect(asked.indexOf(child!)).toBeLessThan(asked.indexOf(parent!))
      }
    }),
    { numRuns: runs(60) },
  )
  expect(refused).toBeGreaterThan(0)
})

test('iterators that several iterations have are named with the iteration', () => {
  const text = `kernel k(m: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, m)
  buffer x: f32[i, j] in
  buffer y: f32[i, j] out
  buffer z: f32[i, j] out
  iterate one [i, j] as SS { y[i, j] = x[i, j] }
  iterate two [i, j] as SS { z[i, j] = x[i, j] }
}`
  const run = (steps: string) => refusal(() => apply(text, steps).compilation.loops)
  expect(run('fuse (i, j)')).toMatchObject({
    code: 'schedule/ambiguous-loop',
    expected: 'names such as one.i, two.i',
  })
})
