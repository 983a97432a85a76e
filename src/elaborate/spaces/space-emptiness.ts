/** Detection of spaces without a point. */
import type { SpacePoint, SpaceUse } from './space-values.ts'
import { Walk } from './space-walk.ts'

/** The number of rejected values after which a space counts as non-empty. */
const TRIED = 20_000

/**
 * Returns whether no point is possible for any data; unknown conditions reject nothing. Returns false if the search
 * takes too long.
 */
export function isEmpty(use: SpaceUse): boolean {
  let left = TRIED
  const dead = new Set<string>()
  const hasPoint = (point: SpacePoint): boolean => {
    const walk = new Walk(use, point, '')
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
