/** Description of a generated kernel: its columns, their access, and the body of a thread. */

import type { Expr } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import type { Dtype } from '../../../../ir/values/dtype.ts'
import type { DeviceBuffer } from '../../../../runtime/device.ts'

/** `length` elements of device memory; the allocation may be larger. */
export interface Column {
  readonly memory: DeviceBuffer
  readonly dtype: Dtype
  readonly length: number
}

/** Access of a launch to a column. `natural`: read-only, and no element is negative. */
export interface Use {
  readonly column: Column
  readonly access: 'natural' | 'read' | 'write' | 'update'
}

export const natural = (column: Column): Use => ({ column, access: 'natural' })
export const read = (column: Column): Use => ({ column, access: 'read' })
export const write = (column: Column): Use => ({ column, access: 'write' })
export const update = (column: Column): Use => ({ column, access: 'update' })

export interface LaunchSpec {
  /**
   * Together with the names, types and accesses of the columns, identifies the kernel: `body` must not depend on
   * anything else.
   */
  readonly key: string
  /** The number of threads, or of blocks if `shared`. */
  readonly threads: number
  /** `body` describes block `e`, in loops over its threads (`each`). */
  readonly shared?: boolean
  readonly columns: Readonly<Record<string, Use>>
  readonly sizes?: Readonly<Record<string, number>>
  /** The body of thread `e`: writes elements that no other thread accesses, or updates atomically. */
  readonly body: (e: Expr) => readonly Stmt[]
}

/** The size parameter of every kernel that holds the number of threads. */
export const THREADS = 'x_threads'
