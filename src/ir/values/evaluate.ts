/**
 * Evaluation of expressions on the host. The value of a node for given operand values is defined here once, in two
 * arithmetics: register semantics, and exact integers. Evaluators of whole expressions differ in the values of names
 * and loads.
 */
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Load, Search, Var } from '../expressions/expr.ts'
import { perExpr, treeSize } from '../expressions/expr-tree.ts'
import { SIZE_OPERATORS } from '../expressions/size-expressions.ts'
import { memoize } from '../memoize.ts'
import { computeType, isFloat } from './dtype.ts'
import { isTruth, MATH } from './math.ts'
import { arithmetic, convert, foldInt, isDivisionOp, mathOf, wrap } from './numeric.ts'

type Builtin = Extract<Expr, { kind: 'builtin' }>
/** Nodes whose value depends on their operands alone. `select`, `and` and `or` are excluded, because they are lazy. */
type Operator = Extract<Expr, { kind: 'unary' | 'binary' | 'call' | 'cast' }>

type Operation = (a: number, b: number) => number

const not: Operation = (x) => (x === 0 ? 1 : 0)

/** The most frequent operations, as functions without nested calls. */
const FREQUENT: Readonly<Record<string, Operation>> = {
  'i32 add': (a, b) => (a + b) | 0,
  'i32 sub': (a, b) => (a - b) | 0,
  'i32 mul': Math.imul,
  'f32 add': (a, b) => Math.fround(a + b),
  'f32 mul': (a, b) => Math.fround(a * b),
}

/**
 * The same operations over closures, or a closure and a constant: most of the interpreter's work, so each saves one
 * call.
 */
const FUSED: Readonly<Record<string, <F>(a: Value<F>, b: Value<F>) => Value<F>>> = {
  'i32 add': (a, b) => (f) => (a(f) + b(f)) | 0,
  'i32 sub': (a, b) => (f) => (a(f) - b(f)) | 0,
  'i32 mul': (a, b) => (f) => Math.imul(a(f), b(f)),
  'f32 add': (a, b) => (f) => Math.fround(a(f) + b(f)),
  'f32 mul': (a, b) => (f) => Math.fround(a(f) * b(f)),
}
const FUSED_CONSTANT: Readonly<Record<string, <F>(a: Value<F>, b: number) => Value<F>>> = {
  'i32 add': (a, b) => (f) => (a(f) + b) | 0,
  'i32 sub': (a, b) => (f) => (a(f) - b) | 0,
  'i32 mul': (a, b) => (f) => Math.imul(a(f), b),
}

/** The fused closure of a frequent binary operator; `undefined` for other operators. */
function fuseOperator<F>(
  e: Extract<Operator, { kind: 'binary' }>,
  operandValue: (e: Expr) => Value<F>,
): Value<F> | undefined {
  const key = `${computeType(e.dtype)} ${e.op}`
  const withConstant = e.b.kind === 'const' ? FUSED_CONSTANT[key] : undefined
  if (withConstant && e.b.kind === 'const') return withConstant(operandValue(e.a), e.b.value)
  return FUSED[key]?.(operandValue(e.a), operandValue(e.b))
}

/**
 * Register semantics, in `computeType`: integers wrap, f32 is rounded after every operation, 16-bit floats are f32
 * until they are stored.
 */
export function registerOperation(e: Operator): Operation {
  const type = computeType(e.dtype)
  const roundResult = (f: Operation): Operation => (type === 'f32' ? (a, b) => Math.fround(f(a, b)) : f)
  switch (e.kind) {
    case 'unary': {
      const toType = wrap(type)
      return e.op === 'not' ? not : (x) => toType(-x)
    }
    case 'binary':
      if (isTruth(e.op)) return SIZE_OPERATORS[e.op]
      return FREQUENT[`${type} ${e.op}`] ?? roundResult(arithmetic(e.op, type))
    case 'call': {
      const f = mathOf(e.fn)
      const toType = wrap(type)
      return roundResult((a, b) => toType(f(a, b)))
    }
    case 'cast':
      return roundResult(convert(e.x.dtype, e.dtype))
  }
}

/** Exact integer semantics, as for sizes: nothing wraps, and x / 0 is 0. Quotients of floats are not rounded. */
export function exactOperation(e: Operator): Operation {
  switch (e.kind) {
    case 'unary':
      return e.op === 'not' ? not : (x) => -x
    case 'binary': {
      const { op } = e
      if (isTruth(op)) return SIZE_OPERATORS[op]
      if (op === 'div' && isFloat(e.dtype)) return (a, b) => a / b
      return (a, b) => foldInt(op, a, b) ?? 0
    }
    case 'call':
      if (MATH[e.fn].type !== 'float') return mathOf(e.fn)
      throw new InternalError(`${e.fn} cannot be evaluated on the host`)
    case 'cast':
      return isFloat(e.dtype) || !isFloat(e.x.dtype) ? (x) => x : Math.trunc
  }
}

/** Arithmetic of the operator's type, without rounding the results of floats. */
export function unroundedOperation(e: Operator): Operation {
  if (e.kind === 'cast') return convert(e.x.dtype, e.dtype)
  if (e.kind === 'binary') return isTruth(e.op) ? registerOperation(e) : arithmetic(e.op, e.dtype)
  if (e.kind === 'unary' && (e.op === 'not' || isFloat(e.dtype))) return e.op === 'not' ? not : (x) => -x
  const toType = wrap(e.dtype)
  if (e.kind === 'unary') return (x) => toType(-x)
  const f = mathOf(e.fn)
  return (x, y) => toType(f(x, y))
}

/** True for operators that are undefined if their right operand is 0. */
export const isDivision = (e: Expr): e is Extract<Expr, { kind: 'binary' }> =>
  e.kind === 'binary' && isDivisionOp(e.op)

/** As `exactOperation`, for expressions that users write about their data: `byZero` reports a division of integers by 0. */
export const exactOperationOr =
  (byZero: (divisor: Expr) => never) =>
  (e: Operator): Operation => {
    const operation = exactOperation(e)
    return isDivision(e) && !isFloat(e.dtype)
      ? (a, b) => (b === 0 ? byZero(e.b) : operation(a, b))
      : operation
  }

/** An expression over names, evaluated without rounding (`unroundedOperation`). */
export const unrounded = (e: Expr): Value<Params> =>
  compileExpr(e, { ...ON_NAMES, operation: unroundedOperation })

/** Evaluates an integer expression over sizes; x / 0 is 0, as in kernels. */
export function evaluate(e: Expr, params: Params): number {
  if (treeSize(e) <= MAX_CACHED_SIZE) return compiled(e)(params)
  const variableValue = ({ name }: Var): number => lookUp(params, name)
  return perExpr<number>((x, operandValue) => evaluateNode(x, operandValue, hostOperation, variableValue))(e)
}

type Params = ReadonlyMap<string, number>

/** Largest expression (in nodes, shared ones repeated) that is evaluated by a cached closure. */
const MAX_CACHED_SIZE = 64

const hostOperation = (x: Operator): Operation =>
  x.kind === 'call' ? registerOperation(x) : exactOperation(x)

function lookUp(params: Params, name: string): number {
  const v = params.get(name)
  if (v === undefined) throw new InternalError(`no value for ${name}`)
  return v
}

const rejectOnHost =
  ({ kind }: Expr) =>
  (): never => {
    throw new InternalError(`${kind} cannot be evaluated on the host`)
  }

const ON_HOST = { builtin: rejectOnHost, load: rejectOnHost, search: rejectOnHost }

const ON_NAMES = {
  ...ON_HOST,
  variable:
    ({ name }: Var): Value<Params> =>
    (params) =>
      lookUp(params, name),
}

const compiled = memoize((e: Expr) => compileExpr<Params>(e, { ...ON_NAMES, operation: hostOperation }))

/** The value of one node; operands that do not affect the result are not evaluated. */
export function evaluateNode(
  e: Expr,
  operandValue: (e: Expr) => number,
  operation: (e: Operator) => Operation,
  variableValue: (v: Var) => number = (v) => rejectOnHost(v)(),
): number {
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var':
      return variableValue(e)
    case 'select':
      return operandValue(operandValue(e.cond) !== 0 ? e.then : e.else)
    case 'unary':
    case 'cast':
      return operation(e)(operandValue(e.x), 0)
    case 'call':
      return operation(e)(operandValue(e.args[0]!), e.args[1] ? operandValue(e.args[1]) : 0)
    case 'binary': {
      const a = operandValue(e.a)
      if (e.op !== 'and' && e.op !== 'or') return operation(e)(a, operandValue(e.b))
      return Number((a !== 0) === (e.op === 'or') ? a !== 0 : operandValue(e.b) !== 0)
    }
    default:
      return rejectOnHost(e)()
  }
}

/** A value that depends on the current frame of an execution. */
export type Value<F> = (f: F) => number

/** Values of names and memory accesses; operands are compiled already. */
export interface Leaves<F> {
  variable(e: Var): Value<F>
  builtin(e: Builtin): Value<F>
  load(e: Load, operandValue: (e: Expr) => Value<F>): Value<F>
  search(e: Search, operandValue: (e: Expr) => Value<F>): Value<F>
  /** Wraps the closure of a node, for example to cache its value. */
  node?(e: Expr, value: Value<F>): Value<F>
  /** NaN marks an unknown value, which propagates to everything that depends on it. */
  readonly partial?: true
  /** The semantics of operators; register semantics by default. */
  readonly operation?: (e: Operator) => Operation
}

/** The expression as a closure over frames. Shared nodes share a closure. */
export function compileExpr<F>(e: Expr, leaves: Leaves<F>, closures = new Map<Expr, Value<F>>()): Value<F> {
  const operandValue = (x: Expr): Value<F> => {
    let value = closures.get(x)
    if (!value) {
      value = closureOf(x, operandValue, leaves)
      if (leaves.node) value = leaves.node(x, value)
      closures.set(x, value)
    }
    return value
  }
  return operandValue(e)
}

function closureOf<F>(e: Expr, operandValue: (e: Expr) => Value<F>, leaves: Leaves<F>): Value<F> {
  const operationOf = (x: Operator): Operation => {
    const f = (leaves.operation ?? registerOperation)(x)
    return leaves.partial ? (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : f(a, b)) : f
  }
  switch (e.kind) {
    case 'const': {
      const { value } = e
      return () => value
    }
    case 'var':
      return leaves.variable(e)
    case 'builtin':
      return leaves.builtin(e)
    case 'load':
      return leaves.load(e, operandValue)
    case 'search':
      return leaves.search(e, operandValue)
    case 'select': {
      const [cond, then, otherwise] = [operandValue(e.cond), operandValue(e.then), operandValue(e.else)]
      if (leaves.partial)
        return (f) => {
          const c = cond(f)
          return Number.isNaN(c) ? c : c !== 0 ? then(f) : otherwise(f)
        }
      return (f) => (cond(f) !== 0 ? then(f) : otherwise(f))
    }
    case 'unary':
    case 'cast': {
      const x = operandValue(e.x)
      const operation = operationOf(e)
      return (f) => operation(x(f), 0)
    }
    case 'call': {
      const [x, y] = e.args.map(operandValue)
      const operation = operationOf(e)
      return y ? (f) => operation(x!(f), y(f)) : (f) => operation(x!(f), 0)
    }
    case 'binary': {
      const fusedClosure = leaves.partial || leaves.operation ? undefined : fuseOperator(e, operandValue)
      if (fusedClosure) return fusedClosure
      const [a, b] = [operandValue(e.a), operandValue(e.b)]
      if (e.op === 'and' || e.op === 'or') return logicalOperator(e.op, a, b)
      const operation = operationOf(e)
      return (f) => operation(a(f), b(f))
    }
  }
}

/** `and` and `or`: one operand may determine the result, so the other may be out of range or unknown. */
function logicalOperator<F>(op: 'and' | 'or', a: Value<F>, b: Value<F>): Value<F> {
  const decisive = op === 'or'
  return (f) => {
    const x = a(f)
    if (!Number.isNaN(x) && (x !== 0) === decisive) return Number(decisive)
    const y = b(f)
    if (Number.isNaN(y) || (y !== 0) === decisive) return Number.isNaN(y) ? y : Number(decisive)
    return Number.isNaN(x) ? x : Number(!decisive)
  }
}
