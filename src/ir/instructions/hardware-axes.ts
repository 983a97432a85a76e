/** Hardware indices: of the blocks of a launch and of the threads of a block, and the loops that are bound to them. */
import type { ThreadAxis } from '../expressions/expr-nodes.ts'
import type { Stmt } from '../statements/loops.ts'

type Direction = 'x' | 'y' | 'z'
/** Hardware indices number the blocks of a launch or the threads of a block. */
export type AxisLevel = 'block' | 'thread'

const AXES: Readonly<Record<ThreadAxis, readonly [AxisLevel, Direction]>> = {
  'block.x': ['block', 'x'],
  'block.y': ['block', 'y'],
  'block.z': ['block', 'z'],
  'thread.x': ['thread', 'x'],
  'thread.y': ['thread', 'y'],
  'thread.z': ['thread', 'z'],
}

export const levelOf = (axis: ThreadAxis): AxisLevel => AXES[axis][0]
export const directionOf = (axis: ThreadAxis): Direction => AXES[axis][1]
/** The thread indices, in the order in which the threads of a block are numbered. */
export const AXES_OF_BLOCK: readonly ThreadAxis[] = ['thread.x', 'thread.y', 'thread.z']
/** The dimension (0, 1, 2 for x, y, z) of an index in the grid or block. */
export const dimensionOf = (axis: ThreadAxis): number => 'xyz'.indexOf(directionOf(axis))

/** The index of this level that a loop is bound to; `undefined` if it is not. */
export const boundIndex = (s: Stmt, level: AxisLevel): ThreadAxis | undefined =>
  s.kind === 'for' && s.mode.kind === 'bind' && levelOf(s.mode.to) === level ? s.mode.to : undefined
