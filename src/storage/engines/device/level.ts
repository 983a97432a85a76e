/** What all kinds of levels share: their types, positions, and what they refuse. */
import { fail } from '../../../ast/diagnostic.ts'
import { hasIndices, type StoredAxis } from '../../../ir/axis.ts'
import { type Expr, variable } from '../../../ir/expr.ts'
import { type Column, write } from './column-types.ts'
import type { Frame } from './frame.ts'
import { store } from './kernel.ts'
import type { Queue } from './queue.ts'

/** One level with its arrays on the device; as `Level` of `storage/storage.ts`. */
export interface DeviceLevel {
  readonly axis: StoredAxis
  readonly extent: number
  readonly width: number | null
  readonly positions: number
  readonly indptr: Column | null
  readonly indices: Column | null
  readonly mask: Column | null
}

/**
 * An axis, the coordinate of each entry on it, its extent, what it is padded with, and its width (`null`: still to
 * be measured).
 */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly padding: number
  readonly width: number | null
}

export interface Place {
  /** Position on the level so far; `null`: the only segment of a root. */
  readonly at: Expr | null
  readonly positions: number
}

export interface Made extends Place {
  readonly level: DeviceLevel
}

export const isRepeating = (axis: StoredAxis): boolean => hasIndices(axis) && !axis.unique

export const none = { width: null, indptr: null, indices: null, mask: null }

/** A size that expressions mention by the axis it belongs to. */
export function sizeOf(frame: Frame, what: string, axis: StoredAxis, value: number): Expr {
  const name = `@${what} ${axis.name}`
  frame.sizes.set(name, value)
  return variable(name)
}

/** All elements become an integer. */
export function fill(q: Queue, column: Column, value: number): void {
  q.launch({
    key: 'fill',
    threads: column.length,
    columns: { x_to: write(column) },
    sizes: { x_value: value },
    body: (e) => [store('x_to', e, variable('x_value'))],
  })
}

/** Positions are 32-bit. */
export const MOST_POSITIONS = 2 ** 31 - 1

export function checkPositions(axis: StoredAxis, positions: number): void {
  if (positions > MOST_POSITIONS) tooManyPositions(axis, positions)
}

/** @throws SptError `convert/too-large` */
export function tooManyPositions(axis: StoredAxis, positions?: number): never {
  fail({
    code: 'convert/too-large',
    message: `axis ${axis.name} would have ${positions ?? `more than ${MOST_POSITIONS}`} positions`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `at most ${MOST_POSITIONS}: positions are 32-bit`,
    hint: 'store fewer positions: a smaller width or block, or a sparse axis instead of a dense one',
  })
}
