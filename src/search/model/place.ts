/** Position of a walk through loops: known values, execution counts, and probabilities of conditions. */
import type { Expr, Load, Search } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { For } from '../../ir/loops.ts'
import type { Lane } from './coalescing.ts'
import { expected, type Known, type Range, shareOf } from './estimates.ts'
import { type Frame, lanesIn } from './frames.ts'
import { isWhole } from './whole.ts'

/** Position of the walk. The walk owns and updates the values known of variables and segments. */
export class Place implements Known {
  readonly params: Known['params']
  readonly filled: Known['filled']
  readonly ranges: Map<string, Range>
  readonly lengths: Map<string, number>
  readonly times: number
  /** As if every loop that reduces ran once: how often an accumulator starts. */
  readonly starts: number
  /** Share of the iterations of predicated loops that read anything new. */
  readonly useful: number
  readonly frames: readonly Frame[]
  /** Those of the frames that are threads of a block. */
  readonly lanes: readonly Lane[]
  /** Guards that hold here, with the share that they let through. */
  readonly held: readonly Held[]

  private constructor(
    { params, filled, ranges, lengths }: Pick<Place, 'params' | 'filled' | 'ranges' | 'lengths'>,
    times: number,
    starts: number,
    useful: number,
    frames: readonly Frame[],
    lanes: readonly Lane[],
    held: readonly Held[],
  ) {
    this.params = params
    this.filled = filled
    this.ranges = ranges
    this.lengths = lengths
    this.times = times
    this.starts = starts
    this.useful = useful
    this.frames = frames
    this.lanes = lanes
    this.held = held
  }

  /** Outside of all loops. */
  static outside({ params, filled }: Pick<Known, 'params' | 'filled'>): Place {
    return new Place({ params, filled, ranges: new Map(), lengths: new Map() }, 1, 1, 1, [], [], [])
  }

  /** The position inside a branch taken with probability `share`. */
  inCase(share: number): Place {
    const { times, starts, useful, frames, lanes, held } = this
    return new Place(this, times * share, starts * share, useful, frames, lanes, held)
  }

  /** Under a condition. */
  under(frame: Frame): Place {
    const { starts, useful, frames, lanes, held } = this
    return new Place(this, frame.times, starts * frame.extent, useful, [...frames, frame], lanes, held)
  }

  /** In a loop. */
  inside(frame: Frame, starts: number, useful: number, held: readonly Held[]): Place {
    const lanes = lanesIn(this.lanes, frame)
    return new Place(this, frame.times, starts, useful, [...this.frames, frame], lanes, held)
  }
}

export interface Held {
  readonly vars: ReadonlySet<string>
  readonly share: number
}

/**
 * The share of iterations that the guards of a loop let through. A guard over more variables implies those before it over
 * fewer of them, as the guards of a split loop do that is split again: their share is not taken twice.
 */
export function guarded(s: For, p: Place): { readonly share: number; readonly held: readonly Held[] } {
  let [share, held] = [1, p.held]
  for (const g of s.guards) {
    const vars = freeVars(g)
    const implied = held.filter((h) => [...h.vars].every((v) => vars.has(v)))
    const before = implied.reduce((product, h) => product * h.share, 1)
    const all = shareOf(g, p)
    share *= before === 0 ? 0 : Math.min(1, all / before)
    held = [...held.filter((h) => !implied.includes(h)), { vars, share: all }]
  }
  return { share, held }
}

/**
 * Number of executions of an access inside the loops up to `at`. Expanded iterations count once if its address is the same in
 * all of them; accesses of an instruction count once for each element of an operand.
 */
export function timesOf({ frames }: Place, x: Load | Search, at: number): number {
  const vars = freeVars(x)
  const from = frames.findIndex((f) => f.loop?.mode.kind === 'instr')
  const text = textFrom(frames, at)
  const first = from < 0 ? text : Math.min(from, text)
  let n = frames[first - 1]?.times ?? 1
  for (let k = first; k <= at; k++) {
    const { loop, extent } = frames[k]!
    if (loop && vars.has(loop.var)) n *= extent
  }
  return n
}

/** Index of the first frame, up to `at`, from which the iterations are expanded. */
function textFrom(frames: readonly Frame[], at: number): number {
  for (let k = at; k >= 0; k--) {
    const { loop } = frames[k]!
    if (!loop || !isWhole(loop)) return k + 1
  }
  return 0
}

/** Share of the iterations of a thread's loops in which a load is executed, after hoisting. */
export function onceOf({ frames }: Place, x: Load | Search, at: number): number {
  const vars = freeVars(x)
  const text = textFrom(frames, at)
  let n = 1
  for (let k = 0; k < frames.length; k++) {
    const { loop, extent } = frames[k]!
    if (!loop || loop.mode.kind === 'bind' || k < text || (k <= at && vars.has(loop.var))) continue
    n /= Math.max(1, extent)
  }
  return n
}

/** The range of a variable where a bound of it holds, or does not. */
export interface Narrowed {
  readonly name: string
  readonly part: Range
  readonly whole: Range
}

export function narrowed(cond: Expr, p: Place, holds: boolean): Narrowed | null {
  if (cond.kind !== 'binary' || cond.op !== 'lt' || cond.a.kind !== 'var') return null
  const { name } = cond.a
  const [whole, bound] = [p.ranges.get(name), expected(cond.b, p)]
  if (!whole || Number.isNaN(bound)) return null
  const end = whole.lo + whole.extent
  const at = Math.min(end, Math.max(whole.lo, bound))
  const part = holds ? { lo: whole.lo, extent: at - whole.lo } : { lo: at, extent: end - at }
  return { name, part, whole }
}
