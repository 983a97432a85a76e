/** Trip counts of loops, as far as the given sizes determine them, and decisions that depend on them. */
import { freeVars } from '../ir/expressions/expr-tree.ts'
import { evaluate } from '../ir/values/evaluate.ts'
import type { Draft, Schedulable } from './draft.ts'
import { largestUpTo, type RuleContext, VECTOR } from './partition.ts'
import type { Strand, StrandLoop } from './strands.ts'

/** The number of iterations without guards, if the given sizes determine it. */
export const tripCount = (
  { extent }: StrandLoop,
  { sizes }: Pick<RuleContext, 'sizes'>,
): number | undefined =>
  [...freeVars(extent)].every((v) => sizes.has(v)) ? evaluate(extent, sizes) : undefined

/** The number of elements that a strand computes, if the given sizes determine it. */
export const elementCount = ({ loops }: Strand, context: Pick<RuleContext, 'sizes'>): number | undefined =>
  loops
    .filter((l) => !l.reduce)
    .reduce<number | undefined>((n, l) => {
      const own = tripCount(l, context)
      return n === undefined || own === undefined ? undefined : n * own
    }, 1)

/** Elements below which several threads compute one element together. */
const FEW_ELEMENTS = 2 ** 14

/** True if the given sizes show that there are too few elements for a thread each. */
export const hasFewElements = (strand: Strand, context: Pick<RuleContext, 'sizes'>): boolean =>
  (elementCount(strand, context) ?? FEW_ELEMENTS) < FEW_ELEMENTS

/** The loop with the most iterations, an unknown number before any known one; the first one of several. */
export const longestLoop = (
  loops: readonly StrandLoop[],
  context: Pick<RuleContext, 'sizes'>,
): StrandLoop => {
  const length = (l: StrandLoop): number => tripCount(l, context) ?? Infinity
  return loops.reduce((a, b) => (length(b) > length(a) ? b : a))
}

/** True if the loop's size is given and a multiple of `by`. */
export function divides(by: number, { size }: StrandLoop, { sizes }: RuleContext): boolean {
  const value = size === null ? undefined : sizes.get(size)
  return value !== undefined && value > 0 && value % by === 0
}

/** Requires that the loop's size is a multiple of `by`, if the given size is. */
export function requireMultiple<K extends Schedulable<K>>(
  draft: Draft<K>,
  loop: StrandLoop,
  by: number,
  context: RuleContext,
): void {
  if (by === 1 || !divides(by, loop, context)) return
  // The same requirement twice would simplify all nests again.
  const isKnown = draft.loops.facts?.some(
    (f) => f.size === loop.size && f.relation === 'multiple' && f.by === by,
  )
  if (isKnown) return
  draft.step({ kind: 'require', size: loop.size!, relation: 'multiple', by })
}

/** Default number of lanes: one vector per lane for a loop of known size, otherwise `otherwise`. */
export function guessLanes(
  values: readonly number[],
  loop: StrandLoop | undefined,
  { sizes }: RuleContext,
  otherwise: number,
): number {
  const size = loop?.size ? sizes.get(loop.size) : undefined
  return largestUpTo(values, size === undefined ? otherwise : Math.ceil(size / VECTOR))
}
