/** A pass of the radix sort: what its two kernels, which count and deal out, are told. */
import type { Expr } from '../../../ir/expr.ts'
import type { Column, LaunchSpec, Use } from './column-types.ts'
import type { Segments } from './radix-sort-chunks.ts'

/** A key below 2^bits (at most 31) of each entry. */
export interface Key extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly bits: number
  readonly value: (entry: Expr) => Expr
}

export interface Pass {
  readonly n: number
  readonly key: Key
  /** The keys of the entries in `order`, where an earlier pass left them. */
  readonly known: Column | null
  readonly order: Column | null
  readonly shift: number
  readonly bits: number
  readonly segments: Segments | null
  readonly last: boolean
}

/** What the two kernels of a pass have in common. */
export interface Base {
  readonly name: string
  readonly chunks: number
  readonly sizes: Readonly<Record<string, number>>
  /** What `value` reads, and where segments are. */
  readonly columns: Readonly<Record<string, Use>>
  /** The key of the entry at place `s`. */
  readonly value: (s: Expr) => Expr
}
