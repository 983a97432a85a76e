/**
 * Names of the buffers that steps derive from a tensor or an axis. Schedules may name these buffers before they exist,
 * so their check must recognise the names.
 */
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { arrayName } from './axis.ts'

const BUILDER_ARRAYS = ['marks', 'sizes', 'counts', 'bases', 'starts'] as const
/**
 * Names of the arrays that the format builder computes for a tensor. For one of several parts, the part's label
 * follows.
 */
export const builderArrayName = (array: (typeof BUILDER_ARRAYS)[number], tensor: string): string =>
  `${array}_${tensor}`

const OFFSET_ARRAYS = ['offsets', 'sizes', 'totals', 'bases', 'wanted'] as const
/** Names of the arrays from which the format builder computes an axis' offsets, and of the offsets. */
export const offsetArrayName = (array: (typeof OFFSET_ARRAYS)[number], axis: string): string =>
  `${axis}_${array}`

/** The elements of a coordinate list that is built at run time for a tensor. */
export const listName = (list: string, tensor: string): string => `${list}_of_${tensor}`
/** A tensor's own values at positions built at run time; the part's label follows. */
export const valuesName = (tensor: string): string => `${tensor}_values`
/** The name of one part of a tensor. */
export const partName = (tensor: string, label: string): string => `${tensor}_${label}`

/** True if a buffer that a step derives from the tensor may have this name. */
export function mayDeriveFrom(name: string, tensor: string): boolean {
  const prefixes = [
    partName(tensor, ''),
    ...BUILDER_ARRAYS.map((array) => `${builderArrayName(array, tensor)}_`),
  ]
  return isNumbered(name, (x) => x.endsWith(`_${tensor}`)) || prefixes.some((s) => name.startsWith(s))
}

const AXIS = [
  ...LEVEL_ARRAYS.map((array) => (axis: string) => arrayName(axis, array)),
  ...OFFSET_ARRAYS.map((array) => (axis: string) => offsetArrayName(array, axis)),
]

/** True if an array of some axis may have this name. */
export const mayNameAxisArray = (name: string): boolean =>
  isNumbered(name, (x) => AXIS.some((nameOf) => x.endsWith(nameOf(''))))

/** Matches the name with or without the numeric suffix that distinguishes it from a reserved name. */
const isNumbered = (name: string, test: (name: string) => boolean): boolean =>
  test(name) || test(name.replace(/_\d+$/, ''))

/** Returns the name of a kernel in generated code and printed stages: `scale_f16` for `scale<f16>`. */
export const kernelIdentifier = (name: string): string => name.replace('>', '').replace(/\W+/g, '_')

/** Returns the name of a kernel as a word of a shell: `'scale<f16>'`. */
export const kernelWord = (name: string): string => (/^\w+$/.test(name) ? name : `'${name}'`)
