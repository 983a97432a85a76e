/** Formats of several parts whose structure is found in each run: results are the reference's, lists and values those of the host. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { printedSteps } from '../../src/api/printed-trace.ts'
import { parseProgram } from '../../src/api/program.ts'
import { runLoops } from '../../src/api/stage-runs.ts'
import { coords } from '../../src/api/tensors.ts'
import { evaluate } from '../../src/ir/evaluate.ts'
import type { Found } from '../../src/ir/stage1.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu-node.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { refusal as diagnosticOf } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { numbers, parameters } from './law.ts'
import { LIVE, matrix, sizeOf } from './live-gen.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
}, 120_000)
afterAll(() => webgpu.dispose())

const FORMATS = ['panels', 'strips', 'blocks', 'rows_of'] as const
/** All call their first argument b. */
const TEXTS = FORMATS.map((f) => LIVE[f].text.replaceAll(/\b[hw]\b/g, 'b')).join('\n')
const AXES = `axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)`

/** What a step reads beside A: a mask that comes in, one that the kernel computes, a mask that is no number's neighbour. */
const KERNELS = {
  plain: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer A: f32[i, q] in
  buffer M: f32[i, q] in
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  written: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer X: f32[i, q] in
  buffer M0: f32[i, q] in
  buffer A: f32[i, q] local
  buffer M: i32[i, q] local
  buffer B: f32[q, j] in
  buffer C: f32[i, j] out
  iterate relu [i, q] as SS { A[i, q] = max(X[i, q], 0.0) }
  iterate which [i, q] as SS { M[i, q] = select(M0[i, q] > 0.0, 1, 0) }
  iterate mul [i, q, j] as SRS { C[i, j] += A[i, q] * B[q, j] }
}`,
  // Single elements are written, and a row is a nest with a loop over what is listed inside.
  nest: `kernel product(m: size, n: size, k: size) {
  ${AXES}
  buffer A: f32[i, q] in
  buffer M: f32[i, q] in
  buffer B: f32[q, j] in
  buffer T: f32[i, q] local
  buffer Z: f32[i] local
  buffer C: f32[i, j] out
  iterate take [i, q] as SS { if (A[i, q] != 0) { T[i, q] = 2.0 * A[i, q] } }
  iterate row [i] as S {
    iterate most [q] as R { if (A[i, q] != 0) { Z[i] max= T[i, q] } }
    iterate mul [q, j] as RS { C[i, j] += A[i, q] * B[q, j] }
  }
  iterate more [i, j] as SS { C[i, j] += max(Z[i], -9.0) }
}`,
} as const

const CONDITIONS = ['held(M)', 'i < j', 'i % 2 == 0', 'held(M) and j > 2', 'held(M) or i == j'] as const

interface Composed {
  readonly kernel: keyof typeof KERNELS
  readonly text: string
  /** The format of the step, and as the host has it: conditions of parts exclude each other. */
  readonly format: string
  readonly exact: string
  readonly parts: readonly (typeof FORMATS)[number][]
  readonly inputs: Inputs
  readonly host: Inputs
}

function composed(c: Choices): Composed {
  const kernel = c.pick(Object.keys(KERNELS) as (keyof typeof KERNELS)[])
  const n = c.pick([2, 3])
  const pool = [...FORMATS]
  const parts = Array.from({ length: n }, () => pool.splice(c.below(pool.length), 1)[0]!)
  // Groups of one do not tell what they write apart.
  const uses = parts.map((f) => `${f}(${c.pick([1, 2, 3])}, ${c.pick(f === 'blocks' ? [1, 2] : [2, 3])})`)
  const left = [...CONDITIONS]
  const where = parts.slice(1).map(() => left.splice(c.below(left.length), 1)[0]!)
  const joined = (own: (k: number) => string): string =>
    uses.map((u, k) => (k < where.length ? `${u} where (${own(k)})` : u)).join(' + ')
  const isData = (k: number): boolean => where[k]!.includes('held')
  // Of coordinates alone it is seen, and refused, that two conditions hold.
  const before = (k: number): string =>
    where
      .slice(0, k)
      .map((w) => `not (${w}) and `)
      .join('')
  const format = joined((k) => (where.every((_, x) => isData(x)) ? where[k]! : `${before(k)}(${where[k]})`))
  const [m, k] = [sizeOf(c, 2), c.pick([0, 1, 4, 5, 33, 65])]
  const cols = c.pick([1, 3])
  const dense = (shape: readonly number[], values: Float32Array) =>
    ({ kind: 'dense', dtype: 'f32', shape, values }) as const
  const [given, mask] = [matrix(c, m * k), matrix(c, m * k)]
  const B = dense(
    [k, cols],
    Float32Array.from({ length: k * cols }, (_, e) => (e % 7) - 3),
  )
  const isWritten = kernel === 'written'
  const A = isWritten ? given.map((e) => Math.max(e, 0)) : given
  const exact = joined((x) => `${before(x)}(${where[x]})`)
  const held = [...mask.keys()].filter((e) => (isWritten ? mask[e]! > 0 : mask[e] !== 0))
  const M = coords([m, k], [held.map((e) => Math.floor(e / k)), held.map((e) => e % k)])
  return {
    kernel,
    text: `${TEXTS}\n${KERNELS[kernel]}`,
    format,
    exact,
    parts,
    inputs: {
      tensors: isWritten
        ? { X: dense([m, k], given), M0: dense([m, k], mask), B }
        : { A: dense([m, k], given), M: dense([m, k], mask), B },
    },
    host: { tensors: { A: dense([m, k], A), B, ...(exact.includes('held') ? { M } : {}) } },
  }
}

const scheduled = (s: Composed, how: string) =>
  parseProgram(`${s.text}\nschedule product.s { A as ${s.format} ${how} }`).kernel().schedule('s')
const compiled = (s: Composed, how: string): Compilation => scheduled(s, how).compilation

const property = (usual: number, law: (s: Composed, c: Choices) => Promise<void> | void) =>
  fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const c = new Choices(n)
      const s = composed(c)
      try {
        await law(s, c)
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.stack : e}\n${KERNELS[s.kernel]}\n${s.format}`)
      }
    }),
    parameters(usual),
  )

const waysOf = ({ parts }: Composed) => [
  'live in place',
  'live',
  'live in place capacity m + k',
  'live capacity 3 * m * k + m + k in all',
  `live in place capacity (${parts.map((_, x) => `m + k + ${x}`).join(', ')})`,
  `live capacity (${parts.map((_, x) => `m * k + m + k + ${x}`).join(', ')}) in all`,
]

test(
  'results are what the reference computes, on every stage and the cpu',
  () => property(10, (s, c) => agreeOnAll(compiled(s, c.pick(waysOf(s))), s.inputs)),
  3_600_000,
)

test(
  'and on webgpu',
  () =>
    property(2, async (s, choices) => {
      const c = compiled(s, choices.pick(waysOf(s)))
      const bound = bindInputs(c.kernel, s.inputs)
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      expect(await agreeOnDevice(webgpu, c, bound, expected)).toBe(true)
    }),
  3_600_000,
)

test(
  'each part has room of its own: just enough, and what has one too little is named',
  () =>
    property(8, async (s, choices) => {
      const c = compiled(s, 'live in place')
      const bound = bindInputs(c.kernel, s.inputs)
      const memory = runLoops(c.loops, bound, 'forward')
      const [{ parts }] = c.kernel.found as [Found]
      const needed = parts.map(({ counts, lists, width }) => {
        const found = Array.from(memory.get(counts)!, Number).slice(0, Number(evaluate(lists, bound.params)))
        return Math.ceil(Math.max(0, ...found) / width)
      })
      const enough = (rooms: readonly number[]) => `live in place capacity (${rooms.join(', ')})`
      await agreeOnAll(compiled(s, enough(needed)), s.inputs)
      const wanting = choices.below(parts.length)
      if (needed[wanting] === 0) return
      const rooms = needed.map((n, k) => (k === wanting ? n - 1 : n))
      const tight = await scheduled(s, enough(rooms)).compile(createCpuDevice())
      const prepared = await tight.prepare({ tensors: s.inputs.tensors! })
      const { instance, axis } = parts[wanting]!
      await expect(prepared.run()).rejects.toThrow(
        `product found ${needed[wanting]} positions of ${axis}, which is of ${instance.text} of A, and there is room for ${rooms[wanting]} `,
      )
      prepared.free()
    }),
  3_600_000,
)

const PLAIN = KERNELS.plain.replace('buffer M: f32[i, q] in', '')

test(
  'lists and values of each part are those that the host makes of the same tensor',
  () =>
    property(12, (s) => {
      const c = compiled(s, 'live')
      const memory = runLoops(c.loops, bindInputs(c.kernel, s.inputs), 'forward')
      const text = `${TEXTS}\n${PLAIN}\nschedule product.h { A as ${s.exact} }`
      const there = bindInputs(parseProgram(text).kernel().schedule('h').compilation.kernel, s.host).arrays
      for (const f of s.parts) {
        const list = `${LIVE[f].list}_${f}`
        const ends = Array.from(there.get(`go_${f}_indptr`) ?? there.get(`${list}_indptr`)!, Number)
        const lists = ends.length - 1
        const slices = (mine: ArrayLike<number | bigint>, each: number): number[] =>
          ends.slice(1).flatMap((end, o) => {
            const start = (o * mine.length) / lists
            return Array.from(mine, Number).slice(start, start + (end - ends[o]!) * each)
          })
        const total = Math.max(1, ends.at(-1)!)
        const theirs = there.get(list) ?? there.get(`${list}_indices`)!
        expect(slices(memory.get(`${list}_of_A`)!, theirs.length / total)).toEqual(Array.from(theirs, Number))
        const values = there.get(`A_${f}`)!
        const mine = slices(memory.get(`A_values_${f}`)!, values.length / total)
        expect(mine.map((x) => x + 0)).toEqual(Array.from(values, (x) => Number(x) + 0))
      }
    }),
  3_600_000,
)

const dense = (shape: readonly number[], ...values: readonly number[]) =>
  ({ kind: 'dense', dtype: 'f32', shape, values: Float32Array.from(values) }) as const

/** A part alone: what its condition leaves out is needed by no statement. */
const MASKED = KERNELS.plain
  .replace('C[i, j] +=', 'if (M[i, q] != 0) { C[i, j] +=')
  .replace('] }\n', '] } }\n')

test('what no part has changes nothing, whatever it is, and the first part has what several could', async () => {
  const none = Number.NaN
  const A = dense([2, 4], 1, none, 3, none, none, 2, none, 4)
  const M = dense([2, 4], 1, 0, 1, 0, 0, 1, 0, 1)
  const B = dense([4, 1], 1, 10, 100, 1000)
  const values = async (step: string, kernel: string, device: Device, A: ReturnType<typeof dense>) => {
    const text = `${TEXTS}\n${kernel}\nschedule product.s { A as ${step} }`
    const compiled = await parseProgram(text).kernel().schedule('s').compile(device)
    const { C } = await compiled.run({ tensors: { A, M, B } })
    return Array.from((C as { values: ArrayLike<number> }).values)
  }
  const cpu = createCpuDevice()
  for (const how of ['live', 'live in place']) {
    expect(await values(`blocks(2, 2) where (held(M)) ${how}`, MASKED, cpu, A)).toEqual([301, 4020])
    const twice = `blocks(2, 2) where (held(M)) + panels(2, 2) where (held(M) or i >= 0) + strips(1, 2) ${how}`
    const whole = dense([2, 4], 1, 5, 3, 0, 0, 2, 0, 4)
    expect(await values(twice, KERNELS.plain, cpu, whole)).toEqual([351, 4020])
  }
  expect(await values('blocks(2, 2) where (held(M)) live in place', MASKED, webgpu, A)).toEqual([301, 4020])
})

test('a mask whose fill is no number holds what is one', async () => {
  const kernel = KERNELS.plain.replace('buffer M: f32[i, q] in', 'buffer M: f32[i, q] in fill nan')
  const step = 'A as panels(1, 1) where (held(M)) + panels(1, 1) live in place capacity 1'
  const text = `${TEXTS}\n${kernel}\nschedule product.s { ${step} }`
  const compiled = await parseProgram(text).kernel().schedule('s').compile(createCpuDevice())
  const M = dense([1, 2], Number.NaN, 0)
  const tensors = { A: dense([1, 2], 1, 2), M, B: dense([2, 1], 1, 10) }
  // Each list has one element; there is no room for both in one.
  expect(Array.from((await compiled.run({ tensors })).C!.values as Float32Array)).toEqual([21])
})

const refused = (kernel: string, step: string) =>
  diagnosticOf(() =>
    parseProgram(`${TEXTS}\n${kernel}\nschedule product.s { ${step} }`).kernel().schedule('s'),
  )

test.each([
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (density(2) >= 0.5) + panels(2, 2) live',
    'a condition asks for a count of stored coordinates',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (top(2 by i)) + panels(2, 2) live',
    'a condition asks for a rank by magnitude',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (value > 1) + panels(2, 2) live in place',
    'a condition asks for the value',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (find(L, i) > 1) + panels(2, 2) live',
    'the list L, which comes with the data',
  ],
  [KERNELS.plain, 'A as blocks(2, 2) where (held(S)) + panels(2, 2) live', 'held(S) of'],
  [KERNELS.plain, 'A as blocks(2, 2) where (held(B)) + panels(2, 2) live', 'B is over [q, j]'],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (held(M)) live in place',
    'does not hold all coordinates, and C of product may need what it leaves out',
  ],
  [
    KERNELS.plain,
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live for mul',
    'where one part has all of it',
  ],
  [MASKED, 'A as blocks(2, 2) where (held(M) and i < j) live', 'does not hold all coordinates'],
  [
    KERNELS.plain
      .replace('A[i, q] * B', '(A[i, q] - 0.0) * B')
      .replace(
        'iterate mul',
        'iterate early [i, q] as SR { let x = q D[i] += A[i, q] * A[i, x] } iterate mul',
      )
      .replace('buffer B', 'buffer D: f32[i] out buffer B'),
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live in place',
    'has a name by `let`',
  ],
  [
    KERNELS.written
      .replace('iterate which', 'iterate first [i, q] as SR { D[i] += A[i, q] } iterate which')
      .replace('buffer B', 'buffer D: f32[i] out buffer B'),
    'A as blocks(2, 2) where (held(M)) + panels(2, 2) live in place',
    'is read by first before which writes',
  ],
] as const)('$1 is refused: $2', (kernel, step, why) => {
  const { code, message } = refused(kernel, step)
  expect(message).toContain(why)
  expect(code).toMatch(/^schedule\/live-(format|tensor)$/)
})

test.each([
  ['capacity (k, m, 3)', 'blocks(2, 2) where (held(M)) + panels(2, 2) has 2 parts, and there is room for 3'],
  ['capacity (k, 2 - 3)', 'a capacity of -1 is below 0'],
  ['capacity (k, m / z)', 'z'],
] as const)('%s is refused', (how, why) => {
  const { code, message } = refused(
    KERNELS.plain,
    `A as blocks(2, 2) where (held(M)) + panels(2, 2) live ${how}`,
  )
  expect([code, message]).toEqual([
    why === 'z' ? 'check/unknown-name' : 'schedule/live-capacity',
    expect.stringContaining(why),
  ])
})

test('steps for each part go to its copies of iterations, and to those of its loops that look at lists', () =>
  property(5, async (s, choices) => {
    const how = choices.pick(['live', 'live in place'])
    const stepped = (steps: string) => compiled(s, `${how} ${steps}`)
    const rows = s.parts.every((f) => f !== 'rows_of') && s.kernel !== 'nest'
    const each = stepped(
      `each part of A as p { split mul.j by p.b -> (jl, jr) unroll p.jr ${rows ? 'split p.io by 2 -> (il, ir) bind p.il to block.x' : ''} }`,
    )
    const widths = new Map(Array.from(s.format.matchAll(/(\w+)\((\d+), /g), ([, f, n]) => [f, n]))
    const named = s.parts.map(
      (f) =>
        `split mul_${f}.j by ${widths.get(f)} -> (jl_${f}, jr_${f}) unroll jr_${f} ${rows ? `split mul_${f}.io_${f} by 2 -> (il_${f}, ir_${f}) bind il_${f} to block.x` : ''}`,
    )
    expect(each.loops).toEqual(stepped(named.join(' ')).loops)
    await agreeOnAll(each, s.inputs)
  }))

test('parts by their names', () => {
  const kernel = parseProgram(`${TEXTS}\n${KERNELS.plain}`).kernel()
  const parts = kernel.live('A', 'blocks(2, 3) where (held(M)) + panels(4, 2)', { inPlace: false }).parts('A')
  expect(parts.map((p) => [p.label, p.buffer, p.loop('io'), p.nest('mul'), p.constants.b])).toEqual([
    ['blocks', 'A_values_blocks', 'mul_blocks.io_blocks', 'mul_blocks', 2],
    ['panels', 'A_values_panels', 'mul_panels.io_panels', 'mul_panels', 4],
  ])
})

test('it is part of the step, as text and as data', () => {
  const format = 'blocks(2, b) where (held(M)) + panels(4, 2)'
  const text = `${TEXTS}\n${KERNELS.plain}\nschedule product.s(b = 3) { A as ${format} live capacity k }
schedule product.each(b = 3) { A as ${format} live capacity (b, m + k) in all }`
  const kernel = parseProgram(text).kernel()
  const plain = format.replace('b)', '3)')
  for (const [k, printed] of [
    [kernel.schedule('s'), `A as ${plain} live capacity k`],
    [kernel.live('A', plain), `A as ${plain} live in place`],
    [kernel.live('A', plain, { capacity: ['k / 2', 3] }), `A as ${plain} live in place capacity (k / 2, 3)`],
    [kernel.schedule('each'), `A as ${plain} live capacity (3, m + k) in all`],
  ] as const) {
    expect(printedSteps(k.compilation)).toEqual([printed])
    const again = kernel.replay(JSON.parse(JSON.stringify(k)))
    expect(again.show(1)).toBe(k.show(1))
  }
})

test.skipIf(noNvcc !== null)('nvcc takes a kernel of two parts', () => {
  const step = 'A as blocks(16, 16) where (held(M)) + panels(64, 64) live'
  const k = parseProgram(`${TEXTS}\n${KERNELS.plain}\nschedule product.s { ${step} }`).kernel().schedule('s')
  expect(compileCuda(k.emit('cuda').map((t) => t.text))).toBe('')
})
