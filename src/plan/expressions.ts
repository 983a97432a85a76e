/** Expressions of the IR as `Expression`s of a plan, without loss except for source locations. */
import {
  binary,
  call,
  cast,
  constant,
  type Expr,
  load,
  neg,
  not,
  search,
  select,
  variable,
} from '../ir/expressions/expr.ts'
import { SIZE_OPERATORS } from '../ir/expressions/size-expressions.ts'
import { DTYPES, type ExprType } from '../ir/values/dtype.ts'
import { type BinaryOp, MATH, type MathFn } from '../ir/values/math.ts'
import { type Codec, list, malformed, number, oneOf, text } from './codec.ts'
import type { Expression } from './schema.ts'

const type = oneOf<ExprType>([...DTYPES, 'index'])
const METHODS = ['lower', 'upper', 'next', 'linear'] as const

function write(e: Expr): Expression {
  const isIndex = e.dtype === 'index'
  switch (e.kind) {
    case 'const':
      return isIndex ? e.value : ['const', e.dtype, number.write(e.value) as Expression]
    case 'var':
      return isIndex ? e.name : ['var', e.dtype, e.name]
    case 'unary':
      return [e.op, write(e.x)]
    case 'binary':
      return [e.op, write(e.a), write(e.b)]
    case 'call':
      return [e.fn, ...e.args.map(write)]
    case 'select':
      return ['select', write(e.cond), write(e.then), write(e.else)]
    case 'cast':
      return ['cast', e.dtype, write(e.x)]
    case 'load':
      return ['load', e.buffer, e.index.map(write), ...(isIndex ? [] : [e.dtype])]
    case 'search':
      return ['search', e.method, e.buffer, write(e.lo), write(e.hi), write(e.value)]
    case 'builtin':
      return [e.axis]
  }
}

function read(json: unknown, path: string): Expr {
  if (typeof json === 'number' && Number.isSafeInteger(json)) return constant(json)
  if (typeof json === 'string' && json !== '') return variable(json)
  if (!Array.isArray(json) || typeof json[0] !== 'string') return malformed(path, json, 'an expression')
  const [op, ...operands] = json as [string, ...unknown[]]
  const at = (k: number): Expr => read(operands[k], `${path}[${k + 1}]`)
  const textAt = (k: number): string => text.read(operands[k], `${path}[${k + 1}]`)
  const typeAt = (k: number): ExprType => type.read(operands[k], `${path}[${k + 1}]`)
  const takes = (count: number): void => {
    if (operands.length !== count) malformed(path, json, `${op} with ${count} operands`)
  }
  switch (op) {
    case 'const': {
      takes(2)
      const [dtype, value] = [typeAt(0), number.read(operands[1], `${path}[2]`)]
      return constant(value, dtype)
    }
    case 'var':
      takes(2)
      return variable(textAt(1), typeAt(0))
    case 'neg':
    case 'not':
      takes(1)
      return op === 'neg' ? neg(at(0)) : not(at(0))
    case 'select':
      takes(3)
      return select(at(0), at(1), at(2))
    case 'cast':
      takes(2)
      return cast(at(1), typeAt(0))
    case 'load': {
      const dtype = operands.length > 2 ? typeAt(2) : 'index'
      return load(textAt(0), list(expr).read(operands[1], `${path}[2]`), dtype)
    }
    case 'search':
      takes(5)
      return search(oneOf(METHODS).read(operands[0], `${path}[1]`), textAt(1), at(2), at(3), at(4))
  }
  if (op in SIZE_OPERATORS) {
    takes(2)
    return binary(op as BinaryOp, at(0), at(1))
  }
  if (!(op in MATH)) return malformed(path, json, 'an operator or a function')
  takes(MATH[op as MathFn].arity)
  return call(
    op as MathFn,
    operands.map((_, k) => at(k)),
  )
}

export const expr: Codec<Expr> = { write, read }
