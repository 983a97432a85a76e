/** Top-level loop nests that `merge` and `join` combine into one: lookup by name, and the place of the result. */

import { orList } from '../../../ast/diagnostics/suggest.ts'
import { nestNames } from '../../../ir/expressions/bound-names.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { inAnyOrder } from '../../legality/nest-dependence.ts'
import type { Context } from '../../state/context.ts'

/** A top-level loop nest, by name. */
export interface TopNest {
  readonly name: string
  readonly top: For
  /** Index of the loop nest in the kernel's body. */
  readonly at: number
}

/**
 * Throws `schedule/nothing-to-merge` or `schedule/nothing-to-join` unless the step names at least two different loop
 * nests.
 */
export function checkSeveral(cx: Context, word: 'merge' | 'join', nests: readonly string[]): void {
  if (nests.length >= 2 && new Set(nests).size === nests.length) return
  cx.refuse({
    code: `schedule/nothing-to-${word}`,
    message:
      nests.length < 2
        ? `${word} is given ${nests.length === 0 ? 'no' : 'one'} loop nest`
        : `${word} is given a loop nest twice`,
    expected: 'at least two different loop nests',
  })
}

/** Returns the loop nest of this name. Throws `schedule/unknown-nest` or `schedule/ambiguous-nest`. */
export function topNest(cx: Context, name: string): TopNest {
  const tops = cx.kernel.body.flatMap((s, at) =>
    s.kind === 'for' && s.nest === name ? [{ top: s, at }] : [],
  )
  const candidates = [...new Set(cx.kernel.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
  const [only, other] = tops
  if (!only)
    return cx.refuse({
      code: 'schedule/unknown-nest',
      message: `there is no top-level loop nest ${name}`,
      ...(candidates.length > 0 ? { expected: orList(candidates) } : {}),
      lookup: { name, candidates },
    })
  if (other)
    return cx.refuse({
      code: 'schedule/ambiguous-nest',
      message: `${name} has ${tops.length} top-level loops`,
      loops: tops.map((t) => t.top),
      expected: 'an iteration with a single top-level loop',
    })
  return { name, ...only }
}

/**
 * Returns the index in the body at which all loop nests can be: that of the first, otherwise that of the last. Throws
 * `schedule/order-matters` if statements in between conflict.
 */
export function placeFor(cx: Context, members: readonly TopNest[]): number {
  const places = members.map((m) => m.at)
  const [first, last] = [Math.min(...places), Math.max(...places)]
  const others = cx.kernel.body.flatMap((s, at) =>
    at > first && at < last && !places.includes(at) ? [{ s, at }] : [],
  )
  let between: { member: TopNest; other: Stmt; buffer: string } | undefined
  for (const place of [first, last]) {
    const inTheWay = members.flatMap((member) =>
      others.flatMap(({ s, at }) => {
        const passes = place === first ? at < member.at : at > member.at
        const conflict = passes ? inAnyOrder(member.top, s) : undefined
        return conflict ? [{ member, other: s, buffer: conflict.buffer }] : []
      }),
    )
    if (inTheWay.length === 0) return place
    between ??= inTheWay[0]
  }
  return cx.refuse({
    code: 'schedule/order-matters',
    message: `${between!.member.name} cannot be moved to the other loop nests: a statement in between also uses ${between!.buffer}`,
    loops: [between!.member.top, ...(between!.other.kind === 'for' ? [between!.other] : [])],
    expected: 'adjacent loop nests, or independent statements in between',
  })
}

/** Returns an unused name: the common prefix of the names, up to a `_`, or `otherwise`. */
export function nestName(cx: Context, nests: readonly string[], otherwise: string): string {
  const words = nests.map((n) => n.split('_'))
  const first = words[0]!
  const common = first.findIndex((w, k) => words.some((other) => other[k] !== w))
  const base = first.slice(0, common < 0 ? first.length : common).join('_') || otherwise
  return nestNames(cx.kernel.body).fresh(base)
}
