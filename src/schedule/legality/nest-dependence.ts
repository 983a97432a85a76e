/** Dependences between complete loop nests: whether they may run in any order, or concurrently. */

import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { groupBy, memoize } from '../../ir/memoize.ts'
import { accessesOf, type BufferAccess } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { DisjointWrites, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { partsApart } from '../coordinates/legality/part-write-conflicts.ts'

/**
 * A conflict of two loop nests in a buffer. `reads`: one loop nest reads data that the other writes. `writes`: both
 * write the buffer, not by one reducer, so their order matters. `combines`: both combine into the buffer by one
 * reducer, in any order but not concurrently.
 */
export interface Conflict {
  readonly kind: 'reads' | 'writes' | 'combines'
  readonly buffer: string
}

/** Returns the kernel with the facts of its formats about loop nests that never write the same elements. */
export function withApart(loops: Kernel2, kernel: Kernel1): Kernel2 {
  const disjointWrites = partsApart(kernel)
  return disjointWrites.length > 0 ? { ...loops, disjointWrites } : loops
}

/**
 * Returns the worst conflict that prevents two loop nests from running concurrently; undefined if there is no conflict.
 * `settled`: buffers of which the loop nests write disjoint elements.
 */
export const atOnce = (
  kernel: Kernel2,
  a: Stmt,
  b: Stmt,
  settled: ReadonlySet<string> = new Set(),
): Conflict | undefined =>
  worst(
    a,
    b,
    (writes, others) =>
      [...writes, ...others].every((x) => x.stmt.kind === 'reduce' && x.stmt.atomic) ||
      writes.every((x) => others.every((y) => decidingDimensions(kernel, x, y)))
        ? undefined
        : 'combines',
    new Set([...settled, ...ownOf(kernel, a, b)]),
  )

/** Returns the buffers that two loop nests only write, in disjoint elements. */
function ownOf(kernel: Kernel2, a: Stmt, b: Stmt): readonly string[] {
  const known = kernel.disjointWrites ?? []
  const own = known.filter((x) => x.separateInit)
  const uses = own.length > 0 ? [byBuffer(a), byBuffer(b)] : []
  return own.flatMap(({ buffer }) => {
    const [mine, theirs] = uses.map((u) => u.get(buffer) ?? [])
    const written = [...mine!, ...theirs!].every((x) => x.mode === 'write')
    return written && mine!.every((x) => theirs!.every((y) => disjointWritesBetween(known, x, y, true)))
      ? [buffer]
      : []
  })
}

/** Returns the dimensions that decide which of two writes has an element, if their loop nests are disjoint. */
export const decidingDimensions = (
  kernel: Kernel2,
  x: BufferAccess,
  y: BufferAccess,
): readonly number[] | undefined => disjointWritesBetween(kernel.disjointWrites ?? [], x, y)?.by

/** The fact that two writes are disjoint. `own`: only facts that neither loop nest initialises the other's elements. */
function disjointWritesBetween(
  known: readonly DisjointWrites[],
  x: BufferAccess,
  y: BufferAccess,
  own = false,
): DisjointWrites | undefined {
  for (const { nest } of x.path)
    for (const { fact, groupOf } of byNest(known).get(nest) ?? []) {
      const group = groupOf.get(nest)
      const isOther = ({ nest: n }: For): boolean => groupOf.has(n) && groupOf.get(n) !== group
      if (fact.buffer === x.buffer && (!own || fact.separateInit) && y.path.some(isOther)) return fact
    }
  return undefined
}

interface Grouped {
  readonly fact: DisjointWrites
  readonly groupOf: ReadonlyMap<string, number>
}

const byNest = memoize((known: readonly DisjointWrites[]): ReadonlyMap<string, readonly Grouped[]> => {
  const out = new Map<string, Grouped[]>()
  for (const fact of known) {
    const groupOf = new Map(fact.nests.flatMap((nests, k) => nests.map((nest) => [nest, k] as const)))
    for (const nest of groupOf.keys()) out.set(nest, [...(out.get(nest) ?? []), { fact, groupOf }])
  }
  return out
})

/** Returns the conflict that prevents two loop nests from changing places; undefined if there is no conflict. */
export const inAnyOrder = (a: Stmt, b: Stmt): Conflict | undefined =>
  worst(a, b, (...writes) =>
    writes.flat().some((x) => x.stmt.kind === 'reduce' && x.stmt.init) ? 'writes' : undefined,
  )

/** The conflict of updates of one buffer, by one reducer, in two loop nests; undefined if there is none. */
type Judge = (a: readonly BufferAccess[], b: readonly BufferAccess[]) => Conflict['kind'] | undefined

function worst(
  a: Stmt,
  b: Stmt,
  judge: Judge,
  except: ReadonlySet<string> = new Set(),
): Conflict | undefined {
  const [first, second] = [byBuffer(a), byBuffer(b)]
  const out: Conflict[] = []
  for (const [buffer, mine] of first) {
    if (except.has(buffer)) continue
    const theirs = second.get(buffer)
    const kind = theirs && kindOf(mine, theirs, judge)
    if (kind) out.push({ kind, buffer })
  }
  const order = ['reads', 'writes', 'combines'] as const
  return order.map((kind) => out.find((c) => c.kind === kind)).find((c) => c !== undefined)
}

/** The accesses of a loop nest to buffers from outside, by buffer. Each pair of loop nests needs it. */
const byBuffer = memoize((s: Stmt): ReadonlyMap<string, readonly BufferAccess[]> => {
  const local = allocatedNames([s])
  const outside = accessesOf([s]).filter((a) => !local.has(a.buffer))
  return groupBy(outside, (a) => a.buffer)
})

function kindOf(
  mine: readonly BufferAccess[],
  theirs: readonly BufferAccess[],
  judge: Judge,
): Conflict['kind'] | undefined {
  const all = [...mine, ...theirs]
  const writes = (xs: readonly BufferAccess[]): boolean => xs.some((x) => x.mode === 'write')
  const reads = (xs: readonly BufferAccess[]): boolean => xs.some((x) => x.mode === 'read')
  if (!writes(all)) return undefined
  if ((writes(mine) && reads(theirs)) || (reads(mine) && writes(theirs))) return 'reads'
  const reductions = all.flatMap(({ stmt: s }) => (s.kind === 'reduce' ? [s] : []))
  const kinds = new Set(reductions.map((r) => `${r.reducer.name}(${r.targets.map((t) => t.buffer).join()})`))
  return reductions.length < all.length || kinds.size > 1 ? 'writes' : judge(mine, theirs)
}
