/** Steps over several nests: equal to the steps written out, in text and in TypeScript. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { resultOrError, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Syntax, ValueSyntax } from '../../src/ast/nodes/step-syntax.ts'
import { THREAD_AXES } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { STEP_SYNTAX } from '../../src/schedule/steps/language.ts'
import { runs } from '../support/cases.ts'

const NESTS = ['first', 'second', 'third'] as const
const BUFFERS = ['A', 'B', 'C'] as const
const KERNEL = `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer X: f32[i, j] in
  buffer A: f32[i] out
  buffer B: f32[i] out
  buffer C: f32[i] out
${NESTS.map((nest, k) => `  iterate ${nest} [i, j] as SR { ${BUFFERS[k]}[i] += X[i, j] * ${k + 1} }`).join('\n')}
}`

/** The text of an argument: in a step over all nests, and in the step of each nest. */
interface Texts {
  readonly together: string
  readonly each: readonly string[]
}
type Pick = <T>(xs: readonly T[]) => T

const same = (text: string): Texts => ({ together: text, each: NESTS.map(() => text) })
const perNest = (text: (nest: string, k: number) => string, together: string): Texts => ({
  together,
  each: NESTS.map(text),
})
const joined = (parts: readonly Texts[], separator: string): Texts => ({
  together: parts.map((p) => p.together).join(separator),
  each: NESTS.map((_, k) => parts.map((p) => p.each[k]).join(separator)),
})

/** Draws a step over the three nests; null for steps that have no text or act on a single nest. */
function drawnStep(word: string, pick: Pick): Texts | null {
  const loops = ['io', 'ii', 'jo', 'ji']
  const loopOf = (name: string): Texts =>
    perNest((nest) => `${nest}.${name}`, `(${NESTS.join(', ')}).${name}`)
  const value = (v: ValueSyntax): Texts => {
    switch (v.kind) {
      case 'loop':
        return loopOf(pick(loops))
      case 'name':
        if (v.of === 'buffer')
          return pick([same('X'), perNest((_, k) => BUFFERS[k]!, `(${BUFFERS.join(', ')})`)])
        if (v.of === 'nest') return perNest((nest) => nest, `(${NESTS.join(', ')})`)
        if (v.of === 'new loop') return pick([same('t'), perNest((_, k) => `t${k}`, '(t0, t1, t2)')])
        return pick([perNest((_, k) => `P${k}`, '(P0, P1, P2)'), same('P')])
      case 'integer':
        return same(pick(['1', '2', '4']))
      case 'binding':
        return joined([loopOf(pick(loops)), same(` to ${pick(THREAD_AXES)}`)], '')
      case 'word':
        return same(v.text)
      case 'instance':
        return same(pick(['register', 'shared']))
      case 'place':
        return same('1')
      case 'list': {
        const length = typeof v.count === 'number' ? v.count : (v.count?.times ?? 1) * 2
        if (v.of.kind === 'loop' && v.parentheses) {
          const names = Array.from({ length: 2 }, () => pick(loops))
          return perNest(
            (nest) => `(${names.map((l) => `${nest}.${l}`).join(', ')})`,
            `(${NESTS.join(', ')}).(${names.join(', ')})`,
          )
        }
        if (v.of.kind === 'name' && v.of.of === 'new loop') {
          const names =
            length === 2
              ? pick([
                  ['a', 'b'],
                  ['c', 'd'],
                ])
              : ['a', 'c', 'b', 'd']
          return same(`(${names.join(', ')})`)
        }
        if (v.of.kind === 'integer') return same('(2, 2)')
        return joined(
          Array.from({ length }, () => value(v.of)),
          ', ',
        )
      }
      case 'data':
        throw new Error('data have no text')
    }
  }
  const texts = (s: Syntax): readonly Texts[] => {
    if (typeof s === 'string') return [same(s)]
    if ('optional' in s) return pick([true, false]) ? s.optional.flatMap(texts) : []
    return [value(s.value)]
  }
  const form = pick(STEP_SYNTAX[word]!.forms)
  const parts = form.flatMap(texts)
  const made = joined([same(word), ...parts], ' ')
  return made.together === made.each[0] ? null : made
}

/** Words without the name of a size or an instruction, and without a list of nests, which acts on all of them. */
const WORDS = Object.values(STEP_SYNTAX).flatMap(({ word }) =>
  ['require', 'tensorize', 'merge', 'join', 'attach', 'mask', 'drop'].includes(word) ? [] : [word],
)

interface Outcome {
  readonly trace: readonly string[]
  readonly loops: string
  /** The error without its place, and the text at its place. */
  readonly error: string | null
  readonly place: string | null
}

/** The result of steps; errors of the syntax are thrown. */
function outcomeOf(steps: readonly string[]): Outcome {
  const text = `${KERNEL}\nschedule k.s {\n${steps.join('\n')}\n}`
  const k = parseProgram(text).kernel('k')
  let now = k
  for (const step of k.steps('s')) {
    const next = resultOrError(() => now.apply([step]))
    if (next instanceof SptError) {
      const [{ code, message, expected, hint, span }] = next.diagnostics as [SptError['diagnostics'][number]]
      const error = JSON.stringify([code, message, expected, hint])
      return { ...stateOf(now), error, place: span ? text.slice(span.start, span.end) : null }
    }
    now = next
  }
  return { ...stateOf(now), error: null, place: null }
}
const stateOf = (k: Kernel) => ({
  trace: k.trace,
  loops: print2(k.compilation.loops),
})

const drawn = fc.array(fc.array(fc.nat({ max: 999 }), { minLength: 30, maxLength: 30 }), {
  minLength: 1,
  maxLength: 5,
})
/** Steps that give each nest four loops. */
const SPLIT = [
  ['i', 4],
  ['j', 2],
].map(([loop, by]) =>
  perNest((nest) => `split ${nest}.${loop} by ${by}`, `split (${NESTS.join(', ')}).${loop} by ${by}`),
)
const stepFor = (numbers: readonly number[]): Texts | null => {
  let at = 0
  const pick: Pick = (xs) => xs[numbers[at++ % numbers.length]! % xs.length]!
  return drawnStep(pick(WORDS), pick)
}

describe('a step over several nests', () => {
  test('equals the steps written out, also in its errors', () => {
    const legal = new Set<string>()
    const runCount = runs(40)
    let steps = 0
    fc.assert(
      fc.property(drawn, (choices) => {
        // Illegal steps are dropped, so that later ones are reached; the last may be illegal.
        let known: Texts[] = [...SPLIT]
        for (const numbers of choices) {
          const step = stepFor(numbers)
          if (!step) continue
          steps++
          const together = outcomeOf([...known.map((s) => s.together), step.together])
          const apart = outcomeOf([...known.flatMap((s) => s.each), ...step.each])
          expect({ ...together, place: null }).toEqual({ ...apart, place: null })
          if (together.error !== null) {
            const failed = step.each.indexOf(apart.place ?? '')
            if (failed >= 0)
              expect([NESTS[failed], BUFFERS[failed], `P${failed}`, `t${failed}`]).toContain(together.place)
          } else {
            known = [...known, step]
            legal.add(step.each[0]!.split(' ')[0]!)
          }
        }
      }),
      { numRuns: runCount },
    )
    expect(steps).toBeGreaterThan(runCount)
    expect(legal.size).toBeGreaterThan(2)
  })

  test('points at the nest that fails', () => {
    const { error, place } = outcomeOf([
      'split second.i by 2 -> (io, ii)',
      'unroll (first, second, third).i by 2',
    ])
    expect(error).toContain('schedule/consumed-loop')
    expect(place).toBe('second')
  })

  test('is possible in blocks', () => {
    const together = outcomeOf(['each nest of A as p { unroll (p.rows, p.reductions) by 2 }'])
    expect(together.error).toBeNull()
    expect(together).toEqual(
      outcomeOf(['each nest of A as p { unroll p.rows by 2; unroll p.reductions by 2 }']),
    )
  })

  test('binds the loops outside of groups once', () => {
    expect(
      outcomeOf(['bind first.i to block.x, (first, second).j to thread.x, second.i to block.x']).error,
    ).toContain('schedule/')
    const split = 'split (first, second).i by 4 -> (io, ii)'
    expect(
      outcomeOf([split, 'bind first.io to block.x, (first, second).ii to thread.x, second.io to block.x']),
    ).toEqual(
      outcomeOf([
        split,
        'bind first.io to block.x, first.ii to thread.x, second.io to block.x',
        'bind second.ii to thread.x',
      ]),
    )
  })

  test('has groups of one length', () => {
    expect(() => outcomeOf(['cache_write (A, B, C) at (first, second).i in register'])).toThrow(
      /3 names, but 2 names/,
    )
  })

  test('has the same form in TypeScript', () => {
    const k = parseProgram(KERNEL).kernel('k')
    const made = k
      .split('(first, second).i', 4, ['io', 'ii'])
      .cacheWrite('(A, B)', '(first, second).ii', 'register', '(P, Q)')
      .bind({ '(first, second).io': 'block.x' })
    const { trace } = outcomeOf([
      'split (first, second).i by 4 -> (io, ii)',
      'cache_write (A, B) at (first, second).ii in register -> (P, Q)',
      'bind (first, second).io to block.x',
    ])
    expect(made.trace).toEqual(trace)
    expect(() => k.split('(first, second).i', 4, ['(a, b, c)', 'ii'])).toThrow(/different lengths/)
  })
})
