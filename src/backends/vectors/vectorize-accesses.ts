/**
 * SLP vectorisation of loads and stores (superword-level parallelism; Larsen and Amarasinghe, PLDI 2000). Invariant: accesses of
 * straight-line code to neighbouring elements of a buffer are one aligned access of up to 16 bytes. It runs just before
 * printing, for targets with vector accesses. Buffers are aligned to 16 bytes.
 *
 * Alignment of an address is derived from its terms: constants, unrolled lanes, and facts about sizes, which schedules require or
 * enclosing conditions imply.
 */

import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import { type Linear, linearKey } from '../../analysis/integers/linear.ts'
import { add, type Expr, int, type Load, load, mul, variable } from '../../ir/expressions/expr.ts'
import { buffersRead, children, isLazy, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { buffersByName } from '../../ir/statements/definitions.ts'
import type { Buffer, Kernel3, Launch, Stmt, Store } from '../../ir/statements/loops.ts'
import { define, vectorLoad, vectorStore } from '../../ir/statements/statement-builders.ts'
import type { Body } from '../../ir/statements/tree.ts'
import {
  bodiesOf,
  exprsOf,
  hasBarrier,
  mapExprs,
  piecesOf,
  stmtsOf,
  withBodies,
} from '../../ir/statements/tree.ts'
import { mapLaunches } from '../launch-uses.ts'
import { addressesIn, type Element, elementwiseStored, MemoryVersions } from './vector-addresses.ts'
import { completeVectors, type Neighbours, packAtomics } from './vector-atomics.ts'

/** Permitted widths of vector accesses to a buffer in elements, largest first; empty if it must be accessed by element. */
export interface Widths {
  readonly widths: (buffer: Buffer) => readonly number[]
  /** Permitted widths of atomic updates by a reducer. */
  readonly atomicWidths: (buffer: Buffer, reducer: string) => readonly number[]
  /**
   * True if arrays hold vectors, so that a store may write the complete vector (WGSL, "Memory Locations"). Such an array is
   * not vectorised if a version for other sizes stores single elements of vectors shared between threads.
   */
  readonly storesVectors?: boolean | undefined
  /** Pairs of narrow elements share a register, so two stored elements become one word. */
  readonly instructions?: object | undefined
  /** A select evaluates both operands on the target, so its loads do not prevent a vector load. */
  readonly eagerOps?: object | undefined
}

export function vectorAccesses(plan: Kernel3, widths: Widths): Kernel3 {
  return mapLaunches(plan, (launch) => vectorizeLaunch(launch, plan, widths))
}

function vectorizeLaunch(launch: Launch, plan: Kernel3, widths: Widths): Launch {
  let body = vectorizer(launch, plan, widths)(launch.body)
  if (widths.storesVectors && body !== launch.body) {
    const elementwise = elementwiseStored(launch.body, addressesIn(launch.body, plan.facts))
    const restricted: Widths = { ...widths, widths: (b) => (elementwise.has(b.name) ? [] : widths.widths(b)) }
    if (elementwise.size > 0) body = vectorizer(launch, plan, restricted)(launch.body)
  }
  return body === launch.body ? launch : { ...launch, body }
}

interface Group {
  readonly base: Linear
  readonly elements: Map<number, { readonly load: Load; readonly first: number }>
}

/**
 * Loaded elements by `key constant`: the name of the element, and the statement before which it is loaded. Earlier statements,
 * which read the element only under a condition, keep their own loads.
 */
type NamedElements = Map<string, { readonly element: Expr; readonly from: number }>

function vectorizer(launch: Launch, plan: Kernel3, widthsOf: Widths) {
  let count = 0
  /** Reducers of atomic updates, by buffer. */
  const atomic = new Map<string, Set<string>>()
  /** Arrays that instructions access by name, so that they remain arrays of elements. */
  const instrArrays = new Set<string>()
  const neighbours: Neighbours = {
    element: (r) => {
      const [target] = r.targets
      if (!r.atomic || !target || r.targets.length > 1) return undefined
      const sum = addresses.sumOf(target.index[0]!)
      const base = linearKey({ terms: sum.terms, constant: 0 })
      return { key: `${target.buffer} ${base} ${r.reducer.name}`, constant: sum.constant }
    },
    widths: (r) => {
      const target = r.targets[0]!
      const buffer = buffers.get(target.buffer)
      const alignment = addresses.alignment({ ...addresses.sumOf(target.index[0]!), constant: 0 })
      const widths = buffer ? widthsOf.atomicWidths(buffer, r.reducer.name) : []
      return widths.filter((w) => alignment % w === 0)
    },
  }
  const buffers = buffersByName(plan.buffers, launch.body)
  const addresses = addressesIn(launch.body, plan.facts)
  const written = writesOf(launch.body)
  for (const { atomic: isAtomic, targets, reducer } of stmtsOf(launch.body, 'reduce'))
    for (const t of isAtomic ? targets : []) getOrAdd(atomic, t.buffer, () => new Set()).add(reducer.name)
  for (const p of stmtsOf(launch.body, 'instr').flatMap(piecesOf))
    if (p.kind === 'name') instrArrays.add(p.buffer)
  const body = (list: Body): Body => {
    const inner = list.map((s) =>
      withBodies(
        s,
        bodiesOf(s).map((b, k) =>
          s.kind === 'if' && k === 0 ? addresses.withCondition(s.cond, () => body(b)) : body(b),
        ),
      ),
    )
    const withLoads = loads(inner)
    const withStores = packAtomics(stores(withLoads), neighbours)
    return reuseIfSame(list, withStores)
  }
  const vectorWidths = (buffer: string): readonly number[] => {
    const b = buffers.get(buffer)
    if (b?.scope === 'register') return widthsOf.instructions && isPacked(b) ? [2] : []
    if (!b || instrArrays.has(buffer)) return []
    // Buffers with scalar atomics are declared as atomic elements, which excludes vectors. Vector atomics need no declaration.
    const isElementwise = [...(atomic.get(buffer) ?? [])].some(
      (op) => widthsOf.atomicWidths(b, op).length === 0,
    )
    return isElementwise ? [] : widthsOf.widths(b)
  }
  const elementOf = (l: Load | Store): Element | undefined => {
    if (vectorWidths(l.buffer).length === 0) return undefined
    const sum = addresses.sumOf(l.index[0]!)
    const base = { terms: sum.terms, constant: 0 }
    const elementLoad = l.kind === 'load' ? l : load(l.buffer, l.index, l.value.dtype)
    return { key: `${l.buffer} ${linearKey(base)}`, constant: sum.constant, base, load: elementLoad }
  }
  const loads = (list: Body): Body => {
    let versions = new MemoryVersions(written)
    const groups = new Map<string, Group>()
    list.forEach((s, k) => {
      if (s.kind !== 'while')
        for (const e of exprsOf(s))
          visitLoads(e, widthsOf.eagerOps !== undefined, (l) => {
            const x = elementOf(l)
            const state = x && versions.version(x)
            // Reading a packed element of a register needs no memory access.
            if (!x || state === undefined || buffers.get(l.buffer)?.scope === 'register') return
            const key = `${x.key} ${state}`
            const group = groups.get(key) ?? { base: x.base, elements: new Map() }
            groups.set(key, group)
            if (!group.elements.has(x.constant)) group.elements.set(x.constant, { load: x.load, first: k })
          })
      recordWrites(s, versions)
    })
    const vectors = new Map<number, Stmt[]>()
    const namedElements: NamedElements = new Map()
    for (const [key, group] of groups) chunks(key, group, vectors, namedElements)
    if (namedElements.size === 0) return list
    versions = new MemoryVersions(written)
    return list.flatMap((s, k): Body => {
      const rewritten =
        s.kind === 'while'
          ? s
          : mapExprs(s, (e) =>
              rewriteExpr(e, (x) => {
                const el = x.kind === 'load' ? elementOf(x) : undefined
                const state = el && versions.version(el)
                const name = el && namedElements.get(`${el.key} ${state} ${el.constant}`)
                return name && name.from <= k ? name.element : undefined
              }),
            )
      recordWrites(s, versions)
      return [...(vectors.get(k) ?? []), rewritten]
    })
  }
  const recordWrites = (s: Stmt, versions: MemoryVersions): void => {
    if (hasBarrier([s])) for (const b of written) versions.writeAny(b)
    else if (s.kind === 'store') versions.writeElement(s.buffer, elementOf(s))
    else for (const b of writesOf([s])) versions.writeAny(b)
  }
  const chunks = (
    key: string,
    group: Group,
    vectors: Map<number, Stmt[]>,
    namedElements: NamedElements,
  ): void => {
    const { elements, base } = group
    const anyElement = elements.values().next().value!
    const widths = alignedWidths(anyElement.load.buffer, base)
    for (const { offset, members } of completeVectors(elements, widths)) {
      const first = Math.min(...members.map((m) => m.first))
      const firstMember = members.findIndex((m) => m.first === first)
      const { buffer, index, dtype } = members[firstMember]!.load
      const start = vectorStart(add(index[0]!, int(-firstMember)), members.length)
      // Names of the kernel contain no dot, so these names are unique.
      const names = members.map(() => `${buffer}.${count++}`)
      getOrAdd(vectors, first, () => []).push(vectorLoad(names, load(buffer, [start], dtype)))
      for (const [k, n] of names.entries())
        namedElements.set(`${key} ${offset + k}`, { element: variable(n, dtype), from: first })
    }
  }
  const alignedWidths = (buffer: string, base: Linear): readonly number[] => {
    const alignment = addresses.alignment(base)
    return vectorWidths(buffer).filter((w) => alignment % w === 0)
  }
  /** Start of a vector as vector index times width, if arrays hold vectors: addresses then differ by constants only. */
  const vectorStart = (index: Expr, width: number): Expr => {
    const vectorIndex = widthsOf.storesVectors ? addresses.vectorIndex(index, width) : undefined
    return vectorIndex ? mul(vectorIndex, int(width)) : index
  }
  const stores = (list: Body): Body => {
    const out: Stmt[] = []
    let run: { readonly store: Store; readonly element: Element; readonly position: number }[] = []
    const flush = (): void => {
      pack(run, out)
      run = []
    }
    for (const s of list) {
      const element = s.kind === 'store' ? elementOf(s) : undefined
      if (s.kind === 'store' && element) {
        const first = run[0]
        const reads = buffersRead(s.value).has(s.buffer)
        if (reads || (first && first.element.key !== element.key)) flush()
        if (!reads) run.push({ store: s, element, position: out.length })
      } else if (s.kind !== 'let' || run.some((r) => buffersRead(s.value).has(r.store.buffer))) flush()
      out.push(s)
    }
    flush()
    return reuseIfSame(
      list,
      out.filter((s) => s !== REMOVED),
    )
  }
  /** Replaces the last store of each complete vector by a vector store, and removes the others. */
  const pack = (
    run: readonly { readonly store: Store; readonly element: Element; readonly position: number }[],
    out: Stmt[],
  ): void => {
    if (run.length < 2) return
    const byConstant = new Map(run.map((r) => [r.element.constant, r]))
    if (byConstant.size < run.length) return
    const widths = alignedWidths(run[0]!.store.buffer, run[0]!.element.base)
    for (const { members } of completeVectors(byConstant, widths)) {
      const { store } = members[0]!
      const start = vectorStart(store.index[0]!, members.length)
      const target = load(store.buffer, [start], buffers.get(store.buffer)!.dtype)
      const values = members.map((m) => m.store.value)
      const last = Math.max(...members.map((m) => m.position))
      for (const m of members) out[m.position] = REMOVED
      out[last] = vectorStore(target, values)
    }
  }
  return body
}

/** Placeholder of a removed store. */
const REMOVED: Stmt = define('', int(0))

/** Visits loads that are executed whenever the expression is. `eager`: the target evaluates all operands of lazy operators. */
function visitLoads(e: Expr, eager: boolean, visit: (l: Load) => void): void {
  if (e.kind === 'load') visit(e)
  for (const c of isLazy(e) && !eager ? children(e).slice(0, 1) : children(e)) visitLoads(c, eager, visit)
}
