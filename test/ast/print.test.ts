import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { print, printExpr, printStep } from '../../src/ast/print/print.ts'
import { parseSteps } from '../../src/schedule/steps/language.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { expr, file, STEPS, step } from './arbitrary.ts'
import { bare, read } from './support.ts'

describe('print', () => {
  test('parse(print(file)) = file, comments included', () => {
    fc.assert(
      fc.property(file, (f) => {
        expect(bare(read(print(f)))).toEqual(bare(f))
      }),
      { numRuns: runs(120) },
    )
  })

  test('a step and an expression fit on one line and read back', () => {
    fc.assert(
      fc.property(step, expr, (s, e) => {
        const text = `schedule k.s {\n${printStep(s)}\nsplit i by ${printExpr(e)}\n}`
        expect(text.split('\n').length).toBe(4)
        const [first, second] = read(text).decls.flatMap((d) => (d.kind === 'schedule' ? d.steps : []))
        expect(bare(first)).toEqual(bare(s))
        expect(second).toMatchObject({ kind: 'step', word: 'split' })
        const by = second!.kind === 'step' ? second!.args[2] : undefined
        expect(bare(by)).toEqual({ field: 'by', value: bare({ kind: 'integer', value: e, operand: false }) })
      }),
      { numRuns: runs(300) },
    )
  })

  test('a list of steps reads back without its schedule', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 5 }), (steps) => {
        const text = steps.map(printStep).join('\n')
        expect(bare(parseSteps({ name: 'trace', text }))).toEqual(bare(steps))
      }),
    )
  })

  test('attributes of an operand are accepted in any order, once each', () => {
    const all = ['packed 2', 'aligned 2 * 2', 'ascending 2', 'mapped swizzle 32', 'fenced']
    const text = (options: readonly string[]): string =>
      `instr q(T: i32[4, 4] in tiles(8) or global ${options.join(' ')}, S: f32[2] in shared) { js \`;\` }`
    fc.assert(
      fc.property(fc.shuffledSubarray(all), fc.nat(), (options, k) => {
        const inOrder = text(all.filter((o) => options.includes(o)))
        expect(bare(read(text(options)))).toEqual(bare(read(inOrder)))
        expect(print(read(text(options)))).toBe(print(read(inOrder)))
        if (options.length === 0) return
        const twice = options[k % options.length]!
        expect(refusal(() => read(text([...options, twice])))).toMatchObject({
          code: 'parse/duplicate',
          message: `\`${twice.split(' ')[0]}\` is given twice`,
        })
      }),
      { numRuns: runs(40) },
    )
  })

  test('long lines are broken where they can be', () => {
    const text = `monoid lse(m: f32, s: f32) { identity (-inf, 0) combine (a, b) = (max(a.m, b.m),
      select(a.m > b.m, a.s + b.s * exp(b.m - a.m), select(b.m == -inf, 0, b.s + a.s * exp(a.m - b.m)))) }
      kernel k(first_parameter: size, second_parameter: size, third_parameter: size, fourth: size) {
      axis i = dense_fixed(first_parameter) axis longer = sparse_variable(i, second_parameter) unordered
      buffer A: f32[i] in buffer Longer: bf16[i, longer] out fill -1 accumulate f32
      iterate sum [i, j in longer] as SR { if (not(-(-i) < 1) and (i + 1) * 2 == i - (j - 1)) {} else { if (true) {
      Longer[i,j] += A[i] * first_value_with_a_long_name + A[j] * second_value_with_a_long_name + A[i] } } } }`
    expect(print(read(text))).toMatchInlineSnapshot(`
      "monoid lse(m: f32, s: f32) {
        identity (-inf, 0)
        combine (a, b) = (
          max(a.m, b.m),
          select(
            a.m > b.m,
            a.s + b.s * exp(b.m - a.m),
            select(b.m == -inf, 0, b.s + a.s * exp(a.m - b.m))
          )
        )
      }

      kernel k(first_parameter: size, second_parameter: size, third_parameter: size, fourth: size) {
        axis i      = dense_fixed(first_parameter)
        axis longer = sparse_variable(i, second_parameter) unordered
        buffer A:      f32[i]          in
        buffer Longer: bf16[i, longer] out fill -1 accumulate f32
        iterate sum [i, j in longer] as SR {
          if (not -(-i) < 1 and (i + 1) * 2 == i - (j - 1)) {} else if (true) {
            Longer[i, j] += A[i] * first_value_with_a_long_name
              + A[j] * second_value_with_a_long_name
              + A[i]
          }
        }
      }
      "
    `)
  })

  test.each([...STEPS.keys(), 'each'])('%s is generated', (kind) => {
    const seen = fc
      .sample(step, { numRuns: 600, seed: 1 })
      .map((s) => (s.kind === 'step' ? s.word : (s.kind as string)))
    expect(seen).toContain(kind)
  })
})
