/**
 * Coverage of a consumer's loops in epilogue fusion: whether loops of the producer visit all values of a consumer's
 * loop, and no other values.
 */

import { Facts } from '../../../analysis/integers/facts.ts'
import { type Linear, linear, linearKey } from '../../../analysis/integers/linear.ts'
import { type Digit, loopDigits, mixedRadix, strideOf } from '../../../analysis/integers/mixed-radix.ts'
import { tileReach } from '../../../analysis/integers/tiles.ts'
import { add, type Expr, int, mul, variable } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameData, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { For, Reduce, Stmt, Store } from '../../../ir/statements/loops.ts'
import { dropSingleIterations, isSingleIteration } from '../../../ir/statements/reductions.ts'
import { cloneLoop } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'

/** Returns the digits without loops of one iteration, which are always 0; the first digit if all have one iteration. */
export const counting = (all: readonly Digit<For>[]): readonly Digit<For>[] =>
  all.filter((d, k) => !isSingleIteration(d.of) || (k === 0 && all.every((x) => isSingleIteration(x.of))))

/** The values of a consumer's loop that the loops around visit. */
interface Cover {
  /** True if no value beyond the extent is visited. */
  readonly exact: boolean
  /** Guards that only end tiles. */
  readonly tails: readonly Expr[]
}

/** Checks that digits of the loops around visit each value once. Throws `schedule/not-every-element`. */
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
    cx.refuse('schedule/not-every-element', [of], {
      message: `the loops around the producer of ${name} may not cover every iteration of ${of.name}`,
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

function reach(cx: Context, of: For, { digits, tails }: Digits): Cover | undefined {
  const reached = tileReach(digits, of.extent, new Facts({ sizes: cx.kernel.facts }))
  return reached && { exact: reached === 'exact', tails }
}

/** Replaces digits of which a guard keeps only the first values (tails of tiles) by one digit with these values. */
function ended(all: readonly Digit<For>[], around: readonly For[]): Digits {
  let digits = all
  const tiles: Digit<For>[] = []
  const tails: Expr[] = []
  for (const g of around.flatMap((l) => l.guards)) {
    if (g.kind !== 'binary' || g.op !== 'lt' || g.b.kind !== 'const') continue
    const { terms, constant } = linear(dropSingleIterations(g.a, around))
    const own = loopDigits({ terms, constant }, (name) => digits.find((d) => d.of.var === name)?.of)
    if (!own || constant !== 0 || !tileReach(own, g.b)) continue
    const last = mixedRadix(own)?.digits.at(-1)
    const places = own.map((d) => strideOf(digits.find((x) => x.of === d.of)!) / strideOf(d))
    const [place] = places
    if (!last || !Number.isInteger(place) || places.some((p) => p !== place)) continue
    digits = digits.filter((d) => own.every((x) => x.of !== d.of))
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

/**
 * The loops of an epilogue over the elements that an iteration produces. If several loops of the producer write inputs
 * of the epilogue, loops over the same elements of several buffers become one loop.
 */
export function elementLoops(nest: string, fresh: (name: string) => string) {
  let loops: readonly For[] = []
  /**
   * Adds the loops that write a buffer, and returns the value of each in the consumer, by its variable. `same` has the
   * value of a consumer's loop by an earlier buffer and by this buffer: loops at the same place of both values become
   * one loop if they have the same iterations and the same mode.
   */
  const add = (
    inner: readonly For[],
    same: readonly (readonly [known: Expr, made: Expr])[],
  ): ReadonlyMap<string, Expr> => {
    const map = new Map<string, Expr>()
    for (const l of inner) {
      const known = knownLoops(l, same, map)
      const name = known?.var ?? fresh(l.name)
      map.set(l.var, variable(name))
      if (!known) loops = [...loops, clone(l, name, map)]
    }
    return map
  }
  const clone = (l: For, name: string, map: ReadonlyMap<string, Expr>): For => {
    const mode = l.mode.kind === 'bind' ? l.mode : ({ kind: 'serial' } as const)
    return { ...cloneLoop(l, name, nest, map), mode }
  }
  /**
   * Returns the equivalent loop of an earlier buffer; undefined if there is no such loop. A loop of one iteration may
   * have the place of another loop or be absent from an index, so it is identified by its name as well.
   */
  const knownLoops = (
    l: For,
    same: readonly (readonly [Expr, Expr])[],
    map: ReadonlyMap<string, Expr>,
  ): For | undefined => {
    const taken = new Set([...map.values()].map(keyOf))
    const open = loops.filter((c) => {
      const own = variable(c.var)
      return !taken.has(keyOf(own)) && alike(clone(l, c.var, new Map([...map, [l.var, own]])), c)
    })
    for (const [known, made] of same) {
      const place = termOf(made, l.var)
      const other = place !== undefined && open.find((c) => termOf(known, c.var) === place)
      if (other) return other
    }
    return isSingleIteration(l) ? open.find((c) => c.name === l.name) : undefined
  }
  return {
    get loops(): readonly For[] {
      return loops
    },
    add,
  }
}

/** Returns whether two indices reach the same elements, whatever loops of one iteration they have. */
export function sameElements(a: Expr, b: Expr, loops: readonly For[]): boolean {
  const key = (e: Expr): string => linearKey(linear(dropSingleIterations(e, loops)))
  return key(a) === key(b)
}

const termOf = (e: Expr, name: string): number | undefined =>
  [...linear(e).terms.values()].find((t) => t.term.kind === 'var' && t.term.name === name)?.coefficient

const alike = (a: For, b: For): boolean =>
  keyOf(a.extent) === keyOf(b.extent) &&
  a.guards.length === b.guards.length &&
  a.guards.every((g, k) => keyOf(g) === keyOf(b.guards[k]!)) &&
  a.reduce === b.reduce &&
  sameData(a.mode, b.mode)

interface Write {
  readonly index: readonly Expr[]
  readonly path: readonly For[]
  readonly stmt: Store | Reduce
}

/**
 * Returns the only statement of the producer that writes the buffer, which is inside of the loop. After an iteration,
 * its elements are final, even if a condition in the iteration was false. Throws `schedule/not-complete`.
 */
export function onlyWrite(cx: Context, at: LoopLocation, producer: Stmt, buffer: string): Write {
  const writes = accessesOf([producer]).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const mine = accessesOf(at.loop.body).filter((a) => a.mode === 'write' && a.buffer === buffer)
  const [write] = mine
  const element = write && (write.stmt.kind === 'store' || write.stmt.kind === 'reduce')
  if (writes.length !== 1 || !element)
    return cx.refuse('schedule/not-complete', [at.loop], {
      message: `not every element of ${buffer} is written by one statement inside of ${at.loop.name}`,
      hint: 'choose a loop around every producer',
    })
  return { index: write.index, path: write.path, stmt: write.stmt as Store | Reduce }
}
