/**
 * What buffers are called that steps make of a tensor or an axis. Texts of schedules name them before they are there: their check
 * knows what may come.
 */
import { indicesOf, indptrOf, maskOf } from './axis.ts'

const FOUND = ['marks', 'sizes', 'counts', 'bases', 'starts'] as const
/** What a run finds of a tensor. Of one of several parts, the part's label follows. */
export const foundOf = (what: (typeof FOUND)[number], tensor: string): string => `${what}_${tensor}`

const SUMMED = ['offsets', 'sizes', 'totals', 'bases', 'wanted'] as const
/** Where the lists of an axis begin that a run finds, and what that is summed up from. */
export const summedOf = (what: (typeof SUMMED)[number], axis: string): string => `${axis}_${what}`

/** The elements of a list that a run finds of a tensor. */
export const listOf = (list: string, tensor: string): string => `${list}_of_${tensor}`
/** A tensor's own values at positions that a run finds; the part's label follows. */
export const valuesNameOf = (tensor: string): string => `${tensor}_values`
/** A part of a tensor. */
export const partOf = (tensor: string, label: string): string => `${tensor}_${label}`

/** Whether a buffer that a step makes of the tensor may be called so. */
export function mayBeOf(name: string, tensor: string): boolean {
  const starts = [partOf(tensor, ''), ...FOUND.map((what) => `${foundOf(what, tensor)}_`)]
  return isNumbered(name, (x) => x.endsWith(`_${tensor}`)) || starts.some((s) => name.startsWith(s))
}

const AXIS = [indptrOf, indicesOf, maskOf, ...SUMMED.map((what) => (axis: string) => summedOf(what, axis))]

/** Whether an array of an axis, whichever, may be called so. */
export const mayBeOfAxis = (name: string): boolean =>
  isNumbered(name, (x) => AXIS.some((of) => x.endsWith(of(''))))

/** Where a name is taken, a number follows. */
const isNumbered = (name: string, is: (name: string) => boolean): boolean =>
  is(name) || is(name.replace(/_\d+$/, ''))
