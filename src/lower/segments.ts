/**
 * Invariant reached: no loop has the mode `accumulate`. What such a loop combines into an element goes to registers
 * as long as the element stays the same, and to the element where it changes and at the end: neighbouring iterations
 * mostly have one element, so most updates never leave the thread (segmented reduction; Merrill and Garland,
 * "Merge-based parallel sparse matrix-vector multiplication", SC 2016, has it for whole rows).
 *
 * The element is known by the part of its index that changes with the loop; a part that nothing has says that
 * registers hold nothing yet.
 */
import { invariant } from '../ast/diagnostic.ts'
import {
  add,
  all,
  and,
  binary,
  bool,
  constant,
  type Expr,
  int,
  type Load,
  load,
  lt,
  mentions,
  mul,
  type Search,
  select,
  sub,
  substitute,
  variable,
} from '../ir/expr.ts'
import { linear } from '../ir/linear.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { type Segments, segmentsOf } from '../ir/segments.ts'
import { type Body, mapSame, replaceStmt, rewriteStmts, stmt } from '../ir/tree.ts'
import type { Names } from './names.ts'
import { namesOf } from './names-of.ts'

/** A part of an index that no element has. */
const NONE = int(-2147483648)

export function accumulateSegments(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const body = mapSame(kernel.body, (top) => {
    const [done] = rewriteStmts([top], {
      stmt: (s) =>
        s.kind === 'for' && s.mode.kind === 'accumulate' ? accumulated(s, s.mode.by, names) : undefined,
    })
    return done!
  })
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** One statement, so that what belongs together stays in one launch at the top. */
function accumulated(marked: For, by: number, names: Names): Stmt {
  const loop: For = stmt({ ...marked, mode: { kind: 'serial' } })
  const segments = segmentsOf(loop)
  if (typeof segments === 'string') return loop
  const sums = new Sums(segments, names)
  const rounds = by > 1 ? batches(loop, segments, sums, by, names) : [sums.oneByOne(loop)]
  return when(bool(true), [...sums.start(), ...rounds, ...sums.finish()])
}

type At = ReadonlyMap<string, Expr>
const NOTHING: At = new Map()

/** The registers of a thread: sums, and what element they are of. */
class Sums {
  readonly #segments: Segments
  readonly #names: Names
  readonly #sums: readonly Buffer[]
  readonly #places: readonly Buffer[]
  /** Up to where the element stays the same, in the values that its search looks for. */
  readonly #limit: Buffer | undefined
  readonly #search: Search | undefined

  constructor(segments: Segments, names: Names) {
    this.#segments = segments
    this.#names = names
    const { reduce, inner, parts } = segments
    const shape = inner.map((l) => l.extent)
    this.#sums = reduce.targets.map((t) => register(names.fresh(`${t.buffer}_sum`), t.dtype, shape))
    this.#places = parts.map(() => register(names.fresh(`${reduce.targets[0]!.buffer}_place`), 'i32', []))
    const [only] = parts
    this.#search = parts.length === 1 && only?.kind === 'search' && only.method === 'upper' ? only : undefined
    this.#limit = this.#search && register(names.fresh(`${reduce.targets[0]!.buffer}_limit`), 'i32', [])
  }

  start(): Body {
    const registers = [...this.#sums, ...this.#places, ...(this.#limit ? [this.#limit] : [])]
    return [
      ...registers.map((buffer): Stmt => stmt({ kind: 'alloc', buffer })),
      ...this.#nest(false, (map) => this.#clear(map)),
      ...this.#set(this.#places.map(() => NONE)),
      ...(this.#limit ? [set(this.#limit, NONE)] : []),
    ]
  }

  /**
   * Whether the sums are of the element of an iteration, and so of all between the latest one and it: what is looked
   * for grows with the loop, and less than the limit finds the same place.
   */
  within(at: At): Expr | undefined {
    if (!this.#search || !this.#limit) return undefined
    return lt(substitute(this.#search.value, at), load(this.#limit.name, [int(0)], 'i32'))
  }

  /** After `enter`: up to where its element goes. */
  bound(): Body {
    if (!this.#search || !this.#limit) return []
    const { buffer, hi } = this.#search
    const place = this.#place(0)
    return [set(this.#limit, select(lt(place, hi), load(buffer, [place], 'i32'), int(2147483647)))]
  }

  finish(): Body {
    return [
      when(
        this.#held(),
        this.#nest(true, (map) => [this.#flush(map)]),
      ),
    ]
  }

  /** The sums go where they belong if `parts` are of another element, and are of that from now on. */
  enter(parts: readonly Expr[]): Body {
    const differs = parts.map((p, k) => binary('ne', this.#place(k), p)).reduce((a, b) => binary('or', a, b))
    const leave = this.#nest(true, (map) => [this.#flush(map), ...this.#clear(map)])
    return [when(and(this.#held(), differs), leave), ...this.#set(parts)]
  }

  oneByOne(loop: For): Stmt {
    const { reduce, parts } = this.#segments
    const own = this.take(NOTHING, reduce.values)
    return stmt({ ...loop, body: [...this.enter(parts), ...replaceStmt(loop.body, reduce, () => own)] })
  }

  /** `values` combined into the sums. */
  take(map: At, values: readonly Expr[]): Stmt {
    const targets = this.#sums.map((_, k) => this.#sum(k, map))
    return stmt<Reduce>({ ...this.#segments.reduce, atomic: false, targets, values })
  }

  #nest(guarded: boolean, make: (map: At) => Body): Body {
    return nest(this.#segments.inner, this.#names, guarded, NOTHING, make)
  }

  #sum(k: number, map: At): Load {
    const b = this.#sums[k]!
    return load(
      b.name,
      cell(
        this.#segments.inner.map((l) => variable(l.var)),
        map,
      ),
      b.dtype,
    )
  }

  #place(k: number): Load {
    return load(this.#places[k]!.name, [int(0)], 'i32')
  }

  #set(values: readonly Expr[]): Stmt[] {
    return this.#places.map((b, k) =>
      stmt({ kind: 'store', buffer: b.name, index: [int(0)], value: values[k]! }),
    )
  }

  #held(): Expr {
    return binary('ne', this.#place(0), NONE)
  }

  #clear(map: At): Stmt[] {
    return this.#sums.map((b, k) => {
      const e = this.#segments.reduce.reducer.identity[k]!
      const value = e.kind === 'const' ? constant(e.value, b.dtype) : e
      return stmt({ kind: 'store', buffer: b.name, index: this.#sum(k, map).index, value })
    })
  }

  #flush(map: At): Stmt {
    const { reduce, rest } = this.#segments
    const index = (k: number): Expr[] =>
      rest[k]!.map(({ part, more }) => {
        const same = substitute(more, map)
        if (part === undefined) return same
        const place = this.#place(part)
        return same.kind === 'const' && same.value < 0 ? sub(place, int(-same.value)) : add(place, same)
      })
    const targets = reduce.targets.map((t, k) => load(t.buffer, index(k), t.dtype, t.span))
    return stmt<Reduce>({ ...reduce, targets, values: this.#sums.map((_, k) => this.#sum(k, map)) })
  }
}

/**
 * Rounds of `by` iterations: all values first, so that their loads are under way together, then one after the other
 * into the sums. Where the last iteration's conditions hold, so do those of all: then nothing asks again.
 */
function batches(loop: For, segments: Segments, sums: Sums, by: number, names: Names): Body {
  const { reduce, inner, parts } = segments
  const { extent } = loop
  invariant(extent.kind === 'const' && extent.value % by === 0, 'batches divide a constant loop')
  const shape = [int(by), ...inner.map((l) => l.extent)]
  const made = (guarded: boolean): Body => {
    const values = reduce.values.map((_, k) =>
      register(names.fresh(`${reduce.targets[k]!.buffer}_value`), reduce.reducer.right[k]!.dtype, shape),
    )
    const round = names.fresh(`${loop.var}_round`)
    const each = (make: (map: At, at: Expr) => Body): Stmt => {
      const name = names.fresh(loop.var)
      const map = new Map([[loop.var, add(mul(variable(round), int(by)), variable(name))]])
      return stmt({
        ...loop,
        var: name,
        extent: int(by),
        mode: { kind: 'unroll', factor: null },
        guards: guarded ? loop.guards.map((g) => substitute(g, map)) : [],
        body: make(map, variable(name)),
      })
    }
    const value = (k: number, at: Expr, map: At): Load =>
      load(values[k]!.name, [at, ...inner.map((l) => substitute(variable(l.var), map))], values[k]!.dtype)
    const first: Body = [
      ...values.map((buffer): Stmt => stmt({ kind: 'alloc', buffer })),
      each((map, at) =>
        nest(inner, names, true, map, (all) =>
          reduce.values.map((v, k) =>
            stmt({
              kind: 'store',
              buffer: values[k]!.name,
              index: value(k, at, all).index,
              value: substitute(v, all),
            }),
          ),
        ),
      ),
    ]
    const combine = (enter: (map: At) => Body): Stmt =>
      each((map, at) => [
        ...enter(map),
        ...nest(inner, names, true, map, (all) => [
          sums.take(
            all,
            values.map((_, k) => value(k, at, all)),
          ),
        ]),
      ])
    const enter = (map: At): Body => sums.enter(parts.map((p) => substitute(p, map)))
    const end = new Map([[loop.var, add(mul(variable(round), int(by)), int(by - 1))]])
    // Loads stay outside of the condition: they are under way while it is decided.
    const one = guarded || !grows(parts, loop) ? undefined : sums.within(end)
    const second: Stmt = one
      ? stmt({ kind: 'if', cond: one, then: [combine(() => [])], else: [combine(enter), ...sums.bound()] })
      : combine(enter)
    const body: Body = [...first, second]
    return [stmt({ ...loop, var: round, extent: int(extent.value / by), guards: [], body })]
  }
  const last = new Map([[loop.var, int(extent.value - 1)]])
  const whole = loop.guards.map((g) => substitute(g, last))
  if (!loop.guards.every((g) => isUpperBound(g, loop))) return made(true)
  if (whole.length === 0) return made(false)
  return [stmt({ kind: 'if', cond: all(whole), then: made(false), else: made(true) })]
}

/** `c·v + rest < n`: what it says of an iteration, it says of all before it. */
function isUpperBound(g: Expr, loop: For): boolean {
  if (g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, loop.var)) return false
  const own = [...linear(g.a).terms.values()].filter((t) => mentions(t.term, loop.var))
  return own.every((t) => t.term.kind === 'var' && t.coefficient > 0)
}

/** Whether what is looked for grows with the loop, in a place that does not change with it. */
const grows = ([part]: readonly Expr[], loop: For): boolean => {
  if (part?.kind !== 'search' || mentions(part.lo, loop.var) || mentions(part.hi, loop.var)) return false
  const own = [...linear(part.value).terms.values()].filter((t) => mentions(t.term, loop.var))
  return own.every((t) => t.term.kind === 'var' && t.coefficient > 0)
}

const set = (b: Buffer, value: Expr): Stmt => stmt({ kind: 'store', buffer: b.name, index: [int(0)], value })

const when = (cond: Expr, then: Body): Stmt => stmt({ kind: 'if', cond, then, else: [] })

const register = (name: string, dtype: Buffer['dtype'], shape: readonly Expr[]): Buffer => ({
  name,
  dtype,
  scope: 'register',
  role: 'local',
  shape: shape.length > 0 ? shape : [int(1)],
  fill: 0,
  accumulate: dtype,
})

const cell = (index: readonly Expr[], map: At): Expr[] =>
  index.length > 0 ? index.map((e) => substitute(e, map)) : [int(0)]

/** Copies of loops around what `make` gives for the copies' variables and what `around` says. */
function nest(
  loops: readonly For[],
  names: Names,
  guarded: boolean,
  around: At,
  make: (map: At) => Body,
): Body {
  const map = new Map(around)
  const copies = loops.map((l): For => {
    const name = names.fresh(l.var)
    map.set(l.var, variable(name))
    return {
      ...l,
      var: name,
      reduce: false,
      extent: substitute(l.extent, map),
      guards: guarded ? l.guards.map((g) => substitute(g, map)) : [],
    }
  })
  return copies.reduceRight<Body>((body, l) => [stmt({ ...l, body })], make(map))
}
