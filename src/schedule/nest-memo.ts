/**
 * Memoisation of steps that act within one nest: what such a step makes of the nest is the same whatever stands beside it,
 * and points of a space have nests in common far more often than kernels. A step is taken on a kernel of that nest alone,
 * so that it cannot see the others; what it asked of names, which are the whole kernel's, is asked again.
 */
import type { Kernel2, Stmt } from '../ir/loops.ts'
import type { Body } from '../ir/tree.ts'
import type { Context, NameQuery } from './context.ts'
import type { Gone, Primitive } from './primitive.ts'
import type { LoopStep } from './steps.ts'

/** What a step made of a nest. */
export interface NestOutcome {
  readonly body: Body
  readonly gone: readonly Gone[]
}

/** What a step may look at beside the nest. */
type Around = Omit<Kernel2, 'stage' | 'name' | 'body' | 'span' | 'facts'>

/** Each field by its name: the rest of all others takes V8 ten times as long. */
const aroundOf = (k: Kernel2): { readonly [P in keyof Required<Around>]: Around[P] } => ({
  params: k.params,
  buffers: k.buffers,
  ascending: k.ascending,
  permutations: k.permutations,
  distinct: k.distinct,
  disjointWrites: k.disjointWrites,
  lostWrites: k.lostWrites,
  defaults: k.defaults,
  capacities: k.capacities,
  found: k.found,
})

interface Known extends NestOutcome {
  readonly around: Around
  readonly queries: readonly NameQuery[]
}

/** By the nest and the step's text. */
let known = new WeakMap<Stmt, Map<string, Known>>()
let count = 0
/** So many are kept, then none: a thousand points of a space take some ten thousand steps; nests share most of their bytes. */
const MOST = 16_384

/** Where a step acts: the place of the nest in the kernel's body, and a text of the step, and of what is known of sizes,
 * that is equal for equal ones. */
interface Acts {
  readonly at: number
  readonly key: string
}

/** `null`: not within one nest, as far as is known. @throws SptError as the step, where it names a loop that is none */
export function actsIn(cx: Context, primitive: Primitive<LoopStep>, step: LoopStep): Acts | null {
  const refs = primitive.within?.(cx, step)
  if (!refs || refs.length === 0) return null
  const { body } = cx.kernel
  const found = refs.map((r) => cx.loop(r))
  const top = found[0]!.path[0] ?? found[0]!.loop
  const at = body.indexOf(top)
  if (at < 0 || found.some((f) => (f.path[0] ?? f.loop) !== top)) return null
  const vars = found.map((f) => f.loop.var)
  // Of sizes it may be known otherwise: points differ in what they require.
  const facts = (cx.kernel.facts ?? []).map((f) => [f.size, f.relation, f.by])
  return { at, key: JSON.stringify([vars, { ...step, span: undefined }, facts]) }
}

/** What the step made of the nest before, where that is what it would make of it here. */
export function recalled(cx: Context, { at, key }: Acts): NestOutcome | undefined {
  const { kernel } = cx
  const before = known.get(kernel.body[at]!)?.get(key)
  if (!before || !isAlike(before.around, kernel)) return undefined
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
  ofNest.set(key, { ...made, around: aroundOf(kernel), queries })
}

function isAlike(a: Around, b: Around): boolean {
  return (
    a.params === b.params &&
    a.buffers === b.buffers &&
    a.ascending === b.ascending &&
    a.permutations === b.permutations &&
    a.distinct === b.distinct &&
    a.disjointWrites === b.disjointWrites &&
    a.lostWrites === b.lostWrites
  )
}
