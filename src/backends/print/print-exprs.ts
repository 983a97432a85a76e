/** Prints expressions of Stage III as C-like source. */

import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { isWrapping, valuesIn } from '../../ir/expressions/wrapping-values.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, Launch } from '../../ir/statements/loops.ts'
import { type Body, walkStmts } from '../../ir/statements/tree.ts'
import { computeType, isFloat, scalarType } from '../../ir/values/dtype.ts'
import { type BinaryOp, isCompare } from '../../ir/values/math.ts'
import { registerConstantFolder } from '../../ir/values/register-constant-folding.ts'
import type { MatrixUse } from '../launch-uses.ts'
import { atomicBuffers, indexNames, speculativeNodes, vectorBuffers } from './launch-facts.ts'
import { FirstIterations, hasBranch } from './peeled-iteration-workaround.ts'
import { ATOM, EAGER_PRECEDENCE, SYMBOL, type Text, UNARY } from './precedence.ts'
import type { Mangler } from './reserved-words.ts'
import type { BufferRef, Helpers, Spellings, WideIndices, Wraps } from './spellings.ts'

/** Precedence of a call or a cast: highest, unless the target prints the operand unchanged. */
const callPrecedence = (text: string, operands: readonly Text[]): Text =>
  operands.find(([operand]) => operand === text) ?? [text, ATOM]

export interface PrintContext {
  readonly target: Spellings
  readonly mangler: Mangler
  readonly helpers: Helpers
  /** All buffers of the plan; the printer adds allocations. */
  readonly buffers: ReadonlyMap<string, Buffer>
  /** Spelling of a parameter inside a kernel. */
  readonly param: (name: string) => string | undefined
  /** The kernel's scalars: unlike sizes, these may have any value of their type. */
  readonly scalars?: ReadonlySet<string>
  /** Name of a tensor map, on targets with TMA descriptors. */
  readonly matrix?: (use: MatrixUse) => string
  /** Prints expressions of type `index` in 64 bits. */
  readonly wide?: boolean
}

export class ExprPrinter {
  readonly #c: PrintContext
  readonly #target: Spellings
  readonly #buffers: Map<string, Buffer>
  readonly #atomic: ReadonlySet<string>
  readonly #vectors: ReadonlySet<string>
  /** Variables that hold data: scalars, and values loaded or computed from data. */
  readonly #data: Set<string>
  /** Expressions outside of addresses. */
  readonly #values: ReadonlySet<Expr>
  readonly #speculative: ReadonlySet<Expr>
  readonly #texts = new WeakMap<Expr, Text>()
  readonly #constant: ReturnType<typeof registerConstantFolder>
  /** Spellings of `index` expressions in 64 bits; undefined for 32 bits. */
  readonly wide: WideIndices | undefined
  /** Loops and `let`s of type `index`, and registers that are loaded as `index`. */
  readonly #indices: Set<string>
  /** First-iteration conditions, on targets that hide them from their compiler. */
  readonly #first: FirstIterations | null

  constructor(context: PrintContext, launch: Launch) {
    this.#c = context
    this.#target = context.target
    this.wide = context.wide ? context.target.wideIndices : undefined
    this.#constant = registerConstantFolder(!this.wide)
    this.#indices = this.wide ? indexNames(launch) : new Set()
    this.#buffers = new Map(context.buffers)
    this.#atomic = atomicBuffers(launch)
    this.#vectors = vectorBuffers(launch)
    this.#data = new Set(context.scalars)
    this.#values = valuesIn(launch.body)
    this.#speculative = speculativeNodes(launch)
    this.#first = context.target.hideCondition ? new FirstIterations(launch) : null
    walkStmts(launch.body, (s) => {
      if (s.kind === 'alloc') this.#buffers.set(s.buffer.name, s.buffer)
      if (s.kind === 'let' && this.#mayWrap(s.value)) this.#data.add(s.name)
      if (s.kind === 'vector_load') for (const n of s.names) this.#data.add(n)
    })
  }

  text(e: Expr): string {
    return this.#print(e)[0]
  }

  /** Prints an operand of 32 bits. */
  word(e: Expr): string {
    return this.wide && e.dtype === 'index' ? this.wide.toWord(this.text(e)) : this.text(e)
  }

  /** True if a register holds values of type `index`. */
  isIndexRegister(buffer: string): boolean {
    return this.#indices.has(buffer)
  }

  /** Prints the condition of a branch with these `arms`, hidden from the compiler if it triggers the peeling bug. */
  condition(cond: Expr, arms: readonly (Body | Expr)[]): string {
    const text = this.text(cond)
    const { hideCondition: hidden } = this.#target
    if (!hidden || !this.#first?.isFirstIterationTest(cond) || !arms.some(hasBranch)) return text
    // Only values in registers merge after a branch, not values in memory.
    const inRegister = (b: string): boolean => this.#buffers.get(b)?.scope === 'register'
    const hasBarrier = arms.some((x) => 'kind' in x || [...writesOf(x)].some(inRegister))
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

  /** The array if its elements are stored with the width of their type; undefined if each element has a register. */
  narrowArray(ref: BufferRef): BufferRef | undefined {
    if (ref.buffer.scope !== 'register') return ref
    const { instructions } = this.#target
    return instructions && isPacked(ref.buffer) ? { ...ref, name: instructions.halves(ref.name) } : undefined
  }

  /** Memoises texts, because printing an operator reads the texts of its operands several times. */
  #print(e: Expr): Text {
    let text = this.#texts.get(e)
    if (!text) {
      text = (this.wide && e.dtype === 'index' && this.#wideText(e, this.wide)) || this.#textOf(e)
      this.#texts.set(e, text)
    }
    return text
  }

  /** Text of an expression of type `index` in 64 bits; undefined if its operands determine its width. */
  #wideText(e: Expr, wide: WideIndices): Text | undefined {
    const { helpers } = this.#c
    const widened = (operand: Text): Text => {
      const text = wide.fromWord(operand[0])
      return text === operand[0] ? operand : [text, UNARY]
    }
    switch (e.kind) {
      case 'const':
        return [wide.literal(e.value), e.value < 0 ? UNARY : ATOM]
      case 'var':
        return this.#indices.has(e.name) ? undefined : widened(this.#textOf(e))
      case 'load':
        return this.#indices.has(e.buffer) ? undefined : widened(this.#textOf(e))
      case 'builtin':
        return widened(this.#textOf(e))
      case 'unary':
        return [`-${this.#operand(e.x, ATOM)}`, UNARY]
      case 'call': {
        // Bit operations and signs have 32 bits, which the check of ranges ensures.
        const args = e.args.map((x) => this.word(x))
        const [x = '', y = ''] = args
        const text = this.#target.math[e.fn]({ args, x, y, dtype: 'i32', helpers })
        return widened([text, ATOM])
      }
      case 'cast':
        if (e.x.dtype === 'index') return this.#print(e.x)
        if (computeType(e.x.dtype) === 'i32') return widened(this.#print(e.x))
        return widened([this.#target.cast(this.text(e.x), scalarType(e.x.dtype), 'i32', helpers), ATOM])
      default:
        return undefined
    }
  }

  #textOf(e: Expr): Text {
    const t = this.#target
    const h = this.#c.helpers
    const constant = this.#constant(e)
    if (constant) {
      const text = t.literal(constant, h)
      return [text, text.startsWith('-') ? UNARY : ATOM]
    }
    switch (e.kind) {
      case 'const':
        throw new InternalError('constants have values')
      case 'var':
        // A name with `@` is a name of the generated code, and not mangled.
        return [
          e.name.startsWith('@') ? e.name.slice(1) : (this.#c.param(e.name) ?? this.#c.mangler.name(e.name)),
          ATOM,
        ]
      case 'builtin':
        return [t.builtin(e.axis), ATOM]
      case 'unary': {
        const custom = e.op === 'neg' ? t.neg(this.#operand(e.x, ATOM), computeType(e.dtype), h) : null
        if (custom !== null) return [custom, ATOM]
        return [(e.op === 'neg' ? '-' : '!') + this.#operand(e.x, UNARY + 1), UNARY]
      }
      case 'binary':
        return this.#binary(e.op, e.a, e.b, e)
      case 'call': {
        const operands = e.args.map((a) => this.#print(a))
        const args = operands.map(([text]) => text)
        const [x = '', y = ''] = args
        return callPrecedence(t.math[e.fn]({ args, x, y, dtype: computeType(e.dtype), helpers: h }), operands)
      }
      case 'select':
        return [
          t.select(this.condition(e.cond, [e.then, e.else]), this.text(e.then), this.text(e.else)),
          ATOM,
        ]
      case 'cast':
        if (this.wide && e.x.dtype === 'index' && e.dtype === 'i32') return [this.word(e.x), ATOM]
        // Registers already hold the wide value, so the cast is a no-op.
        if (computeType(e.x.dtype) === scalarType(e.dtype)) return this.#print(e.x)
        return callPrecedence(t.cast(this.text(e.x), scalarType(e.x.dtype), scalarType(e.dtype), h), [
          this.#print(e.x),
        ])
      case 'load': {
        const ref = this.ref(e.buffer)
        if (isScalar(ref.buffer)) return [ref.name, ATOM]
        const index = this.text(e.index[0]!)
        const narrowArray = this.narrowArray(ref)
        return [narrowArray ? t.load(narrowArray, index, h) : `${ref.name}[${index}]`, ATOM]
      }
      case 'search':
        throw new InternalError('searches are loops by now')
    }
  }

  /** Prints a comparison of an element with 0 as a test of its bits, on targets that support this. */
  #zeroTest(op: 'ne' | 'eq', a: Expr, b: Expr): Text | null {
    const element = a.kind === 'cast' && computeType(a.x.dtype) === scalarType(a.dtype) ? a.x : a
    const constant = this.#constant(b)
    if (element.kind !== 'load' || constant?.value !== 0 || !this.#target.magnitudeBits) return null
    const ref = this.ref(element.buffer)
    const bits = isScalar(ref.buffer) ? null : this.#target.magnitudeBits(ref, this.text(element.index[0]!))
    return bits === null ? null : [`${bits} ${SYMBOL[op][0]} 0`, SYMBOL[op][1]]
  }

  #binary(op: BinaryOp, a: Expr, b: Expr, e: Expr): Text {
    const dtype = computeType(e.dtype)
    const zeroTest = op === 'ne' || op === 'eq' ? this.#zeroTest(op, a, b) : null
    if (zeroTest) return zeroTest
    const h = this.#c.helpers
    const wraps = this.#wraps(e)
    const [left, right] = [a, b].map((x) => this.#operand(x, ATOM)) as [string, string]
    const custom =
      this.wide && e.dtype === 'index'
        ? this.wide.binary(op, this.#wideOperand(a, left), this.#wideOperand(b, right), wraps, h)
        : this.#target.binary(op, left, right, dtype, computeType(a.dtype), wraps, h)
    if (custom !== null) return [custom, ATOM]
    invariant(op !== 'min' && op !== 'max', `${this.#target.name} has no operator ${op}`)
    // Integer div and mod were lowered, so these are floating-point.
    const [symbol, p] = op === 'div' ? SYMBOL.quo : op === 'mod' ? SYMBOL.rem : SYMBOL[op]
    if (this.#target.eagerOps && (op === 'and' || op === 'or')) {
      const p = EAGER_PRECEDENCE[op]
      const left = this.#print(a)[1] === p ? this.text(a) : this.#operand(a, UNARY)
      return [`${left} ${this.#target.eagerOps[op]} ${this.#operand(b, UNARY)}`, p]
    }
    const needsParens = (x: Expr): boolean =>
      x.kind === 'binary' &&
      (op === 'and' || op === 'or' || isCompare(op)) &&
      (x.op === 'and' || x.op === 'or') &&
      x.op !== op
    const operandText = (x: Expr, minPrecedence: number): string =>
      this.#operand(x, needsParens(x) ? ATOM : minPrecedence)
    // Operators of equal precedence associate to the left; comparisons do not chain.
    return [
      `${operandText(a, isCompare(op) ? SYMBOL.add[1] : p)} ${symbol} ${operandText(b, isCompare(op) ? SYMBOL.add[1] : op === 'and' || op === 'or' ? p : p + 1)}`,
      p,
    ]
  }

  #wraps(e: Expr): Wraps | null {
    if (this.#mayWrap(e)) return isWrapping(e) || this.#values.has(e) ? 'value' : 'place'
    return this.#speculative.has(e) ? 'unused' : null
  }

  #wideOperand(e: Expr, text: string): string {
    return e.dtype === 'index' ? text : `(${this.wide!.fromWord(text)})`
  }

  /** Text of an operand with at least this precedence, parenthesised if necessary. */
  #operand(e: Expr, minPrecedence: number): string {
    const [text, p] = this.#print(e)
    return p >= minPrecedence ? text : `(${text})`
  }

  /** True if 32-bit arithmetic may overflow: on data and values, but not on coordinates, whose ranges are checked before a run. */
  #mayWrap(e: Expr): boolean {
    if (e.dtype === 'u32' || isWrapping(e)) return true
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

/** A register buffer of one element is a variable. */
export const isScalar = (b: Buffer): boolean =>
  b.scope === 'register' && b.shape[0]?.kind === 'const' && b.shape[0].value === 1
