/**
 * Segmented reduction. Invariant reached: no loop has the mode `accumulate`. Such a loop accumulates in registers while the element stays
 * the same, and writes back when it changes and at the end. Neighbouring iterations mostly have the same element, so most updates stay in
 * the thread (Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016, for whole rows).
 * The element is identified by the part of its index that changes with the loop. A reserved value marks empty registers.
 */
import { rises } from '../../analysis/integers/linear.ts'
import { groupsOf, withoutStart } from '../../analysis/loops/balanced-partition.ts'
import { isPerfect, segmentsOf } from '../../analysis/loops/segmented-loops.ts'
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { roundsAround } from '../../ir/coordinates/rounds.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { add, all, bool, ge, int, load, mul, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { mapSame } from '../../ir/lists.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { findLoop, loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, LoopMode, Reduce, Stmt, WorkPartition } from '../../ir/statements/loops.ts'
import { alloc, local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, stmt } from '../../ir/statements/tree.ts'
import { withStart } from './reduction-initialization.ts'
import {
  type LoopValues,
  nest,
  type SegmentAccumulators,
  segmentAccumulators,
} from './segment-accumulators.ts'
import { type Epilogue, perBlock, perElement, perShare, type WriteBack } from './segment-epilogue.ts'

export function reduceSegments(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const replaced = fixupStarts(kernel, names)
  const body = mapSame(kernel.body, (top, k) => {
    const marked = loopsOf([top]).filter((l) => l.mode.kind === 'accumulate')
    return marked.reduceRight<Stmt>((s, l) => withSegmentedReduction(s, l.var, kernel, k, names), top)
  })
  if (body === kernel.body) return kernel
  return { ...kernel, body: body.flatMap((s) => replaced.get(s) ?? [s]) }
}

type Accumulate = LoopMode & { readonly kind: 'accumulate' }

function withSegmentedReduction(whole: Stmt, v: string, kernel: Kernel2, at: number, names: Names): Stmt {
  const mode = findLoop([whole], v)!.loop.mode as Accumulate
  const { carry, within, by, partition: shares } = mode
  const top = carry === undefined ? whole : withoutStart(whole, carry)
  const { loop: marked, path } = findLoop([top], v)!
  const loop: For = stmt({ ...marked, mode: { kind: 'serial' } })
  const segments = segmentsOf(loop)
  if (typeof segments === 'string') {
    invariant(carry === undefined, segments)
    return replaceStmt([top], marked, () => loop)[0]!
  }
  const sums = segmentAccumulators(segments, names)
  const { atomic } = segments.reduce
  const withEpilogue = (epilogue: Epilogue): Body => [
    ...epilogue.start,
    // Batches require a perfect nest. If a later step added copies next to the reduction, iterations run one by one.
    ...(by > 1 && isPerfect(loop, segments)
      ? batches(loop, sums, epilogue, by, names)
      : [sums.eachIteration(loop, epilogue.flush())]),
    ...epilogue.end,
  ]
  const one = (epilogue: Epilogue): Stmt => {
    const body = [...epilogue.registers.map(alloc), ...withEpilogue(epilogue)]
    return replaceStmt([top], marked, () => when(bool(true), body))[0]!
  }
  if (!shares || (carry === undefined && !atomic)) return one(perElement(sums, atomic))
  const writeBack: WriteBack = { own: interiorUpdate(segments.reduce, top, kernel, at), carry }
  const partitioned = { sums, shares, writeBack, names }
  if (within === undefined) return one(perShare(partitioned))
  const groups = groupsOf(shares, within, path, marked)
  invariant(typeof groups !== 'string', 'steps see to it that groups stay what they are')
  const epilogue = perBlock(partitioned, groups)
  const inside = replaceStmt([groups.loop], marked, () => withEpilogue(epilogue))
  const body = replaceStmt([top], groups.loop, () => [
    ...epilogue.registers.map(alloc),
    ...inside,
    ...epilogue.after,
  ])
  // Allocated outside of the loops over blocks, so that the versions of a body share the memory.
  return when(bool(true), [alloc(epilogue.shared), ...body])
}

/** How an element that belongs to one partition only is updated. */
function interiorUpdate(reduce: Reduce, top: Stmt, kernel: Kernel2, at: number): WriteBack['own'] {
  const [target] = reduce.targets
  const uses = (body: Body): readonly Stmt[] =>
    accessesOf(body).flatMap((a) => (a.buffer === target!.buffer ? [a.stmt] : []))
  if (uses([top]).some((s) => s !== reduce)) return 'atomic'
  const before = uses(kernel.body.slice(roundsAround(kernel.body, at)[0], at))
  const [identity] = reduce.reducer.identity
  const last = before.at(-1)
  const filled = last?.kind === 'fill' && identity && sameExpr(last.value, identity)
  return filled ? 'store' : 'update'
}

/**
 * Batches of `by` iterations: all values are loaded first, so that their loads are in flight together, and then combined in order. If the
 * last iteration satisfies the guards, all do, and no iteration tests them.
 */
function batches(loop: For, sums: SegmentAccumulators, epilogue: Epilogue, by: number, names: Names): Body {
  const { reduce, inner, parts } = sums.segments
  const { extent } = loop
  invariant(extent.kind === 'const' && extent.value % by === 0, 'batches divide a constant loop')
  const shape = [int(by), ...inner.map((l) => l.extent)]
  const batchLoop = (guarded: boolean): Body => {
    const values = reduce.values.map((_, k) =>
      local(names.fresh(`${reduce.targets[k]!.buffer}_value`), reduce.reducer.right[k]!.dtype, shape),
    )
    const round = names.fresh(`${loop.var}_round`)
    const each = (make: (map: LoopValues, at: Expr) => Body): Stmt => {
      const name = names.fresh(loop.var)
      const map = new Map([[loop.var, add(mul(variable(round), int(by)), variable(name))]])
      return stmt({
        ...loop,
        var: name,
        extent: int(by),
        mode: { kind: 'unroll', factor: null },
        guards: guarded ? loop.guards.map((g) => substitute(g, map)) : [],
        body: make(map, variable(name)),
      })
    }
    const value = (k: number, at: Expr, map: LoopValues): Load =>
      load(values[k]!.name, [at, ...inner.map((l) => substitute(variable(l.var), map))], values[k]!.dtype)
    const loadPhase: Body = [
      ...values.map(alloc),
      each((map, at) =>
        nest(inner, names, true, map, (all) =>
          reduce.values.map((v, k) => store(values[k]!.name, value(k, at, all).index, substitute(v, all))),
        ),
      ),
    ]
    const combine = (switchElement: (map: LoopValues) => Body): Stmt =>
      each((map, at) => [
        ...switchElement(map),
        ...nest(inner, names, true, map, (all) => [
          sums.combine(
            all,
            values.map((_, k) => value(k, at, all)),
          ),
        ]),
      ])
    const switchElement = (map: LoopValues): Body =>
      sums.switchElement(
        parts.map((p) => substitute(p, map)),
        epilogue.flush(),
      )
    const end = new Map([[loop.var, add(mul(variable(round), int(by)), int(by - 1))]])
    // Loads stay outside of the condition, so that they overlap its evaluation.
    const one = guarded || !grows(parts, loop) ? undefined : sums.staysWithin(end)
    const combinePhase: Stmt = one
      ? when(one, [combine(() => [])], [combine(switchElement), ...sums.setLimit()])
      : combine(switchElement)
    const body: Body = [...loadPhase, combinePhase]
    return [stmt({ ...loop, var: round, extent: int(extent.value / by), guards: [], body })]
  }
  const last = new Map([[loop.var, int(extent.value - 1)]])
  const whole = loop.guards.map((g) => substitute(g, last))
  if (!loop.guards.every((g) => isUpperBound(g, loop))) return batchLoop(true)
  if (whole.length === 0) return batchLoop(false)
  // Only the last partition is partial, so its iterations run one by one.
  return [when(all(whole), batchLoop(false), [sums.eachIteration(loop, epilogue.flush())])]
}

/** Returns true for a guard `c·v + rest < n`, which holds for all earlier iterations if it holds for one. */
function isUpperBound(g: Expr, loop: For): boolean {
  return g.kind === 'binary' && g.op === 'lt' && !mentions(g.b, loop.var) && rises(g.a, loop.var)
}

/** Returns true if the searched value increases with the loop, and the range of the search is invariant. */
const grows = ([part]: readonly Expr[], loop: For): boolean =>
  part?.kind === 'search' &&
  !mentions(part.lo, loop.var) &&
  !mentions(part.hi, loop.var) &&
  rises(part.value, loop.var)

// Fix-up of carry-outs (Merrill and Garland, merge-path partitions, SC 2016). The work partition in which a
// nonempty segment begins stores its result (`schedule/loops/reductions/carry-out.ts` ensures that every
// position and column has a partition). A loop nest after all partitions visits every element and sets empty
// segments to the identity. So no zero-fill is needed before.

/** Replacements of top-level statements of a kernel: an empty list for fills, and nests with an initialisation for fix-ups. */
type Replacements = ReadonlyMap<Stmt, readonly Stmt[]>

/** Returns the replacements for the loops of `kernel` that still have the mode `accumulate`. */
function fixupStarts(kernel: Kernel2, names: Names): Replacements {
  const out = new Map<Stmt, readonly Stmt[]>()
  kernel.body.forEach((top, at) => {
    for (const loop of loopsOf([top]))
      if (loop.mode.kind === 'accumulate' && loop.mode.carry !== undefined && loop.mode.partition)
        for (const [s, by] of fixupStart(kernel, at, loop, loop.mode.carry, loop.mode.partition, names) ?? [])
          out.set(s, by)
  })
  return out
}

function fixupStart(
  kernel: Kernel2,
  at: number,
  marked: For,
  carry: string,
  shares: WorkPartition,
  names: Names,
): Replacements | undefined {
  const loop: For = stmt({ ...marked, mode: { kind: 'serial' } })
  const segments = segmentsOf(loop)
  if (typeof segments === 'string') return undefined
  const { reduce, rest } = segments
  const [target] = reduce.targets
  const uses = kernel.body.map((s) => accessesOf([s]).filter((a) => a.buffer === target!.buffer))
  const [from, to] = roundsAround(kernel.body, at)
  const before = uses.findLastIndex((u, k) => k >= from && k < at && u.length > 0)
  const after = uses.findIndex((u, k) => k > at && k < to && u.length > 0)
  const fill = kernel.body[before]
  const fixup = kernel.body[after]
  // The fill before the first use is that of the reduction itself, with its identity.
  if (fill?.kind !== 'fill' || !fixup || uses[at]!.some((a) => a.stmt !== reduce)) return undefined
  if (!accessesOf([fixup]).some((a) => a.buffer === carry)) return undefined
  const update = uses[after]!.length === 1 ? uses[after]![0]! : undefined
  if (update?.stmt.kind !== 'reduce' || update.stmt.atomic) return undefined
  const row = update.stmt.targets[0]!.index[rest[0]!.findIndex((d) => d.part !== undefined)]!
  const bound = (e: Expr): Expr => load(shares.search.buffer, [e])
  const empty = ge(bound(row), bound(add(row, int(1))))
  const started = withStart([fixup], { reduce: update.stmt, path: update.path }, names, empty)
  if (!started) return undefined
  return new Map<Stmt, readonly Stmt[]>([
    [fill, []],
    [fixup, started],
  ])
}
