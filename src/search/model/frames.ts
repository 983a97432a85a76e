/** Loops around a statement: over blocks, over threads, and serial loops of a thread. */
import { levelOf } from '../../ir/hardware-axes.ts'
import type { For } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { walkStmts } from '../../ir/tree.ts'
import type { Lane } from './coalescing.ts'
import { isWhole } from './whole.ts'

/** A loop around a statement, or a condition (`loop`: null). */
export class Frame {
  readonly loop: For | null
  /** Expected iterations of one entry. */
  readonly extent: number
  /** Executions of its body in the launch. */
  readonly times: number
  /** Keys of accesses already loaded in this frame. */
  #loaded: Set<string> | undefined

  constructor(loop: For | null, extent: number, times: number) {
    this.loop = loop
    this.extent = extent
    this.times = times
  }

  /** Marks the access as loaded; returns true if it already was. */
  loads(key: string): boolean {
    this.#loaded ??= new Set()
    if (this.#loaded.has(key)) return true
    this.#loaded.add(key)
    return false
  }
}

export const isThread = (l: For | null): boolean => l?.mode.kind === 'bind' && levelOf(l.mode.to) === 'thread'
export const isBlock = (l: For | null): boolean => l?.mode.kind === 'bind' && levelOf(l.mode.to) === 'block'

/** Blocks of a launch so far, with a loop of `extent` over blocks inside. */
export const blocksWith = (frames: readonly Frame[], extent: number): number =>
  frames.reduce((n, f) => (isBlock(f.loop) ? n * Math.max(1, f.extent) : n), Math.max(1, extent))

/** Threads of a block. */
export const threadsAround = (frames: readonly Frame[]): number =>
  frames.reduce((n, f) => (isThread(f.loop) ? n * Math.max(1, f.extent) : n), 1)

/** The innermost loop that a thread goes through one by one. */
export const innermostSerial = (frames: readonly Frame[]): number =>
  frames.findLastIndex(
    (f) => f.loop !== null && !isThread(f.loop) && !isBlock(f.loop) && f.loop.mode.kind !== 'vectorize',
  )

/** Loops over the threads of a block, with one inside that may be another. */
export const lanesIn = (lanes: readonly Lane[], { loop, extent }: Frame): readonly Lane[] =>
  loop?.mode.kind === 'bind' && levelOf(loop.mode.to) === 'thread'
    ? [...lanes, { axis: loop.mode.to, variable: loop.var, extent }]
    : lanes

/** 1 for a loop that remains in the generated code; 0 if its iterations are expanded or run in parallel. */
export const loopsIn = ({ mode, extent }: For): 0 | 1 =>
  mode.kind === 'vectorize' ||
  mode.kind === 'instr' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (extent.kind === 'const' && extent.value === 1)
    ? 0
    : 1

/** Trip count of the generated loop for this many iterations of an unrolled one; the remainder is serial. */
export function tripsInText({ mode }: For, extent: number): number {
  if (mode.kind !== 'unroll' || mode.factor === null) return extent
  const groups = Math.floor(extent / mode.factor)
  return mode.predicated ? Math.ceil(extent / mode.factor) : groups + extent - groups * mode.factor
}

/** Compilers unroll loops that hold no other one by so many. */
const UNROLLED = 4

const inTurns = (trips: number, factor: number): number => {
  const whole = Math.floor(trips / factor + 1e-9)
  return whole + Math.max(0, trips - whole * factor)
}

/** Iterations that wait for each other's loads: unrolled ones have them in flight together, and what is left over has not. */
export function tripsInOrder(s: For, trips: number): number {
  const { mode } = s
  switch (mode.kind) {
    case 'vectorize':
    case 'instr':
      return Math.min(1, trips)
    case 'unroll': {
      if (mode.factor === null) return Math.min(1, trips)
      if (mode.predicated) return Math.ceil(trips / mode.factor)
      const whole = Math.floor(trips / mode.factor + 1e-9)
      return whole + inTurns(Math.max(0, trips - whole * mode.factor), UNROLLED)
    }
    case 'accumulate':
      return Math.ceil(trips / mode.by)
    case 'pipeline':
      return Math.ceil(trips / mode.stages)
    case 'serial':
      return holdsLoops(s) ? trips : inTurns(trips, UNROLLED)
    default:
      return trips
  }
}

/** True if a loop contains serial loops of a thread. */
const holdsLoops = remembered((s: For): boolean => {
  let found = false
  walkStmts(s.body, (x) => {
    if (x.kind === 'for' && x.mode.kind !== 'bind' && !isWhole(x)) found = true
  })
  return found
})
