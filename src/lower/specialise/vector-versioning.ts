/**
 * Multiversioning of vectorised loops, for alignment and remainders. Invariant reached: a vectorised loop whose accesses are aligned only
 * for some sizes has two versions, under a test of these sizes: `if (d % 4 == 0) { … } else { … }`. In the first version, later passes use
 * the test as a fact. If accesses are aligned but the loop may end within a vector, all lanes are tested at once: `if (last lane exists) {
 * unconditional } else { one test per lane }`.
 * Sizes are uniform, so versions may contain barriers, and the test is outside of all loops. It moves further inside if a version would
 * allocate shared memory or be very long.
 */

import type { Facts } from '../../analysis/integers/facts.ts'
import { linear, minus } from '../../analysis/integers/linear.ts'
import { startOfRun } from '../../analysis/integers/mixed-radix.ts'
import { nestedFacts } from '../../analysis/integers/simplify-under.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, conjuncts, type Expr, eq, int, mod, variable } from '../../ir/expressions/expr.ts'
import { freeVars, mentions } from '../../ir/expressions/expr-tree.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import { accessesOf, type BufferAccess } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { buffersByName, loopsOf } from '../../ir/statements/definitions.ts'
import type { Fact, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { atLoops, type Finder, lastIteration, type Place, specialise } from './specialise.ts'

/** Width of the longest access in bytes. */
const ACCESS = 16

export function versionVectors(body: Body, kernel: Kernel2, names: Names): Body {
  const together = vectorizeRegisterLoops(body)
  const options = { names, sizes: kernel.facts }
  const { alignment, lastLane } = vectorFinders(together, kernel)
  const out = specialise(specialise(together, alignment, options), atLoops(lastLane), options)
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

function vectorFinders(body: Body, kernel: Kernel2) {
  const sizeNames = new Set(kernel.params.filter((p) => p.kind === 'size').map((p) => p.name))
  const buffers = [...buffersByName(kernel.buffers, body)]
  const inMemory = new Map(buffers.filter(([, b]) => b.scope !== 'register'))
  /** Finds the statements whose vectorised loops would be aligned for some sizes. */
  const alignment: Finder = (list, { facts }) => {
    const missing = strongest(list.flatMap((s) => factsMissingFor(s, facts)))
    const from = list.findIndex(hasVector)
    const last = list.findLastIndex(hasVector)
    const range = list.slice(from, last + 1)
    if (missing.length === 0 || range.every((s) => s.kind === 'if')) return undefined
    const to = range.some((s) => s.kind === 'let' || s.kind === 'alloc') ? list.length : last + 1
    return { from, to, when: all(missing.map((f) => eq(mod(variable(f.size), int(f.by)), int(0)))) }
  }
  /** The facts about sizes that would align the vectorised loops inside. */
  const factsMissingFor = (s: Stmt, facts: Facts): readonly Fact[] => {
    if (s.kind === 'for' && isVector(s)) return missingForLoop(s, facts)
    const inside = nestedFacts(s, facts)
    return bodiesOf(s).flatMap((b, k) => b.flatMap((x) => factsMissingFor(x, inside(k))))
  }
  const missingForLoop = (loop: For, facts: Facts): readonly Fact[] => {
    const missing = accessesOf(loop.body).flatMap((a) => alignmentOf(a, loop, facts)?.missing ?? [])
    return lastIteration(laneConditions(loop, facts.with(missing)), [loop]) ? missing : []
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
  /** Returns true if a condition is equal in `width` lanes: `x + lane < d` with x and d divisible by `width`. */
  const isUniform = (c: Expr, loop: For, width: number, facts: Facts): boolean => {
    if (c.kind !== 'binary' || c.op !== 'lt' || mentions(c.b, loop.var)) return false
    const first = hasWrappingTerms(c.a) || hasWrappingTerms(c.b) ? undefined : startOfRun(c.a, loop.var)
    const difference = first && minus(first, linear(c.b))
    if (!difference || difference.constant % width !== 0) return false
    return facts.divisorOfTerms(difference) % width === 0
  }
  /** Finds the aligned vectorised loops in which all lanes exist if the last one does. */
  const lastLane = (s: For, { facts }: Place) => {
    const holds = isVector(s) ? laneConditions(s, facts) : []
    return holds.length > 0 ? lastIteration(holds, [s]) : undefined
  }
  return { alignment, lastLane }
}

const isVector = (l: For): boolean => l.mode.kind === 'vectorize'

const hasVector = (s: Stmt): boolean => loopsOf([s]).some(isVector)

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
