/**
 * Sparsity propagation (sparsity attributes of SparTA; Zheng et al., OSDI 2022): facts about tensors before any data
 * are bound. Forward: tensors with one value everywhere, or with one value wherever another tensor, a mask, has its
 * fill value. Backward: tensors that are not read, or that are needed only where a mask differs from its fill value. A
 * function with f(0) ≠ 0 gives a constant, not zero.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf, writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { withoutIteration } from './dead-iterations.ts'
import { knownValues } from './known-values.ts'
import { type Facts, factsOf, type MaskRejection, maskOf, notComplete } from './maskable-iterations.ts'
import { type Need, neededElements } from './needed-elements.ts'
import { masksOf, sparseInputsOf, waysInto } from './writes.ts'

/** The elements at which a mask has its fill value, or differs from it. */
export interface TensorMask {
  readonly mask: string
  /** For each dimension of the mask, the corresponding dimension of the tensor, and its axis. */
  readonly dimensions: readonly { readonly dimension: number; readonly axis: string }[]
}

/** The value of a tensor where a mask has its fill value; `zero`: it is the tensor's own fill value. */
export interface MaskedValue extends TensorMask {
  readonly value: number
  readonly zero: boolean
}

export interface TensorAttributes {
  readonly tensor: string
  /** `zero`: the fill value everywhere; `constant`: another single value everywhere; `live`: any values. */
  readonly value: 'live' | 'constant' | 'zero'
  /** The single value; null for `live`. */
  readonly constant: number | null
  /** True if a result depends on the tensor; results count as read. */
  readonly isUsed: boolean
  readonly maskedValues: readonly MaskedValue[]
  /** The masks without which elements need not be computed: they may keep their fill value, or their initial value. */
  readonly neededWithin: readonly TensorMask[]
  /**
   * The first reason found why a temporary is needed where a mask has its fill value; null if there is no reason, or
   * for other tensors.
   */
  readonly need: Need | null
}

/** A tensor at whose fill value an iteration need not run; `iterators` has an iterator for each dimension. */
export interface IterationMask {
  readonly mask: string
  readonly iterators: readonly string[]
}

export interface IterationAttributes {
  readonly name: string
  readonly span?: Span | undefined
  /** True if a result depends on a tensor that the iteration writes. */
  readonly isUsed: boolean
  /** True if the kernel has the same results without the iteration, so that `drop` may remove the iteration. */
  readonly isDead: boolean
  /** The tensors that can mask the iteration. */
  readonly masks: readonly IterationMask[]
  /** The tensors that cannot mask the iteration, with the reason. */
  readonly rejections: readonly (MaskRejection & { readonly mask: string })[]
}

export interface SparsityAttributes {
  readonly tensors: readonly TensorAttributes[]
  /** The iterations, outer before inner. */
  readonly iterations: readonly IterationAttributes[]
}

export function sparsityAttributes(kernel: Kernel1): SparsityAttributes {
  const facts = masksOf(kernel).map((mask) => factsOf(kernel, mask))
  const fills = [
    ...facts,
    ...sparseInputsOf(kernel).map((mask) => ({ mask, known: knownValues(kernel, mask, false) })),
  ]
  const values = new Map(knownValues(kernel, null, false).all.map((v) => [v.tensor, v.value]))
  const unread = new Set(
    neededElements(kernel, null, knownValues(kernel, null, true)).all.map((x) => x.tensor),
  )
  return Object.freeze({
    tensors: frozen(
      kernel.buffers
        .filter((b) => !b.table)
        .map((b) => tensorAttributes(b, values.get(b.name), unread, { facts, fills })),
    ),
    iterations: frozen(iterationsOf(kernel.body).map((it) => iterationAttributes(kernel, it, unread, facts))),
  })
}

const frozen = <T extends object>(all: readonly T[]): readonly T[] =>
  Object.freeze(all.map((x) => Object.freeze(x)))

function tensorAttributes(
  b: Buffer1,
  constant: number | undefined,
  unread: ReadonlySet<string>,
  { facts, fills }: { facts: readonly Facts[]; fills: readonly Pick<Facts, 'mask' | 'known'>[] },
): TensorAttributes {
  const at = ({ mask }: Pick<Facts, 'mask'>, by: readonly number[]): TensorMask => ({
    mask: mask.name,
    dimensions: frozen(by.map((dimension) => ({ dimension, axis: b.axes[dimension]! }))),
  })
  const own = <T extends { readonly tensor: string }>(all: readonly T[]): readonly T[] =>
    all.filter((x) => x.tensor === b.name)
  const neededWithin = facts.flatMap((f) => own(f.needed.all).map(({ by }) => at(f, by)))
  const needs = b.role === 'local' ? facts.flatMap((f) => f.needed.needsOf(b.name)) : []
  return {
    tensor: b.name,
    value: constant === undefined ? 'live' : constant === b.fill ? 'zero' : 'constant',
    constant: constant ?? null,
    isUsed: !unread.has(b.name),
    // A value that a tensor has everywhere is not repeated for each mask.
    maskedValues: frozen(
      constant === undefined
        ? fills.flatMap((f) =>
            own(f.known.all).map(({ by, value }) => ({ ...at(f, by), value, zero: value === b.fill })),
          )
        : [],
    ),
    neededWithin: frozen(unread.has(b.name) ? [] : neededWithin),
    need: neededWithin.length === 0 && needs[0] ? Object.freeze(needs[0]) : null,
  }
}

function iterationAttributes(
  kernel: Kernel1,
  it: Iteration,
  unread: ReadonlySet<string>,
  facts: readonly Facts[],
): IterationAttributes {
  const own = writtenBuffers1([it])
  const masks: IterationMask[] = []
  const refusals: (MaskRejection & { readonly mask: string })[] = []
  for (const f of facts) {
    const mask = f.mask.name
    const found = maskOf(kernel, it, f)
    if ('index' in found) {
      const iterators = found.index.map((e) => (e.kind === 'var' ? e.name : ''))
      masks.push({ mask, iterators: Object.freeze(iterators) })
    } else if (
      !notComplete(kernel, it, f.mask) &&
      kernel.buffers.some((b) => own.has(b.name) && waysInto(kernel, f.mask, b).length > 0)
    )
      refusals.push({ mask, ...found })
  }
  return {
    name: it.name,
    ...(it.span && { span: it.span }),
    isUsed: [...own].some((name) => !unread.has(name)),
    isDead: 'kernel' in withoutIteration(kernel, it),
    masks: frozen(masks),
    rejections: frozen(refusals),
  }
}
