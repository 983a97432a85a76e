/** Conditions as alternatives of literals, and proofs that some of them cannot hold together. */
import type { Facts } from '../../analysis/integers/facts.ts'
import { constantSum, GivesUp, type Linear, minus, shift } from '../../analysis/integers/linear.ts'
import { neverNegative } from '../../analysis/integers/non-negative.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'
import { SIZE_OPERATORS } from '../../ir/expressions/size-expressions.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isFloat, isWord } from '../../ir/values/dtype.ts'
import { type CompareOp, isCompare } from '../../ir/values/math.ts'

type Literal =
  /** A linear form that is at least 0. */
  | { readonly kind: 'form'; readonly form: Linear }
  /** A comparison of a real with a constant; false for NaN. */
  | {
      readonly kind: 'real'
      readonly key: string
      readonly op: Exclude<CompareOp, 'ne'>
      readonly to: number
    }
  | { readonly kind: 'truth'; readonly key: string; readonly holds: boolean }

export type Conjunction = readonly Literal[]

const MAX_ALTERNATIVES = 128

/** Conjunctions, exactly one of which holds if `e` has the value `holds`. @throws GivesUp */
export function alternatives(e: Expr, holds: boolean, facts: Facts): readonly Conjunction[] {
  if (e.kind === 'const') return (e.value !== 0) === holds ? [[]] : []
  if (e.kind === 'unary' && e.op === 'not') return alternatives(e.x, !holds, facts)
  if (e.kind === 'binary' && (e.op === 'and' || e.op === 'or')) {
    const a = alternatives(e.a, holds, facts)
    const b = alternatives(e.b, holds, facts)
    return (e.op === 'and') === holds ? product(a, b) : checkCount([...a, ...b])
  }
  if (e.kind === 'binary' && isCompare(e.op)) {
    if (isWord(e.a.dtype) && isWord(e.b.dtype)) return integerLiterals(e.op, e.a, e.b, holds, facts)
    if (isFloat(e.a.dtype) || isFloat(e.b.dtype)) return realLiterals(e.op, e.a, e.b, holds)
  }
  return [[{ kind: 'truth', key: keyOf(e), holds }]]
}

export const product = (a: readonly Conjunction[], b: readonly Conjunction[]): readonly Conjunction[] =>
  checkCount(a.flatMap((x) => b.map((y) => [...x, ...y])))

function checkCount(list: readonly Conjunction[]): readonly Conjunction[] {
  if (list.length > MAX_ALTERNATIVES) throw new GivesUp()
  return list
}

type CompareOps = Readonly<Record<CompareOp, CompareOp>>
const OPPOSITE: CompareOps = { lt: 'ge', ge: 'lt', gt: 'le', le: 'gt', eq: 'ne', ne: 'eq' }
const MIRRORED: CompareOps = { lt: 'gt', gt: 'lt', le: 'ge', ge: 'le', eq: 'eq', ne: 'ne' }

function integerLiterals(
  op: CompareOp,
  a: Expr,
  b: Expr,
  holds: boolean,
  facts: Facts,
): readonly Conjunction[] {
  const difference = minus(facts.form(a), facts.form(b))
  const opposite = minus(facts.form(b), facts.form(a))
  const atLeast = (form: Linear, by = 0): Conjunction => [{ kind: 'form', form: shift(form, by) }]
  const alternatives: Readonly<Record<CompareOp, readonly Conjunction[]>> = {
    lt: [atLeast(opposite, -1)],
    le: [atLeast(opposite)],
    gt: [atLeast(difference, -1)],
    ge: [atLeast(difference)],
    eq: [[...atLeast(difference), ...atLeast(opposite)]],
    ne: [atLeast(difference, -1), atLeast(opposite, -1)],
  }
  return alternatives[holds ? op : OPPOSITE[op]]
}

/** Equal comparisons are one literal; a comparison is negated only if neither side can be NaN. */
function realLiterals(op: CompareOp, a: Expr, b: Expr, holds: boolean): readonly Conjunction[] {
  const effectiveOp = holds ? op : OPPOSITE[op]
  const literalsOf = (op: CompareOp): Conjunction[] => {
    if (op === 'ne') return [...literalsOf('lt'), ...literalsOf('gt')]
    if (b.kind === 'const') return [[{ kind: 'real', key: keyOf(a), op: op, to: b.value }]]
    if (a.kind === 'const')
      return [[{ kind: 'real', key: keyOf(b), op: MIRRORED[op] as Exclude<CompareOp, 'ne'>, to: a.value }]]
    const [first, second] = [keyOf(a), keyOf(b)]
    const ordered = first <= second
    const of = ordered ? `${first} ? ${second}` : `${second} ? ${first}`
    return [[{ kind: 'real', key: of, op: (ordered ? op : MIRRORED[op]) as Exclude<CompareOp, 'ne'>, to: 0 }]]
  }
  if (isNumber(a) && isNumber(b)) return literalsOf(effectiveOp)
  // NaN satisfies `!=` and negated comparisons; the others imply that there is none.
  const truth: Literal = { kind: 'truth', key: `${op} ${keyOf(a)} ${keyOf(b)}`, holds }
  return holds === (op !== 'ne') ? literalsOf(effectiveOp).map((c) => [...c, truth]) : [[truth]]
}

/** True if the value is neither NaN nor near overflow: few operations on integers and constants. */
function isNumber(e: Expr): boolean {
  if (isWord(e.dtype)) return e.kind === 'const' || e.kind === 'var'
  if (e.kind === 'const') return Math.abs(e.value) < 1e15
  if (e.kind === 'cast') return isWord(e.x.dtype) && isFloat(e.dtype) && isNumber(e.x)
  if (e.kind !== 'binary') return false
  const small = e.b.kind === 'const' && Math.abs(e.b.value) > 1e-15
  if (e.op === 'div') return small && isNumber(e.a) && isNumber(e.b)
  return (e.op === 'add' || e.op === 'sub' || e.op === 'mul') && size(e) < 12 && children(e).every(isNumber)
}

const size = (e: Expr): number => 1 + children(e).reduce((n, c) => n + size(c), 0)

/** True if no coordinate satisfies all literals; `false`: not proved. */
export function isContradictory(literals: Conjunction, facts: Facts): boolean {
  return truthsContradict(literals) || realsContradict(literals) || formsContradict(literals, facts)
}

const truthsContradict = (literals: Conjunction): boolean =>
  literals.some(
    (x) =>
      x.kind === 'truth' &&
      x.holds &&
      literals.some((y) => y.kind === 'truth' && !y.holds && y.key === x.key),
  )

/** Comparisons with constants contradict each other if they fail at, between and outside these constants. */
function realsContradict(literals: Conjunction): boolean {
  const realLiterals = literals.flatMap((x) => (x.kind === 'real' ? [x] : []))
  return realLiterals.some(({ key: of }) => {
    const comparisons = realLiterals.filter((x) => x.key === of)
    const ends = [...ENDS, ...comparisons.map((x) => x.to)].sort((a, b) => a - b)
    const between = ends.slice(1).map((x, k) => x / 2 + ends[k]! / 2)
    return ![...ends, ...between].some((x) =>
      comparisons.every(({ op, to }) => SIZE_OPERATORS[op](x, to) !== 0),
    )
  })
}

const ENDS = [Number.NEGATIVE_INFINITY, -Number.MAX_VALUE, Number.MAX_VALUE, Number.POSITIVE_INFINITY]

/** True if one of the forms is negative wherever the others are not. */
function formsContradict(literals: Conjunction, facts: Facts): boolean {
  const forms = literals.flatMap((x) => (x.kind === 'form' ? [x.form] : []))
  return forms.some((f, k) => {
    const otherFacts = facts.assuming(forms.filter((_, m) => m !== k))
    return neverNegative(minus(constantSum(-1), f), otherFacts)
  })
}

/** Linear forms that are at least 0 if a condition holds (or fails), provided that it is a single conjunction. */
export function assumptionsOf(e: Expr, holds: boolean, facts: Facts): readonly Linear[] {
  try {
    const [conjunction, second] = alternatives(e, holds, facts)
    return conjunction && !second ? conjunction.flatMap((x) => (x.kind === 'form' ? [x.form] : [])) : []
  } catch (error) {
    if (error instanceof GivesUp) return []
    throw error
  }
}
