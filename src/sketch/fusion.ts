/**
 * Fusion of nests before they are sketched, where it saves a launch: elementwise producers are inlined into their only
 * consumer, and consecutive nests over one domain that combine along its rows run in one nest over the rows.
 */
import { getOrAdd } from '../ir/memoize.ts'
import { readsOf } from '../ir/statements/accesses.ts'
import type { For, Kernel2 } from '../ir/statements/loops.ts'
import { type Decisions, Draft, type Schedulable } from './draft.ts'
import type { NestShape, Strand, StrandLoop } from './strands.ts'

/** A change of nests before they are sketched, as steps on a draft. */
export interface NestChange {
  /** Name of the decision. */
  readonly decision: string
  /** Values of the decision: with the change, which is the default, and without it. */
  readonly values: readonly [string, string]
  /** Identifies the steps. */
  readonly key: string
  readonly steps: <K extends Schedulable<K>>(draft: Draft<K>) => void
}

/** Kernels after a change by its key; `null` if a step is rejected. */
const changedKernels = new WeakMap<object, Map<string, unknown>>()

/** The kernel after all legal changes that the decisions select. */
export const applyChanges = <K extends Schedulable<K>>(
  base: K,
  changes: readonly NestChange[],
  d: Decisions,
): K =>
  changes.reduce((k, { decision, values, key, steps }) => {
    const known = getOrAdd(changedKernels, k, () => new Map<string, unknown>()) as Map<string, K | null>
    const changed = getOrAdd(known, key, () => {
      const draft = new Draft<K>(k)
      return draft.attempt(() => steps(draft)) ? draft.kernel : null
    })
    return changed && d.form(decision, values) === values[0] ? changed : k
  }, base)

const FUSED = ['fused', 'apart'] as const

/** Elementwise nests with one consumer over the same number of loops, which computes each element once. */
export function inlinings(nests: readonly NestShape[], kernel: Kernel2): readonly NestChange[] {
  const readers = new Map<string, NestShape[]>()
  for (const n of nests) for (const b of readsIn(n, kernel)) getOrAdd(readers, b, () => []).push(n)
  const locals = new Set(kernel.buffers.flatMap((b) => (b.role === 'local' ? [b.name] : [])))
  return nests.flatMap((nest): NestChange[] => {
    const strand = onlyStrand(nest)
    const [write, ...others] = strand?.writes ?? []
    if (!strand || write?.kind !== 'store' || others.length > 0 || !locals.has(write.buffer)) return []
    const [consumer, ...more] = (readers.get(write.buffer) ?? []).filter((n) => n !== nest)
    const sink = consumer && onlyStrand(consumer)
    if (!sink || more.length > 0 || sink.loops.length !== strand.loops.length) return []
    const steps: NestChange['steps'] = (draft) => draft.step({ kind: 'compute_inline', nest: nest.name })
    return [{ decision: `${nest.prefix}.inline`, values: FUSED, key: nest.name, steps }]
  })
}

interface Member {
  readonly nest: NestShape
  readonly strand: Strand
}

/** Runs of nests over one domain, of which the first reduces along rows and each later one reads results of the run. */
export function rowFusions(nests: readonly NestShape[], kernel: Kernel2): readonly NestChange[] {
  const groups: { readonly members: Member[]; readonly rows: readonly string[] }[] = []
  for (const nest of nests) {
    const strand = onlyStrand(nest)
    const group = groups.at(-1)
    if (!strand) continue
    const isNext = group?.members.at(-1)?.nest === nests[nests.indexOf(nest) - 1]
    if (group && isNext && continues(group.members, { nest, strand }, kernel))
      group.members.push({ nest, strand })
    else {
      const rows = strand.loops.filter((l) => !l.reduce).map((l) => l.name)
      if (rows.length > 0 && rows.length < strand.loops.length)
        groups.push({ members: [{ nest, strand }], rows })
    }
  }
  return groups.flatMap(({ members, rows }): NestChange[] => {
    if (members.length < 2) return []
    const names = members.map((m) => m.nest.name)
    const isRow = (l: StrandLoop): boolean => rows.includes(l.name)
    const steps: NestChange['steps'] = (draft) => {
      for (const { strand } of members) {
        const own = rows.map((name) => strand.loops.find((l) => l.name === name)!)
        draft.reorder([...own, ...strand.loops.filter((l) => !isRow(l))].map((l) => l.var))
      }
      const at = members[0]!.strand.loops.findLast(isRow)!.var
      draft.step({ kind: 'join', nests: names, at: { var: at } })
    }
    const decision = `${members.at(-1)!.nest.prefix}.rows`
    return [{ decision, values: FUSED, key: names.join(), steps }]
  })
}

/** True if a nest has the loops of the group, by name, and reads a buffer that the group writes. */
function continues(group: readonly Member[], { nest, strand }: Member, kernel: Kernel2): boolean {
  const names = new Set(group[0]!.strand.loops.map((l) => l.name))
  if (strand.loops.length !== names.size || !strand.loops.every((l) => names.has(l.name))) return false
  const reads = readsIn(nest, kernel)
  return group.some((m) => m.strand.buffers.some((b) => reads.has(b)))
}

/** The only strand of a nest without conditions whose rows do not depend on data. */
export function onlyStrand({ strands: [strand, ...others] }: NestShape): Strand | undefined {
  const isFixed = strand?.loops.every((l) => l.reduce || l.needs.size === 0 || l !== strand.loops[0])
  return others.length === 0 && isFixed && !strand!.isConditional ? strand : undefined
}

/** Names of the buffers that a nest reads. */
const readsIn = ({ top }: NestShape, { body }: Kernel2): ReadonlySet<string> =>
  readsOf(body.filter((s): s is For => s.kind === 'for' && s.var === top))
