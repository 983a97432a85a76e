/** Steps of formats found in each run as text, calls and JSON: they are checked alike. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense, devices, type Kernel, load, SptError } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { codeOf } from '../support/device-suite.ts'
import { diagnosticOf } from '../support/refusal.ts'

const KERNEL = `import "sparsetile/kernels/formats.spt"
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[j] in
  buffer H: f32[i, j] local
  buffer C: f32[i] out
  iterate take [i, j] as SS { H[i, j] = A[i, j] }
  iterate sum [i, j] as SR { C[i] += H[i, j] * B[j] }
}
`
const cpu = devices.cpu()
const kernelOf = async (schedule = ''): Promise<Kernel> => (await load(KERNEL + schedule)).kernel()

/** Expressions as texts of schedules have them. */
const sizes: fc.Arbitrary<string> = fc.letrec<{ all: string }>((tie) => ({
  all: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('m', 'n'),
    fc.integer({ min: 0, max: 9 }).map(String),
    fc.tuple(fc.constantFrom('+', '-', '*'), tie('all'), tie('all')).map(([op, a, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(fc.constantFrom('/', '%'), tie('all'), fc.integer({ min: 1, max: 9 }))
      .map(([op, a, b]) => `(${a} ${op} ${b})`),
    fc.tuple(fc.constantFrom('min', 'max'), tie('all'), tie('all')).map(([fn, a, b]) => `${fn}(${a}, ${b})`),
    fc.tuple(tie('all'), fc.integer({ min: 1, max: 9 })).map(([a, b]) => `ceildiv(${a}, ${b})`),
  ),
})).all

test('program text, calls and JSON give the same kernel', async () => {
  const cases = fc.record({
    format: fc.constantFrom('csr', 'bsr(2)', 'panels(2, 2)'),
    inPlace: fc.boolean(),
    room: fc.constantFrom('', 'capacity', 'total'),
    sizes,
    carried: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(cases, async (c) => {
      const room = c.room && ` capacity ${c.sizes}${c.room === 'total' ? ' in all' : ''}`
      const live = c.inPlace ? 'live in place' : 'live'
      const step = `H as ${c.format} ${live}${room}${c.carried ? ' for sum' : ''}`
      let written: Kernel
      try {
        written = (await kernelOf(`schedule product.s { ${step} }`)).schedule('s')
      } catch (e) {
        expect(e).toBeInstanceOf(SptError)
        expect((e as SptError).diagnostics[0]!.code).not.toMatch(/internal|bad-step/)
        return
      }
      const plain = await kernelOf()
      const called = plain.live('H', c.format, {
        inPlace: c.inPlace,
        ...(c.room ? { [c.room]: c.sizes } : {}),
        ...(c.carried ? { for: ['sum'] } : {}),
      })
      for (const k of [called, plain.replay(JSON.parse(JSON.stringify(written)))]) {
        expect(k.trace).toEqual(written.trace)
        for (const stage of [1, 2] as const) expect(k.show(stage)).toBe(written.show(stage))
      }
    }),
    { numRuns: runs(30) },
  )
})

test('invalid steps are rejected when they are replayed', async () => {
  const kernel = await kernelOf()
  const n = { kind: 'var', name: 'n', dtype: 'i32' }
  const number = (value: unknown) => ({ kind: 'const', value, dtype: 'i32' })
  const binary = (op: string, a: unknown, b: unknown) => ({ kind: 'binary', op, a, b, dtype: 'i32' })
  const junk = fc.oneof(
    fc.constantFrom('x', true, 5, [], {}, null, 'n'),
    fc.constantFrom(
      number(1.5),
      number('x'),
      number(1e20),
      number(null),
      { ...n, name: 7 },
      { ...n, dtype: 'f32' },
    ),
    fc.constantFrom(
      { kind: 'access', buffer: 'A', indices: [], dtype: 'i32' },
      { kind: 'call', fn: 'popcount', args: [n], dtype: 'i32' },
    ),
    fc.constantFrom(
      binary('pow', n, n),
      binary('div', n, number(0)),
      binary('mod', n, number(0)),
      binary('lt', n, n),
      binary('add', n, undefined),
    ),
  )
  const good = { kind: 'as', buffer: 'H', format: 'csr', args: [], live: 'live in place' }
  const wrongs = fc.oneof(
    fc.record({
      capacity: fc.oneof(
        junk,
        junk.map((x) => binary('add', n, x)),
      ),
    }),
    fc.record({ total: junk }),
    fc.record({ live: fc.constantFrom('x', true, 1, 'LIVE', null) }),
    fc.record({ for: fc.constantFrom('sum', [1], {}, null) }),
    fc.constantFrom({ live: undefined, capacity: n }, { room: 3 }),
    fc.record({ args: fc.constantFrom(null, 'x', {}, [{}], [null]) }),
  )
  const problem = (step: object): string | undefined => {
    try {
      kernel.replay([step as never])
      return undefined
    } catch (e) {
      return e instanceof SptError ? e.diagnostics[0]!.code : String(e)
    }
  }
  expect(problem(good)).toBe(undefined)
  expect(problem({ ...good, capacity: binary('div', n, number(2)) })).toBe(undefined)
  fc.assert(
    fc.property(wrongs, (wrong) => {
      expect(problem({ ...good, ...wrong })).toMatch(/^(schedule\/bad-step|api\/argument)$/)
    }),
    { numRuns: runs(60) },
  )
  for (const name of ['zzz', 'A', 'i'])
    expect(problem({ ...good, capacity: binary('add', { ...n, name }, n) })).toBe('schedule/live-capacity')
})

test('invalid calls are rejected, and no argument is ignored', async () => {
  const kernel = await kernelOf()
  const given = (...rest: unknown[]) => codeOf(async () => kernel.live('A', 'csr', ...(rest as never[])))
  expect(await given({ capacity: 2 }, { capacity: 3 })).toBe('api/argument')
  expect(await given({ capacity: 2 }, 3)).toBe('api/argument')
  for (const [text, code] of [
    ['n /', 'parse/unexpected'],
    ['zz', 'check/unknown-name'],
    ['1.5', 'check/argument-type'],
    ['n < 2', 'check/argument-type'],
    ['n / 0', 'check/division-by-zero'],
    ['A[0, 0]', 'check/unknown-name'],
  ])
    expect([text, await given({ capacity: text })]).toEqual([text, code])
})

test('buffers that the kernel creates cannot be bound', async () => {
  const compiled = await (await kernelOf()).live('H', 'panels', 2, 2, { total: 4 }).build(await cpu)
  const tensors = { A: dense([2, 4], new Float32Array(8)), B: new Float32Array(4) }
  const made = compiled.compilation.kernel.buffers.filter((b) => !/^[ABCH]$/.test(b.name))
  expect(made.length).toBeGreaterThan(5)
  for (const { name } of made)
    expect([name, await codeOf(() => compiled.bind({ ...tensors, [name]: new Int32Array(2) }))]).toEqual([
      name,
      'bind/unknown-name',
    ])
  // Nor are its axes among what may be.
  const told = compiled.bind({ ...tensors, Z: new Int32Array(2) })
  await expect(told).rejects.toMatchObject({ diagnostics: [{ expected: 'one of A, B, C' }] })
})

test('a vector is grouped under an axis of one position', async () => {
  const program = await load(`format groups(s) over (x) {
  axis o = dense_fixed(1)
  axis g = dense_variable(o, x)
  axis xo = sparse_fixed(g, x, s)
  map (x) -> (0, rank(x) / s, x)
  inverse (o, g, xo) -> (xo)
}
${KERNEL.slice(KERNEL.indexOf('kernel product'))}`)
  const element = fc.constantFrom(0, 0, -0, 1, 2, Number.NaN)
  const cases = fc.record({ s: fc.integer({ min: 1, max: 5 }), B: fc.array(element, { maxLength: 70 }) })
  const compiled = new Map<number, ReturnType<Kernel['build']>>()
  await fc.assert(
    fc.asyncProperty(cases, async ({ s, B }) => {
      const made =
        compiled.get(s) ??
        program
          .kernel()
          .live('B', 'groups', s)
          .build(await cpu)
      compiled.set(s, made)
      const A = dense(
        [3, B.length],
        Float32Array.from({ length: 3 * B.length }, (_, k) => k % 7),
      )
      const prepared = await (await made).bind({ A, B: dense([B.length], B) })
      expect((await prepared.verify()).problems).toEqual([])
      prepared.free()
    }),
    { numRuns: runs(30) },
  )
})

test('groups have at most as many positions as coordinates, rounded up to a tile', async () => {
  const device = await cpu
  for (const inPlace of [true, false])
    for (const [width, n, code] of [
      [4096, 3, null],
      [4097, 3, 'bind/group-width'],
      [4097, 4096, 'bind/group-width'],
      [4097, 4097, null],
      [1e9, 4098, 'bind/group-width'],
    ] as const) {
      const kernel = (await kernelOf()).live('H', 'panels', 2, width, { inPlace })
      const compiled = await kernel.build(device)
      const refused = (call: () => unknown) => diagnosticOf(call)?.code ?? null
      const tensors = { A: dense([3, n], new Float32Array(3 * n).fill(1)), B: new Float32Array(n).fill(1) }
      for (const call of [() => compiled.bindOnHost(tensors), () => compiled.estimateBytes(tensors)])
        expect(refused(call), `${width} of ${n}`).toBe(code)
    }
})

test('invalid lists of iterations are rejected in calls too', async () => {
  const kernel = await kernelOf()
  for (const f of ['sum', 'zz', 'm', 3, [3], null, {}])
    expect(diagnosticOf(() => kernel.live('H', 'csr', { for: f as never }))).toMatchObject({
      code: 'schedule/bad-step',
      message: expect.stringContaining('for of as cannot be '),
      expected: 'a list of names of iterations, or nothing',
    })
})
