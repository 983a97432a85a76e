/**
 * Splitting by brute force: each coordinate of a tiny tensor goes through the part tree and the map of its part,
 * queries answered by comparing it with all the others. Nothing is shared with `src/formats`.
 */

import type { Expr } from '../../../src/ir/expressions/expr.ts'
import type { Instance, PartInstance, Sort } from '../../../src/ir/formats/format.ts'
import type { PartTree } from '../../../src/ir/formats/part-tree.ts'
import type { Query } from '../../../src/ir/formats/queries.ts'
import { foldCompare, foldInt } from '../../../src/ir/values/numeric.ts'

type Coordinate = readonly number[]

export interface Entry {
  readonly at: Coordinate
  readonly value: number
}

export interface Given {
  readonly sizes: ReadonlyMap<string, number>
  readonly lists: ReadonlyMap<string, readonly number[]>
}

/** What one part holds: old coordinates with those on its axes, and its tables. */
export interface Held {
  readonly part: PartInstance
  readonly entries: readonly {
    readonly at: Coordinate
    readonly placed: Coordinate
    readonly value: number
  }[]
  readonly tables: ReadonlyMap<string, readonly number[]>
}

export function splitBruteForce(instance: Instance, all: readonly Entry[], given: Given): Held[] {
  const dims = instance.over.map((a) => a.name)
  const parts: Entry[][] = instance.parts.map(() => [])
  const deal = (tree: PartTree, entries: readonly Entry[]): void => {
    if (tree.kind === 'leaf') {
      parts[tree.part]!.push(...entries)
      return
    }
    const scope = new Scope(dims, tree.queries, [], entries, given, new Map())
    const children = tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)
    const chosen = entries.map((e) => {
      if (tree.kind === 'index') return scope.evaluate(tree.index, e)
      const found = tree.cases.flatMap((c, k) => (c.where && scope.evaluate(c.where, e) !== 0 ? [k] : []))
      if (found.length > 1) throw new Error(`overlap at ${e.at}`)
      return found[0] ?? tree.cases.findIndex((c) => c.where === null)
    })
    if (chosen.some((k) => k < 0 || k >= children.length)) throw new Error('leak')
    children.forEach((child, k) => {
      deal(
        child,
        entries.filter((_, e) => chosen[e] === k),
      )
    })
  }
  deal(instance.tree, all)
  return instance.parts.map((part, k) => place(part, dims, parts[k]!, given, instance))
}

function place(
  part: PartInstance,
  dims: readonly string[],
  entries: readonly Entry[],
  given: Given,
  instance: Instance,
): Held {
  const f = part.instance
  const tables = new Map<string, readonly number[]>()
  const sorts = new Map<string, readonly number[]>()
  for (const s of f.sorts) {
    const order = sorted(s, dims, entries, given, instance)
    sorts.set(s.at, order)
    for (const t of f.tables) if (t.kind === 'sort' && t.source === s.at) tables.set(t.name, order)
  }
  for (const t of f.tables) if (t.kind === 'list') tables.set(t.name, given.lists.get(t.source)!)
  const places = new Map(f.sorts.map((s) => [s.place, sorts.get(s.at)!]))
  const scope = new Scope(dims, f.queries, [...places], entries, given, tables)
  return {
    part,
    tables,
    entries: entries.map((e) => ({ ...e, placed: f.map.map((m) => scope.evaluate(m, e)) })),
  }
}

/** All coordinates of the dimension, stored or not. */
function sorted(
  s: Sort,
  dims: readonly string[],
  entries: readonly Entry[],
  given: Given,
  instance: Instance,
): number[] {
  const k = dims.indexOf(s.dim)
  const extent = constantOf(instance.over[k]!.extent, given.sizes)
  const window = s.within ? constantOf(s.within, given.sizes) : Math.max(1, extent)
  const scope = new Scope(dims, s.queries, [], entries, given, new Map())
  const key = (c: number): number =>
    scope.evaluate(s.key, { at: dims.map((_, d) => (d === k ? c : -1)), value: 0 })
  return Array.from({ length: extent }, (_, c) => c).sort(
    (a, b) => Math.floor(a / window) - Math.floor(b / window) || key(a) - key(b) || a - b,
  )
}

export const constantOf = (e: Expr, sizes: ReadonlyMap<string, number>): number =>
  compute(
    e,
    (name) => sizes.get(name)!,
    () => Number.NaN,
  )

class Scope {
  constructor(
    readonly dims: readonly string[],
    readonly queries: readonly Query[],
    readonly places: readonly (readonly [string, readonly number[]])[],
    readonly entries: readonly Entry[],
    readonly given: Given,
    readonly tables: ReadonlyMap<string, readonly number[]>,
  ) {}

  evaluate(e: Expr, at: Entry): number {
    return compute(
      e,
      (name) => this.#variable(name, at),
      (buffer, index) => this.tables.get(buffer)?.[index] ?? Number.NaN,
    )
  }

  #variable(name: string, at: Entry): number {
    const d = this.dims.indexOf(name)
    if (d >= 0) return at.at[d]!
    const q = this.queries.find((x) => x.name === name)
    return q ? this.#answer(q, at) : this.given.sizes.get(name)!
  }

  #answer(q: Query, at: Entry): number {
    const list = (es: readonly Expr[], x: Entry): string => es.map((e) => this.evaluate(e, x)).join()
    switch (q.kind) {
      case 'count': {
        const mine = this.entries.filter((x) => list(q.by, x) === list(q.by, at))
        return new Set(mine.map((x) => list(q.of, x))).size
      }
      case 'rank': {
        const tuple = (x: Entry): number[] => q.of.map((e) => this.evaluate(e, x))
        const own = tuple(at)
        const mine = this.entries.filter((x) => list(q.by, x) === list(q.by, at)).map(tuple)
        const less = mine.filter((t) => {
          const k = t.findIndex((c, j) => c !== own[j])
          return k >= 0 && t[k]! < own[k]!
        })
        return new Set(less.map((t) => t.join())).size
      }
      case 'least':
        return Math.min(
          ...this.entries.filter((x) => list(q.by, x) === list(q.by, at)).map((x) => this.evaluate(q.of, x)),
        )
      case 'largest':
        return this.entries
          .filter((x) => list(q.by, x) === list(q.by, at))
          .filter((x) => {
            const d = Math.abs(x.value) - Math.abs(at.value)
            const k = x.at.findIndex((c, j) => c !== at.at[j])
            return d > 0 || (d === 0 && k >= 0 && x.at[k]! < at.at[k]!)
          }).length
      case 'value':
        return at.value
      case 'place':
        return this.places.find(([name]) => name === q.sort)![1].indexOf(this.evaluate(q.of, at))
      case 'find': {
        const c = this.evaluate(q.of, at)
        return this.given.lists.get(q.list)!.findLastIndex((b) => b <= c)
      }
      case 'held':
        throw new Error('no sets here')
    }
  }
}

function compute(
  e: Expr,
  variable: (name: string) => number,
  table: (buffer: string, index: number) => number,
): number {
  const go = (x: Expr): number => compute(x, variable, table)
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var':
      return variable(e.name)
    case 'unary':
      return e.op === 'neg' ? -go(e.x) : go(e.x) === 0 ? 1 : 0
    case 'cast':
      return go(e.x)
    case 'select':
      return go(e.cond) !== 0 ? go(e.then) : go(e.else)
    case 'load':
      return table(e.buffer, go(e.index[0]!))
    case 'binary': {
      const [a, b] = [go(e.a), go(e.b)]
      const truth = foldCompare(e.op, a, b)
      if (truth !== undefined) return truth ? 1 : 0
      return e.op === 'div' && e.dtype === 'f64' ? a / b : foldInt(e.op, a, b)!
    }
    default:
      throw new Error(`${e.kind} in a format`)
  }
}
