/** Dependences between whole nests: whether they may run in any order, or at once. */
import type { Reduce, Stmt } from '../ir/loops.ts'
import { accessesOf, type BufferAccess } from '../ir/tree.ts'
import { allocatedIn } from './depend.ts'

/**
 * How two nests meet in a buffer. `reads`: one reads what the other writes. `writes`: both write it, other than by
 * one reducer, so that the order matters. `combines`: both combine into it by one reducer: in any order, but not
 * at once.
 */
export interface Conflict {
  readonly kind: 'reads' | 'writes' | 'combines'
  readonly buffer: string
}

/** Why two nests cannot run at once; the worst conflict, if there is any. */
export const atOnce = (a: Stmt, b: Stmt): Conflict | undefined =>
  worst(a, b, (writes) => (writes.every((r) => r.atomic) ? undefined : 'combines'))

/** Why two nests cannot change places. */
export const inAnyOrder = (a: Stmt, b: Stmt): Conflict | undefined =>
  worst(a, b, (writes) => (writes.some((r) => r.init) ? 'writes' : undefined))

type Judge = (reductions: readonly Reduce[]) => Conflict['kind'] | undefined

function worst(a: Stmt, b: Stmt, judge: Judge): Conflict | undefined {
  const [first, second] = [byBuffer(a), byBuffer(b)]
  const out: Conflict[] = []
  for (const [buffer, mine] of first) {
    const theirs = second.get(buffer)
    const kind = theirs && kindOf(mine, theirs, judge)
    if (kind) out.push({ kind, buffer })
  }
  const order = ['reads', 'writes', 'combines'] as const
  return order.map((kind) => out.find((c) => c.kind === kind)).find((c) => c !== undefined)
}

function byBuffer(s: Stmt): ReadonlyMap<string, readonly BufferAccess[]> {
  const local = allocatedIn([s])
  const out = new Map<string, BufferAccess[]>()
  for (const a of accessesOf([s])) {
    if (local.has(a.buffer)) continue
    const list = out.get(a.buffer)
    if (list) list.push(a)
    else out.set(a.buffer, [a])
  }
  return out
}

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
  return reductions.length < all.length || kinds.size > 1 ? 'writes' : judge(reductions)
}
