/**
 * Backward sparsity propagation: tensors that are needed only where a mask differs from its fill value, as the greatest
 * set that no statement contradicts. Where the mask has its fill value, a consumer of such a tensor has the same effect
 * without it, or writes only tensors of the set. Without a mask: tensors that no result depends on. Elements that are
 * not needed may keep their initial value.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { constant, type Expr, type Load, select } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isFloat } from '../../ir/values/dtype.ts'
import { absorb, comesToNothing, givenBy } from './fill-folding.ts'
import { type KnownValues, madeInfinite } from './known-values.ts'
import {
  constantOf,
  maskedAt,
  readByAxes,
  sameIndex,
  startOf,
  untilSettled,
  type Write,
  waysInto,
  writesOf,
} from './writes.ts'

/** The reason why an element is needed where the mask has its fill value. */
export interface Need {
  readonly reason: string
  readonly span?: Span | undefined
}

interface State {
  readonly buffer: Buffer1
  readonly by: readonly number[]
  readonly start: number | null
  need: Need | null
}

export type NeededElements = ReturnType<typeof neededElements>

/** @param kept values that hold whatever statements are removed */
export function neededElements(kernel: Kernel1, mask: Buffer1 | null, kept: KnownValues) {
  /**
   * Returns the reasons why elements of a tensor are needed where the mask has its fill value; an empty list for
   * results, and for tensors without the mask's dimensions.
   */
  const needsOf = (tensor: string): readonly Need[] =>
    (stateOf.get(tensor) ?? []).flatMap((s) => s.need ?? [])
  /** Returns whether an element is not needed where the mask has its fill value at `at`. */
  const isLeft = (l: Load, at: readonly Expr[]): boolean =>
    (stateOf.get(l.buffer) ?? []).some((s) => !s.need && sameIndex(maskedAt(l, s.by), at))
  const needOf = (s: State, writes: readonly Write[]): Need | null => {
    for (const w of writes) {
      for (const l of w.loads)
        if (l.buffer === s.buffer.name) {
          const need = needIn(s, l, w)
          if (need) return need
        }
      // A reduction of a tuple combines the components with each other.
      if (w.targets.length > 1 && w.stmt.kind === 'reduce')
        for (const t of w.targets)
          if (t.buffer === s.buffer.name && !changesNothing(w, maskedAt(t, s.by)))
            return { reason: `${nameOf(w)} combines it with what it writes besides`, span: w.stmt.span }
    }
    return null
  }
  /** Returns whether a statement has no visible effect where the mask has its fill value at `at`. */
  const changesNothing = (w: Write, at: readonly Expr[]): boolean => {
    const known = kept.statesAt(at, w)
    return comesToNothing(w, known) || w.targets.every((t) => isLeft(t, at))
  }
  const needIn = ({ by, start }: State, l: Load, w: Write): Need | null => {
    const at = maskedAt(l, by)
    const known = kept.statesAt(at, w)
    const given = givenBy(w, known)
    if (given.length === 0) return null
    const key = keyOf(l)
    const isOf = (x: Expr): boolean => x.kind === 'load' && keyOf(x) === key
    const span = l.span ?? w.stmt.span
    const place = isIndex(w, isOf)
    if (place) return { reason: `${nameOf(w)} reads it to find an element`, span }
    const factors = given.flatMap((g) => g.factors)
    const left = [...given.map((g) => g.value), ...w.conditions.map((e) => absorb(e, known, factors))]
    const reads = left.some((e) => someExpr(e, isOf))
    if (reads && !w.targets.every((t) => isLeft(t, at)))
      return { reason: `${nameOf(w)} reads it for ${w.targets.map((t) => t.buffer).join(', ')}`, span }
    // The initial value that stays there must not make a number infinite that is later multiplied by 0.
    const now = start === null ? null : constantOf(start, l)
    const used = reads ? w.values.map((v) => w.conditions.reduce(onlyWhere, v)) : factors
    if (
      now &&
      isFloat(now.dtype) &&
      used.some((e) => madeInfinite(e, (x) => (isOf(x) ? now : undefined), mayBeInfinite))
    )
      return { reason: `${nameOf(w)} may make an infinite number of ${start}, which it would be there`, span }
    return null
  }
  const stateOf = new Map<string, readonly State[]>()
  /** Returns whether a read may be infinite: the minimum or maximum of no elements is. */
  const mayBeInfinite = (e: Expr): boolean =>
    someExpr(
      e,
      (x) => x.kind === 'load' && (stateOf.get(x.buffer) ?? []).some(({ start }) => isInfinite(start)),
    )
  const writes = writesOf(kernel)
  const byAxes = readByAxes(kernel)
  for (const buffer of kernel.buffers) {
    if (buffer.table || buffer === mask || (buffer.role !== 'local' && buffer.role !== 'in')) continue
    const start = startOf(buffer, writes)
    const need = byAxes.has(buffer.name) ? { reason: `axes are made of what ${buffer.name} holds` } : null
    const ways = mask ? waysInto(kernel, mask, buffer) : [[]]
    stateOf.set(
      buffer.name,
      ways.map((by) => ({ buffer, by, start, need })),
    )
  }
  untilSettled(stateOf, (s) => {
    if (s.need) return false
    s.need = needOf(s, writes)
    return s.need !== null
  })
  return {
    get all(): readonly { readonly tensor: string; readonly by: readonly number[] }[] {
      return [...stateOf].flatMap(([tensor, states]) =>
        states.flatMap(({ by, need }) => (need ? [] : [{ tensor, by }])),
      )
    },
    needsOf,
    isLeft,
  }
}

const isInfinite = (start: number | null): boolean =>
  start !== null && Math.abs(start) === Number.POSITIVE_INFINITY

const onlyWhere = (e: Expr, condition: Expr): Expr => select(condition, e, constant(0, e.dtype))

const nameOf = (w: Write): string => w.iterations.at(-1)?.name ?? 'a statement'

/** Returns whether an index of the statement reads the element. */
const isIndex = (w: Write, isOf: (x: Expr) => boolean): boolean =>
  [...w.loads, ...w.targets].some((l) => l.index.some((e) => someExpr(e, isOf)))
