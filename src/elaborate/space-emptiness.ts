/** Spaces that have no point, as far as that can be told. */
import type { SpacePoint, SpaceUse } from './space-values.ts'
import { Walk } from './space-walk.ts'

/** Values that led nowhere before a space counts as having points. */
const TRIED = 20_000

/**
 * Whether no point is possible, whatever the data are: what is not known refuses nothing. `false` where that takes too
 * long to tell.
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
