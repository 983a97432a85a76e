/**
 * Speculation safety of loads and divisions: which conditions keep an access in range, or a divisor from being 0. An expression may be
 * hoisted out of a condition only if the two have no name in common (`common-subexpressions.ts` states the rule).
 */
import type { HardwareExtents } from '../../analysis/integers/ranges.ts'
import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import {
  buffersRead,
  children,
  dividesByVariable,
  freeVars,
  isLazy,
  perExpr,
  readsMemory,
} from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'

/** Pseudo-name for accesses with a loaded index. */
const FROM_ARRAYS = 'from arrays'

const NO_NAMES: ReadonlySet<string> = new Set()

/** Pseudo-name for accesses with a constant index that may exceed the array. */
const AT_CONSTANTS = 'at constants'

/** Returns true for names of arrays in the result of `#dependsOn`. */
const isArray = (v: string): boolean => v.endsWith('[]')

/** Lengths of buffers, computed once for the launches of a kernel. */
interface Lengths {
  /** Size parameters that are the length of a buffer. */
  readonly counts: ReadonlySet<string>
  /** Constant lengths in elements, by buffer. */
  readonly constants: ReadonlyMap<string, number>
  /** Size parameters in the length of each buffer. */
  readonly lengths: ReadonlyMap<string, readonly string[]>
}

const lengthsOf = memoize((buffers: readonly Buffer[]): Lengths => {
  return {
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
})

/**
 * Names on which accesses and divisors depend, and names that conditions protect. A condition may protect an access if they share a name.
 */
export function protectedAccesses(body: Body, buffers: readonly Buffer[], launch: HardwareExtents) {
  const { lengths, constants, counts } = lengthsOf(buffers)
  /** The names whose accesses the condition may keep in range. */
  const protects = (cond: Expr): ReadonlySet<string> => {
    const vars = says(cond)
    const isCounted = [...vars].some((v) => counts.has(v))
    return new Set([...vars, AT_CONSTANTS, ...(isCounted ? [FROM_ARRAYS] : [])])
  }
  /** Returns true if a constant index is less than the constant length of the array. */
  const isWithin = (e: Load | Search): boolean => {
    const [place] = children(e)
    const length = constants.get(e.buffer)
    return e.kind === 'load' && length !== undefined && place?.kind === 'const' && place.value < length
  }
  /** The names on which `e` depends, directly or through ranges: if `j` is below `ceildiv(n, 8)`, `0 < j` implies `8 < n`. */
  const says = (e: Expr): ReadonlySet<string> => {
    const vars = dependsOn(e)
    return new Set([...vars, ...[...vars].flatMap((v) => [...(ranges.get(v) ?? [])])])
  }
  /** The names of the variables in `e` and in the values of its lets, and the arrays that it reads, as `x[]`. */
  const dependsOn = (e: Expr): ReadonlySet<string> => {
    const vars = freeVars(e)
    const reads = buffersRead(e)
    if (reads.size === 0 && ![...vars].some((v) => behind.has(v))) return vars
    return new Set([
      ...[...vars].flatMap((v) => [v, ...(behind.get(v) ?? [])]),
      ...[...reads].map((b) => `${b}[]`),
    ])
  }
  /** Dependences of let values, by name, so that a condition on a let protects the same accesses as its value. */
  const behind = new Map<string, ReadonlySet<string>>()
  /** Dependences of the extents of loop variables and launch axes, by name. */
  const ranges = new Map<string, ReadonlySet<string>>()
  /** The names of variables and arrays on which the accesses in `e` depend. */
  const ofLoads = perExpr<ReadonlySet<string>>((e, inside) => {
    if (!readsMemory(e)) return NO_NAMES
    const own = children(e).flatMap((c) => [...inside(c)])
    if (e.kind !== 'load' && e.kind !== 'search') return new Set(own)
    const places = children(e).flatMap((c) => [...dependsOn(c)])
    return new Set([
      ...own,
      ...places,
      ...(lengths.get(e.buffer) ?? []),
      ...(places.some(isArray) ? [FROM_ARRAYS] : []),
      ...(places.length === 0 && !isWithin(e) ? [AT_CONSTANTS] : []),
    ])
  })
  /** The names on which the divisors in `e` depend, except those that a condition in `e` itself tests. */
  const ofDivisors = perExpr<ReadonlySet<string>>((e, inside) => {
    const [first, ...others] = children(e)
    if (!first) return NO_NAMES
    const guards = isLazy(e) ? dependsOn(first) : NO_NAMES
    const behind = others.flatMap((c) => [...inside(c)]).filter((v) => !guards.has(v))
    const own = dividesByVariable(e) ? dependsOn(e.b) : NO_NAMES
    const ahead = inside(first)
    return own.size + ahead.size + behind.length === 0 ? NO_NAMES : new Set([...own, ...ahead, ...behind])
  })
  for (const [axis, extent] of launch) ranges.set(axis, says(extent))
  walkStmts(body, (s) => {
    if (s.kind === 'let') behind.set(s.name, dependsOn(s.value))
    if (s.kind === 'for') ranges.set(s.var, says(s.extent))
  })
  return { ofLoads, ofDivisors, protects }
}
