/**
 * Coverage of a consumer's loops in epilogue fusion: whether loops of the producer visit all values of a consumer's
 * loop, and no other values.
 */

import { Facts } from '../../../analysis/integers/facts.ts'
import { type Linear, linear, linearKey, roundedUp } from '../../../analysis/integers/linear.ts'
import { type Digit, loopDigits, mixedRadix, strideOf } from '../../../analysis/integers/mixed-radix.ts'
import { add, type Expr, int, mul } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { dropSingleIterations, isSingleIteration } from '../../../ir/statements/reductions.ts'
import type { Context } from '../../state/context.ts'

/** Returns the digits without loops of one iteration, which are always 0; the first digit if all have one iteration. */
export const counting = (all: readonly Digit<For>[]): readonly Digit<For>[] =>
  all.filter((d, k) => !isSingleIteration(d.of) || (k === 0 && all.every((x) => isSingleIteration(x.of))))

/** The values of a consumer's loop that the loops around visit. */
export interface Cover {
  /** True if no value beyond the extent is visited. */
  readonly exact: boolean
  /** Guards that only end tiles. */
  readonly tails: readonly Expr[]
}

/**
 * Checks that every value below the consumer's extent is visited exactly once, as a sum of digits of the loops around.
 * Throws `schedule/not-every-element`.
 */
export function covers(
  cx: Context,
  of: For,
  made: Expr,
  around: readonly For[],
  { name, earlier }: { readonly name: string; readonly earlier: For | undefined },
): Cover {
  const sum = inOrder(cx, linear(made), around)
  const all = loopDigits(sum, (name) => around.find((l) => l.var === name))
  const digits = sum.constant === 0 && all ? counting(all) : undefined
  const plain = digits && reach(cx, of, { digits, tails: [] })
  const cover = plain?.exact ? plain : digits && (reach(cx, of, ended(digits, around)) ?? plain)
  if (!cover)
    cx.refuse({
      code: 'schedule/not-every-element',
      message: `the loops around the producer of ${name} may not cover every iteration of ${of.name}`,
      loops: [of],
      hint: earlier
        ? `begin at a loop of ${earlier.nest}, which writes ${name} first, or leave ${of.nest} a separate loop nest`
        : `choose a format that iterates over every ${of.name}; split tiles by divisors; or leave ${of.nest} a separate loop nest`,
    })
  return cover
}

interface Digits {
  readonly digits: readonly Digit<For>[]
  readonly tails: readonly Expr[]
}

/** Returns the cover; undefined if the digits skip values of the loop. */
function reach(cx: Context, of: For, { digits, tails }: Digits): Cover | undefined {
  const number = mixedRadix(digits)
  if (!number?.dense) return undefined
  const [first, last] = [number.digits[0], number.digits.at(-1)]
  if (!first || !last) return isSingleIteration(of) ? { exact: true, tails } : undefined
  const [count, stride] = [last.of.extent, strideOf(last)]
  if (strideOf(first) !== 1 || !enough(count, stride, of.extent)) return undefined
  return { exact: endsWith(cx, count, stride, of.extent), tails }
}

/**
 * Replaces digits of which a guard keeps only the first values (tiles that do not divide the extent) by one digit with
 * these values.
 */
function ended(all: readonly Digit<For>[], around: readonly For[]): Digits {
  let digits = all
  const tiles: Digit<For>[] = []
  const tails: Expr[] = []
  for (const g of around.flatMap((l) => l.guards)) {
    if (g.kind !== 'binary' || g.op !== 'lt' || g.b.kind !== 'const') continue
    const { terms, constant } = linear(dropSingleIterations(g.a, around))
    const own = loopDigits({ terms, constant }, (name) => digits.find((d) => d.of.var === name)?.of)
    const number = own && mixedRadix(own)
    const [first, last] = [number?.digits[0], number?.digits.at(-1)]
    if (!first || !last || !number?.dense || constant !== 0 || strideOf(first) !== 1) continue
    const places = own!.map((d) => strideOf(digits.find((x) => x.of === d.of)!) / strideOf(d))
    const [place] = places
    if (!Number.isInteger(place) || places.some((p) => p !== place)) continue
    if (!enough(last.of.extent, strideOf(last), g.b)) continue
    digits = digits.filter((d) => own!.every((x) => x.of !== d.of))
    tiles.push({ of: { ...last.of, extent: g.b }, stride: int(place!), extent: g.b })
    tails.push(g)
  }
  return { digits: [...digits, ...tiles], tails }
}

/**
 * Returns the sum with a loop in place of a load from a permutation that the loop indexes alone and that has its
 * length. The values are the same in another order, if no other term changes with the loop.
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

/** Returns whether `count · stride` reaches `extent`. */
function enough(count: Expr, stride: number, extent: Expr): boolean {
  if (count.kind === 'const' && extent.kind === 'const') return count.value * stride >= extent.value
  return sharesOf(count, extent) === stride
}

/** Returns whether `count · stride`, which reaches `extent`, reaches no further. */
function endsWith(cx: Context, count: Expr, stride: number, extent: Expr): boolean {
  if (count.kind === 'const' && extent.kind === 'const') return count.value * stride === extent.value
  return new Facts({ sizes: cx.kernel.facts }).isMultiple(extent, stride)
}

/** Returns the number `s` with `count` = `ceildiv(extent, s)`; undefined if there is no such number. */
export function sharesOf(count: Expr, extent: Expr): number | undefined {
  const [a, b] = [rounding(count), rounding(extent)]
  return a.by % b.by === 0 && linearKey(a.of) === linearKey(b.of) ? a.by / b.by : undefined
}

/** Returns the expression as `ceildiv(of, by)`; `by` is the product of the divisors if it is rounded up twice. */
function rounding(e: Expr): { readonly of: Linear; readonly by: number } {
  const up = roundedUp(e)
  if (!up) return { of: linear(e), by: 1 }
  const [only, ...others] = up.total.terms.values()
  if (only?.coefficient !== 1 || others.length > 0 || up.total.constant !== 0)
    return { of: up.total, by: up.by }
  const inner = rounding(only.term)
  return { of: inner.of, by: inner.by * up.by }
}
