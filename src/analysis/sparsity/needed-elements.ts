/**
 * Backward: which tensors are needed only where a mask holds something, as the greatest set that no statement contradicts. Where
 * the mask is at its fill, who reads such a tensor comes to the same without it, or writes nothing but tensors of the set.
 * Without a mask: which tensors no result depends on. Elements that are not needed may stay what they start from.
 */
import type { Span } from '../../ast/diagnostic.ts'
import { isFloat } from '../../ir/dtype.ts'
import { constant, type Expr, type Load, select } from '../../ir/expr.ts'
import { someExpr } from '../../ir/expr-tree.ts'
import type { Buffer1, Kernel1 } from '../../ir/stage1.ts'
import { keyOf } from '../../ir/structural-equality.ts'
import { absorb, comesToNothing, givenBy } from '../fill-folding.ts'
import type { KnownValues } from './known-values.ts'
import { madeInfinite } from './made-infinite.ts'
import {
  constantOf,
  maskedAt,
  readByAxes,
  sameIndex,
  startOf,
  type Write,
  waysInto,
  writesOf,
} from './writes.ts'

/** Why an element is needed where the mask is at its fill. */
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

export class NeededElements {
  readonly #kept: KnownValues
  readonly #states = new Map<string, readonly State[]>()

  /** @param kept - What is known, whatever is left out */
  constructor(kernel: Kernel1, mask: Buffer1 | null, kept: KnownValues) {
    this.#kept = kept
    const writes = writesOf(kernel)
    const byAxes = readByAxes(kernel)
    for (const buffer of kernel.buffers) {
      if (buffer.table || buffer === mask || (buffer.role !== 'local' && buffer.role !== 'in')) continue
      const start = startOf(buffer, writes)
      const need = byAxes.has(buffer.name) ? { reason: `axes are made of what ${buffer.name} holds` } : null
      const ways = mask ? waysInto(kernel, mask, buffer) : [[]]
      this.#states.set(
        buffer.name,
        ways.map((by) => ({ buffer, by, start, need })),
      )
    }
    for (let changed = true; changed; ) {
      changed = false
      for (const states of this.#states.values())
        for (const s of states)
          if (!s.need) {
            s.need = this.#needOf(s, writes)
            if (s.need) changed = true
          }
    }
  }

  get all(): readonly { readonly tensor: string; readonly by: readonly number[] }[] {
    return [...this.#states].flatMap(([tensor, states]) =>
      states.flatMap(({ by, need }) => (need ? [] : [{ tensor, by }])),
    )
  }

  /** Why elements of a tensor are needed where the mask is at its fill; nothing of results, and where dimensions are no mask's. */
  needsOf(tensor: string): readonly Need[] {
    return (this.#states.get(tensor) ?? []).flatMap((s) => s.need ?? [])
  }

  /** Whether nobody needs an element where the mask is at its fill at `at`. */
  isLeft(l: Load, at: readonly Expr[]): boolean {
    return (this.#states.get(l.buffer) ?? []).some((s) => !s.need && sameIndex(maskedAt(l, s.by), at))
  }

  #needOf(s: State, writes: readonly Write[]): Need | null {
    for (const w of writes) {
      for (const l of w.loads)
        if (l.buffer === s.buffer.name) {
          const need = this.#needIn(s, l, w)
          if (need) return need
        }
      // Components are combined with each other.
      if (w.targets.length > 1 && w.stmt.kind === 'reduce')
        for (const t of w.targets)
          if (t.buffer === s.buffer.name && !this.#changesNothing(w, maskedAt(t, s.by)))
            return { reason: `${nameOf(w)} combines it with what it writes besides`, span: w.stmt.span }
    }
    return null
  }

  /** Whether a statement has no effect that anything sees, where the mask is at its fill at `at`. */
  #changesNothing(w: Write, at: readonly Expr[]): boolean {
    const known = this.#kept.at(at, w)
    return comesToNothing(w, known) || w.targets.every((t) => this.isLeft(t, at))
  }

  /** Of nothing, least and most are infinite. */
  readonly #mayBeInfinite = (e: Expr): boolean =>
    someExpr(
      e,
      (x) => x.kind === 'load' && (this.#states.get(x.buffer) ?? []).some(({ start }) => isInfinite(start)),
    )

  #needIn({ by, start }: State, l: Load, w: Write): Need | null {
    const at = maskedAt(l, by)
    const known = this.#kept.at(at, w)
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
    if (reads && !w.targets.every((t) => this.isLeft(t, at)))
      return { reason: `${nameOf(w)} reads it for ${w.targets.map((t) => t.buffer).join(', ')}`, span }
    // What stays there instead must not make a number infinite that is multiplied by 0 later.
    const now = start === null ? null : constantOf(start, l)
    const used = reads ? w.values.map((v) => w.conditions.reduce(onlyWhere, v)) : factors
    if (
      now &&
      isFloat(now.dtype) &&
      used.some((e) => madeInfinite(e, (x) => (isOf(x) ? now : undefined), this.#mayBeInfinite))
    )
      return { reason: `${nameOf(w)} may make an infinite number of ${start}, which it would be there`, span }
    return null
  }
}

const isInfinite = (start: number | null): boolean =>
  start !== null && Math.abs(start) === Number.POSITIVE_INFINITY

const onlyWhere = (e: Expr, condition: Expr): Expr => select(condition, e, constant(0, e.dtype))

const nameOf = (w: Write): string => w.iterations.at(-1)?.name ?? 'a statement'

/** Whether an element says which other one is read or written. */
const isIndex = (w: Write, isOf: (x: Expr) => boolean): boolean =>
  [...w.loads, ...w.targets].some((l) => l.index.some((e) => someExpr(e, isOf)))
