/**
 * Values of lists that are built at run time (`A as FORMAT live`). A loop nest after the lists copies the values of all
 * positions from the tensor, which is read there only: consumers that gather an element several times then gather from
 * neighbouring addresses. Groups are copied as a whole, with the fill value at positions without a coordinate. Nothing
 * is read after the last group.
 */

import { valuesName } from '../../../ir/coordinates/derived-names.ts'
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration } from '../../../ir/coordinates/stage1.ts'
import { all, constant, type Expr, load, select, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import type { StepSpan } from '../as/tensor-split.ts'
import { inRange } from '../legality/axis-prefixes.ts'
import type { Built } from './build.ts'
import type { Source } from './positions.ts'
import { type Loop, loopOver, named, Steps, THREADS } from './schedule.ts'
import { statementsAt, v } from './statements.ts'

export interface Values {
  readonly buffer: Buffer1
  readonly nest: Iteration
  readonly defaults: readonly NestDefault[]
}

/**
 * Builds the buffer of values and the loop nest that fills it. `part` is the format over positions, and `held` the
 * condition that a position of a group has a coordinate.
 */
export function valuesOf(
  { buffer, start, over, axes, where }: Source,
  part: FormatInstance,
  { built, held, label }: { readonly built: Built; readonly held: Expr; readonly label: string },
  unused: (name: string, label?: string) => string,
  at: StepSpan,
): Values {
  const { nest: nestAt, set } = statementsAt(at)
  const [name, nest] = [unused(valuesName(buffer.name), label), unused(`copy_${buffer.name}`, label)]
  const own = buffer.axes.map((axis, k) =>
    k >= start && k < start + over.length ? null : { name: unused(axis), axis },
  )
  const iters = [
    ...own.slice(0, start),
    ...part.order.map((axis) => ({ name: axis, axis })),
    ...own.slice(start + over.length),
  ].flatMap((x) => (x ? [{ ...x, kind: 'S' as const }] : []))
  const element = load(
    buffer.name,
    own.map((x, k) => (x ? variable(x.name) : part.inverse[k - start]!)),
    buffer.dtype,
  )
  const inside = [
    ...(built.group ? [held] : []),
    ...part.inverse.flatMap((e, k) => inRange(e, over[k]!, part)),
    ...(where ? [substitute(where, new Map(over.map((a, k) => [a.name, part.inverse[k]!])))] : []),
  ]
  const value =
    inside.length > 0 ? select(all(inside), element, constant(buffer.fill, buffer.dtype)) : element
  const extents = new Map([...axes, ...part.axes].flatMap((a) => ('extent' in a ? [[a.name, a.extent]] : [])))
  return {
    buffer: {
      ...buffer,
      name,
      role: 'local',
      axes: [...buffer.axes.slice(0, start), ...part.order, ...buffer.axes.slice(start + over.length)],
      placed: true,
      filledAtRunTime: true,
      span: undefined,
    },
    nest: nestAt(nest, iters, [
      set(
        load(
          name,
          iters.map((x) => v(x.name)),
          buffer.dtype,
        ),
        value,
      ),
    ]),
    defaults: copySteps(
      nest,
      (built.group ?? built.position).name,
      iters.map((x) => loopOver(x.name, extents.get(x.axis)!)),
    ),
  }
}

/**
 * Returns the schedule: a block has one group, or enough groups to give its threads neighbouring elements. The loop
 * `counted` ends with the list.
 */
function copySteps(nest: string, counted: string, loops: readonly Loop[]): readonly NestDefault[] {
  const s = new Steps(nest)
  const at = loops.findIndex((l) => l.name === counted)
  const outer = s.fuse(loops.slice(0, at), `${counted}_outer`)
  const inner = loops.slice(at + 1)
  const extent = inner.reduce<number | null>(
    (n, l) => (n === null || l.extent === null ? null : n * l.extent),
    1,
  )
  const elements = inner.length > 0 ? { name: s.fuse(inner, `${counted}_element`)!.name, extent } : null
  const isWide = extent === null || extent > THREADS
  const [, lanes] = elements && isWide ? s.split(elements, THREADS, 'thread') : [null, elements]
  const rows = isWide ? 1 : 2 ** Math.floor(Math.log2(THREADS / Math.max(1, extent)))
  const [block, row] = s.split(named(counted), rows, 'row')
  s.bind(
    [outer, 'block.x'],
    [block, outer ? 'block.y' : 'block.x'],
    [row, lanes ? 'thread.y' : 'thread.x'],
    [lanes, 'thread.x'],
  )
  return [{ nest, steps: s.steps }]
}
