/**
 * Legality checks shared by the primitives: one function for each condition, with its error message. A check returns
 * if the condition holds, and throws an SptError otherwise.
 */

import type { Expr } from '../../ir/expressions/expr.ts'
import { buffersRead, freeVars, mentions, readsMemory } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { LoopLocation } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { hasReduction, reductionsOf } from '../../ir/statements/reductions.ts'
import type { Body } from '../../ir/statements/tree.ts'
import type { Context } from '../state/context.ts'
import { iterationsOf } from './loop-dependence.ts'

const HOW = {
  unroll: 'unrolled',
  vectorize: 'vectorised',
  pipeline: 'pipelined',
  accumulate: 'accumulated',
} as const

/**
 * Throws `schedule/not-serial` if the loop is already bound, unrolled, vectorised, pipelined, accumulated or mapped
 * to an instruction.
 */
export function checkSerial(cx: Context, loop: For, verb: string): void {
  const { mode } = loop
  if (mode.kind === 'serial') return
  const how =
    mode.kind === 'bind'
      ? `bound to ${mode.to}`
      : mode.kind === 'instr'
        ? `done by ${mode.instr.name}`
        : HOW[mode.kind]
  cx.refuse('schedule/not-serial', [loop], {
    message: `${loop.name} is already ${how}`,
    hint: `${verb} ${loop.name} first, then bind, unroll or vectorise`,
  })
}

/** Throws `schedule/bad-factor` unless the argument `what` is an integer from 1 to `most`. */
export function checkFactor(cx: Context, value: number, what: string, loop: For, most = 1 << 20): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return
  cx.refuse('schedule/bad-factor', [loop], {
    message: `${what} is ${value}`,
    expected: `a whole number from 1 to ${most}`,
  })
}

/**
 * Returns the loops, outermost first. Throws `schedule/repeated-loop`, `schedule/not-nested` or `schedule/not-perfect`
 * unless the loops are perfectly nested.
 */
export function checkPerfectChain(cx: Context, found: readonly LoopLocation[], verb: string): readonly For[] {
  const sorted = [...found].sort((a, b) => a.path.length - b.path.length)
  const loops = sorted.map((f) => f.loop)
  if (new Set(loops.map((l) => l.var)).size !== loops.length)
    cx.refuse('schedule/repeated-loop', loops, {
      message: `${verb} names a loop twice`,
      hint: 'name each loop once',
    })
  const outermost = sorted[0]!
  const innermost = sorted.at(-1)!
  const chain: readonly For[] = [...innermost.path, innermost.loop].slice(outermost.path.length)
  const outside = loops.find((l) => !chain.includes(l))
  if (outside)
    cx.refuse('schedule/not-nested', [outside, innermost.loop], {
      message: `${outside.name} and ${innermost.loop.name} are not nested`,
      expected: 'loops of the same loop nest',
    })
  for (const [k, l] of chain.entries()) {
    const next = chain[k + 1]
    if (!next || (l.body.length === 1 && l.body[0] === next)) continue
    const direct = l.body.includes(next)
    cx.refuse('schedule/not-perfect', [l, next], {
      message: direct
        ? `${l.name} has other statements next to ${next.name}`
        : `${next.name} is nested in a condition inside of ${l.name}`,
      expected: 'perfectly nested loops',
      ...(direct && { hint: `fission ${l.name} separates the statements, where that is legal` }),
    })
  }
  return chain
}

/**
 * Throws `schedule/not-rectangular` if the extent of `inner` depends on a loop of `outer`: `what` needs one extent in all
 * of their iterations.
 */
export function checkRectangular(
  cx: Context,
  outer: readonly For[],
  inner: For,
  what: string,
  hint?: string,
): void {
  const on = outer.find((l) => mentions(inner.extent, l.var))
  if (!on) return
  cx.refuse('schedule/not-rectangular', [on, inner], {
    message: `${what}: the extent of ${inner.name}, ${printExpr(inner.extent)}, depends on ${on.name}`,
    expected: `a loop whose extent is the same in every iteration of ${on.name}`,
    ...(hint !== undefined && { hint }),
  })
}

/**
 * Returns the reductions that combine values of different iterations. Throws `schedule/order-matters` unless the
 * iterations of the loop may run in any order.
 */
export function checkOrderFree(cx: Context, loop: For, verb: string): readonly Reduce[] {
  const { dependence, combining } = iterationsOf(cx.kernel, loop)
  if (dependence)
    cx.refuse('schedule/order-matters', [loop], {
      message: `${verb} would change the order of ${loop.name}: ${dependence.reason}`,
      expected: 'a loop whose iterations are independent or combine by one reducer',
    })
  return combining
}

/** Returns the constant extent. Throws `schedule/extent-not-constant`, with a message that begins with `why`. */
export function checkConstantExtent(cx: Context, loop: For, why: string): number {
  if (loop.extent.kind === 'const') return loop.extent.value
  return cx.refuse('schedule/extent-not-constant', [loop], {
    message: `${why}, and the extent of ${loop.name} is ${printExpr(loop.extent)}`,
    hint: `split ${loop.name} by a constant and use the inner loop`,
  })
}

/** Returns whether an expression depends on kernel parameters only, so that its value is fixed before the launch. */
export function overParams({ kernel }: Pick<Context, 'kernel'>, e: Expr): boolean {
  const params = namesOf(kernel.params)
  return [...freeVars(e)].every((v) => params.has(v)) && !readsMemory(e)
}

const namesOf = memoize(
  (params: Kernel2['params']): ReadonlySet<string> => new Set(params.map((p) => p.name)),
)

/** The hint of errors about several statements in a loop whose step supports one. */
export const SEPARATE = 'fission separates statements, where that is legal'

/** Throws `schedule/target-in-use` if others access the targets, which are incomplete until all iterations have run. */
export function checkUsedAlone(
  cx: Context,
  body: Body,
  reduce: Reduce,
  loops: readonly For[],
  what = 'the nest',
): void {
  const targets = new Set(reduce.targets.map((t) => t.buffer))
  const other = accessesOf(body).find((a) => targets.has(a.buffer) && a.stmt !== reduce)
  if (other)
    cx.refuse('schedule/target-in-use', loops, {
      message: `another statement of ${what} uses ${other.buffer} before the reduction is complete`,
      hint: SEPARATE,
    })
}

/** Throws `schedule/no-reduction`: no reduction (in the loop nest `nest`, if given) writes the buffer. */
export function refuseNoReduction(cx: Context, name: string, nest?: string): never {
  const found = reductionsOf(cx.kernel.body)
  const own = found.filter(({ reduce }) => reduce.targets.some((t) => t.buffer === name))
  const known = (
    own.length > 0
      ? own.flatMap(({ path }) => path.map((l) => l.nest))
      : found.flatMap(({ reduce }) => reduce.targets.map((t) => t.buffer))
  ).filter((x, k, all) => all.indexOf(x) === k)
  return cx.refuse('schedule/no-reduction', [], {
    message: `nothing${nest === undefined ? '' : ` in ${nest}`} reduces into ${name}`,
    expected:
      known.length > 0
        ? `${own.length > 0 ? 'an iteration that does' : 'a buffer that is reduced into'}: ${known.join(', ')}`
        : 'a kernel with a reduction, such as +=',
  })
}

/** Throws `schedule/reduction-loop` if iterations of the loop may combine into common elements. */
export function checkNoReduction(cx: Context, loop: For, verb: string, hint: string): void {
  if (!hasReduction(loop)) return
  cx.refuse('schedule/reduction-loop', [loop], {
    message: `${verb}: iterations of ${loop.name} combine into the same elements`,
    hint,
  })
}

/** Throws `schedule/local-index` if the index of a target is loaded from a buffer that is allocated inside of `top`. */
export function checkNamedOutside(cx: Context, top: Stmt, reduce: Reduce, verb: string): void {
  const local = allocatedNames([top])
  const names = reduce.targets.flatMap((t) => t.index)
  const copy = accessesOf([top]).find(
    (a) => local.has(a.buffer) && names.some((e) => buffersRead(e).has(a.buffer)),
  )
  if (copy)
    cx.refuse('schedule/local-index', [], {
      message: `which element is reduced into is read from ${copy.buffer}, a copy that iterations have for themselves`,
      hint: `${verb} first, then cache`,
    })
}

/** Throws `schedule/merged-loop` if the blocks of the loop belong to several merged loop nests. */
export function checkOneNest(cx: Context, loop: For, verb: string): void {
  const [only] = loop.body
  if (!boundIndex(loop, 'block') || loop.body.length !== 1 || only?.kind !== 'if' || only.else.length === 0)
    return
  cx.refuse('schedule/merged-loop', [loop], {
    message: `${verb}: the blocks of ${loop.name} belong to several loop nests`,
    hint: `${verb} before merge, or at a loop inside`,
  })
}
