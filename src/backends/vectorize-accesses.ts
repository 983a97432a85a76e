/**
 * SLP vectorisation of loads and stores. Invariant reached: neighbouring elements of a buffer that a straight line of
 * statements reads, or writes, are one aligned access of up to 16 bytes (superword-level parallelism; Larsen and
 * Amarasinghe, PLDI 2000). For targets that have such accesses, just before printing; buffers begin at multiples of 16
 * bytes.
 *
 * That an address is a multiple follows from its terms: constants, unrolled lanes, and what is known of sizes, because
 * schedules require it or by a condition around.
 */

import { type Linear, linearKey } from '../analysis/integers/linear.ts'
import { isPacked } from '../analysis/memory-tiles.ts'
import { writesOf } from '../ir/accesses.ts'
import { add, type Expr, int, type Load, load, mul, variable } from '../ir/expr.ts'
import { buffersRead, children, isLazy, rewriteExpr } from '../ir/expr-tree.ts'
import type { Buffer, Launch, Plan, Stmt, Store } from '../ir/loops.ts'
import { define, vectorLoad, vectorStore } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, exprsOf, hasBarrier, mapExprs, walkStmts, withBodies } from '../ir/tree.ts'
import { type Element, MemoryVersions } from './memory-versions.ts'
import { Addresses, storedAlone } from './vector-addresses.ts'
import { type Neighbours, packAtomics } from './vector-atomics.ts'

/** Permitted widths of vector accesses to a buffer in elements, largest first; empty if it must be accessed by element. */
export interface Widths {
  readonly widths: (buffer: Buffer) => readonly number[]
  /** The same of atomic updates by a reducer. */
  readonly atomicWidths: (buffer: Buffer, reducer: string) => readonly number[]
  /**
   * True if arrays hold vectors, so that a store may write the complete vector (WGSL, "Memory Locations"). Such an array is
   * not vectorised if a version for other sizes stores single elements of vectors shared between threads.
   */
  readonly storesVectors?: boolean | undefined
  /** Pairs of narrow elements share a register, so two stored elements become one word. */
  readonly instructions?: object | undefined
  /** A select evaluates both operands on the target, so its loads do not prevent a vector load. */
  readonly eager?: object | undefined
}

export function vectorAccesses(plan: Plan, widths: Widths): Plan {
  const steps = plan.steps.map((s) => (s.kind === 'launch' ? vectorized(s, plan, widths) : s))
  return steps.every((s, k) => s === plan.steps[k]) ? plan : { ...plan, steps }
}

function vectorized(launch: Launch, plan: Plan, widths: Widths): Launch {
  let body = new Vectorizer(launch, plan, widths).body(launch.body)
  if (widths.storesVectors && body !== launch.body) {
    const alone = storedAlone(launch.body, new Addresses(launch.body, plan.facts))
    const fewer: Widths = { ...widths, widths: (b) => (alone.has(b.name) ? [] : widths.widths(b)) }
    if (alone.size > 0) body = new Vectorizer(launch, plan, fewer).body(launch.body)
  }
  return body === launch.body ? launch : { ...launch, body }
}

interface Group {
  readonly base: Linear
  readonly elements: Map<number, { readonly load: Load; readonly first: number }>
}

/**
 * `key constant` → the name of the element, and the statement before which it is loaded: where an earlier one reads it
 * under a condition alone, it reads it itself.
 */
type Named = Map<string, { readonly element: Expr; readonly from: number }>

class Vectorizer {
  readonly #buffers: Map<string, Buffer>
  readonly #widths: Widths
  readonly #addresses: Addresses
  #count = 0
  readonly #written: ReadonlySet<string>
  /** Buffers with atomic updates, and by which reducers. */
  readonly #atomic = new Map<string, Set<string>>()

  /** Arrays of elements, since instructions name them so. */
  readonly #named = new Set<string>()

  constructor(launch: Launch, plan: Plan, widths: Widths) {
    this.#buffers = new Map(plan.buffers.map((b) => [b.name, b]))
    this.#widths = widths
    this.#addresses = new Addresses(launch.body, plan.facts)
    this.#written = writesOf(launch.body)
    walkStmts(launch.body, (s) => {
      if (s.kind === 'alloc') this.#buffers.set(s.buffer.name, s.buffer)
      if (s.kind === 'reduce' && s.atomic)
        for (const t of s.targets)
          this.#atomic.set(t.buffer, new Set([...(this.#atomic.get(t.buffer) ?? []), s.reducer.name]))
      if (s.kind === 'instr')
        for (const p of s.texts.flatMap((t) => t.pieces))
          if (typeof p !== 'string' && p.kind === 'name') this.#named.add(p.buffer)
    })
  }

  body(list: Body): Body {
    const inner = list.map((s) =>
      withBodies(
        s,
        bodiesOf(s).map((b, k) =>
          s.kind === 'if' && k === 0 ? this.#addresses.where(s.cond, () => this.body(b)) : this.body(b),
        ),
      ),
    )
    const loaded = this.#loads(inner)
    const stored = packAtomics(this.#stores(loaded), this.#neighbours)
    return stored.length === list.length && stored.every((s, k) => s === list[k]) ? list : stored
  }

  #usable(buffer: string): readonly number[] {
    const b = this.#buffers.get(buffer)
    if (b?.scope === 'register') return this.#widths.instructions && isPacked(b) ? [2] : []
    if (!b || this.#named.has(buffer)) return []
    // Elements that are declared atomic are no vectors elsewhere; where updates are vectors, they are not declared so.
    const apart = [...(this.#atomic.get(buffer) ?? [])].some(
      (op) => this.#widths.atomicWidths(b, op).length === 0,
    )
    return apart ? [] : this.#widths.widths(b)
  }

  #element(l: Load | Store): Element | undefined {
    if (this.#usable(l.buffer).length === 0) return undefined
    const sum = this.#addresses.sum(l.index[0]!)
    const base = { terms: sum.terms, constant: 0 }
    const at = l.kind === 'load' ? l : load(l.buffer, l.index, l.value.dtype)
    return { key: `${l.buffer} ${linearKey(base)}`, constant: sum.constant, base, load: at }
  }

  // --- loads ---

  #loads(list: Body): Body {
    let writes = new MemoryVersions(this.#written)
    const groups = new Map<string, Group>()
    list.forEach((s, k) => {
      if (s.kind !== 'while')
        for (const e of exprsOf(s))
          readIn(e, this.#widths.eager !== undefined, (l) => {
            const x = this.#element(l)
            const state = x && writes.state(x)
            // A half of a register costs no access.
            if (!x || state === undefined || this.#buffers.get(l.buffer)?.scope === 'register') return
            const key = `${x.key} ${state}`
            const group = groups.get(key) ?? { base: x.base, elements: new Map() }
            groups.set(key, group)
            if (!group.elements.has(x.constant)) group.elements.set(x.constant, { load: x.load, first: k })
          })
      this.#advance(s, writes)
    })
    const vectors = new Map<number, Stmt[]>()
    const named: Named = new Map()
    for (const [key, group] of groups) this.#chunks(key, group, vectors, named)
    if (named.size === 0) return list
    writes = new MemoryVersions(this.#written)
    return list.flatMap((s, k): Body => {
      const replaced =
        s.kind === 'while'
          ? s
          : mapExprs(s, (e) =>
              rewriteExpr(e, (x) => {
                const el = x.kind === 'load' ? this.#element(x) : undefined
                const state = el && writes.state(el)
                const name = el && named.get(`${el.key} ${state} ${el.constant}`)
                return name && name.from <= k ? name.element : undefined
              }),
            )
      this.#advance(s, writes)
      return [...(vectors.get(k) ?? []), replaced]
    })
  }

  #advance(s: Stmt, writes: MemoryVersions): void {
    if (hasBarrier([s])) for (const b of this.#written) writes.all(b)
    else if (s.kind === 'store') writes.one(s.buffer, this.#element(s))
    else for (const b of writesOf([s])) writes.all(b)
  }

  #chunks(key: string, group: Group, vectors: Map<number, Stmt[]>, named: Named): void {
    const { elements, base } = group
    const some = elements.values().next().value!
    const aligned = this.#addresses.aligned(base)
    for (const width of this.#usable(some.load.buffer)) {
      if (aligned % width !== 0) continue
      for (const constant of elements.keys()) {
        if (constant % width !== 0) continue
        const members = Array.from({ length: width }, (_, k) => elements.get(constant + k))
        if (members.some((m, k) => !m || named.has(`${key} ${constant + k}`))) continue
        const first = Math.min(...members.map((m) => m!.first))
        const from = members.findIndex((m) => m!.first === first)
        const at = members[from]!.load
        const start = load(at.buffer, [this.#start(add(at.index[0]!, int(-from)), width)], at.dtype)
        // No name of the kernel has a point in it.
        const names = members.map(() => `${at.buffer}.${this.#count++}`)
        const list = vectors.get(first) ?? []
        vectors.set(first, list)
        list.push(vectorLoad(names, start))
        for (const [k, n] of names.entries())
          named.set(`${key} ${constant + k}`, { element: variable(n, at.dtype), from: first })
      }
    }
  }

  /** Start of a vector as vector index times width, if arrays hold vectors: addresses then differ by constants only. */
  #start(index: Expr, width: number): Expr {
    const whole = this.#widths.storesVectors ? this.#addresses.whole(index, width) : undefined
    return whole ? mul(whole, int(width)) : index
  }

  readonly #neighbours: Neighbours = {
    element: (r) => {
      const [target] = r.targets
      if (!r.atomic || !target || r.targets.length > 1) return undefined
      const sum = this.#addresses.sum(target.index[0]!)
      const base = linearKey({ terms: sum.terms, constant: 0 })
      return { key: `${target.buffer} ${base} ${r.reducer.name}`, constant: sum.constant }
    },
    widths: (r) => {
      const target = r.targets[0]!
      const buffer = this.#buffers.get(target.buffer)
      const aligned = this.#addresses.aligned({ ...this.#addresses.sum(target.index[0]!), constant: 0 })
      const widths = buffer ? this.#widths.atomicWidths(buffer, r.reducer.name) : []
      return widths.filter((w) => aligned % w === 0)
    },
  }

  // --- stores ---

  #stores(list: Body): Body {
    const out: Stmt[] = []
    let run: { readonly store: Store; readonly element: Element; readonly at: number }[] = []
    const flush = (): void => {
      this.#pack(run, out)
      run = []
    }
    for (const s of list) {
      const element = s.kind === 'store' ? this.#element(s) : undefined
      if (s.kind === 'store' && element) {
        const first = run[0]
        const reads = buffersRead(s.value).has(s.buffer)
        if (reads || (first && first.element.key !== element.key)) flush()
        if (!reads) run.push({ store: s, element, at: out.length })
      } else if (s.kind !== 'let' || run.some((r) => buffersRead(s.value).has(r.store.buffer))) flush()
      out.push(s)
    }
    flush()
    return out.length === list.length && out.every((s, k) => s === list[k])
      ? list
      : out.filter((s) => s !== NOTHING)
  }

  /** Replaces the last store of each whole chunk by one of all of it. */
  #pack(
    run: readonly { readonly store: Store; readonly element: Element; readonly at: number }[],
    out: Stmt[],
  ): void {
    if (run.length < 2) return
    const by = new Map(run.map((r) => [r.element.constant, r]))
    if (by.size < run.length) return
    const aligned = this.#addresses.aligned(run[0]!.element.base)
    const done = new Set<number>()
    for (const width of this.#usable(run[0]!.store.buffer)) {
      if (aligned % width !== 0) continue
      for (const constant of by.keys()) {
        if (constant % width !== 0) continue
        const members = Array.from({ length: width }, (_, k) => by.get(constant + k))
        if (members.some((m, k) => !m || done.has(constant + k))) continue
        const last = Math.max(...members.map((m) => m!.at))
        const { store } = members[0]!
        const start = this.#start(store.index[0]!, width)
        const target = load(store.buffer, [start], this.#buffers.get(store.buffer)!.dtype)
        const whole = vectorStore(
          target,
          members.map((m) => m!.store.value),
        )
        for (const m of members) out[m!.at] = NOTHING
        out[last] = whole
        for (let k = 0; k < width; k++) done.add(constant + k)
      }
    }
  }
}

/** Stands where a store was that became part of another. */
const NOTHING: Stmt = define('', int(0))

/** The loads that happen whenever the expression is evaluated, by a target whose operators evaluate all operands or not. */
function readIn(e: Expr, eager: boolean, visit: (l: Load) => void): void {
  if (e.kind === 'load') visit(e)
  for (const c of isLazy(e) && !eager ? children(e).slice(0, 1) : children(e)) readIn(c, eager, visit)
}
