/** Short lists of schedules for `fastest { … }`: those among which a model's choice comes nearest to the best of all. */
import { together } from '../support.ts'
import type { Judged } from './judging.ts'
import { type Guess, pickOf } from './verdict.ts'

/** One case with its guesses under names that mean the same in all cases of a list. */
export interface Listed {
  readonly case: Judged
  readonly guesses: ReadonlyMap<string, Guess>
}

/** `sddmm.spt:sddmm.edges(128,16,1,8,4)` in parts. */
function partsOf(candidate: string): { readonly schedule: string; readonly args: readonly string[] } {
  const [, schedule = '', list = ''] = /\.(\w+)(?:\((.*)\))?$/.exec(candidate) ?? []
  return { schedule, args: list === '' ? [] : list.split(',') }
}

/** As choices write them: an argument that is the width wherever the schedule is used is `d`. */
export function listed(cases: readonly Judged[]): readonly Listed[] {
  const uses = cases.flatMap((c) =>
    c.guesses.map((g) => ({ ...partsOf(g.candidate), width: String(c.width) })),
  )
  const follows = new Set<string>()
  for (const [schedule, own] of together(uses, (u) => u.schedule)) {
    if (new Set(own.map((u) => u.width)).size < 2) continue
    own[0]!.args.forEach((_, k) => {
      if (own.every((u) => u.args[k] === u.width)) follows.add(`${schedule} ${k}`)
    })
  }
  const nameOf = (candidate: string): string => {
    const { schedule, args } = partsOf(candidate)
    const written = args.map((a, k) => (follows.has(`${schedule} ${k}`) ? 'd' : a))
    return written.length > 0 ? `${schedule}(${written.join(', ')})` : schedule
  }
  return cases.map((c) => ({
    case: c,
    guesses: new Map(c.guesses.map((g) => [nameOf(g.candidate), g])),
  }))
}

/** What a model takes of a list; `null` where nothing of it was measured. */
export function pickFrom({ guesses }: Listed, list: readonly string[]): Guess | null {
  const own = list.flatMap((name) => guesses.get(name) ?? [])
  return own.length > 0 ? pickOf(own) : null
}

/** How much longer the choice takes than the best; where nothing was measured, as much as one candidate in the middle. */
function lossOf(l: Listed, list: readonly string[]): number {
  const loss = (time: number): number => time / l.case.best - 1
  const pick = pickFrom(l, list)
  if (pick) return loss(pick.time)
  const times = [...l.guesses.values()].map((g) => g.time).sort((a, b) => a - b)
  return loss(times[times.length >> 1]!)
}

/** A candidate counts as one only where it was measured in so large a share of the cases. */
const SHARE = 0.25

/** Forward greedily: each time what lessens the mean loss most, until `most` are in it or none does. */
export function greedy(cases: readonly Listed[], most: number): readonly string[] {
  const names = [...new Set(cases.flatMap((c) => [...c.guesses.keys()]))].filter(
    (n) => cases.filter((c) => c.guesses.has(n)).length >= SHARE * cases.length,
  )
  const cost = (list: readonly string[]): number =>
    cases.reduce((sum, c) => sum + lossOf(c, list), 0) / Math.max(1, cases.length)
  let list: readonly string[] = []
  let least = Number.POSITIVE_INFINITY
  while (list.length < most) {
    const next = names
      .filter((n) => !list.includes(n))
      .map((n) => ({ list: [...list, n], cost: cost([...list, n]) }))
      .reduce<{ list: readonly string[]; cost: number } | null>(
        (a, b) => (a && a.cost <= b.cost ? a : b),
        null,
      )
    if (!next || next.cost >= least) break
    ;({ list, cost: least } = next)
  }
  return list
}
