/** Legality of steps on several loop nests of a kernel with rounds: no statement moves into rounds or out of them. */
import { roundsAround } from '../../ir/coordinates/rounds.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import type { Context } from '../state/context.ts'

/** Throws `schedule/rounds` if a step combines statements of rounds with other statements. */
export function checkEdges(cx: Context, next: Kernel2): void {
  const [before, after] = [cx.kernel.body, next.body]
  if (before === after || !before.some((s) => s.kind === 'rounds')) return
  const [old, now] = [roundsOf(before), roundsOf(after)]
  const moved = [...now].filter(([s, rounds]) => old.has(s) && old.get(s) !== rounds)
  const changed = [...old, ...now].filter(([s]) => !old.has(s) || !now.has(s))
  if (moved.length === 0 && new Set(changed.map(([, rounds]) => rounds)).size < 2) return
  const loops = [...moved, ...changed].flatMap(([s]) => (s.kind === 'for' && old.has(s) ? [s] : []))
  cx.refuse('schedule/rounds', loops, {
    message: `${nests(loops)} would leave the rounds, or enter them`,
    expected: 'loop nests of the same rounds, or loop nests outside of rounds',
  })
}

const nests = (loops: readonly For[]): string => [...new Set(loops.map((l) => l.nest))].join(' and ')

/** The rounds around each top-level statement, by the edge before it; undefined outside of rounds. */
const roundsOf = (body: readonly Stmt[]): ReadonlyMap<Stmt, Stmt | undefined> =>
  new Map(body.map((s, k) => [s, body[roundsAround(body, k)[0] - 1]]))
