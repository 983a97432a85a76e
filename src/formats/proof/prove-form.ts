/**
 * Linear forms over integers: `Σ coefficient · atom + constant`, with rounded-down quotients by constants as atoms.
 * `e % c` is `e - c · (e / c)`, so that what a map takes apart and its inverse puts together cancels.
 */
import { gcd } from '../../analysis/integers/divisors.ts'

/** A part of a form that is no sum: equal keys have equal values. */
export type Atom = { readonly key: string } & (
  | { readonly kind: 'name'; readonly name: string }
  /** floor(of / by), by a constant > 1. */
  | { readonly kind: 'quotient'; readonly of: Form; readonly by: number }
  | { readonly kind: 'least' | 'most'; readonly a: Form; readonly b: Form }
  | { readonly kind: 'product'; readonly a: Form; readonly b: Form }
  | { readonly kind: 'element'; readonly table: string; readonly at: Form }
  /** Anything else, of which nothing is known. */
  | { readonly kind: 'opaque' }
)

export interface Term {
  readonly atom: Atom
  readonly coefficient: number
}

export interface Form {
  /** In the order of their keys, none with coefficient 0. */
  readonly terms: readonly Term[]
  readonly constant: number
}

/** A proof that ran into numbers or sizes that are not worth following. */
export class GivesUp extends Error {}

/** Every number stays an exact integer. */
function exact(n: number): number {
  if (!Number.isSafeInteger(n)) throw new GivesUp()
  return n === 0 ? 0 : n
}

export const constantForm = (constant: number): Form => ({ terms: [], constant: exact(constant) })
export const atomForm = (atom: Atom): Form => ({ terms: [{ atom, coefficient: 1 }], constant: 0 })
export const nameForm = (name: string): Form => atomForm({ kind: 'name', name, key: name })
export const opaqueForm = (key: string): Form => atomForm({ kind: 'opaque', key: `?${key}` })

export const isConstant = (f: Form): boolean => f.terms.length === 0

/** `a + scale · b`. */
export function plus(a: Form, b: Form, scale = 1): Form {
  const terms: Term[] = []
  let i = 0
  let j = 0
  while (i < a.terms.length || j < b.terms.length) {
    const x = a.terms[i]
    const y = b.terms[j]
    if (!y || (x && x.atom.key < y.atom.key)) {
      terms.push(x!)
      i++
    } else if (!x || y.atom.key < x.atom.key) {
      const coefficient = exact(scale * y.coefficient)
      if (coefficient !== 0) terms.push({ atom: y.atom, coefficient })
      j++
    } else {
      const coefficient = exact(x.coefficient + exact(scale * y.coefficient))
      if (coefficient !== 0) terms.push({ atom: x.atom, coefficient })
      i++
      j++
    }
  }
  if (terms.length > 40) throw new GivesUp()
  return { terms, constant: exact(a.constant + exact(scale * b.constant)) }
}

export const minus = (a: Form, b: Form): Form => plus(a, b, -1)
export const shift = (a: Form, by: number): Form => ({ terms: a.terms, constant: exact(a.constant + by) })
export const times = (a: Form, scale: number): Form => plus(constantForm(0), a, scale)

export function formKey(f: Form): string {
  const key = [...f.terms.map((t) => `${t.coefficient}·${t.atom.key}`), String(f.constant)].join('+')
  if (key.length > 4000) throw new GivesUp()
  return key
}

export const sameForm = (a: Form, b: Form): boolean => formKey(a) === formKey(b)

/** `f` without the term of `atom`, and that term's coefficient. */
export function without(f: Form, atom: Atom): { readonly rest: Form; readonly coefficient: number } {
  const term = f.terms.find((t) => t.atom.key === atom.key)
  const terms = f.terms.filter((t) => t !== term)
  return { rest: { terms, constant: f.constant }, coefficient: term?.coefficient ?? 0 }
}

/** A division that may be simplified by what is known of ranges: `within(f, c)` proves 0 <= f < c. */
export function quotient(f: Form, by: number, within: (f: Form, below: number) => boolean): Form {
  if (by === 1) return f
  // What divides evenly comes out, the rest as it is or with remainders for coefficients.
  const split = (part: (c: number) => number): readonly [Form, Form] => {
    const whole: Form = {
      terms: f.terms
        .map((t) => ({ atom: t.atom, coefficient: exact((t.coefficient - part(t.coefficient)) / by) }))
        .filter((t) => t.coefficient !== 0),
      constant: exact((f.constant - part(f.constant)) / by),
    }
    return [whole, minus(f, times(whole, by))]
  }
  const remainder = (c: number): number => c - by * Math.floor(c / by)
  for (const [whole, rest] of [split((c) => (remainder(c) === 0 ? 0 : c)), split(remainder)]) {
    if (isConstant(rest)) return shift(whole, Math.floor(rest.constant / by))
    if (within(rest, by)) return whole
  }
  const [whole, rest] = split(remainder)
  const common = rest.terms.reduce((g, t) => gcd(g, t.coefficient), by)
  if (common > 1) {
    const less: Form = {
      terms: rest.terms.map((t) => ({ atom: t.atom, coefficient: t.coefficient / common })),
      constant: Math.floor(rest.constant / common),
    }
    return plus(whole, quotient(less, by / common, within))
  }
  // floor((floor(x / a) + s) / c) = floor((x + a s) / (a c)) for integers s.
  const inner = rest.terms.find((t) => t.coefficient === 1 && t.atom.kind === 'quotient')?.atom
  if (inner?.kind === 'quotient') {
    const { rest: other } = without(rest, inner)
    return plus(whole, quotient(plus(inner.of, other, inner.by), exact(inner.by * by), within))
  }
  const key = `(${formKey(rest)}/${by})`
  return plus(whole, atomForm({ kind: 'quotient', of: rest, by, key }))
}
