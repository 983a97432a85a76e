/** Synthetic data for distillation: matrices of random sizes, densities, distributions of row lengths, and places of columns. */
import type { SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { coords } from '../../api/inputs/tensors.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { isDenseChain } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'

/** Sizes of the cases of a matrix, one of each list; vectors and tiles do not divide those of the last. */
const WIDTHS = [
  [4, 8, 16, 24, 32],
  [40, 48, 64, 96, 128],
  [160, 192, 256, 512, 640, 1024],
  [1, 3, 6, 10, 20, 33, 50, 77, 100, 130, 300],
]
const MATRICES = 48
const MOST_ELEMENTS = 150_000

/** Length of row `i`, given the mean length and a parameter in [0, 1). */
const LENGTHS: readonly ((i: number, rows: number, mean: number, p: number, random: Random) => number)[] = [
  (_i, _rows, mean) => mean,
  (_i, _rows, mean, _p, random) => 2 * mean * random.next(),
  (i, rows, mean, p) => mean * (1 - 0.9 * p) * (rows / (i + 1)) ** (0.9 * p),
  // The same lengths in any order.
  (_i, rows, mean, p, random) => mean * (1 - 0.9 * p) * (rows / (random.below(rows) + 1)) ** (0.9 * p),
  (i, rows, mean, p, random) => (i % Math.ceil(rows / (1 + 8 * p)) === 0 ? rows : 2 * mean * random.next()),
  (_i, _rows, mean, p, random) => (random.next() < p ? 0 : mean / (1 - p)),
]

/** Throws SptError `choose/open` if the kernel has no sparse matrix, or several. `fixed`: sizes that all data have. */
export function syntheticInputs(
  { name, axes, buffers, params }: Kernel1,
  fixed: Readonly<Record<string, number>>,
): readonly SelectionInputs[] {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const sparse = buffers.filter((b) => b.role === 'in' && b.axes.some((a) => !isDenseChain(byName, a)))
  const [of] = sparse
  if (sparse.length > 1 || (of && of.axes.length !== 2))
    failWith('choose/open', `no data are known for ${name}`, {
      expected: 'a kernel with one sparse matrix',
      hint: 'distil(kernel, device, { inputs: [{ tensors: { … }, params: { … } }, …] })',
    })
  const extents = (of?.axes ?? []).map((a) => {
    const axis = byName.get(a)!
    return 'extent' in axis ? axis.extent : undefined
  })
  const shape = extents.map((e) => (e?.kind === 'var' ? fixed[e.name] : undefined))
  const own = new Set(extents.flatMap((e) => (e ? [...freeVars(e)] : [])))
  const free = params.filter(
    (p) => p.kind === 'size' && !p.measured && !own.has(p.name) && !(p.name in fixed),
  )
  const random = new Random(1)
  return Array.from({ length: of ? MATRICES : 1 }, (_, k) => {
    const tensors = of ? { [of.name]: matrixOf(k, shape, random) } : {}
    return (free.length > 0 ? WIDTHS : [[1]]).map((widths) => ({
      tensors,
      params: {
        ...fixed,
        ...Object.fromEntries(free.map((p) => [p.name, widths[random.below(widths.length)]!])),
      },
    }))
  }).flat()
}

/** Reciprocal powers of the root of x⁵ = x + 1: multiples of them, without their integer parts, are evenly spread points. */
const SPREAD = [0.8566749, 0.7338918, 0.6287067, 0.5385973]

/** The matrix `k` of a sample. `shape`: the sizes that are given. */
function matrixOf(k: number, shape: readonly (number | undefined)[], random: Random) {
  const [a, b, p, d] = SPREAD.map((step) => (0.5 + (k + 1) * step) % 1) as [number, number, number, number]
  const between = (low: number, high: number, at: number): number => low * (high / low) ** at
  const rows = shape[0] ?? Math.round(between(64, 20_000, a))
  const columns = shape[1] ?? Math.ceil(rows * [1, 1, 1, 1 / 8, 8][Math.floor(5 * d)]!)
  const mean = Math.min(between(1, 256, b), MOST_ELEMENTS / rows, columns / 2)
  const [length, layout] = [LENGTHS[k % LENGTHS.length]!, random.below(5)]
  const [i, j]: [number[], number[]] = [[], []]
  for (let row = 0; row < rows; row++) {
    const own = Math.min(columns, Math.round(length(row, rows, mean, p, random)))
    const at = columnsOf(layout, row, rows, columns, own, random).sort()
    for (let c = 0; c < own; c++) {
      if (c > 0 && at[c] === at[c - 1]) continue
      i.push(row)
      j.push(at[c]!)
    }
  }
  return coords([rows, columns], [i, j], new Float32Array(i.length).fill(1))
}

/** Columns of a row: near the diagonal, anywhere, in equal distances, those of neighbouring rows, or few columns more often. */
function columnsOf(
  layout: number,
  row: number,
  rows: number,
  columns: number,
  count: number,
  random: Random,
): Int32Array {
  const out = new Int32Array(count)
  const start =
    layout === 0 ? Math.floor((row * columns) / rows) : layout === 3 ? (row >> 3) * 97 : random.below(columns)
  const step = layout === 0 ? 1 : Math.max(1, Math.floor(columns / Math.max(1, count)))
  for (let c = 0; c < count; c++)
    out[c] =
      layout === 1
        ? random.below(columns)
        : layout === 4
          ? Math.floor(columns * random.next() ** 3)
          : (start + c * step) % columns
  return out
}
