/** The formats of the package with arguments, and matrices that each of them can hold. */
import fc from 'fast-check'
import { instantiate } from '../../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { variable } from '../../src/ir/expressions/expr.ts'
import type { AnyFormat, Instance } from '../../src/ir/formats/format.ts'
import { load } from '../../src/node.ts'
import type { StoredParts } from '../../src/storage/entries/stored-parts.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e']

export interface Standard {
  readonly name: string
  readonly args: readonly (number | string)[]
  /** Dimensions; 2 if left out. */
  readonly order?: number
  readonly given?: (shape: readonly number[]) => Partial<FormatOperands>
  readonly holds?: (i: number, j: number) => boolean
  /** At most n of m neighbours in a row. */
  readonly few?: readonly [n: number, m: number]
}

/** Boundaries of segments of 1, 2, 3, 1, 2, 3 … up to n. */
const cuts = (n: number, first = 1): Int32Array => {
  const out = [0]
  for (let at = 0, k = first; at < n; k = (k % 3) + 1) {
    at = Math.min(n, at + k)
    out.push(at)
  }
  return Int32Array.from(out)
}

export const STANDARD: readonly Standard[] = [
  { name: 'csr', args: [] },
  { name: 'csc', args: [] },
  { name: 'coo', args: [] },
  { name: 'dcsr', args: [] },
  { name: 'dcsc', args: [] },
  { name: 'by_length', args: [] },
  { name: 'ragged', args: [] },
  { name: 'ell', args: [] },
  { name: 'ell', args: [40] },
  { name: 'ell_at', args: [0] },
  { name: 'sell', args: [4, 8] },
  { name: 'sell', args: [3, 1] },
  { name: 'rows_ell', args: [1] },
  { name: 'rows_ell', args: [4] },
  { name: 'pieces_ell', args: [3] },
  { name: 'gcoo', args: [2] },
  { name: 'nm', args: [2, 4], few: [2, 4] },
  { name: 'nm_packed', args: [2, 4], few: [2, 4] },
  { name: 'csr_panels', args: [7] },
  { name: 'bsr', args: [1] },
  { name: 'bsr', args: [4] },
  { name: 'bsr_masked', args: [3] },
  { name: 'bsr_by_length', args: [4] },
  { name: 'bsr_groups_by_length', args: [4, 2] },
  { name: 'bsr_groups_by_length', args: [2, 3] },
  { name: 'dbsr', args: [3] },
  {
    name: 'vbr',
    args: ['rows', 'cols'],
    given: ([m, n]) => ({
      lists: new Map([
        ['rows', cuts(m!)],
        ['cols', cuts(n!, 2)],
      ]),
    }),
  },
  { name: 'sr_bcrs', args: [4, 2] },
  { name: 'sr_bcrs', args: [8, 16] },
  { name: 'panels', args: [2, 3] },
  { name: 'panels', args: [3, 1] },
  { name: 'sorted_panels', args: [2, 3] },
  { name: 'panels_masked', args: [2, 3] },
  { name: 'vnm', args: [2, 8], few: [1, 4] },
  { name: 'vnm_packed', args: [2, 8], few: [1, 4] },
  { name: 'tvw', args: [3, 4], holds: (i) => i < 2 },
  { name: 'strips', args: [2, 2] },
  { name: 'strip_pieces', args: [2, 3, 2] },
  { name: 'bitmap_blocks', args: [] },
  { name: 'banded', args: [] },
  { name: 'dia', args: [] },
  { name: 'band', args: [1, 2], holds: (i, j) => i - j <= 1 && j - i <= 2 },
  { name: 'strided', args: [3], holds: (i, j) => (i - j) % 3 === 0 },
  { name: 'hyb', args: [1, 0] },
  { name: 'hyb', args: [2, 2] },
  { name: 'hyb', args: [3, 1] },
  { name: 'hyb_pieces', args: [2, 2] },
  { name: 'rows_by_length', args: [2] },
  { name: 'strips_rest', args: [2, 3, 2, 2] },
  { name: 'column_ranges', args: [3] },
  { name: 'column_ranges_by_length', args: [2] },
  { name: 'dense_blocks', args: [2, 0.75] },
  { name: 'band_rest', args: [1, 1] },
  { name: 'diagonal_rest', args: [] },
  { name: 'top_rest', args: [2] },
  { name: 'strided_rest', args: [2] },
  {
    name: 'masked_rest',
    args: ['mask'],
    given: () => ({ sets: new Map([['mask', [Int32Array.of(0, 1, 2, 3), Int32Array.of(0, 1, 0, 2)]]]) }),
  },
  { name: 'csf', args: [] },
  { name: 'csf', args: [], order: 3 },
  { name: 'csf', args: [], order: 4 },
  { name: 'csf', args: [], order: 5 },
  { name: 'coo_n', args: [] },
  { name: 'coo_n', args: [], order: 3 },
  { name: 'coo_n', args: [], order: 5 },
  { name: 'blocks_n', args: [2] },
  { name: 'blocks_n', args: [3], order: 3 },
  { name: 'relation_rows', args: [2], order: 3 },
  { name: 'group_tiles', args: [2], order: 3 },
  { name: 'row_groups', args: [2], order: 3 },
  { name: 'row_tiles', args: [4], order: 3 },
  { name: 'relation_buckets', args: [2], order: 3 },
]

export const title = (s: Standard): string => `${s.name}(${s.args.join(', ')})`

export async function packageFormats(): Promise<ReadonlyMap<string, AnyFormat>> {
  const formats = new Map<string, AnyFormat>()
  for (const file of ['formats', 'formats-composed', 'formats-tensors'])
    for (const [name, f] of (await load(`kernels/${file}.spt`)).formats) formats.set(name, f)
  return formats
}

/** Rows, each with its sorted fibres below: what dimensions look like before a format is chosen. */
const overOf = (order: number): readonly StoredAxis[] =>
  Array.from({ length: order }, (_, k): StoredAxis => {
    const base = { name: NAMES[k]!, extent: variable(`n${k}`) }
    if (k === 0) return { ...base, kind: 'dense_fixed', parent: null }
    return { ...base, kind: 'sparse_variable', parent: NAMES[k - 1]!, ordered: true, unique: true }
  })

/** `order`: of the tensors, where the format is for any. */
export const instanceOf = (format: AnyFormat, args: readonly (number | string)[], order = 2): Instance =>
  instantiate({ format, args }, overOf(format.kind === 'family' ? order : format.over.length), (x, label) =>
    label === '' ? x : `${x}_${label}`,
  )

export const givenFor = (shape: readonly number[], more: Partial<FormatOperands> = {}): FormatOperands => ({
  sizes: new Map(shape.map((n, k) => [`n${k}`, n])),
  extents: new Map(shape.map((n, k) => [NAMES[k]!, n])),
  lists: new Map(),
  sets: new Map(),
  ...more,
})

/** Positive integers at different coordinates, in order or not. */
export const tensorFor = (s: Standard): fc.Arbitrary<CoordTensor> => {
  const order = s.order ?? 2
  const most = order === 2 ? 40 : 7
  return fc
    .tuple(
      fc.array(fc.integer({ min: order === 2 ? 0 : 1, max: most }), { minLength: order, maxLength: order }),
      fc.array(
        fc.tuple(
          fc.array(fc.nat(1000), { minLength: order, maxLength: order }),
          fc.integer({ min: 1, max: 9 }),
        ),
        { maxLength: 150 },
      ),
      fc.constantFrom(1, 2, 7),
      fc.boolean(),
    )
    .map(([shape, raw, skew, sorted]) => {
      const seen = new Set<string>()
      const blocks = new Map<string, number>()
      const entries = shape.includes(0)
        ? []
        : raw
            .map(([at, x]) => ({ at: at.map((c, k) => Math.floor(c / (k === 0 ? skew : 1)) % shape[k]!), x }))
            .filter(({ at }) => {
              if (s.holds && !s.holds(at[0]!, at[1]!)) return false
              if (seen.has(at.join())) return false
              if (s.few) {
                const block = `${at[0]} ${Math.floor(at[1]! / s.few[1])}`
                const n = (blocks.get(block) ?? 0) + 1
                if (n > s.few[0]) return false
                blocks.set(block, n)
              }
              seen.add(at.join())
              return true
            })
      if (sorted) entries.sort((a, b) => a.at.reduce((d, c, k) => d || c - b.at[k]!, 0))
      return {
        kind: 'coords',
        shape,
        coords: shape.map((_, k) => Int32Array.from(entries, (e) => e.at[k]!)),
        values: Float32Array.from(entries, (e) => e.x),
        dtype: 'f32',
      }
    })
}

/** Everything that a tensor in a format consists of. */
export const arraysOf = (t: StoredParts) =>
  t.parts.map((p) => ({
    label: p.part.label,
    values: p.values,
    tables: Object.fromEntries(p.tables),
    measured: Object.fromEntries(p.measured),
    levels: Object.fromEntries([...p.storage.levels].map(([name, l]) => [name, { ...l, axis: null }])),
    size: p.storage.size,
  }))
