/**
 * Loop-carried dependence testing: data races of a parallel loop.
 * The analysis relies on the contract of Stage II, which Stage I checks. If `for.reduce` is false, a statement writes
 * different elements in different iterations, whatever the loops around and inside do; if it is true, a reducer
 * combines the values of common elements.
 */
import { type Shared, spaceIn, writtenIn } from '../../analysis/dependence/loop-writes.ts'
import type { Space } from '../../analysis/dependence/subscript-injectivity.ts'
import type { Problem } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, not } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { type BufferAccess, writesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { isSingleIteration, reductionsOf } from '../../ir/statements/reductions.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'

/**
 * Returns whether the contract excludes conflicts between iterations. By the contract, the index of one statement alone
 * makes the statement's elements differ between iterations. The same follows for all accesses if they go to the same
 * element. It also follows if the accesses agree in the dimensions that mention the loop (several dimensions are digits
 * of a fused loop), and if all other dimensions have the same values in every iteration of the loop, and of the inner
 * loops in those dimensions (the halves of a split).
 */
function sameByContract(shared: Shared, loop: For, space: Space): boolean {
  const { accesses } = shared
  const v = loop.var
  const first = accesses[0]!
  if (loop.reduce || shared.moving || accesses.some((a) => a.whole)) return false
  if (first.index.some((e) => mentions(e, v)) && accesses.every((a) => isSameElement(first, a))) return true
  const own = new Set([...first.index.keys()].filter((d) => accesses.some((a) => mentions(a.index[d]!, v))))
  const varying = new Set([v])
  for (const d of own) {
    const e = first.index[d]!
    if (accesses.some((a) => keyOf(a.index[d]!) !== keyOf(e))) return false
    for (const x of freeVars(e)) if (space.inner.has(x)) varying.add(x)
  }
  const isApart = (e: Expr): boolean => [...varying].every((x) => !variesWith(e, x, space))
  return own.size > 0 && accesses.every((a) => a.index.every((e, d) => own.has(d) || isApart(e)))
}

/**
 * Returns whether both accesses have the same element in every iteration of the same loops, regardless of conditions.
 */
const isSameElement = (a: BufferAccess, b: BufferAccess): boolean =>
  a.path.length === b.path.length &&
  a.path.every((l, k) => l === b.path[k]) &&
  a.index.every((e, d) => sameExpr(e, b.index[d]!))

/** Returns whether the values of an expression depend on `v`, also through extents and guards of inner loops. */
function variesWith(e: Expr, v: string, space: Space, seen: Set<string> = new Set()): boolean {
  for (const x of freeVars(e)) {
    if (x === v) return true
    const loop = space.inner.get(x)
    if (!loop || seen.has(x)) continue
    seen.add(x)
    if ([loop.extent, ...loop.guards].some((y) => variesWith(y, v, space, seen))) return true
  }
  return false
}

/** Returns a key of the reduction if all accesses are writes by reductions of one kind, otherwise undefined. */
function reductionKind(accesses: readonly BufferAccess[]): string | undefined {
  let kind: string | undefined
  for (const a of accesses) {
    if (a.mode !== 'write' || a.stmt.kind !== 'reduce') return undefined
    const own = `${a.stmt.reducer.name}(${a.stmt.targets.map((t) => t.buffer).join(',')})`
    if (kind !== undefined && own !== kind) return undefined
    kind = own
  }
  return kind
}

const writersOf = (accesses: readonly BufferAccess[]): ReadonlySet<Stmt> =>
  new Set(accesses.flatMap((a) => (a.mode === 'write' ? [a.stmt] : [])))

interface IterationFacts {
  /** The first dependence that fixes the order of iterations; undefined if there is no dependence. */
  readonly dependence?: { readonly buffer: string; readonly reason: string }
  readonly combining: readonly Reduce[]
}

/** Returns whether the iterations of a loop may run in any order, and the reductions that combine them. */
export function iterationsOf(kernel: Kernel2, loop: For): IterationFacts {
  const space = spaceIn(kernel, loop)
  const combining: Reduce[] = []
  // A loop of one iteration has no dependence.
  if (!loop.reduce && isSingleIteration(loop)) return { combining }
  for (const shared of writtenIn(kernel, loop, space)) {
    const { buffer, accesses } = shared
    if (sameByContract(shared, loop, space) || shared.disjoint) continue
    const tied = (reason: string): IterationFacts => ({ dependence: { buffer, reason }, combining })
    const reads = accesses.some((a) => a.mode === 'read')
    if (reads) return tied(`iterations read what others write to ${buffer}`)
    if (!loop.reduce && writersOf(accesses).size === 1) continue
    if (reductionKind(accesses) === undefined)
      return tied(`iterations write the same elements of ${buffer} other than by one reducer`)
    const reductions = [...writersOf(accesses)] as Reduce[]
    if (!loop.reduce && reductions.some((r) => r.init))
      return tied(`every iteration starts elements of ${buffer} anew`)
    combining.push(...reductions)
  }
  return { combining }
}

/** Returns the reason of `schedule/mixed-reduction`: only some of the loops of a `fuse` are reductions. */
export function mixedReduction(
  loops: readonly { readonly name: string; readonly reduce: boolean }[],
): Problem {
  const names = loops.map((l) => l.name)
  const leading = names.slice(
    0,
    loops.findIndex((l) => l.reduce !== loops[0]!.reduce),
  )
  return {
    message: `of ${names.join(', ')} only ${loops.flatMap((l) => (l.reduce ? [l.name] : [])).join(', ')} reduce`,
    expected: 'only reduction loops, or no reduction loop',
    hint:
      leading.length > 1
        ? `fuse (${leading.join(', ')})`
        : 'reorder loops of the same kind to be adjacent, then fuse',
  }
}

// Output dependences under interchange (reorder): whether iterations of a spatial loop still run over
// different elements after it leaves reduction loops.

/**
 * Returns the spatial loops of `next` (an order of `chain`, both from the outside in) whose iterations may conflict
 * after they leave reduction loops around them. Elements differ between iterations of the spatial loop in one iteration
 * of the reduction loop. The elements differ in different iterations of the reduction loop, too, unless a dimension
 * ties the two loops together, directly or through a variable that changes inside. Proof: let iterations l ≠ l' of the
 * spatial loop be in iterations r and r' of the reduction loop. The element of (l', r) differs from that of (l, r). If
 * all other variables are equal, the element can differ only in dimensions that are tied to l. No such dimension
 * mentions r, so the element of (l', r') differs there, too.
 */
export function dependentAfterReorder(
  chain: readonly For[],
  next: readonly For[],
  body: readonly Stmt[],
): readonly For[] {
  const targets = reductionsOf(body).flatMap((r) => r.reduce.targets)
  return next.filter((l, k) => {
    if (l.reduce) return false
    const left = next.slice(k + 1).filter((r) => r.reduce && chain.indexOf(r) < chain.indexOf(l))
    if (left.length === 0) return false
    const fixed = new Set(next.slice(0, k).map((x) => x.var))
    return targets.some((t) => {
      const tied = tiedTo(l.var, t.index, fixed)
      return left.some((r) => tied.has(r.var))
    })
  })
}

/**
 * Returns the variables that are tied to `v`: they occur in one dimension with `v`, or with another tied variable.
 * Variables in `fixed` do not count.
 */
function tiedTo(v: string, index: readonly Expr[], fixed: ReadonlySet<string>): ReadonlySet<string> {
  const out = new Set([v])
  for (let changed = true; changed; ) {
    const before = out.size
    for (const e of index) {
      const own = [...freeVars(e)].filter((x) => !fixed.has(x))
      if (own.some((x) => out.has(x))) for (const x of own) out.add(x)
    }
    changed = out.size > before
  }
  return out
}

// Distribution of conditions over loop nests. Invariant: each statement of a kernel's body is one loop nest,
// possibly under conditions. Each statement becomes a launch, and blocks wait for each other between launches
// only, so a loop nest that a step adds gets its own copy of the condition.

/**
 * Rewrites `if c { a; b }` → `if c { a }; if c { b }`, `if c { a } else { b }` → `if c { a }; if not c { b }`, if a
 * writes nothing that c reads. A grid has the size of one loop nest, and a branch without these loops must run
 * nevertheless.
 */
export function distributeConditions(body: Body): Body {
  // Runs after each step over all loop nests. The loop is by index because V8 iterates frozen arrays slowly.
  for (let k = 0; k < body.length; k++) if (body[k]!.kind === 'if') return body.flatMap(distributed)
  return body
}

function distributed(s: Stmt): Body {
  if (s.kind !== 'if' || loopsOf([s]).length === 0) return [s]
  if (s.else.length > 0) {
    if (readsSome(s.cond, writesOf(s.then))) return [s]
    return [
      stmt<Stmt>({ ...s, else: [] }),
      stmt<Stmt>({ ...s, cond: not(s.cond), then: s.else, else: [] }),
    ].flatMap(distributed)
  }
  const then = s.then.flatMap(distributed)
  if (then.length < 2) return [s]
  const written = writesOf(then.slice(0, -1))
  if (readsSome(s.cond, written)) return [s]
  return then.map((x) => stmt<Stmt>({ ...s, then: [x] }))
}

/** Returns whether a statement has one loop nest at most, possibly under conditions. */
export const isAlone = (s: Stmt): boolean =>
  s.kind !== 'if' || (s.else.length === 0 && s.then.length < 2 && s.then.every(isAlone))
