/**
 * Memoisation of steps that act within one loop nest. The result of such a step does not depend on other loop nests,
 * and points of a space have loop nests in common far more often than kernels. A step is applied to a kernel of that
 * loop nest alone, so that the step cannot see other loop nests. The step's queries of names, which concern the whole
 * kernel, are repeated.
 */
import type { Kernel2, Stmt } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import type { Gone, Primitive } from '../primitive.ts'
import type { LoopStep } from '../steps/step-data.ts'
import type { Context, NameQuery } from './context.ts'

/** The result of a step that acts on a single loop nest. */
export interface NestOutcome {
  readonly body: Body
  readonly gone: readonly Gone[]
}

/** The data outside of the loop nest that a step may read. */
const AROUND = [
  'params',
  'buffers',
  'ascending',
  'permutations',
  'distinct',
  'disjointWrites',
  'lostWrites',
] as const satisfies readonly (keyof Kernel2)[]

interface Known extends NestOutcome {
  /** The values of `AROUND`. */
  readonly around: readonly unknown[]
  readonly queries: readonly NameQuery[]
}

let known = new WeakMap<Stmt, Map<string, Known>>()
let count = 0
/**
 * The number of cached results at which the cache is emptied: a thousand points of a space take about ten thousand
 * steps, and loop nests share most of their bytes.
 */
const MOST = 16_384

/** The loop nest of a step, and a text that is equal for equal steps under equal facts about sizes. */
interface Acts {
  readonly at: number
  readonly key: string
}

/** Returns the scope of a step; null if it may act outside of one loop nest. @throws SptError like the step */
export function actsIn(cx: Context, primitive: Primitive<LoopStep>, step: LoopStep): Acts | null {
  const refs = primitive.within?.(cx, step)
  if (!refs || refs.length === 0) return null
  const { body } = cx.kernel
  const found = refs.map((r) => cx.loop(r))
  const top = found[0]!.path[0] ?? found[0]!.loop
  const at = body.indexOf(top)
  if (at < 0 || found.some((f) => (f.path[0] ?? f.loop) !== top)) return null
  const vars = found.map((f) => f.loop.var)
  // Facts about sizes are part of the key: points differ in their requirements.
  const facts = (cx.kernel.facts ?? []).map((f) => [f.size, f.relation, f.by])
  return { at, key: JSON.stringify([vars, { ...step, span: undefined }, facts]) }
}

/** Returns the result of the same step on the same loop nest, if it is valid here; undefined otherwise. */
export function recalled(cx: Context, { at, key }: Acts): NestOutcome | undefined {
  const { kernel } = cx
  const before = known.get(kernel.body[at]!)?.get(key)
  if (!before || AROUND.some((part, k) => before.around[k] !== kernel[part])) return undefined
  const scratch = cx.on(kernel)
  return before.queries.every((q) => q(scratch)) ? before : undefined
}

export function keep(
  { kernel }: Context,
  { at, key }: Acts,
  made: NestOutcome,
  queries: readonly NameQuery[],
): void {
  const nest = kernel.body[at]!
  if (count >= MOST) {
    known = new WeakMap()
    count = 0
  }
  const ofNest = known.get(nest) ?? new Map<string, Known>()
  known.set(nest, ofNest)
  if (!ofNest.has(key)) count++
  ofNest.set(key, { ...made, around: AROUND.map((part) => kernel[part]), queries })
}
