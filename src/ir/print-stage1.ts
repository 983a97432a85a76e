/**
 * Stage I as `.spt` text, the monoids it uses included. Reading it back gives an equivalent kernel; what
 * formats replaced (`reformats`) is not part of the text.
 */
import { unreachable } from '../ast/diagnostic.ts'
import type { Axis } from './axis.ts'
import { type Dtype, isFloat } from './dtype.ts'
import type { Const, Expr } from './expr.ts'
import { asCeildiv, INFIX } from './infix.ts'
import { isBuiltinReducer, type Monoid } from './monoid.ts'
import { decimal } from './rounding.ts'
import type { Buffer1, If1, Iteration, Kernel1, Stmt1 } from './stage1.ts'

const NOT = 3
const COMPARE = 4
const NEG = 7

/** A number; `context` is the type its place gives a literal, if any. Others are written with their type. */
function constText(e: Const, context: Dtype | null): string {
  const { value, dtype } = e
  if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
  const abs = Math.abs(value)
  const word = Number.isNaN(value) ? 'nan' : abs === Number.POSITIVE_INFINITY ? 'inf' : null
  const digits = decimal(abs, dtype)
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  if (dtype === context) return sign + (word ?? digits)
  const whole = isFloat(dtype) && /^\d+$/.test(digits) ? `${digits}.0` : digits
  const text = sign + (word ?? whole)
  return dtype === 'i32' || dtype === 'f32' ? text : `${dtype}(${text})`
}

const typeBy = (other: Expr): Dtype | null => (other.kind === 'const' ? null : other.dtype)

/** One expression of Stage I with the fewest parentheses; `level` is how strongly its surroundings bind. */
export function printExpr1(e: Expr, context: Dtype | null = null, level = 0): string {
  const group = (own: number, text: string): string => (own < level ? `(${text})` : text)
  const list = (xs: readonly Expr[]): string => xs.map((x) => printExpr1(x)).join(', ')
  switch (e.kind) {
    case 'const': {
      const text = constText(e, context)
      return text.startsWith('-') ? group(NEG, text) : text
    }
    case 'var':
      return e.name
    case 'unary':
      return e.op === 'not'
        ? group(NOT, `not ${printExpr1(e.x, null, NOT)}`)
        : group(NEG, `-${printExpr1(e.x, null, NEG + 1)}`)
    case 'binary': {
      const up = asCeildiv(e)
      if (up) return `ceildiv(${list(up)})`
      const left = (at: number): string => printExpr1(e.a, typeBy(e.b), at)
      const right = (at: number): string => printExpr1(e.b, typeBy(e.a), at)
      const infix = INFIX[e.op]
      if (!infix) return `${e.op}(${left(0)}, ${right(0)})`
      const [op, own] = infix
      // Comparisons do not chain.
      return group(own, `${left(own === COMPARE ? own + 1 : own)} ${op} ${right(own + 1)}`)
    }
    case 'call':
      return e.args.length === 2
        ? `${e.fn}(${printExpr1(e.args[0]!, typeBy(e.args[1]!))}, ${printExpr1(e.args[1]!, typeBy(e.args[0]!))})`
        : `${e.fn}(${list(e.args)})`
    case 'select':
      return `select(${printExpr1(e.cond)}, ${printExpr1(e.then, typeBy(e.else))}, ${printExpr1(e.else, typeBy(e.then))})`
    case 'cast':
      return `${e.dtype}(${printExpr1(e.x)})`
    case 'load':
      return `${e.buffer}[${list(e.index)}]`
    case 'builtin':
      return e.axis
    case 'search':
      return `search_${e.method}(${e.buffer}, ${list([e.lo, e.hi, e.value])})`
    default:
      return unreachable(e)
  }
}

export function printAxis(a: Axis): string {
  const flags = 'unique' in a ? `${a.ordered ? '' : ' unordered'}${a.unique ? '' : ' nonunique'}` : ''
  const padding = a.kind === 'sparse_fixed' ? a.padding : undefined
  const more = `${flags}${padding ? ` padded with ${printExpr1(padding)}` : ''}`
  const args = ((): readonly string[] => {
    switch (a.kind) {
      case 'dense_fixed':
        return [...(a.parent === null ? [] : [a.parent]), printExpr1(a.extent)]
      case 'bitmap':
      case 'dense_variable':
        return [a.parent, printExpr1(a.extent)]
      case 'sparse_fixed':
        return [a.parent, printExpr1(a.extent), printExpr1(a.width)]
      case 'sparse_variable':
        return [...(a.parent === null ? [] : [a.parent]), printExpr1(a.extent)]
      case 'fused':
        return a.members
      case 'attached':
        return [a.base, a.parent]
      case 'gathered':
        return [a.base, a.buffer]
    }
  })()
  return `axis ${a.name} = ${a.kind}(${args.join(', ')})${more}`
}

export function printBuffer1(b: Buffer1): string {
  // A fill value takes the type of its buffer.
  const value = constText({ kind: 'const', value: b.fill, dtype: b.dtype }, b.dtype)
  const fill = b.fill === 0 ? '' : ` fill ${value}`
  const accumulate = b.accumulate === b.dtype ? '' : ` accumulate ${b.accumulate}`
  return `buffer ${b.name}: ${b.dtype}[${b.axes.join(', ')}] ${b.role}${fill}${accumulate}`
}

const tuple = (xs: readonly string[]): string => (xs.length === 1 ? xs[0]! : `(${xs.join(', ')})`)

export function printMonoid(m: Monoid): string {
  const side = (vars: Monoid['left']): string => vars[0]!.name.split('.')[0]!
  const fields = m.fields.map((f) => `${f.name}: ${f.dtype}`).join(', ')
  const values = (xs: readonly Expr[]): string => tuple(xs.map((e, k) => printExpr1(e, m.fields[k]!.dtype)))
  return [
    `monoid ${m.name}(${fields}) {`,
    `  identity ${values(m.identity)}`,
    `  combine (${side(m.left)}, ${side(m.right)}) = ${values(m.result)}`,
    '}',
  ].join('\n')
}

/** The first line of an iteration, up to its brace. */
export function printIterationHead(s: Iteration): string {
  const iters = s.iters.map((it) => (it.name === it.axis ? it.name : `${it.name} in ${it.axis}`)).join(', ')
  const kinds = s.iters.length > 0 ? ` as ${s.iters.map((it) => it.kind).join('')}` : ''
  const where =
    s.where.length > 0 ? ` where (${s.where.map((w) => printExpr1(w, null, 3)).join(' and ')})` : ''
  return `iterate ${s.name} [${iters}]${kinds}${where}`
}

function ifBodies(s: If1, indent: string, out: string[]): void {
  body(s.then, `${indent}  `, out)
  const [only] = s.else
  if (only?.kind === 'if' && s.else.length === 1) {
    out.push(`${indent}} else if (${printExpr1(only.cond)}) {`)
    ifBodies(only, indent, out)
    return
  }
  if (s.else.length > 0) {
    out.push(`${indent}} else {`)
    body(s.else, `${indent}  `, out)
  }
  out.push(`${indent}}`)
}

function body(list: readonly Stmt1[], indent: string, out: string[]): void {
  const inner = `${indent}  `
  for (const s of list) {
    switch (s.kind) {
      case 'iterate':
        out.push(`${indent}${printIterationHead(s)} {`)
        body(s.body, inner, out)
        out.push(`${indent}}`)
        break
      case 'if':
        out.push(`${indent}if (${printExpr1(s.cond)}) {`)
        ifBodies(s, indent, out)
        break
      case 'let':
        out.push(`${indent}let ${s.name} = ${printExpr1(s.value)}`)
        break
      case 'assign':
      case 'reduce': {
        const targets = tuple(s.targets.map((t) => printExpr1(t)))
        const values = tuple(
          s.values.map((v, k) => printExpr1(v, v.kind === 'const' ? v.dtype : s.targets[k]!.dtype)),
        )
        const name = s.kind === 'reduce' ? s.reducer.name : ''
        out.push(`${indent}${targets} ${name}= ${values}`)
        break
      }
      default:
        unreachable(s)
    }
  }
}

function monoidsOf(list: readonly Stmt1[], out: Map<string, Monoid>): Map<string, Monoid> {
  for (const s of list) {
    if (s.kind === 'iterate') monoidsOf(s.body, out)
    else if (s.kind === 'if') monoidsOf([...s.then, ...s.else], out)
    else if (s.kind === 'reduce' && !isBuiltinReducer(s.reducer.name)) out.set(s.reducer.name, s.reducer)
  }
  return out
}

/** Statements as text, without a final line break. */
export function printBody1(list: readonly Stmt1[], indent = ''): string {
  const out: string[] = []
  body(list, indent, out)
  return out.join('\n')
}

/** The kernel as text, without a final line break. */
export function print1(kernel: Kernel1): string {
  const params = kernel.params.map((p) => `${p.name}: ${p.kind === 'size' ? 'size' : p.dtype}`).join(', ')
  const monoids = [...monoidsOf(kernel.body, new Map()).values()].map((m) => `${printMonoid(m)}\n\n`)
  return [
    `${monoids.join('')}kernel ${kernel.name}(${params}) {`,
    ...kernel.axes.map((a) => `  ${printAxis(a)}`),
    ...kernel.buffers.map((b) => `  ${printBuffer1(b)}`),
    printBody1(kernel.body, '  '),
    '}',
  ]
    .filter((text) => text !== '')
    .join('\n')
}
