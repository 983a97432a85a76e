/** Whatever the type of the elements and the fill are: a run finds what differs from the fill, as the host does. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runLoops } from '../../src/api/stages/stage-check.ts'
import { type Dtype, INT_RANGE, isFloat } from '../../src/ir/values/dtype.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { convertValues, type Tensor } from '../../src/storage/tensor.ts'
import { Choices } from '../support/choices.ts'
import { compileCuda, noNvcc } from '../support/nvcc.ts'
import { agreeOnAll, agreeOnDevice, agreeOnStages } from './agree.ts'
import { LIVE, sizeOf } from './live-gen.ts'
import { asWritten, SCHEDULES, sameLists, scheduled, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

const FLOATS = ['0', '-0.0', '5', '0.1', 'inf', '-inf', 'nan', '65504'] as const
/** Fills as a text has them. What a type rounds is rounded. */
const FILLS: Readonly<Record<Dtype, readonly string[]>> = {
  f64: FLOATS,
  f32: FLOATS,
  f16: FLOATS,
  bf16: FLOATS,
  i32: ['0', '-3', '2147483647', '-2147483648'],
  u32: ['0', '4294967295'],
  i8: ['0', '-128', '127'],
  u8: ['0', '255'],
  bool: ['false', 'true'],
}
const numberOf = (fill: string): number =>
  ({ inf: Number.POSITIVE_INFINITY, '-inf': Number.NEGATIVE_INFINITY, nan: Number.NaN, true: 1, false: 0 })[
    fill
  ] ?? Number(fill)

/** Numbers of a type beside its fill, among them the nearest. */
function others(t: Dtype, fill: number): readonly number[] {
  if (t === 'bool') return [1 - fill]
  if (isFloat(t))
    return [1, 0, -0, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 5, 0.1]
  const [low, high] = INT_RANGE[t as 'i32']
  return [1, 0, low, high, fill + 1, fill - 1].filter((x) => x >= low && x <= high)
}

type Dense = Extract<Tensor, { readonly kind: 'dense' }>

interface Typed {
  readonly format: keyof typeof LIVE
  /** With the schedules `live` and `fused`, of a tensor that comes in or is written before. */
  readonly text: string
  /** With the schedule `host`, of one that comes in. */
  readonly host: string
  /** Data of new sizes and patterns, for both. */
  readonly data: () => { readonly [of in 'inputs' | 'host']: { readonly tensors: Record<string, Dense> } }
}

function typed(c: Choices, of: readonly Dtype[], given?: string): Typed {
  const dtype = c.pick(of)
  const fill = given ?? c.pick(FILLS[dtype])
  const format = c.pick(Object.keys(LIVE) as (keyof typeof LIVE)[])
  const [a, b] = [c.pick([1, 2, 3, 8]), c.pick([2, 1, 3])]
  const step = `A as ${format}(${a}, ${b})`
  const loops = LIVE[format].loops.map((l) => `mul.${l}`).join(', ')
  const isWritten = c.chance(30)
  // What is no number is told from all others by itself.
  const held = fill === 'nan' ? 'A[i, q] == A[i, q]' : `A[i, q] != ${fill}`
  const kernel = (written: boolean): string => `${LIVE[format].text}
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  ${written ? `buffer X: ${dtype}[i, q] in` : ''}
  buffer A: ${dtype}[i, q] ${written ? 'local' : 'in'} fill ${fill}
  buffer B: i32[q, j] in
  buffer C: i32[i, j] out
  ${written ? 'iterate put [i, q] as SS { A[i, q] = X[i, q] }' : ''}
  iterate mul [i, q, j] as SRS { if (${held}) { C[i, j] += B[q, j] } }
}`
  const text = `${kernel(isWritten)}
schedule product.live { ${step} live in place }
schedule product.fused { ${step} live in place fuse (${loops}) -> g }`
  const data = (): ReturnType<Typed['data']> => {
    const [m, n, k] = [sizeOf(c, a), c.pick([1, 0, 3]), sizeOf(c, b)]
    const [nothing, share] = [numberOf(fill), c.pick([15, 0, 50, 3, 100])]
    const all = others(dtype, nothing)
    const elements = Float64Array.from({ length: m * k }, () => (c.chance(share) ? c.pick(all) : nothing))
    const given: Dense = {
      kind: 'dense',
      dtype,
      shape: [m, k],
      values: convertValues(elements, 'f64', dtype),
    }
    const values = Int32Array.from({ length: k * n }, (_, e) => ((e * 7) % 11) - 5)
    const B: Dense = { kind: 'dense', dtype: 'i32', shape: [k, n], values }
    return { inputs: { tensors: { [isWritten ? 'X' : 'A']: given, B } }, host: { tensors: { A: given, B } } }
  }
  return { format, text, host: `${kernel(false)}\nschedule product.host { ${step} }`, data }
}

const ALL = Object.keys(FILLS) as Dtype[]
let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

const FLOATING = ALL.filter(isFloat).map((t) => [`${t}, filled with nan`, [t], 'nan'] as const)

test.each([...FLOATING, ['any', ALL, undefined] as const])(
  'products and lists equal those of the host, at every stage and on the cpu: %s',
  async (_, of, fill) => {
    await fc.assert(
      fc.asyncProperty(numbers, (n) => {
        const c = new Choices(n)
        const s = typed(c, of, fill)
        return told([s.text], async () => {
          const name = c.pick(SCHEDULES)
          const compilation = scheduled(s, name)
          const onHost = scheduled({ text: s.host }, 'host').kernel
          for (let pattern = 0; pattern < 3; pattern++) {
            const { inputs, host } = s.data()
            await agreeOnAll(compilation, inputs)
            const memory = runLoops(compilation.loops, bindInputs(compilation.kernel, inputs), 'forward')
            sameLists(s.format, memory, bindInputs(onHost, host).arrays, name === 'fused')
          }
        })
      }),
      parameters(of.length === 1 ? 1 : 10),
    )
  },
  3_600_000,
)

test('the same holds with threads and for any element width: at the stages, on webgpu, and nvcc compiles it', async () => {
  const inWords = ALL.filter((t) => t !== 'f64')
  let run = 0
  await fc.assert(
    fc.asyncProperty(numbers, (n) => {
      const c = new Choices(n)
      const s = typed(c, run % 2 === 0 ? ALL : inWords)
      return told([s.text], async () => {
        const compilation = scheduled(s, c.pick(SCHEDULES)).parallel()
        if (run === 0 && !noNvcc) expect(compileCuda(compilation.texts('cuda').map((t) => t.text))).toBe('')
        for (let pattern = 0; pattern < 3; pattern++) {
          const { bound, expected } = asWritten(compilation, s.data().inputs)
          if (run % 2 === 0) agreeOnStages(compilation, bound, expected)
          else await agreeOnDevice(webgpu, compilation, bound, expected)
        }
        run++
      })
    }),
    parameters(4),
  )
}, 3_600_000)
