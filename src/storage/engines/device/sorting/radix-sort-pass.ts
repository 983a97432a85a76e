/** A pass of the radix sort: the parameters of its count and scatter kernels. */
import type { Expr } from '../../../../ir/expressions/expr.ts'
import type { Column, LaunchSpec, Use } from '../kernels/column-types.ts'
import type { Segments } from './radix-sort-chunks.ts'

/** A key of each entry, below 2^bits (at most 31 bits). */
export interface Key extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly bits: number
  readonly value: (entry: Expr) => Expr
}

export interface Pass {
  readonly n: number
  readonly key: Key
  /** The keys of the entries in `order`, if an earlier pass stored them. */
  readonly storedKeys: Column | null
  readonly order: Column | null
  readonly shift: number
  readonly bits: number
  readonly segments: Segments | null
  readonly last: boolean
}

/** The common part of the two kernels of a pass. */
export interface Base {
  readonly name: string
  readonly chunks: number
  readonly sizes: Readonly<Record<string, number>>
  /** The columns that `value` reads, and the segments. */
  readonly columns: Readonly<Record<string, Use>>
  /** The key of the s-th entry in the current order. */
  readonly value: (s: Expr) => Expr
}
