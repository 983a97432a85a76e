/**
 * Names of the buffers that steps derive from a tensor or an axis. Schedules may name these buffers before they exist,
 * so their check must recognise the names.
 */
import { indicesOf, indptrOf, maskOf } from './axis.ts'

const FOUND = ['marks', 'sizes', 'counts', 'bases', 'starts'] as const
/**
 * Names of the arrays that the format builder computes for a tensor. For one of several parts, the part's label
 * follows.
 */
export const foundOf = (what: (typeof FOUND)[number], tensor: string): string => `${what}_${tensor}`

const SUMMED = ['offsets', 'sizes', 'totals', 'bases', 'wanted'] as const
/** Names of the arrays from which the format builder computes an axis' offsets, and of the offsets. */
export const summedOf = (what: (typeof SUMMED)[number], axis: string): string => `${axis}_${what}`

/** The elements of a coordinate list that is built at run time for a tensor. */
export const listOf = (list: string, tensor: string): string => `${list}_of_${tensor}`
/** A tensor's own values at positions built at run time; the part's label follows. */
export const valuesNameOf = (tensor: string): string => `${tensor}_values`
/** The name of one part of a tensor. */
export const partOf = (tensor: string, label: string): string => `${tensor}_${label}`

/** True if a buffer that a step derives from the tensor may have this name. */
export function mayBeOf(name: string, tensor: string): boolean {
  const starts = [partOf(tensor, ''), ...FOUND.map((what) => `${foundOf(what, tensor)}_`)]
  return isNumbered(name, (x) => x.endsWith(`_${tensor}`)) || starts.some((s) => name.startsWith(s))
}

const AXIS = [indptrOf, indicesOf, maskOf, ...SUMMED.map((what) => (axis: string) => summedOf(what, axis))]

/** True if an array of some axis may have this name. */
export const mayBeOfAxis = (name: string): boolean =>
  isNumbered(name, (x) => AXIS.some((of) => x.endsWith(of(''))))

/** Matches the name with or without the numeric suffix that distinguishes it from a reserved name. */
const isNumbered = (name: string, is: (name: string) => boolean): boolean =>
  is(name) || is(name.replace(/_\d+$/, ''))
