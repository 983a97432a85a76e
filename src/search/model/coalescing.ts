/** Coalescing: sectors and cache lines that neighbouring threads access together. */

import { DTYPE_BYTES } from '../../ir/dtype.ts'
import type { Expr, ThreadAxis } from '../../ir/expr.ts'
import { freeVars, someExpr } from '../../ir/expr-tree.ts'
import { AXES_OF_BLOCK } from '../../ir/hardware-axes.ts'
import type { Buffer, For } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { affineOf, type Known } from './estimates.ts'
import { isWhole } from './whole.ts'

/** A loop over threads of a block. */
export interface Lane {
  readonly axis: ThreadAxis
  readonly variable: string
  readonly extent: number
}

/** An address as far as neighbours are concerned. */
export interface Address {
  /** Steps of the last dimension, by variable. */
  readonly steps: ReadonlyMap<string, number>
  /** Variables that change it in any other way. */
  readonly jumps: ReadonlySet<string>
}

export function addressOf(index: readonly Expr[], k: Known): Address {
  const jumps = new Set<string>()
  const steps = new Map<string, number>()
  index.forEach((e, d) => {
    const last = d === index.length - 1
    const form = last ? affineOf(e, k) : null
    if (form) for (const [name, by] of form.by) steps.set(name, by)
    else if (last) stepsBeside(e, k, steps, jumps)
    else for (const v of freeVars(e)) if (k.ranges.has(v)) jumps.add(v)
  })
  return { steps, jumps }
}

const reads = remembered((e: Expr): boolean => someExpr(e, (x) => x.kind === 'load' || x.kind === 'search'))

/** Splits a sum: variables step, loaded values jump. */
function stepsBeside(e: Expr, k: Known, steps: Map<string, number>, jumps: Set<string>): void {
  if (e.kind === 'binary' && e.op === 'add') {
    stepsBeside(e.a, k, steps, jumps)
    stepsBeside(e.b, k, steps, jumps)
    return
  }
  const form = reads(e) ? null : affineOf(e, k)
  if (form) for (const [name, by] of form.by) steps.set(name, (steps.get(name) ?? 0) + by)
  else for (const v of freeVars(e)) if (k.ranges.has(v)) jumps.add(v)
}

/** Memory transactions of an access. */
export interface Spread {
  /** Neighbouring elements that one thread asks for at once. */
  readonly vector: number
  /** Sectors for each request of a thread. */
  readonly sectors: number
  /** Sectors that the thread's previous request did not contain. */
  readonly fresh: number
  /** Cache lines for each request of a thread: the near cache gives one after the other. */
  readonly lines: number
  /** Elements side by side that are asked for together. */
  readonly run: number
}

export const SECTOR = 32
const LINE = 128
export const WARP = 32
/** Bytes of the widest access of one thread. */
const WIDEST = 16

export function spreadOf(
  { steps, jumps }: Address,
  buffer: Buffer,
  lanes: readonly Lane[],
  around: readonly { readonly loop: For | null; readonly extent: number }[],
): Spread {
  const bytes = DTYPE_BYTES[buffer.dtype]
  const frames = around.filter(({ loop }) => !lanes.some((l) => l.variable === loop?.var))
  const own = runOfThread(frames, steps)
  let run = own
  const vector = Math.min(own, Math.max(1, WIDEST / bytes))
  let [left, regions, asking, beside] = [WARP, 1, 1, 1]
  for (const axis of AXES_OF_BLOCK) {
    const rest = lanes.filter((l) => l.axis === axis)
    while (rest.length > 0 && left > 1) {
      // Of a tile that threads hold together, what lies side by side comes first.
      const next = rest.findIndex((l) => !jumps.has(l.variable) && steps.get(l.variable) === run)
      const [l] = rest.splice(Math.max(0, next), 1)
      const n = Math.min(left, Math.max(1, Math.round(l!.extent)))
      left = Math.floor(left / n)
      asking *= n
      if (next >= 0) {
        run *= n
        beside *= n
      } else if (jumps.has(l!.variable) || (steps.get(l!.variable) ?? 0) !== 0) regions *= n
    }
  }
  // With a run over several requests of a thread, a request has its part of the sectors.
  const touched = regions * Math.max(1, (run * bytes) / SECTOR)
  const requests = asking * Math.max(1, own / vector)
  const lines = regions * Math.max(1, Math.min(beside, (run * bytes) / LINE))
  const along = frames.findLast(({ loop }) => loop !== null && loop.mode.kind !== 'bind' && !isWhole(loop))
  // What a thread has next lies beside it: until the sector is used up.
  const next = along?.loop && !jumps.has(along.loop.var) ? (steps.get(along.loop.var) ?? 0) : 0
  const again =
    next > 0 && run === own ? Math.max(1, Math.min(along!.extent, SECTOR / (bytes * Math.max(next, own)))) : 1
  return {
    vector,
    sectors: touched / requests,
    fresh: touched / requests / again,
    lines: lines / asking,
    run,
  }
}

/** Number of contiguous elements that one thread accesses together in its expanded loops. */
function runOfThread(
  frames: readonly { readonly loop: For | null }[],
  steps: ReadonlyMap<string, number>,
): number {
  let run = 1
  for (const { loop } of frames)
    if (loop && isWhole(loop) && steps.get(loop.var) === run && loop.extent.kind === 'const')
      run *= loop.extent.value
  return run
}
