/** What a kernel computes does not depend on the formats of its tensors: Stage I, on parts that were split by hand. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../../src/ast/diagnostics/diagnostic.ts'
import { runs } from '../../support/cases.ts'
import { bothResults, pair } from './apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './formats.ts'
import { matrices, only } from './matrices.ts'

const RUNS = runs(3)

const made = (text: string, use: string) => {
  try {
    return pair(FORMATS + text, `A as ${use}`)
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
}

describe.each(Object.entries(KERNELS))('%s', (name, text) => {
  test.each(USES)('%s', (use) => {
    const both = made(text, use)
    const refusal = REFUSED[name]?.get(use)
    if (typeof both === 'string' || refusal) {
      expect(both).toBe(refusal)
      return
    }
    const buffers = both.source.buffers.map((b) => b.name)
    fc.assert(
      fc.property(matrices, (data) => {
        const { got, wanted } = bothResults(both.source, both.kernel, only(data, buffers))
        expect(got).toEqual(wanted)
      }),
      { numRuns: RUNS },
    )
  })
})
