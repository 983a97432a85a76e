/** Splits a nest into strands: the loops around each innermost body, by their roles for its writes. */
import { type LoopRole, rolesIn } from '../../analysis/loop-roles.ts'
import { targetsOf } from '../../ir/accesses.ts'
import { loopsOf } from '../../ir/definitions.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { For, Kernel2, Reduce, Stmt, Store } from '../../ir/loops.ts'
import { bodiesOf } from '../../ir/tree.ts'
import type { NestNames } from './part-groups.ts'

export interface StrandLoop {
  readonly var: string
  readonly role: LoopRole
  /** True if iterations combine. */
  readonly reduce: boolean
  /** The number of iterations where it is one. */
  readonly constant: number | null
  /** The size that is its number of iterations, where it is one. */
  readonly size: string | null
  /** Variables of loops that its extent or conditions depend on. */
  readonly needs: ReadonlySet<string>
  /** The subset of `needs` that the extent depends on: the loop stays inside of them. */
  readonly inside: ReadonlySet<string>
}

export interface Strand {
  /** Prefix of its decisions: the nest, and the written buffer if the nest has several strands. */
  readonly name: string
  /** From the top. */
  readonly loops: readonly StrandLoop[]
  /** Number of outermost loops shared with other strands. */
  readonly shared: number
  readonly writes: readonly (Store | Reduce)[]
  /** True if some of the writes are conditional. */
  readonly isConditional: boolean
  /** Names of the buffers that outlive the kernel's statements among what is written. */
  readonly buffers: readonly string[]
}

/** A nest at the top of a kernel. */
export interface NestShape extends NestNames {
  readonly name: string
  readonly top: string
  readonly strands: readonly Strand[]
}

/** `naming`: prefix of a nest's decisions; several nests may share it. */
export function nestShapes(
  { body, buffers }: Kernel2,
  naming: (nest: string) => NestNames,
): readonly NestShape[] {
  const global = new Set(buffers.map((b) => b.name))
  return body.flatMap((s): NestShape[] => {
    if (s.kind !== 'for') return []
    const found = strandsOf(s, global)
    const names = naming(s.nest)
    return [{ name: s.nest, ...names, top: s.var, strands: named(found, names.called) }]
  })
}

function named(strands: readonly Strand[], called: string): readonly Strand[] {
  if (strands.length === 1) return strands.map((s) => ({ ...s, name: called }))
  const seen = new Map<string, number>()
  return strands.map((s) => {
    const name = `${called}.${s.buffers[0] ?? 'rest'}`
    const times = (seen.get(name) ?? 0) + 1
    seen.set(name, times)
    return { ...s, name: times > 1 ? `${name}.${times}` : name }
  })
}

function strandsOf(top: For, global: ReadonlySet<string>): readonly Strand[] {
  const roles = rolesIn(top)
  const loops = new Set(loopsOf([top]).map((l) => l.var))
  const out: Strand[] = []
  const others = (l: For, of: readonly Expr[]): ReadonlySet<string> =>
    new Set(of.flatMap((e) => [...freeVars(e)]).filter((v) => loops.has(v) && v !== l.var))
  const loopOf = (l: For): StrandLoop => ({
    var: l.var,
    role: roles.get(l.var)!,
    reduce: l.reduce,
    constant: l.extent.kind === 'const' ? l.extent.value : null,
    size: l.extent.kind === 'var' && !loops.has(l.extent.name) ? l.extent.name : null,
    needs: others(l, [l.extent, ...l.guards]),
    inside: others(l, [l.extent]),
  })
  const go = (l: For, path: readonly For[], shared: number): void => {
    const inside = [...path, l]
    const [loops, own] = parted(l.body)
    const ends = own.length > 0 ? 1 : 0
    const below = loops.length + ends > 1 ? inside.length : shared
    for (const inner of loops) go(inner, inside, below)
    if (ends === 0) return
    const writes = own.flatMap(writesIn)
    const buffers = [...new Set(writes.flatMap((w) => targetsOf(w).map((t) => t.buffer)))]
    out.push({
      name: l.nest,
      loops: inside.map(loopOf),
      shared: below,
      writes,
      isConditional: writes.some((w) => !own.includes(w)),
      buffers: buffers.filter((b) => global.has(b)),
    })
  }
  go(top, [], 0)
  return out
}

/** Loops of a body, through conditions, and other statements. */
function parted(body: readonly Stmt[]): readonly [loops: readonly For[], others: readonly Stmt[]] {
  const loops: For[] = []
  const others: Stmt[] = []
  for (const s of body)
    if (s.kind === 'for') loops.push(s)
    else if (s.kind === 'if' && bodiesOf(s).some((b) => b.some((x) => x.kind === 'for')))
      for (const b of bodiesOf(s)) loops.push(...parted(b)[0])
    else others.push(s)
  return [loops, others]
}

const writesIn = (s: Stmt): readonly (Store | Reduce)[] =>
  s.kind === 'store' || s.kind === 'reduce' ? [s] : bodiesOf(s).flatMap((b) => b.flatMap(writesIn))

/** The loops of a strand that no other stands in. */
export const ownLoops = (s: Strand): readonly StrandLoop[] => s.loops.slice(s.shared)
