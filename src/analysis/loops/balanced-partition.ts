/**
 * Load balancing of nonzeros (merge path without rows as work): equal chunks (shares) of positions in segments, and the
 * segments that a chunk intersects.
 */

import { type Expr, int, mul, search } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { isOffsets } from '../../ir/statements/accesses.ts'
import type { Buffer, For, Stmt, WorkPartition } from '../../ir/statements/loops.ts'
import { rewriteStmts } from '../../ir/statements/tree.ts'
import { keepTerms, linear, mapNumbers, sumExpr, type Term } from '../integers/linear.ts'
import { loopDigits, mixedRadix, startOfRun, strideOf } from '../integers/mixed-radix.ts'
import type { Segments } from './segmented-loops.ts'

/**
 * Returns the chunks that a loop over positions of segments makes, or the reason why it makes no chunks. An element may
 * be in several chunks only because its segment is. `around` has all loops around the loop.
 */
export function sharesOf(
  loop: For,
  around: readonly For[],
  { parts, rest }: Segments,
  buffers: readonly Buffer[],
): (WorkPartition & { readonly count: Expr }) | string {
  const [part] = parts
  const { extent } = loop
  const list = part?.kind === 'search' ? buffers.find((b) => b.name === part.buffer) : undefined
  const fixed = rest.flat().every(({ part: p, more }) => p === undefined || more.kind === 'const')
  if (
    parts.length !== 1 ||
    part?.kind !== 'search' ||
    part.method !== 'upper' ||
    !list ||
    !isOffsets(list) ||
    !fixed
  )
    return `the element is not that of the segment in which ${loop.name}'s position lies`
  if (keyOf(part.lo) !== keyOf(int(0)) || keyOf(part.hi) !== keyOf(list.shape[0]!))
    return `${part.buffer} is searched in part`
  if (extent.kind !== 'const') return `${loop.name} has no constant extent`
  const start = startOfRun(part.value, loop.var)
  const isMultiple = (t: Term): boolean => t.coefficient % extent.value === 0
  const aligned = start?.constant === 0 && [...start.terms.values()].every(isMultiple)
  if (!aligned) return `shares do not begin at multiples of ${extent.value}`
  const first = substitute(part.value, new Map([[loop.var, int(0)]]))
  const count = countOf(first, extent.value, around)
  if (!count) return 'iterations of other loops meet in an element, too'
  return { search: search('upper', part.buffer, part.lo, part.hi, first), length: extent.value, count }
}

/** Returns the number of a group of `size` chunks (1: of the chunk itself), in order. */
export function shareNumber({ search, length }: WorkPartition, size = 1): Expr {
  const unit = length * size
  const { terms } = keepTerms(linear(search.value), (t) => t.coefficient % unit === 0)
  return sumExpr(mapNumbers({ terms, constant: 0 }, (n) => n / unit))
}

/**
 * Returns the number of chunks, over sizes; undefined if different iterations of the loops around have a common
 * element.
 */
function countOf(first: Expr, length: number, around: readonly For[]): Expr | undefined {
  const digits = loopDigits(linear(first), (name) => around.find((l) => l.var === name))
  if (!digits) return undefined
  const over = new Set(digits.map((d) => d.of))
  // The loops are digits of the chunk's number.
  const number = mixedRadix(digits.filter((d) => d.of.extent.kind !== 'const' || d.of.extent.value !== 1))
  const [least, last] = [number?.digits[0], number?.digits.at(-1)]
  if (!number || (least && strideOf(least) < length)) return undefined
  // Iterations of other loops have different elements, unless these loops are reductions.
  if (!around.every((l) => over.has(l) || !l.reduce)) return undefined
  return last ? mul(last.of.extent, int(strideOf(last) / length)) : int(1)
}

/** Groups of threads in a block that have neighbouring chunks. */
export interface Groups {
  /** The thread-bound loop over groups. */
  readonly loop: For
  /** The thread-bound loops between `loop` and the loop over positions. */
  readonly between: readonly For[]
}

/**
 * Returns the groups that a loop around the chunks runs over, or the reason why its groups do not have neighbouring
 * chunks.
 */
export function groupsOf(
  { search, length }: WorkPartition,
  group: string,
  around: readonly For[],
  over: For,
): Groups | string {
  const at = around.findIndex((l) => l.var === group)
  const loop = around[at]
  if (!loop) return `${group} is not around ${over.name}`
  const between = around.slice(at + 1)
  const chain = [loop, ...between]
  const serial = chain.find((l) => !boundIndex(l, 'thread'))
  if (serial) return `${serial.name} is not bound to threads`
  const beside = chain.find((l, k) => l.body.length !== 1 || l.body[0] !== (chain[k + 1] ?? over))
  if (beside) return `${beside.name} holds more than one loop`
  const { extent } = loop
  if (extent.kind !== 'const' || between.some((l) => l.extent.kind !== 'const'))
    return `${loop.name} has no constant extent`
  const block = length * extent.value
  const apart = [...linear(search.value).terms.values()].every(({ term, coefficient }) =>
    term.kind === 'var' && term.name === group ? coefficient === length : coefficient % block === 0,
  )
  if (!apart || !mentions(search.value, group))
    return `neighbours in ${loop.name} do not have neighbouring shares`
  return { loop, between }
}

/** Returns a loop nest without the stores of the identity to `carry`. A chunk with a carry-out stores that instead. */
export function withoutStart(top: Stmt, carry: string): Stmt {
  const starts = (s: Stmt): boolean =>
    s.kind === 'store'
      ? s.buffer === carry
      : (s.kind === 'for' && s.body.length === 0) ||
        (s.kind === 'if' && s.then.length === 0 && s.else.length === 0)
  return rewriteStmts([top], { stmt: (s) => (starts(s) ? [] : undefined) })[0]!
}
