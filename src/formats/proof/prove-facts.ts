/** What is known of the names in maps and conditions, and proofs that a form is never negative. */
import type { StoredAxis } from '../../ir/axis.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { FormatInstance, Query } from '../../ir/format.ts'
import { keyOf } from '../../ir/keys.ts'
import {
  type Atom,
  atomForm,
  constantForm,
  type Form,
  formKey,
  GivesUp,
  isConstant,
  minus,
  nameForm,
  opaqueForm,
  plus,
  quotient,
  sameForm,
  shift,
  times,
  without,
} from './prove-form.ts'

interface Bounds {
  /** Both inclusive; `null`: unknown. */
  readonly low: Form | null
  readonly high: Form | null
  /** Bounds of a name are over names of lower rank: sizes 0, coordinates and queries 1. */
  readonly rank: 0 | 1
}

/** What a table holds at certain places: the element at `place` is `value`, or lies within bounds. */
interface TableFacts {
  readonly fill: Form
  /** Sorts: the element at the place of a coordinate is that coordinate. */
  readonly places: ReadonlyMap<string, Form>
  /** Lists: segment k of `of`, by the name of k. */
  readonly found: ReadonlyMap<string, Form>
}

export interface Facts {
  readonly bounds: ReadonlyMap<string, Bounds>
  readonly tables: ReadonlyMap<string, TableFacts>
  /** Forms that are 0 or more. */
  readonly assumptions: readonly Form[]
}

/** Coordinates within their extents, which exist: an extent is 1 at least. */
export function factsOf(
  over: readonly StoredAxis[],
  queries: readonly Query[],
  part?: FormatInstance,
): Facts {
  const bounds = new Map<string, Bounds>()
  const facts: Facts = { bounds, tables: new Map(), assumptions: [] }
  const zero = constantForm(0)
  const size = (name: string, least: number): void => {
    const low = bounds.get(name)?.low
    if (!low || low.constant < least) bounds.set(name, { low: constantForm(least), high: null, rank: 0 })
  }
  for (const { extent } of over) {
    for (const v of freeVars(extent)) size(v, 0)
    if (extent.kind === 'var') size(extent.name, 1)
  }
  for (const a of part?.axes ?? []) for (const v of freeVars(a.extent)) size(v, 0)
  const last = new Map(over.map((a) => [a.name, shift(formOf(a.extent, facts), -1)]))
  for (const [name, high] of last) bounds.set(name, { low: zero, high, rank: 1 })
  const exist = [...last.values()].filter((f) => !isConstant(f))
  const known: Facts = { ...facts, assumptions: exist }
  for (const q of queries) {
    const found = boundsOf(q, last, part)
    if (found) bounds.set(q.name, found)
    if (q.kind === 'find') size(`${q.list}_segments`, 0)
  }
  return part ? { ...known, tables: tableFacts(part, known) } : known
}

export const assuming = (facts: Facts, more: readonly Form[]): Facts => ({
  ...facts,
  assumptions: [...facts.assumptions, ...more],
})

function boundsOf(
  q: Query,
  last: ReadonlyMap<string, Form>,
  part: FormatInstance | undefined,
): Bounds | null {
  const zero = constantForm(0)
  /** One less than how many different values there are at most: of what depends on one coordinate, as many as of that. */
  const distinct = (of: readonly Expr[]): Form | null => {
    const [name, ...others] = new Set(of.flatMap((e) => [...freeVars(e)]))
    return name !== undefined && others.length === 0 ? (last.get(name) ?? null) : null
  }
  switch (q.kind) {
    case 'count': {
      const most = distinct(q.of)
      return { low: constantForm(1), high: most && shift(most, 1), rank: 1 }
    }
    case 'rank':
      return { low: zero, high: distinct(q.of), rank: 1 }
    case 'largest':
      return { low: zero, high: null, rank: 1 }
    case 'held':
      return { low: zero, high: constantForm(1), rank: 1 }
    case 'place': {
      const sort = part?.sorts.find((s) => s.place === q.sort)
      const high = sort && last.get(sort.dim)
      return high ? { low: zero, high, rank: 1 } : null
    }
    case 'find':
      return { low: zero, high: shift(nameForm(`${q.list}_segments`), -1), rank: 1 }
    case 'value':
      return null
  }
}

function tableFacts(part: FormatInstance, facts: Facts): ReadonlyMap<string, TableFacts> {
  return new Map(
    part.tables.map((t) => {
      const fill = formOf(t.fill, facts)
      const places = new Map<string, Form>()
      const found = new Map<string, Form>()
      for (const q of part.queries) {
        if (q.kind === 'find' && t.of === 'list' && q.list === t.source)
          found.set(q.name, formOf(q.of, facts))
        const sort = part.sorts.find((s) => s.at === t.source)
        if (q.kind !== 'place' || t.of !== 'sort' || sort?.place !== q.sort) continue
        const of = formOf(q.of, facts)
        if (within(of, fill, facts)) places.set(q.name, of)
      }
      return [t.name, { fill, places, found }]
    }),
  )
}

const within = (f: Form, below: Form, facts: Facts): boolean =>
  neverNegative(f, facts) && neverNegative(shift(minus(below, f), -1), facts)

/** `e` in exact integers; 32-bit overflow is for others to see. */
export function formOf(e: Expr, facts: Facts): Form {
  try {
    return builtForm(e, facts)
  } catch (error) {
    if (error instanceof GivesUp) return opaqueForm(keyOf(e))
    throw error
  }
}

function builtForm(e: Expr, facts: Facts): Form {
  switch (e.kind) {
    case 'const':
      return Number.isSafeInteger(e.value) && e.dtype === 'i32' ? constantForm(e.value) : opaqueForm(keyOf(e))
    case 'var':
      return e.dtype === 'i32' ? nameForm(e.name) : opaqueForm(keyOf(e))
    case 'unary':
      return e.op === 'neg' && e.dtype === 'i32' ? times(builtForm(e.x, facts), -1) : opaqueForm(keyOf(e))
    case 'binary':
      return e.dtype === 'i32' ? binaryForm(e, facts) : opaqueForm(keyOf(e))
    case 'load': {
      const table = facts.tables.get(e.buffer)
      const [index] = e.index
      if (!table || !index || e.index.length !== 1) return opaqueForm(keyOf(e))
      const at = builtForm(index, facts)
      const of = [...table.places].find(([place]) => sameForm(at, nameForm(place)))
      return of
        ? of[1]
        : atomForm({ kind: 'element', table: e.buffer, at, key: `${e.buffer}[${formKey(at)}]` })
    }
    default:
      return opaqueForm(keyOf(e))
  }
}

function binaryForm(e: Extract<Expr, { kind: 'binary' }>, facts: Facts): Form {
  const a = builtForm(e.a, facts)
  const b = builtForm(e.b, facts)
  const divide = (by: number): Form => quotient(a, by, (f, below) => within(f, constantForm(below), facts))
  const pair = (kind: 'least' | 'most' | 'product'): Form => {
    const [x, y] = formKey(a) <= formKey(b) ? [a, b] : [b, a]
    return atomForm({ kind, a: x, b: y, key: `${kind}(${formKey(x)},${formKey(y)})` })
  }
  switch (e.op) {
    case 'add':
      return plus(a, b)
    case 'sub':
      return minus(a, b)
    case 'mul':
      return isConstant(b) ? times(a, b.constant) : isConstant(a) ? times(b, a.constant) : pair('product')
    case 'div':
    case 'mod':
      if (!isConstant(b) || b.constant <= 0) break
      return e.op === 'div' ? divide(b.constant) : minus(a, times(divide(b.constant), b.constant))
    case 'min':
    case 'max': {
      const [low, high] = e.op === 'min' ? [a, b] : [b, a]
      if (neverNegative(minus(high, low), facts)) return a
      if (neverNegative(minus(low, high), facts)) return b
      return pair(e.op === 'min' ? 'least' : 'most')
    }
    default:
      break
  }
  return opaqueForm(`${e.op}(${formKey(a)},${formKey(b)})`)
}

/** Steps of all proofs of one question; beyond them nothing is proved. */
interface Budget {
  left: number
}

/**
 * Whether `f >= 0` wherever the facts hold. Atoms are replaced one by one by what makes the form smaller (their
 * bounds, linear relaxations of quotients); a form that is left without atoms decides. Up to two assumptions are
 * taken off first. `false`: not proved.
 */
export function neverNegative(f: Form, facts: Facts): boolean {
  try {
    return descendWith(f, facts, { left: 3000 })
  } catch (e) {
    if (e instanceof GivesUp) return false
    throw e
  }
}

function descendWith(f: Form, facts: Facts, budget: Budget): boolean {
  const { assumptions } = facts
  if (descend(f, facts, budget)) return true
  for (let i = 0; i < assumptions.length; i++) {
    const less = minus(f, assumptions[i]!)
    if (descend(less, facts, budget)) return true
    for (let k = i; k < assumptions.length; k++)
      if (descend(minus(less, assumptions[k]!), facts, budget)) return true
  }
  return false
}

function descend(f: Form, facts: Facts, budget: Budget): boolean {
  if (--budget.left < 0) throw new GivesUp()
  const atom = nextAtom(f, facts)
  if (!atom) return f.constant >= 0
  const { rest, coefficient: q } = without(f, atom)
  const through = (replacement: Form): boolean => descend(plus(rest, replacement, q), facts, budget)
  switch (atom.kind) {
    case 'name': {
      const bounds = facts.bounds.get(atom.name)
      const end = q > 0 ? bounds?.low : bounds?.high
      return end ? through(end) : false
    }
    case 'quotient': {
      // c·floor(x / c) lies in [x - (c - 1), x]; and an integer f is 0 or more exactly if c·f > -c.
      const c = atom.by
      const slack = c - 1 - (q > 0 ? q * (c - 1) : 0)
      return descend(shift(plus(times(rest, c), atom.of, q), slack), facts, budget)
    }
    case 'least':
    case 'most': {
      const either = atom.kind === 'least' ? q < 0 : q > 0
      return either ? through(atom.a) || through(atom.b) : through(atom.a) && through(atom.b)
    }
    case 'product':
      return q > 0 && descend(atom.a, facts, budget) && descend(atom.b, facts, budget)
        ? descend(rest, facts, budget)
        : false
    case 'element':
      return elementBounds(atom, q < 0, facts).some(through)
    case 'opaque':
      return false
  }
}

/** Sizes last, and names after what is made of them. */
function nextAtom(f: Form, facts: Facts): Atom | undefined {
  const atoms = f.terms.map((t) => t.atom)
  return (
    atoms.find((a) => a.kind !== 'name') ??
    atoms.find((a) => a.kind === 'name' && facts.bounds.get(a.name)?.rank === 1) ??
    atoms[0]
  )
}

/** Elements of sorts and lists are coordinates or the fill; those of lists ascend, and enclose what is found there. */
function elementBounds(atom: Extract<Atom, { kind: 'element' }>, above: boolean, facts: Facts): Form[] {
  const table = facts.tables.get(atom.table)
  if (!table) return []
  const near = (distance: number): Form[] =>
    [...table.found].flatMap(([name, of]) =>
      sameForm(atom.at, shift(nameForm(name), distance)) ? [distance === 0 ? of : shift(of, 1)] : [],
    )
  return above ? [...near(0), table.fill] : [...near(1), constantForm(0)]
}
