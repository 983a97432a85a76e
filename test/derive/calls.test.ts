/** Gradients and calls: of kernels that call kernels, and calls of gradients. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type RefInputs, type RefOutputs, reference } from '../../src/reference/index.ts'
import { calling } from '../support/calling-kernel.ts'
import { runs, SEED } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { floatsOf, inDoubles, smooth } from '../support/gradient-check.ts'
import { generate } from '../support/program-gen.ts'
import { property } from '../support/property.ts'

const kernelOf = (text: string, name?: string) => {
  try {
    return parseProgram(text).kernel(name)
  } catch (e) {
    if (e instanceof SptError) return undefined
    throw e
  }
}

let [compared, drawn] = [0, 0]

property([choiceNumbers(700)], { numRuns: runs(80), seed: SEED })(
  'the gradient of a calling kernel, and a call of a gradient, are the gradient',
  (choices) => {
    const sample = generate(new Choices(choices))
    const text = inDoubles(sample.text)
    const kernel = kernelOf(text)
    const of = calling(text)
    if (!kernel || of === null) return
    for (const by of floatsOf(kernel.source, 'out'))
      for (const x of floatsOf(kernel.source, 'in')) {
        let back: typeof kernel
        try {
          back = kernel.gradient(by, [x], { name: 'back' })
        } catch (e) {
          if (e instanceof SptError) continue
          throw e
        }
        drawn++
        const declared = `gradient back of ${kernel.name} by ${by} wrt (${x})\n`
        const call = calling(back.show(1), {
          program: `${text}\n${declared.replace('back', 'back_q')}`,
          name: 'back_q',
        })
        const inputs = smooth(kernel.source, sample.reference, choices[0]!)
        const given = { ...inputs, buffers: { ...inputs.buffers } }
        const known = new Set(
          [...back.source.buffers, ...back.source.params, ...back.source.axes].map((b) => b.name),
        )
        const adjoint = back.source.buffers.find(
          (b) => b.role === 'in' && !kernel.source.buffers.some((o) => o.name === b.name),
        )
        const result = run(kernel.source, inputs)
        if (adjoint && typeof result !== 'string') {
          const { kind, ...r } = result[by]!
          const values = Array.from(r.values, (_, k) => (k % 7) - 3)
          given.buffers[adjoint.name] = 'coords' in r ? { coords: r.coords, values } : values
        }
        const kept = withNames(given, known)
        const expected = run(back.source, kept)
        if (typeof expected !== 'string') compared++
        const all = [
          kernelOf(`${of}\n${declared}`, 'back'),
          call === null ? back : parseProgram(call).kernel('back'),
        ]
        for (const other of all) expect(run(other!.source, kept), call ?? of).toEqual(expected)
      }
  },
)

const withNames = (inputs: RefInputs, names: ReadonlySet<string>): RefInputs => {
  const kept = <T>(fields: Readonly<Record<string, T>> = {}): Record<string, T> =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name)))
  return { params: kept(inputs.params), buffers: kept(inputs.buffers), structure: kept(inputs.structure) }
}

const run = (kernel: Parameters<typeof reference>[0], inputs: RefInputs): RefOutputs['buffers'] | string => {
  try {
    return reference(kernel, inputs).buffers
  } catch (e) {
    return String(e).slice(0, 40)
  }
}

test('most of the generated gradients were compared', () => {
  expect(drawn).toBeGreaterThan(0)
  expect(2 * compared).toBeGreaterThanOrEqual(drawn)
})
