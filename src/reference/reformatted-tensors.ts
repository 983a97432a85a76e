/**
 * Kernels whose tensors were reformatted still take and give tensors in the caller's coordinates: inputs go
 * through the coordinate maps in the order the formats were applied, outputs through the inverses, backwards.
 */
import { invariant } from '../ast/diagnostic.ts'
import type { Axis } from '../ir/axis.ts'
import type { Expr } from '../ir/expr.ts'
import type { FormatInstance } from '../ir/format.ts'
import type { Kernel1, Reformat } from '../ir/stage1.ts'
import type { Source } from './axis-trees.ts'

export type Evaluate = (e: Expr, values: ReadonlyMap<string, number>) => number

/** Columns of coordinates by axis name. */
export interface Columns {
  readonly axes: readonly string[]
  readonly columns: readonly Int32Array[]
  readonly length: number
}

/**
 * Whether the caller's tensor goes through the maps. The parts of a composition, and formats that ask queries or
 * load tables, are bound as tensors of their own, over the axes they have then.
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

/** The formats that a buffer of the kernel went through since it was last bound part by part. */
export function translationsOf(kernel: Kernel1, buffer: string): readonly Reformat[] {
  const apart = kernel.reformats.findLastIndex(
    (r) => !isTranslated(r) && r.buffers.some((b) => b.parts.includes(buffer)),
  )
  return kernel.reformats.slice(apart + 1).filter((r) => isTranslated(r))
}

const single = (r: Reformat): FormatInstance => r.instance.parts[0]!.instance

const touches = (c: Columns, r: Reformat): boolean => r.from.every((a) => c.axes.includes(a.name))

function translate(
  c: Columns,
  from: readonly string[],
  to: readonly string[],
  exprs: readonly Expr[],
  evaluate: Evaluate,
): Columns {
  const mine = from.map((name) => c.columns[c.axes.indexOf(name)]!)
  const fresh = to.map(() => new Int32Array(c.length))
  const at = new Map<string, number>()
  for (let e = 0; e < c.length; e++) {
    from.forEach((name, k) => {
      at.set(name, mine[k]![e]!)
    })
    exprs.forEach((x, k) => {
      fresh[k]![e] = evaluate(x, at)
    })
  }
  const kept = c.axes.flatMap((name, k) => (from.includes(name) ? [] : [{ name, column: c.columns[k]! }]))
  return {
    axes: [...kept.map((k) => k.name), ...to],
    columns: [...kept.map((k) => k.column), ...fresh],
    length: c.length,
  }
}

/** The caller's coordinates → those of the kernel's present axes. */
export function forward(c: Columns, reformats: readonly Reformat[], evaluate: Evaluate): Columns {
  return reformats.reduce(
    (now, r) =>
      touches(now, r)
        ? translate(
            now,
            r.from.map((a) => a.name),
            single(r).order,
            single(r).map,
            evaluate,
          )
        : now,
    c,
  )
}

/** Back to the caller's coordinates; also the elements that the caller has (padding is dropped). */
export function backward(
  c: Columns,
  reformats: readonly Reformat[],
  evaluate: Evaluate,
  extentOf: (a: Axis) => number,
): { readonly columns: Columns; readonly keep: Uint8Array } {
  const keep = new Uint8Array(c.length).fill(1)
  let now = c
  for (const r of reformats.toReversed()) {
    if (!single(r).order.every((name) => now.axes.includes(name))) continue
    const names = r.from.map((a) => a.name)
    now = translate(now, single(r).order, names, single(r).inverse, evaluate)
    r.from.forEach((a) => {
      const extent = extentOf(a)
      const column = now.columns[now.axes.indexOf(a.name)]!
      for (let e = 0; e < now.length; e++) if (column[e]! < 0 || column[e]! >= extent) keep[e] = 0
    })
  }
  return { columns: now, keep }
}

/** Whether the caller's structure holds a coordinate: that of some source over all of these axes. */
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
