/**
 * A plan at some of its iterations, in exact integers and in 32 bits side by side: where an extent, an index or a condition
 * differs. Nothing is stored; what data decide may be anything. Shares nothing with `analysis/integers/plan-ranges.ts`.
 */

import { type Expr, THREAD_AXES } from '../../src/ir/expressions/expr.ts'
import { children } from '../../src/ir/expressions/expr-tree.ts'
import { printExpr } from '../../src/ir/print/print-stage2.ts'
import type { Buffer, Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { piecesOf } from '../../src/ir/statements/tree.ts'
import { isFloat } from '../../src/ir/values/dtype.ts'
import type { BinaryOp } from '../../src/ir/values/math.ts'

interface Both {
  readonly exact: bigint
  readonly word: bigint
  /** Depends on data: both are what 32 bits give. */
  readonly data: boolean
  /** Left 32 bits in an operation that the compiler made. */
  readonly made: boolean
}

/** Statements that are followed in one launch. */
const MOST = 4000

const word = (x: bigint): bigint => BigInt.asIntN(32, x)
const same = (x: bigint): Both => ({ exact: x, word: word(x), data: false, made: false })

/** `undefined` where nothing that was met differs. */
export function differenceIn(
  plan: Kernel3,
  sizes: ReadonlyMap<string, number>,
  below: (n: number) => number,
): string | undefined {
  const buffers = new Map<string, Buffer>(plan.buffers.map((b) => [b.name, b]))
  const env = new Map<string, Both>()
  const lets = new Map<string, Expr>()
  for (const [name, v] of sizes) env.set(name, same(BigInt(v)))
  let steps = 0
  let found: string | undefined
  const report = (what: string, e: Expr, v: Both): void => {
    found ??= `${what}: ${printExpr(e)} is ${v.exact}, in 32 bits ${v.word}`
  }
  const data = (): Both => ({ ...same(BigInt(below(5) - 1)), data: true })
  // What was read stays what it is until something is written there: conditions and what they protect read the same.
  const memory = new Map<string, Map<string, Both>>()
  const once = (buffer: string, at: string, make: () => Both): Both => {
    const known = memory.get(buffer) ?? new Map<string, Both>()
    memory.set(buffer, known)
    const value = known.get(at) ?? make()
    known.set(at, value)
    return value
  }
  /** From 0 to n - 1, the ends often. */
  const within = (n: bigint): bigint =>
    n <= 1n
      ? 0n
      : below(3) === 0
        ? n - 1n
        : below(2) === 0
          ? 0n
          : BigInt(Math.floor((below(1 << 30) / 2 ** 30) * Number(n)))
  const defined = (e: Expr): Expr => {
    const value = e.kind === 'var' ? lets.get(e.name) : undefined
    return value ? defined(value) : e
  }
  const index = (e: Expr, buffer: string): bigint => {
    const v = of(e)
    if (!v.data && v.exact !== v.word) report(`index of ${buffer}`, e, v)
    return v.word
  }
  const of = (e: Expr): Both => {
    switch (e.kind) {
      case 'const':
        return isFloat(e.dtype) ? data() : same(BigInt(e.value))
      case 'var':
        return env.get(e.name) ?? data()
      case 'builtin':
        return env.get(e.axis)!
      case 'load': {
        const at = e.index.map((x) => index(x, e.buffer)).join()
        const end = buffers.get(e.buffer)?.below
        return once(e.buffer, at, () => (end ? same(within(of(end).exact)) : data()))
      }
      case 'search': {
        const at = [...children(e)].map((x) => index(x, e.buffer)).join()
        return once(e.buffer, `search ${at}`, data)
      }
      case 'select': {
        const cond = decided(e.cond)
        if (cond.exact === cond.word) return of(cond.word !== 0n ? e.then : e.else)
        const [then, otherwise] = [of(e.then), of(e.else)]
        const [exact, inWord] = cond.exact !== 0n ? [then, otherwise] : [otherwise, then]
        return { exact: exact.exact, word: inWord.word, data: false, made: true }
      }
      case 'binary': {
        if (e.op === 'and' || e.op === 'or') {
          const [a, end] = [decided(e.a), e.op === 'or' ? 1n : 0n]
          if (a.exact === end && a.word === end) return a
          const b = decided(e.b)
          const both = (x: bigint, y: bigint): bigint => (e.op === 'or' ? x | y : x & y)
          return {
            exact: both(a.exact, b.exact),
            word: both(a.word, b.word),
            data: false,
            made: a.made || b.made,
          }
        }
        const [a, b] = [defined(e.a), defined(e.b)]
        const positions = a.kind === 'load' ? buffers.get(a.buffer)?.positions : undefined
        if (e.op === 'sub' && positions && b.kind === 'load' && b.buffer === (a as typeof b).buffer) {
          of(e.a)
          of(e.b)
          return same(within(of(positions).exact + 1n))
        }
        return combined(e, of(e.a), of(e.b))
      }
      case 'unary': {
        const x = of(e.x)
        if (e.op === 'not') return { ...x, exact: x.exact === 0n ? 1n : 0n, word: x.word === 0n ? 1n : 0n }
        return result(e, [x], -x.exact, -x.word)
      }
      case 'cast': {
        const x = of(e.x)
        return isFloat(e.x.dtype) || e.dtype === 'u32' || e.x.dtype === 'u32' ? data() : x
      }
      default:
        for (const x of children(e)) of(x)
        return data()
    }
  }
  const result = (e: Expr, operands: readonly Both[], exact: bigint, inWord: bigint): Both => {
    // What has left 32 bits before does not leave them here, and values of type i32 wrap in the reference, too.
    const leaves = exact !== word(exact) && operands.every((x) => x.exact === x.word)
    const w = word(inWord)
    return operands.some((x) => x.data) || e.dtype === 'u32'
      ? { exact: w, word: w, data: true, made: false }
      : { exact, word: w, data: false, made: operands.some((x) => x.made) || (leaves && e.dtype === 'index') }
  }
  const combined = (e: Expr & { readonly op: BinaryOp }, a: Both, b: Both): Both => {
    if (isFloat(e.dtype)) return data()
    const f = OPS[e.op]
    return result(e, [a, b], f(a.exact, b.exact), f(a.word, b.word))
  }
  /** 0 or 1; both the same but where the compiler's own operations made the difference. */
  const decided = (e: Expr): Both => {
    const v = of(e)
    if (v.data) return same(BigInt(below(2)))
    const [exact, inWord] = [bit(v.exact !== 0n), bit(v.word !== 0n)]
    return v.made ? { exact, word: inWord, data: false, made: true } : same(inWord)
  }
  /** Which way a device goes. */
  const truth = (e: Expr): boolean => {
    const v = decided(e)
    if (v.exact !== v.word) report('condition', e, v)
    return v.word !== 0n
  }
  const value = (e: Expr): void => {
    const v = of(e)
    if (v.made && v.exact !== v.word) report('value', e, v)
  }
  const body = (list: readonly Stmt[]): void => {
    for (const s of list) if (steps++ < MOST && !found) statement(s)
  }
  const statement = (s: Stmt): void => {
    switch (s.kind) {
      case 'for': {
        const v = of(s.extent)
        if (!v.data && v.exact !== v.word) report(`extent of ${s.name}`, s.extent, v)
        const n = v.data ? BigInt(below(3)) : v.exact
        for (const at of new Set([0n, n - 1n, within(n)]))
          if (at >= 0n && at < n) {
            env.set(s.var, same(at))
            body(s.body)
          }
        return
      }
      case 'if':
        body(truth(s.cond) ? s.then : s.else)
        return
      case 'while':
        of(s.cond)
        body(s.body)
        return
      case 'let':
        env.set(s.name, s.lane ? data() : of(s.value))
        lets.set(s.name, s.value)
        return
      case 'store':
        for (const e of s.index) index(e, s.buffer)
        value(s.value)
        memory.delete(s.buffer)
        return
      case 'reduce':
        for (const t of s.targets) of(t)
        for (const e of s.values) value(e)
        for (const t of s.targets) memory.delete(t.buffer)
        return
      case 'instr':
        for (const p of piecesOf(s))
          if (p.kind !== 'value') {
            for (const e of p.index) index(e, p.buffer)
            memory.delete(p.buffer)
          }
        return
      default:
        return
    }
  }
  for (const step of plan.steps) {
    if (step.kind !== 'launch') continue
    steps = 0
    const grid = step.grid.map((e) => {
      const v = of(e)
      if (v.exact !== v.word) report('grid', e, v)
      return v.exact
    })
    if (grid.some((n) => n <= 0n)) continue
    const extents = [...grid, ...step.block.map(BigInt)]
    for (let round = 0; round < 6 && !found; round++) {
      for (const [k, n] of extents.entries())
        env.set(THREAD_AXES[k]!, same(round === 0 ? 0n : round === 1 ? n - 1n : within(n)))
      body(step.body)
    }
  }
  return found
}

const floor = (a: bigint, b: bigint): bigint => {
  if (b === 0n) return 0n
  const q = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q
}
const bit = (x: boolean): bigint => (x ? 1n : 0n)

const OPS: Readonly<Record<BinaryOp, (a: bigint, b: bigint) => bigint>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: floor,
  mod: (a, b) => (b === 0n ? 0n : a - b * floor(a, b)),
  quo: (a, b) => (b === 0n ? 0n : a / b),
  rem: (a, b) => (b === 0n ? 0n : a % b),
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
  lt: (a, b) => bit(a < b),
  le: (a, b) => bit(a <= b),
  gt: (a, b) => bit(a > b),
  ge: (a, b) => bit(a >= b),
  eq: (a, b) => bit(a === b),
  ne: (a, b) => bit(a !== b),
  and: (a, b) => bit(a !== 0n && b !== 0n),
  or: (a, b) => bit(a !== 0n || b !== 0n),
}
