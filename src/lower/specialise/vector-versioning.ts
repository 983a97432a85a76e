/**
 * Multiversioning of vectorised loops, for alignment and remainders. Invariant reached: a vectorised loop whose accesses are aligned only
 * for some sizes has two versions, under a test of these sizes: `if (d % 4 == 0) { … } else { … }`. In the first version, later passes use
 * the test as a fact. If accesses are aligned but the loop may end within a vector, all lanes are tested at once: `if (last lane exists) {
 * unconditional } else { one test per lane }`.
 * Sizes are uniform, so versions may contain barriers, and the test is outside of all loops. It moves further inside if a version would
 * allocate shared memory or be very long.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { type Linear, linear, minus } from '../../analysis/integers/linear.ts'
import { startOfRun } from '../../analysis/integers/mixed-radix.ts'
import { unrolledSize } from '../../analysis/loops/segmented-loops.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, conjuncts, type Expr, eq, int, mod, variable } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf, type BufferAccess } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { buffersByName, loopsOf } from '../../ir/statements/definitions.ts'
import type { Fact, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, mapBodies, rewriteStmts, someStmt, stmt } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'

/** Width of the longest access in bytes. */
const ACCESS = 16
/** Maximum number of statements, after unrolling, of a second version. */
const LONGEST = 1024

export function versionVectors(body: Body, kernel: Kernel2, names: Names): Body {
  const together = vectorizeRegisterLoops(body)
  const out = multiversioning(together, kernel, names)(together, new Facts({ sizes: kernel.facts }))
  return out === together ? body : out
}

/** Also vectorises loops over registers that vectorised loops access, because both will be unrolled together. */
function vectorizeRegisterLoops(body: Body): Body {
  const registers = allocatedNames(body, 'register')
  const over = (loop: For): readonly string[] =>
    accessesOf(loop.body).flatMap((a) =>
      registers.has(a.buffer) && a.index.some((e) => mentions(e, loop.var)) ? [a.buffer] : [],
    )
  const lanes = new Map(
    loopsOf(body).flatMap((l) => (isVector(l) ? over(l).map((b) => [b, lanesOf(l)]) : [])),
  )
  return rewriteStmts(body, {
    stmt: (s) =>
      s.kind === 'for' &&
      s.mode.kind === 'serial' &&
      loopsOf(s.body).length === 0 &&
      over(s).some((b) => lanes.get(b) === lanesOf(s))
        ? stmt<For>({ ...s, mode: { kind: 'vectorize' } })
        : undefined,
  })
}

function multiversioning(body: Body, kernel: Kernel2, names: Names) {
  const sizeNames = new Set(kernel.params.filter((p) => p.kind === 'size').map((p) => p.name))
  const buffers = [...buffersByName(kernel.buffers, body)]
  const inMemory = new Map(buffers.filter(([, b]) => b.scope !== 'register'))
  const versionsIn = (list: Body, facts: Facts): Body => {
    const missingFacts = list.map((s) => factsMissingFor(s, facts))
    if (missingFacts.every((w) => w.length === 0)) return mapSame(list, (s) => guardByLastLane(s, facts))
    const first = list.findIndex(hasVector)
    const last = list.findLastIndex(hasVector)
    const binds = list.slice(first, last + 1).some((s) => s.kind === 'let' || s.kind === 'alloc')
    const end = binds ? list.length : last + 1
    const range = list.slice(first, end)
    const branches = range.every((s) => s.kind === 'if')
    if (branches || !isCopied(range))
      return list.flatMap((s) => (range.length > 1 ? versionsIn([s], facts) : [versionInside(s, facts)]))
    const missing = strongest(missingFacts.flat())
    const cond = all(missing.map((f) => eq(mod(variable(f.size), int(f.by)), int(0))))
    const then = versionsIn(copyStatements(range, names), facts.with(missing))
    const others = (from: number, to?: number): Body =>
      list.slice(from, to).map((s) => guardByLastLane(s, facts))
    return [...others(0, first), when(cond, then, others(first, end)), ...others(end)]
  }
  const versionInside = (s: Stmt, facts: Facts): Stmt => {
    const inside = factsInside(s, facts)
    return mapBodies(s, (b, k) => versionsIn(b, inside(k)))
  }
  /** The facts about sizes that would align the vectorised loops inside. */
  const factsMissingFor = (s: Stmt, facts: Facts): readonly Fact[] => {
    if (s.kind === 'for' && isVector(s)) return missingForLoop(s, facts)
    const inside = factsInside(s, facts)
    return bodiesOf(s).flatMap((b, k) => b.flatMap((x) => factsMissingFor(x, inside(k))))
  }
  const missingForLoop = (loop: For, facts: Facts): readonly Fact[] => {
    const missing = accessesOf(loop.body).flatMap((a) => alignmentOf(a, loop, facts)?.missing ?? [])
    return missing.length === 0 || laneConditions(loop, facts.with(missing)).every((c) => inLastLane(c, loop))
      ? missing
      : []
  }
  /** The conditions that lanes of one access evaluate individually. */
  const laneConditions = (loop: For, facts: Facts): readonly Expr[] => {
    const widths = accessesOf(loop.body).flatMap((a) => {
      const alignment = alignmentOf(a, loop, facts)
      return alignment?.missing.length === 0 ? [alignment.width] : []
    })
    return widths.length > 0
      ? conditionsOn(loop).filter((c) => !isUniform(c, loop, Math.max(...widths), facts))
      : []
  }
  /** The number of lanes that one access can cover, and the facts that are missing for it. Undefined if lanes are not adjacent. */
  const alignmentOf = (
    { buffer, index, whole }: BufferAccess,
    loop: For,
    facts: Facts,
  ): { readonly width: number; readonly missing: readonly Fact[] } | undefined => {
    const memory = inMemory.get(buffer)
    const base = memory && !whole ? startOfRun(index[0]!, loop.var) : undefined
    if (!memory || !base) return undefined
    const sizes = [...base.terms.values()].flatMap(({ term }) =>
      [...freeVars(term)].filter((v) => sizeNames.has(v)),
    )
    const widest = Math.min(lanesOf(loop), ACCESS / DTYPE_BYTES[memory.dtype])
    for (let width = widest; width >= 2; width /= 2) {
      if (base.constant % width !== 0) continue
      const isAligned = (extra: readonly Fact[]): boolean =>
        facts.with(extra).divisorOfTerms(base) % width === 0
      if (isAligned([])) return { width, missing: [] }
      let missing = [...new Set(sizes)].map((size): Fact => ({ size, relation: 'multiple', by: width }))
      if (!isAligned(missing)) continue
      for (const f of missing) {
        const fewer = missing.filter((x) => x !== f)
        if (isAligned(fewer)) missing = fewer
      }
      return { width, missing }
    }
    return undefined
  }
  /** Splits a condition `x + lane < end` into the sum of the first lane and the end; undefined for other conditions. */
  const firstLane = (c: Expr, loop: For): { readonly first: Linear; readonly end: Expr } | undefined => {
    if (c.kind !== 'binary' || c.op !== 'lt' || mentions(c.b, loop.var)) return undefined
    const first = hasWrappingTerms(c.a) || hasWrappingTerms(c.b) ? undefined : startOfRun(c.a, loop.var)
    return first && { first, end: c.b }
  }
  /** Returns true if a condition is equal in `width` lanes: `x + lane < d` with x and d divisible by `width`. */
  const isUniform = (c: Expr, loop: For, width: number, facts: Facts): boolean => {
    const compared = firstLane(c, loop)
    if (!compared) return false
    const difference = minus(compared.first, linear(compared.end))
    return facts.divisorOfTerms(difference) % width === 0 && difference.constant % width === 0
  }
  /** The condition in the last lane, which implies it in all lanes; undefined for other conditions. */
  const inLastLane = (c: Expr, loop: For): Expr | undefined =>
    firstLane(c, loop) && substitute(c, new Map([[loop.var, int(lanesOf(loop) - 1)]]))
  /** Tests all lanes of aligned vectorised loops at once. */
  const guardByLastLane = (s: Stmt, facts: Facts): Stmt => {
    if (s.kind !== 'for' || !isVector(s)) {
      const inside = factsInside(s, facts)
      return mapBodies(s, (b, k) => mapSame(b, (x) => guardByLastLane(x, inside(k))))
    }
    const open = laneConditions(s, facts)
    const last = open.map((c) => inLastLane(c, s))
    if (open.length === 0 || last.some((c) => !c)) return s
    const [only] = s.body
    if (s.body.length !== 1 || only?.kind !== 'if') return s
    const rest = conjuncts(only.cond).filter((c) => !open.includes(c))
    const body = rest.length > 0 ? [stmt({ ...only, cond: all(rest) })] : only.then
    return when(all(last as Expr[]), copyStatements([stmt<For>({ ...s, body })], names), [s])
  }
  return versionsIn
}

/** Returns the facts in the k-th body of a statement. */
function factsInside(s: Stmt, facts: Facts): (k: number) => Facts {
  const then = s.kind === 'if' ? facts.where(s.cond) : facts
  return (k) => (k === 0 ? then : facts)
}

const isVector = (l: For): boolean => l.mode.kind === 'vectorize'

const hasVector = (s: Stmt): boolean => loopsOf([s]).some(isVector)

/** Returns true if a second version is short enough and allocates no shared memory. */
const isCopied = (body: Body): boolean =>
  !someStmt(body, (s) => s.kind === 'alloc' && s.buffer.scope !== 'register') && unrolledSize(body) <= LONGEST

const lanesOf = (loop: For): number => (loop.extent.kind === 'const' ? loop.extent.value : 1)

/** Conjuncts on the loop variable in the condition that encloses the whole body. */
function conditionsOn(loop: For): readonly Expr[] {
  const [only] = loop.body
  return only?.kind === 'if' ? conjuncts(only.cond).filter((c) => mentions(c, loop.var)) : []
}

/** Keeps one fact per size. All divisors are powers of two, so the greatest implies the others. */
function strongest(facts: readonly Fact[]): readonly Fact[] {
  const by = new Map<string, Fact>()
  for (const f of facts) if (f.by > (by.get(f.size)?.by ?? 0)) by.set(f.size, f)
  return [...by.values()]
}
