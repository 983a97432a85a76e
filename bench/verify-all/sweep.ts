/** Every standard format of matrices: its arguments, the matrices that it holds, and how much it stores. */

import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { coords, type Kernel, load } from '../../src/node.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import type { Feed } from './feeds.ts'

/** Kernels that are run on all formats, with the default schedule: one reads a matrix, one writes one. */
export const SWEPT = ['spmm', 'spmv', 'sddmm']

/** A kernel in a format. */
export interface Use {
  /** As a schedule writes it. */
  readonly name: string
  readonly kernel: (plain: Kernel) => Kernel
  /** What of the data it is run on. */
  readonly adapt: (feed: Feed) => Feed
}

interface Choice {
  readonly args?: readonly (readonly (number | string)[])[]
  /** Formats that hold some elements only are given those. */
  readonly holds?: (i: number, j: number, before: number) => boolean
  /** What it takes from the data beside the matrix. */
  readonly data?: (A: CoordTensor) => Feed['inputs']['tensors']
}

/** Boundaries of segments of 1, 2, 3, 4, 1, … */
function boundaries(extent: number): Int32Array {
  const out = [0]
  for (let k = 0; out.at(-1)! < extent; k++) out.push(Math.min(extent, out.at(-1)! + (k % 4) + 1))
  return Int32Array.from(out)
}

const CHOICES: Readonly<Record<string, Choice>> = {
  bsr: { args: [[4], [7]] },
  bsr_masked: { args: [[4]] },
  bsr_by_length: { args: [[4]] },
  bsr_groups_by_length: { args: [[4, 2]] },
  dbsr: { args: [[4]] },
  sell: { args: [[8, 64]] },
  ell_at: { args: [[0]] },
  rows_by_length: { args: [[32]] },
  strips_rest: { args: [[2, 16, 16, 4]] },
  column_ranges: { args: [[3]] },
  column_ranges_by_length: { args: [[4]] },
  rows_ell: { args: [[1], [4]] },
  pieces_ell: { args: [[4]] },
  gcoo: { args: [[4]] },
  sr_bcrs: { args: [[4, 8]] },
  strips: { args: [[2, 4]] },
  strip_pieces: { args: [[2, 64, 4]] },
  nm: { args: [[2, 4]], holds: (_i, _j, before) => before < 2 },
  nm_packed: { args: [[2, 4]], holds: (_i, _j, before) => before < 2 },
  panels: { args: [[4, 8]] },
  sorted_panels: { args: [[4, 8]] },
  panels_masked: { args: [[4, 8]] },
  // Four of eight columns, in each row two of them.
  vnm: { args: [[4, 8]], holds: (_i, j, before) => j % 8 < 4 && before < 2 },
  vnm_packed: { args: [[4, 8]], holds: (_i, j, before) => j % 8 < 4 && before < 2 },
  // Lists of two rows hold any two of them.
  tvw: { args: [[4, 2]] },
  band: { args: [[8, 5]], holds: (i, j) => i - j <= 8 && j - i <= 5 },
  strided: { args: [[3]], holds: (i, j) => (i - j) % 3 === 0 },
  vbr: {
    args: [['rows', 'cols']],
    data: ({ shape }) => ({ rows: boundaries(shape[0]!), cols: boundaries(shape[1]!) }),
  },
  hyb: {
    args: [
      [1, 3],
      [4, 5],
    ],
  },
  hyb_pieces: {
    args: [
      [1, 3],
      [3, 2],
    ],
  },
  dense_blocks: { args: [[4, 0.5]] },
  band_rest: { args: [[8, 5]] },
  top_rest: { args: [[3]] },
  strided_rest: { args: [[3]] },
  masked_rest: { args: [['mask']], data: (A) => ({ mask: keep(A, (i, j) => (i + j) % 2 === 0, false) }) },
}

/** All uses of the formats of matrices in a folder. */
export async function usesIn(folder: string): Promise<Use[]> {
  const programs = await Promise.all(
    ['formats.spt', 'formats-composed.spt'].map((file) => load(`${folder}/${file}`)),
  )
  // A program has the formats that it imports as well.
  return [...new Map(programs.flatMap((p) => [...p.formats]))].flatMap(([name, format]) =>
    (CHOICES[name]?.args ?? [[]]).map((args) => useOf(name, format, args)),
  )
}

function useOf(name: string, format: AnyFormat, args: readonly (number | string)[]): Use {
  const { holds, data } = CHOICES[name] ?? {}
  return {
    name: `as ${name}${args.length > 0 ? `(${args.join(', ')})` : ''}`,
    kernel: (plain) => plain.as('A', format, ...args),
    adapt: (feed) => {
      if (!holds && !data) return feed
      const A = feed.inputs.tensors!.A as CoordTensor
      const held = holds ? keep(A, holds, true) : A
      return {
        ...feed,
        inputs: { ...feed.inputs, tensors: { ...feed.inputs.tensors, A: held, ...data?.(A) } },
      }
    },
  }
}

/** Elements that pass; `before` counts those of a row's same four columns that did. */
function keep(A: CoordTensor, passes: NonNullable<Choice['holds']>, withValues: boolean): CoordTensor {
  const [rows, cols] = A.coords as readonly Int32Array[] as [Int32Array, Int32Array]
  const n = A.shape[1]!
  const groups = new Map<number, number>()
  const kept = Array.from({ length: rows.length }, (_, e) => e).filter((e) => {
    const group = rows[e]! * n + Math.floor(cols[e]! / 4)
    const before = groups.get(group) ?? 0
    if (!passes(rows[e]!, cols[e]!, before)) return false
    groups.set(group, before + 1)
    return true
  })
  const pick = (x: Int32Array): Int32Array => Int32Array.from(kept, (e) => x[e]!)
  const values = withValues && A.values ? Float32Array.from(kept, (e) => Number(A.values![e]!)) : null
  return coords(A.shape, [pick(rows), pick(cols)], values)
}

/** Elements that a matrix takes, for the formats where that can be many more than it has. */
export function storedBy(step: string, A: CoordTensor): number {
  const [, name, list] = /^\w+ as (\w+)(?:\((.*)\))?$/.exec(step) ?? []
  const args = (list ?? '').split(',').map(Number)
  const [m, n] = A.shape as [number, number]
  const [rows, cols] = A.coords as readonly Int32Array[] as [Int32Array, Int32Array]
  const distinct = (key: (e: number) => number): number =>
    new Set(Array.from({ length: rows.length }, (_, e) => key(e))).size
  switch (name) {
    case 'ell': {
      const lengths = new Int32Array(m)
      for (let e = 0; e < rows.length; e++) lengths[rows[e]!]!++
      return m * lengths.reduce((a, b) => Math.max(a, b), 0)
    }
    case 'ragged': {
      const ends = new Int32Array(m)
      for (let e = 0; e < rows.length; e++) ends[rows[e]!] = Math.max(ends[rows[e]!]!, cols[e]! + 1)
      return ends.reduce((a, b) => a + b, 0)
    }
    case 'dia':
      return m * distinct((e) => cols[e]! - rows[e]! + m)
    case 'bsr':
    case 'bsr_masked':
    case 'bsr_by_length':
    case 'bsr_groups_by_length':
    case 'dbsr': {
      const b = args[0]!
      return (args[1] ?? 1) * b * b * distinct((e) => Math.floor(rows[e]! / b) * n + Math.floor(cols[e]! / b))
    }
    case 'panels':
    case 'sorted_panels':
    case 'panels_masked':
      return args[0]! * (rows.length + (args[1]! * m) / args[0]!)
    case 'vnm':
    case 'vnm_packed':
      return (2 * m * n) / args[1]!
    case 'nm':
    case 'nm_packed':
      return (m * n * args[0]!) / args[1]!
    default:
      return rows.length
  }
}
