/** Sketches for devices with threads: for each nest one of the rules that fit it. */
import type { DisjointWrites, Kernel2 } from '../../ir/loops.ts'
import { isBuiltinReducer } from '../../ir/monoid.ts'
import type { Decisions } from './decisions.ts'
import { denseTiles, reusedBy } from './dense-tiles.ts'
import type { Draft, Schedulable } from './draft.ts'
import { elementParallel } from './element-parallel.ts'
import { epilogues, makerOf } from './epilogues.ts'
import { laneParallel } from './lane-parallel.ts'
import type { Plan } from './plan.ts'
import { hasVectors, rowPerGroup, rowPerThread, rowsOf } from './row-parallel.ts'
import { isShared, shareParallel } from './share-parallel.ts'
import type { NestShape, Strand } from './strands.ts'
import { type Around, type BlockShape, type Dealt, dealt } from './threads.ts'

/** A rule with its context, ready to decide. */
interface Candidate {
  readonly name: string
  /** Buffers that several threads may update at one time. */
  readonly atomic: readonly string[]
  /** True if a thread holds complete elements at some time. */
  readonly holds: boolean
  readonly plan: (shape: BlockShape) => Plan
}

function chooseAmong(fitting: readonly Candidate[], nest: NestShape, d: Decisions): Candidate {
  const names = fitting.map((c) => c.name)
  const kind = d.form(`${nest.called}.sketch`, names)
  return fitting[names.indexOf(kind)]!
}

export function parallel(
  nests: readonly NestShape[],
  kernel: Kernel2,
  around: Around,
): <K extends Schedulable<K>>(draft: Draft<K>) => void {
  const d = around.decisions
  const chosen = new Map<NestShape, Candidate>()
  for (const [k, nest] of nests.entries()) {
    const fitting = candidates(nest, around)
    if (fitting.length === 0 || makerOf(nest, nests.slice(0, k), kernel) !== undefined) continue
    chosen.set(nest, chooseAmong(fitting, nest, d))
  }
  const moved = epilogues(nests, kernel, d, (maker) => chosen.get(maker)?.holds ?? false)
  for (const nest of nests) {
    const fitting = chosen.has(nest) || moved.has(nest.name) ? [] : candidates(nest, around)
    if (fitting.length > 0) chosen.set(nest, chooseAmong(fitting, nest, d))
  }
  const merged = mergers(chosen, kernel.disjointWrites ?? [], d)
  const plans = [...chosen].map(([nest, { atomic, plan }]) => {
    const names = merged.find((of) => of.includes(nest.name))
    const rules = new Set([...chosen].flatMap(([n, c]) => (names?.includes(n.name) ? [c.name] : [])))
    return { nest, atomic, plan: plan({ name: names ? nest.stem : nest.called, isMixed: rules.size > 1 }) }
  })
  return (draft) => {
    for (const buffer of new Set(plans.flatMap((p) => p.atomic))) draft.step({ kind: 'atomic', buffer })
    const arranged = plans.map(({ nest, plan }) => ({ nest, arranged: plan(draft) }))
    for (const { nest, arranged: a } of arranged)
      for (const [epilogue, after] of moved)
        if (after === nest.name)
          draft.step({
            kind: 'compute_at',
            nest: epilogue,
            at: a.whole === undefined ? nest.top : { var: a.whole },
          })
    for (const { arranged: a } of arranged) a.finish(draft)
    for (const names of merged) draft.step({ kind: 'merge', nests: names })
  }
}

/** Copies of an iteration over several parts that become one launch; the last part first, which has what is left over. */
function mergers(
  chosen: ReadonlyMap<NestShape, Candidate>,
  apart: readonly DisjointWrites[],
  d: Decisions,
): readonly (readonly string[])[] {
  const by = new Map<string, NestShape[]>()
  for (const n of chosen.keys()) by.set(n.stem, [...(by.get(n.stem) ?? []), n])
  return [...by].flatMap(([stem, nests]) => {
    if (nests.length < 2 || !canRunAtOnce(nests, chosen, apart)) return []
    const one = d.form(`${stem}.launches`, ['apart', 'merged']) === 'merged'
    return one ? [nests.map((n) => n.name).reverse()] : []
  })
}

/** True if the nests write disjoint elements of the buffers they share, or all update them atomically. */
function canRunAtOnce(
  nests: readonly NestShape[],
  chosen: ReadonlyMap<NestShape, Candidate>,
  apart: readonly DisjointWrites[],
): boolean {
  const writers = new Map<string, NestShape[]>()
  for (const n of nests)
    for (const b of new Set(n.strands.flatMap((s) => s.buffers)))
      writers.set(b, [...(writers.get(b) ?? []), n])
  return [...writers].every(([buffer, of]) => {
    if (of.length < 2 || of.every((n) => chosen.get(n)!.atomic.includes(buffer))) return true
    return apart.some((w) => {
      const groups = of.map((n) => w.nests.findIndex((g) => g.includes(n.name)))
      return w.buffer === buffer && !groups.includes(-1) && new Set(groups).size === groups.length
    })
  })
}

function candidates(nest: NestShape, around: Around): readonly Candidate[] {
  const [strand, ...others] = nest.strands
  if (!strand) return []
  if (others.length > 0) {
    const row = rowsOf(nest)
    if (!row) return []
    const grouped = (whole: boolean) => (shape: BlockShape) => rowPerGroup(nest, row, around, shape, whole)
    return [
      { name: 'a group a row', atomic: [], holds: false, plan: grouped(false) },
      { name: 'a thread a row', atomic: [], holds: false, plan: () => rowPerThread(nest, row, around) },
      // Where a group's row is work for a block, it is the same.
      ...(hasVectors(nest.strands)
        ? []
        : [{ name: 'a block a row', atomic: [], holds: false, plan: grouped(true) }]),
    ]
  }
  const of = dealt(strand)
  return of ? ofStrand(strand, of, around) : []
}

function ofStrand(strand: Strand, of: Dealt, around: Around): readonly Candidate[] {
  if (of.meets && !hasAtomics(strand)) return []
  const atomic = of.meets ? strand.buffers : []
  const operands = reusedBy(strand, of)
  const elements = {
    name: 'elements',
    holds: true,
    atomic,
    plan: (shape: BlockShape) => elementParallel(strand, of, around, shape),
  }
  const lanes = {
    name: 'lanes',
    holds: false,
    atomic,
    plan: (shape: BlockShape) => laneParallel(strand, of, around, shape),
  }
  const shares = {
    name: 'shares',
    holds: false,
    atomic: strand.buffers,
    plan: () => shareParallel(strand, of, around),
  }
  const tiles = { name: 'tiles', holds: true, atomic, plan: () => denseTiles(strand, of, operands, around) }
  const segmented = of.inner?.role !== 'contiguous'
  return [
    ...(operands.length > 0 ? [tiles] : []),
    ...(isShared(strand, of) ? [shares] : []),
    ...(of.sums.length === 0 ? [elements] : segmented ? [lanes, elements] : [elements, lanes]),
  ]
}

/** True if every update has one target and a reducer with atomics. */
const hasAtomics = ({ writes }: Strand): boolean =>
  writes.every((w) => w.kind === 'reduce' && w.targets.length === 1 && isBuiltinReducer(w.reducer.name))
