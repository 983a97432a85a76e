/**
 * Values of lists that are built at run time (`A as FORMAT live`). A loop nest after the lists copies the values of all
 * positions from the tensor, which is read there only: consumers that gather an element several times then gather from
 * neighbouring addresses. Groups are copied as a whole, with the fill value at positions without a coordinate. Nothing
 * is read after the last group.
 */

import type { Axis } from '../../../ir/coordinates/axis.ts'
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration } from '../../../ir/coordinates/stage1.ts'
import { all, constant, load, select } from '../../../ir/expressions/expr.ts'
import type { Unused } from '../as/part-statements.ts'
import type { Source } from './mark.ts'
import { iter, loopOf, nest, Steps, set, THREADS, v } from './nests.ts'

/** The name of the copy in statements that are not yet rewritten for one part. */
export const VALUES = '@values'

/** Returns the loop nest that copies the elements of a part, over coordinates of the tensor. */
export function copyNest({ buffer, over, where }: Source, unused: Unused, label: string): Iteration {
  const own = new Set(over.map((a) => a.name))
  const iters = buffer.axes.map((axis) => iter(own.has(axis) ? axis : unused(axis), 'S', axis))
  const index = iters.map((x) => v(x.name))
  const [to, from] = [VALUES, buffer.name].map((name) => load(name, index, buffer.dtype))
  return nest(unused(`copy_${buffer.name}`, label), iters, [set(to!, from!)], where ? [where] : [])
}

/** Returns the loop nest over all positions of groups: the fill value is written where it would write nothing. */
export function inWholeGroups(it: Iteration, { fill, dtype }: Buffer1): Iteration {
  const body = it.body.map((s) =>
    s.kind === 'assign' && it.where.length > 0
      ? { ...s, values: s.values.map((e) => select(all(it.where), e, constant(fill, dtype))) }
      : s,
  )
  return { ...it, where: [], body }
}

/**
 * Returns the schedule: a block has one group, or enough groups to give its threads neighbouring elements. The loop
 * `counted` ends with the list.
 */
export function copySteps({ name, iters }: Iteration, counted: string, axes: readonly Axis[]): NestDefault {
  const s = new Steps()
  const extents = new Map(axes.flatMap((a) => ('extent' in a ? [[a.name, a.extent] as const] : [])))
  const loops = iters.map((x) => loopOf(name, x.name, extents.get(x.axis)))
  const at = loops.findIndex((l) => l.name === counted)
  const outer = s.fuse(loops.slice(0, at), `${counted}_outer`)
  const inner = loops.slice(at + 1)
  const elements = s.fuse(inner, `${counted}_element`)
  const extent = elements ? elements.extent : 1
  const isWide = extent === null || extent > THREADS
  const [, lanes] = elements && isWide ? s.split(elements, THREADS, 'thread') : [null, elements]
  const rows = isWide ? 1 : 2 ** Math.floor(Math.log2(THREADS / Math.max(1, extent)))
  const [block, row] = s.split({ ...loops[at]!, extent: null }, rows, 'row')
  s.bind(
    [outer, 'block.x'],
    [block, outer ? 'block.y' : 'block.x'],
    [row, lanes ? 'thread.y' : 'thread.x'],
    [lanes, 'thread.x'],
  )
  return { nest: name, steps: s.steps }
}
