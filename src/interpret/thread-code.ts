/**
 * Code of one thread of a Stage III launch between its wait points, as closures over the thread's frame. Every access is
 * checked.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostics/diagnostic.ts'
import { type Expr, THREAD_AXES, type ThreadAxis } from '../ir/expressions/expr.ts'
import type { InstrCall } from '../ir/instructions/instr-call.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import type { Buffer, Reduce, Stmt } from '../ir/statements/loops.ts'
import { computeType, type ExprType } from '../ir/values/dtype.ts'
import { compileExpr as compileClosure, evaluate, type Leaves, type Value } from '../ir/values/evaluate.ts'
import { convert, wrap } from '../ir/values/numeric.ts'
import { findPosition } from './expressions.ts'
import { createPoisoned } from './memory-cells.ts'
import { Memory, type ThreadState } from './races.ts'

/** State of one thread; the frames of all threads of a block refer to the same shared memory. */
export interface Frame {
  readonly state: ThreadState
  readonly index: Readonly<Record<ThreadAxis, number>>
  readonly vars: Map<string, number>
  readonly memory: Map<string, Memory>
  readonly shared: Map<string, Memory>
  /** Values of an exchange between lanes: before it the thread's own, after it those of its partner. */
  readonly laneValues: number[]
  /** The first thread of each block of the cluster. */
  readonly cluster: readonly Frame[]
  readonly instructions?: Instructions | undefined
}

/** Semantics of declared instructions, whose device code plans contain as source. */
export interface Instructions {
  /**
   * Begins a call. The returned function is polled until it returns true and the thread continues; other threads may run in
   * between.
   */
  begin(call: InstrCall, f: Frame): () => boolean
}

type Action = (f: Frame) => void

function compileAll(body: readonly Stmt[]): Action {
  const actions = body.map(compile)
  return (f) => {
    for (const a of actions) a(f)
  }
}

export function compile(s: Stmt): Action {
  switch (s.kind) {
    case 'for': {
      invariant(s.mode.kind !== 'bind', 'a bound loop is a hardware index in Stage III')
      const extent = compileExpr(s.extent)
      const guards = s.guards.map(compileExpr)
      const body = compileAll(s.body)
      return (f) => {
        const n = extent(f)
        for (let k = 0; k < n; k++) {
          f.vars.set(s.var, k)
          if (guards.every((g) => g(f) !== 0)) body(f)
        }
      }
    }
    case 'while': {
      const cond = compileExpr(s.cond)
      const body = compileAll(s.body)
      return (f) => {
        while (cond(f) !== 0) body(f)
      }
    }
    case 'if': {
      const cond = compileExpr(s.cond)
      const then = compileAll(s.then)
      const otherwise = compileAll(s.else)
      return (f) => (cond(f) !== 0 ? then(f) : otherwise(f))
    }
    case 'let': {
      const value = compileAs(s.value, s.dtype)
      return (f) => f.vars.set(s.name, value(f))
    }
    case 'alloc':
      return (f) => f.memory.set(s.buffer.name, allocate(f, s.buffer))
    case 'store': {
      const value = compileExpr(s.value)
      const address = compileAddress(s)
      return (f) => {
        const v = value(f)
        const [m, k] = address(f)
        m.write(k, toMemory(v, s.value.dtype, m.buffer.dtype), f.state, false)
      }
    }
    case 'reduce':
      return compileReduce(s)
    case 'instr':
    case 'fill':
    case 'rounds':
    case 'barrier':
    case 'vector_load':
    case 'vector_store':
      throw new InternalError(`${s.kind} cannot stand here in Stage III`)
    default:
      return unreachable(s)
  }
}

/** Allocates a register array, or shared memory: the first thread of a block creates it for all threads. */
function allocate(f: Frame, buffer: Buffer): Memory {
  const length = buffer.shape.reduce((n, e) => n * evaluate(e, f.vars), 1)
  const create = (): Memory => new Memory(buffer, createPoisoned(buffer.dtype, length))
  if (buffer.scope !== 'shared') return create()
  const existing = f.shared.get(buffer.name)
  if (existing) return existing
  const memory = create()
  f.shared.set(buffer.name, memory)
  return memory
}

function compileReduce(s: Reduce): Action {
  const values = s.values.map((v, k) => compileAs(v, s.reducer.right[k]!.dtype))
  const combine = compileCombine(s)
  return (f) =>
    combine(
      f,
      values.map((v) => v(f)),
    )
}

/** Compiles the combination of the targets with given values. */
export function compileCombine(s: Reduce): (f: Frame, right: readonly number[]) => void {
  const { reducer } = s
  const addresses = s.targets.map(compileAddress)
  const results = reducer.result.map(compileExpr)
  return (f, right) => {
    const elements = addresses.map((a) => a(f))
    // The names of the monoid's operands may also occur in the kernel.
    const operands: Frame = { ...f, vars: new Map() }
    elements.forEach(([m, k], n) => {
      const old = m.read(k, f.state, s.atomic)
      operands.vars.set(reducer.left[n]!.name, toMemory(old, m.buffer.dtype, reducer.left[n]!.dtype))
      operands.vars.set(reducer.right[n]!.name, right[n]!)
    })
    const next = results.map((r) => r(operands))
    elements.forEach(([m, k], n) => {
      m.write(k, toMemory(next[n]!, reducer.result[n]!.dtype, m.buffer.dtype), f.state, s.atomic)
    })
  }
}

/** Converts a value of type `from` to an element of type `to`; registers of narrow types are 32 bits wide. */
const toMemory = (x: number, from: ExprType, to: ExprType): number =>
  from !== to ? convert(from, to)(x) : to === 'f32' ? Math.fround(x) : wrap(to)(x)

export function compileAs(e: Expr, to: ExprType): Value<Frame> {
  const value = compileExpr(e)
  const computed = computeType(to)
  return e.dtype === to || computeType(e.dtype) === computed ? value : (f) => toMemory(value(f), e.dtype, to)
}

function compileAddress(t: {
  readonly buffer: string
  readonly index: readonly Expr[]
}): (f: Frame) => [Memory, number] {
  invariant(t.index.length === 1, `${t.buffer}: an access of Stage III has one index`)
  const index = compileExpr(t.index[0]!)
  return (f) => {
    const m = f.memory.get(t.buffer)
    invariant(m, `no buffer ${t.buffer} here`)
    const k = index(f)
    if (!(k >= 0 && k < m.length))
      throw new InternalError(
        `${t.buffer}[${printExpr(t.index[0]!)}]: index ${k} is outside of 0..${m.length} (${stateText(f)})`,
      )
    return [m, k]
  }
}

const stateText = (f: Frame): string =>
  [
    ...[...f.vars].map(([name, value]) => `${name}=${value}`),
    ...THREAD_AXES.map((a) => `${a}=${f.index[a]}`),
  ].join(' ')

const LEAVES: Leaves<Frame> = {
  variable:
    ({ name }) =>
    (f) => {
      const v = f.vars.get(name)
      if (v === undefined) throw new InternalError(`${name} has no value here`)
      return v
    },
  builtin: (e) => (f) => f.index[e.axis],
  load(e) {
    const address = compileAddress(e)
    return (f) => {
      const [m, k] = address(f)
      return m.read(k, f.state, false)
    }
  },
  // Searches occur until the pass `search-expansion` has run.
  search(e, compileOperand) {
    const [lo, hi, target] = [compileOperand(e.lo), compileOperand(e.hi), compileOperand(e.value)]
    return (f) => {
      const m = f.memory.get(e.buffer)
      invariant(m, `no buffer ${e.buffer} here`)
      return findPosition(e, [lo(f), hi(f), target(f)], m.length, (p) => m.read(p, f.state, false))
    }
  },
}

export const compileExpr = (e: Expr): Value<Frame> => compileClosure(e, LEAVES)
