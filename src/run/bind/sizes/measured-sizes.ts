/** Measured sizes: extents that formats leave open are determined by the largest coordinate. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { hasWidth, isStored } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { type FormatOperands, sizeIn } from '../../../storage/format-operands.ts'
import { allAxesOf } from '../sources/caller-tensors.ts'
import { extentsOf } from '../sources/coordinate-sources.ts'
import type { Measure } from '../sources/remap-entries.ts'

/** Returns a function that measures open extents, and adds them and dependent extents to `known`. */
export function measuring(kernel: Kernel1, known: FormatOperands): Measure {
  const params = known.sizes as Map<string, number>
  const extents = known.extents as Map<string, number>
  const axes = [...allAxesOf(kernel).values()]
  const open = new Set(kernel.params.filter((p) => p.measured && !params.has(p.name)).map((p) => p.name))
  return (names, pieces) => {
    let found = false
    for (const a of axes) {
      if (!names.has(a.name) || !isStored(a) || a.extent.kind !== 'var' || !open.has(a.extent.name)) continue
      let n = params.get(a.extent.name) ?? 0
      for (const p of pieces) {
        const column = p.columns.get(a.name)
        if (column) for (let e = 0; e < column.length; e++) if (column[e]! >= n) n = column[e]! + 1
      }
      params.set(a.extent.name, n)
      found = true
    }
    if (found) for (const [a, n] of extentsOf(kernel, params)) extents.set(a, n)
  }
}

/** Computed widths need all their sizes; a width that is one size may be measured later. @throws `bind/missing-size` */
export function checkWidths({ axes }: Kernel1, params: ReadonlyMap<string, number>): void {
  for (const a of axes) {
    if (hasWidth(a) && a.width.kind !== 'var') sizeIn(a.width, params, `the width of axis ${a.name}`)
  }
}

// Bounds on the widths of lists that are built at run time, because each run fills and visits every group
// completely.

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
