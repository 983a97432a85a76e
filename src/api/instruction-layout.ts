/**
 * Where the test of an instruction puts an operand: the array that its tiles are parts of, and the element that the
 * body accesses. Each index is one to one in the loops it depends on, so that the kernel is one.
 */

import { digitsOf, sumOf } from '../analysis/instructions/operand-digits.ts'
import { MAPPED_BYTES } from '../analysis/instructions/operands.ts'
import { DTYPE_BYTES } from '../ir/dtype.ts'
import { add, div, type Expr, int, mul, variable } from '../ir/expr.ts'
import type { Instr, Memory, Operand } from '../ir/instr.ts'

/** The loops around those of the instruction, outermost first, by what they are called. */
export interface Loops {
  /** Blocks. */
  readonly tile: string
  /** Threads of a block that make the same atomic update. */
  readonly thread: string
  /** Executions on the same registers and shared memory. */
  readonly repetition: string
  /** Places in them that an operand is at. */
  readonly place: string
  /** Of a reduction, executions on the same result. */
  readonly round: string
}

/** How often loops run that are not about atomic updates. */
export const TWICE = 2

/** Threads of a block that update the same elements. */
export const THREADS = 32

/** A dimension of an operand's array. */
export interface Dim {
  readonly index: Expr
  /** Elements; not of dimensions that are a loop's. */
  readonly extent?: number
  /** The loop whose iterations are the coordinates. */
  readonly loop?: string
}

export interface Layout {
  readonly role: 'in' | 'out' | 'inout'
  readonly dims: readonly Dim[]
}

/** Tiles of declared shared memory up to this size are two, one after the other. */
export const SMALL = 1 << 14

const loop = (name: string): Dim => ({ loop: name, index: variable(name) })
const roundUp = (n: number, unit: number): number => Math.ceil(n / unit) * unit

export function layoutOf(o: Operand, instr: Instr, written: boolean, loops: Loops): Layout {
  const own = digitsOf(o, instr).map((digits, d): Own => {
    const [only, ...more] = digits
    const loops = more.length === 0 && !only!.element && { loop: only!.name }
    return { index: sumOf(digits), extent: o.shape[d]!, ...loops }
  })
  const role = !written ? 'in' : o.scope === 'global' ? 'inout' : 'out'
  // Threads that are known to update one element reduce what they add first: halves of them update two.
  const halves = { index: div(variable(loops.thread), int(THREADS / TWICE)), extent: TWICE }
  const common = hasThreads(instr) ? [halves] : []
  const blocks = written && instr.atomic ? common : [loop(loops.tile)]
  if (o.scope === 'global')
    return { role, dims: [...blocks, ...amid(o, own, written && instr.atomic, loops)] }
  const bare: readonly Dim[] = own
  if (written)
    return {
      role,
      dims: [...blocks, ...(instr.atomic ? [] : [loop(loops.repetition)]), loop(loops.place), ...bare],
    }
  if (o.scope === 'shared' && !instr.atomic)
    return {
      role,
      dims: [...blocks, ...(o.memory ? tiles(o.memory, own, loops) : spacedDims(o, own, loops))],
    }
  return { role, dims: [...blocks, ...(hasThreads(instr) ? [loop(loops.thread)] : []), ...bare] }
}

/** Whether threads of a block can make the same update by themselves. */
export const hasThreads = (instr: Instr): boolean =>
  instr.atomic && instr.threads === 1 && instr.operands.every((o) => o.scope !== 'shared')

/** One iterator's, or that of several which are its digits. */
interface Own extends Dim {
  readonly extent: number
}

/** Neighbouring elements that begin at a multiple of their size. */
export const runOf = (o: Operand): number =>
  Math.max(1, o.ascending ?? 1, (o.mapped ? MAPPED_BYTES : o.align) / DTYPE_BYTES[o.dtype])

/** Tiles with elements between them, in rows of an odd number of runs. */
function amid(o: Operand, own: readonly Own[], common: boolean, loops: Loops): readonly Dim[] {
  const run = runOf(o)
  const last = own.length - 1
  const odd = own.map((i, d): Dim => {
    if (d < last - 1) return { index: i.index, extent: i.extent + 1 }
    if (d < last) return placed(loops.place, i, i.extent + 1, 1)
    const { index, extent } = placed(common ? '' : loops.repetition, i, roundUp(i.extent, run) + run, run)
    return { index, extent: extent! }
  })
  return last === 0 ? [loop(loops.place), ...odd] : odd
}

/** In each iteration of a loop `step` further, and `rest` elements after the last. */
const placed = (name: string, i: Own, step: number, rest: number): Dim => ({
  index: name === '' ? i.index : add(mul(variable(name), int(step)), i.index),
  extent: TWICE * step + rest,
})

/** Two tiles in each row, with elements between them, where they are small. */
function spacedDims(o: Operand, own: readonly Own[], loops: Loops): readonly Dim[] {
  const run = runOf(o)
  const small = own.reduce((n, i) => n * i.extent, DTYPE_BYTES[o.dtype]) <= SMALL / TWICE
  // Copies have one dimension for digits that no gap follows.
  if (own.some((i) => i.loop === undefined)) return [...(small ? [loop(loops.place)] : []), ...own]
  return own.map((i, d) =>
    small && d === own.length - 1 ? placed(loops.place, i, roundUp(i.extent, run) + run, 0) : i,
  )
}

/** How far apart rows of a copy in shared memory are, so that tiles begin at the least aligned places. */
export const rowsOf = (o: Operand, instr: Instr): { readonly stride?: number } =>
  o.scope !== 'shared' || o.memory || instr.atomic
    ? {}
    : { stride: roundUp(o.shape.at(-1)!, runOf(o)) + runOf(o) }

/** The dimension in which a tile of the memory is two of the operand; -1: in none. */
export const halfOf = (memory: Memory, shape: readonly number[]): number =>
  shape.findIndex((n, d) => memory.shape[d - shape.length + memory.shape.length] === TWICE * n)

/** Where the operand is half a tile of the memory, its halves; else two tiles where they are small. */
function tiles(memory: Memory, own: readonly Own[], loops: Loops): readonly Dim[] {
  const half = halfOf(
    memory,
    own.map((i) => i.extent),
  )
  const small = memory.size * DTYPE_BYTES[memory.dtype] <= SMALL
  const moved = half >= 0 ? half : small ? 0 : -1
  return own.map((i, d) => (d !== moved ? i : placed(loops.place, i, i.extent, 0)))
}
