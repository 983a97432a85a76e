/** Copies in declared memories, whose last dimensions consist of tiles. */
import type { Memory } from '../../../ir/instructions/instr.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import type { Context } from '../../state/context.ts'

/** Returns whether the last dimensions are multiples of the tile's dimensions. */
export function isOfTiles(shape: readonly number[], { shape: tile }: Memory): boolean {
  const last = shape.slice(-tile.length)
  return last.length === tile.length && last.every((n, d) => n % tile[d]! === 0)
}

/**
 * Returns the `memory` property of a copy. Throws `schedule/wrong-type` or `schedule/wrong-tile` unless the copy
 * consists of tiles of the memory.
 */
export function inMemory(
  cx: Context,
  loop: For,
  memory: Memory | undefined,
  copy: Pick<Buffer, 'name' | 'dtype'>,
  shape: readonly number[],
): Pick<Buffer, 'memory'> {
  if (!memory) return {}
  const tile = memory.shape
  if (copy.dtype !== memory.dtype)
    cx.refuse({
      code: 'schedule/wrong-type',
      message: `${copy.name} holds ${copy.dtype}, and ${memory.name} ${memory.dtype}`,
      loops: [loop],
      expected: `a memory of ${copy.dtype}`,
    })
  if (!isOfTiles(shape, memory))
    cx.refuse({
      code: 'schedule/wrong-tile',
      message: `a copy of ${shape.join(' × ')} elements is made of no tiles of ${memory.name}`,
      loops: [loop],
      expected: `last dimensions that are multiples of ${tile.join(' × ')}`,
      hint: 'split the loops, and reorder those of the tile inside',
    })
  return { memory }
}
