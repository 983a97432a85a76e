/** Layout documents of expressions, with parentheses only if the grammar needs them, and of parts of declarations. */

import { operandsOf } from '../nodes/axis-kinds.ts'
import type * as ast from '../nodes/nodes.ts'
import { INFIX, LEVEL } from '../nodes/nodes-exprs.ts'
import type { Doc } from './layout-document.ts'
import {
  bracketList,
  commaSeparated,
  group,
  layout,
  line,
  nest,
  separated,
  softline,
} from './layout-document.ts'

function levelOf(e: ast.Expr): number {
  if (e.kind === 'binary') return INFIX[e.op][1]
  if (e.kind === 'unary') return e.op === 'not' ? LEVEL.not : LEVEL.negation
  return LEVEL.primary
}

/** `e`, in parentheses if it binds less tightly than `level`. */
function atLevel(level: number, e: ast.Expr): Doc {
  return levelOf(e) < level ? group('(', nest(exprDoc(e)), ')') : exprDoc(e)
}

/** An operand that binds like a name: every compound expression is in parentheses. */
export const primaryDoc = (e: ast.Expr): Doc => atLevel(LEVEL.primary, e)

function numberText({ value, float }: ast.NumberLit): string {
  if (value === Number.POSITIVE_INFINITY) return 'inf'
  if (Number.isNaN(value)) return 'nan'
  const text = String(value)
  return float && /^\d+$/.test(text) ? `${text}.0` : text
}

export function exprDoc(e: ast.Expr): Doc {
  switch (e.kind) {
    case 'number':
      return numberText(e)
    case 'bool':
      return String(e.value)
    case 'name':
      return e.name
    case 'field':
      return `${e.object.name}.${e.field.name}`
    case 'access':
      return bracketList(`${e.buffer.name}[`, e.index.map(exprDoc), ']')
    case 'call':
      if (e.by) return queryDoc(e, e.by)
      return bracketList(
        `${e.fn.name}(`,
        [...e.args.map(exprDoc), ...(e.parts ? [partsDoc(e.parts)] : [])],
        ')',
      )
    case 'unary':
      // `-(-x)`: two adjacent signs would be hard to read.
      return e.op === 'not'
        ? ['not ', atLevel(LEVEL.not, e.x)]
        : ['-', atLevel(e.x.kind === 'unary' ? LEVEL.primary : LEVEL.negation, e.x)]
    case 'binary':
      return chainDoc(e)
    case 'spread':
      return `${e.list.name}...`
    case 'repeat':
      return [atLevel(beginsWithMinus(e.value) ? LEVEL.primary : LEVEL.or, e.value), forDoc(e.each)]
  }
}

export const useDoc = ({ format, args }: ast.FormatUse): Doc =>
  args.length === 0 ? format.name : bracketList(`${format.name}(`, args.map(exprDoc), ')')
/** An optional expression behind a word: ` aligned 16`. */
export const after = (word: string, e: ast.Expr | null | undefined): Doc => (e ? [word, exprDoc(e)] : '')
export const whereDoc = (e: ast.Expr | null): Doc => (e ? [' where (', exprDoc(e), ')'] : '')

/** The parts of a composition on one line, as in a schedule: `blocks(16) where (…) + rows`. */
export const partsDoc = (parts: readonly ast.AsPart[]): Doc =>
  group(nest(separated(parts, [line, '+ '], (a) => [useDoc(a), whereDoc(a.where)])))

/** ` for k from 1 to 2`. */
const forDoc = ({ name, from, to }: ast.For): Doc => [
  ` for ${name.name} from `,
  exprDoc(from),
  after(' to ', to),
]

/** `f(a, b by c)`. Without operands, `by -x` would parse as a difference, so the first group is in parentheses. */
function queryDoc({ fn, args }: ast.Call, by: readonly ast.Expr[]): Doc {
  const operands: Doc = args.length === 0 ? '' : [commaSeparated(exprs(args)), line]
  const groups = by.map(
    (e, k): Doc => (args.length === 0 && k === 0 && beginsWithMinus(e) ? ['(', exprDoc(e), ')'] : exprDoc(e)),
  )
  return group(`${fn.name}(`, nest(softline, operands, 'by ', commaSeparated(groups)), softline, ')')
}

function beginsWithMinus(e: ast.Expr): boolean {
  return e.kind === 'unary' ? e.op === 'neg' : e.kind === 'binary' && beginsWithMinus(e.a)
}

/** `value`, or `value ^ power`. */
export const widthDoc = (value: ast.Expr, power: ast.Expr | null): Doc =>
  power ? [atLevel(LEVEL.primary, value), '^', atLevel(LEVEL.primary, power)] : exprDoc(value)

/** `a + b - c`: operands of one level side by side; lines may break before any operator. */
function chainDoc(e: ast.Expr & { kind: 'binary' }): Doc {
  const [, level] = INFIX[e.op]
  const tail: Doc[] = []
  let first: ast.Expr = e
  for (; first.kind === 'binary' && INFIX[first.op][1] === level; first = first.a) {
    tail.unshift([line, `${INFIX[first.op][0]} `, atLevel(level + 1, first.b)])
    if (level === LEVEL.compare) {
      first = first.a
      break
    }
  }
  return group(atLevel(level === LEVEL.compare ? level + 1 : level, first), nest(...tail))
}

// Layout documents shared by several declarations: names, tuples, axes.

export const names = (list: readonly ast.Ident[]): string[] => list.map((n) => n.name)
export const tuple = (list: readonly Doc[]): Doc => bracketList('(', list, ')')
/** `(…)`, or nothing for an empty list. */
export const optional = (list: readonly Doc[]): Doc => (list.length === 0 ? '' : tuple(list))
export const exprs = (list: readonly ast.Expr[]): Doc[] => list.map(exprDoc)

/** One value bare, several as a tuple. */
export const values = (list: readonly ast.Expr[]): Doc =>
  list.length === 1 ? exprDoc(list[0]!) : tuple(exprs(list))

/** The neighbours of `list[k]` of the same kind, without a blank line or comment line between them. */
export function alignedPeers<
  T extends { readonly kind: string; readonly trivia?: ast.Trivia | undefined },
  M extends T,
>(list: readonly T[], k: number): M[] {
  const isSeparated = (n: T): boolean => Boolean(n.trivia?.blank || n.trivia?.before)
  const kind = list[k]!.kind
  let start = k
  while (start > 0 && !isSeparated(list[start]!) && list[start - 1]!.kind === kind) start--
  let end = k + 1
  while (end < list.length && list[end]!.kind === kind && !isSeparated(list[end]!)) end++
  return list.slice(start, end) as M[]
}

/** The text of the only item of a body, unless it has comments. */
export function single<T extends { readonly trivia?: ast.Trivia | undefined }>(
  body: readonly T[],
  doc: (item: T) => Doc | undefined,
): Doc | undefined {
  const [only, second] = body
  return only && !second && !only.trivia?.before && !only.trivia?.after ? doc(only) : undefined
}

export const maxLength = (texts: readonly string[]): number => Math.max(...texts.map((t) => t.length))

/** `o`, or `o[k]`. */
export const elementText = ({ name, index }: ast.Element): string =>
  index ? `${name}[${layout(exprDoc(index), 0, Number.POSITIVE_INFINITY)}]` : name

export const listNames = (list: readonly ast.ListName[]): string[] =>
  list.map((n) => (n.all ? `${n.name}...` : n.name))

/** `<f16, bf16>`, or nothing for an empty list. */
export const typeList = (types: readonly string[]): string =>
  types.length === 0 ? '' : `<${types.join(', ')}>`

/** `kernel<f16 or bf16>` */
export const kernelText = (kernel: ast.Ident, types: ast.KernelSchedule['types']): string =>
  kernel.name + typeList(types.map((t) => names(t).join(' or ')))

/** `schedule kernel<types>.name(params)` */
export function scheduleHead({ kernel, types, name, params }: ast.KernelSchedule): Doc {
  return [`schedule ${kernelText(kernel, types)}.${name.name}`, optional(params.map(paramDoc))]
}

/** `schedule name(params) -> (results)` */
export const functionHead = ({ name, params, results }: ast.ScheduleFunction): Doc => [
  `schedule ${name.name}`,
  tuple(params.map(paramDoc)),
  resultsDoc(results),
]

const paramDoc = ({ name, kind, default: value }: ast.ScheduleParam): Doc => [
  kind === 'size' ? name.name : `${name.name}: ${kind}`,
  after(' = ', value),
]
const resultsDoc = (results: readonly ast.Ident[]): Doc =>
  results.length === 0 ? '' : [' -> ', tuple(names(results))]

/** `name(args) -> (results)`, after `use` */
/** `name = value`, or `value`. */
export const namedArgDoc = ({ name, value }: ast.NamedArg<ast.UseArgument>): Doc => [
  name ? `${name.name} = ` : '',
  value.kind === 'group' ? useGroupDoc(value.items) : exprDoc(value),
]

export const callDoc = ({ kernel, schedule, args, results, at }: ast.UsedCall): Doc => [
  kernel ? `${kernel.name}.` : '',
  schedule.name,
  optional(args.map(namedArgDoc)),
  resultsDoc(results),
  at ? ` at ${at.name}` : '',
]

/** `(a, b).i`, or `(a.i, b.j)` */
function useGroupDoc(items: readonly ast.Expr[]): Doc {
  const fields = items.flatMap((e) => (e.kind === 'field' ? [e] : []))
  const name = fields[0]?.field.name
  const inNests = fields.length === items.length && fields.every((f) => f.field.name === name)
  return inNests ? [tuple(fields.map((f) => f.object.name)), `.${name}`] : tuple(exprs(items))
}

export function axisDoc(a: ast.AxisDecl, peers: readonly ast.AxisDecl[]): Doc {
  const name = elementText(a.name).padEnd(maxLength(peers.map((x) => elementText(x.name))))
  const claims = a.claims.map((c) => ` ${c.name}`)
  const head = `${a.list ? 'list' : 'axis'} ${name} = `
  const options = [after(' padded with ', a.padding), after(' packed ', a.packed)]
  return [head, axisDefDoc(a.def), ...claims, options, a.each ? forDoc(a.each) : '']
}

function axisDefDoc(d: ast.AxisDef): Doc {
  const operands = operandsOf(d).flatMap((o): Doc[] => {
    if (o.kind === 'axes') return names(o.value)
    if (o.kind === 'size') return [exprDoc(o.value)]
    return o.value ? [elementText(o.value)] : []
  })
  const doc = bracketList(`${d.kind}(`, operands, ')')
  return 'ordered' in d ? [doc, modifiers(d)] : doc
}

const modifiers = (d: { readonly ordered: boolean; readonly unique: boolean }): string =>
  (d.ordered ? '' : ' unordered') + (d.unique ? '' : ' nonunique')
