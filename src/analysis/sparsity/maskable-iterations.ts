/**
 * Maskable iterations: whether an iteration may run only where a tensor, its mask, differs from its fill value.
 * Elsewhere, each of its statements must combine the identity, assign the value that is there, or write elements that
 * are not needed.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { isFused } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { readsIn, someStmt1, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { givenBy } from './fill-folding.ts'
import { type KnownValues, knownValues } from './known-values.ts'
import { type NeededElements, neededElements } from './needed-elements.ts'
import { maskedAt, masksOf, reasonOfRounds, type Write, waysInto, writesOf } from './writes.ts'

/** The reason why an iteration must run where the mask has its fill value. */
export interface MaskRejection {
  readonly reason: string
  readonly span?: Span | undefined
  readonly hint: string
}

/** Facts about a mask: the values of tensors, and the needed elements, where the mask has its fill value. */
export interface Facts {
  readonly mask: Buffer1
  readonly known: KnownValues
  readonly needed: NeededElements
}

export const factsOf = (kernel: Kernel1, mask: Buffer1): Facts => ({
  mask,
  known: knownValues(kernel, mask, false),
  needed: neededElements(kernel, mask, knownValues(kernel, mask, true)),
})

/**
 * Returns the reason why a tensor cannot be a mask of an iteration, whatever the iteration computes; null if the tensor
 * can be a mask.
 */
export function notComplete(kernel: Kernel1, it: Iteration, mask: Buffer1): MaskRejection | null {
  const repeated = reasonOfRounds(kernel)
  if (repeated) return { ...repeated, hint: 'write the condition into the statements' }
  const top = topOf(kernel, it)
  const written = kernel.body.findLastIndex((s) => writtenBuffers1([s]).has(mask.name))
  const hint = `a mask is a dense tensor that comes in, or is complete before ${it.name} and before anything reads it`
  if (written >= top) return { reason: `${mask.name} is not complete before ${it.name}`, span: it.span, hint }
  if (!kernel.body.some((s) => readsIn([s]).some((l) => l.buffer === mask.name)))
    return {
      reason: `nothing reads ${mask.name}, so that what it holds decides nothing`,
      span: mask.span,
      hint: 'choose a tensor that is read',
    }
  if (!masksOf(kernel).includes(mask))
    return {
      reason: `${mask.name} is not a dense tensor that is complete before it is read`,
      span: mask.span,
      hint,
    }
  return null
}

const topOf = (kernel: Kernel1, it: Iteration): number =>
  kernel.body.findIndex((s) => someStmt1([s], (x) => x === it))

/**
 * Returns the element of the mask that decides whether a step of the iteration runs, with an iterator for each
 * dimension; otherwise the reason why no element does.
 */
export function maskOf(
  kernel: Kernel1,
  it: Iteration,
  facts: Facts,
): { readonly index: readonly Expr[] } | MaskRejection {
  const early = notComplete(kernel, it, facts.mask)
  if (early) return early
  const writes = writesOf(kernel).filter((w) => w.iterations.includes(it))
  const places = placesIn(kernel, it, writes, facts)
  const index = places.find((at) => writes.every((w) => !isFelt(w, at, facts)))
  if (index) return { index }
  const { mask, needed } = facts
  const felt = writes.find((w) => !places.some((at) => !isFelt(w, at, facts))) ?? writes[0]
  const names = [...new Set((felt?.targets ?? []).map((t) => t.buffer))]
  const needs = names.flatMap((name) => needed.needsOf(name))
  const written = names.join(', ')
  const reason = `${it.name} computes ${written} where ${mask.name} is at its fill`
  const hint = `mask first what reads ${written}, or multiply by ${mask.name} where it is read`
  if (needs[0]) return { reason: `${reason}, and ${needs[0].reason}`, span: needs[0].span, hint }
  const results = names.find((name) => kernel.buffers.some((b) => b.name === name && b.role !== 'local'))
  return {
    reason: results
      ? `${reason}, and ${results} is a result`
      : `${reason}: no iterators of it are the dimensions of ${mask.name}`,
    span: felt?.stmt.span ?? it.span,
    hint,
  }
}

/**
 * Returns the elements of the mask, at iterators in scope, that correspond to accesses of the iteration, in the order
 * of the text.
 */
function placesIn(
  kernel: Kernel1,
  it: Iteration,
  writes: readonly Write[],
  { mask }: Facts,
): readonly (readonly Expr[])[] {
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const around = writes[0]?.iterations ?? []
  const scope = new Set(
    around.slice(0, around.indexOf(it) + 1).flatMap((x) =>
      x.iters.flatMap((i) => {
        const axis = axes.get(i.axis)!
        return isFused(axis) ? axis.members : [i.name]
      }),
    ),
  )
  const found = new Map<string, readonly Expr[]>()
  const add = (l: Load): void => {
    const b = buffers.get(l.buffer)!
    for (const by of b === mask ? [b.axes.map((_, d) => d)] : waysInto(kernel, mask, b)) {
      const at = maskedAt(l, by)
      if (at.every((e) => e.kind === 'var' && scope.has(e.name))) found.set(at.map(keyOf).join(), at)
    }
  }
  for (const w of writes) for (const l of w.loads) if (l.buffer === mask.name) add(l)
  for (const w of writes) for (const l of [...w.loads, ...w.targets]) add(l)
  return [...found.values()]
}

/**
 * Returns whether a statement has a visible effect where the mask has its fill value at `at`; without a mask, anywhere.
 */
export function isFelt(
  w: Write,
  at: readonly Expr[],
  { known, needed }: Pick<Facts, 'known' | 'needed'>,
): boolean {
  const there = known.statesAt(at, w)
  const given = givenBy(w, there)
  if (given.every((g) => g.isIdentity)) return false
  return !w.targets.every((t, k) => {
    if (needed.isLeft(t, at)) return true
    return w.stmt.kind === 'assign' && known.keeps(t, at, given[k]!.value)
  })
}
