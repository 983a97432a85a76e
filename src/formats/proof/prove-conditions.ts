/** Conditions as alternatives of literals, and proofs that some of them cannot hold together. */
import { isFloat } from '../../ir/dtype.ts'
import type { Expr } from '../../ir/expr.ts'
import { children } from '../../ir/expr-tree.ts'
import { keyOf } from '../../ir/keys.ts'
import { type CompareOp, isCompare } from '../../ir/ops.ts'
import { assuming, type Facts, formOf, neverNegative } from './prove-facts.ts'
import { type Form, GivesUp, minus, shift } from './prove-form.ts'

type Literal =
  /** A form that is 0 or more. */
  | { readonly kind: 'form'; readonly form: Form }
  /** A real that compares to a constant, which NaN does not. */
  | { readonly kind: 'real'; readonly of: string; readonly op: Exclude<CompareOp, 'ne'>; readonly to: number }
  | { readonly kind: 'truth'; readonly of: string; readonly holds: boolean }

/** All of them hold. */
export type Conjunction = readonly Literal[]

const MAX_ALTERNATIVES = 128

/** Conjunctions of which one holds exactly if `e` has the value `holds`. @throws GivesUp */
export function alternatives(e: Expr, holds: boolean, facts: Facts): readonly Conjunction[] {
  if (e.kind === 'const') return (e.value !== 0) === holds ? [[]] : []
  if (e.kind === 'unary' && e.op === 'not') return alternatives(e.x, !holds, facts)
  if (e.kind === 'binary' && (e.op === 'and' || e.op === 'or')) {
    const a = alternatives(e.a, holds, facts)
    const b = alternatives(e.b, holds, facts)
    return (e.op === 'and') === holds ? product(a, b) : limited([...a, ...b])
  }
  if (e.kind === 'binary' && isCompare(e.op)) {
    if (e.a.dtype === 'i32' && e.b.dtype === 'i32') return integers(e.op, e.a, e.b, holds, facts)
    if (isFloat(e.a.dtype) || isFloat(e.b.dtype)) return reals(e.op, e.a, e.b, holds)
  }
  return [[{ kind: 'truth', of: keyOf(e), holds }]]
}

export const product = (a: readonly Conjunction[], b: readonly Conjunction[]): readonly Conjunction[] =>
  limited(a.flatMap((x) => b.map((y) => [...x, ...y])))

function limited(list: readonly Conjunction[]): readonly Conjunction[] {
  if (list.length > MAX_ALTERNATIVES) throw new GivesUp()
  return list
}

const OPPOSITE: Readonly<Record<CompareOp, CompareOp>> = {
  lt: 'ge',
  ge: 'lt',
  gt: 'le',
  le: 'gt',
  eq: 'ne',
  ne: 'eq',
}
const MIRRORED: Readonly<Record<CompareOp, CompareOp>> = {
  lt: 'gt',
  gt: 'lt',
  le: 'ge',
  ge: 'le',
  eq: 'eq',
  ne: 'ne',
}

function integers(op: CompareOp, a: Expr, b: Expr, holds: boolean, facts: Facts): readonly Conjunction[] {
  const difference = minus(formOf(a, facts), formOf(b, facts))
  const opposite = minus(formOf(b, facts), formOf(a, facts))
  const least = (form: Form): Literal => ({ kind: 'form', form })
  switch (holds ? op : OPPOSITE[op]) {
    case 'lt':
      return [[least(shift(opposite, -1))]]
    case 'le':
      return [[least(opposite)]]
    case 'gt':
      return [[least(shift(difference, -1))]]
    case 'ge':
      return [[least(difference)]]
    case 'eq':
      return [[least(difference), least(opposite)]]
    case 'ne':
      return [[least(shift(difference, -1))], [least(shift(opposite, -1))]]
  }
}

/** Comparisons of one text are decided alike; the opposite holds where neither side can be NaN. */
function reals(op: CompareOp, a: Expr, b: Expr, holds: boolean): readonly Conjunction[] {
  const wanted = holds ? op : OPPOSITE[op]
  const positive = (is: CompareOp): Conjunction[] => {
    if (is === 'ne') return [...positive('lt'), ...positive('gt')]
    if (b.kind === 'const') return [[{ kind: 'real', of: keyOf(a), op: is, to: b.value }]]
    if (a.kind === 'const')
      return [[{ kind: 'real', of: keyOf(b), op: MIRRORED[is] as Exclude<CompareOp, 'ne'>, to: a.value }]]
    const [first, second] = [keyOf(a), keyOf(b)]
    const ordered = first <= second
    const of = ordered ? `${first} ? ${second}` : `${second} ? ${first}`
    return [[{ kind: 'real', of, op: (ordered ? is : MIRRORED[is]) as Exclude<CompareOp, 'ne'>, to: 0 }]]
  }
  if (isNumber(a) && isNumber(b)) return positive(wanted)
  // NaN: `!=` and negated comparisons hold for it, the others say that there is none.
  const truth: Literal = { kind: 'truth', of: `${op} ${keyOf(a)} ${keyOf(b)}`, holds }
  return holds === (op !== 'ne') ? positive(wanted).map((c) => [...c, truth]) : [[truth]]
}

/** No NaN and far from overflow: made of integers and constants by few operations. */
function isNumber(e: Expr): boolean {
  if (e.dtype === 'i32') return e.kind === 'const' || e.kind === 'var'
  if (e.kind === 'const') return Math.abs(e.value) < 1e15
  if (e.kind === 'cast') return e.x.dtype === 'i32' && isFloat(e.dtype) && isNumber(e.x)
  if (e.kind !== 'binary') return false
  const small = e.b.kind === 'const' && Math.abs(e.b.value) > 1e-15
  if (e.op === 'div') return small && isNumber(e.a) && isNumber(e.b)
  return (e.op === 'add' || e.op === 'sub' || e.op === 'mul') && size(e) < 12 && children(e).every(isNumber)
}

const size = (e: Expr): number => 1 + children(e).reduce((n, c) => n + size(c), 0)

/** Whether no coordinate can satisfy all of them. `false`: not proved. */
export function impossible(all: Conjunction, facts: Facts): boolean {
  return truthsClash(all) || realsClash(all) || formsClash(all, facts)
}

const truthsClash = (all: Conjunction): boolean =>
  all.some(
    (x) => x.kind === 'truth' && x.holds && all.some((y) => y.kind === 'truth' && !y.holds && y.of === x.of),
  )

function realsClash(all: Conjunction): boolean {
  const names = new Set(all.flatMap((x) => (x.kind === 'real' ? [x.of] : [])))
  return [...names].some((name) => {
    let low = Number.NEGATIVE_INFINITY
    let high = Number.POSITIVE_INFINITY
    let open = false
    const mine = all.filter((x) => x.kind === 'real' && x.of === name)
    for (const x of mine) {
      if (x.kind !== 'real') continue
      if (Number.isNaN(x.to)) return true
      if (x.op === 'gt' || x.op === 'ge' || x.op === 'eq') low = Math.max(low, x.to)
      if (x.op === 'lt' || x.op === 'le' || x.op === 'eq') high = Math.min(high, x.to)
    }
    for (const x of mine)
      if (x.kind === 'real' && ((x.op === 'gt' && x.to === low) || (x.op === 'lt' && x.to === high)))
        open = true
    return low > high || (low === high && open)
  })
}

/** One of the forms is negative wherever the others are not. */
function formsClash(all: Conjunction, facts: Facts): boolean {
  const forms = all.flatMap((x) => (x.kind === 'form' ? [x.form] : []))
  return forms.some((f, k) => {
    const others = assuming(
      facts,
      forms.filter((_, m) => m !== k),
    )
    return neverNegative(shift(minus({ terms: [], constant: 0 }, f), -1), others)
  })
}

/** Forms that are 0 or more where a condition holds or fails, as far as that is one conjunction. */
export function assumptionsOf(e: Expr, holds: boolean, facts: Facts): readonly Form[] {
  try {
    const [only, more] = alternatives(e, holds, facts)
    return only && !more ? only.flatMap((x) => (x.kind === 'form' ? [x.form] : [])) : []
  } catch (error) {
    if (error instanceof GivesUp) return []
    throw error
  }
}
