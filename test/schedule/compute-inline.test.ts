/** `compute_inline`: the loops after it, its legality checks, and that it does not change results. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { devices, type Kernel, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const BUFFERS = [
  'A: f32[i, j] in',
  'X: f32[i, f] in',
  'W: f32[g, f] in',
  'E: f32[i, j] local',
  'T: f32[i, f] local',
  'V: f32[i, w] local',
  'Z: f32[i, w] out',
  'Y: f32[i, f] out',
  'y: f32[i] out',
]

const program = (body: string): string => `kernel k(m: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, d)
  axis f = dense_fixed(d)
  axis g = dense_fixed(d)
  axis h = dense_fixed(d)
  axis e = dense_fixed(2)
  axis o = dense_fixed(4)
  axis w = dense_fixed(8)
  ${BUFFERS.filter((b) => body.includes(`${b[0]}[`))
    .map((b) => `buffer ${b}`)
    .join('\n  ')}
  ${body}
}`
const kernelOf = async (body: string): Promise<Kernel> => (await load(program(body))).kernel()
const SCALE = 'iterate scale [i, f] as SS { T[i, f] = 2 * X[i, f] }'
const SHOW = 'iterate show [i, f] as SS { Y[i, f] = T[i, f] + 1 }'
const SUM = 'iterate sum [i, f] as SR { y[i] += T[i, f] }'

test('the producer and its buffer disappear, and its loops forward to those of the consumer', async () => {
  const kernel = (await kernelOf(`${SCALE} ${SHOW}`)).computeInline('scale')
  expect(kernel.inspect.nests.map((n) => n.name)).toEqual(['show'])
  expect(kernel.compilation.loops.buffers.map((b) => b.name)).not.toContain('T')
  expect(kernel.trace).toEqual(['compute_inline scale'])
  const gone = refusal(() => kernel.split('scale.i', 4))
  expect(gone.code).toBe('schedule/consumed-loop')
  expect(gone.expected).toBe('show.i')
})

test('a sum of a single term is inlined as an assignment', async () => {
  const kernel = await kernelOf(`${SCALE.replace(' = 2', ' += 2')} ${SHOW}`)
  const texts = await Promise.all(
    [kernel, await kernelOf(`${SCALE} ${SHOW}`)].map((k) => k.computeInline('scale').show(2)),
  )
  expect(texts[0]).toBe(texts[1])
})

test.each([
  ['unknown-nest', `${SCALE} ${SHOW}`, 'none'],
  ['output-needed', `${SCALE} ${SHOW}`, 'show'],
  ['not-elementwise', `${SUM.replace('T', 'X')} ${SCALE} ${SHOW}`, 'sum'],
  ['not-elementwise', `iterate scale [i, f] as SS where (f < 2) { T[i, f] = X[i, f] } ${SHOW}`, 'scale'],
  [
    'not-every-element',
    'iterate evens [i, o] as SS { V[i, o * 2] = X[i, 0] } iterate show [i, w] as SS { Z[i, w] = V[i, w] }',
    'evens',
  ],
  ['used-elsewhere', `${SCALE} iterate more [i, f] as SS { T[i, f] += X[i, f] } ${SHOW}`, 'scale'],
  ['computed-again', `${SCALE} ${SHOW} ${SUM}`, 'scale'],
  ['computed-again', `${SCALE} iterate mix [i, f, g] as SSR { Y[i, f] += T[i, g] * W[g, f] }`, 'scale'],
  [
    'order-matters',
    `${SHOW.replace('T', 'X')} iterate take [i, f] as SS { T[i, f] = Y[i, f] } iterate again [i, f] as SS { Y[i, f] += T[i, f] }`,
    'take',
  ],
])(
  '%s: a step that could change results, or that computes too often, is rejected',
  async (code, body, nest) => {
    const kernel = await kernelOf(body)
    expect(refusal(() => kernel.computeInline(nest)).code).toBe(`schedule/${code}`)
    if (code === 'computed-again')
      expect(kernel.computeInline(nest, { recompute: true }).trace).toEqual([
        `compute_inline ${nest} recompute`,
      ])
  },
)

/** Bodies with producers that can be inlined, by name. */
const BODIES: readonly (readonly [body: string, nests: readonly string[]])[] = [
  [`${SCALE} ${SHOW} ${SUM}`, ['scale']],
  [`${SCALE} iterate mix [i, f, g] as SSR { Y[i, f] += T[i, g] * W[g, f] }`, ['scale']],
  [`${SCALE} iterate gather [i, j, f] as SRS { Y[i, f] += A[i, j] * T[max(i - 1, 0), f] }`, ['scale']],
  [
    'iterate pairs [i, o, e] as SSS { V[i, o * 2 + e] = X[i, 0] * (o * 3 + e) } iterate show [i, w] as SS { Z[i, w] = V[i, w] }',
    ['pairs'],
  ],
  [
    'iterate pairs [i, o, e] as SSS { V[i, o * 2 + e] = X[i, 0] * (o * 3 + e) } iterate again [i, o, e] as SSS { Z[i, o * 2 + e] = V[i, o * 2 + e] }',
    ['pairs'],
  ],
  [
    `iterate square [i, j] as SS { E[i, j] = A[i, j] * A[i, j] } iterate sum [i, j] as SR { y[i] += E[i, j] }`,
    ['square'],
  ],
  [
    `iterate square [i, j] as SS { E[i, j] = A[i, j] * A[i, j] } ${SCALE} iterate both [i, j, f] as SRS { Y[i, f] += E[i, j] * T[i, f] }`,
    ['square', 'scale'],
  ],
]

test('inlining does not change results', async () => {
  const cpu = await devices.cpu()
  const cases = fc.record({
    at: fc.nat(BODIES.length - 1),
    all: fc.boolean(),
    m: fc.constantFrom(1, 3, 8),
    d: fc.constantFrom(1, 5, 8),
    seed: fc.nat(99),
  })
  await fc.assert(
    fc.asyncProperty(cases, async ({ at, all, m, d, seed }) => {
      const [body, nests] = BODIES[at]!
      const kernel = (all ? nests : nests.slice(0, 1)).reduce(
        (k, nest) => k.computeInline(nest, { recompute: true }),
        await kernelOf(body),
      )
      const built = await kernel.build(cpu, { auto: false })
      const binding = await built.bind({ m, d }, { seed })
      const { problems } = await binding.verify()
      expect(problems.filter((p) => !p.startsWith('no element'))).toEqual([])
      binding.free()
      built.release()
    }),
    { numRuns: runs(30) },
  )
})
