/** The rewriter of specialisation: whatever a finder finds, results are equal, names stay unique, and the code grows within limits. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unrolledSize } from '../../src/analysis/loops/segmented-loops.ts'
import { interpret } from '../../src/interpret/stage2.ts'
import { MAX_UNROLLED } from '../../src/ir/code-size-budgets.ts'
import { namesOf } from '../../src/ir/expressions/bound-names.ts'
import { add, binary, type Expr, lt, mod, mul } from '../../src/ir/expressions/expr.ts'
import { boundBy, loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { alloc, when } from '../../src/ir/statements/statement-builders.ts'
import { type Body, stmtsOf, walkStmts } from '../../src/ir/statements/tree.ts'
import { atLoops, type Finder, specialise } from '../../src/lower/specialise/specialise.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { at, buffer, expr, kernel2, loop, reduce } from '../support/stage2-builders.ts'

const ELEMENTS = 8

/** Conditions over sizes and loops, of which some imply others or are equal to others. */
function condition(c: Choices, vars: readonly string[]): Expr {
  const sum = c.pick([expr(c.pick(['n', 'm', ...vars])), add(expr(c.pick(['n', ...vars])), expr(c.below(3)))])
  return c.pick([
    () => lt(sum, expr(c.pick(['n', 'm']))),
    () => lt(expr(0), sum),
    () => binary('eq', mod(expr('n'), expr(2)), expr(0)),
    () => binary('and', lt(expr(1), sum), lt(sum, expr('m'))),
  ])()
}

/** Nested loops with guards and branches around updates `y[…] += number`. */
function statements(c: Choices, vars: readonly string[], depth: number, count: { n: number }): Body {
  return Array.from({ length: c.between(1, 2) }, (): Stmt => {
    const kind = depth === 0 ? 0 : c.pick([0, 1, 2, 2])
    if (kind === 0) {
      const index = vars.reduce<Expr>((sum, v, k) => add(sum, mul(expr(v), expr(k + 1))), expr(0))
      return reduce(at('y', [mod(index, expr(ELEMENTS))]), '+', 3 ** (count.n++ % 9), {})
    }
    if (kind === 1)
      return when(
        condition(c, vars),
        statements(c, vars, depth - 1, count),
        c.chance(50) ? statements(c, vars, depth - 1, count) : [],
      )
    const name = `v${count.n++}`
    const inside = [...vars, name]
    return loop(name, c.pick<string | number>(['n', 'm', 2, 3]), statements(c, inside, depth - 1, count), {
      guards: c.chance(50) ? [condition(c, inside)] : [],
    })
  })
}

const kernelOf = (body: Body): Kernel2 => kernel2('k', ['n', 'm'], [buffer('y', [ELEMENTS], 'inout')], body)

/** The values of y after a run. */
function results(body: Body, n: number, m: number): readonly number[] {
  const y = new Array<number>(ELEMENTS).fill(0)
  interpret(kernelOf(body), new Map([['y', y]]), new Map(Object.entries({ n, m })))
  return y
}

function boundNames(body: Body): readonly string[] {
  const out: string[] = []
  walkStmts(body, (s) => void out.push(...boundBy(s)))
  return out
}

test('versions under any condition, and loops split at any end, change no result', () => {
  let [versions, splits] = [0, 0]
  fc.assert(
    fc.property(choiceNumbers(200), fc.nat(4), fc.nat(4), fc.boolean(), (numbers, n, m, innermost) => {
      const c = new Choices(numbers)
      const body = statements(c, [], 3, { n: 0 })
      const find: Finder = (list, { path }) => {
        const from = c.below(list.length)
        const s = list[from]!
        if (s.kind === 'for' && s.guards.length === 0 && s.extent.kind === 'const' && c.chance(60)) {
          if (innermost) return undefined
          splits++
          const end = expr(s.extent.value - 1)
          return { from, to: from + 1, end, holds: [lt(expr(s.var), end)], last: s.body }
        }
        if (!c.chance(60)) return undefined
        versions++
        const range = list.slice(from, c.between(from + 1, list.length))
        const [inside] = boundNames(range).length === 0 ? stmtsOf(range, 'if') : []
        const vars = path.map((l) => l.var)
        return { from, to: from + range.length, when: inside?.cond ?? condition(c, vars) }
      }
      const kernel = kernelOf(body)
      const out = specialise(body, find, {
        names: namesOf(kernel),
        ...(innermost ? { innermost: true } : {}),
      })
      expect(results(out, n, m)).toEqual(results(body, n, m))
      const names = boundNames(out)
      expect(new Set(names).size).toBe(names.length)
    }),
    { numRuns: runs(600) },
  )
  expect(Math.min(versions, splits)).toBeGreaterThan(3)
})

const filled = (count: number, buffers: Body = []): Body => [
  loop('t', 'n', [...buffers, ...Array.from({ length: count }, () => reduce(at('y', [0]), '+', 1, {}))]),
]
const everyLoop = atLoops((l) => (l.var === 't' ? { when: lt(expr('m'), expr('n')) } : undefined))
const versioned = (body: Body): Body => specialise(body, everyLoop, { names: namesOf(kernelOf(body)) })

test('long statements, and statements that allocate shared memory, have one version', () => {
  expect(stmtsOf(versioned(filled(1000)), 'if')).toHaveLength(1)
  const long = filled(1030)
  expect(versioned(long)).toBe(long)
  const shared = filled(1, [alloc(buffer('T', [4], 'local', { scope: 'shared' }))])
  expect(versioned(shared)).toBe(shared)
})

test('all copies together stay within the limit of a nest', () => {
  const body = Array.from({ length: 12 }, () => filled(600)[0]!)
  const out = versioned(body)
  expect(unrolledSize(out)).toBeLessThanOrEqual(MAX_UNROLLED + 12)
  expect(loopsOf(out).length).toBe(13)
})

test('loops that do not run where the condition fails disappear there', () => {
  const body = [loop('t', 'n', [reduce(at('y', [0]), '+', 1, {})]), reduce(at('y', [1]), '+', 1, {})]
  const find: Finder = (list, { path }) =>
    path.length === 0 && list.length === 2 ? { from: 0, to: 2, when: lt(expr(0), expr('n')) } : undefined
  const [version] = stmtsOf(specialise(body, find, { names: namesOf(kernelOf(body)) }), 'if')
  expect(version!.then.map((s) => s.kind)).toEqual(['for', 'reduce'])
  expect(version!.else.map((s) => s.kind)).toEqual(['reduce'])
})
