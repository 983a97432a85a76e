/** Coalescing: sectors and cache lines that neighbouring threads access together. */
import type { Expr, ThreadAxis } from '../../ir/expressions/expr.ts'
import { freeVars, someExpr } from '../../ir/expressions/expr-tree.ts'
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, For } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { affineOf, type KnownValues } from './estimates.ts'

/** Maximum number of iterations that compilers expand; more remain a loop in the generated code. */
const MAX_EXPANDED = 16

/** True if all iterations of a loop are expanded in the generated code. */
export const isExpanded = ({ mode, extent }: For): boolean =>
  mode.kind === 'vectorize' ||
  (mode.kind === 'unroll' && mode.factor === null) ||
  (mode.kind === 'serial' && extent.kind === 'const' && extent.value <= MAX_EXPANDED)

/** A loop over threads of a block, bound to one axis. */
export interface Lane {
  readonly axis: ThreadAxis
  readonly variable: string
  readonly extent: number
}

/** Dependence of an address on loop variables, as far as coalescing requires it. */
interface Address {
  /** Increment of the address in elements, by variable. */
  readonly steps: ReadonlyMap<string, number>
  /** Variables that change the address in any other way. */
  readonly jumps: ReadonlySet<string>
}

export function addressOf(index: readonly Expr[], k: KnownValues): Address {
  const jumps = new Set<string>()
  const steps = new Map<string, number>()
  index.forEach((e, d) => {
    const last = d === index.length - 1
    const affine = last ? affineOf(e, k) : null
    if (affine) for (const [name, factor] of affine.coefficients) steps.set(name, factor)
    else if (last) collectSteps(e, k, steps, jumps)
    else for (const v of freeVars(e)) if (k.ranges.has(v)) jumps.add(v)
  })
  return { steps, jumps }
}

const hasLoads = memoize((e: Expr): boolean => someExpr(e, (x) => x.kind === 'load' || x.kind === 'search'))

/** Splits a sum: variables contribute steps, loaded values jumps. */
function collectSteps(e: Expr, k: KnownValues, steps: Map<string, number>, jumps: Set<string>): void {
  if (e.kind === 'binary' && e.op === 'add') {
    collectSteps(e.a, k, steps, jumps)
    collectSteps(e.b, k, steps, jumps)
    return
  }
  const affine = hasLoads(e) ? null : affineOf(e, k)
  if (affine)
    for (const [name, factor] of affine.coefficients) steps.set(name, (steps.get(name) ?? 0) + factor)
  else for (const v of freeVars(e)) if (k.ranges.has(v)) jumps.add(v)
}

export interface Transactions {
  /** Contiguous elements of one request of a thread. */
  readonly vector: number
  /** Sectors per request of a thread. */
  readonly sectors: number
  /** Sectors per request that the thread's previous request did not contain. */
  readonly fresh: number
  /** Cache lines per request of a thread: the near cache serves them one after the other. */
  readonly lines: number
  /** Contiguous elements that the threads of a warp access together. */
  readonly run: number
}

export const SECTOR = 32
const LINE = 128
export const WARP = 32
/** Bytes of the widest access of one thread. */
const WIDEST = 16

/** Memory transactions of one access by a warp: threads along `lanes`, inside the loops `loops`. */
export function transactionsOf(
  { steps, jumps }: Address,
  buffer: Buffer,
  lanes: readonly Lane[],
  loops: readonly { readonly loop: For | null; readonly extent: number }[],
): Transactions {
  const bytes = DTYPE_BYTES[buffer.dtype]
  const frames = loops.filter(({ loop }) => !lanes.some((l) => l.variable === loop?.var))
  const threadRun = contiguousRun(frames, steps)
  let run = threadRun
  const vector = Math.min(threadRun, Math.max(1, WIDEST / bytes))
  let [free, regions, threads, neighbours] = [WARP, 1, 1, 1]
  for (const axis of AXES_OF_BLOCK) {
    const remaining = lanes.filter((l) => l.axis === axis)
    while (remaining.length > 0 && free > 1) {
      // In a tile that threads hold together, contiguous lanes come first.
      const adjacent = remaining.findIndex((l) => !jumps.has(l.variable) && steps.get(l.variable) === run)
      const [l] = remaining.splice(Math.max(0, adjacent), 1)
      const n = Math.min(free, Math.max(1, Math.round(l!.extent)))
      free = Math.floor(free / n)
      threads *= n
      if (adjacent >= 0) {
        run *= n
        neighbours *= n
      } else if (jumps.has(l!.variable) || (steps.get(l!.variable) ?? 0) !== 0) regions *= n
    }
  }
  // If a thread's run takes several requests, each request has its part of the sectors.
  const warpSectors = regions * Math.max(1, (run * bytes) / SECTOR)
  const warpRequests = threads * Math.max(1, threadRun / vector)
  const warpLines = regions * Math.max(1, Math.min(neighbours, (run * bytes) / LINE))
  const serial = frames.findLast(
    ({ loop }) => loop !== null && loop.mode.kind !== 'bind' && !isExpanded(loop),
  )
  // A thread's next elements are contiguous, until the sector is used up.
  const step = serial?.loop && !jumps.has(serial.loop.var) ? (steps.get(serial.loop.var) ?? 0) : 0
  const reuse =
    step > 0 && run === threadRun
      ? Math.max(1, Math.min(serial!.extent, SECTOR / (bytes * Math.max(step, threadRun))))
      : 1
  return {
    vector,
    sectors: warpSectors / warpRequests,
    fresh: warpSectors / warpRequests / reuse,
    lines: warpLines / threads,
    run,
  }
}

/** Number of contiguous elements that one thread accesses together in its expanded loops. */
function contiguousRun(
  frames: readonly { readonly loop: For | null }[],
  steps: ReadonlyMap<string, number>,
): number {
  let run = 1
  for (const { loop } of frames)
    if (loop && isExpanded(loop) && steps.get(loop.var) === run && loop.extent.kind === 'const')
      run *= loop.extent.value
  return run
}
