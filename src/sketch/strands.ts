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
import { structureKey } from '../schedule/state/isomorphic-nests.ts'

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
