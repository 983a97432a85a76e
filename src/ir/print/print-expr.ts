/** Expressions and queries as text, in the language's spelling and with the fewest parentheses: one printer (by precedence) for all stages. */
import { unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { INFIX, LEVEL } from '../../ast/nodes/nodes-exprs.ts'
import { type Const, type Expr, variable } from '../expressions/expr.ts'
import { mentions, rewriteExpr } from '../expressions/expr-tree.ts'
import { matcher } from '../expressions/patterns.ts'
import type { FormatInstance } from '../formats/format.ts'
import { asFields, declarationOf, mapQuery, type Query, sourceOf } from '../formats/queries.ts'
import { type ExprType, isFloat, isWord, scalarType } from '../values/dtype.ts'
import { decimal } from '../values/half.ts'
import type { BinaryOp } from '../values/math.ts'

type Numeral = Pick<Const, 'value' | 'dtype'>

/** The spelling of numbers; `context` is the type that the surrounding expression gives to a literal, if any. */
type ConstantText = (e: Numeral, context: ExprType | null) => string

/** A number without its type. */
export function plainConstant({ value, dtype }: Numeral): string {
  if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
  return decimal(value, scalarType(dtype))
}

/** A number that parses back with its type, either from its context or through an explicit cast. */
export function typedConstant({ value, dtype }: Numeral, context: ExprType | null): string {
  const sign = dtype !== 'bool' && (value < 0 || Object.is(value, -0)) ? '-' : ''
  const digits = plainConstant({ value: sign ? -value : value, dtype })
  if (dtype === context || dtype === 'bool') return sign + digits
  const text = sign + (isFloat(dtype) && /^\d+$/.test(digits) ? `${digits}.0` : digits)
  return isWord(dtype) || dtype === 'f32' ? text : `${dtype}(${text})`
}

/** Prints one expression; `level` is the binding strength of its surroundings. */
type Print = (e: Expr, context?: ExprType | null, level?: number) => string

/** A printer of expressions. After `maxNodes` nodes it prints `…`. */
export function exprPrinter(constant: ConstantText, maxNodes = Number.POSITIVE_INFINITY): Print {
  return (e, context = null, level = 0) => {
    let remaining = maxNodes
    const print = (e: Expr, context: ExprType | null, level: number): string => {
      if (remaining-- <= 0) return '…'
      const group = (strength: number, text: string): string => (strength < level ? `(${text})` : text)
      const list = (xs: readonly Expr[]): string => xs.map((x) => print(x, null, 0)).join(', ')
      /** Two operands, each of which determines the type of a literal in the other. */
      const pair = (
        a: Expr,
        b: Expr,
        levels: readonly [number, number] = [0, 0],
      ): readonly [string, string] => [
        print(a, contextType(b), levels[0]),
        print(b, contextType(a), levels[1]),
      ]
      switch (e.kind) {
        case 'const': {
          const text = constant(e, context)
          return text.startsWith('-') ? group(LEVEL.negation, text) : text
        }
        case 'var':
          return e.name
        case 'builtin':
          return e.axis
        case 'unary':
          return e.op === 'not'
            ? group(LEVEL.not, `not ${print(e.x, null, LEVEL.not)}`)
            : group(LEVEL.negation, `-${print(e.x, null, LEVEL.negation + 1)}`)
        case 'binary': {
          const ceildivOperands = asCeildiv(e)
          if (ceildivOperands) return `ceildiv(${list(ceildivOperands)})`
          if (!isInfix(e.op)) return `${e.op}(${pair(e.a, e.b).join(', ')})`
          const [symbol, strength] = INFIX[e.op]
          const sides = pair(e.a, e.b, [strength === LEVEL.compare ? strength + 1 : strength, strength + 1])
          return group(strength, sides.join(` ${symbol} `))
        }
        case 'call':
          return `${e.fn}(${e.args.length === 2 ? pair(e.args[0]!, e.args[1]!).join(', ') : list(e.args)})`
        case 'select':
          return `select(${[print(e.cond, null, 0), ...pair(e.then, e.else)].join(', ')})`
        case 'cast':
          if (isWord(e.dtype) && isWord(e.x.dtype)) return print(e.x, context, level)
          return `${scalarType(e.dtype)}(${print(e.x, null, 0)})`
        case 'load':
          return `${e.buffer}[${list(e.index)}]`
        case 'search':
          return `search_${e.method}(${e.buffer}, ${list([e.lo, e.hi, e.value])})`
        default:
          return unreachable(e)
      }
    }
    return print(e, context, level)
  }
}

const contextType = (other: Expr): ExprType | null => (other.kind === 'const' ? null : other.dtype)

const isInfix = (op: BinaryOp): op is keyof typeof INFIX => op in INFIX

/**
 * The operands of an expression that was written as `ceildiv(a, c)`. Extents and generated expressions have
 * the form `(a + (c - 1)) / c`, values the form `a / c + i32(a % c != 0)`.
 */
function asCeildiv(e: Expr): readonly [Expr, Expr] | null {
  const value = valueCeildiv(e)
  if (value) return [value.x!, value.y!]
  // A quotient from the source is printed as written, because its sum may wrap.
  const extent = e.dtype === 'i32' ? undefined : extentCeildiv(e)
  return extent && extent.d.value > 1 && extent.c.value === extent.d.value - 1 ? [extent.x!, extent.d] : null
}

const extentCeildiv = matcher(['div', ['add', 'x', 'c'], 'd'])
const valueCeildiv = matcher(['add', ['div', 'x', 'y'], ['cast', ['ne', ['mod', 'x', 'y'], 0]]])

// Queries in the syntax of format declarations: `rank(j by i / 2)`.

const print = exprPrinter(plainConstant)

type QueriesAndLists = Pick<FormatInstance, 'queries' | 'lists'>

/** The i32 queries in an expression of a part, with their source syntax. */
export const queriesIn = (
  e: Expr,
  part: QueriesAndLists,
): readonly { readonly name: string; readonly text: string }[] => {
  const texts = queryTexts(part)
  return part.queries.flatMap((q) =>
    declarationOf(q).dtype === undefined && mentions(e, q.name)
      ? [{ name: q.name, text: texts.get(q.name)! }]
      : [],
  )
}

/** An expression over queries in the syntax of format declarations. */
export const printWithQueries = (e: Expr, queries: readonly Query[]): string => {
  const texts = queryTexts({ queries, lists: [] })
  return print(insertQueryTexts(e, texts))
}

const insertQueryTexts = (e: Expr, texts: ReadonlyMap<string, string>): Expr =>
  rewriteExpr(e, (x) => {
    const text = x.kind === 'var' ? texts.get(x.name) : undefined
    return text === undefined ? undefined : variable(text)
  })

/** The source syntax of each query by name; queries in operands are printed inline. */
function queryTexts({
  queries,
  lists,
}: Pick<FormatInstance, 'queries' | 'lists'>): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  const inSourceSyntax = (e: Expr): Expr => insertQueryTexts(e, texts)
  for (const q of queries) {
    const list = lists.find((l) => l.position === q.name)
    texts.set(
      q.name,
      list ? `position(${list.axis.name})` : textOf(mapQuery(q, inSourceSyntax, (name) => name)),
    )
  }
  return texts
}

function textOf(q: Query): string {
  const { of, by } = asFields(q) as { readonly of?: Expr | readonly Expr[]; readonly by?: readonly Expr[] }
  const printList = (es: readonly Expr[]): string => es.map((e) => print(e)).join(', ')
  const operandText = of === undefined ? '' : 'kind' in of ? print(of) : printList(of)
  const sort = sourceOf(q, 'sort')
  if (sort !== undefined) return `${sort}[${operandText}]`
  const source = sourceOf(q, 'list') ?? sourceOf(q, 'set')
  const operands = [
    ...(source === undefined ? [] : [source]),
    ...(operandText === '' ? [] : [operandText]),
  ].join(', ')
  const groupText = by === undefined || by.length === 0 ? '' : `by ${printList(by)}`
  const argumentText = [operands, groupText].filter((x) => x !== '').join(' ')
  return argumentText === '' && by === undefined ? q.kind : `${q.kind}(${argumentText})`
}
