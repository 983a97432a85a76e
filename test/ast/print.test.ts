import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { print, printExpr, printStep } from '../../src/ast/print/print.ts'
import { parseSteps } from '../../src/schedule/steps/language.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { expr, file, STEPS, step } from './arbitrary.ts'
import { bare, read } from './support.ts'

describe('print', () => {
  test('types of neighbouring declarations are in one column, and several parts in parentheses', () => {
    const text = `kernel k(m: size) {
  axis longest = dense_fixed(m)
  axis i       = dense_fixed(m)
}

schedule k.s choose by search {
  format F in (rows where (i > 0) + all), all
}
`
    expect(print(read(text))).toBe(text)
    expect(print(read(text.replace('i      ', 'i')))).toBe(text)
  })

  test('comments in a branch `else` that is an `if` stay there, and choices keep blank lines between them', () => {
    const text = `schedule k.s choose by search {
  format F in (a + b), (a where (i > 0)), a
}

schedule k.t choose {
  when (m > 3) a

  otherwise b
}

kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer y: f32[i] inout
  iterate f [i] as S {
    if (y[i] > 0) { y[i] = 1 } else { // opening
      if (y[i] < 0) { y[i] = 2 }
    }
    if (y[i] > 0) { y[i] = 1 } else {
      // before
      if (y[i] < 0) { y[i] = 2 }
    }
    if (y[i] > 0) { y[i] = 1 } else {
      if (y[i] < 0) { y[i] = 2 }
      // at the end
    }
  }
}
`
    const once = print(read(text))
    expect(once.replace(/\{\n +y\[i\] = 1\n +\}/g, '{ y[i] = 1 }')).toBe(text)
    expect(print(read(text.replace('choose {', 'choose {\n')))).toBe(once)
  })

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

  test('a body of one item is on one line, and short items of long lists share lines', () => {
    const names = Array.from({ length: 30 }, (_, k) => `name_${k}`)
    const text = `schedule f(${names.map((n) => `${n}: loop`).join(', ')}) {
      unroll name_1 }
      schedule k.s { // kept
      unroll i }
      schedule k.all choose by search { either { unroll i } or {} or {
      unroll i
      unroll j } either { unroll i } or {} }
      kernel k() { iterate a [i] as S { if (i > 1) { y[i] = 1 } } iterate b [i] as S { y[i] = 1 } }`
    expect(print(read(text))).toMatchInlineSnapshot(`
      "schedule f(
        name_0: loop, name_1: loop, name_2: loop, name_3: loop, name_4: loop, name_5: loop, name_6: loop, name_7: loop,
        name_8: loop, name_9: loop, name_10: loop, name_11: loop, name_12: loop, name_13: loop, name_14: loop,
        name_15: loop, name_16: loop, name_17: loop, name_18: loop, name_19: loop, name_20: loop, name_21: loop,
        name_22: loop, name_23: loop, name_24: loop, name_25: loop, name_26: loop, name_27: loop, name_28: loop,
        name_29: loop
      ) {
        unroll name_1
      }

      schedule k.s { // kept
        unroll i
      }

      schedule k.all choose by search {
        either {
          unroll i
        } or {} or {
          unroll i
          unroll j
        }
        either { unroll i } or {}
      }

      kernel k() {
        iterate a [i] as S { if (i > 1) { y[i] = 1 } }
        iterate b [i] as S { y[i] = 1 }
      }
      "
    `)
    expect(print(read(print(read(text))))).toBe(print(read(text)))
  })

  test('comments in bodies of one item are kept', () => {
    const nests: readonly (readonly [opening: readonly string[], item: string])[] = [
      [['schedule k.s {', 'each part of A as p {', 'each nest of C as n {'], 'unroll i'],
      [['schedule k.all choose by search {', 'either {} or {', 'each part of A as p {'], 'unroll i'],
      [['schedule k.auto choose {', 'otherwise fastest {'], 'rows(8)'],
      [['kernel k() {', 'iterate a [i] as S {', 'if (i > 1) {'], 'y[i] = 1'],
      [['format f over (i, j) {', 'partition i into 2 {', 'bucket i by length into 1 as w {'], 'part csr'],
    ]
    const comment = fc.constantFrom('', '', '// c\n', '/* c */')
    const comments = fc.array(fc.tuple(comment, comment), { minLength: 7, maxLength: 7 })
    fc.assert(
      fc.property(fc.constantFrom(...nests), comments, ([opening, item], places) => {
        const lines = [...opening, item, ...opening.map(() => '}')]
        const text = lines.map((x, k) => `${places[k]![0]}\n${x} ${places[k]![1]}`).join('\n')
        const printed = print(read(text))
        expect(bare(read(printed))).toEqual(bare(read(text)))
        expect(print(read(printed))).toBe(printed)
      }),
      { numRuns: runs(300) },
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
          select(a.m > b.m, a.s + b.s * exp(b.m - a.m), select(b.m == -inf, 0, b.s + a.s * exp(a.m - b.m)))
        )
      }

      kernel k(first_parameter: size, second_parameter: size, third_parameter: size, fourth: size) {
        axis i      = dense_fixed(first_parameter)
        axis longer = sparse_variable(i, second_parameter) unordered
        buffer A:      f32[i]          in
        buffer Longer: bf16[i, longer] out fill -1 accumulate f32
        iterate sum [i, j in longer] as SR {
          if (not -(-i) < 1 and (i + 1) * 2 == i - (j - 1)) {} else if (true) {
            Longer[i, j] += A[i] * first_value_with_a_long_name + A[j] * second_value_with_a_long_name + A[i]
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
