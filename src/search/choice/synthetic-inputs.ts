/** Synthetic data for distillation: matrices of random sizes, densities, distributions of row lengths, and places of columns. */
import type { SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { coords } from '../../api/inputs/tensors.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { isDenseChain } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'

const WIDTHS = [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 640, 1024]
/** Sizes of one case in four, which vectors and tiles do not divide. */
const UNEVEN = [1, 3, 6, 10, 20, 33, 50, 100, 130, 300]
const MATRICES = 240
/** Cases for each matrix, with other sizes. */
const CASES = 3
const MOST_ELEMENTS = 200_000

/** Length of row `i`, given the mean length and a parameter in [0, 1). */
const LENGTHS: readonly ((i: number, rows: number, mean: number, p: number, random: Random) => number)[] = [
  (_i, _rows, mean) => mean,
  (_i, _rows, mean, _p, random) => 2 * mean * random.next(),
  (i, rows, mean, p) => mean * (1 - 0.9 * p) * (rows / (i + 1)) ** (0.9 * p),
  (i, rows, mean, p, random) => (i % Math.ceil(rows / (1 + 8 * p)) === 0 ? rows : 2 * mean * random.next()),
  (_i, _rows, mean, p, random) => (random.next() < p ? 0 : mean / (1 - p)),
]

/** Throws SptError `choose/open` if the kernel has no sparse matrix, or several. */
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
  const extents = (of?.axes ?? []).flatMap((a) => {
    const axis = byName.get(a)!
    return 'extent' in axis ? [...freeVars(axis.extent)] : []
  })
  const free = params.filter(
    (p) => p.kind === 'size' && !p.measured && !extents.includes(p.name) && !(p.name in fixed),
  )
  const random = new Random(1)
  return Array.from({ length: of ? MATRICES : CASES }, (_, k) => {
    const tensors = of ? { [of.name]: matrixOf(k, random) } : {}
    const sizes = () =>
      free.map((p) => {
        const from = random.below(4) === 0 ? UNEVEN : WIDTHS
        return [p.name, from[random.below(from.length)]!] as const
      })
    return Array.from({ length: free.length > 0 ? CASES : 1 }, () => ({
      tensors,
      params: { ...fixed, ...Object.fromEntries(sizes()) },
    }))
  }).flat()
}

/** The matrix `k` of a sample. */
function matrixOf(k: number, random: Random) {
  const between = (low: number, high: number): number => low * (high / low) ** random.next()
  const rows = Math.round(between(64, 20_000))
  const columns = Math.ceil(rows * [1, 1, 1, 1 / 8, 8][random.below(5)]!)
  const mean = Math.min(between(1, 128), MOST_ELEMENTS / rows, columns / 2)
  const [length, layout, p] = [LENGTHS[k % LENGTHS.length]!, random.below(4), random.next()]
  const [i, j]: [number[], number[]] = [[], []]
  for (let row = 0; row < rows; row++) {
    const own = Math.min(columns, Math.round(length(row, rows, mean, p, random)))
    // Near the diagonal, anywhere, in equal distances, or those of neighbouring rows.
    const start =
      layout === 0
        ? Math.floor((row * columns) / rows)
        : layout === 3
          ? (row >> 3) * 97
          : random.below(columns)
    const step = layout === 0 ? 1 : Math.max(1, Math.floor(columns / Math.max(1, own)))
    const at = Array.from({ length: own }, (_, c) =>
      layout === 1 ? random.below(columns) : (start + c * step) % columns,
    )
    for (const column of [...new Set(at)].sort((a, b) => a - b)) {
      i.push(row)
      j.push(column)
    }
  }
  return coords([rows, columns], [i, j], new Float32Array(i.length).fill(1))
}
