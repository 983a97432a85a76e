/** Alignment analysis: known divisors of the addresses of a launch. */

import { Facts } from '../../analysis/integers/facts.ts'
import { type Linear, linear, mapNumbers, sumExpr } from '../../analysis/integers/linear.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { buffersRead, children, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, walkStmts } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'

export type Addresses = ReturnType<typeof addressesIn>

export function addressesIn(body: Body, sizes: readonly Fact[] = []) {
  /** Values of `let`s, by name. */
  const lets = new Map<string, Expr>()
  /** Variables defined as sums whose terms are invariant in their scope. */
  const sums = new Map<string, Expr>()
  const expansions = new Map<Expr, Expr>()
  let facts: Facts = new Facts({ sizes, defined: (name) => lets.get(name) })
  const written = writesOf(body)
  walkStmts(body, (s) => {
    if (s.kind !== 'let') return
    lets.set(s.name, s.value)
    if (isSum(s.value) && ![...buffersRead(s.value)].some((b) => written.has(b))) sums.set(s.name, s.value)
  })
  /** Runs `evaluate` with the facts about sizes that the condition implies. */
  const withCondition = <T>(cond: Expr, evaluate: () => T): T => {
    const outer = facts
    facts = outer.where(cond)
    const result = evaluate()
    facts = outer
    return result
  }
  /** Facts about sizes implied by a condition. */
  const impliedFacts = (cond: Expr): readonly Fact[] => facts.multiples(cond)
  /** Linear form of an address; names defined as sums, or as multiples of sums, are expanded. */
  const sumOf = (e: Expr): Linear => linear(expand(e))
  const expand = (e: Expr): Expr => {
    const expandVariable = (x: Expr): Expr | undefined => {
      const value = x.kind === 'var' ? sums.get(x.name) : undefined
      return value && expand(value)
    }
    return rewriteExpr(e, expandVariable, expansions)
  }
  /**
   * Index of the vector of `width` elements at an address, without a division; undefined unless every term is divisible by
   * `width`.
   */
  const vectorIndex = (e: Expr, width: number): Expr | undefined => {
    const sum = sumOf(e)
    const isDivisible = (n: number): boolean => n % width === 0
    if (![sum.constant, ...[...sum.terms.values()].map((t) => t.coefficient)].every(isDivisible))
      return undefined
    return sumExpr(mapNumbers(sum, (n) => n / width))
  }
  /** Largest known divisor of the terms of an address, without its constant; 0 for no terms. */
  const alignment = (base: Linear): number => facts.divisorOfTerms(base)
  return { withCondition, impliedFacts, sumOf, vectorIndex, alignment }
}

/** Width of vectors in elements. */
const VECTOR = 4

/** Buffers whose elements are stored individually in a version for other sizes, where threads may share a vector. */
export function elementwiseStored(body: Body, addresses: Addresses, inElse = false): ReadonlySet<string> {
  const out = new Set<string>()
  for (const s of body) {
    if (s.kind === 'store' && inElse && addresses.alignment(addresses.sumOf(s.index[0]!)) % VECTOR !== 0)
      out.add(s.buffer)
    const impliesFacts = s.kind === 'if' && addresses.impliedFacts(s.cond).length > 0
    for (const [k, b] of bodiesOf(s).entries())
      for (const name of elementwiseStored(b, addresses, inElse || (impliesFacts && k === 1))) out.add(name)
  }
  return out
}

const isSum = (e: Expr): boolean =>
  e.kind === 'binary' &&
  isWord(e.dtype) &&
  (e.op === 'add' || e.op === 'sub' || (e.op === 'mul' && (e.a.kind === 'const' || e.b.kind === 'const')))

// Versions of memory in straight-line code (store-to-load order), for packing accesses into vectors.

/** The element of a buffer at `base + constant`. */
export interface Element {
  readonly key: string
  readonly constant: number
  readonly base: Linear
  readonly load: Load
}

/** Every write changes the version of the elements that it may overwrite. */
export class MemoryVersions {
  readonly #writeCounts = new Map<string, number>()
  /** Constants of the elements written, by buffer and base. */
  readonly #writtenConstants = new Map<string, Set<number>>()
  readonly #elementWrites = new Map<string, number>()

  constructor(private readonly written: ReadonlySet<string>) {}

  /**
   * Version of an element: equal versions mean equal values; `undefined` if the element itself was written. Stores to other
   * elements of the same base keep the version; all other writes change it.
   */
  version(e: Element): string | undefined {
    const { buffer, index } = e.load
    // An index that is loaded from memory may change with every write to that memory.
    const indexVersions = buffersIn(index[0]!)
      .filter((b) => this.written.has(b))
      .map((b) => this.#writeCounts.get(b) ?? 0)
    if (!this.written.has(buffer)) return indexVersions.join()
    if (this.#writtenConstants.get(e.key)?.has(e.constant)) return undefined
    return [
      (this.#writeCounts.get(buffer) ?? 0) - (this.#elementWrites.get(e.key) ?? 0),
      ...indexVersions,
    ].join()
  }

  writeAny(buffer: string): void {
    this.#writeCounts.set(buffer, (this.#writeCounts.get(buffer) ?? 0) + 1)
  }

  writeElement(buffer: string, e: Element | undefined): void {
    this.writeAny(buffer)
    if (!e) return
    this.#elementWrites.set(e.key, (this.#elementWrites.get(e.key) ?? 0) + 1)
    getOrAdd(this.#writtenConstants, e.key, () => new Set<number>()).add(e.constant)
  }
}

function buffersIn(e: Expr): readonly string[] {
  const indexBuffers = children(e).flatMap(buffersIn)
  return e.kind === 'load' ? [e.buffer, ...indexBuffers] : indexBuffers
}
