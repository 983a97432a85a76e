/**
 * Matching of producer and consumer indices. The elements that a consumer's loops run over, as those that loops of the
 * producer reach.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import {
  keepTerms,
  type Linear,
  linear,
  linearKey,
  minus,
  roundedUp,
} from '../../analysis/integers/linear.ts'
import { type Digit, loopDigits, mixedRadix, strideOf } from '../../analysis/integers/mixed-radix.ts'
import { add, type Expr, int, mul, variable } from '../../ir/expr.ts'
import { freeVars, mentions, mentionsAny, substitute } from '../../ir/expr-tree.ts'
import type { For } from '../../ir/loops.ts'
import { isSingle } from '../../ir/reductions.ts'
import { keyOf, sameExpr } from '../../ir/structural-equality.ts'
import type { Context } from '../context.ts'
import { conditionKey } from '../redundant-guards.ts'

export interface IndexMatch {
  /** A loop of the consumer, and what its variable stands for. */
  readonly of: For
  readonly value: Expr
  /** What runs over all that the loop does: the same, or the position in a permutation or a list that it is loaded from. */
  readonly place: Expr
  /** A loop of the producer that runs over just the same: there is nothing to cover. */
  readonly same?: true
}

/** How an index that the consumer reads is one that the producer writes: what each of the loops in it stands for. */
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
    return matchDigits(chain, linear(read), linear(made)) ?? matchSegments(chain, read, made, around)
  // Elements of one list on both sides: where its positions meet.
  if (read.kind !== 'load' || made.kind !== 'load' || read.buffer !== made.buffer) return undefined
  const { role } = cx.buffer(read.buffer)
  const fixed = (role === 'in' || role === 'index') && read.index.length === 1
  return fixed ? matchIndices(cx, chain, read.index[0]!, made.index[0]!, around) : undefined
}

/**
 * Positions under segments of any lengths: both nests run over them by loops of the same names and extents. What is left of
 * the two sums is made of digits.
 */
function matchSegments(
  chain: readonly For[],
  read: Expr,
  made: Expr,
  around: readonly For[],
): readonly IndexMatch[] | undefined {
  const own = freeVars(read)
  const map = new Map<string, Expr>()
  const matches: IndexMatch[] = []
  for (const of of chain.filter((l) => own.has(l.var))) {
    const other = around.find((l) => l.name === of.name && sameExpr(substitute(of.extent, map), l.extent))
    if (!other) continue
    const value = variable(other.var)
    map.set(of.var, value)
    matches.push({ of, value, place: value, same: true })
  }
  const sum = linear(substitute(read, map))
  const open = new Set(chain.flatMap((l) => (own.has(l.var) && !map.has(l.var) ? [l.var] : [])))
  const base = keepTerms(sum, ({ term }) => !mentionsAny(term, open))
  const rest = minus(linear(made), base)
  if (open.size === 0) return linearKey(rest) === linearKey(linear(int(0))) ? matches : undefined
  const digits = matchDigits(chain, minus(sum, base), rest)
  return digits && [...matches, ...digits]
}

/** Loops of one iteration are at 0, and have no place beside others. */
const counting = (all: readonly Digit<For>[]): readonly Digit<For>[] =>
  all.filter((d, k) => !isSingle(d.of) || (k === 0 && all.every((x) => isSingle(x.of))))

/** Positions that several loops make together, as digits of a number: those of the other number between the same places. */
function matchDigits(chain: readonly For[], sum: Linear, other: Linear): readonly IndexMatch[] | undefined {
  const all = loopDigits(sum, (name) => chain.find((l) => l.var === name))
  const digits = all && counting(all)
  const number = digits && mixedRadix(digits)
  if (!number?.dense || sum.constant !== 0 || other.constant !== 0) return undefined
  const places = number.digits.map(strideOf)
  if (places[0] !== 1) return undefined
  const placeOf = (coefficient: number): number => places.findLast((p) => p <= coefficient) ?? 1
  const whole = [...other.terms.values()].every(
    (t) => t.coefficient >= 1 && t.coefficient % placeOf(t.coefficient) === 0,
  )
  if (!whole) return undefined
  return number.digits.map(({ of }, k): IndexMatch => {
    const [low, high] = [places[k]!, places[k + 1] ?? Number.POSITIVE_INFINITY]
    const own = [...other.terms.values()].filter((t) => t.coefficient >= low && t.coefficient < high)
    const value = own
      .map((t) => mul(t.term, int(t.coefficient / low)))
      .reduce<Expr>((a, b) => add(a, b), int(0))
    return { of, value, place: value }
  })
}

/** The position in a permutation of all that a loop runs over: it is there once each. */
function placeIn(cx: Context, made: Expr, { extent }: For): Expr {
  const table = made.kind === 'load' && cx.kernel.permutations?.includes(made.buffer)
  return made.kind === 'load' && table && sameExpr(cx.buffer(made.buffer).shape[0]!, extent)
    ? made.index[0]!
    : made
}

/**
 * Every value below the consumer's extent is made exactly once: a sum of digits of the loops around. Whether no others
 * are.
 */
export function covers(
  cx: Context,
  of: For,
  made: Expr,
  around: readonly For[],
  { name, earlier }: { readonly name: string; readonly earlier: For | undefined },
): boolean {
  const sum = inOrder(cx, linear(made), around)
  const all = loopDigits(sum, (name) => around.find((l) => l.var === name))
  const digits = all && counting(all)
  const number = digits && mixedRadix(digits)
  const [first, last] = [number?.digits[0], number?.digits.at(-1)]
  const whole =
    sum.constant === 0 &&
    number?.dense &&
    first &&
    strideOf(first) === 1 &&
    enough(last!.of.extent, strideOf(last!), of.extent)
  if (!whole)
    cx.refuse({
      code: 'not-every-element',
      message: `the loops around what writes ${name} are not known to reach all that ${of.name} runs over`,
      loops: [of],
      hint: earlier
        ? `begin at a loop of ${earlier.nest}, which writes ${name} first, or leave ${of.nest} a nest of its own`
        : `where an axis is sparse, what has nothing stored has no iteration: choose a format that has one for every ${of.name}; where a loop is split by what does not divide it, split by a divisor; or leave ${of.nest} a nest of its own`,
    })
  return new Facts({ sizes: cx.kernel.facts }).isMultiple(of.extent, strideOf(last!))
}

/**
 * With a loop in place of what it alone loads from a permutation of its own length: the same values in another order, where
 * nothing else of the sum changes with the loop.
 */
function inOrder(cx: Context, sum: Linear, around: readonly For[]): Linear {
  const terms = [...sum.terms.values()]
  const placeOf = (e: Expr): Expr => {
    if (e.kind !== 'load' || !cx.kernel.permutations?.includes(e.buffer)) return e
    const [at] = e.index
    const loop = at?.kind === 'var' ? around.find((l) => l.var === at.name) : undefined
    const whole = loop && sameExpr(cx.buffer(e.buffer).shape[0]!, loop.extent)
    const alone = whole && terms.filter((t) => mentions(t.term, loop.var)).length === 1
    return alone ? at! : e
  }
  const start: Expr = int(sum.constant)
  return linear(terms.reduce<Expr>((e, t) => add(e, mul(placeOf(t.term), int(t.coefficient))), start))
}

/** A loop that says what two loops of the consumer stand for goes along a diagonal of what they run over. */
export function checkDiagonal(
  cx: Context,
  chain: readonly For[],
  around: readonly For[],
  places: ReadonlyMap<string, Expr>,
): void {
  for (const loop of around) {
    if (isSingle(loop)) continue
    const by = chain.filter((l) => places.has(l.var) && mentions(places.get(l.var)!, loop.var))
    if (by.length > 1)
      cx.refuse({
        code: 'not-every-element',
        message: `${loop.name} stands for ${by.map((l) => l.name).join(' and ')}, which run over more than its iterations`,
        loops: [loop, ...by],
        hint: `leave ${chain[0]!.nest} a nest of its own`,
      })
  }
}

/** Whether `count · stride` reaches `extent`, and `count - 1` times does not. */
function enough(count: Expr, stride: number, extent: Expr): boolean {
  if (count.kind === 'const' && extent.kind === 'const')
    return count.value === Math.ceil(extent.value / stride)
  return sharesOf(count, extent) === stride
}

/** The number `s` of which `count` is `ceildiv(extent, s)`. */
function sharesOf(count: Expr, extent: Expr): number | undefined {
  const [a, b] = [rounding(count), rounding(extent)]
  return a.by % b.by === 0 && linearKey(a.of) === linearKey(b.of) ? a.by / b.by : undefined
}

/** As `ceildiv(of, by)`: of what is rounded up twice, the product of the two. */
function rounding(e: Expr): { readonly of: Linear; readonly by: number } {
  const up = roundedUp(e)
  if (!up) return { of: linear(e), by: 1 }
  const [only, ...others] = up.total.terms.values()
  if (only?.coefficient !== 1 || others.length > 0 || up.total.constant !== 0)
    return { of: up.total, by: up.by }
  const inner = rounding(only.term)
  return { of: inner.of, by: inner.by * up.by }
}

/** Whether a guard `a < ceildiv(extent, s)` holds wherever `place` is below the extent: that is `s * a` and other loops. */
function impliedBelow(cx: Context, guard: Expr, place: Expr, extent: Expr): boolean {
  if (guard.kind !== 'binary' || guard.op !== 'lt') return false
  const s = sharesOf(guard.b, extent)
  if (s === undefined) return false
  const rest = minus(linear(place), linear(mul(guard.a, int(s))))
  const isLoop = (e: Expr): boolean => e.kind === 'var' && !cx.kernel.params.some((p) => p.name === e.name)
  return rest.constant >= 0 && [...rest.terms.values()].every((t) => isLoop(t.term) && t.coefficient > 0)
}

/**
 * The producer's guards say no more than the consumer's and where its loops end, and say this where tiles reach further.
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
    /** Conditions of the consumer, by its own loops' values. */
    readonly own: readonly Expr[]
  },
): void {
  const { places, exact, map, own } = known
  const asked = new Set(own.map(conditionKey))
  const bound = (l: For): string => linearKey(linear(places.get(l.var)!)) + keyOf(l.extent)
  const ranges = chain.filter((l) => places.has(l.var))
  const ends = new Set(ranges.map(bound))
  const said = new Set<string>()
  const used = new Set(index.flatMap((e) => [...freeVars(e)]))
  for (const l of around) {
    if (l.reduce) continue
    for (const g of l.guards) {
      const text =
        g.kind === 'binary' && g.op === 'lt' ? linearKey(linear(substitute(g.a, map))) + keyOf(g.b) : ''
      if (ends.has(text)) said.add(text)
      else if (asked.has(conditionKey(substitute(g, map)))) continue
      else if (ranges.some((r) => impliedBelow(cx, substitute(g, map), places.get(r.var)!, r.extent)))
        continue
      else if (mentionsAny(g, used) || mentions(g, l.var))
        cx.refuse({
          code: 'not-every-element',
          message: `not every iteration of ${l.name} produces an element`,
          loops: [l],
          hint: `leave ${chain[0]!.nest} a nest of its own`,
        })
    }
  }
  for (const l of chain) {
    if (!places.has(l.var) || said.has(bound(l)) || exact.get(l.var)) continue
    cx.refuse({
      code: 'not-every-element',
      message: `the loops around would reach further than ${l.name}`,
      loops: [l],
      hint: `require that the tiles divide the sizes, or leave ${l.nest} a nest of its own`,
    })
  }
}
