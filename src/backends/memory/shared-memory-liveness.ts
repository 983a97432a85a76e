/**
 * Shared-memory allocation by liveness: the shared arrays of a launch reside in one block of memory. Arrays with disjoint
 * live ranges share storage (Chaitin's interference over the launch's statements in order), with a barrier between their
 * uses; for example, the tile for copying out reuses the operands' memory. Statements under a condition count individually if
 * a barrier among them implies that the condition is uniform; a loop counts as one statement.
 *
 * An asynchronous copy is not ordered after earlier stores of threads to its target, whatever barrier is in between (PTX ISA,
 * "Async proxy"), so its target never reuses memory that threads stored to before.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { mapSame, reuseIfSame } from '../../ir/lists.ts'
import { memoize } from '../../ir/memoize.ts'
import { renamed } from '../../ir/node-trees.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { isUniformCondition } from '../../ir/statements/clone-loops.ts'
import { allocations } from '../../ir/statements/definitions.ts'
import type { Buffer, Launch, Stmt } from '../../ir/statements/loops.ts'
import { barrier } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, piecesOf, withBodies } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { lengthOf, sharedAlign } from '../print/printer.ts'

export interface SharedMemory {
  /** The launch, with barriers before uses of reused memory. */
  readonly launch: Launch
  readonly bytes: number
  /** Alignment of the whole block in bytes. */
  readonly align: number
  /** Offsets in bytes by name. */
  readonly offsets: ReadonlyMap<string, number>
  /** True if arrays share memory. */
  readonly reused: boolean
}

interface Placement {
  readonly name: string
  readonly offset: number
  readonly end: number
  /** Live range: first and last statement that touches the array. */
  readonly first: number
  readonly last: number
  readonly writers: Writers
}

/** Writers of an array: threads, or copies that signal a barrier. */
interface Writers {
  readonly stored: boolean
  readonly copied: boolean
}

export function allocateShared(launch: Launch): SharedMemory {
  const arrays = sharedBuffers(launch.body)
  const ranges = liveRanges(launch.body)
  const { stored, copied } = writtenBuffers(launch.body)
  const placeInOrder = (order: readonly Buffer[]): readonly Placement[] => {
    const placed: Placement[] = []
    for (const b of order) {
      const [first, last] = ranges.get(b.name) ?? [0, Infinity]
      const writers = { stored: stored.has(b.name), copied: copied.has(b.name) }
      placed.push(placeBuffer(b, placed, { first, last, writers }))
    }
    return placed
  }
  // In declaration order, a small array that is always live may prevent two large arrays from sharing memory.
  const declared = placeInOrder(arrays)
  const decreasing = placeInOrder(arrays.toSorted((a, b) => bytesOf(b) - bytesOf(a)))
  const placed = totalBytes(decreasing) < totalBytes(declared) ? decreasing : declared
  const body = withBarriers(launch.body, placed)
  return {
    launch: body === launch.body ? launch : { ...launch, body },
    bytes: totalBytes(placed),
    align: Math.max(1, ...arrays.map(sharedAlign)),
    offsets: new Map(placed.map((p) => [p.name, p.offset])),
    reused: placed.some((p) => placed.some((q) => isOverlapping(p, q))),
  }
}

const isOverlapping = (p: Placement, q: Placement): boolean => p !== q && q.offset < p.end && p.offset < q.end

const totalBytes = (placed: readonly Placement[]): number => Math.max(0, ...placed.map((p) => p.end))

const sharedBuffers = (body: Body): readonly Buffer[] =>
  [...allocations(body).values()].filter((b) => b.scope === 'shared')

/**
 * Buffers accessed by a statement; for a conditional that is uniform across threads, only those of its condition.
 */
const touchedBuffers = (s: Stmt): ReadonlySet<string> =>
  new Set(accessesOf([isUniformCondition(s) ? { ...s, then: [], else: [] } : s]).map((a) => a.buffer))

/**
 * Live ranges: the first and the last statement that accesses a buffer, in source order, which is a superset of the execution
 * order. A buffer that is allocated inside a statement is not accessed by other statements.
 */
function liveRanges(body: Body): ReadonlyMap<string, readonly [number, number]> {
  const out = new Map<string, readonly [number, number]>()
  let position = 0
  const visit = (list: Body): void => {
    for (const s of list) {
      for (const buffer of touchedBuffers(s)) out.set(buffer, [out.get(buffer)?.[0] ?? position, position])
      position++
      if (isUniformCondition(s)) for (const branch of bodiesOf(s)) visit(branch)
    }
  }
  visit(body)
  return out
}

/** Inserts a barrier before the first access to an array whose memory another array may have used on some path. */
function withBarriers(body: Body, placed: readonly Placement[]): Body {
  const sharing = new Map(
    placed.map((p) => [p.name, placed.filter((q) => isOverlapping(p, q)).map((q) => q.name)]),
  )
  const visit = (list: Body, before: Paths): { readonly body: Body; readonly after: Paths } => {
    const out: Stmt[] = []
    let paths = before
    for (const s of list) {
      const touched = touchedBuffers(s)
      const reusesMemory = (p: string): boolean =>
        !paths.every.has(p) && (sharing.get(p) ?? []).some((q) => paths.some.has(q))
      if ([...touched].some(reusesMemory)) out.push(barrier())
      paths = { some: new Set([...paths.some, ...touched]), every: new Set([...paths.every, ...touched]) }
      if (!isUniformCondition(s)) {
        out.push(s)
        continue
      }
      const [then, otherwise] = [visit(s.then, paths), visit(s.else, paths)]
      out.push(withBodies(s, [then.body, otherwise.body]))
      paths = {
        some: new Set([...then.after.some, ...otherwise.after.some]),
        every: new Set([...then.after.every].filter((b) => otherwise.after.every.has(b))),
      }
    }
    return { body: reuseIfSame(list, out), after: paths }
  }
  return visit(body, { some: new Set(), every: new Set() }).body
}

/** Buffers that were accessed on some path to a statement, and on every path. */
interface Paths {
  readonly some: ReadonlySet<string>
  readonly every: ReadonlySet<string>
}

/** Arrays that threads store to, and arrays that asynchronous copies fill. */
function writtenBuffers(body: Body): {
  readonly stored: ReadonlySet<string>
  readonly copied: ReadonlySet<string>
} {
  const stored = new Set<string>()
  const copied = new Set<string>()
  for (const { buffer, mode, stmt: s } of accessesOf(body)) {
    const isAsyncCopy = s.kind === 'instr' && piecesOf(s).some((p) => p.kind !== 'value' && p.mode === 'meet')
    if (mode === 'write') (isAsyncCopy ? copied : stored).add(buffer)
  }
  return { stored, copied }
}

type Use = Pick<Placement, 'first' | 'last' | 'writers'>

const isConcurrent = (a: Use, b: Use): boolean => a.first <= b.last && b.first <= a.last

/** True if threads store to `a` before copies fill `b`, because the copies are not ordered after these stores. */
const isUnordered = (a: Use, b: Use): boolean => a.last < b.first && a.writers.stored && b.writers.copied

const bytesOf = (b: Buffer): number => lengthOf(b) * DTYPE_BYTES[b.dtype]

/** Places the array at the lowest offset that is free during its live range (first fit). */
function placeBuffer(b: Buffer, placed: readonly Placement[], use: Use): Placement {
  const bytes = bytesOf(b)
  const align = sharedAlign(b)
  const conflicting = placed
    .filter((p) => isConcurrent(p, use) || isUnordered(p, use) || isUnordered(use, p))
    .toSorted((p, q) => p.offset - q.offset)
  let offset = 0
  for (const p of conflicting) {
    if (offset + bytes <= p.offset) break
    offset = Math.max(offset, Math.ceil(p.end / align) * align)
  }
  return { name: b.name, offset, end: offset + bytes, ...use }
}

/**
 * The launch in which arrays of equal type and length in branches that exclude each other are one array, as in merged loop nests: for targets
 * that declare each array on its own. Branches inside of loops do not exclude each other.
 */
export const shareAcrossBranches = memoize((launch: Launch): Launch => {
  const visit = (body: Body): Body =>
    mapSame(body, (s) => {
      if (!isUniformCondition(s) || s.else.length === 0) return s
      const [then, otherwise] = [visit(s.then), visit(s.else)]
      const free = [...sharedBuffers(then)]
      const names = sharedBuffers(otherwise).flatMap((b) => {
        const at = free.findIndex((f) => f.dtype === b.dtype && bytesOf(f) === bytesOf(b))
        return at < 0 ? [] : [[b.name, free.splice(at, 1)[0]!.name] as const]
      })
      const nameOf = new Map(names)
      return withBodies(s, [then, renamed(otherwise, (text) => nameOf.get(text) ?? text)])
    })
  const body = visit(launch.body)
  return body === launch.body ? launch : Object.freeze({ ...launch, body })
})

// Rejects launches that exceed shared memory, both for an open device and for a compilation target.

/** Shared-memory arrays of a launch with their sizes in bytes, for a target that declares each on its own. */
export const sharedArrays = (
  launch: Launch,
  elementBytes: (b: Buffer) => number,
): readonly { readonly name: string; readonly bytes: number }[] =>
  sharedBuffers(shareAcrossBranches(launch).body).map((b) => ({
    name: b.name,
    bytes: lengthOf(b) * elementBytes(b),
  }))

/** Checks a launch against a limit. `holder`: subject of the message, such as a device. @throws SptError `plan/shared-too-large` */
export function rejectSharedOverflow(
  name: string,
  total: number,
  arrays: ReturnType<typeof sharedArrays>,
  { limit, holder }: { readonly limit: number; readonly holder: string },
): void {
  if (total <= limit) return
  const arrayList = arrays.length > 0 ? ` (${arrays.map((b) => `${b.name} ${b.bytes}`).join(', ')})` : ''
  failWith(
    'plan/shared-too-large',
    `${name} needs ${total} bytes of shared memory${arrayList}; ${holder} ${limit} per block`,
    {
      expected: `at most ${limit} bytes`,
      hint: 'cache a smaller tile: split the loops inside the cached loop by smaller factors, or pipeline by fewer stages',
    },
  )
}
