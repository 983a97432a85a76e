/** Prints statements of Stage III as C-like source. Differences between targets are in their spelling tables. */

import { exactNarrowing } from '../../analysis/exact-narrowing.ts'
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
import { exprPrinter, isScalar, type PrintContext } from './print-exprs.ts'
import type { BufferRef, VectorRef } from './spellings.ts'

export type Printer = ReturnType<typeof printerOf>

export function printerOf(context: PrintContext, launch: Launch) {
  /** Shared-memory allocations of the printed code, for targets that declare these at module scope. */
  const shared: Buffer[] = []
  /** Declarations of private arrays, for targets that declare these at the start of a thread. */
  const arrays: string[] = []
  /** Loaded vectors by the name of their first element. */
  const loaded = new Map<
    string,
    { readonly names: readonly string[]; readonly dtype: Dtype; readonly temporary: string }
  >()
  const c = context
  const target = context.target
  const exprs = exprPrinter(context, launch)
  const exact = exactNarrowing(launch.body)
  const expr = (e: Expr): string => exprs.textIn(e)
  const refOf = (name: string): BufferRef => exprs.refText(name)
  /** Header of a loop over an `index` from 0 to `extent`. */
  const forHeader = (name: string, extent: Expr): string =>
    (exprs.wide ?? target).forHeader(name, expr(extent))
  const body = (list: Body, indent: string): string[] => list.flatMap((s) => statement(s, indent))
  const statement = (s: Stmt, indent: string): string[] => {
    const t = target
    const deeper = `${indent}  `
    switch (s.kind) {
      case 'for': {
        const name = c.mangler.name(s.var)
        return [`${indent}${forHeader(name, s.extent)} {`, ...body(s.body, deeper), `${indent}}`]
      }
      case 'while':
        return [`${indent}${t.whileHeader(expr(s.cond))} {`, ...body(s.body, deeper), `${indent}}`]
      case 'if': {
        const lines = [
          `${indent}if (${exprs.condition(s.cond, [s.then, s.else])}) {`,
          ...body(s.then, deeper),
        ]
        if (s.else.length > 0) lines.push(`${indent}} else {`, ...body(s.else, deeper))
        return [...lines, `${indent}}`]
      }
      case 'let':
        return [indent + declaration(c.mangler.name(s.name), s)]
      case 'alloc':
        return alloc(s.buffer, indent)
      case 'store':
        return [`${indent}${assign(s.buffer, s.index, s.value)}`]
      case 'reduce':
        return reduce(s).map((l) => indent + l)
      case 'barrier': {
        if (s.cluster && t.clusterBarrier) return [indent + t.clusterBarrier]
        if (s.lanes && t.laneBarrier) return [indent + t.laneBarrier(s.lanes.among, c.helpers)]
        return [indent + (s.global && t.globalBarrier ? t.globalBarrier : t.barrier)]
      }
      case 'vector_load': {
        const v = vector(s.load, s.names.length)
        const names = s.names.map((n) => c.mangler.name(n))
        loaded.set(s.names[0]!, {
          names: s.names,
          dtype: scalarType(s.load.dtype),
          temporary: v.temporary,
        })
        return t.loadVector(v, names, c.helpers).map((l) => indent + l)
      }
      case 'vector_store': {
        const v = vector(s.target, s.values.length)
        const values = s.values.map((e) => expr(e))
        const lines = s.atomic
          ? t.atomicVector(v, s.atomic, values, c.helpers)
          : t.storeVector(
              v,
              values,
              c.helpers,
              s.values.map((e) => exact.is(e, v.ref.buffer.dtype)),
              sourceVector(s.values, v.ref.buffer),
            )
        return lines.map((l) => indent + l)
      }
      case 'instr':
        return callText(s, t, (p) => piece(p)).map((l) => indent + l)
      case 'fill':
      case 'rounds':
        throw new InternalError(`${s.kind} is outside of launches`)
    }
  }
  const vector = (first: Load, width: number): VectorRef => {
    const [index] = first.index as [Expr]
    const isCounted = index.kind === 'binary' && index.op === 'mul' && index.b.kind === 'const'
    return {
      ref: refOf(first.buffer),
      index: expr(index),
      ...(isCounted && index.b.value === width && { number: expr(index.a) }),
      temporary: c.mangler.unique(`${first.buffer}_vector`),
    }
  }
  /** The loaded vector whose elements are these values, if memory of the same type is the destination. */
  const sourceVector = (values: readonly Expr[], destination: Buffer): string | undefined => {
    const [first] = values
    const source = first?.kind === 'var' ? loaded.get(first.name) : undefined
    const isSame =
      source?.dtype === destination.dtype &&
      source.names.length === values.length &&
      values.every((e, k) => e.kind === 'var' && e.name === source.names[k])
    return isSame ? source.temporary : undefined
  }
  const declaration = (name: string, s: Let): string => {
    const { wide } = exprs
    if (wide && s.dtype === 'index') return wide.let(name, letText(s))
    return target.let(name, computeType(s.dtype), letText(s))
  }
  const letText = (s: Let): string => {
    const value = expr(s.value)
    if (s.uniform && target.uniform) return target.uniform(value)
    if (!s.lane) return value
    return target.exchange(value, computeType(s.dtype), s.lane.xor, s.lane.among, c.helpers)
  }
  /** Prints an operand in the source of an instruction. */
  const piece = (p: Exclude<CallPiece, string>): string => {
    if (p.kind === 'value') return exprs.word(p.value)
    if (p.kind === 'map') {
      invariant(c.matrix, `${target.name} has no descriptions of matrices`)
      return `&${c.matrix(p)}`
    }
    const { name, buffer } = refOf(p.buffer)
    const index = p.index[0] ? expr(p.index[0]) : ''
    const { instructions } = target
    switch (p.kind) {
      case 'name':
        return name
      case 'index':
        return `(${index})`
      case 'slot':
      case 'word':
        return isScalar(buffer) ? name : `${name}[${index}]`
      default:
        invariant(instructions, `${target.name} has no addresses`)
        return instructions[p.kind](name, index, buffer.dtype)
    }
  }
  const alloc = (buffer: Buffer, indent: string): string[] => {
    const length = lengthOf(buffer)
    const name = c.mangler.name(buffer.name)
    const { instructions } = target
    const { memory } = buffer
    if (memory?.opaque) return [indent + target.objects(name, typeText(memory, target.name), length)]
    if (instructions && isPacked(buffer)) return [indent + instructions.packed(name, length / 2)]
    if (buffer.scope === 'register') {
      const { wide } = exprs
      const text =
        wide && exprs.isIndexRegister(buffer.name)
          ? wide.register(name, length)
          : target.register(name, computeType(buffer.dtype), length)
      if (!target.arraysAtHead || length === 1) return [indent + text]
      arrays.push(text)
      return []
    }
    shared.push(buffer)
    const text = target.shared(name, buffer.dtype, length, sharedAlign(buffer), buffer.name)
    return text === null ? [] : [indent + text]
  }
  const assign = (buffer: string, index: readonly Expr[], stored: Expr): string => {
    const ref = refOf(buffer)
    const { dtype, scope } = ref.buffer
    const { roundRegister: rounded } = target
    const isExact =
      !rounded || scope !== 'register' || exact.is(stored, dtype) || exact.goesOn(buffer, stored)
    const value = isExact ? expr(stored) : rounded(expr(stored), dtype)
    if (isScalar(ref.buffer)) return `${ref.name} = ${value};`
    const indexText = expr(index[0]!)
    const narrowRef = exprs.narrowed(ref)
    if (!narrowRef) return `${ref.name}[${indexText}] = ${value};`
    return target.store(narrowRef, indexText, value, c.helpers, exact.is(stored, dtype))
  }
  const reduce = (r: Reduce): readonly string[] => {
    const t = r.targets[0]
    invariant(r.atomic && t && r.targets.length === 1, 'only atomic updates of one element are left')
    const ref = refOf(t.buffer)
    const index = expr(t.index[0]!)
    const value = expr(r.values[0]!)
    const nativeText = isBuiltinReducer(r.reducer.name)
      ? target.atomic(ref, index, r.reducer.name, value, c.helpers)
      : null
    if (nativeText !== null) return [nativeText]
    const combine = (old: string): string => {
      const map = new Map<string, Expr>([
        [r.reducer.left[0]!.name, variable(`@${old}`, computeType(t.dtype))],
        [r.reducer.right[0]!.name, r.values[0]!],
      ])
      return expr(substitute(r.reducer.result[0]!, map))
    }
    return target.atomicLoop(ref, index, combine, c.helpers)
  }
  return { shared, arrays, expr, refOf, forHeader, body }
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
