/** Copies of the loops around an element: what they visit, by counting. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { spatialNest } from '../../src/analysis/dependence/full-coverage.ts'
import { add, type Expr, int, lt, variable } from '../../src/ir/expressions/expr.ts'
import { freeVars, substitute } from '../../src/ir/expressions/expr-tree.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { store, whenAll } from '../../src/ir/statements/statement-builders.ts'
import type { Body } from '../../src/ir/statements/tree.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { runs, scaled } from '../support/cases.ts'

const AROUND = 'around'
const copy = (name: string): string => `${name}_copy`
const value = (values: ReadonlyMap<string, number>, e: Expr): number => evaluate(e, values)

/** A loop in terms of those before it: its extent and the bound of its guard grow with another variable. */
interface Drawn {
  readonly reduce: boolean
  readonly used: boolean
  readonly extent: number
  readonly of: number | null
  readonly guard: { readonly a: number; readonly b: number; readonly below: number } | null
}
const drawn: fc.Arbitrary<Drawn> = fc.record({
  reduce: fc.boolean(),
  used: fc.boolean(),
  extent: fc.integer({ min: 1, max: 3 }),
  of: fc.option(fc.nat(9), { freq: 3 }),
  guard: fc.option(fc.record({ a: fc.nat(9), b: fc.nat(9), below: fc.integer({ min: 1, max: 5 }) }), {
    freq: 4,
  }),
})

/** A guard may speak of any variable that is bound where it stands. */
function loopsFrom(list: readonly Drawn[]): readonly For[] {
  const names = [AROUND, ...list.map((_, k) => `v${k}`)]
  return list.map((d, k): For => {
    const bound = names.slice(0, k + 2).map((n) => variable(n))
    const before = bound.slice(0, -1)
    const { guard: g } = d
    return {
      kind: 'for',
      var: names[k + 1]!,
      name: names[k + 1]!,
      nest: 'n',
      extent: d.of === null ? int(d.extent) : add(before[d.of % before.length]!, int(d.extent)),
      reduce: d.reduce,
      guards: g ? [lt(add(bound[g.a % bound.length]!, bound[g.b % bound.length]!), int(g.below))] : [],
      mode: { kind: 'serial' },
      body: [],
    }
  })
}

/** The elements that are stored, in order. */
function stored(body: Body, values: ReadonlyMap<string, number>): string[] {
  return body.flatMap((s): string[] => {
    switch (s.kind) {
      case 'for':
        return Array.from({ length: value(values, s.extent) }, (_, n) =>
          new Map(values).set(s.var, n),
        ).flatMap((inner) => (s.guards.every((g) => value(inner, g) !== 0) ? stored(s.body, inner) : []))
      case 'if':
        return stored(value(values, s.cond) !== 0 ? s.then : s.else, values)
      case 'store':
        return [s.index.map((e) => value(values, e)).join()]
      default:
        throw new Error(`${s.kind} in a nest of copies`)
    }
  })
}

const nested = (loops: readonly For[], core: Body): Body =>
  loops.reduceRight<Body>((body, l) => [{ ...l, body }], core)

test('every element that the loops reach is visited once, and none that a guard excludes', () => {
  let guarded = 0
  fc.assert(
    fc.property(fc.array(drawn, { minLength: 1, maxLength: 4 }), fc.nat(2), (list, around) => {
      const loops = loopsFrom(list)
      const index = loops.filter((l, k) => !l.reduce && list[k]!.used).map((l) => variable(l.var))
      const copied: string[] = []
      const made = spatialNest(
        loops,
        index,
        (base) => {
          copied.push(base)
          return copy(base)
        },
        (renamed) => [
          store(
            'x',
            // All copies, so that each visit is an element of its own.
            copied.map((n) => substitute(variable(n), renamed)),
            int(0),
          ),
        ],
      )
      const known = (e: Expr): boolean => [...freeVars(e)].every((v) => v === AROUND || copied.includes(v))
      const dependent = (names: readonly string[]): readonly string[] => {
        const more = loops.filter((l) => names.includes(l.var)).flatMap((l) => [...freeVars(l.extent)])
        const all = [...new Set([...names, ...more])].filter((v) => v !== AROUND)
        return all.length === names.length ? all : dependent(all)
      }
      const needed = dependent(index.flatMap((e) => [...freeVars(e)]))
      expect(made === undefined).toBe(loops.some((l) => l.reduce && needed.includes(l.var)))
      if (!made) return
      const at = new Map([[AROUND, around]])
      const visited = stored(whenAll(made.outside, made.nest), at)
      expect(new Set(visited).size).toBe(visited.length)
      const core = (): Body => [
        store(
          'x',
          copied.map((n) => variable(n)),
          int(0),
        ),
      ]
      for (const element of stored(nested(loops, core()), at)) expect(visited).toContain(element)
      const guards = loops.flatMap((l) => l.guards).filter(known)
      guarded += guards.length
      const plain = loops.filter((l) => copied.includes(l.var)).map((l): For => ({ ...l, guards: [] }))
      const last = plain.at(-1)
      const whole = last
        ? nested([...plain.slice(0, -1), { ...last, guards }], core())
        : whenAll(guards, core())
      expect(visited).toEqual(stored(whole, at))
    }),
    { numRuns: runs(400) },
  )
  expect(guarded).toBeGreaterThan(scaled(20))
})

test('the copy does not execute the instruction', () => {
  const [loop] = loopsFrom([{ reduce: false, used: true, extent: 2, of: null, guard: null }])
  const bound: For = { ...loop!, mode: { kind: 'instr', instr: {} as never } }
  const made = spatialNest([bound], [variable(bound.var)], copy, () => [])
  expect(made?.nest[0]).toMatchObject({ kind: 'for', var: copy(bound.var), mode: { kind: 'serial' } })
})
