/** The caller's view of a kernel: tensors over the axes they were declared over, before formats replaced these. */
import { invariant } from '../../ast/diagnostic.ts'
import {
  type Axis,
  chainTo,
  isAttached,
  isDenseChain,
  isFused,
  isGathered,
  isStored,
  parentOf,
  type StoredAxis,
} from '../../ir/axis.ts'
import type { Buffer1, Kernel1, Reformat } from '../../ir/stage1.ts'
import { walkStmts1 } from '../../ir/stage1-tree.ts'

export { allAxesOf } from '../../ir/stage1-tree.ts'

/** A tensor as the kernel's text declares it, and the buffers that store it now. */
export interface CallerTensor {
  readonly name: string
  /** The axes it was declared over. */
  readonly axes: readonly string[]
  /** One for each part, in the order of the parts; the tensor itself where no format was applied. */
  readonly buffers: readonly Buffer1[]
  /** The first of them: role, type and fill are the same for all parts. */
  readonly first: Buffer1
}

/** The declared tensor that each buffer of a format is (a part of), and the axes of those tensors. */
function declaredTensors(kernel: Kernel1) {
  const owner = new Map<string, string>()
  const axes = new Map<string, readonly string[]>()
  for (const r of kernel.reformats)
    for (const b of r.buffers) {
      const root = owner.get(b.name) ?? b.name
      if (!axes.has(root)) axes.set(root, b.axes)
      for (const part of b.parts) owner.set(part, root)
    }
  return { owner, axes }
}

/** The tensor that a buffer is (a part of), now or between two steps. */
export const tensorNameOf = (kernel: Kernel1, buffer: string): string =>
  declaredTensors(kernel).owner.get(buffer) ?? buffer

/** Tensors in the order in which their first buffers stand in the kernel; what the kernel makes for itself, and tables of formats, are none. */
export function callerTensors(kernel: Kernel1): readonly CallerTensor[] {
  const { owner, axes } = declaredTensors(kernel)
  const parts = new Map<string, Buffer1[]>()
  for (const b of kernel.buffers) {
    if (b.table || b.filledAtRunTime) continue
    const root = owner.get(b.name) ?? b.name
    const known = parts.get(root)
    if (known) known.push(b)
    else parts.set(root, [b])
  }
  return [...parts].map(([name, buffers]) => ({
    name,
    axes: axes.get(name) ?? buffers[0]!.axes,
    buffers,
    first: buffers[0]!,
  }))
}

export const callerTensor = (kernel: Kernel1, name: string): CallerTensor | undefined =>
  callerTensors(kernel).find((t) => t.name === name)

/** Whether a tensor is stored over the axes it was declared over. */
export const asDeclared = (t: CallerTensor): boolean =>
  t.buffers.length === 1 && t.first.axes.join() === t.axes.join()

/** All axes by name, replaced ones included. */
export function storedAxis(axes: ReadonlyMap<string, Axis>, name: string): StoredAxis {
  const a = axes.get(name)
  invariant(a && isStored(a), `axis ${name} has no storage`)
  return a
}

/** The mask of the format that a buffer is stored in. */
export const maskOver = (kernel: Kernel1, b: Buffer1): Buffer1 | undefined =>
  kernel.buffers.find((x) => x.mask !== undefined && x.axes.every((a) => b.axes.includes(a)))

/** Whether the axis, or an ancestor of it, holds some coordinates and not others. */
export const isStructured = (axes: ReadonlyMap<string, Axis>, name: string): boolean =>
  !isDenseChain(axes, name)

/** The longest chains among the axes: every stored axis lies on at least one. */
export function leafChains(axes: readonly Axis[]): readonly (readonly string[])[] {
  const stored = axes.filter(isStored)
  const byName = new Map<string, Axis>(stored.map((a) => [a.name, a]))
  const parents = new Set(stored.map(parentOf))
  return stored.filter((a) => !parents.has(a.name)).map((a) => chainTo(byName, a.name))
}

/** Lists and sets that formats take, by name, with the steps that take them. */
export function givenOf(
  kernel: Kernel1,
): ReadonlyMap<string, { readonly kind: 'list' | 'set'; readonly of: Reformat }> {
  return new Map(
    kernel.reformats.flatMap((of) => of.instance.given.map((g) => [g.name, { kind: g.kind, of }] as const)),
  )
}

/** Axes that iterations run over and that no tensor is over, the last of each chain: lists, patterns alone. */
export function axesWithoutTensor(kernel: Kernel1): readonly string[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const used = new Set<string>()
  const add = (name: string): void => {
    const a = axes.get(name)
    if (isFused(a)) for (const m of a.members) add(m)
    else if (isAttached(a) || isGathered(a)) add(a.base)
    else used.add(name)
  }
  walkStmts1(kernel.body, (s) => {
    if (s.kind === 'iterate') for (const x of s.iters) add(x.axis)
  })
  const covered = new Set(kernel.buffers.flatMap((b) => b.axes))
  return leafChains(kernel.axes).flatMap((chain) => {
    const last = chain.findLast((a) => used.has(a))
    return last === undefined || covered.has(last) ? [] : [last]
  })
}
