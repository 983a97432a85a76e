/**
 * Shared-memory allocation by liveness: the shared arrays of a launch reside in one block of memory. Arrays with disjoint
 * live ranges share storage (Chaitin's interference over the launch's statements in order), with a barrier between their
 * uses; for example, the tile for copying out reuses the operands' memory. Statements under a condition count individually if
 * a barrier among them implies that the condition is uniform; a loop counts as one statement.
 *
 * An asynchronous copy is not ordered after earlier stores of threads to its target, whatever barrier is in between (PTX ISA,
 * "Async proxy"), so its target never reuses memory that threads stored to before.
 */

import { invariant } from '../ast/diagnostic.ts'
import { accessesOf } from '../ir/accesses.ts'
import { DTYPE_BYTES } from '../ir/dtype.ts'
import type { Buffer, Launch, Stmt } from '../ir/loops.ts'
import { barrier } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, piecesOf, walkStmts, withBodies } from '../ir/tree.ts'
import { isUniformCondition } from '../ir/uniform-conditions.ts'
import { sharedAlign } from './printer.ts'

export interface SharedMemory {
  /** The launch, with barriers before uses of reused memory. */
  readonly launch: Launch
  readonly bytes: number
  /** Alignment of the whole block in bytes. */
  readonly align: number
  /** In bytes, by name. */
  readonly offsets: ReadonlyMap<string, number>
  /** True if arrays share memory. */
  readonly reused: boolean
}

interface Placed {
  readonly name: string
  readonly offset: number
  readonly end: number
  /** Live range: first and last statement that touches the array. */
  readonly first: number
  readonly last: number
  readonly written: Written
}

/** Writers of an array: threads, or copies that signal a barrier. */
interface Written {
  readonly stored: boolean
  readonly copied: boolean
}

export function placeShared(launch: Launch): SharedMemory {
  const arrays = allocated(launch.body)
  const moments = momentsOf(launch.body)
  const { stored, copied } = writersOf(launch.body)
  const placedIn = (order: readonly Buffer[]): readonly Placed[] => {
    const placed: Placed[] = []
    for (const b of order) {
      const [first, last] = moments.get(b.name) ?? [0, Infinity]
      const written = { stored: stored.has(b.name), copied: copied.has(b.name) }
      placed.push(place(b, placed, { first, last, written }))
    }
    return placed
  }
  // A small array that is always in use must not part what two large ones could share.
  const declared = placedIn(arrays)
  const decreasing = placedIn(arrays.toSorted((a, b) => bytesOf(b) - bytesOf(a)))
  const placed = end(decreasing) < end(declared) ? decreasing : declared
  const body = withBarriers(launch.body, placed)
  return {
    launch: body === launch.body ? launch : { ...launch, body },
    bytes: end(placed),
    align: Math.max(1, ...arrays.map(sharedAlign)),
    offsets: new Map(placed.map((p) => [p.name, p.offset])),
    reused: placed.some((p) => placed.some((q) => overlap(p, q))),
  }
}

const overlap = (p: Placed, q: Placed): boolean => p !== q && q.offset < p.end && p.offset < q.end

const end = (placed: readonly Placed[]): number => Math.max(0, ...placed.map((p) => p.end))

function allocated(body: Body): readonly Buffer[] {
  const out: Buffer[] = []
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') out.push(s.buffer)
  })
  return out
}

/**
 * Buffers accessed by one statement of the order; for a condition that is uniform across threads, those of the condition
 * only.
 */
const touchedBy = (s: Stmt): ReadonlySet<string> =>
  new Set(accessesOf([isUniformCondition(s) ? { ...s, then: [], else: [] } : s]).map((a) => a.buffer))

/**
 * The first and the last statement that touches a buffer, in the order of the text, which is that of execution with branches
 * left out. What one of them allocates, no other touches.
 */
function momentsOf(body: Body): ReadonlyMap<string, readonly [number, number]> {
  const out = new Map<string, readonly [number, number]>()
  let moment = 0
  const go = (list: Body): void => {
    for (const s of list) {
      for (const buffer of touchedBy(s)) out.set(buffer, [out.get(buffer)?.[0] ?? moment, moment])
      moment++
      if (isUniformCondition(s)) for (const branch of bodiesOf(s)) go(branch)
    }
  }
  go(body)
  return out
}

/** A barrier on every path before an array is first touched that lies where another was touched on some path. */
function withBarriers(body: Body, placed: readonly Placed[]): Body {
  const under = new Map(placed.map((p) => [p.name, placed.filter((q) => overlap(p, q)).map((q) => q.name)]))
  const go = (list: Body, before: Paths): { readonly body: Body; readonly after: Paths } => {
    const out: Stmt[] = []
    let now = before
    for (const s of list) {
      const touched = touchedBy(s)
      const takesOver = (p: string): boolean =>
        !now.every.has(p) && (under.get(p) ?? []).some((q) => now.some.has(q))
      if ([...touched].some(takesOver)) out.push(barrier())
      now = { some: new Set([...now.some, ...touched]), every: new Set([...now.every, ...touched]) }
      if (!isUniformCondition(s)) {
        out.push(s)
        continue
      }
      const [then, otherwise] = [go(s.then, now), go(s.else, now)]
      out.push(withBodies(s, [then.body, otherwise.body]))
      now = {
        some: new Set([...then.after.some, ...otherwise.after.some]),
        every: new Set([...then.after.every].filter((b) => otherwise.after.every.has(b))),
      }
    }
    const same = out.length === list.length && out.every((s, k) => s === list[k])
    return { body: same ? list : Object.freeze(out), after: now }
  }
  return go(body, { some: new Set(), every: new Set() }).body
}

/** Buffers that were touched on some path to a statement, and on every one. */
interface Paths {
  readonly some: ReadonlySet<string>
  readonly every: ReadonlySet<string>
}

/** The arrays that threads store to, and those that copies of the device fill. */
function writersOf(body: Body): {
  readonly stored: ReadonlySet<string>
  readonly copied: ReadonlySet<string>
} {
  const stored = new Set<string>()
  const copied = new Set<string>()
  for (const { buffer, mode, stmt: s } of accessesOf(body)) {
    const signals = s.kind === 'instr' && piecesOf(s).some((p) => p.kind !== 'value' && p.mode === 'meet')
    if (mode === 'write') (signals ? copied : stored).add(buffer)
  }
  return { stored, copied }
}

type Use = Pick<Placed, 'first' | 'last' | 'written'>

const together = (a: Use, b: Use): boolean => a.first <= b.last && b.first <= a.last

/** True if threads stored to `a` before copies fill `b`: the copies are not ordered after those stores. */
const unseen = (a: Use, b: Use): boolean => a.last < b.first && a.written.stored && b.written.copied

function bytesOf(b: Buffer): number {
  const length = b.shape[0]
  invariant(length?.kind === 'const', `the length of ${b.name} is not constant`)
  return length.value * DTYPE_BYTES[b.dtype]
}

/** At the lowest place that is free for as long as the array is in use. */
function place(b: Buffer, placed: readonly Placed[], use: Use): Placed {
  const bytes = bytesOf(b)
  const align = sharedAlign(b)
  const others = placed
    .filter((p) => together(p, use) || unseen(p, use) || unseen(use, p))
    .toSorted((p, q) => p.offset - q.offset)
  let offset = 0
  for (const p of others) {
    if (offset + bytes <= p.offset) break
    offset = Math.max(offset, Math.ceil(p.end / align) * align)
  }
  return { name: b.name, offset, end: offset + bytes, ...use }
}
