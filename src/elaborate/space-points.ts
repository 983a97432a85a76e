/** What a point says of a space: what it leaves open, what it decides, and the schedule of a whole one. */
import { fail } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Schedule } from './schedule-types.ts'
import type { OpenValues, SpacePoint, SpaceUse } from './space-values.ts'
import { Walk } from './space-walk.ts'

/** The decision that a point leaves open, `null` for a whole one. @throws SptError `space/…`, and as `known` */
export const openIn = (use: SpaceUse, point: SpacePoint): OpenValues | null => new Walk(use, point, '').open

/** What the rest of a space depends on after a point: the same text, the same rest. */
export const restIn = (use: SpaceUse, point: SpacePoint): string => new Walk(use, point, '').rest

/** The schedule of a whole point, with arguments for its parameters. */
export const scheduleIn = (use: SpaceUse, point: SpacePoint) => new Walk(use, point, '').schedule()

/** Names of what a point decides of a space. */
export const decidedIn = (use: SpaceUse, point: SpacePoint): ReadonlySet<string> =>
  new Set(new Walk(use, point, '').decided)

/** Values of no decision. @throws SptError `space/point` */
export function refuseOthers(space: string, point: SpacePoint, decided: ReadonlySet<string>): void {
  const more = Object.keys(point).find((name) => !decided.has(name))
  if (more === undefined) return
  fail({
    code: 'space/point',
    message: `${space} decides nothing called ${more} after the other values`,
    lookup: { name: more, candidates: [...decided] },
    expected: [...decided].join(', ') || 'no values',
    hint: 'leave it out',
  })
}

/**
 * The schedule of the program that a schedule from `scheduleIn` uses and nothing else, with its arguments; `null` where it
 * is made of steps.
 */
export function soleUse(
  schedule: Schedule,
): { readonly name: string; readonly args: readonly number[] } | null {
  const [step, ...more] = schedule.steps
  if (step?.kind !== 'use' || more.length > 0) return null
  const { name } = step.schedule
  // No name has a point in it.
  if (name.includes('.')) return soleUse(schedule.uses.get(name)!)
  const args = step.args.map(literalValue)
  return args.every((a) => a !== null) ? { name, args } : null
}

function literalValue(e: Ast.Expr): number | null {
  if (e.kind === 'number') return e.value
  const inner = e.kind === 'unary' && e.op === 'neg' ? literalValue(e.x) : null
  return inner === null ? null : -inner
}
