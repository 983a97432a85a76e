/**
 * Rounds in the body of a kernel: a sequential loop on the host around loop nests and launches. The body of a kernel is a
 * list, in which two edges (`RoundsEdge`) mark the repeated part, so that passes and steps treat its nests like others.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import type { RoundsEdge } from './stage1.ts'

/** The default limit on rounds whose number only a condition bounds. */
export const MAX_ROUNDS = 10_000

/**
 * Runs rounds until `count` or until `isLast()` before a round.
 * @throws SptError `run/max-rounds` if only `isLast` ends them and does not within `most` rounds
 */
export function repeat(
  rounds: RoundsEdge,
  count: number | undefined,
  isLast: () => boolean,
  round: () => void,
  most = MAX_ROUNDS,
): void {
  for (let k = 0; k < (count ?? Infinity) && !isLast(); k++) {
    if (rounds.flag !== undefined && k >= most) failMaxRounds(rounds, most)
    round()
  }
}

export const failMaxRounds = ({ name, span }: Pick<RoundsEdge, 'name' | 'span'>, most: number): never =>
  failWith('run/max-rounds', `the condition of rounds ${name} still holds after ${most} rounds`, {
    ...(span && { span }),
    expected: 'a condition that fails after a number of rounds',
    hint: `give the rounds an axis with fewer coordinates, or set a larger limit: --max-rounds ${most * 10}, maxRounds in TypeScript`,
  })

interface Node {
  readonly kind: string
}
type Other<S extends Node> = Exclude<S, RoundsEdge>

/** The statements between two edges. */
export interface Section<S> {
  readonly kind: 'section'
  readonly rounds: RoundsEdge
  readonly body: readonly S[]
}

const isEdge = (s: Node): s is RoundsEdge => s.kind === 'rounds'

/** A list with a section in place of the statements between two edges. */
export function sectionsOf<S extends Node>(list: readonly S[]): readonly (Other<S> | Section<Other<S>>)[] {
  const out: (Other<S> | Section<Other<S>>)[] = []
  let open: { rounds: RoundsEdge; body: Other<S>[] } | undefined
  for (const s of list)
    if (!isEdge(s)) (open?.body ?? out).push(s as Other<S>)
    else if (s.edge === 'begin') open = { rounds: s, body: [] }
    else {
      out.push({ kind: 'section', ...open! })
      open = undefined
    }
  return out
}

const edgesIn = (list: readonly Node[]): readonly RoundsEdge[] =>
  list.filter(isEdge).filter((s) => s.edge === 'begin')

/** The indices of the first statement of the rounds around an index and of the statement after them; the whole list if there are none. */
export function roundsAround(list: readonly Node[], at: number): readonly [number, number] {
  const before = list.findLastIndex((s, k) => k < at && isEdge(s))
  const begin = list[before]
  if (!begin || !isEdge(begin) || begin.edge === 'end') return [0, list.length]
  return [before + 1, list.findIndex((s, k) => k >= at && isEdge(s))]
}

/** Buffers whose values the previous or the next round, or the host, reads. */
export const readByEdge = ({ carried, flag }: RoundsEdge): readonly string[] => [
  ...carried,
  ...(flag === undefined ? [] : [flag]),
]

/** Buffers that keep values from round to round. */
export const carriedIn = (list: readonly Node[]): ReadonlySet<string> =>
  new Set(edgesIn(list).flatMap((e) => e.carried))

/**
 * The list with initial fills: at the begin of each round for temporaries of the rounds, otherwise first.
 * @param accesses - Names of the buffers that a statement accesses
 */
export function withFills<S extends Node, F extends { readonly buffer: string }>(
  list: readonly S[],
  fills: readonly (S & F)[],
  accesses: (s: S) => Iterable<string>,
): readonly S[] {
  if (edgesIn(list).length === 0) return [...fills, ...list]
  const placed = new Set<S & F>()
  const namesIn = (part: readonly S[]): ReadonlySet<string> => new Set(part.flatMap((s) => [...accesses(s)]))
  const out = list.flatMap((s, at): readonly S[] => {
    if (!isEdge(s) || s.edge === 'end') return [s]
    const [from, to] = roundsAround(list, at + 1)
    const inside = namesIn(list.slice(from, to))
    // The edges access the buffers that they carry.
    const outside = namesIn([...list.slice(0, from), ...list.slice(to)])
    const own = fills.filter((f) => inside.has(f.buffer) && !outside.has(f.buffer))
    for (const f of own) placed.add(f)
    return [s, ...own]
  })
  return [...fills.filter((f) => !placed.has(f)), ...out]
}

/** An edge as text: `rounds step < n while step_while[] {`, and `}` with the name. */
export function roundsText({ edge, name, count, flag }: RoundsEdge, text: (e: Expr) => string): string {
  if (edge === 'end') return `} rounds ${name}`
  return `rounds ${name}${count ? ` < ${text(count)}` : ''}${flag === undefined ? '' : ` while ${flag}[]`} {`
}
