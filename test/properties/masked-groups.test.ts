/**
 * Groups of what a run finds, filled up with a coordinate that is visited again: of a format that keeps a mask, any statement is what the
 * reference computes.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { agreeOnAll, agreeOnDevice, verifiedOn } from './agree.ts'
import { LIVE, matrix } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

const GROUPED = ['panels', 'strips', 'rows_of', 'low_panels'] as const
const PADDING = ['padded with last', 'padded with 0', ''] as const

/** A format with other padding (lists have no number for it), and with a mask or without. */
function formatOf(
  name: (typeof GROUPED)[number],
  padding: (typeof PADDING)[number],
  isMasked: boolean,
): string {
  const own = padding === 'padded with 0' && LIVE[name].text.includes('list ') ? 'padded with last' : padding
  const text = LIVE[name].text.replace(/( = sparse_fixed\([^)]*\)).*/, `$1 ${own}`)
  return isMasked ? text.replace(/\}\s*$/, '  mask held\n}') : text
}

const AXES = `axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer x: f32[q] in`
const KERNELS = {
  // What is counted, and least and most of all; single elements are written, and read at other coordinates.
  extremes: `kernel grouped(m: size, k: size) {
  ${AXES}
  buffer T: f32[i, q] local fill 9.0
  buffer S: f32[i, q] local
  buffer N: i32[i] out
  buffer H: f32[i] out
  buffer L: f32[q] out
  buffer D: f32[i, q] out
  buffer E: f32[i, q] out
  iterate many [i, q] as SR { if (A[i, q] != 0) { N[i] += 1 } }
  iterate put [i, q] as SS { if (A[i, q] != 0) { T[i, q] = A[i, q] * 2.0 } }
  iterate sum [i, q] as SS { if (A[i, q] != 0) { S[i, q] += T[i, q] + x[q] } }
  iterate high [i, q] as SR { if (A[i, q] != 0) { H[i] max= S[i, q] - T[i, q] } }
  iterate low [i, q] as RS { if (A[i, q] != 0) { L[q] min= T[i, q] } }
  iterate all [i, q] as SS { if (A[i, q] != 0) { D[i, q] = S[i, q] + 1.0 } }
  iterate look [i, q] as SS { E[i, q] = T[i, q] + S[i, q] }
}`,
  softmax: `kernel grouped(m: size, k: size) {
  ${AXES}
  buffer S: f32[i, q] local
  buffer T: f32[i, q] local fill -inf
  buffer P: f32[i, q] local
  buffer M: f32[i] local
  buffer Z: f32[i] local
  buffer W: f32[i] local
  buffer y: f32[i] out
  iterate score [i, q] as SS { if (A[i, q] != 0) { S[i, q] += A[i, q] * x[q] } }
  iterate allow [i, q] as SS { if (A[i, q] != 0) { T[i, q] = select(q % 3 == 1, -inf, S[i, q]) } }
  iterate peak [i, q] as SR { if (A[i, q] != 0) { M[i] max= T[i, q] } }
  iterate weigh [i, q] as SS { if (A[i, q] != 0) { P[i, q] = exp(T[i, q] - max(M[i], -3.4e+38)) } }
  iterate total [i, q] as SR { if (A[i, q] != 0) { Z[i] += P[i, q] } }
  iterate mix [i, q] as SR { if (A[i, q] != 0) { W[i] += P[i, q] * x[q] } }
  iterate finish [i] as S { y[i] = select(Z[i] > 0, W[i] / Z[i], 0) }
}`,
  // A sum in a temporary has anything at positions without a coordinate of their own: its consumers are masked.
  products: `kernel grouped(m: size, k: size) {
  ${AXES}
  buffer S: f32[i, q] local
  buffer y: f32[i] out
  iterate score [i, q] as SS { if (A[i, q] != 0) { S[i, q] += A[i, q] * x[q] } }
  iterate mix [i, q] as SR { if (A[i, q] != 0) { y[i] += S[i, q] * x[q] } }
}`,
} as const
const OVER = {
  products: ['score', 'mix'],
  extremes: ['many', 'put', 'sum', 'high', 'low', 'all'],
  softmax: ['score', 'allow', 'peak', 'weigh', 'total', 'mix'],
} as const

/** Each is made, and its stages verified, once. */
const compiled = new Map<string, Compilation>()

function compile(kernel: keyof typeof KERNELS, name: (typeof GROUPED)[number], c: Choices): Compilation {
  const [padding, isMasked] = [c.pick(PADDING), c.below(4) > 0]
  const [a, b] = [c.pick(name === 'low_panels' ? [3, 33] : [2, 3]), c.pick([2, 4])]
  const [outer, group] = LIVE[name].loops
  const fuse = OVER[kernel].map((it) => `fuse (${it}.${outer}, ${it}.${group}) -> g`).join(' ')
  const text = `${formatOf(name, padding, isMasked)}\n${KERNELS[kernel]}
schedule grouped.s { A as ${name}(${a}, ${b}) live ${c.pick(['in place', ''])} ${c.below(2) === 1 ? fuse : ''} }`
  const made = compiled.get(text) ?? parseProgram(text).kernel().schedule('s').compilation
  compiled.set(text, made)
  return made
}

const dense = (shape: readonly number[], values: Float32Array) =>
  ({ kind: 'dense', dtype: 'f32', shape, values }) as const

test.each(
  (['extremes', 'softmax', 'products'] as const).flatMap((kernel) =>
    // Lists of low digits keep apart no single elements that are written.
    GROUPED.filter((name) => kernel !== 'extremes' || name !== 'low_panels').map(
      (name) => [kernel, name] as const,
    ),
  ),
)('%s under %s', async (kernel, name) => {
  await fc.assert(
    fc.asyncProperty(numbers, async (n) => {
      const choices = new Choices(n)
      const c = compile(kernel, name, choices)
      const [m, k] = [choices.pick([0, 1, 2, 3, 7]), choices.pick([0, 1, 4, 5, 8, 33, 65])]
      const x = Float32Array.from({ length: k }, (_, e) => (e % 5) - 2)
      const inputs = { tensors: { A: dense([m, k], matrix(choices, m * k)), x: dense([k], x) } }
      const onWebGpu = choices.below(8) === 0
      const bound = bindInputs(c.kernel, inputs)
      if (kernel === 'softmax')
        await verifiedOn(onWebGpu ? webgpu : createCpuDevice(), onWebGpu ? c.parallel() : c, bound)
      else if (onWebGpu) {
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(webgpu, c.parallel(), bound, expected)
      } else await agreeOnAll(c, inputs)
    }),
    parameters({ softmax: 12, extremes: 6, products: 24 }[kernel]),
  )
})

test('full groups are visited, and only statements sensitive to repetition read the mask', () => {
  const text = `${formatOf('strips', 'padded with last', true)}\n${KERNELS.softmax}
schedule grouped.s { A as strips(1, 4) live in place }`
  const shown = parseProgram(text).kernel().schedule('s').show(1)
  const asking = shown.split('\n').filter((line) => line.includes('go * 4 + jo < counts_A'))
  expect(asking.map((line) => line.trim().split(' ')[0])).toEqual(['T[io,', 'P[io,'])
  // A temporary that is summed into has anything in the rest of a group: its consumer is predicated, the sum is not.
  const summed = parseProgram(text.replace(KERNELS.softmax, KERNELS.products)).kernel().schedule('s').show(1)
  const predicated = summed.split('\n').filter((line) => line.includes('go * 4 + jo < counts_A'))
  expect(predicated.map((line) => line.trim().split(' ')[0])).toEqual(['y[io'])
  // Without a mask each iteration ends where its list does.
  const plain = parseProgram(text.replace('mask held', '')).kernel().schedule('s').show(1)
  expect(plain.match(/ where \(go \* 4 \+ jo < counts_A/g)?.length).toBe(6)
  // Groups that nothing fills up end there as well.
  const bare = parseProgram(text.replace('padded with last', '')).kernel().schedule('s').show(1)
  expect(bare.match(/ where \(go \* 4 \+ jo < counts_A/g)?.length).toBe(6)
})

test.runIf(noNvcc === null)('CUDA code compiles', () => {
  const texts = GROUPED.flatMap((name, k) =>
    compile('softmax', name, new Choices([0, k]))
      .parallel()
      .texts('cuda')
      .map((t) => t.text),
  )
  expect(compileTogether(texts)).toBe('')
})
