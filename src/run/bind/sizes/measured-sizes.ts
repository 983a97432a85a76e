/** Measured sizes: extents that formats leave open are determined by the largest coordinate. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { hasWidth, isStored } from '../../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { missingValue } from '../../../storage/missing-size.ts'
import { allAxesOf } from '../sources/caller-tensors.ts'
import { extentsOf } from '../sources/coordinate-sources.ts'
import type { Known, Measure } from '../sources/remap-entries.ts'

/** Returns a function that measures open extents, and adds them and dependent extents to `known`. */
export function measuring(kernel: Kernel1, known: Known): Measure {
  const params = known.params as Map<string, number>
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

/**
 * Checks that computed widths have all their sizes. A width that is one size may be measured later. Throws SptError `bind/missing-size`.
 */
export function checkWidths({ axes }: Kernel1, params: ReadonlyMap<string, number>): void {
  for (const a of axes) {
    if (!hasWidth(a) || a.width.kind === 'var') continue
    const missing = [...freeVars(a.width)].filter((v) => !params.has(v))
    if (missing.length === 0) continue
    fail(missingValue({ name: missing[0]!, of: `(the width of axis ${a.name} depends on it)` }))
  }
}
