/** Partial evaluation of expressions over known values, and the lists of values of a space's numbers. */
import { failAt, failWith, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { integer } from '../../ast/nodes/syntax-builders.ts'
import type { Expr, Var } from '../../ir/expressions/expr.ts'
import { isLazy, someExpr } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import { evaluateNode } from '../../ir/values/evaluate.ts'
import { withoutDivisionByZero } from '../expressions/division-by-zero.ts'
import type { NumberDecision, Space, SpaceStep } from './space-types.ts'

// Steps with open arguments in a space, and errors for values that a decision does not have.

export type Use = Extract<SpaceStep, { kind: 'use' }>

/** True for a step with open arguments. A `use` step of a schedule text has no `step` field. */
export const isUse = (leaf: { readonly kind: string }): leaf is Use => leaf.kind === 'use' && 'step' in leaf

export function notAmong(name: string, value: unknown, options: readonly string[]): never {
  return failWith('space/point', `${name} cannot be ${String(value)}`, { expected: options.join(', ') })
}

/** The value of a name; undefined if the value is not known yet. */
export type Known = (v: Var) => number | undefined

/** The values of decisions by name: numbers, and the texts of options. */
export type SpacePoint = Readonly<Record<string, number | string>>

export interface OpenValues {
  readonly name: string
  /** The values that no condition rejects; unknown conditions reject no value. */
  readonly values: readonly (number | string)[]
  readonly ordered: boolean
  /** The number of values before conditions were evaluated. */
  readonly considered: number
}

/** A space with arguments, and the known values of data and device. */
export interface SpaceUse {
  readonly space: Space
  /** A value for each parameter; undefined if it is not known. */
  readonly params: ReadonlyMap<string, number | undefined>
  readonly known: Known
}

/** The maximum number of values of a number. */
const MAX_VALUES = 4096

/** Thrown if a value depends on an unknown name. */
class Unknown extends Error {}
const UNKNOWN = new Unknown()

/**
 * The value in exact arithmetic; undefined if it depends on unknown names. Truth values are 0 and 1. @throws SptError
 * `space/division`
 */
export function partialValue(e: Expr, known: Known): number | undefined {
  if (e.kind === 'binary' && (e.op === 'and' || e.op === 'or')) {
    const decides = e.op === 'and' ? 0 : 1
    const a = partialValue(e.a, known)
    if (a === decides) return a
    // Errors in an operand that an unknown condition guards are ignored.
    if (a === undefined) return orNothing(() => partialValue(e.b, known)) === decides ? decides : undefined
    return partialValue(e.b, known)
  }
  const look = (v: Var): number => {
    const value = known(v)
    if (value === undefined) throw UNKNOWN
    return value
  }
  const of = (x: Expr): number => {
    if (x.kind === 'binary' && (x.op === 'and' || x.op === 'or')) {
      const value = partialValue(x, known)
      if (value === undefined) throw UNKNOWN
      return value
    }
    return evaluateNode(x, of, withoutDivisionByZero('space/division', x.span ?? e.span), look)
  }
  try {
    return of(e)
  } catch (error) {
    if (error === UNKNOWN) return undefined
    throw error
  }
}

/** True if an expression has no value if one of its names has no value. */
export const isStrict = memoize((e: Expr): boolean => !someExpr(e, isLazy))

function orNothing<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The latest list of each range: most lists are the same at every point. */
const ranges = new WeakMap<
  object,
  { readonly from: number; readonly to: number; readonly by: number; readonly list: readonly number[] }
>()

/**
 * The values of a number, in the order of the text; undefined if they depend on unknown names. `a .. b` doubles from a
 * up to b, and always includes b. @throws SptError `space/values`, `space/endless`
 */
export function numbersOf(
  { name, values, span }: Pick<NumberDecision, 'name' | 'values' | 'span'>,
  known: Known,
): readonly number[] | undefined {
  const integer = (e: Expr): number | undefined => {
    const value = partialValue(e, known)
    if (value !== undefined && !Number.isSafeInteger(value))
      failAt('space/values', span, { message: `${name} would be ${value}`, expected: 'integers' })
    return value
  }
  if (values.kind === 'range') {
    const [from, to, by] = [integer(values.from), integer(values.to), values.by ? integer(values.by) : 1]
    if (from === undefined || to === undefined || by === undefined) return undefined
    if (by <= 0) endless(`${name} goes from ${from} to ${to} by ${by}`, span, 'a step that is positive')
    const many = Math.max(0, Math.floor((to - from) / by) + 1)
    if (many > MAX_VALUES) tooMany(name, many, span)
    const before = ranges.get(values)
    if (before?.from === from && before.to === to && before.by === by) return before.list
    const list = Array.from({ length: many }, (_, k) => from + k * by)
    ranges.set(values, { from, to, by, list })
    return list
  }
  const out = new Set<number>()
  let last: number | undefined
  for (const entry of values.entries) {
    const base = integer(entry.value)
    const power = entry.power ? integer(entry.power) : 1
    if (base === undefined || power === undefined) return undefined
    const end = base ** power
    if (!Number.isSafeInteger(end))
      failAt('space/values', span, { message: `${name} would be ${end}`, expected: 'integers' })
    if (entry.doubling && last !== undefined) {
      if (last < 1)
        endless(`${name} goes from ${last} up to ${end} by doubling`, span, 'doubling from 1 or more')
      for (let next = last * 2; next < end; next *= 2) out.add(next)
    }
    // `2 .. 1` has no values, not even 2.
    if (entry.doubling && last !== undefined && end < last) out.delete(last)
    else out.add(end)
    last = end
  }
  if (out.size > MAX_VALUES) tooMany(name, out.size, span)
  return [...out]
}

function endless(message: string, span: Span, expected: string): never {
  return failAt('space/endless', span, { message: `${message}, which never ends`, expected })
}

function tooMany(name: string, many: number, span: Span): never {
  return failAt('space/endless', span, {
    message: `${name} would have ${many} values`,
    expected: `at most ${MAX_VALUES}`,
    hint: '`1, 2 .. 1024` doubles; `from 0 to 1000 by 50` takes steps',
  })
}

// Arguments of steps in a point of a space: the decided numbers, as literals of a text.

/** The arguments with numbers as literals. @throws SptError `space/argument` if one is not an integer */
export const argumentsOf = ({ step, args }: Use, known: Known): Ast.UseStep['args'] =>
  step.args.map((a, k) => (args[k] ? { ...a, value: argumentOf(args[k], step, known) } : a))

function argumentOf(e: Expr, { schedule, span }: Ast.UseStep, known: Known): Ast.Expr {
  const value = partialValue(e, known)
  if (value !== undefined && Number.isSafeInteger(value)) return integer(value, span)
  return failAt('space/argument', e.span ?? span, {
    message: `an argument of schedule ${schedule.name} would be ${value}`,
    expected: 'an integer',
  })
}
