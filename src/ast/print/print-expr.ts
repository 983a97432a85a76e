/** Expressions as layout documents, with parentheses only if the grammar needs them. */
import type { AsPart, Call, Expr, For, FormatUse, NumberLit } from '../nodes/nodes.ts'
import { INFIX, LEVEL } from '../nodes/nodes-exprs.ts'
import { bracketList, commaSeparated, type Doc, group, line, nest, softline } from './layout-document.ts'

function levelOf(e: Expr): number {
  if (e.kind === 'binary') return INFIX[e.op][1]
  if (e.kind === 'unary') return e.op === 'not' ? LEVEL.not : LEVEL.negation
  return LEVEL.primary
}

/** `e`, in parentheses if it binds less tightly than `level`. */
function atLevel(level: number, e: Expr): Doc {
  return levelOf(e) < level ? group('(', nest(exprDoc(e)), ')') : exprDoc(e)
}

/** An operand that binds like a name: every compound expression is in parentheses. */
export const primaryDoc = (e: Expr): Doc => atLevel(LEVEL.primary, e)

function numberText({ value, float }: NumberLit): string {
  if (value === Number.POSITIVE_INFINITY) return 'inf'
  if (Number.isNaN(value)) return 'nan'
  const text = String(value)
  return float && /^\d+$/.test(text) ? `${text}.0` : text
}

export function exprDoc(e: Expr): Doc {
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

export const useDoc = ({ format, args }: FormatUse): Doc =>
  args.length === 0 ? format.name : bracketList(`${format.name}(`, args.map(exprDoc), ')')
export const whereDoc = (e: Expr | null): Doc => (e ? [' where (', exprDoc(e), ')'] : '')

/** The parts of a composition on one line, as in a schedule: `blocks(16) where (…) + rows`. */
export const partsDoc = (parts: readonly AsPart[]): Doc =>
  group(nest(...parts.map((a, k): Doc => [k === 0 ? '' : [line, '+ '], useDoc(a), whereDoc(a.where)])))

/** ` for k from 1 to 2`. */
export const forDoc = ({ name, from, to }: For): Doc => [
  ` for ${name.name} from `,
  exprDoc(from),
  to ? [' to ', exprDoc(to)] : '',
]

/** `f(a, b by c)`. Without operands, `by -x` would parse as a difference, so the first group is in parentheses. */
function queryDoc({ fn, args }: Call, by: readonly Expr[]): Doc {
  const [first, ...otherGroups] = by.map(exprDoc)
  const needsParentheses = args.length === 0 && by[0] !== undefined && beginsWithMinus(by[0])
  const groups: Doc = [
    needsParentheses ? ['by (', first ?? '', ')'] : ['by ', first ?? ''],
    ...otherGroups.map((d) => [',', line, d]),
  ]
  const operands: Doc = args.length === 0 ? '' : [commaSeparated(args.map(exprDoc)), line]
  return group(`${fn.name}(`, nest(softline, operands, groups), softline, ')')
}

function beginsWithMinus(e: Expr): boolean {
  return e.kind === 'unary' ? e.op === 'neg' : e.kind === 'binary' && beginsWithMinus(e.a)
}

/** `value`, or `value ^ power`. */
export const widthDoc = (value: Expr, power: Expr | null): Doc =>
  power ? [atLevel(LEVEL.primary, value), '^', atLevel(LEVEL.primary, power)] : exprDoc(value)

/** `a + b - c`: operands of one level side by side; lines may break before any operator. */
function chainDoc(e: Expr & { kind: 'binary' }): Doc {
  const [, level] = INFIX[e.op]
  const tail: Doc[] = []
  let first: Expr = e
  for (; first.kind === 'binary' && INFIX[first.op][1] === level; first = first.a) {
    tail.unshift([line, `${INFIX[first.op][0]} `, atLevel(level + 1, first.b)])
    if (level === LEVEL.compare) {
      first = first.a
      break
    }
  }
  return group(atLevel(level === LEVEL.compare ? level + 1 : level, first), nest(...tail))
}
