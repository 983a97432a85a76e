/**
 * Layout of an operand in an instruction test: the array that contains its tiles, and the element that the body accesses. Each index is
 * injective in its loops, so the iterations are independent.
 */
import { digitsOf, sumOf } from '../analysis/instructions/operand-digits.ts'
import { MAPPED_BYTES } from '../analysis/instructions/operands.ts'
import { add, div, type Expr, int, mul, variable } from '../ir/expressions/expr.ts'
import type { Instr, Memory, Operand } from '../ir/instructions/instr.ts'
import { DTYPE_BYTES } from '../ir/values/dtype.ts'

/** Names of the loops around those of the instruction, outermost first. */
export interface Loops {
  /** Loop over blocks. */
  readonly tile: string
  /** Loop over the threads of a block that make the same atomic update. */
  readonly thread: string
  /** Loop over executions on the same registers and shared memory. */
  readonly repetition: string
  /** Loop over the places of an operand in registers or shared memory. */
  readonly place: string
  /** Loop over executions of a reduction on the same result. */
  readonly round: string
}

/** Number of iterations of loops that do not test atomic updates. */
export const TWICE = 2

/** Number of threads of a block that update the same elements. */
export const THREADS = 32

interface Dim {
  readonly index: Expr
  /** Number of elements; undefined if the dimension is a loop. */
  readonly extent?: number
  /** Name of the loop whose iterations are the coordinates; undefined for other dimensions. */
  readonly loop?: string
}

export interface Layout {
  readonly role: 'in' | 'out' | 'inout'
  readonly dims: readonly Dim[]
}

/** Maximum bytes of a shared-memory tile for two adjacent tiles to be tested. */
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
  // Threads that provably update one element would first reduce among themselves, so each half of them updates its own element.
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

/** Returns true if single threads of a block can execute the update. */
export const hasThreads = (instr: Instr): boolean =>
  instr.atomic && instr.threads === 1 && instr.operands.every((o) => o.scope !== 'shared')

/** The dimension of an iterator, or of several iterators as digits. */
interface Own extends Dim {
  readonly extent: number
}

/** Alignment of an operand in elements, or its ascending run if longer. */
export const runOf = (o: Operand): number =>
  Math.max(1, o.ascending ?? 1, (o.mapped ? MAPPED_BYTES : o.align) / DTYPE_BYTES[o.dtype])

/** Tiles with unused elements in between, in rows whose length is an odd number of alignment units. */
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

/** A dimension that advances by `step` per iteration of a loop, with `rest` elements after the last. */
const placed = (name: string, i: Own, step: number, rest: number): Dim => ({
  index: name === '' ? i.index : add(mul(variable(name), int(step)), i.index),
  extent: TWICE * step + rest,
})

/** Two tiles per row with unused elements in between, if they are small. */
function spacedDims(o: Operand, own: readonly Own[], loops: Loops): readonly Dim[] {
  const run = runOf(o)
  const small = own.reduce((n, i) => n * i.extent, DTYPE_BYTES[o.dtype]) <= SMALL / TWICE
  // A copy has one dimension for several digits, which cannot contain unused elements.
  if (own.some((i) => i.loop === undefined)) return [...(small ? [loop(loops.place)] : []), ...own]
  return own.map((i, d) =>
    small && d === own.length - 1 ? placed(loops.place, i, roundUp(i.extent, run) + run, 0) : i,
  )
}

/** Stride between rows of a copy in shared memory, so that tiles begin at the least aligned addresses. */
export const rowsOf = (o: Operand, instr: Instr): { readonly stride?: number } =>
  o.scope !== 'shared' || o.memory || instr.atomic
    ? {}
    : { stride: roundUp(o.shape.at(-1)!, runOf(o)) + runOf(o) }

/** The dimension in which a tile of the memory is twice the operand; -1 if there is none. */
export const halfOf = (memory: Memory, shape: readonly number[]): number =>
  shape.findIndex((n, d) => memory.shape[d - shape.length + memory.shape.length] === TWICE * n)

/** The two halves of a tile if the operand is half a tile; otherwise two tiles if they are small. */
function tiles(memory: Memory, own: readonly Own[], loops: Loops): readonly Dim[] {
  const half = halfOf(
    memory,
    own.map((i) => i.extent),
  )
  const small = memory.size * DTYPE_BYTES[memory.dtype] <= SMALL
  const moved = half >= 0 ? half : small ? 0 : -1
  return own.map((i, d) => (d !== moved ? i : placed(loops.place, i, i.extent, 0)))
}
