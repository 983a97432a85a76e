/**
 * Sparsity attributes (SparTA; Zheng et al., OSDI 2022): what is known of tensors before any data are. Forward, which hold one
 * value everywhere, and which do where another tensor, a mask, is at its fill; backward, which nobody reads, and which are needed
 * only where a mask holds something. f(0) ≠ 0 is a constant, no zero.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Buffer1, Iteration, Kernel1 } from '../ir/stage1.ts'
import { iterationsOf, writtenBy } from '../ir/stage1-tree.ts'
import { KnownValues } from './sparsity/known-values.ts'
import { type Facts, factsOf, type MaskRefusal, maskOf, notComplete } from './sparsity/maskable-iterations.ts'
import { type Need, NeededElements } from './sparsity/needed-elements.ts'
import { withoutIteration } from './sparsity/needless-iterations.ts'
import { masksOf, sparseInputsOf, waysInto } from './sparsity/writes.ts'

/** Where a mask is at its fill, or is not. */
export interface AtMask {
  readonly mask: string
  /** By dimension of the mask: the dimension of the tensor that it is, and its axis. */
  readonly dimensions: readonly { readonly dimension: number; readonly axis: string }[]
}

/** The value that a tensor has where a mask is at its fill; `zero`: that is the tensor's own fill. */
export interface ValueAtFill extends AtMask {
  readonly value: number
  readonly zero: boolean
}

export interface TensorAttributes {
  readonly tensor: string
  /** `zero`: its fill, everywhere. A tensor of another one value is `constant`. */
  readonly value: 'live' | 'constant' | 'zero'
  /** The one value. */
  readonly constant: number | null
  /** Whether a result depends on it; results are read. */
  readonly read: boolean
  readonly atFill: readonly ValueAtFill[]
  /** Elements have to be computed only where the mask differs from its fill: else they may keep their fill, or what they start from. */
  readonly neededWhere: readonly AtMask[]
  /** Of a temporary: why it is needed where a mask is at its fill, the first reason found; `null` where there is none. */
  readonly need: Need | null
}

/** A tensor outside of whose elements an iteration need not run: iterators, by dimension of it. */
export interface IterationMask {
  readonly mask: string
  readonly iterators: readonly string[]
}

export interface IterationAttributes {
  readonly name: string
  readonly span?: Span | undefined
  /** Whether a result depends on anything that it writes. */
  readonly read: boolean
  /** Whether the kernel comes to the same without it, as `drop` leaves it out. */
  readonly needless: boolean
  /** By which it can be masked. */
  readonly masks: readonly IterationMask[]
  /** By which it cannot, and why. */
  readonly refusals: readonly (MaskRefusal & { readonly mask: string })[]
}

export interface SparsityAttributes {
  readonly tensors: readonly TensorAttributes[]
  /** Outer before inner. */
  readonly iterations: readonly IterationAttributes[]
}

export function sparsityAttributes(kernel: Kernel1): SparsityAttributes {
  const facts = masksOf(kernel).map((mask) => factsOf(kernel, mask))
  const fills = [
    ...facts,
    ...sparseInputsOf(kernel).map((mask) => ({ mask, known: new KnownValues(kernel, mask, false) })),
  ]
  const values = new Map(new KnownValues(kernel, null, false).all.map((v) => [v.tensor, v.value]))
  const unread = new Set(
    new NeededElements(kernel, null, new KnownValues(kernel, null, true)).all.map((x) => x.tensor),
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
  const at = ({ mask }: Pick<Facts, 'mask'>, by: readonly number[]): AtMask => ({
    mask: mask.name,
    dimensions: frozen(by.map((dimension) => ({ dimension, axis: b.axes[dimension]! }))),
  })
  const own = <T extends { readonly tensor: string }>(all: readonly T[]): readonly T[] =>
    all.filter((x) => x.tensor === b.name)
  const neededWhere = facts.flatMap((f) => own(f.needed.all).map(({ by }) => at(f, by)))
  const needs = b.role === 'local' ? facts.flatMap((f) => f.needed.needsOf(b.name)) : []
  return {
    tensor: b.name,
    value: constant === undefined ? 'live' : constant === b.fill ? 'zero' : 'constant',
    constant: constant ?? null,
    read: !unread.has(b.name),
    // What holds everywhere is not said of each mask.
    atFill: frozen(
      constant === undefined
        ? fills.flatMap((f) =>
            own(f.known.all).map(({ by, value }) => ({ ...at(f, by), value, zero: value === b.fill })),
          )
        : [],
    ),
    neededWhere: frozen(unread.has(b.name) ? [] : neededWhere),
    need: neededWhere.length === 0 && needs[0] ? Object.freeze(needs[0]) : null,
  }
}

function iterationAttributes(
  kernel: Kernel1,
  it: Iteration,
  unread: ReadonlySet<string>,
  facts: readonly Facts[],
): IterationAttributes {
  const own = writtenBy([it])
  const masks: IterationMask[] = []
  const refusals: (MaskRefusal & { readonly mask: string })[] = []
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
    ...(it.span ? { span: it.span } : {}),
    read: [...own].some((name) => !unread.has(name)),
    needless: 'kernel' in withoutIteration(kernel, it),
    masks: frozen(masks),
    refusals: frozen(refusals),
  }
}
