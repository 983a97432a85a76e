/** Calibration workload: the small kernels of `data/calibration/`, on data that differ in row lengths, locality and size. */

import type { SptProgram } from '../../api/programs/program.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { packageText } from '../../io/package/package.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'

export interface MicroCase {
  readonly name: string
  readonly kernel: string
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
}

const KERNELS = 'data/calibration/kernels.spt'

/** @throws SptError `io/no-package` */
export function microKernels(): SptProgram {
  const text = packageText(KERNELS)
  if (text !== null) return parseProgram(text, KERNELS)
  return failWith('io/no-package', `'${KERNELS}' is a file of the package, which cannot be found from here`, {
    hint: 'where a bundler has moved the code, calibrate with the installed package',
  })
}

/** Factor of sizes for a device: a CPU is saturated by less data than a GPU. */
const SCALE: Readonly<Record<DeviceKind, number>> = { cpu: 1, webgpu: 8, cuda: 16 }
const ELEMENTS = 24_000

interface Rows {
  readonly about: string
  readonly length: (row: number, random: Random) => number
  /** Mean number of elements per row, which determines the number of rows. */
  readonly mean: number
  readonly columnsPerRow: number
  /** Bandwidth of the matrix as a fraction of the columns. */
  readonly reach: number
}

const ROWS: readonly Rows[] = [
  { about: 'short rows', length: () => 3, mean: 3, columnsPerRow: 1, reach: 1 },
  { about: 'long rows', length: () => 120, mean: 120, columnsPerRow: 8, reach: 1 },
  {
    about: 'uneven rows',
    length: (_, r) => Math.min(400, Math.floor(3 / Math.max(0.004, r.next()))),
    mean: 16,
    columnsPerRow: 1,
    reach: 1,
  },
  { about: 'near the diagonal', length: () => 16, mean: 16, columnsPerRow: 1, reach: 0.02 },
  { about: 'many columns', length: () => 12, mean: 12, columnsPerRow: 32, reach: 1 },
]

/** A banded matrix: the elements of a row are distributed evenly over the band, with random offsets. */
function matrix(
  { length, mean, columnsPerRow: wide, reach }: Rows,
  elements: number,
  random: Random,
): Tensor {
  const rows = Math.max(16, Math.round(elements / mean))
  const columns = Math.max(4 * mean, Math.round(rows * wide))
  const band = Math.min(columns, Math.max(4 * mean, Math.round(columns * reach)))
  const lengths = Int32Array.from({ length: rows }, (_, i) => Math.min(length(i, random), band >> 1))
  const count = lengths.reduce((a, b) => a + b, 0)
  const [is, js] = [new Int32Array(count), new Int32Array(count)]
  let at = 0
  for (let i = 0; i < rows; i++) {
    const from = Math.max(0, Math.min(columns - band, Math.round((i / rows) * columns - band / 2)))
    const part = Math.floor(band / lengths[i]!)
    for (let k = 0; k < lengths[i]!; k++, at++) {
      is[at] = i
      js[at] = from + Math.floor((k * band) / lengths[i]!) + random.below(part)
    }
  }
  const values = new Float32Array(count).fill(0.5)
  return { kind: 'coords', shape: [rows, columns], coords: [is, js], values, dtype: 'f32' }
}

/** Values do not affect the time. */
const filled = (...shape: number[]): Tensor => ({
  kind: 'dense',
  shape,
  values: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.5),
  dtype: 'f32',
})

/** The cases for a kind of device; the same in every process. */
export function microCases(kind: DeviceKind): readonly MicroCase[] {
  const scale = SCALE[kind]
  const random = new Random(14)
  const dense = (kernel: string, n: number, inputs: readonly string[]): MicroCase => ({
    name: `${kernel}, ${n} elements`,
    kernel,
    tensors: Object.fromEntries(inputs.map((name) => [name, filled(n)])),
    params: { n },
  })
  const matrices = ROWS.map((r) => ({ about: r.about, A: matrix(r, ELEMENTS * scale, random) }))
  /** The dense operands by name: whether they have the rows or the columns of the matrix, and vectors of `d`. */
  const sparse = (kernel: string, operands: Readonly<Record<string, 0 | 1>>, d?: number): MicroCase[] =>
    matrices.map(({ about, A }) => ({
      name: `${kernel}${d === undefined ? '' : ` of ${d}`}, ${about}`,
      kernel,
      tensors: {
        A,
        ...Object.fromEntries(
          Object.entries(operands).map(([name, axis]) => [
            name,
            filled(A.shape[axis]!, ...(d === undefined ? [] : [d])),
          ]),
        ),
      },
      params: { m: A.shape[0]!, n: A.shape[1]!, ...(d !== undefined && { d }) },
    }))
  return [
    ...[1, 8, 64, 256].map((k) => dense('streams', k * 16384 * Math.min(scale, 4), ['X', 'Y'])),
    dense('polynomials', 65536 * scale, ['X']),
    dense('exponentials', 32768 * scale, ['X']),
    ...sparse('row_totals', {}),
    ...sparse('row_gathers', { x: 1 }),
    ...sparse('row_combinations', { B: 1 }, 8),
    ...sparse('row_combinations', { B: 1 }, 32),
    ...sparse('inner_products', { X: 0, Y: 1 }, 16),
    ...sparse('row_shares', {}),
  ]
}
