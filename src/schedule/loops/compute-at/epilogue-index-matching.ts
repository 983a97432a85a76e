/**
 * Matching of producer and consumer indices: the elements that a consumer's loops run over, in terms of the producer's
 * loops.
 */

import type { Linear, Term } from '../../../analysis/integers/linear.ts'
import { keepTerms, linear, minus, sumExpr } from '../../../analysis/integers/linear.ts'
import { loopDigits, mixedRadix, strideOf } from '../../../analysis/integers/mixed-radix.ts'
import { tileSize } from '../../../analysis/integers/tiles.ts'
import { add, type Expr, int, lt, mul, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, mentions, mentionsSome, substitute } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { dropSingleIterations, isSingleIteration } from '../../../ir/statements/reductions.ts'
import type { Context } from '../../state/context.ts'
import { counting, sameElements } from './epilogue-coverage.ts'

export interface IndexMatch {
  /** A loop of the consumer, and the value of its variable. */
  readonly of: For
  readonly value: Expr
  /**
   * The expression that covers the loop: `value`, or the position at which `value` is loaded from a permutation or
   * list.
   */
  readonly place: Expr
  /** True if a loop of the producer has the same iterations, so that there is nothing to cover. */
  readonly same?: true
}

/** Returns the value of each loop in an index that the consumer reads and the producer writes, if they match. */
export function matchIndices(
  cx: Context,
  chain: readonly For[],
  read: Expr,
  made: Expr,
  around: readonly For[],
): readonly IndexMatch[] | undefined {
  if (read.kind === 'var') {
    const of = chain.find((l) => l.var === read.name)
    return of && [{ of, value: made, place: placeIn(cx, made, of) }]
  }
  if (read.kind === 'const') return sameExpr(read, made) ? [] : undefined
  if (read.kind === 'binary')
    return matchDigits(chain, linear(read), linear(made), around) ?? matchSegments(chain, read, made, around)
  // Elements of one list are equal if their positions are equal.
  if (read.kind !== 'load' || made.kind !== 'load' || read.buffer !== made.buffer) return undefined
  const { role } = cx.buffer(read.buffer)
  const fixed = (role === 'in' || role === 'index') && read.index.length === 1
  return fixed ? matchIndices(cx, chain, read.index[0]!, made.index[0]!, around) : undefined
}

/**
 * Matches positions in segments of any length, over which both loop nests run by loops of the same names and extents.
 * The remainder of the two sums must consist of digits. Returns undefined if the sums do not match.
 */
function matchSegments(
  chain: readonly For[],
  read: Expr,
  made: Expr,
  around: readonly For[],
): readonly IndexMatch[] | undefined {
  const all = [...around, ...chain]
  const own = freeVars(read)
  const map = new Map<string, Expr>()
  const matches: IndexMatch[] = []
  for (const of of chain.filter((l) => own.has(l.var))) {
    const extent = substitute(of.extent, map)
    const other = around.find((l) => l.name === of.name && sameElements(extent, l.extent, all))
    if (!other) continue
    const value = variable(other.var)
    map.set(of.var, value)
    matches.push({ of, value, place: value, same: true })
  }
  const sum = settled(substitute(read, map), all)
  const named = freeVars(sumExpr(sum))
  const open = new Set(chain.flatMap((l) => (named.has(l.var) && !map.has(l.var) ? [l.var] : [])))
  const base = keepTerms(sum, ({ term }) => !mentionsSome(term, open))
  const rest = minus(settled(made, all), base)
  if (open.size === 0) return sameElements(sumExpr(rest), int(0), all) ? matches : undefined
  const digits = matchDigits(chain, minus(sum, base), rest, around)
  return digits && [...matches, ...digits]
}

/** Returns a sum whose terms do not depend on loops of one iteration; such a loop stays a term by itself. */
function settled(e: Expr, loops: readonly For[]): Linear {
  const { terms, constant } = linear(e)
  const term = (x: Expr): Expr => (x.kind === 'var' ? x : dropSingleIterations(x, loops))
  return linear(
    [...terms.values()].reduce<Expr>(
      (sum, t) => add(sum, mul(term(t.term), int(t.coefficient))),
      int(constant),
    ),
  )
}

/**
 * Matches positions that several loops form together, as digits of a number, with the digits of the other number at the
 * same places. A loop of one iteration matches a loop of its name, if there is one. Returns undefined if the numbers do
 * not match.
 */
function matchDigits(
  chain: readonly For[],
  sum: Linear,
  other: Linear,
  around: readonly For[],
): readonly IndexMatch[] | undefined {
  const all = loopDigits(sum, (name) => chain.find((l) => l.var === name))
  const digits = all && counting(all)
  const number = digits && mixedRadix(digits)
  if (!number?.dense || sum.constant !== 0 || other.constant !== 0) return undefined
  const places = number.digits.map(strideOf)
  if (places[0] !== 1) return undefined
  const placeOf = (coefficient: number): number => places.findLast((p) => p <= coefficient) ?? 1
  const isWhole = (t: Term): boolean => t.coefficient >= 1 && t.coefficient % placeOf(t.coefficient) === 0
  const single = (t: Term): For | undefined =>
    around.find((l) => isSingleIteration(l) && t.term.kind === 'var' && l.var === t.term.name)
  if (![...other.terms.values()].every((t) => isWhole(t) || single(t))) return undefined
  const beside = all!.filter((d) => !number.digits.includes(d)).map((d) => d.of)
  const standsFor = (t: Term): For | undefined => beside.find((of) => of.name === single(t)?.name)
  const alone = [...other.terms.values()].flatMap((t): readonly IndexMatch[] => {
    const of = standsFor(t)
    return of ? [{ of, value: t.term, place: t.term, same: true }] : []
  })
  const terms = [...other.terms.values()].filter((t) => isWhole(t) && !standsFor(t))
  const counted = number.digits.map(({ of }, k): IndexMatch => {
    const [low, high] = [places[k]!, places[k + 1] ?? Number.POSITIVE_INFINITY]
    const own = terms.filter((t) => t.coefficient >= low && t.coefficient < high)
    const value = own
      .map((t) => mul(t.term, int(t.coefficient / low)))
      .reduce<Expr>((a, b) => add(a, b), int(0))
    return { of, value, place: value }
  })
  return [...alone, ...counted]
}

/** Returns the position in a permutation of all values of a loop; otherwise the value itself. */
function placeIn(cx: Context, made: Expr, { extent }: For): Expr {
  const table = made.kind === 'load' && cx.kernel.permutations?.includes(made.buffer)
  return made.kind === 'load' && table && sameExpr(cx.buffer(made.buffer).shape[0]!, extent)
    ? made.index[0]!
    : made
}

/**
 * Throws `schedule/not-every-element` if one loop determines two loops of the consumer: only a diagonal of their
 * iterations would be visited.
 */
export function checkDiagonal(
  cx: Context,
  chain: readonly For[],
  around: readonly For[],
  places: ReadonlyMap<string, Expr>,
): void {
  for (const loop of around) {
    if (isSingleIteration(loop)) continue
    const by = chain.filter((l) => places.has(l.var) && mentions(places.get(l.var)!, loop.var))
    if (by.length > 1)
      cx.refuse('schedule/not-every-element', [loop, ...by], {
        message: `${loop.name} matches ${by.map((l) => l.name).join(' and ')}, which run over more iterations`,
        hint: `leave ${chain[0]!.nest} a separate loop nest`,
      })
  }
}

/**
 * Returns whether a guard `a < ceildiv(extent, s)` holds whenever `place` is below the extent: `place` is `s * a` plus
 * other loops.
 */
function impliedBelow(cx: Context, guard: Expr, place: Expr, extent: Expr): boolean {
  if (guard.kind !== 'binary' || guard.op !== 'lt') return false
  const s = tileSize(guard.b, extent)
  if (s === undefined) return false
  const rest = minus(linear(place), linear(mul(guard.a, int(s))))
  const isLoop = (e: Expr): boolean => e.kind === 'var' && !cx.kernel.params.some((p) => p.name === e.name)
  return rest.constant >= 0 && [...rest.terms.values()].every((t) => isLoop(t.term) && t.coefficient > 0)
}

/**
 * Throws `schedule/not-every-element` unless the producer's guards follow from the consumer's guards and extents, and
 * exclude the values of tiles beyond the consumer's extents.
 */
export function checkGuards(
  cx: Context,
  around: readonly For[],
  index: readonly Expr[],
  chain: readonly For[],
  known: {
    readonly places: ReadonlyMap<string, Expr>
    readonly exact: ReadonlyMap<string, boolean>
    readonly map: ReadonlyMap<string, Expr>
    readonly tails: readonly Expr[]
    /** Conditions of the consumer, over the values of its loops. */
    readonly consumerGuards: readonly Expr[]
    readonly key: (condition: Expr) => string
  },
): void {
  const { places, exact, map, consumerGuards, tails, key } = known
  const guarded = new Set(consumerGuards.map(key))
  const bound = (l: For): string => key(lt(places.get(l.var)!, l.extent))
  const ranges = chain.filter((l) => places.has(l.var))
  const ends = new Set(ranges.map(bound))
  const said = new Set<string>()
  const used = new Set(index.flatMap((e) => [...freeVars(e)]))
  for (const l of around) {
    if (l.reduce) continue
    for (const g of l.guards) {
      const own = substitute(g, map)
      const text = key(own)
      if (ends.has(text)) said.add(text)
      else if (tails.includes(g) || guarded.has(text)) continue
      else if (ranges.some((r) => impliedBelow(cx, own, places.get(r.var)!, r.extent))) continue
      else if (mentionsSome(g, used) || mentions(g, l.var))
        cx.refuse('schedule/not-every-element', [l], {
          message: `not every iteration of ${l.name} produces an element`,
          hint: `leave ${chain[0]!.nest} a separate loop nest`,
        })
    }
  }
  for (const l of chain) {
    if (!places.has(l.var) || said.has(bound(l)) || exact.get(l.var)) continue
    cx.refuse('schedule/not-every-element', [l], {
      message: `the outer loops cover more iterations than ${l.name}`,
      hint: `require that the tiles divide the sizes, or leave ${l.nest} a separate loop nest`,
    })
  }
}
