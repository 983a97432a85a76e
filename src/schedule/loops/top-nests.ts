/** Nests outside of all loops that become one: found by name, and where they can stand. */

import { nestNames } from '../../ir/bound-names.ts'
import type { For, Stmt } from '../../ir/loops.ts'
import type { Context } from '../context.ts'
import { inAnyOrder } from '../nest-dependence.ts'

/** A nest that takes part. */
export interface TopNest {
  readonly name: string
  readonly top: For
  /** Where it stands in the kernel. */
  readonly at: number
}

/** The step names two different nests at least. */
export function checkSeveral(cx: Context, word: 'merge' | 'join', nests: readonly string[]): void {
  if (nests.length >= 2 && new Set(nests).size === nests.length) return
  cx.refuse({
    code: `schedule/nothing-to-${word}`,
    message:
      nests.length < 2
        ? `${word} is given ${nests.length === 0 ? 'no' : 'one'} nest`
        : `${word} is given a nest twice`,
    expected: 'at least two different nests',
  })
}

/** The nest of that name. */
export function topNest(cx: Context, name: string): TopNest {
  const tops = cx.kernel.body.flatMap((s, at) =>
    s.kind === 'for' && s.nest === name ? [{ top: s, at }] : [],
  )
  const candidates = [...new Set(cx.kernel.body.flatMap((s) => (s.kind === 'for' ? [s.nest] : [])))]
  const [only, other] = tops
  if (!only)
    return cx.refuse({
      code: 'schedule/unknown-nest',
      message: `there is no top-level nest ${name}`,
      ...(candidates.length > 0 ? { expected: `one of ${candidates.join(', ')}` } : {}),
      lookup: { name, candidates },
    })
  if (other)
    return cx.refuse({
      code: 'schedule/ambiguous-nest',
      message: `${name} has ${tops.length} top-level loops`,
      loops: tops.map((t) => t.top),
      expected: 'an iteration with one top-level loop',
    })
  return { name, ...only }
}

/** Where all of them can stand: at the first, or else at the last, with nothing between that one may not pass. */
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
    message: `${between!.member.name} cannot be moved to the others: a statement between them also uses ${between!.buffer}`,
    loops: [between!.member.top, ...(between!.other.kind === 'for' ? [between!.other] : [])],
    expected: 'nests that follow each other, or independent ones between them',
  })
}

/** What the nests' names begin with in common, up to a `_`. */
export function nestName(cx: Context, nests: readonly string[], otherwise: string): string {
  const words = nests.map((n) => n.split('_'))
  const first = words[0]!
  const common = first.findIndex((w, k) => words.some((other) => other[k] !== w))
  const base = first.slice(0, common < 0 ? first.length : common).join('_') || otherwise
  return nestNames(cx.kernel.body).fresh(base)
}
