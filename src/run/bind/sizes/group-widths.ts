/** Bounds on the widths of lists that are built at run time, because each run fills and visits every group completely. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'

/** Positions that a group may have in any case, so that tiles may exceed small tensors. */
const FILLED = 4096

/** Throws SptError `bind/group-width` if a group has far more positions than there are coordinates. */
export function checkGroupWidths(
  { runtimeLists: found = [] }: Kernel1,
  params: ReadonlyMap<string, number>,
): void {
  for (const { tensor, parts, span } of found)
    for (const { instance, axis, width, extent } of parts) {
      const coordinates = Number(evaluate(extent, params))
      if (width <= Math.max(coordinates, FILLED)) continue
      fail({
        code: 'bind/group-width',
        message: `groups of ${instance.text} (${axis}) have ${width} positions, and ${tensor} has ${coordinates} coordinates to list: each run would pad and traverse the remaining positions`,
        ...(span && { span }),
        expected: `groups of at most ${Math.max(coordinates, FILLED)} positions`,
        hint: `one group of ${coordinates} holds all: choose no more, or several smaller groups`,
      })
    }
}
