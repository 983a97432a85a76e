/** Of registers that always hold the same, one is left, and what is computed stays. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { add, type Expr, int, load, lt, max, mul, sub, variable } from '../../src/ir/expressions/expr.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { allocatedNames } from '../../src/ir/statements/bindings.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { alloc, define, forLoop, local, store, when } from '../../src/ir/statements/statement-builders.ts'
import type { Body } from '../../src/ir/statements/tree.ts'
import { mergeCongruentRegisters } from '../../src/lower/memory/congruent-registers.ts'
import { numbers, parameters } from '../properties/property-cases.ts'
import { scaled } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'

const held = (register: string): Expr => load(register, [int(0)], 'i32')
const put = (register: string, value: Expr): Stmt => store(register, [int(0)], value)
const made = (...registers: string[]): Stmt[] => registers.map((r) => alloc(local(r, 'i32')))
const out = (...values: Expr[]): Stmt[] => values.map((v, k) => store('C', [int(k)], v))
const merged = (body: Body): Body => mergeCongruentRegisters(body, new Names(['m', 'n', 'v', 'w', 'x']))

test('elements are scaled by the old value of their row', () => {
  const pair = (m: string, w: string, x: Expr): Stmt[] => [
    define(`${m}_next`, max(held(m), x)),
    put(w, add(mul(held(w), held(m)), x)),
    put(m, variable(`${m}_next`)),
  ]
  const begin = [...made('m', 'w', 'n', 'v'), ...['m', 'w', 'n', 'v'].map((r, k) => put(r, int(k % 3)))]
  const body = (x: Expr): Body => [
    ...begin.slice(0, 6),
    put('n', int(0)),
    put('v', int(7)),
    forLoop('k', variable('e'), [
      define('x', load('A', [variable('k')], 'i32')),
      ...pair('m', 'w', variable('x')),
      ...pair('n', 'v', x),
    ]),
    ...out(held('w'), held('v'), held('n')),
  ]
  expect(printBody(merged(body(variable('x'))))).toBe(`\
alloc m: i32[1] register
alloc w: i32[1] register
alloc v: i32[1] register
m[0] = 0
w[0] = 1
v[0] = 7
for k in 0..e
  let m_before = m[0]
  let x = A[k]
  let m_next = max(m[0], x)
  w[0] = w[0] * m[0] + x
  m[0] = m_next
  v[0] = v[0] * m_before + x
C[0] = w[0]
C[1] = v[0]
C[2] = m[0]`)
  // What memory holds is not the same a second time.
  const apart = body(load('A', [variable('k')], 'i32'))
  expect(merged(apart)).toBe(apart)
})

test('registers stay congruent if branches update both equally, otherwise not', () => {
  const x = load('A', [variable('k')], 'i32')
  const alike = (by: Expr): Stmt[] => ['m', 'n'].map((r) => put(r, add(held(r), by)))
  const body = (otherwise: Body): Body => [
    ...made('m', 'n'),
    ...['m', 'n'].map((r) => put(r, int(0))),
    forLoop('k', variable('e'), [when(lt(x, int(3)), alike(int(2)), otherwise)]),
    ...out(held('m'), held('n')),
  ]
  expect(allocatedNames(merged(body(alike(int(5)))))).toEqual(new Set(['m']))
  const [first] = alike(int(5))
  for (const apart of [body([first!]), body([...alike(int(5)), put('n', x)])])
    expect(merged(apart)).toBe(apart)
})

const PAIRS = [
  ['a', 'b'],
  ['c', 'd'],
]
const REGISTERS = PAIRS.flat()

/** Loops, branches and straight lines over few registers and few values, so that many are equal. */
class Bodies {
  readonly #c: Choices
  #loops = 0
  #lets = 0

  constructor(c: Choices) {
    this.#c = c
  }

  value(known: readonly string[], depth = 2): Expr {
    const c = this.#c
    if (depth === 0 || c.chance(40)) {
      const kind = c.below(5)
      if (kind === 0) return int(c.below(2))
      if (kind === 1 && known.length > 0) return variable(c.pick(known))
      return kind === 2 ? load('A', [int(c.below(2))], 'i32') : held(c.pick(REGISTERS))
    }
    return c.pick([add, sub, max])(this.value(known, depth - 1), this.value(known, depth - 1))
  }

  body(known: readonly string[], depth: number, length = this.#c.between(1, 5)): Stmt[] {
    const c = this.#c
    let names = known
    return Array.from({ length }, (): Stmt[] => {
      const kind = c.below(20)
      if (kind < 3 && depth > 0) {
        const name = `k${this.#loops++}`
        return [forLoop(name, int(c.below(4)), this.body([...names, name], depth - 1))]
      }
      if (kind < 6 && depth > 0) {
        const branches = [this.body(names, depth - 1), this.body(names, depth - 1)] as const
        return [when(lt(this.value(names), this.value(names)), ...branches)]
      }
      const value = this.value(names)
      if (kind < 8) {
        const name = `x${this.#lets++}`
        names = [...names, name]
        return [define(name, value)]
      }
      if (kind === 8) return [store('A', [int(c.below(2))], value)]
      // Two that change alike.
      if (kind < 17) {
        const by = c.pick([int(1), ...names.map((x) => variable(x))])
        const change = c.pick([add, sub, max])
        return c.pick(PAIRS).map((r) => put(r, change(held(r), by)))
      }
      return [put(c.pick(REGISTERS), value)]
    }).flat()
  }
}

type Memory = Map<string, number[]>

function evaluate(e: Expr, memory: Memory, names: ReadonlyMap<string, number>): number {
  if (e.kind === 'const') return e.value
  if (e.kind === 'var') return names.get(e.name)!
  if (e.kind === 'load') return memory.get(e.buffer)![evaluate(e.index[0]!, memory, names)]!
  if (e.kind !== 'binary') throw new Error(e.kind)
  const [a, b] = [evaluate(e.a, memory, names), evaluate(e.b, memory, names)]
  return e.op === 'lt'
    ? Number(a < b)
    : e.op === 'max'
      ? Math.max(a, b)
      : (e.op === 'add' ? a + b : a - b) | 0
}

function run(body: Body, memory: Memory, outside: ReadonlyMap<string, number> = new Map()): void {
  const names = new Map(outside)
  for (const s of body) {
    if (s.kind === 'alloc') memory.set(s.buffer.name, [0])
    else if (s.kind === 'let') names.set(s.name, evaluate(s.value, memory, names))
    else if (s.kind === 'store')
      memory.get(s.buffer)![evaluate(s.index[0]!, memory, names)] = evaluate(s.value, memory, names)
    else if (s.kind === 'if') run(evaluate(s.cond, memory, names) ? s.then : s.else, memory, names)
    else if (s.kind === 'for') {
      const extent = evaluate(s.extent, memory, names)
      for (let k = 0; k < extent; k++) run(s.body, memory, new Map([...names, [s.var, k]]))
    } else throw new Error(s.kind)
  }
}

let fewer = 0
afterAll(() => expect(fewer).toBeGreaterThan(scaled(3)))

test('results are unchanged', () => {
  fc.assert(
    fc.property(numbers, (n) => {
      const c = new Choices(n)
      const make = new Bodies(c)
      const begin = PAIRS.flatMap((pair) => [c.below(2)].flatMap((x) => pair.map((r) => put(r, int(x)))))
      const inner = make.body([], 3, 6)
      const body = [
        ...made(...REGISTERS),
        ...begin,
        ...inner,
        ...out(...REGISTERS.filter(() => c.chance(50)).map(held)),
      ]
      const after = merged(body)
      if (allocatedNames(after).size < REGISTERS.length) fewer++
      const memory = (): Memory =>
        new Map([
          ['A', [3, -1]],
          ['C', [0, 0, 0, 0]],
        ])
      const [before, now] = [memory(), memory()]
      run(body, before)
      run(after, now)
      expect([now.get('A'), now.get('C')], printBody(body)).toEqual([before.get('A'), before.get('C')])
    }),
    // One case in 150 merges registers.
    parameters(3000),
  )
})
