/**
 * Indices of operands. A dimension is indexed by an iterator, or by a number whose digits are iterators (`2 * g + q`)
 * or elements of other operands (`4 * g + M[i, 2 * g + q]`). In the loops of an instruction, the digits of one
 * dimension become one loop along it, and so do the possible values of an element. Operands are then checked by
 * dimension.
 */
import { add, type Expr, int, type Load, mul, variable } from '../../ir/expressions/expr.ts'
import { mentions, rewriteExpr, substitute, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { Instr, Operand } from '../../ir/instructions/instr.ts'
import type { For } from '../../ir/statements/loops.ts'
import { linear } from '../integers/linear.ts'

export interface IndexDigit {
  /** The name of an iterator, or of the operand that has the element. */
  readonly name: string
  /** The difference of the index between consecutive values of the digit. */
  readonly weight: number
  readonly element?: Load | undefined
}

/**
 * Returns the digits of a sum, most significant first; undefined if the expression is not a sum of names and elements.
 */
export function digitsIn(e: Expr): readonly IndexDigit[] | undefined {
  const { terms, constant } = linear(e)
  const out: IndexDigit[] = []
  for (const { term, coefficient } of terms.values()) {
    if (term.kind === 'var') out.push({ name: term.name, weight: coefficient })
    else if (term.kind === 'load') out.push({ name: term.buffer, weight: coefficient, element: term })
    else return undefined
  }
  return constant === 0 ? out.sort((a, b) => b.weight - a.weight) : undefined
}

/**
 * Returns the number of values of each digit, so that the digits represent `count` numbers exactly once; undefined if
 * that is impossible.
 */
export function extentsOf(digits: readonly IndexDigit[], count: number): readonly number[] | undefined {
  const extents = digits.map((d, k) => (k === 0 ? count : digits[k - 1]!.weight) / d.weight)
  const all = digits.at(-1)?.weight === 1 && digits.every((d) => d.weight > 0)
  return all && extents.every(Number.isInteger) ? extents : undefined
}

export const sumOf = (digits: readonly IndexDigit[]): Expr =>
  digits.map((d) => mul(d.element ?? variable(d.name), int(d.weight))).reduce(add)

export const digitsOf = (o: Operand, instr: Instr): readonly (readonly IndexDigit[])[] =>
  indexOf(o, instr).map((e) => digitsIn(e) ?? [])

/** Returns the elements of other operands in an operand's index. */
export const elementsIn = (index: readonly Expr[]): readonly Load[] =>
  index.flatMap((e) => digitsIn(e) ?? []).flatMap((d) => d.element ?? [])

/** Returns the iterator of each dimension; an empty text for dimensions with several digits. */
export const iteratorsOf = (o: Operand, instr: Instr): readonly string[] =>
  indexOf(o, instr).map((e) => (e.kind === 'var' ? e.name : ''))

function indexOf(o: Operand, { body }: Instr): readonly Expr[] {
  const target = body.kind === 'store' ? body : body.targets[0]!
  if (target.buffer === o.name) return target.index
  const found: Load[] = []
  walkExpr(body.kind === 'store' ? body.value : body.values[0]!, (e) => {
    if (e.kind === 'load' && e.buffer === o.name) found.push(e)
  })
  return found[0]!.index
}

/** An operand's element over a loop for each of its dimensions. */
export interface Along {
  readonly load: Load
  readonly own: readonly For[]
}

/**
 * Returns the kernel's element over a loop for each of the operand's dimensions. `bound` has the buffer element of each
 * operand. Returns undefined if the loops are not the same digits in the kernel's element as in the operand's.
 */
export function alongDimensions(
  o: Operand,
  l: Load,
  instr: Instr,
  loops: readonly For[],
  bound: ReadonlyMap<string, Load>,
): Along | undefined {
  const loopOf = ({ name, element }: IndexDigit, extent: number): For => {
    const own = loops[element ? 0 : instr.iters.findIndex((i) => i.name === name)]!
    return element ? { ...own, var: `@${name}`, name: bound.get(name)!.buffer, extent: int(extent) } : own
  }
  const dimensions = digitsOf(o, instr)
  let { index } = l
  for (const { name, element } of dimensions.flat()) {
    const key = element && keyOf(bound.get(name)!)
    const asLoop = (x: Expr): Expr | undefined =>
      x.kind === 'load' && keyOf(x) === key ? variable(`@${name}`) : undefined
    if (element) index = index.map((e) => rewriteExpr(e, asLoop))
  }
  const own: For[] = []
  for (const [d, digits] of dimensions.entries()) {
    const extents = extentsOf(digits, o.shape[d]!)!
    const all = digits.map((x, k) => ({ loop: loopOf(x, extents[k]!), weight: x.weight, count: extents[k]! }))
    // Loops of one iteration do not matter.
    const [whole = all.at(-1)!, ...more] = all.filter((x) => x.count > 1)
    const once = new Map(
      all.flatMap((x) => (x.count > 1 || x === whole ? [] : [[x.loop.var, int(0)] as const])),
    )
    index = index.map((e) => substitute(e, once))
    if (more.length === 0) {
      own.push(whole.loop)
      continue
    }
    const members = [whole, ...more].map(({ loop, weight }) => ({ of: loop.var, name: loop.name, weight }))
    const along: For = {
      ...whole.loop,
      var: `@${o.name}.${d}`,
      name: members.map((m) => m.name).join(' and '),
      extent: int(o.shape[d]!),
    }
    const over = index.map((e) => digitsAsOne(e, members, along.var))
    if (over.some((e) => e === undefined)) return undefined
    index = over as Expr[]
    own.push(along)
  }
  return { load: index === l.index ? l : { ...l, index }, own }
}

/**
 * Returns a sum over digits as a sum over the number that they form; undefined if the sum depends on the digits
 * otherwise.
 */
function digitsAsOne(
  e: Expr,
  members: readonly { readonly of: string; readonly weight: number }[],
  number: string,
): Expr | undefined {
  if (!members.some((m) => mentions(e, m.of))) return e
  const coefficients = new Map<string, number>()
  for (const { term, coefficient } of linear(e).terms.values()) {
    if (term.kind === 'var') coefficients.set(term.name, coefficient)
    else if (members.some((m) => mentions(term, m.of))) return undefined
  }
  const least = members.at(-1)!
  const by = coefficients.get(least.of) ?? 0
  if (members.some((m) => (coefficients.get(m.of) ?? 0) !== by * m.weight)) return undefined
  const rest = substitute(e, new Map(members.map((m) => [m.of, int(0)])))
  return add(rest, mul(variable(number), int(by)))
}
