/** What a generated kernel is asked to do: columns, how it uses them, what each thread does. */
import type { Dtype } from '../../../ir/dtype.ts'
import type { Expr } from '../../../ir/expr.ts'
import type { Stmt } from '../../../ir/loops.ts'
import type { DeviceBuffer } from '../../../runtime/device.ts'

/** `length` elements of device memory; the memory may be longer. */
export interface Column {
  readonly memory: DeviceBuffer
  readonly dtype: Dtype
  readonly length: number
}

/** How a launch uses a column. `natural`: it is only read, and no element is negative. */
export interface Use {
  readonly column: Column
  readonly access: 'natural' | 'read' | 'write' | 'update'
}

export const natural = (column: Column): Use => ({ column, access: 'natural' })
export const read = (column: Column): Use => ({ column, access: 'read' })
export const write = (column: Column): Use => ({ column, access: 'write' })
export const update = (column: Column): Use => ({ column, access: 'update' })

export interface LaunchSpec {
  /** With the names, types and accesses of the columns, it tells kernels apart: `body` depends on nothing else. */
  readonly key: string
  /** How many threads; or blocks, where threads share memory. */
  readonly threads: number
  /** `body` is what block `e` does, in loops over its threads (`each`). */
  readonly shared?: boolean
  readonly columns: Readonly<Record<string, Use>>
  readonly sizes?: Readonly<Record<string, number>>
  /** What thread `e` does: writes elements that no other thread touches, or updates atomically. */
  readonly body: (e: Expr) => readonly Stmt[]
}

/** The size parameter of every kernel: how many threads there are. */
export const THREADS = 'x_threads'
