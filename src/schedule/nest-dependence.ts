/** Dependences between whole nests: whether they may run in any order, or at once. */

import { accessesOf, type BufferAccess } from '../ir/accesses.ts'
import { allocatedIn } from '../ir/bindings.ts'
import type { DisjointWrites, For, Kernel2, Stmt } from '../ir/loops.ts'
import { remembered } from '../ir/remembered.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { partsApart } from './coords/part-write-conflicts.ts'

/**
 * How two nests meet in a buffer. `reads`: one reads what the other writes. `writes`: both write it, other than by
 * one reducer, so that the order matters. `combines`: both combine into it by one reducer: in any order, but not
 * at once.
 */
export interface Conflict {
  readonly kind: 'reads' | 'writes' | 'combines'
  readonly buffer: string
}

/** What the formats of a kernel say about nests: which never write the same elements. */
export function withApart(loops: Kernel2, kernel: Kernel1): Kernel2 {
  const disjointWrites = partsApart(kernel)
  return disjointWrites.length > 0 ? { ...loops, disjointWrites } : loops
}

/**
 * Why two nests cannot run at once; the worst conflict, if there is any. `settled`: buffers of which each nest writes
 * elements of its own.
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

/** Buffers that two nests only write, and neither an element of the other's. */
function ownOf(kernel: Kernel2, a: Stmt, b: Stmt): readonly string[] {
  const known = kernel.disjointWrites ?? []
  const own = known.filter((x) => x.own)
  const uses = own.length > 0 ? [byBuffer(a), byBuffer(b)] : []
  return own.flatMap(({ buffer }) => {
    const [mine, theirs] = uses.map((u) => u.get(buffer) ?? [])
    const written = [...mine!, ...theirs!].every((x) => x.mode === 'write')
    return written && mine!.every((x) => theirs!.every((y) => disjointWritesBetween(known, x, y, true)))
      ? [buffer]
      : []
  })
}

/**
 * Where two writes are of nests whose elements differ, by the nests that their loops come from: the dimensions that decide
 * which of them has an element, if they are known.
 */
export const decidingDimensions = (
  kernel: Kernel2,
  x: BufferAccess,
  y: BufferAccess,
): readonly number[] | undefined => disjointWritesBetween(kernel.disjointWrites ?? [], x, y)?.by

/** `own`: only what says that neither starts elements of the other. */
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
      if (fact.buffer === x.buffer && (!own || fact.own) && y.path.some(isOther)) return fact
    }
  return undefined
}

/** A fact, and which of its groups a nest is in. */
interface Grouped {
  readonly fact: DisjointWrites
  readonly groupOf: ReadonlyMap<string, number>
}

const byNest = remembered((known: readonly DisjointWrites[]): ReadonlyMap<string, readonly Grouped[]> => {
  const out = new Map<string, Grouped[]>()
  for (const fact of known) {
    const groupOf = new Map(fact.nests.flatMap((nests, k) => nests.map((nest) => [nest, k] as const)))
    for (const nest of groupOf.keys()) out.set(nest, [...(out.get(nest) ?? []), { fact, groupOf }])
  }
  return out
})

/** Why two nests cannot change places. */
export const inAnyOrder = (a: Stmt, b: Stmt): Conflict | undefined =>
  worst(a, b, (...writes) =>
    writes.flat().some((x) => x.stmt.kind === 'reduce' && x.stmt.init) ? 'writes' : undefined,
  )

/** What is wrong with updates of one buffer, by one reducer, in two nests. */
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

/** Asked of each pair of nests. */
const byBuffer = remembered((s: Stmt): ReadonlyMap<string, readonly BufferAccess[]> => {
  const local = allocatedIn([s])
  const out = new Map<string, BufferAccess[]>()
  for (const a of accessesOf([s])) {
    if (local.has(a.buffer)) continue
    const list = out.get(a.buffer)
    if (list) list.push(a)
    else out.set(a.buffer, [a])
  }
  return out
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
