/** Matrices with what formats take next to them. */
import fc from 'fast-check'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import type { Built, Device, Kernel, SptProgram } from '../../src/node.ts'
import { coords, dense } from '../../src/node.ts'
import type { CHOICES } from './programs.ts'

export type Choice = (typeof CHOICES)[number]

export interface Sample {
  readonly m: number
  readonly n: number
  readonly d: number
  readonly rows: Int32Array
  readonly cols: Int32Array
  /** Whole numbers, never 0. */
  readonly values: Float32Array
  /** Boundaries of segments. */
  readonly rowList: Int32Array
  readonly colList: Int32Array
  /** Entries that the set holds, and one coordinate that may be no entry. */
  readonly mask: readonly number[]
}

const whole = fc.integer({ min: -4, max: 4 }).map((x) => (x === 0 ? 5 : x))

const boundaries = (n: number): fc.Arbitrary<Int32Array> =>
  fc.array(fc.nat(n), { maxLength: 4 }).map((xs) => Int32Array.from([0, ...xs.sort((a, b) => a - b), n]))

/** Empty, tall, wide; rows of all lengths; entries in any order, some of them twice. */
export const samples: fc.Arbitrary<Sample> = fc
  .tuple(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 0, max: 11 }), fc.integer({ min: 0, max: 3 }))
  .chain(([m, n, d]) => {
    const entry = fc.tuple(fc.nat(Math.max(0, m - 1)), fc.nat(Math.max(0, n - 1)), whole)
    const most = m * n === 0 ? 0 : m * n
    return fc
      .record({
        entries: fc.array(entry, { maxLength: Math.min(most, 40), size: 'max' }),
        rowList: boundaries(m),
        colList: boundaries(n),
        mask: fc.array(fc.nat(50), { maxLength: 8 }),
      })
      .map(({ entries, rowList, colList, mask }) => ({
        m,
        n,
        d,
        rows: Int32Array.from(entries, (e) => e[0]),
        cols: Int32Array.from(entries, (e) => e[1]),
        values: Float32Array.from(entries, (e) => e[2]),
        rowList,
        colList,
        mask: mask.filter((e) => e < entries.length),
      }))
  })

export const matrix = (s: Sample, values: Float32Array | null = s.values) =>
  coords([s.m, s.n], [s.rows, s.cols], values)

/** Small whole numbers that differ from place to place. */
export const numbers = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, e) => ((e * 7) % 11) - 5)

/** What a kernel of `programs.ts` is bound to; `V` has every other entry of `A`, backwards. */
export function inputs(kernel: string, choice: Choice, s: Sample): RunInputs {
  const { m, n, d } = s
  const half = s.rows
    .map((_, e) => e)
    .filter((e) => e % 2 === 0)
    .toReversed()
  const pick = (x: Int32Array): Int32Array => Int32Array.from(half, (e) => x[e]!)
  return {
    tensors: {
      A: matrix(s),
      ...(kernel === 'multiply' ? { B: dense([n, d], numbers(n * d)) } : {}),
      ...(kernel === 'sample'
        ? {
            V: coords(
              [m, n],
              [pick(s.rows), pick(s.cols)],
              Float32Array.from(half, (e) => s.values[e]! + 1),
            ),
            X: dense([m, d], numbers(m * d)),
            Y: dense([n, d], numbers(n * d)),
          }
        : {}),
      ...(choice.includes('rows') ? { rows: s.rowList, cols: s.colList } : {}),
      ...(choice.includes('mask')
        ? { mask: coords([m, n], [s.mask.map((e) => s.rows[e]!), s.mask.map((e) => s.cols[e]!)]) }
        : {}),
    },
  }
}

export const apply = (kernel: Kernel, choice: Choice): Kernel => {
  const [format, ...args] = choice
  return kernel.as('A', format, ...args)
}

export interface Ready {
  readonly kernel: string
  readonly choice: Choice
  readonly compiled: Built
}

/** Every kernel in every format, compiled once. */
export async function compileAll(
  program: SptProgram,
  choices: readonly Choice[],
  device: Device,
): Promise<Ready[]> {
  const out: Ready[] = []
  for (const kernel of program.kernels)
    for (const choice of choices)
      out.push({ kernel, choice, compiled: await apply(program.kernel(kernel), choice).build(device) })
  return out
}
