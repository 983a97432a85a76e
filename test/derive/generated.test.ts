/** Gradients of generated kernels agree with central differences of the reference in float64. */
import { afterAll, expect } from 'vitest'
import { writesOf } from '../../src/analysis/sparsity/writes.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { isGathered } from '../../src/ir/coordinates/axis.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { freeVars } from '../../src/ir/expressions/expr-tree.ts'
import { runs, SEED } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { checkGradients, floatsOf, inDoubles, smooth } from '../support/gradient-check.ts'
import { generate, type Sample } from '../support/program-gen.ts'
import { property } from '../support/property.ts'
import { inRounds } from '../support/rounds-gen.ts'

/** Pairs of an output and an input by outcome: `smooth`, `kink`, or the code of the error. */
const counts = new Map<string, number>()
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1)

function kernelOf({ text }: Sample) {
  try {
    return parseProgram(inDoubles(text)).kernel().source
  } catch (e) {
    if (e instanceof SptError) return undefined
    throw e
  }
}

/**
 * The rule of the monoid `pair` gives each of several equal maxima the whole gradient. Operands are equal if they do not
 * depend on an iterator of the reduction, and may be equal in several rounds or where a gathered axis repeats an element.
 */
const hasTies = (kernel: Kernel1): boolean =>
  writesOf(kernel).some(({ stmt, iterations, values }) => {
    if (stmt.kind !== 'reduce' || !stmt.reducer.derivative) return false
    if (kernel.body.some((s) => s.kind === 'rounds') || kernel.axes.some(isGathered)) return true
    const used = freeVars(values[1]!)
    return iterations.some((it) => it.iters.some(({ name, kind }) => kind === 'R' && !used.has(name)))
  })

property([choiceNumbers(700)], { numRuns: runs(150), seed: SEED })('gradients', (choices) => {
  const c = new Choices(choices)
  const sample = c.chance(30) ? inRounds(c) : generate(c)
  const kernel = kernelOf(sample)
  if (!kernel || hasTies(kernel)) return
  const inputs = smooth(kernel, sample.reference, choices[0]!)
  for (const by of floatsOf(kernel, 'out'))
    for (const x of floatsOf(kernel, 'in')) {
      // Elements at equal coordinates are separate, in an order that the result does not show.
      if (/nonunique/.test(sample.text)) continue
      try {
        const [c] = checkGradients(kernel, inputs, by, [x], choices[1]!)
        count(c!.isKink ? 'kink' : 'smooth')
        const tolerance = 1e-4 * Math.max(1, Math.abs(c!.expected))
        if (!c!.isKink)
          expect(Math.abs(c!.actual - c!.expected), `${by} by ${x}\n${sample.text}`).toBeLessThan(tolerance)
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        count(e.diagnostics[0]!.code)
      }
    }
})

afterAll(() => {
  for (const code of ['derive/independent', 'derive/no-rule', 'derive/overwritten', 'derive/rounds'])
    counts.delete(code)
  const all = [...counts.values()].reduce((a, b) => a + b, 0)
  // Kinks include maxima of equal values, which generated reductions often have.
  expect(counts.get('smooth') ?? 0, JSON.stringify([...counts])).toBeGreaterThanOrEqual(all / 3)
})
