/** Points of a space: their names, schedules that they equal, and spaces without any. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { literalValue } from '../../ast/nodes/nodes.ts'
import { inOrder } from '../formats/format-uses.ts'
import type { Schedule } from '../schedules/schedule-types.ts'
import type { SpacePoint, SpaceUse } from './space-values.ts'
import { Walk } from './space-walk.ts'

/** Checks that a point has values for these decisions only. @throws SptError `space/point` */
export function refuseOthers(space: string, point: SpacePoint, decided: ReadonlySet<string>): void {
  const more = Object.keys(point).find((name) => !decided.has(name))
  if (more === undefined) return
  failWith('space/point', `${space} decides nothing called ${more} after the other values`, {
    lookup: { name: more, candidates: [...decided] },
    expected: [...decided].join(', ') || 'no values',
    hint: `omit ${more}`,
  })
}

/**
 * The schedule of the program, with its arguments, if the schedule of a point only uses this one; null if it has
 * other steps.
 */
export function soleUse(
  schedule: Schedule,
): { readonly name: string; readonly args: readonly number[] } | null {
  const [step, ...more] = schedule.steps
  if (step?.kind !== 'use' || step.kernel || more.length > 0) return null
  const { name } = step.schedule
  // Names of schedules contain no dot; prefixes of nested spaces do.
  if (name.includes('.')) return soleUse(schedule.uses.get(name)!)
  const given = inOrder(step.args, schedule.uses.get(name)!.params)
  const args = given
    .slice(0, given.findLastIndex((a) => a) + 1)
    .map((a) => a && a.value.kind !== 'group' && literalValue(a.value))
  return args.every((a) => typeof a === 'number') ? { name, args } : null
}

// Detection of spaces without a point.

/** The number of rejected values after which a space counts as non-empty. */
const TRIED = 20_000

/**
 * True if no point is possible for any data; unknown conditions reject nothing. Returns false if the search takes too
 * long.
 */
export function isEmpty(use: SpaceUse): boolean {
  let left = TRIED
  const dead = new Set<string>()
  const hasPoint = (point: SpacePoint): boolean => {
    const walk = new Walk(use, point)
    if (!walk.open || walk.isUnknown) return true
    const key = walk.rest
    if (dead.has(key)) return false
    if (left <= 0) return true
    const { name, values, considered } = walk.open
    if (values.some((v) => hasPoint({ ...point, [name]: v }))) return true
    left -= 1 + considered
    dead.add(key)
    return false
  }
  return !hasPoint({})
}
