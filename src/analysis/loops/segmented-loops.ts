/** Segmented reductions: loops whose neighbouring iterations mostly combine into the same element. */
import { add, type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { accessesOf, type BufferAccess, readsOf, writesOf } from '../../ir/statements/accesses.ts'
import { boundVarsOf } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { elementChanges } from '../../ir/statements/reductions.ts'
import { define } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, walkStmts } from '../../ir/statements/tree.ts'
import { linear } from '../integers/linear.ts'

export interface Segments {
  /** The only reduction inside of the loop whose element changes with the loop. */
  readonly reduce: Reduce
  /** The loops over different elements between the loop and the reduction, with constant extents. */
  readonly inner: readonly For[]
  /** The parts of the target indices that depend on the loop. */
  readonly parts: readonly Expr[]
  /**
   * For each target and dimension: the index of its part (undefined if it does not depend on the loop), and the
   * expression added to the part.
   */
  readonly rest: readonly (readonly { readonly part?: number | undefined; readonly more: Expr }[])[]
}

/**
 * Returns whether a loop contains only the reduction and loops over its elements, so that its values can be computed in
 * batches.
 */
export function isPerfect(loop: For, { inner, reduce }: Segments): boolean {
  const nest = [loop, ...inner]
  return nest.every((l, k) => l.body.length === 1 && l.body[0] === (nest[k + 1] ?? reduce))
}

/** Returns the segments of a loop, or the reason why it has no segments. */
export function segmentsOf(loop: For): Segments | string {
  const found: { reduce: Reduce; path: readonly For[]; conditional: boolean }[] = []
  const visit = (body: Body, path: readonly For[], conditional: boolean): void => {
    for (const s of body) {
      if (s.kind === 'for') visit(s.body, [...path, s], conditional)
      else if (s.kind === 'if') {
        visit(s.then, path, true)
        visit(s.else, path, true)
      } else if (s.kind === 'reduce' && elementChanges(s, loop)) found.push({ reduce: s, path, conditional })
    }
  }
  visit(loop.body, [], false)
  const [only] = found
  if (!only) return `no element that ${loop.name} combines into changes with it`
  if (found.length > 1) return `${loop.name} combines into elements of several statements`
  const { reduce, path, conditional } = only
  const bound = boundVarsOf(loop.body)
  const written = writesOf(loop.body)
  const buffers = new Set(reduce.targets.map((t) => t.buffer))
  if (conditional) return `a condition inside of ${loop.name} decides whether it combines`
  if (reduce.init) return `the elements start at the identity inside of ${loop.name}`
  const others = accessesOf(loop.body).some((a) => buffers.has(a.buffer) && a.stmt !== reduce)
  if (others) return `${loop.name} uses ${[...buffers].join(' and ')} elsewhere`
  let own: string | undefined
  walkStmts(loop.body, (s) => {
    if (s.kind === 'alloc' && buffers.has(s.buffer.name)) own = s.buffer.name
  })
  if (own !== undefined) return `each iteration of ${loop.name} has a ${own} of its own`
  const inner = path.filter((l) => elementChanges(reduce, l))
  for (const l of path) {
    if (l.mode.kind === 'bind') return `${l.name} inside of it is bound to ${l.mode.to}`
    if (l.guards.some((g) => mentions(g, loop.var))) return `a condition on ${l.name} depends on ${loop.name}`
  }
  for (const l of inner) {
    if (l.reduce) return `the element changes with the reduction loop ${l.name}`
    if (l.extent.kind !== 'const') return `${l.name} has no constant extent`
    const kept = new Set(inner.map((x) => x.var))
    if (l.guards.some((g) => [...freeVars(g)].some((v) => bound.has(v) && !kept.has(v))))
      return `a condition on ${l.name} depends on a loop that combines`
  }
  const parts: Expr[] = []
  const keys = new Map<string, number>()
  const rest: { part?: number | undefined; more: Expr }[][] = []
  for (const t of reduce.targets) {
    const dims: { part?: number | undefined; more: Expr }[] = []
    for (const e of t.index) {
      const sum = linear(e)
      let [part, more]: [Expr, Expr] = [int(0), int(sum.constant)]
      for (const { term, coefficient } of sum.terms.values()) {
        const scaled = mul(term, int(coefficient))
        if (!mentions(term, loop.var)) more = add(scaled, more)
        else if (mentionsSome(term, bound))
          return `the element depends on ${loop.name} and a loop inside of it together`
        else part = add(part, scaled)
      }
      if (part.kind === 'const') dims.push({ more })
      else {
        const key = keyOf(part)
        const known = keys.get(key) ?? parts.push(part) - 1
        keys.set(key, known)
        dims.push({ part: known, more })
      }
    }
    rest.push(dims)
  }
  // Expressions that are evaluated outside of the loop, when an element is complete.
  const outside = [...parts, ...rest.flat().map((d) => d.more), ...inner.flatMap((l) => l.guards)]
  const reads = readsOf(outside.map((value) => define('', value)))
  if ([...reads].some((b) => written.has(b))) return `${loop.name} writes what decides on the element`
  return { reduce, inner, parts, rest }
}

// Roles of loops in the writes of a loop nest: the rows of its result, contiguous elements, and reductions. A
// schedule that names roles fits the loops of any format (the roles in hand-written schedules of SparseTIR
// and Halide).

/**
 * `contiguous`: iterations write neighbours along the last dimension of a result with several dimensions. `rows`: they
 * write different elements that are not neighbours. `scatter`: they combine into changing elements, in order (as in
 * balanced chunks) or not. `reduction`: they combine into one element.
 */
export type LoopRole = 'rows' | 'contiguous' | 'scatter' | 'reduction'

export function rolesIn(top: For): ReadonlyMap<string, LoopRole> {
  const targets = accessesOf([top]).filter((a) => a.mode === 'write')
  return new Map(loopsOf([top]).map((l) => [l.var, roleOf(l, targets)]))
}

function roleOf(l: For, targets: readonly BufferAccess[]): LoopRole {
  const moved = targets.filter((t) => t.index.some((e) => mentions(e, l.var)))
  if (l.reduce) return moved.length > 0 ? 'scatter' : 'reduction'
  const alongLast = ({ index }: BufferAccess): boolean =>
    index.length > 1 && index.every((e, k) => mentions(e, l.var) === (k === index.length - 1))
  return moved.length > 0 && moved.every(alongLast) ? 'contiguous' : 'rows'
}

// The number of statements after loops are unrolled.

/** Returns the number of copies that an unrolled loop makes of its body; 1 for other loops. */
export function copiesOf(l: For): number {
  if (l.mode.kind !== 'unroll' && l.mode.kind !== 'vectorize') return 1
  const factor = l.mode.kind === 'unroll' ? l.mode.factor : null
  // A factor leaves a remainder, which is a separate loop.
  if (factor !== null) return factor + 1
  return l.extent.kind === 'const' ? Math.max(1, l.extent.value) : 1
}

/** Returns the number of statements of the body, with the copies of unrolled loops. */
export const unrolledSize = (body: Body, copies: (l: For) => number = copiesOf): number =>
  body.reduce((n, s) => n + sizeOf(s, copies), 0)

const sizeOf = (s: Stmt, copies: (l: For) => number): number => {
  const inside = bodiesOf(s).reduce((n, b) => n + unrolledSize(b, copies), 0)
  return s.kind === 'for' ? copies(s) * Math.max(1, inside) : 1 + inside
}
