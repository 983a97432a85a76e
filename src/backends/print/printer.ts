/** Prints statements of Stage III as C-like source. Differences between targets are in their spelling tables. */

import { type Exact, exactNarrowing } from '../../analysis/exact-narrowing.ts'
import { isPacked } from '../../analysis/instructions/lane-groups.ts'
import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type Expr, type Load, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import type { CallPiece } from '../../ir/instructions/instr-call.ts'
import type { Buffer, Launch, Let, Reduce, Stmt } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { computeType, type Dtype, scalarType } from '../../ir/values/dtype.ts'
import { isBuiltinReducer } from '../../ir/values/monoid.ts'
import { callText, typeText } from './instr-calls.ts'
import { ExprPrinter, isScalar, type PrintContext } from './print-exprs.ts'
import type { BufferRef, Spellings, VectorRef } from './spellings.ts'

export class Printer {
  readonly #c: PrintContext
  readonly #target: Spellings
  readonly #exprs: ExprPrinter
  readonly #exact: Exact
  /** Shared-memory allocations of the printed code, for targets that declare these at module scope. */
  readonly shared: Buffer[] = []
  /** Declarations of private arrays, for targets that declare these at the start of a thread. */
  readonly arrays: string[] = []

  /** Loaded vectors by the name of their first element. */
  readonly #loaded = new Map<
    string,
    { readonly names: readonly string[]; readonly dtype: Dtype; readonly temporary: string }
  >()

  constructor(context: PrintContext, launch: Launch) {
    this.#c = context
    this.#target = context.target
    this.#exprs = new ExprPrinter(context, launch)
    this.#exact = exactNarrowing(launch.body)
  }

  expr(e: Expr): string {
    return this.#exprs.text(e)
  }

  ref(name: string): BufferRef {
    return this.#exprs.ref(name)
  }

  /** Header of a loop over an `index` from 0 to `extent`. */
  forHeader(name: string, extent: Expr): string {
    return (this.#exprs.wide ?? this.#target).forHeader(name, this.expr(extent))
  }

  body(list: Body, indent: string): string[] {
    return list.flatMap((s) => this.#statement(s, indent))
  }

  #statement(s: Stmt, indent: string): string[] {
    const t = this.#target
    const deeper = `${indent}  `
    switch (s.kind) {
      case 'for': {
        const name = this.#c.mangler.name(s.var)
        return [`${indent}${this.forHeader(name, s.extent)} {`, ...this.body(s.body, deeper), `${indent}}`]
      }
      case 'while':
        return [`${indent}${t.whileHeader(this.expr(s.cond))} {`, ...this.body(s.body, deeper), `${indent}}`]
      case 'if': {
        const lines = [
          `${indent}if (${this.#exprs.condition(s.cond, [s.then, s.else])}) {`,
          ...this.body(s.then, deeper),
        ]
        if (s.else.length > 0) lines.push(`${indent}} else {`, ...this.body(s.else, deeper))
        return [...lines, `${indent}}`]
      }
      case 'let':
        return [indent + this.#declaration(this.#c.mangler.name(s.name), s)]
      case 'alloc':
        return this.#alloc(s.buffer, indent)
      case 'store':
        return [`${indent}${this.#assign(s.buffer, s.index, s.value)}`]
      case 'reduce':
        return this.#reduce(s).map((l) => indent + l)
      case 'barrier': {
        if (s.cluster && t.clusterBarrier) return [indent + t.clusterBarrier]
        if (s.lanes && t.laneBarrier) return [indent + t.laneBarrier(s.lanes.among, this.#c.helpers)]
        return [indent + (s.global && t.globalBarrier ? t.globalBarrier : t.barrier)]
      }
      case 'vector_load': {
        const v = this.#vector(s.load, s.names.length)
        const names = s.names.map((n) => this.#c.mangler.name(n))
        this.#loaded.set(s.names[0]!, {
          names: s.names,
          dtype: scalarType(s.load.dtype),
          temporary: v.temporary,
        })
        return t.loadVector(v, names, this.#c.helpers).map((l) => indent + l)
      }
      case 'vector_store': {
        const v = this.#vector(s.target, s.values.length)
        const values = s.values.map((e) => this.expr(e))
        const lines = s.atomic
          ? t.atomicVector(v, s.atomic, values, this.#c.helpers)
          : t.storeVector(
              v,
              values,
              this.#c.helpers,
              s.values.map((e) => this.#exact.is(e, v.ref.buffer.dtype)),
              this.#sourceVector(s.values, v.ref.buffer),
            )
        return lines.map((l) => indent + l)
      }
      case 'instr':
        return callText(s, t, (p) => this.#piece(p)).map((l) => indent + l)
      case 'fill':
        throw new InternalError('a fill is a separate launch')
    }
  }

  #vector(first: Load, width: number): VectorRef {
    const [index] = first.index as [Expr]
    const isCounted = index.kind === 'binary' && index.op === 'mul' && index.b.kind === 'const'
    return {
      ref: this.ref(first.buffer),
      index: this.expr(index),
      ...(isCounted && index.b.value === width && { number: this.expr(index.a) }),
      temporary: this.#c.mangler.unique(`${first.buffer}_vector`),
    }
  }

  /** The loaded vector whose elements are these values, if memory of the same type is the destination. */
  #sourceVector(values: readonly Expr[], destination: Buffer): string | undefined {
    const [first] = values
    const source = first?.kind === 'var' ? this.#loaded.get(first.name) : undefined
    const isSame =
      source?.dtype === destination.dtype &&
      source.names.length === values.length &&
      values.every((e, k) => e.kind === 'var' && e.name === source.names[k])
    return isSame ? source.temporary : undefined
  }

  #declaration(name: string, s: Let): string {
    const { wide } = this.#exprs
    if (wide && s.dtype === 'index') return wide.let(name, this.#let(s))
    return this.#target.let(name, computeType(s.dtype), this.#let(s))
  }

  #let(s: Let): string {
    const value = this.expr(s.value)
    if (s.uniform && this.#target.uniform) return this.#target.uniform(value)
    if (!s.lane) return value
    return this.#target.exchange(value, computeType(s.dtype), s.lane.xor, s.lane.among, this.#c.helpers)
  }

  /** Prints an operand in the source of an instruction. */
  #piece(p: Exclude<CallPiece, string>): string {
    if (p.kind === 'value') return this.#exprs.word(p.value)
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
        return instructions[p.kind](name, index, buffer.dtype)
    }
  }

  #alloc(buffer: Buffer, indent: string): string[] {
    const length = lengthOf(buffer)
    const name = this.#c.mangler.name(buffer.name)
    const { instructions } = this.#target
    const { memory } = buffer
    if (memory?.opaque)
      return [indent + this.#target.objects(name, typeText(memory, this.#target.name), length)]
    if (instructions && isPacked(buffer)) return [indent + instructions.packed(name, length / 2)]
    if (buffer.scope === 'register') {
      const { wide } = this.#exprs
      const text =
        wide && this.#exprs.isIndexRegister(buffer.name)
          ? wide.register(name, length)
          : this.#target.register(name, computeType(buffer.dtype), length)
      if (!this.#target.arraysAtHead || length === 1) return [indent + text]
      this.arrays.push(text)
      return []
    }
    this.shared.push(buffer)
    const text = this.#target.shared(name, buffer.dtype, length, sharedAlign(buffer), buffer.name)
    return text === null ? [] : [indent + text]
  }

  #assign(buffer: string, index: readonly Expr[], stored: Expr): string {
    const ref = this.ref(buffer)
    const { dtype, scope } = ref.buffer
    const { roundRegister: rounded } = this.#target
    const isExact =
      !rounded || scope !== 'register' || this.#exact.is(stored, dtype) || this.#exact.goesOn(buffer, stored)
    const value = isExact ? this.expr(stored) : rounded(this.expr(stored), dtype)
    if (isScalar(ref.buffer)) return `${ref.name} = ${value};`
    const indexText = this.expr(index[0]!)
    const narrowRef = this.#exprs.narrowArray(ref)
    if (!narrowRef) return `${ref.name}[${indexText}] = ${value};`
    return this.#target.store(narrowRef, indexText, value, this.#c.helpers, this.#exact.is(stored, dtype))
  }

  #reduce(r: Reduce): readonly string[] {
    const t = r.targets[0]
    invariant(r.atomic && t && r.targets.length === 1, 'only atomic updates of one element are left')
    const ref = this.ref(t.buffer)
    const index = this.expr(t.index[0]!)
    const value = this.expr(r.values[0]!)
    const nativeText = isBuiltinReducer(r.reducer.name)
      ? this.#target.atomic(ref, index, r.reducer.name, value, this.#c.helpers)
      : null
    if (nativeText !== null) return [nativeText]
    const combine = (old: string): string => {
      const map = new Map<string, Expr>([
        [r.reducer.left[0]!.name, variable(`@${old}`, computeType(t.dtype))],
        [r.reducer.right[0]!.name, r.values[0]!],
      ])
      return this.expr(substitute(r.reducer.result[0]!, map))
    }
    return this.#target.atomicLoop(ref, index, combine, this.#c.helpers)
  }
}

/** Length of an array whose size is constant, in elements. */
export function lengthOf({ name, shape: [length] }: Buffer): number {
  invariant(length?.kind === 'const', `the length of ${name} is not constant`)
  return length.value
}

/** Minimum alignment of shared arrays in bytes. */
const SHARED_ALIGN = 16

/** Alignment of a shared array in bytes: that of its memory if it is larger than the minimum. */
export const sharedAlign = (b: Buffer): number => Math.max(SHARED_ALIGN, b.memory?.align ?? 0)
