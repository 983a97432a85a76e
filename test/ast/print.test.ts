import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { print, printExpr, printStep } from '../../src/ast/print.ts'
import { expr, file, STEPS, step } from './arbitrary.ts'
import { bare, read } from './support.ts'

describe('print', () => {
  test('parse(print(file)) = file, comments included', () => {
    fc.assert(
      fc.property(file, (f) => {
        expect(bare(read(print(f)))).toEqual(bare(f))
      }),
      { numRuns: 400 },
    )
  })

  test('a step and an expression fit on one line and read back', () => {
    fc.assert(
      fc.property(step, expr, (s, e) => {
        const text = `schedule k.s {\n${printStep(s)}\nsplit i by ${printExpr(e)}\n}`
        expect(text.split('\n').length).toBe(4)
        const [first, second] = read(text).decls.flatMap((d) => (d.kind === 'schedule' ? d.steps : []))
        expect(bare(first)).toEqual(bare(s))
        expect(second!.kind === 'split' && bare(second.by)).toEqual(bare(e))
      }),
      { numRuns: 300 },
    )
  })

  test.each(Object.keys(STEPS))('%s is generated', (kind) => {
    const seen = fc.sample(step, { numRuns: 400, seed: 1 }).map((s) => s.kind as string)
    expect(seen).toContain(kind)
  })
})
