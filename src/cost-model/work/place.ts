/** Position of a walk through loops: known values, execution counts, and probabilities of conditions. */
import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import type { For } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { isExpanded, type Lane } from './coalescing.ts'
import { expectedValue, type KnownValues, probabilityOf, type Range } from './estimates.ts'

/** Position of the walk. The walk owns and updates the ranges of variables and the lengths of segments. */
export interface Place extends KnownValues {
  readonly ranges: Map<string, Range>
  readonly lengths: Map<string, number>
  readonly times: number
  /** Number of initialisations of an accumulator: `times` as if every reduction loop ran once. */
  readonly starts: number
  /** Share of the iterations of predicated loops that are not beyond the end. */
  readonly useful: number
  readonly frames: readonly Frame[]
  /** Frames that are loops over threads of a block. */
  readonly lanes: readonly Lane[]
  /** Guards that hold at this position, with their probabilities. */
  readonly guards: readonly Guard[]
}

/** The position outside of all loops. */
export const rootPlace = ({ params, filled }: Pick<KnownValues, 'params' | 'filled'>): Place => ({
  params,
  filled,
  ranges: new Map(),
  lengths: new Map(),
  times: 1,
  starts: 1,
  useful: 1,
  frames: [],
  lanes: [],
  guards: [],
})

/** The position inside a loop, or inside a condition as a frame. */
export const inFrame = (
  p: Place,
  frame: Frame,
  inner: Pick<Place, 'starts'> & Partial<Pick<Place, 'useful' | 'guards'>>,
): Place => ({
  ...p,
  ...inner,
  times: frame.times,
  frames: [...p.frames, frame],
  lanes: extendLanes(p.lanes, frame),
})

export interface Guard {
  readonly vars: ReadonlySet<string>
  readonly share: number
}

/**
 * Probability that the guards of a loop hold. A guard over more variables implies earlier guards over a subset of them,
 * as after splitting a loop twice; its probability is conditional on theirs.
 */
export function applyGuards(s: For, p: Place): { readonly share: number; readonly guards: readonly Guard[] } {
  let [share, guards] = [1, p.guards]
  for (const g of s.guards) {
    const vars = freeVars(g)
    const implied = guards.filter((h) => [...h.vars].every((v) => vars.has(v)))
    const impliedShare = implied.reduce((product, h) => product * h.share, 1)
    const probability = probabilityOf(g, p)
    share *= impliedShare === 0 ? 0 : Math.min(1, probability / impliedShare)
    guards = [...guards.filter((h) => !implied.includes(h)), { vars, share: probability }]
  }
  return { share, guards }
}

/**
 * Number of executions of an access inside the frames up to index `depth`. Expanded iterations count once if the
 * address is the same in all of them; accesses of an instruction count once for each element of an operand.
 */
export function timesOf({ frames }: Place, x: Load | Search, depth: number): number {
  const vars = freeVars(x)
  const instruction = frames.findIndex((f) => f.loop?.mode.kind === 'instr')
  const expanded = firstExpanded(frames, depth)
  const first = instruction < 0 ? expanded : Math.min(instruction, expanded)
  let n = frames[first - 1]?.times ?? 1
  for (let k = first; k <= depth; k++) {
    const { loop, extent } = frames[k]!
    if (loop && vars.has(loop.var)) n *= extent
  }
  return n
}

/** Index of the first frame, up to `depth`, from which all iterations are expanded. */
function firstExpanded(frames: readonly Frame[], depth: number): number {
  for (let k = depth; k >= 0; k--) {
    const { loop } = frames[k]!
    if (!loop || !isExpanded(loop)) return k + 1
  }
  return 0
}

/** Share of a statement's executions in which a load runs, after hoisting out of independent loops. */
export function hoistedShare({ frames }: Place, x: Load | Search, depth: number): number {
  const vars = freeVars(x)
  const expanded = firstExpanded(frames, depth)
  let n = 1
  for (let k = 0; k < frames.length; k++) {
    const { loop, extent } = frames[k]!
    if (!loop || loop.mode.kind === 'bind' || k < expanded || (k <= depth && vars.has(loop.var))) continue
    n /= Math.max(1, extent)
  }
  return n
}

/** The range of a variable in a branch, next to its range outside of it. */
export interface Narrowing {
  readonly name: string
  readonly part: Range
  readonly whole: Range
}

/** Range of the variable where `cond`, of the form `variable < bound`, holds or fails; `null` for other conditions. */
export function narrow(cond: Expr, p: Place, holds: boolean): Narrowing | null {
  if (cond.kind !== 'binary' || cond.op !== 'lt' || cond.a.kind !== 'var') return null
  const { name } = cond.a
  const [whole, bound] = [p.ranges.get(name), expectedValue(cond.b, p)]
  if (!whole || Number.isNaN(bound)) return null
  const end = whole.start + whole.extent
  const split = Math.min(end, Math.max(whole.start, bound))
  const part = holds
    ? { start: whole.start, extent: split - whole.start }
    : { start: split, extent: end - split }
  return { name, part, whole }
}

// Loops around a statement: over blocks, over threads, and serial loops of a thread.

/** A loop around a statement, or a condition (`loop`: null). */
export interface Frame {
  readonly loop: For | null
  /** Expected iterations per entry. */
  readonly extent: number
  /** Executions of the body in the launch. */
  readonly times: number
  /** Keys of accesses already loaded in this frame. */
  readonly loaded: Set<string>
}

export const frameOf = (loop: For | null, extent: number, times: number): Frame => ({
  loop,
  extent,
  times,
  loaded: new Set(),
})

export const isThread = (l: For | null): boolean => l?.mode.kind === 'bind' && levelOf(l.mode.to) === 'thread'
export const isBlock = (l: For | null): boolean => l?.mode.kind === 'bind' && levelOf(l.mode.to) === 'block'

/** Number of blocks of a launch, with a loop over `extent` blocks inside `frames`. */
export const blockCount = (frames: readonly Frame[], extent: number): number =>
  frames.reduce((n, f) => (isBlock(f.loop) ? n * Math.max(1, f.extent) : n), Math.max(1, extent))

/** Number of threads of a block. */
export const threadCount = (frames: readonly Frame[]): number =>
  frames.reduce((n, f) => (isThread(f.loop) ? n * Math.max(1, f.extent) : n), 1)

/** Index of the innermost loop that a thread executes serially; -1 if there is none. */
export const innermostSerial = (frames: readonly Frame[]): number =>
  frames.findLastIndex(
    (f) => f.loop !== null && !isThread(f.loop) && !isBlock(f.loop) && f.loop.mode.kind !== 'vectorize',
  )

/** The lanes, extended by a frame if it is a loop over threads of a block. */
const extendLanes = (lanes: readonly Lane[], { loop, extent }: Frame): readonly Lane[] =>
  loop?.mode.kind === 'bind' && levelOf(loop.mode.to) === 'thread'
    ? [...lanes, { axis: loop.mode.to, variable: loop.var, extent }]
    : lanes

/** 1 for a loop that remains in the generated code; 0 if its iterations are expanded or run in parallel. */
export const loopCount = ({ mode, extent }: For): 0 | 1 =>
  mode.kind === 'vectorize' ||
  mode.kind === 'instr' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (extent.kind === 'const' && extent.value === 1)
    ? 0
    : 1

/** Trip count of the generated loop for this many iterations of an unrolled one; the remainder loop is serial. */
export function generatedTrips({ mode }: For, extent: number): number {
  if (mode.kind !== 'unroll' || mode.factor === null) return extent
  const groups = Math.floor(extent / mode.factor)
  return mode.predicated ? Math.ceil(extent / mode.factor) : groups + extent - groups * mode.factor
}

/** Factor by which compilers unroll innermost loops. */
const COMPILER_UNROLL = 4

/** Trips of a loop unrolled by `factor`, with a serial remainder. */
const unrolledTrips = (trips: number, factor: number): number => {
  const unrolled = Math.floor(trips / factor + 1e-9)
  return unrolled + Math.max(0, trips - unrolled * factor)
}

/** Trips that wait for each other's loads: unrolled iterations have theirs in flight together. */
export function serialTrips(s: For, trips: number): number {
  const { mode } = s
  switch (mode.kind) {
    case 'vectorize':
    case 'instr':
      return Math.min(1, trips)
    case 'unroll': {
      if (mode.factor === null) return Math.min(1, trips)
      if (mode.predicated) return Math.ceil(trips / mode.factor)
      const unrolled = Math.floor(trips / mode.factor + 1e-9)
      return unrolled + unrolledTrips(Math.max(0, trips - unrolled * mode.factor), COMPILER_UNROLL)
    }
    case 'accumulate':
      return Math.ceil(trips / mode.by)
    case 'pipeline':
      return Math.ceil(trips / mode.stages)
    case 'serial':
      return hasInnerLoops(s) ? trips : unrolledTrips(trips, COMPILER_UNROLL)
    default:
      return trips
  }
}

/** True if a loop contains serial loops of a thread. */
const hasInnerLoops = memoize((s: For): boolean => {
  let hasInner = false
  walkStmts(s.body, (x) => {
    if (x.kind === 'for' && x.mode.kind !== 'bind' && !isExpanded(x)) hasInner = true
  })
  return hasInner
})
