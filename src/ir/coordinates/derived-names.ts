/**
 * Names of the buffers that steps derive from a tensor or an axis. Schedules may name these buffers before they exist,
 * so their check must recognise the names.
 */
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { type Expr, type Load, lt } from '../expressions/expr.ts'
import { walkExpr } from '../expressions/expr-tree.ts'
import { arrayName, hasHoles, type PaddedAxis } from './axis.ts'

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

// Coordinate lists of formats: `list ko = sparse_fixed(go, k, 64)` stores coordinates without values. Tiles
// under `go` share it: an axis over its positions has one slot per listed coordinate, and inverse maps load
// the coordinate, `ko[q]`. Values can therefore be stored in any order of the surrounding axes. In kernels, a
// list is a table over its ancestor axes and its positions: `ko[io, go, q]` is addressed like an element of
// any buffer over them. Its array has the layout of the level: `width` ascending coordinates under each
// position of its parent.

export interface CoordinateList {
  /** The level that the list stores; its parent is an axis of the format. */
  readonly axis: PaddedAxis
  /** The axes from a root down to its parent: the leading indices of a load, before the position. */
  readonly under: readonly string[]
  /** The coordinate of an element on the list's axis, as in a format's map. */
  readonly coordinate: Expr
  /** Name of the query for that coordinate's position in the list; `null` if the map does not use it. */
  readonly position: string | null
}

/** Loads of lists in an expression, each with its list. */
export function loadsOfLists(
  e: Expr,
  lists: readonly CoordinateList[],
): readonly { readonly load: Load; readonly list: CoordinateList }[] {
  const out: { load: Load; list: CoordinateList }[] = []
  if (lists.length === 0) return out
  walkExpr(e, (x) => {
    const list = x.kind === 'load' ? lists.find((l) => l.axis.name === x.buffer) : undefined
    if (x.kind === 'load' && list) out.push({ load: x, list })
  })
  return out
}

/** Conditions for a coordinate to exist at the loaded position: padding without a coordinate stores the extent. */
export const existenceConditions = (load: Expr, { axis }: CoordinateList): readonly Expr[] =>
  hasHoles(axis) ? [lt(load, axis.extent)] : []
