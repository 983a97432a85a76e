/** Splits a nest into strands: the loops around each innermost body, by their roles for its writes. */
import { type LoopRole, rolesIn } from '../analysis/loops/segmented-loops.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../ir/memoize.ts'
import { targetsOf } from '../ir/statements/accesses.ts'
import { loopsOf } from '../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt, Store } from '../ir/statements/loops.ts'
import { bodiesOf } from '../ir/statements/tree.ts'
import { evaluate } from '../ir/values/evaluate.ts'
import { structureKey } from '../schedule/state/isomorphic-nests.ts'
import type { Decisions, Draft, Schedulable } from './draft.ts'

export interface StrandLoop {
  readonly var: string
  /** The name that users write. */
  readonly name: string
  readonly role: LoopRole
  /** True for a reduction loop. */
  readonly reduce: boolean
  /** The trip count, if it is constant. */
  readonly constant: number | null
  /** The size parameter that is the trip count, if it is one. */
  readonly size: string | null
  readonly extent: Expr
  /** Variables of the loops on which the extent or guards depend. */
  readonly needs: ReadonlySet<string>
  /** The subset of `needs` on which the extent depends: the loop stays inside of those loops. */
  readonly extentNeeds: ReadonlySet<string>
}

export interface Strand {
  /** Prefix of its decisions: the nest, and the written buffer if the nest has several strands. */
  readonly name: string
  /** Loops from the outermost. */
  readonly loops: readonly StrandLoop[]
  /** Number of outermost loops shared with other strands. */
  readonly shared: number
  readonly writes: readonly (Store | Reduce)[]
  /** True if some of the writes are conditional. */
  readonly isConditional: boolean
  /** Names of the written buffers that are global, not local to the kernel's loops. */
  readonly buffers: readonly string[]
}

/** A top-level loop nest of a kernel. */
export interface NestShape extends NestNames {
  readonly name: string
  /** Equal for nests that are identical up to names. */
  readonly key: string
  readonly top: string
  readonly strands: readonly Strand[]
}

/** Shapes of the top-level nests. @param naming - Names of a nest's decisions; several nests may share them */
export function nestShapes(kernel: Kernel2, namesOf: (nest: string) => NestNames): readonly NestShape[] {
  const { body, buffers } = kernel
  const globalNames = new Set(buffers.map((b) => b.name))
  const firsts = new Map<string, Pick<NestShape, 'prefix' | 'strands'>>()
  return body.flatMap((s): NestShape[] => {
    if (s.kind !== 'for') return []
    const strands = strandsOf(s, globalNames)
    const { stem, prefix: own } = namesOf(s.nest)
    const key = structureKey(s, kernel)
    const first = getOrAdd(firsts, key, () => ({ prefix: own, strands: nameStrands(strands, own) }))
    const named = strands.map((x, k) => ({ ...x, name: first.strands[k]!.name }))
    return [{ name: s.nest, key, stem, prefix: first.prefix, top: s.var, strands: named }]
  })
}

function nameStrands(strands: readonly Strand[], prefix: string): readonly Strand[] {
  if (strands.length === 1) return strands.map((s) => ({ ...s, name: prefix }))
  const counts = new Map<string, number>()
  return strands.map((s) => {
    const name = `${prefix}.${s.buffers[0] ?? 'rest'}`
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    return { ...s, name: count > 1 ? `${name}.${count}` : name }
  })
}

function strandsOf(top: For, globalNames: ReadonlySet<string>): readonly Strand[] {
  const roles = rolesIn(top)
  const loops = new Set(loopsOf([top]).map((l) => l.var))
  const strands: Strand[] = []
  const dependencies = (l: For, exprs: readonly Expr[]): ReadonlySet<string> =>
    new Set(exprs.flatMap((e) => [...freeVars(e)]).filter((v) => loops.has(v) && v !== l.var))
  const loopOf = (l: For): StrandLoop => ({
    var: l.var,
    name: l.name,
    role: roles.get(l.var)!,
    reduce: l.reduce,
    constant: l.extent.kind === 'const' ? l.extent.value : null,
    size: l.extent.kind === 'var' && !loops.has(l.extent.name) ? l.extent.name : null,
    extent: l.extent,
    needs: dependencies(l, [l.extent, ...l.guards]),
    extentNeeds: dependencies(l, [l.extent]),
  })
  const visit = (l: For, path: readonly For[], shared: number): void => {
    const around = [...path, l]
    const [loops, statements] = splitBody(l.body)
    const hasWrites = statements.length > 0 ? 1 : 0
    const sharedBelow = loops.length + hasWrites > 1 ? around.length : shared
    for (const inner of loops) visit(inner, around, sharedBelow)
    if (hasWrites === 0) return
    const writes = statements.flatMap(writesOf)
    const buffers = [...new Set(writes.flatMap((w) => targetsOf(w).map((t) => t.buffer)))]
    strands.push({
      name: l.nest,
      loops: around.map(loopOf),
      shared: sharedBelow,
      writes,
      isConditional: writes.some((w) => !statements.includes(w)),
      buffers: buffers.filter((b) => globalNames.has(b)),
    })
  }
  visit(top, [], 0)
  return strands
}

/** Splits a body into loops, including those under conditions, and other statements. */
function splitBody(body: readonly Stmt[]): readonly [loops: readonly For[], others: readonly Stmt[]] {
  const loops: For[] = []
  const others: Stmt[] = []
  for (const s of body)
    if (s.kind === 'for') loops.push(s)
    else if (s.kind === 'if' && bodiesOf(s).some((b) => b.some((x) => x.kind === 'for')))
      for (const b of bodiesOf(s)) loops.push(...splitBody(b)[0])
    else others.push(s)
  return [loops, others]
}

const writesOf = (s: Stmt): readonly (Store | Reduce)[] =>
  s.kind === 'store' || s.kind === 'reduce' ? [s] : bodiesOf(s).flatMap((b) => b.flatMap(writesOf))

/** The loops of a strand that contain no other strand. */
export const ownLoops = (s: Strand): readonly StrandLoop[] => s.loops.slice(s.shared)

/** Names of decisions about loop nests: copies of an iteration over parts with formats of one kind share their decisions. */
export interface NestNames {
  /** The iteration as written, before it is copied for each part. */
  readonly stem: string
  /** Prefix of the nest's decision names. */
  readonly prefix: string
}

/** Maps nests to the names of their decisions. */
export function nestNaming(kernel: Kernel1): (nest: string) => NestNames {
  const suffixes = kernel.reformats.flatMap(({ instance }) => {
    const kinds = new Set(instance.parts.map((p) => kindOf(p.instance.text)))
    return instance.parts
      .filter((p) => p.label !== '')
      .map((p): readonly [string, string] => [
        `_${p.label}`,
        kinds.size > 1 ? `_${kindOf(p.instance.text)}` : '',
      ])
  })
  return (nest) => {
    const suffix = suffixes.find(([label]) => nest.endsWith(label))
    const stem = suffix ? nest.slice(0, -suffix[0].length) : nest
    return { stem, prefix: suffix ? `${stem}${suffix[1]}` : nest }
  }
}

/** A format without its arguments. */
const kindOf = (text: string): string => /^\w*/.exec(text)![0]

// Roles of a strand's loops for threads: partitioned over threads, contiguous, or serial in a thread.

/** Context of the rules for devices with threads. */
export interface RuleContext {
  readonly decisions: Decisions
  /** Maximum number of threads of a block. */
  readonly threads: number
  /** True if groups of threads that combine values may have different trip counts within a block. */
  readonly canDiverge: boolean
  /** Sizes for which the schedule is specialised, as far as they are given. */
  readonly sizes: ReadonlyMap<string, number>
}

/** The threads of a block, shared by the nests of one launch. */
export interface BlockShape {
  /** Prefix of the decision names. */
  readonly name: string
  /** True if other rules apply to some of the nests: the row of another rule is then called a group. */
  readonly isMixed: boolean
}

/** Loops of a strand by their roles for threads. */
export interface Partition {
  /** Spatial loop around all others, for a third axis of blocks. */
  readonly lead: StrandLoop | undefined
  /** Loop that is distributed over blocks first. */
  readonly outer: StrandLoop
  /** Loop whose neighbouring iterations belong to neighbouring threads. */
  readonly inner: StrandLoop | undefined
  /** Spatial loops that stay within a thread, outside of the reductions. */
  readonly middle: readonly StrandLoop[]
  /** Reductions into one element, outer before inner. */
  readonly sums: readonly StrandLoop[]
  /** True if several iterations of `outer` update one element. */
  readonly hasConflicts: boolean
}

/** Partition of a strand's loops; `undefined` if no loop can be distributed. */
export function partitionLoops({ loops }: Strand): Partition | undefined {
  const sums = loops.filter((l) => l.role === 'reduction' && l.reduce)
  const spatial = loops.filter((l) => !sums.includes(l))
  const contiguous = spatial.findLast(
    (l) => l.role === 'contiguous' && l.needs.size === 0 && l.constant !== 1,
  )
  const rows = spatial.filter((l) => l !== contiguous)
  const [first] = rows
  // Rows that are stored in segments of a reduction axis can only be reached through it.
  if (first && first.needs.size > 0) return undefined
  const hasConflicts = first?.reduce ?? false
  const headCount = hasConflicts
    ? 1
    : rows.findIndex((l) => l.needs.size > 0 || l.reduce || l.constant !== null)
  const heads = rows.slice(0, headCount < 0 ? rows.length : Math.max(1, headCount))
  const outer = heads.at(-1) ?? contiguous
  if (!outer) return undefined
  const lead = heads.length > 1 ? heads.at(-2) : undefined
  const remaining = rows.filter((l) => l !== outer && l !== lead)
  const inner =
    contiguous && contiguous !== outer
      ? contiguous
      : remaining.findLast(
          (l) => l.constant !== 1 && !l.reduce && ![...l.needs].some((v) => sums.some((x) => x.var === v)),
        )
  return { lead, outer, inner, middle: remaining.filter((l) => l !== inner), sums, hasConflicts }
}

/** True if the trip counts of loops around a reduction depend on the data. */
export const isRagged = (loops: readonly StrandLoop[]): boolean => loops.some((l) => l.needs.size > 0)

/** True if the trip count of another loop depends on a loop, whose iterations therefore stay outside of that loop. */
export const bounds = ({ var: v }: StrandLoop, loops: readonly StrandLoop[]): boolean =>
  loops.some((l) => l.needs.has(v))

/** Number of threads that exchange registers without barriers. */
export const WARP = 32

/** The values up to `max`, or the smallest value if there is none. */
export const valuesUpTo = (values: readonly number[], max: number): readonly number[] => {
  const fits = values.filter((v) => v <= max)
  return fits.length > 0 ? fits : values.slice(0, 1)
}

/** The largest value up to `guess`, or the smallest one. */
export const largestUpTo = (values: readonly number[], guess: number): number =>
  values.findLast((v) => v <= guess) ?? values[0]!

/** The number of iterations without guards, if the given sizes determine it. */
export const tripCount = (
  { extent }: StrandLoop,
  { sizes }: Pick<RuleContext, 'sizes'>,
): number | undefined =>
  [...freeVars(extent)].every((v) => sizes.has(v)) ? evaluate(extent, sizes) : undefined

/** The number of elements that a strand computes, if the given sizes determine it. */
export const elementCount = ({ loops }: Strand, context: Pick<RuleContext, 'sizes'>): number | undefined =>
  loops
    .filter((l) => !l.reduce)
    .reduce<number | undefined>((n, l) => {
      const own = tripCount(l, context)
      return n === undefined || own === undefined ? undefined : n * own
    }, 1)

/** Elements below which several threads compute one element together. */
const FEW_ELEMENTS = 2 ** 14

/** True if the given sizes show that there are too few elements for a thread each. */
export const hasFewElements = (strand: Strand, context: Pick<RuleContext, 'sizes'>): boolean =>
  (elementCount(strand, context) ?? FEW_ELEMENTS) < FEW_ELEMENTS

/** The loop with the most iterations, an unknown number before any known one; the first one of several. */
export const longestLoop = (
  loops: readonly StrandLoop[],
  context: Pick<RuleContext, 'sizes'>,
): StrandLoop => {
  const length = (l: StrandLoop): number => tripCount(l, context) ?? Infinity
  return loops.reduce((a, b) => (length(b) > length(a) ? b : a))
}

/** True if the loop's size is given and a multiple of `by`. */
export function divides(by: number, { size }: StrandLoop, { sizes }: RuleContext): boolean {
  const value = size === null ? undefined : sizes.get(size)
  return value !== undefined && value > 0 && value % by === 0
}

/** Requires that the loop's size is a multiple of `by`, if the given size is. */
export function requireMultiple<K extends Schedulable<K>>(
  draft: Draft<K>,
  loop: StrandLoop,
  by: number,
  context: RuleContext,
): void {
  if (by === 1 || !divides(by, loop, context)) return
  // The same requirement twice would simplify all nests again.
  const isKnown = draft.loops.facts?.some(
    (f) => f.size === loop.size && f.relation === 'multiple' && f.by === by,
  )
  if (isKnown) return
  draft.step({ kind: 'require', size: loop.size!, relation: 'multiple', by })
}

/** Unrolling of a reduction loop: number of iterations in flight. */
export interface Unroll {
  readonly by: number
  readonly predicated: boolean
}

export function chooseUnroll(name: string, d: Decisions): Unroll {
  const by = d.choose(`${name}.ahead`, [1, 2, 4, 8], 4)
  return { by, predicated: by > 1 && d.choose(`${name}.rest`, ['predicated', 'apart']) === 'predicated' }
}

/** Elements of f32 in one vector access. */
export const VECTOR = 4

/** Default number of lanes: one vector per lane for a loop of known size, otherwise `otherwise`. */
export function guessLanes(
  values: readonly number[],
  loop: StrandLoop | undefined,
  { sizes }: RuleContext,
  otherwise: number,
): number {
  const size = loop?.size ? sizes.get(loop.size) : undefined
  return largestUpTo(values, size === undefined ? otherwise : Math.ceil(size / VECTOR))
}
