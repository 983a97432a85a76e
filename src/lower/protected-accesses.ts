/**
 * Speculation safety of loads and divisions. Which conditions keep an access in range, or a divisor from being 0: what may
 * stand ahead of a condition is decided by what the two have in common (`common-subexpressions.ts` says the rule).
 */
import type { HardwareExtents } from '../analysis/integers/ranges.ts'
import type { Expr, Load, Search } from '../ir/expr.ts'
import { buffersRead, children, dividesByVariable, freeVars, isLazy, readsMemory } from '../ir/expr-tree.ts'
import type { Buffer } from '../ir/loops.ts'
import { type Body, walkStmts } from '../ir/tree.ts'

/** Stands for the places that arrays say. */
const FROM_ARRAYS = 'from arrays'

const NO_NAMES: ReadonlySet<string> = new Set()

/** Stands for constant places of arrays that may be shorter. */
const AT_CONSTANTS = 'at constants'

/** What `#dependsOn` calls arrays. */
const isArray = (v: string): boolean => v.endsWith('[]')

/** What buffers say, common to the launches of a kernel. */
interface Lengths {
  /** Sizes that say by themselves how long a buffer is. */
  readonly counts: ReadonlySet<string>
  /** The lengths of buffers that are constant. */
  readonly constants: ReadonlyMap<string, number>
  /** The sizes that decide how long a buffer is. */
  readonly lengths: ReadonlyMap<string, readonly string[]>
}
const known = new WeakMap<readonly Buffer[], Lengths>()

function lengthsOf(buffers: readonly Buffer[]): Lengths {
  const before = known.get(buffers)
  if (before) return before
  const found = {
    lengths: new Map(buffers.map((b) => [b.name, b.shape.flatMap((e) => [...freeVars(e)])])),
    constants: new Map(
      buffers.flatMap(({ name, shape }) =>
        shape.every((e) => e.kind === 'const')
          ? [[name, shape.reduce((n, e) => n * e.value, 1)] as const]
          : [],
      ),
    ),
    counts: new Set(
      buffers.flatMap(({ shape: [n, ...more] }) => (n?.kind === 'var' && more.length === 0 ? [n.name] : [])),
    ),
  }
  known.set(buffers, found)
  return found
}

/** What accesses and divisors depend on, and what conditions protect: by names that the two share. */
export class ProtectedAccesses {
  readonly #buffers: Lengths
  readonly #loadVars = new WeakMap<Expr, ReadonlySet<string>>()
  readonly #divisorVars = new WeakMap<Expr, ReadonlySet<string>>()
  /** What the value of a name depends on: a condition that has a name protects the same accesses. */
  readonly #behind = new Map<string, ReadonlySet<string>>()
  /** What decides how far a loop's variable or an axis of the launch goes. */
  readonly #ranges = new Map<string, ReadonlySet<string>>()

  constructor(body: Body, buffers: readonly Buffer[], launch: HardwareExtents) {
    this.#buffers = lengthsOf(buffers)
    for (const [axis, extent] of launch) this.#ranges.set(axis, this.#says(extent))
    walkStmts(body, (s) => {
      if (s.kind === 'let') this.#behind.set(s.name, this.#dependsOn(s.value))
      if (s.kind === 'for') this.#ranges.set(s.var, this.#says(s.extent))
    })
  }

  /** What an access mentions that a condition may keep in range. */
  protects(cond: Expr): ReadonlySet<string> {
    const vars = this.#says(cond)
    const counts = [...vars].some((v) => this.#buffers.counts.has(v))
    return new Set([...vars, AT_CONSTANTS, ...(counts ? [FROM_ARRAYS] : [])])
  }

  /** The variables that the accesses in `e` depend on, and the arrays that their places come from. */
  ofLoads(e: Expr): ReadonlySet<string> {
    if (!readsMemory(e)) return NO_NAMES
    let known = this.#loadVars.get(e)
    if (known === undefined) {
      const places = children(e).flatMap((c) => [...this.#dependsOn(c)])
      known = new Set(children(e).flatMap((c) => [...this.ofLoads(c)]))
      if (e.kind === 'load' || e.kind === 'search')
        known = new Set([
          ...known,
          ...places,
          ...(this.#buffers.lengths.get(e.buffer) ?? []),
          ...(places.some(isArray) ? [FROM_ARRAYS] : []),
          ...(places.length === 0 && !this.#isWithin(e) ? [AT_CONSTANTS] : []),
        ])
      this.#loadVars.set(e, known)
    }
    return known
  }

  /** Whether a constant place is one of the array, whatever sizes are. */
  #isWithin(e: Load | Search): boolean {
    const [place] = children(e)
    const length = this.#buffers.constants.get(e.buffer)
    return e.kind === 'load' && length !== undefined && place?.kind === 'const' && place.value < length
  }

  /** The variables and arrays that divisors in `e` depend on, without those that a condition in `e` itself asks about. */
  ofDivisors(e: Expr): ReadonlySet<string> {
    if (children(e).length === 0) return NO_NAMES
    let known = this.#divisorVars.get(e)
    if (known === undefined) {
      const [first, ...others] = children(e)
      const guards = isLazy(e) && first ? this.#dependsOn(first) : NO_NAMES
      const behind = others.flatMap((c) => [...this.ofDivisors(c)]).filter((v) => !guards.has(v))
      const own = dividesByVariable(e) ? this.#dependsOn(e.b) : NO_NAMES
      const ahead = first ? this.ofDivisors(first) : NO_NAMES
      const isNone = own.size + ahead.size + behind.length === 0
      known = isNone ? NO_NAMES : new Set([...own, ...ahead, ...behind])
      this.#divisorVars.set(e, known)
    }
    return known
  }

  /** What an expression depends on, and what the ranges of that do: of `j` below `ceildiv(n, 8)`, `0 < j` says `8 < n`. */
  #says(e: Expr): ReadonlySet<string> {
    const vars = this.#dependsOn(e)
    return new Set([...vars, ...[...vars].flatMap((v) => [...(this.#ranges.get(v) ?? [])])])
  }

  /** The variables of an expression and those behind the names in it; what all of it reads, as `x[]`. */
  #dependsOn(e: Expr): ReadonlySet<string> {
    const vars = freeVars(e)
    const reads = buffersRead(e)
    if (reads.size === 0 && ![...vars].some((v) => this.#behind.has(v))) return vars
    return new Set([
      ...[...vars].flatMap((v) => [v, ...(this.#behind.get(v) ?? [])]),
      ...[...reads].map((b) => `${b}[]`),
    ])
  }
}
