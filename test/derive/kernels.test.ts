/** Gradients of the kernels of kernels/ agree with central differences of the reference in float64. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { load } from '../../src/node.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { sample } from '../support/cases.ts'
import { checkGradients, floatsOf, inDoubles, smooth } from '../support/gradient-check.ts'

/** Reasons for which a gradient does not exist, or data for it are not made here. */
const SKIPPED = ['derive/independent', 'derive/no-rule', 'bind/no-structure', 'reference/absent-target']

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
      const params = Object.fromEntries(kernel.params.map((p) => [p.name, p.kind === 'size' ? 8 : 1]))
      for (const by of floatsOf(kernel, 'out'))
        for (const x of floatsOf(kernel, 'in'))
          try {
            const bound = bindInputs(kernel, { params, tensors: {}, seed: 3 })
            const inputs = smooth(kernel, referenceInputs(kernel, bound), 7)
            const [c] = checkGradients(kernel, inputs, by, [x], 5)
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
