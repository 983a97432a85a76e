/**
 * Indices of operands. A dimension is an iterator, or a number whose digits are iterators (`2 * g + q`). In the loops that an
 * instruction stands for, those that are digits of one dimension are one loop along it: what is asked of operands is asked of
 * dimensions.
 */
import { add, type Expr, int, type Load, mul, variable } from '../../ir/expr.ts'
import { mentions, substitute } from '../../ir/expr-tree.ts'
import type { Instr, Operand } from '../../ir/instr.ts'
import type { For } from '../../ir/loops.ts'
import { linear } from '../integers/linear.ts'

export interface IndexDigit {
  readonly name: string
  /** How far apart two of its coordinates are. */
  readonly weight: number
}

/** The digits that a sum is, most significant first; `undefined`: it is none of names. */
export function digitsIn(e: Expr): readonly IndexDigit[] | undefined {
  const { terms, constant } = linear(e)
  const out: IndexDigit[] = []
  for (const { term, coefficient } of terms.values()) {
    if (term.kind !== 'var') return undefined
    out.push({ name: term.name, weight: coefficient })
  }
  return constant === 0 ? out.sort((a, b) => b.weight - a.weight) : undefined
}

/** How many coordinates each digit has for `count` numbers to be named once each; `undefined`: they are not. */
export function extentsOf(digits: readonly IndexDigit[], count: number): readonly number[] | undefined {
  const extents = digits.map((d, k) => (k === 0 ? count : digits[k - 1]!.weight) / d.weight)
  const all = digits.at(-1)?.weight === 1 && digits.every((d) => d.weight > 0)
  return all && extents.every(Number.isInteger) ? extents : undefined
}

export const sumOf = (digits: readonly IndexDigit[]): Expr =>
  digits.map((d) => mul(variable(d.name), int(d.weight))).reduce(add)

/** The iterators that index an operand, by dimension. */
export const digitsOf = (o: Operand, instr: Instr): readonly (readonly IndexDigit[])[] =>
  indexOf(o, instr).map((e) => digitsIn(e) ?? [])

/** Those of dimensions that are one iterator each. */
export const iteratorsOf = (o: Operand, instr: Instr): readonly string[] =>
  indexOf(o, instr).map((e) => (e.kind === 'var' ? e.name : ''))

function indexOf(o: Operand, { body }: Instr): readonly Expr[] {
  const target = body.kind === 'store' ? body : body.targets[0]!
  if (target.buffer === o.name) return target.index
  const found: Load[] = []
  const go = (e: Expr): void => {
    if (e.kind === 'load' && e.buffer === o.name) found.push(e)
    else if (e.kind === 'binary') [e.a, e.b].forEach(go)
    else if (e.kind === 'cast' || e.kind === 'unary') go(e.x)
    else if (e.kind === 'call') e.args.forEach(go)
    else if (e.kind === 'select') [e.cond, e.then, e.else].forEach(go)
  }
  go(body.kind === 'store' ? body.value : body.values[0]!)
  return found[0]!.index
}

/** An operand's element, over a loop for each of its dimensions. */
export interface Along {
  readonly load: Load
  readonly own: readonly For[]
}

/** `undefined`: in the kernel's element, loops are not the digits that they are in the operand's. */
export function alongDimensions(o: Operand, l: Load, instr: Instr, loops: readonly For[]): Along | undefined {
  const loopOf = (name: string): For => loops[instr.iters.findIndex((i) => i.name === name)]!
  let { index } = l
  const own: For[] = []
  for (const [d, digits] of digitsOf(o, instr).entries()) {
    const [first] = digits
    const whole = loopOf(first!.name)
    if (digits.length === 1) {
      own.push(whole)
      continue
    }
    const members = digits.map(({ name, weight }) => ({ of: loopOf(name).var, weight }))
    const along: For = {
      ...whole,
      var: `@${o.name}.${d}`,
      name: members.map((m) => m.of).join(' and '),
      extent: int(o.shape[d]!),
    }
    const over = index.map((e) => digitsAsOne(e, members, along.var))
    if (over.some((e) => e === undefined)) return undefined
    index = over as Expr[]
    own.push(along)
  }
  return { load: index === l.index ? l : { ...l, index }, own }
}

/** A sum over digits as one over the number that they are. */
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
