/** What a case is, and what processes tell each other of it. */
import type { DecisionValue } from '../../src/search/types.ts'
import type { Measured } from '../model/records.ts'

/** A kernel of the package on a matrix. */
export interface SearchCase {
  readonly suite: string
  /** A file of the data folder, or a member of a family (`road:40000:1`). */
  readonly data: string
  readonly width: number
}

/** A line of what was measured: as `collect` writes them, with what was known of the kernel before. */
export interface Tried extends Measured {
  /** Which of a case's kernels it is. */
  readonly of: 'listed' | 'drawn' | 'likely' | 'chosen' | 'library'
  /** Of the space: its decisions. */
  readonly point?: Readonly<Record<string, DecisionValue>>
  /** Milliseconds that the cost model expects. */
  readonly predicted?: number
  /** Measured again with the others that may be the fastest, at the end of the case. */
  readonly isFinal?: true
}

/** To a worker. */
export type Task =
  /** Measure your share of the points of a case until then (milliseconds since 1970), but for those that are known. */
  | {
      readonly kind: 'points'
      readonly case: SearchCase
      readonly points: number
      readonly until: number
      readonly known: readonly string[]
    }
  /** Measure these again, against each other. */
  | { readonly kind: 'finals'; readonly case: SearchCase; readonly of: readonly Tried[] }

/** From a worker. */
export type Answer =
  | { readonly kind: 'tried'; readonly tried: Tried }
  | { readonly kind: 'done' }
  | { readonly kind: 'said'; readonly text: string }
  /** Milliseconds that a share took: until the data were there, for ranking, with the device, and all together. */
  | {
      readonly kind: 'spent'
      readonly opened: number
      readonly ranked: number
      readonly held: number
      readonly all: number
    }

export const nameOf = (c: SearchCase): string =>
  `${c.suite} ${c.data}${c.suite === 'spmm' || c.suite === 'sddmm' ? ` ${c.width}` : ''}`

/** `spmm:ppi-pathways:128`, `spmv:road:40000:1:1`: the width comes last. */
export function parseCase(text: string): SearchCase {
  const [suite, ...rest] = text.split(':')
  const width = Number(rest.at(-1))
  const data = rest.slice(0, -1).join(':')
  if (!suite || data === '' || !Number.isInteger(width) || width < 1)
    throw new Error(`'${text}' is no case: SUITE:MATRIX:WIDTH, such as spmm:cora:128`)
  return { suite, data, width }
}
