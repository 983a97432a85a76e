/**
 * Code of one thread of a Stage III launch between its wait points, as closures over the thread's frame. Every access is
 * checked.
 */
import { InternalError, invariant, unreachable } from '../ast/diagnostic.ts'
import { computeType, type Dtype } from '../ir/dtype.ts'
import { compileExpr as closure, evaluate, type Leaves, type Value } from '../ir/evaluate.ts'
import { type Expr, THREAD_AXES, type ThreadAxis } from '../ir/expr.ts'
import type { InstrCall } from '../ir/instr-call.ts'
import type { Buffer, Reduce, Stmt } from '../ir/loops.ts'
import { convert, wrap } from '../ir/numeric.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { unwritten } from './memory-cells.ts'
import { Memory, type Who } from './races.ts'
import { firstHit } from './search.ts'

/** State of one thread; shared memory is one `Memory` in the frames of all threads of a block. */
export interface Frame {
  readonly who: Who
  readonly index: Readonly<Record<ThreadAxis, number>>
  readonly vars: Map<string, number>
  readonly memory: Map<string, Memory>
  readonly shared: Map<string, Memory>
  /** During an exchange between lanes: the thread's values, then its partner's. */
  readonly mail: number[]
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
      const value = converted(s.value, s.dtype)
      return (f) => f.vars.set(s.name, value(f))
    }
    case 'alloc':
      return (f) => f.memory.set(s.buffer.name, allocate(f, s.buffer))
    case 'store': {
      const value = compileExpr(s.value)
      const at = addressOf(s)
      return (f) => {
        const v = value(f)
        const [m, k] = at(f)
        m.write(k, toMemory(v, s.value.dtype, m.buffer.dtype), f.who, false)
      }
    }
    case 'reduce':
      return compileReduce(s)
    case 'instr':
    case 'fill':
    case 'barrier':
    case 'vector_load':
    case 'vector_store':
      throw new InternalError(`${s.kind} cannot stand here in Stage III`)
    default:
      return unreachable(s)
  }
}

/** A fresh register array; the first thread to arrive makes shared memory for all of its block. */
function allocate(f: Frame, buffer: Buffer): Memory {
  const length = buffer.shape.reduce((n, e) => n * evaluate(e, f.vars), 1)
  const fresh = (): Memory => new Memory(buffer, unwritten(buffer.dtype, length))
  if (buffer.scope !== 'shared') return fresh()
  const known = f.shared.get(buffer.name)
  if (known) return known
  const registers = fresh()
  f.shared.set(buffer.name, registers)
  return registers
}

function compileReduce(s: Reduce): Action {
  const values = s.values.map((v, k) => converted(v, s.reducer.right[k]!.dtype))
  const take = combining(s)
  return (f) =>
    take(
      f,
      values.map((v) => v(f)),
    )
}

/** The update of the targets by values that are there. */
export function combining(s: Reduce): (f: Frame, right: readonly number[]) => void {
  const { reducer } = s
  const at = s.targets.map(addressOf)
  const results = reducer.result.map(compileExpr)
  return (f, right) => {
    const places = at.map((a) => a(f))
    // The operands' names are the monoid's own, and may be names of the kernel too.
    const operands: Frame = { ...f, vars: new Map() }
    places.forEach(([m, k], n) => {
      const old = m.read(k, f.who, s.atomic)
      operands.vars.set(reducer.left[n]!.name, toMemory(old, m.buffer.dtype, reducer.left[n]!.dtype))
      operands.vars.set(reducer.right[n]!.name, right[n]!)
    })
    const next = results.map((r) => r(operands))
    places.forEach(([m, k], n) => {
      m.write(k, toMemory(next[n]!, reducer.result[n]!.dtype, m.buffer.dtype), f.who, s.atomic)
    })
  }
}

/** A value of type `from` as an element of type `to`; a register of a narrow type is 32 bits wide. */
const toMemory = (x: number, from: Dtype, to: Dtype): number =>
  from !== to ? convert(from, to)(x) : to === 'f32' ? Math.fround(x) : wrap(to)(x)

export function converted(e: Expr, to: Dtype): Value<Frame> {
  const value = compileExpr(e)
  const wide = computeType(to)
  return e.dtype === to || computeType(e.dtype) === wide ? value : (f) => toMemory(value(f), e.dtype, to)
}

function addressOf(t: {
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
        `${t.buffer}[${printExpr(t.index[0]!)}]: index ${k} is outside of 0..${m.length} (${where(f)})`,
      )
    return [m, k]
  }
}

const where = (f: Frame): string =>
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
    const at = addressOf(e)
    return (f) => {
      const [m, k] = at(f)
      return m.read(k, f.who, false)
    }
  },
  // Passes before `expand-searches` leave these.
  search(e, of) {
    const [lo, hi, wanted] = [of(e.lo), of(e.hi), of(e.value)]
    return (f) => {
      const m = f.memory.get(e.buffer)
      invariant(m, `no buffer ${e.buffer} here`)
      return firstHit(e, [lo(f), hi(f), wanted(f)], m.length, (p) => m.read(p, f.who, false))
    }
  },
}

export const compileExpr = (e: Expr): Value<Frame> => closure(e, LEAVES)
