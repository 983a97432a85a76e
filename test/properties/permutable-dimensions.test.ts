/** What the analysis calls permutable is: permuted data give the same results, permuted back; in generated programs. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PermutableDimension } from '../../src/analysis/permutations/permutable-dimensions.ts'
import { permutableDimensions } from '../../src/analysis/permutations/permutable-dimensions.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { isDenseChain } from '../../src/ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../../src/ir/coordinates/stage1-tree.ts'
import { type RefInputs, reference } from '../../src/reference/index.ts'
import { Choices } from '../support/choices.ts'
import { values } from '../support/matrix-gen.ts'
import { permutedInputs, permutedResults, plainResults } from '../support/permuted-data.ts'
import { generate } from '../support/program-gen.ts'
import { numbers, parameters } from './property-cases.ts'

interface Data {
  readonly inputs: RefInputs
  readonly shapes: Readonly<Record<string, readonly number[]>>
}

/** How many dimensions with more than one coordinate have been permuted. */
const seen = { permuted: 0, kept: 0, refused: 0, sparse: 0 }

function holds(kernel: Kernel1, dimensions: readonly PermutableDimension[], data: Data, c: Choices): void {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const before = reference(kernel, data.inputs).buffers
  for (const d of dimensions) {
    if (d.obstacle) {
      seen.refused++
      continue
    }
    // Names such as `constructor` are among those of generated programs.
    const own = Object.hasOwn(data.shapes, d.tensor)
    const result = Object.hasOwn(before, d.tensor) ? before[d.tensor] : undefined
    const extent = (own ? data.shapes[d.tensor] : result?.shape)?.[d.dimension]
    if (extent === undefined || extent < 2) continue
    seen[d.results]++
    if (!isDenseChain(axes, d.axis)) seen.sparse++
    const order = c.shuffle(Array.from({ length: extent }, (_, k) => k))
    const dims = [d, ...d.linkedDimensions]
    const after = reference(kernel, permutedInputs(data.inputs, data.shapes, dims, order)).buffers
    const told = `${d.axis} of ${d.tensor} by ${order}, alike ${d.linkedDimensions.map((x) => `${x.axis} of ${x.tensor}`)}`
    expect(plainResults(after), told).toEqual(permutedResults(before, dims, order))
    if (d.results === 'kept') expect(plainResults(after), told).toEqual(plainResults(before))
  }
}

/** An iteration by itself: what it reads of temporaries is data, what it writes are results. */
function alone(
  kernel: Kernel1,
  at: number,
  data: Data,
  c: Choices,
): { kernel: Kernel1; data: Data } | undefined {
  const body = [kernel.body[at]!]
  const written = writtenBuffers1(body)
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const inputs: Record<string, RefInputs['buffers'][string]> = { ...data.inputs.buffers }
  const shapes = { ...data.shapes }
  const sizes = new Map(Object.values(data.shapes).length ? sizesOf(kernel, data) : [])
  const buffers: Buffer1[] = []
  for (const b of kernel.buffers) {
    if (written.has(b.name)) buffers.push(b.role === 'local' ? { ...b, role: 'out' } : b)
    else if (b.role === 'in' || b.role === 'inout') buffers.push({ ...b, role: 'in' })
    if (buffers.at(-1)?.name === b.name) continue
    if (!b.axes.every((a) => isDenseChain(axes, a) && sizes.has(a))) return undefined
    shapes[b.name] = b.axes.map((a) => sizes.get(a)!)
    const count = shapes[b.name]!.reduce((x, y) => x * y, 1)
    inputs[b.name] = values(c, b.dtype, count, true)
    buffers.push({ ...b, role: 'in' })
  }
  return {
    kernel: { ...kernel, body, buffers },
    data: { inputs: { ...data.inputs, buffers: inputs }, shapes },
  }
}

function sizesOf(kernel: Kernel1, { inputs }: Data): ReadonlyMap<string, number> {
  const known = kernel.axes.flatMap((a): [string, number][] => {
    if (a.kind !== 'dense_fixed') return []
    const { extent } = a
    if (extent.kind === 'const') return [[a.name, extent.value]]
    return extent.kind === 'var' ? [[a.name, inputs.params[extent.name]!]] : []
  })
  return new Map(known)
}

test('generated programs', async () => {
  await fc.assert(
    fc.property(numbers, (choices) => {
      const c = new Choices(choices)
      const sample = generate(c)
      let kernel: Kernel1
      try {
        const compilation = parseProgram(sample.text).kernel().compilation
        void compilation.loops
        kernel = compilation.source
      } catch (e) {
        if (e instanceof SptError) return
        throw e
      }
      const shapes = Object.fromEntries(
        Object.entries(sample.tensors).map(([name, t]) => [name, t.shape as readonly number[]]),
      )
      const data = { inputs: sample.reference, shapes }
      const told = permutableDimensions(kernel)
      try {
        holds(kernel, told.kernel, data, c)
        for (const [k, s] of kernel.body.entries()) {
          if (s.kind !== 'iterate') continue
          const one = alone(kernel, k, data, c)
          const { dimensions } = told.iterations.find((it) => it.name === s.name)!
          if (one) holds(one.kernel, dimensions, one.data, c)
        }
      } catch (e) {
        throw new Error(
          `${e instanceof Error ? e.message : e}\n${sample.text.slice(sample.text.search(/^(monoid|kernel)/m))}\n${JSON.stringify(sample.reference)}`,
        )
      }
    }),
    parameters(120),
  )
  for (const [what, count] of Object.entries(seen)) expect(count, what).toBeGreaterThan(0)
})
