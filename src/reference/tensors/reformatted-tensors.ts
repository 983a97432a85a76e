/**
 * Reformatted kernels with tensors in the caller's coordinates: inputs pass through the coordinate maps in the order of
 * the formats, outputs through the inverse maps in reverse.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis } from '../../ir/coordinates/axis.ts'
import type { Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import type { Source } from './axis-trees.ts'

export type Evaluate = (e: Expr, values: ReadonlyMap<string, number>) => number

/** Columns of coordinates by axis name. */
export interface Columns {
  readonly axes: readonly string[]
  readonly columns: readonly Int32Array[]
  readonly length: number
}

/**
 * True if the caller's tensor passes through the maps. Parts of compositions, and formats with queries or tables, are
 * bound as separate tensors over their own axes.
 */
export function isTranslated({ instance }: Reformat): boolean {
  const [part] = instance.parts
  return (
    instance.parts.length === 1 &&
    instance.tree.kind === 'leaf' &&
    part !== undefined &&
    part.instance.queries.length === 0 &&
    part.instance.tables.length === 0
  )
}

/** The formats applied to a buffer since it was last bound part by part. */
export function translationsOf(kernel: Kernel1, buffer: string): readonly Reformat[] {
  const lastSeparate = kernel.reformats.findLastIndex(
    (r) => !isTranslated(r) && r.buffers.some((b) => b.parts.includes(buffer)),
  )
  return kernel.reformats.slice(lastSeparate + 1).filter((r) => isTranslated(r))
}

const instanceOf = (r: Reformat): FormatInstance => r.instance.parts[0]!.instance

const appliesTo = (c: Columns, r: Reformat): boolean => r.from.every((a) => c.axes.includes(a.name))

function translate(
  c: Columns,
  from: readonly string[],
  to: readonly string[],
  exprs: readonly Expr[],
  evaluate: Evaluate,
): Columns {
  const inputColumns = from.map((name) => c.columns[c.axes.indexOf(name)]!)
  const outputColumns = to.map(() => new Int32Array(c.length))
  const point = new Map<string, number>()
  for (let e = 0; e < c.length; e++) {
    from.forEach((name, k) => {
      point.set(name, inputColumns[k]![e]!)
    })
    exprs.forEach((x, k) => {
      outputColumns[k]![e] = evaluate(x, point)
    })
  }
  const otherColumns = c.axes.flatMap((name, k) =>
    from.includes(name) ? [] : [{ name, column: c.columns[k]! }],
  )
  return {
    axes: [...otherColumns.map((k) => k.name), ...to],
    columns: [...otherColumns.map((k) => k.column), ...outputColumns],
    length: c.length,
  }
}

/** Maps the caller's coordinates to those of the kernel's present axes. */
export function toStoredAxes(c: Columns, reformats: readonly Reformat[], evaluate: Evaluate): Columns {
  return reformats.reduce(
    (current, r) =>
      appliesTo(current, r)
        ? translate(
            current,
            r.from.map((a) => a.name),
            instanceOf(r).order,
            instanceOf(r).map,
            evaluate,
          )
        : current,
    c,
  )
}

/** Maps coordinates back to the caller's; `keep` marks those within the tensor (padding is dropped). */
export function toCallerAxes(
  c: Columns,
  reformats: readonly Reformat[],
  evaluate: Evaluate,
  extentOf: (a: Axis) => number,
): { readonly columns: Columns; readonly keep: Uint8Array } {
  const keep = new Uint8Array(c.length).fill(1)
  let current = c
  for (const r of reformats.toReversed()) {
    if (!instanceOf(r).order.every((name) => current.axes.includes(name))) continue
    const names = r.from.map((a) => a.name)
    current = translate(current, instanceOf(r).order, names, instanceOf(r).inverse, evaluate)
    r.from.forEach((a) => {
      const extent = extentOf(a)
      const column = current.columns[current.axes.indexOf(a.name)]!
      for (let e = 0; e < current.length; e++) if (column[e]! < 0 || column[e]! >= extent) keep[e] = 0
    })
  }
  return { columns: current, keep }
}

/** A test if the caller's structure contains a coordinate: some source over all of these axes does. */
export function membership(
  axes: readonly string[],
  sources: readonly Source[],
): (coords: readonly number[]) => boolean {
  const seen = new Set<string>()
  for (const s of sources) {
    if (!axes.every((a) => s.axes.includes(a))) continue
    const columns = axes.map((a) => s.columns[s.axes.indexOf(a)]!)
    for (let e = 0; e < s.length; e++) seen.add(columns.map((c) => c[e]!).join())
  }
  return (coords) => {
    invariant(coords.length === axes.length, 'one coordinate an axis')
    return seen.has(coords.join())
  }
}
