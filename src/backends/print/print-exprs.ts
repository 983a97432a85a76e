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

export function exprPrinter(context: PrintContext, launch: Launch) {
  const textIn = (e: Expr): string => print(e)[0]
  /** Prints an operand of 32 bits. */
  const word = (e: Expr): string => (wide && e.dtype === 'index' ? wide.toWord(textIn(e)) : textIn(e))
  /** True if a register holds values of type `index`. */
  const isIndexRegister = (buffer: string): boolean => indices.has(buffer)
  /** Prints the condition of a branch with these `arms`, hidden from the compiler if it triggers the peeling bug. */
  const condition = (cond: Expr, arms: readonly (Body | Expr)[]): string => {
    const text = textIn(cond)
    const { hideCondition: hidden } = target
    if (!hidden || !first?.isFirstIterationTest(cond) || !arms.some(hasBranch)) return text
    // Only values in registers merge after a branch, not values in memory.
    const inRegister = (b: string): boolean => buffers.get(b)?.scope === 'register'
    const hasBarrier = arms.some((x) => 'kind' in x || [...writesOf(x)].some(inRegister))
    return hasBarrier ? hidden(text, c.helpers) : text
  }
  const refText = (name: string): BufferRef => {
    const buffer = buffers.get(name)
    invariant(buffer, `no buffer ${name}`)
    return {
      name: c.mangler.name(name),
      buffer,
      atomic: atomic.has(name),
      vector: vectors.has(name),
    }
  }
  /** The array if its elements are stored with the width of their type; undefined if each element has a register. */
  const narrowed = (ref: BufferRef): BufferRef | undefined => {
    if (ref.buffer.scope !== 'register') return ref
    const { instructions } = target
    return instructions && isPacked(ref.buffer) ? { ...ref, name: instructions.halves(ref.name) } : undefined
  }
  /** Memoises texts, because printing an operator reads the texts of its operands several times. */
  const print = (e: Expr): Text => {
    let text = texts.get(e)
    if (!text) {
      text = (wide && e.dtype === 'index' && wideText(e, wide)) || textOf(e)
      texts.set(e, text)
    }
    return text
  }
  /** Text of an expression of type `index` in 64 bits; undefined if its operands determine its width. */
  const wideText = (e: Expr, wide: WideIndices): Text | undefined => {
    const { helpers } = c
    const widened = (operand: Text): Text => {
      const text = wide.fromWord(operand[0])
      return text === operand[0] ? operand : [text, UNARY]
    }
    switch (e.kind) {
      case 'const':
        return [wide.literal(e.value), e.value < 0 ? UNARY : ATOM]
      case 'var':
        return indices.has(e.name) ? undefined : widened(textOf(e))
      case 'load':
        return indices.has(e.buffer) ? undefined : widened(textOf(e))
      case 'builtin':
        return widened(textOf(e))
      case 'unary':
        return [`-${operandOf(e.x, ATOM)}`, UNARY]
      case 'call': {
        // Bit operations and signs have 32 bits, which the check of ranges ensures.
        const args = e.args.map((x) => word(x))
        const [x = '', y = ''] = args
        const text = target.math[e.fn]({ args, x, y, dtype: 'i32', helpers })
        return widened([text, ATOM])
      }
      case 'cast':
        if (e.x.dtype === 'index') return print(e.x)
        if (computeType(e.x.dtype) === 'i32') return widened(print(e.x))
        return widened([target.cast(textIn(e.x), scalarType(e.x.dtype), 'i32', helpers), ATOM])
      default:
        return undefined
    }
  }
  const textOf = (e: Expr): Text => {
    const t = target
    const h = c.helpers
    const constant = constantText(e)
    if (constant) {
      const text = t.literal(constant, h)
      return [text, text.startsWith('-') ? UNARY : ATOM]
    }
    switch (e.kind) {
      case 'const':
        throw new InternalError('constants have values')
      case 'var':
        // A name with `@` is a name of the generated code, and not mangled.
        return [e.name.startsWith('@') ? e.name.slice(1) : (c.param(e.name) ?? c.mangler.name(e.name)), ATOM]
      case 'builtin':
        return [t.builtin(e.axis), ATOM]
      case 'unary': {
        const custom = e.op === 'neg' ? t.neg(operandOf(e.x, ATOM), computeType(e.dtype), h) : null
        if (custom !== null) return [custom, ATOM]
        return [(e.op === 'neg' ? '-' : '!') + operandOf(e.x, UNARY + 1), UNARY]
      }
      case 'binary':
        return binary(e.op, e.a, e.b, e)
      case 'call': {
        const operands = e.args.map((a) => print(a))
        const args = operands.map(([text]) => text)
        const [x = '', y = ''] = args
        return callPrecedence(t.math[e.fn]({ args, x, y, dtype: computeType(e.dtype), helpers: h }), operands)
      }
      case 'select':
        return [t.select(condition(e.cond, [e.then, e.else]), textIn(e.then), textIn(e.else)), ATOM]
      case 'cast':
        if (wide && e.x.dtype === 'index' && e.dtype === 'i32') return [word(e.x), ATOM]
        // Registers already hold the wide value, so the cast is a no-op.
        if (computeType(e.x.dtype) === scalarType(e.dtype)) return print(e.x)
        return callPrecedence(t.cast(textIn(e.x), scalarType(e.x.dtype), scalarType(e.dtype), h), [
          print(e.x),
        ])
      case 'load': {
        const ref = refText(e.buffer)
        if (isScalar(ref.buffer)) return [ref.name, ATOM]
        const index = textIn(e.index[0]!)
        const narrowArray = narrowed(ref)
        return [narrowArray ? t.load(narrowArray, index, h) : `${ref.name}[${index}]`, ATOM]
      }
      case 'search':
        throw new InternalError('searches are loops by now')
    }
  }
  /** Prints a comparison of an element with 0 as a test of its bits, on targets that support this. */
  const zeroTestText = (op: 'ne' | 'eq', a: Expr, b: Expr): Text | null => {
    const element = a.kind === 'cast' && computeType(a.x.dtype) === scalarType(a.dtype) ? a.x : a
    const constant = constantText(b)
    if (element.kind !== 'load' || constant?.value !== 0 || !target.magnitudeBits) return null
    const ref = refText(element.buffer)
    const bits = isScalar(ref.buffer) ? null : target.magnitudeBits(ref, textIn(element.index[0]!))
    return bits === null ? null : [`${bits} ${SYMBOL[op][0]} 0`, SYMBOL[op][1]]
  }
  const binary = (op: BinaryOp, a: Expr, b: Expr, e: Expr): Text => {
    const dtype = computeType(e.dtype)
    const zeroTest = op === 'ne' || op === 'eq' ? zeroTestText(op, a, b) : null
    if (zeroTest) return zeroTest
    const h = c.helpers
    const wraps = wrapsHere(e)
    const [left, right] = [a, b].map((x) => operandOf(x, ATOM)) as [string, string]
    const custom =
      wide && e.dtype === 'index'
        ? wide.binary(op, wideOperand(a, left), wideOperand(b, right), wraps, h)
        : target.binary(op, left, right, dtype, computeType(a.dtype), wraps, h)
    if (custom !== null) return [custom, ATOM]
    invariant(op !== 'min' && op !== 'max', `${target.name} has no operator ${op}`)
    // Integer div and mod were lowered, so these are floating-point.
    const [symbol, p] = op === 'div' ? SYMBOL.quo : op === 'mod' ? SYMBOL.rem : SYMBOL[op]
    if (target.eagerOps && (op === 'and' || op === 'or')) {
      const p = EAGER_PRECEDENCE[op]
      const left = print(a)[1] === p ? textIn(a) : operandOf(a, UNARY)
      return [`${left} ${target.eagerOps[op]} ${operandOf(b, UNARY)}`, p]
    }
    const needsParens = (x: Expr): boolean =>
      x.kind === 'binary' &&
      (op === 'and' || op === 'or' || isCompare(op)) &&
      (x.op === 'and' || x.op === 'or') &&
      x.op !== op
    const operandText = (x: Expr, minPrecedence: number): string =>
      operandOf(x, needsParens(x) ? ATOM : minPrecedence)
    // Operators of equal precedence associate to the left; comparisons do not chain.
    return [
      `${operandText(a, isCompare(op) ? SYMBOL.add[1] : p)} ${symbol} ${operandText(b, isCompare(op) ? SYMBOL.add[1] : op === 'and' || op === 'or' ? p : p + 1)}`,
      p,
    ]
  }
  const wrapsHere = (e: Expr): Wraps | null => {
    if (mayWrap(e)) return isWrapping(e) || values.has(e) ? 'value' : 'place'
    return speculative.has(e) ? 'unused' : null
  }
  const wideOperand = (e: Expr, text: string): string =>
    e.dtype === 'index' ? text : `(${wide!.fromWord(text)})`
  /** Text of an operand with at least this precedence, parenthesised if necessary. */
  const operandOf = (e: Expr, minPrecedence: number): string => {
    const [text, p] = print(e)
    return p >= minPrecedence ? text : `(${text})`
  }
  /** True if 32-bit arithmetic may overflow: on data and values, but not on coordinates, whose ranges are checked before a run. */
  const mayWrap = (e: Expr): boolean => {
    if (e.dtype === 'u32' || isWrapping(e)) return true
    return someExpr(
      e,
      (x) =>
        (x.kind === 'load' && x.dtype !== 'bool' && buffers.get(x.buffer)?.role !== 'index') ||
        (x.kind === 'var' && data.has(x.name)) ||
        (x.kind === 'cast' && isFloat(x.x.dtype)) ||
        x.kind === 'call',
    )
  }
  const texts = new WeakMap<Expr, Text>()
  const c = context
  const target = context.target
  /** Spellings of `index` expressions in 64 bits; undefined for 32 bits. */
  const wide = context.wide ? context.target.wideIndices : undefined
  const constantText = registerConstantFolder(!wide)
  /** Loops and `let`s of type `index`, and registers that are loaded as `index`. */
  const indices = wide ? indexNames(launch) : new Set()
  const buffers = new Map(context.buffers)
  const atomic = atomicBuffers(launch)
  const vectors = vectorBuffers(launch)
  /** Variables that hold data: scalars, and values loaded or computed from data. */
  const data = new Set(context.scalars)
  /** Expressions outside of addresses. */
  const values = valuesIn(launch.body)
  const speculative = speculativeNodes(launch)
  /** First-iteration conditions, on targets that hide them from their compiler. */
  const first = context.target.hideCondition ? new FirstIterations(launch) : null
  walkStmts(launch.body, (s) => {
    if (s.kind === 'alloc') buffers.set(s.buffer.name, s.buffer)
    if (s.kind === 'let' && mayWrap(s.value)) data.add(s.name)
    if (s.kind === 'vector_load') for (const n of s.names) data.add(n)
  })
  return { wide, textIn, word, isIndexRegister, condition, refText, narrowed }
}

/** A register buffer of one element is a variable. */
export const isScalar = (b: Buffer): boolean =>
  b.scope === 'register' && b.shape[0]?.kind === 'const' && b.shape[0].value === 1
