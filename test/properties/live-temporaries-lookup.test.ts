/** Temporaries over the lists that a run finds, read in another order: what is listed is found, of the rest what it starts from. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { LIVE, matrix, sizeOf } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

/** How elements are written, and what those that are read are combined by. */
const WRITERS = {
  assigned: [
    'iterate up [i, q, j] as SSS { if (A[i, q] != 0) { H[i, q, j] = A[i, q] * X[q, j] + 7 } }',
    '+=',
  ],
  summed: ['iterate up [i, q, j] as SSS { H[i, q, j] += A[i, q] * X[q, j] }', '+='],
  'summed inside': ['iterate up [i, q, p, j] as SSRS { H[i, q, j] += A[i, q] * X[q, j] * W[p] }', '+='],
  greatest: ['iterate up [i, q, j] as SSS { if (A[i, q] != 0) { H[i, q, j] max= X[q, j] } }', 'max='],
} as const

const READERS = {
  turned: ['k', (by: string) => `iterate down [q, i, j] as SRS { Y[q, j] ${by} H[i, q, j] }`],
  gathered: [
    'k',
    (by: string) => `iterate down [q, i, j] as SRS { if (Q[q, i] != 0) { Y[q, j] ${by} H[i, q, j] } }`,
  ],
  backward: ['m', (by: string) => `iterate down [i, q, j] as SRS { Y[i, j] ${by} H[i, k - 1 - q, j] }`],
  anywhere: ['l', () => 'iterate down [x, j] as SS { Y[x, j] = H[I[x], J[x], j] }'],
  twice: [
    'm',
    (by: string) => `iterate down [i, q, j] as SRS { if (A[i, q] != 0) { Y[i, j] ${by} H[i, q, j] } }
  iterate also [i, q, j] as SRS { Y[i, j] ${by} H[m - 1 - i, q, j] }`,
  ],
} as const

function lists(c: Choices) {
  const format = c.pick(Object.keys(LIVE) as (keyof typeof LIVE)[])
  const written = c.pick(Object.keys(WRITERS) as (keyof typeof WRITERS)[])
  const read = c.pick(Object.keys(READERS) as (keyof typeof READERS)[])
  const [a, b] = [c.pick([1, 2, 3, 4]), c.pick([1, 2, 3, 4])]
  // More words than a chunk has, now and then.
  const long = 1030 * (format === 'blocks' ? b : 1)
  const [outer, listed] = c.below(8) === 7 ? [3, long] : [sizeOf(c, a), sizeOf(c, b)]
  const [m, k] = format === 'rows_of' ? [listed, outer] : [outer, listed]
  const [n, l] = [c.pick([1, 2]), 9]
  const [writer, by] = WRITERS[written]
  const [extent, reader] = READERS[read]
  const room = c.pick(['', ' capacity m + k', ' capacity m * k + m + k in all'])
  const as = [`A as ${format}(${a}, ${b}) live in place${room}`]
  if (read === 'gathered') as.splice(c.below(2), 0, 'Q as rows live in place')
  const fuse = c.below(2) > 0 || room.endsWith('all') ? LIVE[format].loops.map((x) => `up.${x}`) : []
  const inputs = (name: string, buffer: string, used: boolean): string =>
    used ? `  buffer ${name}: ${buffer} in\n` : ''
  const [isGathered, isAnywhere, isInside] = [
    read === 'gathered',
    read === 'anywhere',
    written === 'summed inside',
  ]
  const text = `${LIVE[format].text}
format rows over (i, j) {
  axis ro = dense_fixed(i)
  axis co = sparse_variable(ro, j)
  map (i, j) -> (i, j)
  inverse (ro, co) -> (ro, co)
}
kernel product(m: size, n: size, k: size, l: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  axis x = dense_fixed(l)
  axis y = dense_fixed(${extent})
  axis p = dense_fixed(3)
  buffer A: f32[i, q] in
  buffer X: f32[q, j] in
${inputs('Q', 'f32[q, i]', isGathered)}${inputs('I', 'i32[x]', isAnywhere)}${inputs('J', 'i32[x]', isAnywhere)}${inputs('W', 'f32[p]', isInside)}  buffer H: f32[i, q, j] local
  buffer Y: f32[y, j] out
  ${writer}
  ${reader(by)}
}
schedule product.live {
  ${as.join('\n  ')}
  ${fuse.length > 0 ? `fuse (${fuse.join(', ')}) -> g` : ''}
}`
  const dense = <T extends 'f32' | 'i32'>(dtype: T, shape: readonly number[], values: ArrayLike<number>) =>
    ({
      kind: 'dense',
      dtype,
      shape,
      values: dtype === 'f32' ? Float32Array.from(values) : Int32Array.from(values),
    }) as const
  const A = matrix(c, m * k)
  const whole = (of: number, below: number): number[] => Array.from({ length: of }, () => c.below(below) - 2)
  // What is asked for is mostly what there is, and may be anything.
  const Q = Float32Array.from({ length: k * m }, (_, x) =>
    c.below(16) > 0 ? A[(x % m) * k + Math.floor(x / m)]! : 1,
  )
  const tensors = {
    A: dense('f32', [m, k], A),
    X: dense('f32', [k, n], whole(k * n, 7)),
    ...(isGathered ? { Q: dense('f32', [k, m], Q) } : {}),
    ...(isAnywhere ? { I: dense('i32', [l], whole(l, m + 4)), J: dense('i32', [l], whole(l, k + 4)) } : {}),
    ...(isInside ? { W: dense('f32', [3], whole(3, 4)) } : {}),
  }
  return { text, written, inputs: { tensors, params: { m, n, k, l } } }
}

const compilationOf = (text: string): Compilation => parseProgram(text).kernel().schedule('live').compilation

const property = (
  usual: number,
  check: (c: Compilation, s: ReturnType<typeof lists>) => Promise<void> | void,
) =>
  fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const s = lists(new Choices(n))
      try {
        await check(compilationOf(s.text), s)
      } catch (e) {
        throw new Error(`${e instanceof Error ? e.stack : e}\n${s.text}\n${JSON.stringify(s.inputs.params)}`)
      }
    }),
    parameters(usual),
  )

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test('looked-up values equal the reference, at every stage and on the cpu', async () => {
  await property(20, async (c, { inputs, written }) => {
    // By positions, and not set to anything before: nobody reads but what is written.
    const stored = c.kernel.buffers.find((b) => b.name === 'H')!
    expect(stored.axes).not.toContain('q')
    if (written.startsWith('summed')) expect(print2(c.loops)).not.toMatch(/^fill H/m)
    await agreeOnAll(c, inputs)
  })
}, 3_600_000)

test('the same holds on WebGPU', async () => {
  await property(4, async (c, { inputs }) => {
    const bound = bindInputs(c.kernel, inputs)
    const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
    await agreeOnDevice(webgpu, c, bound, expected)
  })
}, 3_600_000)

test.skipIf(noNvcc !== null)('nvcc compiles it', async () => {
  await property(2, (c) => {
    const texts = c.parallel().texts('cuda')
    expect(compileCuda(texts.map((t) => t.text))).toBe('')
  })
})
