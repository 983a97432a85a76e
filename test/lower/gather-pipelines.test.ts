/**
 * Copies of what lists name, padded or not, made ahead: nothing changes, whatever the lists hold. Addresses are loaded an
 * iteration before the copies that need them, and conditions on an address ask for it before it is known to be one.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { devices } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'

/** The extent of what lists name, of groups, and the longest list. */
const [K, GROUPS, WIDTH] = [11, 6, 4]

const axes = `
  axis p = dense_fixed(k)
  axis ii = dense_fixed(2)
  axis f = dense_fixed(n)
  axis gd = dense_fixed(groups)
  buffer B: f32[p, f] in`

/** A kernel, what its copies are of, and where they may be made. */
const KERNELS: readonly { name: string; text: string; first: string; copies: readonly string[] }[] = [
  {
    // Lists of a fixed width, the last elements of which are padding.
    name: 'lists of a fixed width',
    text: `${axes}
  buffer A: f32[p, ii] in
  axis go = dense_fixed(groups)
  axis ko = sparse_fixed(go, k, ${WIDTH})
  buffer W: f32[go, ko] in
  buffer C: f32[ii, f] out
  iterate sum [go, ko, ii, f] as RRSS { C[ii, f] += (W[go, ko] + 9) * A[ko, ii] * B[ko, f] }`,
    first: 'reorder (fo, ii, fi, go, ko)\n  bind fo to block.x, ii to thread.y, fi to thread.x',
    copies: ['A at go', 'B at go', 'W at go'],
  },
  {
    // Of groups that are listed themselves.
    name: 'groups that are listed themselves',
    text: `${axes}
  buffer A: f32[p, ii] in
  buffer D: f32[gd, f] in
  axis go = sparse_variable(groups)
  axis ko = sparse_fixed(go, k, ${WIDTH})
  buffer W: f32[go, ko] in
  buffer C: f32[ii, f] out
  iterate sum [go, ko, ii, f] as RRSS { C[ii, f] += (W[go, ko] + 9) * A[ko, ii] * (B[ko, f] + D[go, f]) }`,
    first: 'reorder (fo, ii, fi, go, ko)\n  bind fo to block.x, ii to thread.y, fi to thread.x',
    copies: ['A at go', 'B at go', 'W at go'],
  },
  {
    // Lists of any length, some of each at a time.
    name: 'lists of any length',
    text: `${axes}
  buffer D: f32[gd, f] in
  axis go = sparse_variable(groups)
  axis ko = sparse_variable(go, k)
  buffer W: f32[go, ko] in
  buffer C: f32[gd, f] out
  iterate sum [go, f, ko] as SSR { C[go, f] += (W[go, ko] + 9) * (B[ko, f] + D[go, f]) }`,
    first:
      'split ko by 3 -> (ks, ki)\n  reorder (go, fo, fi, ks, ki)\n  bind go to block.x, fo to block.y, fi to thread.x',
    copies: ['W at ks', 'B at ks'],
  },
  {
    // Elements of lists are names of lists: one load asks another, which asks a third.
    name: 'lists of lists',
    text: `${axes}
  axis go = dense_fixed(groups)
  axis ko = sparse_fixed(go, k, ${WIDTH})
  axis l = dense_fixed(k)
  axis m = sparse_fixed(l, k, 2)
  axis e = attached(m, ko)
  buffer W: f32[go, ko] in
  buffer V: f32[l, m] in
  buffer C: f32[gd, f] out
  iterate sum [go, f, ko, e] as SSRR { C[go, f] += (W[go, ko] + 9) * V[ko, e] * B[e, f] }`,
    first: 'reorder (go, fo, fi, ko, e)\n  bind go to block.x, fo to block.y, fi to thread.x',
    copies: ['V at ko', 'B at ko'],
  },
  {
    // Rounds that are left out, others behind them.
    name: 'rounds that are left out',
    text: `${axes}
  buffer A: f32[p, ii] in
  axis go = dense_fixed(groups)
  axis ko = sparse_fixed(go, k, ${WIDTH})
  buffer W: f32[go, ko] in
  buffer on: i32[gd] in
  buffer C: f32[ii, f] out
  iterate sum [go, ko, ii, f] as RRSS where (on[go] > 0) { C[ii, f] += (W[go, ko] + 9) * A[ko, ii] * B[ko, f] }`,
    first: 'reorder (fo, ii, fi, go, ko)\n  bind fo to block.x, ii to thread.y, fi to thread.x',
    copies: ['A at go', 'B at go', 'W at go'],
  },
]

interface Copy {
  readonly of: string
  readonly padded: boolean
  readonly layout: string
}
interface Layout {
  readonly kernel: number
  readonly width: number
  readonly copies: readonly Copy[]
  readonly stages: number
}

const layoutsOf = (kernel: number): fc.Arbitrary<Layout> =>
  fc.record({
    kernel: fc.constant(kernel),
    width: fc.constantFrom(4, 2),
    copies: fc.shuffledSubarray([...KERNELS[kernel]!.copies], { minLength: 1 }).chain((list) =>
      fc.tuple(
        ...list.map((of) =>
          fc.record({
            of: fc.constant(of),
            padded: fc.constantFrom(true, true, false),
            layout: fc.constantFrom('', '', '', 'transposed ', 'by 2 '),
          }),
        ),
      ),
    ),
    stages: fc.integer({ min: 2, max: 4 }),
  })

const texts = ({ kernel, width, copies, stages }: Layout): string => {
  const { text, first } = KERNELS[kernel]!
  const at = copies[0]!.of.split(' at ')[1]!
  const each = copies.map((c, k) => {
    const [buffer, loop] = c.of.split(' at ')
    return `cache_read ${buffer} at ${loop} in shared ${c.layout}${c.padded ? 'padded 0 ' : ''}-> copy${k}`
  })
  return `kernel k(n: size, k: size, groups: size) {${text}\n}
schedule k.staged {
  split f by ${width} -> (fo, fi)
  ${first}
  cache_write C at fi in register
  ${each.join('\n  ')}
}
schedule k.pipelined {
  use staged
  pipeline ${at} by ${stages}
}`
}

/** Lists of different lengths, empty ones among them, from numbers. */
const listOf = (lengths: readonly number[], seed: number, most: number, extent: number): number[][] =>
  lengths.map((length, g) => {
    const from = (g * 5 + seed) % extent
    const list = Array.from({ length: Math.min(length, most) }, (_, e) => (from + e * 4) % extent)
    return [...new Set(list)].sort((a, b) => a - b)
  })

function inputsOf(kernel: number, lengths: readonly number[], n: number, seed: number): Inputs {
  const whole = (rows: number, cols: number) =>
    dense(
      [rows, cols],
      Float32Array.from({ length: rows * cols }, (_, e) => ((e * 31 + seed) % 9) - 4),
    )
  const listed = (lists: number[][], extent: number) => {
    const pairs = lists.flatMap((list, g) => list.map((x) => [g, x] as const))
    return coords(
      [lists.length, extent],
      [pairs.map(([g]) => g), pairs.map(([, x]) => x)],
      Float32Array.from(pairs, (_, e) => (e % 5) - 2 || 3),
    )
  }
  const lists = listOf(lengths, seed, kernel === 2 ? K : WIDTH, K)
  const { text } = KERNELS[kernel]!
  const all = {
    A: whole(K, 2),
    B: whole(K, n),
    D: whole(GROUPS, n),
    W: listed(lists, K),
    V: listed(listOf([2, 0, 1, 2, 2, 1, 0, 0, 2, 1, 2], seed + 1, 2, K), K),
    on: dense([GROUPS], Int32Array.of(1, 0, 1, 1, 0, 1)),
  }
  const tensors = Object.entries(all).filter(([name]) => text.includes(`buffer ${name}:`))
  return { tensors: Object.fromEntries(tensors), params: { n, k: K, groups: GROUPS } }
}

const data = fc.noBias(
  fc.record({
    lengths: fc.array(fc.oneof(fc.nat(WIDTH), fc.nat(K)), { minLength: GROUPS, maxLength: GROUPS }),
    n: fc.integer({ min: 1, max: 5 }),
    seed: fc.nat(50),
  }),
)

/** Without the pipeline, and with it; nothing where a step is refused. */
function scheduled(l: Layout): readonly Kernel[] {
  try {
    const program = parseProgram(texts(l))
    return ['staged', 'pipelined'].map((name) => program.kernel().schedule(name))
  } catch (e) {
    if (e instanceof SptError) return []
    throw e
  }
}

interface Data {
  readonly lengths: readonly number[]
  readonly n: number
  readonly seed: number
}

async function check(device: Device, l: Layout, d: Data): Promise<boolean> {
  const kernels = scheduled(l)
  for (const { compilation: c } of kernels) {
    const bound = bindInputs(c.kernel, inputsOf(l.kernel, d.lengths, d.n, d.seed))
    const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
    if (device.kind === 'cpu' && c === kernels.at(-1)!.compilation) agreeOnStages(c, bound, expected)
    await agreeOnDevice(device, c, bound, expected)
  }
  return kernels.length > 0
}

test.each(KERNELS.map((k, index) => ({ ...k, index })))(
  'software-pipelined copies: $name',
  async ({ index }) => {
    const device = createCpuDevice()
    let ran = 0
    // Some layouts are refused: of few draws all may be.
    await fc.assert(
      fc.asyncProperty(fc.noBias(layoutsOf(index)), data, async (l, d) => {
        fc.pre(await check(device, l, d))
        ran++
      }),
      { numRuns: runs(3) },
    )
    expect(ran).toBeGreaterThan(0)
  },
)

test('software-pipelined copies on WebGPU', async () => {
  const device = await devices.webgpu()
  for (const [kernel, { copies }] of KERNELS.entries()) {
    const all = copies.map((of) => ({ of, padded: true, layout: '' }))
    const data = { lengths: [4, 0, 3, 1, 0, 2], n: 5, seed: 3 }

    expect(await check(device, { kernel, width: 4, copies: all, stages: 2 + (kernel % 2) }, data)).toBe(true)
  }
  await device.dispose()
})
