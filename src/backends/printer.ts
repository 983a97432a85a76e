/** Stage III statements and expressions → C-like text. Differences between targets are in their tables. */
import { InternalError, invariant } from '../ast/diagnostic.ts'
import { computeType, type Dtype } from '../ir/dtype.ts'
import { type Expr, type Load, someExpr, substitute, variable } from '../ir/expr.ts'
import type { Buffer, CallPiece, Launch, Let, Reduce, Stmt } from '../ir/loops.ts'
import { isBuiltinReducer } from '../ir/monoid.ts'
import { type BinaryOp, isCompare } from '../ir/ops.ts'
import { isPacked } from '../ir/tiles.ts'
import { type Body, walkStmts } from '../ir/tree.ts'
import { Exact } from './exact.ts'
import { callText, typeText } from './instr-calls.ts'
import type { Mangler } from './mangle.ts'
import type { MatrixUse } from './matrices.ts'
import type { BufferRef, Helpers, Target, VectorRef } from './target.ts'

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

type Text = readonly [text: string, precedence: number]

export interface PrintContext {
  readonly target: Target
  readonly mangler: Mangler
  readonly helpers: Helpers
  /** All buffers of the plan; allocations are added as they are met. */
  readonly buffers: ReadonlyMap<string, Buffer>
  /** How a parameter is spelled inside a kernel. */
  readonly param: (name: string) => string | undefined
  /** The name of a matrix's description, where the target has any. */
  readonly matrix?: (use: MatrixUse) => string
}

export class Printer {
  readonly #c: PrintContext
  readonly #target: Target
  readonly #buffers: Map<string, Buffer>
  readonly #atomic: ReadonlySet<string>
  readonly #vectors: ReadonlySet<string>
  readonly #exact: Exact
  readonly #texts = new WeakMap<Expr, Text>()
  /** Shared-memory allocations met on the way, for targets that declare them at module scope. */
  readonly shared: Buffer[] = []
  /** Declarations of private arrays, for targets that make them at a thread's head. */
  readonly arrays: string[] = []

  /** Vectors by the name of their first element. */
  readonly #loaded = new Map<
    string,
    { readonly names: readonly string[]; readonly dtype: Dtype; readonly temporary: string }
  >()

  constructor(context: PrintContext, launch: Launch) {
    this.#c = context
    this.#target = context.target
    this.#buffers = new Map(context.buffers)
    this.#atomic = atomicBuffers(launch)
    this.#vectors = vectorBuffers(launch)
    this.#exact = new Exact(launch)
  }

  body(list: Body, indent: string): string[] {
    return list.flatMap((s) => this.#statement(s, indent))
  }

  expr(e: Expr): string {
    return this.#print(e)[0]
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

  #statement(s: Stmt, indent: string): string[] {
    const t = this.#target
    const deeper = `${indent}  `
    switch (s.kind) {
      case 'for': {
        const name = this.#c.mangler.name(s.var)
        return [
          `${indent}${t.forHeader(name, this.expr(s.extent))} {`,
          ...this.body(s.body, deeper),
          `${indent}}`,
        ]
      }
      case 'while':
        return [`${indent}${t.whileHeader(this.expr(s.cond))} {`, ...this.body(s.body, deeper), `${indent}}`]
      case 'if': {
        const lines = [`${indent}if (${this.expr(s.cond)}) {`, ...this.body(s.then, deeper)]
        if (s.else.length > 0) lines.push(`${indent}} else {`, ...this.body(s.else, deeper))
        return [...lines, `${indent}}`]
      }
      case 'let':
        return [`${indent}${t.let(this.#c.mangler.name(s.name), computeType(s.dtype), this.#let(s))}`]
      case 'alloc':
        return this.#alloc(s.buffer, indent)
      case 'store':
        return [`${indent}${this.#assign(s.buffer, s.index, s.value)}`]
      case 'reduce':
        return this.#reduce(s).map((l) => indent + l)
      case 'barrier': {
        if (s.lanes && t.laneBarrier) return [indent + t.laneBarrier(s.lanes.among, this.#c.helpers)]
        return [indent + (s.global && t.globalBarrier ? t.globalBarrier : t.barrier)]
      }
      case 'vector_load': {
        const v = this.#vector(s.load)
        const names = s.names.map((n) => this.#c.mangler.name(n))
        this.#loaded.set(s.names[0]!, { names: s.names, dtype: s.load.dtype, temporary: v.temporary })
        return t.loadVector(v, names, this.#c.helpers).map((l) => indent + l)
      }
      case 'vector_store': {
        const v = this.#vector(s.target)
        const values = s.values.map((e) => this.expr(e))
        const lines = s.atomic
          ? t.atomicVector(v, s.atomic, values, this.#c.helpers)
          : t.storeVector(
              v,
              values,
              this.#c.helpers,
              s.values.map((e) => this.#exact.is(e, v.ref.buffer.dtype)),
              this.#copied(s.values, v.ref.buffer),
            )
        return lines.map((l) => indent + l)
      }
      case 'instr':
        return callText(s, t, (p) => this.#piece(p)).map((l) => indent + l)
      case 'fill':
        throw new InternalError('a fill is a launch of its own')
    }
  }

  #vector(first: Load): VectorRef {
    return {
      ref: this.ref(first.buffer),
      index: this.expr(first.index[0]!),
      temporary: this.#c.mangler.unique(`${first.buffer}_vector`),
    }
  }

  /** The vector that these are the elements of, as it was loaded from memory of the same type. */
  #copied(values: readonly Expr[], to: Buffer): string | undefined {
    const [first] = values
    const from = first?.kind === 'var' ? this.#loaded.get(first.name) : undefined
    const same =
      from?.dtype === to.dtype &&
      from.names.length === values.length &&
      values.every((e, k) => e.kind === 'var' && e.name === from.names[k])
    return same ? from.temporary : undefined
  }

  #let(s: Let): string {
    const value = this.expr(s.value)
    if (!s.lane) return value
    return this.#target.exchange(value, computeType(s.dtype), s.lane.xor, s.lane.among, this.#c.helpers)
  }

  /** What the text of an instruction mentions. */
  #piece(p: Exclude<CallPiece, string>): string {
    if (p.kind === 'value') return this.expr(p.value)
    if (p.kind === 'map') {
      invariant(this.#c.matrix, `${this.#target.name} has no descriptions of matrices`)
      return `&${this.#c.matrix(p)}`
    }
    const { name, buffer } = this.ref(p.buffer)
    const index = p.index[0] ? this.expr(p.index[0]) : ''
    const { instructions } = this.#target
    switch (p.kind) {
      case 'name':
        return name
      case 'index':
        return `(${index})`
      case 'slot':
      case 'word':
        return isScalar(buffer) ? name : `${name}[${index}]`
      default:
        invariant(instructions, `${this.#target.name} has no addresses`)
        return instructions[p.kind](name, index)
    }
  }

  #alloc(buffer: Buffer, indent: string): string[] {
    this.#buffers.set(buffer.name, buffer)
    const length = buffer.shape[0]
    invariant(length?.kind === 'const', `the length of ${buffer.name} is not constant`)
    const name = this.#c.mangler.name(buffer.name)
    const { instructions } = this.#target
    const { memory } = buffer
    if (memory?.opaque)
      return [indent + this.#target.objects(name, typeText(memory, this.#target.name), length.value)]
    if (instructions && isPacked(buffer)) return [indent + instructions.packed(name, length.value / 2)]
    if (buffer.scope === 'register') {
      const text = this.#target.register(name, computeType(buffer.dtype), length.value)
      if (!this.#target.arraysAtHead || length.value === 1) return [indent + text]
      this.arrays.push(text)
      return []
    }
    this.shared.push(buffer)
    const text = this.#target.shared(name, buffer.dtype, length.value, sharedAlign(buffer), buffer.name)
    return text === null ? [] : [indent + text]
  }

  #assign(buffer: string, index: readonly Expr[], stored: Expr): string {
    const ref = this.ref(buffer)
    const value = this.expr(stored)
    if (isScalar(ref.buffer)) return `${ref.name} = ${value};`
    const { instructions } = this.#target
    if (instructions && isPacked(ref.buffer)) {
      const { dtype } = ref.buffer
      return instructions.setHalf(ref.name, this.expr(index[0]!), value, dtype, this.#c.helpers)
    }
    if (ref.buffer.scope === 'register') return `${ref.name}[${this.expr(index[0]!)}] = ${value};`
    const exact = this.#exact.is(stored, ref.buffer.dtype)
    return this.#target.store(ref, this.expr(index[0]!), value, this.#c.helpers, exact)
  }

  #reduce(r: Reduce): readonly string[] {
    const t = r.targets[0]
    invariant(r.atomic && t && r.targets.length === 1, 'only atomic updates of one element are left')
    const ref = this.ref(t.buffer)
    const index = this.expr(t.index[0]!)
    const value = this.expr(r.values[0]!)
    const native = isBuiltinReducer(r.reducer.name)
      ? this.#target.atomic(ref, index, r.reducer.name, value, this.#c.helpers)
      : null
    if (native !== null) return [native]
    const combine = (old: string): string => {
      const map = new Map<string, Expr>([
        [r.reducer.left[0]!.name, variable(`@${old}`, computeType(t.dtype))],
        [r.reducer.right[0]!.name, r.values[0]!],
      ])
      return this.expr(substitute(r.reducer.result[0]!, map))
    }
    return this.#target.atomicLoop(ref, index, combine, this.#c.helpers)
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
    switch (e.kind) {
      case 'const': {
        const text = t.literal(e, h)
        return [text, text.startsWith('-') ? UNARY : ATOM]
      }
      case 'var':
        // A name with `@` is the text's own, as it is.
        return [
          e.name.startsWith('@') ? e.name.slice(1) : (this.#c.param(e.name) ?? this.#c.mangler.name(e.name)),
          ATOM,
        ]
      case 'builtin':
        return [t.builtin(e.axis), ATOM]
      case 'unary': {
        const special = e.op === 'neg' ? t.neg(this.#operand(e.x, ATOM), computeType(e.dtype)) : null
        if (special !== null) return [special, ATOM]
        return [(e.op === 'neg' ? '-' : '!') + this.#operand(e.x, UNARY + 1), UNARY]
      }
      case 'binary':
        return this.#binary(e.op, e.a, e.b, e)
      case 'call':
        return [
          t.call(
            e.fn,
            e.args.map((a) => this.expr(a)),
            computeType(e.dtype),
            h,
          ),
          ATOM,
        ]
      case 'select':
        return [t.select(this.expr(e.cond), this.expr(e.then), this.expr(e.else)), ATOM]
      case 'cast':
        // Widening in name only: registers hold the wide value already.
        if (computeType(e.x.dtype) === e.dtype) return this.#print(e.x)
        return [t.cast(this.expr(e.x), e.x.dtype, e.dtype, h), ATOM]
      case 'load': {
        const ref = this.ref(e.buffer)
        if (isScalar(ref.buffer)) return [ref.name, ATOM]
        const index = this.expr(e.index[0]!)
        if (t.instructions && isPacked(ref.buffer))
          return [t.instructions.half(ref.name, index, e.dtype, h), ATOM]
        if (ref.buffer.scope === 'register') return [`${ref.name}[${index}]`, ATOM]
        return [t.load(ref, index, h), ATOM]
      }
      case 'search':
        throw new InternalError('searches are loops by now')
    }
  }

  #binary(op: BinaryOp, a: Expr, b: Expr, e: Expr): Text {
    const dtype = computeType(e.dtype)
    const special = this.#target.binary(
      op,
      this.#operand(a, ATOM),
      this.#operand(b, ATOM),
      dtype,
      computeType(a.dtype),
      this.#mayWrap(e),
      this.#c.helpers,
    )
    if (special !== null) return [special, ATOM]
    invariant(op !== 'min' && op !== 'max', `${this.#target.name} has no operator ${op}`)
    // What is left of div and mod is floating-point.
    const [symbol, p] = op === 'div' ? SYMBOL.quo : op === 'mod' ? SYMBOL.rem : SYMBOL[op]
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

  /** Whether 32-bit arithmetic may leave its range: true of data, never of addresses (plans check their sizes). */
  #mayWrap(e: Expr): boolean {
    if (e.dtype === 'u32') return true
    return someExpr(
      e,
      (x) => x.kind === 'load' && x.dtype !== 'bool' && this.#buffers.get(x.buffer)?.role !== 'index',
    )
  }
}

/** What every shared array is aligned to. */
const SHARED_ALIGN = 16

/** What its memory asks for, if that is more. */
export const sharedAlign = (b: Buffer): number => Math.max(SHARED_ALIGN, b.memory?.align ?? 0)

/** A register buffer of one element is a variable. */
const isScalar = (b: Buffer): boolean =>
  b.scope === 'register' && b.shape[0]?.kind === 'const' && b.shape[0].value === 1

function atomicBuffers(launch: Launch): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(launch.body, (s) => {
    if (s.kind === 'reduce' && s.atomic) for (const t of s.targets) out.add(t.buffer)
    if (s.kind === 'vector_store' && s.atomic) out.add(s.target.buffer)
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
