/** Random Stage II kernels with integer data, and running them. */
import fc from 'fast-check'
import { interpret, type Order } from '../../src/interpret/stage2.ts'
import { interpretPlan } from '../../src/interpret/stage3.ts'
import type { Expr, Load } from '../../src/ir/expressions/expr.ts'
import { add, constant, div, lt, max, mul, sub, variable } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Buffer, For, Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { builtinMonoid, type Monoid } from '../../src/ir/values/monoid.ts'
import { lowerToMemory } from '../../src/lower/pipeline.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from './stage2-builders.ts'

export interface Data {
  readonly params: ReadonlyMap<string, number>
  readonly arrays: ReadonlyMap<string, number[]>
}

export interface Sample {
  readonly kernel: Kernel2
  readonly data: Data
}

export const POISON = -7777

/** Runs on copies; the contents of everything that leaves the kernel. */
export function run(kernel: Kernel2, data: Data, order: Order = 'forward'): Record<string, number[]> {
  const arrays = new Map([...data.arrays].map(([name, cells]) => [name, [...cells]]))
  interpret(kernel, arrays, data.params, order)
  const out: Record<string, number[]> = {}
  for (const b of kernel.buffers)
    if (b.role === 'out' || b.role === 'inout') out[b.name] = arrays.get(b.name)!
  return out
}

/** The same through Stage III, where accesses are checked for races. */
export function runPlan(kernel: Kernel2, data: Data): Record<string, number[]> {
  const plan = lowerToMemory(kernel)
  verify3(plan)
  const arrays = new Map([...data.arrays].map(([name, cells]) => [name, [...cells]]))
  for (const b of kernel.buffers) if (b.role === 'local') arrays.delete(b.name)
  interpretPlan(plan, arrays, data.params)
  const out: Record<string, number[]> = {}
  for (const b of kernel.buffers)
    if (b.role === 'out' || b.role === 'inout') out[b.name] = arrays.get(b.name)!
  return out
}

/** Sizes and a compressed matrix. `d` is a constant in the kernel, or a size. */
interface Shape {
  readonly m: number
  readonly n: number
  readonly d: number
  readonly symbolic: boolean
  readonly lengths: readonly number[]
  readonly columns: readonly number[]
}

const shapes: fc.Arbitrary<Shape> = fc
  .record({
    m: fc.integer({ min: 0, max: 5 }),
    n: fc.integer({ min: 1, max: 4 }),
    d: fc.integer({ min: 1, max: 6 }),
    symbolic: fc.boolean(),
  })
  .chain((s) =>
    fc.array(fc.integer({ min: 0, max: 5 }), { minLength: s.m, maxLength: s.m }).chain((lengths) => {
      const count = lengths.reduce((a, b) => a + b, 0)
      return fc
        .array(fc.integer({ min: 0, max: s.n - 1 }), { minLength: count, maxLength: count })
        .map((columns) => ({ ...s, lengths, columns }))
    }),
  )

const LENGTH = (i: Expr): Expr =>
  sub(at('j_indptr', [add(i, expr(1))], 'index'), at('j_indptr', [i], 'index'))
const position = (i: Expr, j: Expr): Expr => add(at('j_indptr', [i], 'index'), j)
const column = (i: Expr, j: Expr): Expr => at('j_indices', [position(i, j)], 'index')

/** (sum, maximum), combined together. */
export const pair: Monoid = (() => {
  const [a, b] = [builtinMonoid('+', 'f32'), builtinMonoid('max', 'f32')]
  const v = (n: string) => variable(n, 'f32')
  return {
    name: 'pair',
    fields: [
      { name: 's', dtype: 'f32' },
      { name: 'm', dtype: 'f32' },
    ],
    identity: [a.identity[0]!, b.identity[0]!],
    left: [v('a_s'), v('a_m')],
    right: [v('b_s'), v('b_m')],
    result: [add(v('a_s'), v('b_s')), max(v('a_m'), v('b_m'))],
  }
})()

/** A deterministic source of choices, so that one seed is one kernel. */
class Dice {
  #state: number
  constructor(seed: number) {
    this.#state = seed >>> 0
  }
  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * n)
  }
  pick<T>(xs: readonly T[]): T {
    return xs[this.below(xs.length)]!
  }
  chance(percent: number): boolean {
    return this.below(100) < percent
  }
}

class Builder {
  readonly #dice: Dice
  readonly #d: Expr
  #count = 0

  constructor(dice: Dice, d: Expr) {
    this.#dice = dice
    this.#d = d
  }

  loop(name: string, extent: Expr, nest: string, more: Partial<For> = {}): (body: readonly Stmt[]) => For {
    const v = this.#count++ === 0 ? name : `${name}_${this.#count}`
    return (body) => loop(name, extent, body, { ...more, var: v, nest })
  }

  /** A product of a few loads whose indices are in range of the loops given. */
  value(vars: { i?: Expr; j?: Expr; f?: Expr; k?: Expr }): Expr {
    const { i, j, f, k } = vars
    const loads: Expr[] = []
    const feature = f ?? k
    if (i) loads.push(at('X', [i, feature ?? expr(0)]))
    if (i && j) loads.push(at('A', [position(i, j)]), at('B', [column(i, j), feature ?? expr(0)]))
    if (i && j) loads.push(at('V', [column(i, j)]))
    if (f) loads.push(at('W', [k ?? expr(0), f]))
    if (k) loads.push(at('W', [k, expr(0)]))
    let out: Expr = loads[0] ? this.#dice.pick(loads) : constant(2, 'f32')
    for (let n = this.#dice.below(3); n > 0 && loads.length > 0; n--) {
      const next = this.#dice.pick(loads)
      out = this.#dice.chance(50) ? mul(out, next) : add(out, next)
    }
    return out
  }

  /** `out[i, f] op= value` over some of the loops i, j, f, k in any admissible order. */
  reduction(out: string, nest: string): Stmt {
    const dice = this.#dice
    const useF = dice.chance(70)
    const useJ = dice.chance(70)
    const useK = dice.chance(40) || !useJ
    const names = ['i', ...(useF ? ['f'] : []), ...(useJ ? ['j'] : []), ...(useK ? ['k'] : [])]
    const order: string[] = []
    const rest = [...names]
    while (rest.length > 0) {
      const next = dice.pick(rest.filter((x) => x !== 'j' || order.includes('i')))
      order.push(next)
      rest.splice(rest.indexOf(next), 1)
    }
    const vars: Record<string, string> = {}
    const makers = order.map((name) => {
      const i = vars.i === undefined ? undefined : variable(vars.i)
      const extent = name === 'i' ? expr('m') : name === 'j' ? LENGTH(i!) : this.#d
      const guards: Expr[] = []
      const make = this.loop(name, extent, nest, { reduce: name === 'j' || name === 'k' })
      const v = make([]).var
      vars[name] = v
      if (name === 'k' && dice.chance(25)) guards.push(lt(variable(v), expr(3)))
      return (body: readonly Stmt[]): For => ({ ...make(body), guards })
    })
    const bound = (n: string): Expr | undefined => (vars[n] === undefined ? undefined : variable(vars[n]))
    const value = this.value({
      ...(bound('i') ? { i: bound('i')! } : {}),
      ...(bound('j') ? { j: bound('j')! } : {}),
      ...(bound('f') ? { f: bound('f')! } : {}),
      ...(bound('k') ? { k: bound('k')! } : {}),
    })
    const index = [bound('i')!, bound('f') ?? expr(0)]
    const target = at(out, index)
    const inner: Stmt =
      out === 'P'
        ? {
            kind: 'reduce',
            reducer: pair,
            targets: [at('P', index), at('Q', index)],
            values: [value, this.value({ i: bound('i')! })],
            init: true,
            atomic: false,
          }
        : reduce(target, dice.pick(['+', 'max', 'min']), value)
    const core = dice.chance(15) ? when(lt(variable(vars[order.at(-1)!]!), expr(2)), [inner]) : inner
    return makers.reduceRight<Stmt>((body, make) => make([body]), core)
  }

  /** Stores into the local `T` (dense) or `S` (by position), then a nest that reads it. */
  twoNests(): Stmt[] {
    const dice = this.#dice
    const sparse = dice.chance(50)
    const reads = (i: Expr, x: Expr): Load => (sparse ? at('S', [position(i, x)]) : at('T', [i, x]))
    const outer = this.loop('i', expr('m'), 'produce')
    const i = variable(outer([]).var)
    const inner = this.loop('k', sparse ? LENGTH(i) : this.#d, 'produce')
    const k = variable(inner([]).var)
    const value = sparse ? this.value({ i, j: k }) : this.value({ i, f: k })
    const produce =
      dice.chance(30) && !sparse
        ? (() => {
            const r = this.loop('r', this.#d, 'produce', { reduce: true })
            return r([reduce(reads(i, k), '+', this.value({ i, f: k, k: variable(r([]).var) }))])
          })()
        : store(reads(i, k), value)
    const outer2 = this.loop('i', expr('m'), 'consume')
    const i2 = variable(outer2([]).var)
    const inner2 = this.loop('k', sparse ? LENGTH(i2) : this.#d, 'consume', { reduce: true })
    const k2 = variable(inner2([]).var)
    const last = this.loop('f', this.#d, 'consume')
    const f = variable(last([]).var)
    const consume = dice.chance(50)
      ? inner2([last([reduce(at('D', [i2, f]), '+', mul(reads(i2, k2), this.value({ i: i2, f })))])])
      : inner2([reduce(at('D', [i2, expr(0)]), 'max', reads(i2, k2))])
    if (dice.chance(50)) return [outer([inner([produce])]), outer2([consume])]
    // The same in one loop over the rows.
    const joined = outer([inner([produce]), ...rename([consume], i2, i)])
    return [joined]
  }

  /** `Y[rows[r], f] op= …` over a list of rows that may repeat, by entries or over all elements of them at once. */
  listed(fused: boolean): Stmt[] {
    const dice = this.#dice
    const op = dice.pick(['+', 'max'] as const)
    const r = this.loop('r', fused ? mul(expr('r_count'), expr(2)) : expr('r_count'), 'listed', {
      reduce: true,
    })
    const entry = variable(r([]).var)
    const inner = this.loop('c', expr(2), 'listed', { reduce: true })
    const at_ = fused ? entry : add(mul(entry, expr(2)), variable(inner([]).var))
    const feature = this.loop('f', this.#d, 'listed')
    const f = variable(feature([]).var)
    const row = at('r_indices', [fused ? div(entry, expr(2)) : entry], 'index')
    const core = reduce(at('Y', [row, f]), op, mul(at('R', [at_]), at('W', [expr(0), f])), { init: false })
    const body = fused
      ? r([feature([core])])
      : dice.chance(50)
        ? r([inner([feature([core])])])
        : r([feature([inner([core])])])
    const identity = constant(op === '+' ? 0 : Number.NEGATIVE_INFINITY, 'f32')
    const fill: Stmt = { kind: 'fill', buffer: 'Y', value: identity }
    if (dice.chance(40)) return [fill, body]
    // A second nest with every row once.
    const i = this.loop('i', expr('m'), 'rows')
    const row2 = variable(i([]).var)
    const g = this.loop('f', this.#d, 'rows')
    const col = variable(g([]).var)
    const second = i([g([reduce(at('Y', [row2, col]), op, at('X', [row2, col]), { init: false })])])
    return dice.chance(50) ? [fill, body, second] : [fill, second, body]
  }
}

function rename(body: readonly Stmt[], from: Expr, to: Expr): readonly Stmt[] {
  const text = JSON.stringify(body)
  const [a, b] = [from, to].map((e) => (e.kind === 'var' ? e.name : ''))
  return JSON.parse(text.replaceAll(`"${a}"`, `"${b}"`)) as readonly Stmt[]
}

const OUTS = ['C', 'P', 'Q', 'D', 'Y']

function build(s: Shape, seed: number): Sample {
  const dice = new Dice(seed)
  const d = s.symbolic ? variable('d') : expr(s.d)
  const b = new Builder(dice, d)
  const body: Stmt[] = []
  const parts = dice.pick([['C'], ['P'], ['two'], ['C', 'two'], ['two', 'P'], ['list'], ['list', 'C']])
  const fused = dice.chance(40)
  for (const p of parts)
    body.push(
      ...(p === 'two' ? b.twoNests() : p === 'list' ? b.listed(fused) : [b.reduction(p, `nest_${p}`)]),
    )
  const buffers: Buffer[] = [
    buffer('j_indptr', [add(expr('m'), expr(1))], 'index', { positions: expr('j_count') }),
    buffer('j_indices', ['j_count'], 'index'),
    buffer('A', ['j_count'], 'in'),
    buffer('r_indices', ['r_count'], 'index'),
    buffer('R', [mul(expr('r_count'), expr(2))], 'in'),
    buffer('B', ['n', d], 'in'),
    buffer('V', ['n'], 'in'),
    buffer('W', [d, d], 'in'),
    buffer('X', ['m', d], 'in'),
    buffer('T', ['m', d], 'local'),
    buffer('S', ['j_count'], 'local'),
    ...OUTS.map((name) => buffer(name, ['m', d], 'out')),
  ]
  const sorted = dice.chance(70)
  const kernel: Kernel2 = {
    ...kernel2(
      'random',
      s.symbolic ? ['m', 'n', 'j_count', 'r_count', 'd'] : ['m', 'n', 'j_count', 'r_count'],
      buffers,
      body,
    ),
    ...(sorted ? { ascending: ['r_indices'] } : {}),
  }
  const entries = Array.from({ length: s.m === 0 ? 0 : dice.below(6) }, () => dice.below(s.m))
  if (sorted) entries.sort((x, y) => x - y)
  const indptr = [0]
  for (const l of s.lengths) indptr.push(indptr.at(-1)! + l)
  const values = (n: number): number[] => Array.from({ length: n }, () => dice.below(7) - 3)
  const count = s.columns.length
  const arrays = new Map<string, number[]>([
    ['j_indptr', indptr],
    ['j_indices', [...s.columns]],
    ['A', values(count)],
    ['B', values(s.n * s.d)],
    ['V', values(s.n)],
    ['W', values(s.d * s.d)],
    ['X', values(s.m * s.d)],
    ['r_indices', entries],
    ['R', values(entries.length * 2)],
    ...OUTS.map((name): [string, number[]] => [name, new Array<number>(s.m * s.d).fill(POISON)]),
  ])
  const params = new Map([
    ['m', s.m],
    ['n', s.n],
    ['j_count', count],
    ['r_count', entries.length],
    ...(s.symbolic ? [['d', s.d] as const] : []),
  ])
  return { kernel, data: { params, arrays } }
}

export const samples: fc.Arbitrary<Sample> = fc.tuple(shapes, fc.nat()).map(([s, seed]) => {
  const sample = build(s, seed)
  // What fast-check shows of a counterexample.
  return Object.assign(sample, { [fc.toStringMethod]: () => print2(sample.kernel, { bodyOnly: true }) })
})

/** What was computed, but for elements that the nest, written by hand, leaves alone: a fill may reach them. */
export const withoutFills = (
  got: Record<string, number[]>,
  expected: Record<string, number[]>,
): Record<string, number[]> =>
  Object.fromEntries(
    Object.entries(got).map(([b, cells]) => [
      b,
      cells.map((x, k) => (expected[b]![k] === POISON ? POISON : x)),
    ]),
  )
