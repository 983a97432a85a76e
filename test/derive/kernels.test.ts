/** Gradients of the kernels of kernels/ agree with central differences of the reference in float64. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Axis, chainTo, isDense, isGathered, isStored } from '../../src/ir/coordinates/axis.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { isFloat } from '../../src/ir/values/dtype.ts'
import { coords, load } from '../../src/node.ts'
import type { RefInputs } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { sample } from '../support/cases.ts'
import { checkGradients, floatsOf, inDoubles, smooth } from '../support/gradient-check.ts'

/** Reasons for which a gradient does not exist. */
const SKIPPED = ['derive/independent']

const SIZE = 4

/** Sizes of kernels whose axes have other extents than sizes. Their structures contain every coordinate. */
const SIZES: Readonly<Record<string, Readonly<Record<string, number>>>> = { csr_to_bsr: { m: 16, n: 16 } }

/** Random coordinates for axes whose structure no input gives. */
function structures({ name, axes, buffers }: Kernel1, random: Random): Record<string, Tensor> {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const given = new Set(buffers.flatMap((b) => (b.role === 'in' || b.role === 'inout' ? b.axes : [])))
  const isLeaf = (a: Axis): boolean => !axes.some((x) => 'parent' in x && x.parent === a.name)
  const out: Record<string, Tensor> = {}
  for (const a of axes) {
    if (!isStored(a) || isDense(a) || isGathered(a) || given.has(a.name) || !isLeaf(a)) continue
    const chain = chainTo(byName, a.name)
    const all = Array.from({ length: SIZE ** chain.length }, (_, k) =>
      chain.map((_, d) => Math.floor(k / SIZE ** d) % SIZE),
    ).filter(() => name in SIZES || random.next() < 0.5)
    out[a.name] = coords(
      chain.map(() => SIZE),
      chain.map((_, d) => all.map((c) => c[d]!)),
    )
  }
  return out
}

/** Values that are not coordinates: the ends of sequences. */
const VALUES: Readonly<Record<string, readonly number[]>> = { E: [3, 7, 12, 16] }

/** Inputs of which integers are coordinates, in ascending order. */
function inputsOf(kernel: Kernel1): RefInputs {
  const numbers = kernel.params.map((p) => [p.name, p.kind === 'size' ? SIZE : isFloat(p.dtype) ? 1 : 2])
  const params = { ...Object.fromEntries(numbers), ...SIZES[kernel.name] }
  const tensors = structures(kernel, new Random(9))
  const inputs = referenceInputs(kernel, bindInputs(kernel, { params, tensors, seed: 3 }))
  const buffers = { ...inputs.buffers }
  for (const { name, dtype } of kernel.buffers) {
    const t = buffers[name]
    if (!t || isFloat(dtype)) continue
    const values = (n: number): readonly number[] =>
      VALUES[name] ?? Array.from({ length: n }, (_, k) => Math.floor((k * SIZE) / n))
    buffers[name] = 'coords' in t ? { ...t, values: values(t.coords[0]!.length) } : values(t.length)
  }
  return smooth(kernel, { ...inputs, buffers }, 7)
}

const files = readdirSync('kernels').filter((f) => f.endsWith('.spt'))

test('kernels', async () => {
  let compared = 0
  let skipped = 0
  for (const file of sample(files, files.length)) {
    const program = await load(`kernels/${file}`)
    for (const name of program.kernels) {
      const { source } = program.kernel(name)
      if (!source.span?.source.endsWith(file) || name.includes('<')) continue
      const kernel = parseProgram(inDoubles(print1(source))).kernel().source
      for (const by of floatsOf(kernel, 'out'))
        for (const x of floatsOf(kernel, 'in'))
          try {
            const [c] = checkGradients(kernel, inputsOf(kernel), by, [x], 5)
            const size = Math.max(1, Math.abs(c!.expected))
            if (!c!.isKink)
              expect(Math.abs(c!.actual - c!.expected) / size, `${name}: ${by} by ${x}`).toBeLessThan(1e-4)
            compared++
          } catch (e) {
            if (!(e instanceof SptError)) throw e
            expect(SKIPPED, `${name}: ${by} by ${x}`).toContain(e.diagnostics[0]!.code)
            skipped++
          }
    }
  }
  expect(compared, `${skipped} skipped`).toBeGreaterThan(skipped)
})

const MODELS = [
  ['graphsage', 'graphsage'],
  ['sparse-training', 'classifier'],
  ['encoder', 'encoder'],
] as const

test.each(sample(MODELS, 3))('the model %s of examples/training', async (file, name) => {
  const program = await load(`examples/training/${file}.spt`)
  const kernel = parseProgram(inDoubles(print1(program.kernel(name).source))).kernel(name).source
  const weights = floatsOf(kernel, 'in')
  for (const c of checkGradients(kernel, inputsOf(kernel), 'loss', weights, 5)) {
    const difference = Math.abs(c.actual - c.expected) / Math.max(1, Math.abs(c.expected))
    if (!c.isKink) expect(difference, c.tensor).toBeLessThan(1e-4)
  }
})
