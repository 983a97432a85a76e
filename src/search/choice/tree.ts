/** Decision trees that assign candidates to data with minimal total loss. */
import { type Condition, type Evidence, holds, type Measure, type Part, ratio } from './conditions.ts'

export type Tree =
  | { readonly kind: 'leaf'; readonly candidate: number }
  | { readonly kind: 'split'; readonly condition: Condition; readonly then: Tree; readonly otherwise: Tree }

export interface GrowOptions {
  /** Minimum gain of a leaf: the saving in log(time / best), averaged over all cases. */
  readonly gain: number
  /** Maximum number of leaves. */
  readonly leaves: number
  /** Minimum number of groups with cases in a leaf. */
  readonly groups: number
}

/** A leaf that may be split. */
interface Open {
  kind: 'open'
  readonly cases: readonly number[]
  readonly candidate: number
  readonly split: Split | null
}

interface Split {
  readonly condition: Condition
  readonly gain: number
  readonly then: readonly number[]
  readonly otherwise: readonly number[]
}

type Grown = Open | { kind: 'split'; condition: Condition; then: Grown; otherwise: Grown }

/** Splits the leaf that saves most, until no split saves enough. */
export function grow(
  evidence: Evidence,
  losses: readonly Float64Array[],
  part: Part,
  { gain, leaves, groups }: GrowOptions,
): Tree {
  const open = (cases: readonly number[]): Open => {
    const sums = part.candidates.map((k) => cases.reduce((n, c) => n + losses[k]![c]!, 0))
    const least = Math.min(...sums)
    return {
      kind: 'open',
      cases,
      candidate: part.candidates[sums.indexOf(least)]!,
      split: bestSplit(evidence, losses, part.candidates, cases, { loss: least, groups }),
    }
  }
  let tree: Grown = open(part.cases)
  for (let count = 1; count < leaves; count++) {
    const next = openLeaves(tree).reduce<Open | null>(
      (best, leaf) => ((leaf.split?.gain ?? 0) > (best?.split?.gain ?? 0) ? leaf : best),
      null,
    )
    if (!next?.split || next.split.gain < gain * part.cases.length) break
    const { condition, then, otherwise } = next.split
    tree = replaceLeaf(tree, next, { kind: 'split', condition, then: open(then), otherwise: open(otherwise) })
  }
  return closeLeaves(tree)
}

const openLeaves = (t: Grown): readonly Open[] =>
  t.kind === 'open' ? [t] : [...openLeaves(t.then), ...openLeaves(t.otherwise)]

function replaceLeaf(tree: Grown, leaf: Open, by: Grown): Grown {
  if (tree === leaf) return by
  if (tree.kind === 'open') return tree
  return { ...tree, then: replaceLeaf(tree.then, leaf, by), otherwise: replaceLeaf(tree.otherwise, leaf, by) }
}

const closeLeaves = (t: Grown): Tree =>
  t.kind === 'open'
    ? { kind: 'leaf', candidate: t.candidate }
    : {
        kind: 'split',
        condition: t.condition,
        then: closeLeaves(t.then),
        otherwise: closeLeaves(t.otherwise),
      }

/** The split with the greatest gain; for ties, the earliest measure. */
function bestSplit(
  { measures, cases: all }: Evidence,
  losses: readonly Float64Array[],
  candidates: readonly number[],
  cases: readonly number[],
  { loss, groups }: { readonly loss: number; readonly groups: number },
): Split | null {
  let best: Split | null = null
  for (const measure of measures) {
    if (!cases.every((c) => isKnown(measure, all[c]!.values))) continue
    const order = [...cases].sort((a, b) => ratio(measure, all[a]!.values) - ratio(measure, all[b]!.values))
    const above = candidates.map((k) => order.reduce((n, c) => n + losses[k]![c]!, 0))
    const below = new Float64Array(candidates.length)
    for (let at = 1; at < order.length; at++) {
      const [low, high] = [order[at - 1]!, order[at]!]
      for (const [n, k] of candidates.entries()) {
        below[n]! += losses[k]![low]!
        above[n]! -= losses[k]![low]!
      }
      const threshold = between(ratio(measure, all[low]!.values), ratio(measure, all[high]!.values))
      if (threshold === null) continue
      const condition = { measure, above: threshold }
      const gain = loss - Math.min(...below) - Math.min(...above)
      // Differences within rounding errors are not gains.
      if (gain <= (best?.gain ?? 0) + 1e-9) continue
      const [otherwise, then] = [order.slice(0, at), order.slice(at)]
      if (groupsOf(otherwise, all) < groups || groupsOf(then, all) < groups) continue
      const tells = (c: number): boolean => holds(condition, all[c]!.values)
      if (then.every(tells) && !otherwise.some(tells)) best = { condition, gain, then, otherwise }
    }
  }
  return best
}

const groupsOf = (cases: readonly number[], all: Evidence['cases']): number =>
  new Set(cases.map((c) => all[c]!.group)).size

const isKnown = ({ of, per }: Measure, values: ReadonlyMap<string, number>): boolean =>
  values.has(of) && (per === null || values.has(per))

/** Digits that distinguish any two numbers. */
const MAX_DIGITS = 17

/** A number with few digits near the middle, on a logarithmic scale, of those that are `low` or more and below `high`. */
export function between(low: number, high: number): number | null {
  if (!(low < high)) return null
  const middle = low > 0 ? Math.sqrt(low * high) : (low + high) / 2
  for (let digits = 1; digits <= MAX_DIGITS; digits++) {
    const short = Number(middle.toPrecision(digits))
    if (short >= low && short < high) return short
  }
  return low
}
