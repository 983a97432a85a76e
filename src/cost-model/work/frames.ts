/** Loops around a statement: over blocks, over threads, and serial loops of a thread. */
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import type { For } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import { isExpanded, type Lane } from './coalescing.ts'

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
export const extendLanes = (lanes: readonly Lane[], { loop, extent }: Frame): readonly Lane[] =>
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

/**
 * Trips that wait for each other's loads: unrolled iterations have their loads in flight together, those of the
 * remainder loop do not.
 */
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
