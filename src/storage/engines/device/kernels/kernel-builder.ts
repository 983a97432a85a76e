/** Descriptions and builders of generated kernels: one thread per index, scalars in registers, serial loops. */
import {
  add,
  constant,
  div,
  type Expr,
  eq,
  int,
  load,
  lt,
  mul,
  select,
  type ThreadAxis,
  variable,
} from '../../../../ir/expressions/expr.ts'
import type { For, Kernel2, LoopMode, Stmt } from '../../../../ir/statements/loops.ts'
import {
  alloc,
  forLoop,
  local,
  reduction,
  store as storeAt,
  when,
} from '../../../../ir/statements/statement-builders.ts'
import { someStmt } from '../../../../ir/statements/tree.ts'
import { type Dtype, scalarType } from '../../../../ir/values/dtype.ts'
import { builtinMonoid } from '../../../../ir/values/monoid.ts'
import type { DeviceBuffer } from '../../../../runtime/device.ts'

const SERIAL: LoopMode = { kind: 'serial' }

export function loop(
  name: string,
  extent: Expr,
  body: (v: Expr) => readonly Stmt[],
  mode: LoopMode = SERIAL,
  guards: readonly Expr[] = [],
): For {
  return forLoop(name, extent, body(variable(name)), { guards, mode })
}

export const store = (buffer: string, index: Expr, value: Expr): Stmt => storeAt(buffer, [index], value)

/** `buffer[index] = buffer[index] op value`, atomically. */
export const atomic = (op: '+' | 'max', buffer: string, index: Expr, value: Expr): Stmt =>
  reduction({
    reducer: builtinMonoid(op, value.dtype),
    targets: [load(buffer, [index], value.dtype)],
    values: [value],
    init: false,
    atomic: true,
  })

/** Over `x_n` entries: runs `then` at the last entry and wherever `isLast` holds, which may read the next entry. */
export const whereLast = (e: Expr, isLast: Expr, then: Stmt): Stmt =>
  when(lt(next(e), variable('x_n')), [when(isLast, [then])], [then])

interface Register {
  readonly declare: Stmt
  readonly at: (k: Expr) => Expr
  readonly put: (k: Expr, value: Expr) => Stmt
}

export function registers(name: string, length: number, dtype: Dtype = 'i32'): Register {
  return array(name, length, dtype, 'register')
}

function array(name: string, length: number, dtype: Dtype, scope: 'register' | 'shared'): Register {
  return {
    declare: alloc(local(name, dtype, [int(length)], scope)),
    at: (k) => load(name, [k], dtype),
    put: (k, value) => store(name, k, value),
  }
}

export function shared(name: string, length: number): Register {
  return array(name, length, 'i32', 'shared')
}

export interface Scalar {
  readonly declare: readonly Stmt[]
  readonly value: Expr
  readonly set: (value: Expr) => Stmt
}

export function scalar(name: string, initial: Expr): Scalar {
  const r = registers(name, 1, scalarType(initial.dtype))
  return {
    declare: [r.declare, r.put(int(0), initial)],
    value: r.at(int(0)),
    set: (value) => r.put(int(0), value),
  }
}

export const flag = (cond: Expr): Expr => select(cond, int(1), int(0))
export const get = (buffer: string, e: Expr): Expr => load(buffer, [e])
export const next = (e: Expr): Expr => add(e, int(1))
export const before = (e: Expr): Expr => add(e, int(-1))
export const isFirst = (e: Expr): Expr => eq(e, int(0))
export const zero = (dtype: Dtype): Expr => constant(0, dtype)

const bind = (to: ThreadAxis): LoopMode => ({ kind: 'bind', to })

/** Runs `body` in every thread of a block; in blocks with shared memory a barrier separates consecutive ones. */
export const each = (name: string, threads: number, body: (t: Expr) => readonly Stmt[]): For =>
  loop(name, int(threads), body, bind('thread.x'))

/** A short loop that is unrolled completely, so that register indices are constant. */
export const unrolled = (name: string, count: number, body: (k: Expr) => readonly Stmt[]): For =>
  loop(name, int(count), body, { kind: 'unroll', factor: null })

function threadNest(spec: LaunchSpec, block: number): Stmt {
  const threads = variable(THREADS)
  const at = add(mul(variable('x_block'), int(block)), variable('x_thread'))
  const inner = spec.body(at)
  // Loops whose iterations may update one element are reductions, so that updates stay atomic.
  const reduce = someStmt(inner, (s) => s.kind === 'reduce' && s.atomic)
  const blocks = div(add(threads, int(block - 1)), int(block))
  const bound = loop('x_thread', int(block), () => inner, bind('thread.x'), [lt(at, threads)])
  return { ...loop('x_block', blocks, () => [{ ...bound, reduce }], bind('block.x')), reduce }
}

const LENGTH = '_length'
/** Name of the size parameter with the length of a column, and its inverse: generated code clamps reads by it. */
const lengthOf = (column: string): string => `${column}${LENGTH}`
export const columnOf = (size: string): string | undefined =>
  size.endsWith(LENGTH) ? size.slice(0, -LENGTH.length) : undefined

/** The kernel of a launch: blocks with shared memory, or independent threads in blocks of `block`. */
export function kernelOf(spec: LaunchSpec, name: string, block: number): Kernel2 {
  const sizes = [THREADS, ...Object.keys(spec.sizes ?? {})]
  const body = spec.shared
    ? loop('x_block', variable(THREADS), spec.body, bind('block.x'))
    : threadNest(spec, block)
  const columns = Object.entries(spec.columns)
  return {
    stage: 2,
    name,
    params: [
      ...sizes.map((n) => ({ name: n, kind: 'size' as const, dtype: 'i32' as const })),
      ...columns.map(([n]) => ({ name: lengthOf(n), kind: 'size' as const, dtype: 'i32' as const })),
    ],
    buffers: columns.map(([n, use]) => ({
      name: n,
      dtype: use.column.dtype,
      scope: 'global',
      role: ROLES[use.access],
      shape: [variable(lengthOf(n))],
      fill: 0,
      accumulate: use.column.dtype,
    })),
    body: [body],
  }
}

// Description of a generated kernel: its columns, their access, and the body of a thread.

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

const ROLES = { natural: 'index', read: 'in', write: 'out', update: 'inout' } as const

export const natural = (column: Column): Use => ({ column, access: 'natural' })
export const read = (column: Column): Use => ({ column, access: 'read' })
export const write = (column: Column): Use => ({ column, access: 'write' })
export const update = (column: Column): Use => ({ column, access: 'update' })

export interface LaunchSpec {
  /** Identifies the kernel, with names, types and accesses of columns: `body` depends on nothing else. */
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

/** The size parameter of every kernel that has the number of threads. */
export const THREADS = 'x_threads'
