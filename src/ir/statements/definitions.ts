/**
 * Definitions: the names that statements bind (loops, lets, allocations), computed once per statement; finding and
 * replacing loops by their variable.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { replaceAt } from '../lists.ts'
import { getOrAdd, memoize } from '../memoize.ts'
import type { Buffer, For, Stmt } from './loops.ts'
import { type Body, bodiesOf, withBodies } from './tree.ts'

/** The names that the statement itself binds, without nested statements. */
export function boundBy(s: Stmt): readonly string[] {
  switch (s.kind) {
    case 'for':
      return [s.var]
    case 'let':
      return [s.name]
    case 'alloc':
      return [s.buffer.name]
    case 'vector_load':
      return s.names
    default:
      return NO_NAMES
  }
}

const NO_NAMES: readonly string[] = []

/** The definitions in a statement and everything nested in it, computed on first use: for most statements only the loops are needed. */
class Definitions {
  readonly #stmt: Stmt
  #named: ReadonlyMap<string, readonly For[]> | undefined
  #allocs: ReadonlyMap<string, Buffer> | undefined
  #names: ReadonlySet<string> | undefined
  /** Outer before inner. */
  readonly loops: readonly For[]

  constructor(s: Stmt) {
    this.#stmt = s
    const inside = bodiesOf(s).flatMap(loopsOf)
    this.loops = s.kind === 'for' ? [s, ...inside] : inside
  }

  /** Loops by the names that users write: `i` and `agg.i`. */
  get named(): ReadonlyMap<string, readonly For[]> {
    if (this.#named) return this.#named
    const named = new Map<string, For[]>()
    for (const l of this.loops)
      for (const name of [l.name, `${l.nest}.${l.name}`]) getOrAdd(named, name, () => []).push(l)
    this.#named = named
    return named
  }

  get allocs(): ReadonlyMap<string, Buffer> {
    this.#allocs ??= new Map(
      this.#all((s) => (s.kind === 'alloc' ? [[s.buffer.name, s.buffer] as const] : [])),
    )
    return this.#allocs
  }

  /** All bound names: of loops, lets and allocations. */
  get names(): ReadonlySet<string> {
    this.#names ??= new Set(this.#all(boundBy))
    return this.#names
  }

  /** Collects `select` for the statement and those nested in it, outer before inner. */
  #all<T>(select: (s: Stmt) => readonly T[]): T[] {
    const out: T[] = []
    const visit = (s: Stmt): void => {
      out.push(...select(s))
      for (const b of bodiesOf(s)) for (let k = 0; k < b.length; k++) visit(b[k]!)
    }
    visit(this.#stmt)
    return out
  }
}

type DefinitionsInside = Pick<Definitions, keyof Definitions>

export const definitionsIn = (s: Stmt): DefinitionsInside =>
  bodiesOf(s).length === 0 && boundBy(s) === NO_NAMES ? NOTHING : definitionsInside(s)

const definitionsInside = memoize((s: Stmt): Definitions => new Definitions(s))

/** The perfectly nested loops from a loop on, outermost first. */
export function perfectNest(top: For): readonly For[] {
  const only = top.body.length === 1 ? top.body[0] : undefined
  return only?.kind === 'for' ? [top, ...perfectNest(only)] : [top]
}

/** All loops, outer before inner. */
export const loopsOf = (body: Body): readonly For[] =>
  body.length === 1 ? definitionsIn(body[0]!).loops : body.flatMap((s) => definitionsIn(s).loops)

const NOTHING: DefinitionsInside = { loops: [], named: new Map(), allocs: new Map(), names: new Set() }

/** Buffers that statements allocate, by name. */
export const allocations = (body: Body): ReadonlyMap<string, Buffer> =>
  new Map(body.flatMap((s) => [...definitionsIn(s).allocs]))

/** The declared buffers, and those that statements allocate, by name. */
export function buffersByName(declared: readonly Buffer[], body: Body): ReadonlyMap<string, Buffer> {
  const allocated = allocations(body)
  return allocated.size === 0
    ? declaredByName(declared)
    : new Map([...declaredByName(declared), ...allocated])
}

export const declaredByName = memoize(
  (list: readonly Buffer[]): ReadonlyMap<string, Buffer> => new Map(list.map((b) => [b.name, b])),
)

export interface LoopLocation {
  readonly loop: For
  /** The loops around it, outermost first. */
  readonly path: readonly For[]
  /** The bodies around the loop, outermost first, with the statement of each that contains or is the loop. */
  readonly places: readonly Place[]
}

interface Place {
  readonly list: Body
  readonly index: number
  readonly stmt: Stmt
}

/** Up to this many nests, a linear scan is faster than a cached index. */
const SMALL_BODY = 4

/** Index of the top-level statement that contains a loop, by loop variable: a step looks up one loop several times. */
const indexCaches = memoize((_: Body): Map<string, number> => new Map())

function scanForLoop(body: Body, name: string): number {
  let index = body.length - 1
  while (index >= 0 && !definitionsIn(body[index]!).loops.some((l) => l.var === name)) index--
  return index
}

/** Index of the statement that contains the loop, or −1. Loop variables are unique. */
function indexOfContainer(body: Body, name: string): number {
  if (body.length <= SMALL_BODY) return scanForLoop(body, name)
  const cache = indexCaches(body)
  let index = cache.get(name)
  if (index === undefined) {
    index = scanForLoop(body, name)
    cache.set(name, index)
  }
  return index
}

/** The loop with this variable, with its path and position; `undefined` if there is none. */
export function findLoop(body: Body, name: string): LoopLocation | undefined {
  const index = indexOfContainer(body, name)
  const places = index < 0 ? undefined : placesAround(body, index, name)
  if (!places) return undefined
  const loops = places.flatMap(({ stmt }) => (stmt.kind === 'for' ? [stmt] : []))
  return { loop: loops.at(-1)!, path: loops.slice(0, -1), places }
}

function placesAround(list: Body, start: number, name: string): readonly Place[] | undefined {
  for (let index = start; index < list.length; index++) {
    const stmt = list[index]!
    if (stmt.kind === 'for' && stmt.var === name) return [{ list, index, stmt }]
    for (const b of bodiesOf(stmt)) {
      const inner = placesAround(b, 0, name)
      if (inner) return [{ list, index, stmt }, ...inner]
    }
  }
  return undefined
}

export function replaceLoop(body: Body, name: string, f: (loop: For) => Stmt | Body): Body {
  const index = indexOfContainer(body, name)
  const replaced = index < 0 ? undefined : replaceInStatement(body[index]!, name, f)
  invariant(replaced, () => `no loop ${name}`)
  return replaceAt(body, index, replaced)
}

function replaceInStatement(s: Stmt, name: string, f: (loop: For) => Stmt | Body): Body | undefined {
  if (s.kind === 'for' && s.var === name) {
    const replacement = f(s)
    return Array.isArray(replacement) ? (replacement as Body) : [replacement as Stmt]
  }
  const bodies = bodiesOf(s)
  for (const [k, body] of bodies.entries()) {
    const replaced = replaceInBody(body, name, f)
    if (replaced) return [withBodies(s, bodies.with(k, replaced))]
  }
  return undefined
}

function replaceInBody(body: Body, name: string, f: (loop: For) => Stmt | Body): Body | undefined {
  for (let index = 0; index < body.length; index++) {
    const replacement = replaceInStatement(body[index]!, name, f)
    if (replacement) return replaceAt(body, index, replacement)
  }
  return undefined
}
