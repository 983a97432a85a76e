/** Counters of operations and memory traffic for the roofline model: one counter per kind of work and array. */

import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import type { InstrCall } from '../../ir/instructions/instr-call.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Buffer, Reduce } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES, isFloat, isHalf } from '../../ir/values/dtype.ts'
import { compileExpr, type Leaves, type Value } from '../../ir/values/evaluate.ts'

// Partial evaluation of expressions on the host: unknown values are NaN, and so are values that depend on
// them.

export type Numbers = ArrayLike<number>

/** The simulated state of one thread. */
export interface Frame {
  /** Values by name, including hardware indices. */
  readonly vars: Map<string, number>
  /** Registers that affect control flow, by name. */
  readonly registers: Map<string, Float64Array>
  /** Arrays that no launch writes, by name. */
  readonly arrays: ReadonlyMap<string, Numbers>
  /** Number of simulated iterations. */
  steps: number
  /** True if an unknown condition or trip count was assumed. */
  assumed: boolean
}

export const isUnknown = Number.isNaN

/** Evaluates a condition; unknown ones are assumed to hold. */
export function holds(value: number, f: Frame): boolean {
  if (!isUnknown(value)) return value !== 0
  f.assumed = true
  return true
}

const variable =
  (name: string): Value<Frame> =>
  (f) =>
    f.vars.get(name) ?? Number.NaN

const LEAVES: Leaves<Frame> = {
  partial: true,
  variable: (e) => variable(e.name),
  builtin: (e) => variable(e.axis),
  load(e, of) {
    const at = of(e.index[0]!)
    const { buffer } = e
    return (f) => (f.registers.get(buffer) ?? f.arrays.get(buffer))?.[at(f)] ?? Number.NaN
  },
  search: () => () => Number.NaN,
}

export const compileValue = (e: Expr): Value<Frame> => compileExpr(e, LEAVES)

export type Access = 'loads' | 'stores' | 'atomics'
type Work =
  | 'plain'
  | 'matrix16'
  | 'matrix32'
  | 'matrixOther'
  /** Bytes of shared memory. */
  | 'shared loads'
  | 'shared stores'

export class Counters {
  readonly #places = new Map<string, number>()
  readonly buffers = new Map<string, Buffer>()

  get size(): number {
    return this.#places.size
  }

  /** Returns the value of a counter; 0 if it does not exist. */
  read(counts: Float64Array, name: Work | `${Access} ${string}`): number {
    return counts[this.#places.get(name) ?? -1] ?? 0
  }

  /** Returns the index of a counter, which is created on demand. */
  at(name: Work | `${Access} ${string}`): number {
    return getOrAdd(this.#places, name, () => this.#places.size)
  }
}

/** Work that does not depend on control flow, by counter index. */
type Fixed = Map<number, number>

function addTo(to: Fixed, from: ReadonlyMap<number, number>, times = 1): void {
  for (const [at, n] of from) to.set(at, (to.get(at) ?? 0) + n * times)
}

/** Work of one access to one element; empty for registers. */
export function accessOf(c: Counters, buffer: string, access: Access): Fixed {
  const b = c.buffers.get(buffer)
  invariant(b, `no buffer ${buffer}`)
  if (b.scope === 'register') return new Map()
  if (b.scope === 'global') return new Map([[c.at(`${access} ${buffer}`), 1]])
  const bytes = DTYPE_BYTES[b.dtype]
  const read: [number, number] = [c.at('shared loads'), bytes]
  const written: [number, number] = [c.at('shared stores'), bytes]
  return new Map(access === 'loads' ? [read] : access === 'stores' ? [written] : [read, written])
}

const ARITHMETIC: readonly string[] = ['add', 'sub', 'mul', 'div', 'mod', 'min', 'max', 'quo', 'rem']

/** Operations of this node, without its operands. */
export function operationsOf(e: Expr): number {
  if (!isFloat(e.dtype)) return 0
  return e.kind === 'call' || (e.kind === 'binary' && ARITHMETIC.includes(e.op)) ? 1 : 0
}

/** Operations of an expression, including both branches of a selection. */
export const operationsIn = (e: Expr): number =>
  operationsOf(e) + children(e).reduce((n, x) => n + operationsIn(x), 0)

export const combining = (s: Reduce): number => s.reducer.result.reduce((n, e) => n + operationsIn(e), 0)

/** The work per thread of an instruction, from its declaration: each element of an operand moves once. */
export function instructionWork(c: Counters, call: InstrCall, instr: Instr): Fixed {
  const out: Fixed = new Map()
  const placed = new Map<string, string>()
  instr.texts.forEach((text, t) => {
    text.pieces.forEach((p, k) => {
      const at = call.texts[t]?.pieces[k]
      if (
        typeof p !== 'string' &&
        p.kind === 'operand' &&
        at &&
        typeof at !== 'string' &&
        at.kind !== 'value'
      )
        placed.set(p.operand, at.buffer)
    })
  })
  // Commits and waits share the instruction's name, and have no operands.
  if (placed.size === 0) return out
  for (const o of instr.operands) {
    const buffer = placed.get(o.name)
    if (buffer === undefined) continue
    const share = o.shape.reduce((n, x) => n * x, 1) / instr.threads
    const access = o.mode === 'read' ? ['loads' as const] : o.mode === 'write' ? ['stores' as const] : UPDATE
    for (const a of instr.atomic && o.mode === 'update' ? ['atomics' as const] : access)
      addTo(out, accessOf(c, buffer, a), share)
  }
  const { body } = instr
  const values = body.kind === 'store' ? [body.value] : body.values
  const each =
    values.reduce((n, e) => n + operationsIn(e), 0) + (body.kind === 'reduce' ? combining(body) : 0)
  const times = instr.iters.reduce((n, i) => n * i.extent, 1) / instr.threads
  if (each > 0) addTo(out, new Map([[c.at(unitOf(instr)), each * times]]))
  return out
}

const UPDATE = ['loads', 'stores'] as const

/** Classifies an instruction: reductions of products over several threads run on matrix units. */
function unitOf(instr: Instr): Work {
  const { body, operands } = instr
  if (instr.threads === 1 || body.kind !== 'reduce' || !body.values.some((v) => operationsIn(v) > 0))
    return 'plain'
  const read = operands.filter((o) => o.mode === 'read')
  if (read.every((o) => isHalf(o.dtype))) return 'matrix16'
  return read.every((o) => o.dtype === 'f32') ? 'matrix32' : 'matrixOther'
}

/** Work that depends on control flow; runs `weight` times. */
export type Action = (f: Frame, weight: number, counts: Float64Array) => void

/** Work of statements: a fixed part, and actions that depend on control flow. */
export interface Part {
  readonly fixed: Fixed
  readonly moving: readonly Action[]
}

export function join(parts: readonly Part[]): Part {
  const fixed: Fixed = new Map()
  for (const p of parts) addTo(fixed, p.fixed)
  return { fixed, moving: parts.flatMap((p) => p.moving) }
}

export const NOTHING: Part = { fixed: new Map(), moving: [] }

export const isEmpty = (p: Part): boolean => p.fixed.size === 0 && p.moving.length === 0

export function actionOf(p: Part): Action {
  const places = [...p.fixed.keys()]
  const amounts = [...p.fixed.values()]
  const { moving } = p
  return (f, weight, counts) => {
    for (let k = 0; k < places.length; k++) counts[places[k]!]! += amounts[k]! * weight
    for (const act of moving) act(f, weight, counts)
  }
}
