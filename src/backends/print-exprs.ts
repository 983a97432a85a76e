/** Expressions of Stage III → C-like text. */

import { isPacked } from '../analysis/memory-tiles.ts'
import { InternalError, invariant } from '../ast/diagnostic.ts'
import { writesOf } from '../ir/accesses.ts'
import { computeType, isFloat } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import { someExpr } from '../ir/expr-tree.ts'
import type { Buffer, Launch } from '../ir/loops.ts'
import { type BinaryOp, isCompare } from '../ir/ops.ts'
import { constantsIn } from '../ir/register-constant-folding.ts'
import { type Body, walkStmts } from '../ir/tree.ts'
import { type Values, valuesIn } from '../ir/wrapping-values.ts'
import type { Mangler } from './name-mangling.ts'
import { branches, FirstIterations } from './peeled-iteration-workaround.ts'
import type { BufferRef, Helpers, Spellings } from './spellings.ts'
import type { MatrixUse } from './tensor-map-uses.ts'

const SYMBOL: Readonly<Record<Exclude<BinaryOp, 'min' | 'max' | 'div' | 'mod'>, readonly [string, number]>> =
  {
    or: ['||', 1],
    and: ['&&', 2],
    eq: ['==', 3],
    ne: ['!=', 3],
    lt: ['<', 4],
    le: ['<=', 4],
    gt: ['>', 4],
    ge: ['>=', 4],
    add: ['+', 5],
    sub: ['-', 5],
    mul: ['*', 6],
    quo: ['/', 6],
    rem: ['%', 6],
  }
const UNARY = 7
const ATOM = 9
/** Operators on bits mix with no others without parentheses, only each with itself. */
const EAGER = { and: 0.2, or: 0.1 }

type Text = readonly [text: string, precedence: number]

/** Precedence of a call or a cast: highest, unless the target prints the operand unchanged. */
const unlessItself = (text: string, operands: readonly Text[]): Text =>
  operands.find(([own]) => own === text) ?? [text, ATOM]

export interface PrintContext {
  readonly target: Spellings
  readonly mangler: Mangler
  readonly helpers: Helpers
  /** All buffers of the plan; allocations are added as they are met. */
  readonly buffers: ReadonlyMap<string, Buffer>
  /** Spelling of a parameter inside a kernel. */
  readonly param: (name: string) => string | undefined
  /** The kernel's scalars: parameters that may have any value of their type, as sizes may not. */
  readonly scalars?: ReadonlySet<string>
  /** The name of a matrix's descriptor, on targets that have descriptors. */
  readonly matrix?: (use: MatrixUse) => string
}

export class ExprPrinter {
  readonly #c: PrintContext
  readonly #target: Spellings
  readonly #buffers: Map<string, Buffer>
  readonly #atomic: ReadonlySet<string>
  readonly #vectors: ReadonlySet<string>
  /** Variables that hold data: scalars, and values loaded or computed from data. */
  readonly #data: Set<string>
  /** Expressions computed as values; index expressions are excluded. */
  readonly #values: Values
  readonly #speculative: ReadonlySet<Expr>
  readonly #texts = new WeakMap<Expr, Text>()
  readonly #constant = constantsIn()
  /** First-iteration conditions, on targets that hide them from their compiler. */
  readonly #first: FirstIterations | null

  constructor(context: PrintContext, launch: Launch) {
    this.#c = context
    this.#target = context.target
    this.#buffers = new Map(context.buffers)
    this.#atomic = atomicBuffers(launch)
    this.#vectors = vectorBuffers(launch)
    this.#data = new Set(context.scalars)
    this.#values = valuesIn(launch.body)
    this.#speculative = speculativeIn(launch)
    this.#first = context.target.hidden ? new FirstIterations(launch) : null
    walkStmts(launch.body, (s) => {
      if (s.kind === 'alloc') this.#buffers.set(s.buffer.name, s.buffer)
      if (s.kind === 'let' && this.#mayWrap(s.value)) this.#data.add(s.name)
      if (s.kind === 'vector_load') for (const n of s.names) this.#data.add(n)
    })
  }

  text(e: Expr): string {
    return this.#print(e)[0]
  }

  /** Prints the condition of a branch; hidden from the target's compiler where its workaround applies. */
  condition(cond: Expr, between: readonly (Body | Expr)[]): string {
    const text = this.text(cond)
    const { hidden } = this.#target
    if (!hidden || !this.#first?.tells(cond) || !between.some(branches)) return text
    // What is written to memory meets nowhere.
    const inRegister = (b: string): boolean => this.#buffers.get(b)?.scope === 'register'
    const hasBarrier = between.some((x) => 'kind' in x || [...writesOf(x)].some(inRegister))
    return hasBarrier ? hidden(text, this.#c.helpers) : text
  }

  ref(name: string): BufferRef {
    const buffer = this.#buffers.get(name)
    invariant(buffer, `no buffer ${name}`)
    return {
      name: this.#c.mangler.name(name),
      buffer,
      atomic: this.#atomic.has(name),
      vector: this.#vectors.has(name),
    }
  }

  /** The array if its elements have the width of their type; undefined if each has a register. */
  narrow(ref: BufferRef): BufferRef | undefined {
    if (ref.buffer.scope !== 'register') return ref
    const { instructions } = this.#target
    return instructions && isPacked(ref.buffer) ? { ...ref, name: instructions.halves(ref.name) } : undefined
  }

  /** Each node once: operators look at the texts of their operands more than one time. */
  #print(e: Expr): Text {
    let text = this.#texts.get(e)
    if (!text) {
      text = this.#textOf(e)
      this.#texts.set(e, text)
    }
    return text
  }

  #textOf(e: Expr): Text {
    const t = this.#target
    const h = this.#c.helpers
    const known = this.#constant(e)
    if (known) {
      const text = t.literal(known, h)
      return [text, text.startsWith('-') ? UNARY : ATOM]
    }
    switch (e.kind) {
      case 'const':
        throw new InternalError('constants have values')
      case 'var':
        // A name with `@` is the text's own, as it is.
        return [
          e.name.startsWith('@') ? e.name.slice(1) : (this.#c.param(e.name) ?? this.#c.mangler.name(e.name)),
          ATOM,
        ]
      case 'builtin':
        return [t.builtin(e.axis), ATOM]
      case 'unary': {
        const special = e.op === 'neg' ? t.neg(this.#operand(e.x, ATOM), computeType(e.dtype), h) : null
        if (special !== null) return [special, ATOM]
        return [(e.op === 'neg' ? '-' : '!') + this.#operand(e.x, UNARY + 1), UNARY]
      }
      case 'binary':
        return this.#binary(e.op, e.a, e.b, e)
      case 'call': {
        const operands = e.args.map((a) => this.#print(a))
        const args = operands.map(([text]) => text)
        const [x = '', y = ''] = args
        return unlessItself(t.math[e.fn]({ args, x, y, dtype: computeType(e.dtype), helpers: h }), operands)
      }
      case 'select':
        return [
          t.select(this.condition(e.cond, [e.then, e.else]), this.text(e.then), this.text(e.else)),
          ATOM,
        ]
      case 'cast':
        // Widening in name only: registers hold the wide value already.
        if (computeType(e.x.dtype) === e.dtype) return this.#print(e.x)
        return unlessItself(t.cast(this.text(e.x), e.x.dtype, e.dtype, h), [this.#print(e.x)])
      case 'load': {
        const ref = this.ref(e.buffer)
        if (isScalar(ref.buffer)) return [ref.name, ATOM]
        const index = this.text(e.index[0]!)
        const narrow = this.narrow(ref)
        return [narrow ? t.load(narrow, index, h) : `${ref.name}[${index}]`, ATOM]
      }
      case 'search':
        throw new InternalError('searches are loops by now')
    }
  }

  /** Prints a comparison of an element with 0 as a test of its bits, on targets that support this. */
  #againstZero(op: 'ne' | 'eq', a: Expr, b: Expr): Text | null {
    const element = a.kind === 'cast' && computeType(a.x.dtype) === a.dtype ? a.x : a
    const known = this.#constant(b)
    if (element.kind !== 'load' || known?.value !== 0 || !this.#target.bitsBesideSign) return null
    const ref = this.ref(element.buffer)
    const bits = isScalar(ref.buffer) ? null : this.#target.bitsBesideSign(ref, this.text(element.index[0]!))
    return bits === null ? null : [`${bits} ${SYMBOL[op][0]} 0`, SYMBOL[op][1]]
  }

  #binary(op: BinaryOp, a: Expr, b: Expr, e: Expr): Text {
    const dtype = computeType(e.dtype)
    const tested = op === 'ne' || op === 'eq' ? this.#againstZero(op, a, b) : null
    if (tested) return tested
    const special = this.#target.binary(
      op,
      this.#operand(a, ATOM),
      this.#operand(b, ATOM),
      dtype,
      computeType(a.dtype),
      this.#mayWrap(e)
        ? this.#values.nodes.has(e)
          ? 'value'
          : 'place'
        : this.#speculative.has(e)
          ? 'unused'
          : null,
      this.#c.helpers,
    )
    if (special !== null) return [special, ATOM]
    invariant(op !== 'min' && op !== 'max', `${this.#target.name} has no operator ${op}`)
    // What is left of div and mod is floating-point.
    const [symbol, p] = op === 'div' ? SYMBOL.quo : op === 'mod' ? SYMBOL.rem : SYMBOL[op]
    if (this.#target.eager && (op === 'and' || op === 'or')) {
      const p = EAGER[op]
      const left = this.#print(a)[1] === p ? this.text(a) : this.#operand(a, UNARY)
      return [`${left} ${this.#target.eager[op]} ${this.#operand(b, UNARY)}`, p]
    }
    const mixed = (x: Expr): boolean =>
      x.kind === 'binary' &&
      (op === 'and' || op === 'or' || isCompare(op)) &&
      (x.op === 'and' || x.op === 'or') &&
      x.op !== op
    const side = (x: Expr, least: number): string => this.#operand(x, mixed(x) ? ATOM : least)
    // Operators of equal rank group to the left; comparisons do not chain.
    return [
      `${side(a, isCompare(op) ? SYMBOL.add[1] : p)} ${symbol} ${side(b, isCompare(op) ? SYMBOL.add[1] : op === 'and' || op === 'or' ? p : p + 1)}`,
      p,
    ]
  }

  /** Text of an operand that binds at least as tightly as `least`. */
  #operand(e: Expr, least: number): string {
    const [text, p] = this.#print(e)
    return p >= least ? text : `(${text})`
  }

  /** True if 32-bit arithmetic may overflow: for data and computed values, but not addresses, whose sizes plans check. */
  #mayWrap(e: Expr): boolean {
    if (e.dtype === 'u32' || (e.span && this.#values.spans.has(e.span))) return true
    return someExpr(
      e,
      (x) =>
        (x.kind === 'load' && x.dtype !== 'bool' && this.#buffers.get(x.buffer)?.role !== 'index') ||
        (x.kind === 'var' && this.#data.has(x.name)) ||
        (x.kind === 'cast' && isFloat(x.x.dtype)) ||
        x.kind === 'call',
    )
  }
}

/**
 * Sums and products of named addresses that may leave 32 bits in an iteration that a guard excludes: an address is named ahead of
 * the guard, and rows that a split adds are beyond the buffer.
 */
function speculativeIn(launch: Launch): ReadonlySet<Expr> {
  const out = new Set<Expr>()
  const visit = (e: Expr): boolean => {
    if (e.kind !== 'binary' || e.dtype !== 'i32') return false
    const leaves =
      e.op === 'mul'
        ? e.a.kind !== 'const' && e.b.kind !== 'const'
        : (e.op === 'add' || e.op === 'sub') && [visit(e.a), visit(e.b)].includes(true)
    if (leaves) out.add(e)
    return leaves
  }
  walkStmts(launch.body, (s) => {
    if (s.kind === 'let') visit(s.value)
  })
  return out
}

/** A register buffer of one element is a variable. */
export const isScalar = (b: Buffer): boolean =>
  b.scope === 'register' && b.shape[0]?.kind === 'const' && b.shape[0].value === 1

function atomicBuffers(launch: Launch): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'reduce' && s.atomic) for (const t of s.targets) out.add(t.buffer)
  })
  return out
}

function vectorBuffers(launch: Launch): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'vector_load') out.add(s.load.buffer)
    if (s.kind === 'vector_store') out.add(s.target.buffer)
  })
  return out
}
