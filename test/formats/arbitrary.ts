/** Random axis forests with coordinates. */
import fc from 'fast-check'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { int } from '../../src/ir/expressions/expr.ts'

interface Flags {
  readonly ordered?: boolean
  readonly unique?: boolean
  /** Of packed indices. */
  readonly bits?: number | undefined
}

export const denseFixed = (name: string, extent = 0): StoredAxis => ({
  kind: 'dense_fixed',
  parent: null,
  name,
  extent: int(extent),
})
export const denseUnder = (name: string, parent: string): StoredAxis => ({
  kind: 'dense_fixed',
  parent,
  name,
  extent: int(0),
})
export const bitmap = (name: string, parent: string): StoredAxis => ({
  kind: 'bitmap',
  parent,
  name,
  extent: int(0),
})
export const run = (name: string, parent: string): StoredAxis => ({
  kind: 'run',
  parent,
  name,
  extent: int(0),
})
/** A list of elements: the root and the one coordinate under each of its positions. */
export const elementList = (root: string, child: string): readonly StoredAxis[] => {
  const flags = { name: root, extent: int(0), ordered: true }
  return [
    { kind: 'sparse_variable', parent: null, ...flags, unique: false, perChild: true },
    { kind: 'singleton', parent: root, ...flags, name: child, unique: true, compact: true, width: int(1) },
  ]
}
export const denseVariable = (name: string, parent: string): StoredAxis => ({
  kind: 'dense_variable',
  name,
  parent,
  extent: int(0),
})
export const sparseVariable = (name: string, parent: string | null, flags: Flags = {}): StoredAxis => ({
  kind: 'sparse_variable',
  name,
  parent,
  extent: int(0),
  ordered: flags.ordered ?? true,
  unique: flags.unique ?? true,
  ...(flags.bits && { packed: int(flags.bits) }),
})
export const sparseFixed = (name: string, parent: string, flags: Flags = {}): StoredAxis => ({
  kind: 'sparse_fixed',
  name,
  parent,
  extent: int(0),
  width: int(0),
  ordered: flags.ordered ?? true,
  unique: flags.unique ?? true,
  ...(flags.bits && { packed: int(flags.bits) }),
})

export interface Case {
  readonly axes: readonly StoredAxis[]
  readonly extents: ReadonlyMap<string, number>
  readonly shape: readonly number[]
  readonly coords: readonly Int32Array[]
  /** Positive integers. */
  readonly values: Float64Array
  readonly apart: boolean
  /** Of some fixed axes under a nonunique one. */
  readonly widths: ReadonlyMap<string, number>
}

const LEVEL = ['dense_variable', 'run', 'sparse_fixed', 'sparse_variable', 'dense_fixed', 'bitmap'] as const
const flags = fc.record({
  ordered: fc.boolean(),
  unique: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  // Extents are up to 6.
  bits: fc.constantFrom(undefined, undefined, undefined, 4, 8, 16),
})

const chain = (t: number): fc.Arbitrary<StoredAxis[]> =>
  fc
    .tuple(
      fc.boolean(),
      fc.array(fc.constantFrom(...LEVEL), { maxLength: 3 }),
      fc.array(flags, { minLength: 4, maxLength: 4 }),
    )
    .map(([dense, kinds, f]) => {
      const axes: StoredAxis[] = [dense ? denseFixed(`t${t}a0`) : sparseVariable(`t${t}a0`, null, f[0])]
      kinds.forEach((kind, k) => {
        const name = `t${t}a${k + 1}`
        const parent = `t${t}a${k}`
        axes.push(
          kind === 'dense_variable'
            ? denseVariable(name, parent)
            : kind === 'run'
              ? run(name, parent)
              : kind === 'sparse_fixed'
                ? sparseFixed(name, parent, f[k + 1])
                : kind === 'dense_fixed'
                  ? denseUnder(name, parent)
                  : kind === 'bitmap'
                    ? bitmap(name, parent)
                    : sparseVariable(name, parent, f[k + 1]),
        )
      })
      return axes
    })

/** 1 to 3 trees of depth 1 to 4, interleaved in the buffer; extents 0 to 6; up to 40 entries, duplicates likely. */
export const cases: fc.Arbitrary<Case> = fc
  .integer({ min: 1, max: 3 })
  .chain((n) => fc.tuple(...Array.from({ length: n }, (_, t) => chain(t))))
  .chain((trees) => {
    const total = trees.reduce((sum, t) => sum + t.length, 0)
    return fc.tuple(
      fc.constant(trees),
      fc.array(fc.nat(), { minLength: total, maxLength: total }),
      fc.array(fc.constantFrom(0, 1, 1, 2, 3, 4, 5, 6), { minLength: total, maxLength: total }),
      fc.array(
        fc.tuple(fc.array(fc.nat(), { minLength: total, maxLength: total }), fc.integer({ min: 1, max: 9 })),
        {
          maxLength: 40,
        },
      ),
      fc.constantFrom(1, 3, 1000),
      fc.array(fc.constantFrom(undefined, 1, 2, 3), { minLength: total, maxLength: total }),
    )
  })
  .map(([trees, picks, sizes, raw, spread, widths]) => {
    const queues = trees.map((t) => [...t])
    const axes: StoredAxis[] = []
    for (const pick of picks) {
      const open = queues.filter((q) => q.length > 0)
      axes.push(open[pick % open.length]!.shift()!)
    }
    const entries = sizes.includes(0) ? [] : raw
    const repeats = new Set(axes.filter((a) => 'unique' in a && !a.unique).map((a) => a.name))
    return {
      axes,
      extents: new Map(axes.map((a, k) => [a.name, sizes[k]!])),
      shape: sizes,
      coords: axes.map((_, k) => Int32Array.from(entries, ([c]) => Math.floor(c[k]! / spread) % sizes[k]!)),
      values: Float64Array.from(entries, ([, v]) => v),
      widths: new Map(
        axes.flatMap((a, k) => {
          const w = widths[k]
          return w && a.kind === 'sparse_fixed' && repeats.has(a.parent) ? [[a.name, w] as const] : []
        }),
      ),
      apart: trees.length === 1 && axes.some((a) => 'unique' in a && !a.unique),
    }
  })

/** Entries as sorted lines; equal coordinates added up unless `apart`. */
export function lines(coords: readonly Int32Array[], values: ArrayLike<number>, apart: boolean): string[] {
  const rows = Array.from(values, (v, e) => ({ at: coords.map((c) => c[e]!), v }))
  rows.sort((a, b) => {
    for (let k = 0; k < a.at.length; k++) if (a.at[k] !== b.at[k]) return a.at[k]! - b.at[k]!
    return a.v - b.v
  })
  if (apart) return rows.map((r) => `${r.at.join(',')}=${r.v}`)
  const sums = new Map<string, number>()
  for (const r of rows) sums.set(r.at.join(','), (sums.get(r.at.join(',')) ?? 0) + r.v)
  return [...sums].map(([at, v]) => `${at}=${v}`)
}
