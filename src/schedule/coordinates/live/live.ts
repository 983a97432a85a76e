/**
 * `A as panels(64, 64) live in place`: the kernel builds the format's structure at every run, from the elements of A
 * that differ from its fill value, and does not copy A. Statements are rewritten as for any format, but they access A
 * at the coordinates of the inverse map. Lists are temporaries of the kernel, and each loop over a list ends with it.
 * The visited coordinates are a subset of the original ones, so padding adds nothing (`groups.ts`). If the kernel
 * writes A, the builder follows the last write: statements before it use the dense A, statements after it read A like
 * an input.
 * `A as panels(64, 64) live`: positions have values of their own, copied after the lists (`values.ts`). Each of
 * several parts has its own lists, and a copy of each iteration (`parts.ts`).
 * `… for product`: iterations that may run at A's stored coordinates alone use the same lists (`checks.ts`).
 */

import type { Span } from '../../../ast/diagnostics/diagnostic.ts'
import { type InstantiateUse, instantiate } from '../../../formats/instance/instantiate.ts'
import { listAxis, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import { valuesName } from '../../../ir/coordinates/derived-names.ts'
import type { RuntimePart } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import type { Body1 } from '../../../ir/coordinates/stage1-tree.ts'
import { add, type Expr, int, lt, mul, variable } from '../../../ir/expressions/expr.ts'
import type { FormatInstance, Instance } from '../../../ir/formats/format.ts'
import { enters, isNest } from '../as/iteration-fission.ts'
import { inPart, inParts, inPieces, type Unused } from '../as/part-statements.ts'
import { withOwnAxes } from '../as/private-axes.ts'
import type { Split, SplitBuffer } from '../as/tensor-split.ts'
import { checkChildren, leavingOf, partBuffers, splitBuffers, Views } from '../as/tensor-split.ts'
import { checkPadding, fillFactor } from '../legality/padding.ts'
import { withKinds } from '../legality/part-write-conflicts.ts'
import {
  carriedTo,
  checkDense,
  checkedRooms,
  checkVisited,
  masksFrom,
  type Room,
  withoutConditions,
  writtenUpTo,
} from './checks.ts'
import { type LiveFormat, liveFormat, refuseLive } from './format.ts'
import { ended, inGroups, positionAt, temporariesAlong, whereHeld } from './groups.ts'
import { type Built, buildNests } from './lists.ts'
import { type Source, wordReducer } from './mark.ts'
import { elementOf } from './nests.ts'
import { withOffsets } from './offsets.ts'
import { checkParts, type LivePart, livePartsOf, ofPart } from './parts.ts'
import { copyNest, copySteps, inWholeGroups, VALUES } from './values.ts'

/** The format and its capacity; `for` names iterations that run over the lists without reading the tensor. */
interface LiveUse extends InstantiateUse {
  readonly live?: 'live' | 'live in place' | undefined
  readonly capacity?: Room | undefined
  readonly total?: Room | undefined
  readonly for?: readonly string[] | undefined
  readonly span?: Span | undefined
}

/**
 * Applies the step; `chosen` are the tensor's axes that the format covers. @throws SptError `schedule/live-tensor`,
 * `schedule/live-format`, `schedule/live-capacity`, and the errors of `as` and `mask`
 */
export function applyLive(
  shared: Kernel1,
  step: LiveUse,
  { tensor, chosen }: { readonly tensor: Buffer1; readonly chosen: readonly StoredAxis[] },
  unused: Unused,
): Kernel1 {
  checkDense(shared, tensor, chosen)
  const written = writtenUpTo(shared, tensor)
  const carried = new Set(step.for)
  const masked = [...carried].reduce((k, nest) => carriedTo(k, nest, { tensor, chosen }), shared)
  const { kernel, over } = withOwnAxes(masked, tensor.name, chosen, unused, masked.body.slice(written))
  const buffer = kernel.buffers.find((b) => b.name === tensor.name)!
  const leaving = leavingOf(over)
  const instance = instantiate(step, over, unused, step)
  const { text } = instance
  const divided = livePartsOf(kernel, instance)
  const rooms = checkedRooms(shared, step, instance)
  if (carried.size > 0 && divided.parts.some((p) => p.where))
    refuseLive(text, `iterations go over the lists of a tensor, \`for\`, where one part has all of it`, {
      expected: 'a single part, without a condition',
      hint: 'leave out `for`',
    })
  const formats = divided.parts.map((p) => liveFormat(p.instance, text, over))
  checkChildren(kernel, leaving, text)
  const from = Math.max(written, masksFrom(kernel, buffer, divided.masks))
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const readers: Kernel1 = {
    ...kernel,
    buffers: kernel.buffers.map((b) => (b === buffer ? { ...b, role: 'in' } : b)),
    body: kernel.body.slice(from),
  }
  const buffers = splitBuffers(readers, over, leaving, instance, unused)
  const views = new Views(unused)
  const padding = checkPadding(readers, { over, leaving, instance, buffers, axes, views })
  const start = buffer.axes.indexOf(over[0]!.name)
  checkParts(divided, { kernel: readers, buffer, start, over, leaving, text })
  const parts = divided.parts.map((p, k): BuiltPart => {
    const format = formats[k]!
    const { label, where } = p
    const room = rooms?.[k]
    // For a single list, the total capacity is that of the list.
    const isInAll = step.total !== undefined && format.outer.length > 0
    const [capacity, total] = isInAll ? [undefined, room] : [room, undefined]
    const source = { buffer, start, over, axes: kernel.axes, where, reducer: wordReducer(kernel) }
    const built = buildNests(format, source, unused, { capacity, total, label })
    return { ...p, instance: overLists(p.instance, format, built), format, built, isInAll, source }
  })
  const [only] = parts
  const isAlone = parts.length === 1
  const alongside = isAlone ? temporariesAlong(kernel, { buffer, over, chosen, from }) : []
  const copied: SplitBuffer | undefined =
    step.live === 'live'
      ? { buffer, parts: parts.map((p) => unused(valuesName(buffer.name), p.label)), start, stays: true }
      : undefined
  const split: Split = {
    over,
    leaving,
    instance: { ...instance, parts } satisfies Instance,
    buffers: new Map([...alongside, ...(copied ? [copied] : [])].map((b) => [b.buffer.name, b] as const)),
    axes: new Map([...axes, ...parts.flatMap((p) => p.instance.axes.map((a) => [a.name, a] as const))]),
    views,
    position: isAlone
      ? positionAt(only!.format, only!.built.arrays, only!.instance, over, endOf(only!.format, only!.built))
      : undefined,
  }
  const body = withoutConditions(readers.body, carried).flatMap((s) =>
    consumer(s, { split, parts, buffer, start }, unused),
  )
  const built = copied ? withCopies(parts, copied, split, unused) : parts.map((p) => p.built)
  checkVisited(kernel, buffer, body, new Set(parts.flatMap((p) => p.instance.axes.map((a) => a.name))))
  const next: Kernel1 = {
    ...kernel,
    axes: [...kernel.axes, ...parts.flatMap((p) => p.built.axes)],
    buffers: [
      ...kernel.buffers.flatMap((b) => {
        const along = alongside.find((s) => s.buffer === b)
        return along ? partBuffers(along, over.length, split.instance) : [b]
      }),
      ...built.flatMap((b) => Object.values(b.arrays)),
    ],
    body: [
      ...kernel.body.slice(0, from),
      ...built.flatMap((b) => b.nests),
      ...parts.reduce<Body1>((now, p, k) => visited(now, p, k, split), body),
    ],
    runtimeLists: [
      ...(kernel.runtimeLists ?? []),
      {
        tensor: tensor.name,
        format: step.format,
        args: step.args,
        parts: parts.map((p, k) => runtimePartOf(p, copied?.parts[k] ?? tensor.name)),
        defaults: built.flatMap((b) => b.defaults),
        ...(step.span && { span: step.span }),
      },
    ],
    skippedProducts: [
      ...(kernel.skippedProducts ?? []),
      {
        by: `${text} live`,
        tensor: tensor.name,
        factors: padding.factors.map((f) => fillFactor(readers, over, f)),
      },
    ],
  }
  const fresh = parts.flatMap((p) => p.instance.axes)
  return parts.reduce((k, p) => inOrder(k, p), withKinds(next, fresh, text))
}

interface BuiltPart extends LivePart {
  readonly format: LiveFormat
  readonly built: Built
  readonly source: Source
  /** True if the step's capacity is a total for all lists together. */
  readonly isInAll: boolean
}

/** Returns the lists of each part, followed by a loop nest that copies the values at their positions. */
function withCopies(
  parts: readonly BuiltPart[],
  to: SplitBuffer,
  split: Split,
  unused: Unused,
): readonly Built[] {
  const { over } = split
  const local = { ...to.buffer, role: 'local', placed: true, filledAtRunTime: true, span: undefined } as const
  const own = { buffer: local, parts: to.parts, start: to.start }
  const within = { ...split, buffers: new Map([[VALUES, own]]) }
  const buffers = partBuffers(own, over.length, split.instance)
  return parts.map(({ format, built, source, label }, k) => {
    const { nests, defaults } = built
    const copy = inPart(copyNest(source, unused, label), within, k) as Iteration
    // The part's own condition is evaluated at valid coordinates only.
    const [own, inside] = source.where ? [copy.where.slice(0, 1), copy.where.slice(1)] : [[], copy.where]
    const held = built.group ? [endOf(format, built)] : []
    return {
      ...built,
      arrays: { values: buffers[k]!, ...built.arrays },
      nests: [...nests, inWholeGroups({ ...copy, where: [...held, ...inside, ...own] }, to.buffer)],
      defaults: [
        ...defaults,
        copySteps(copy, (built.group ?? built.position).name, [...source.axes, ...built.axes]),
      ],
    }
  })
}

function visited(body: Body1, { format, built, instance }: BuiltPart, part: number, split: Split): Body1 {
  return (format.repeats ? inGroups : ended)(body, {
    axis: built.position.name,
    held: () => endOf(format, built),
    along: new Map([...split.buffers.values()].map((b) => [b.parts[part]!, b] as const)),
    order: instance.order,
  })
}

/** A capacity of all lists together needs consecutive lists, so offsets are added. */
function inOrder(kernel: Kernel1, { format, built, isInAll }: BuiltPart): Kernel1 {
  if (!isInAll) return kernel
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const chain = [...format.outer, built.group ?? built.position].map((a) => axes.get(a.name)!)
  return withOffsets(kernel, chain)
}

function overLists(
  part: FormatInstance,
  format: LiveFormat,
  { axes, arrays, group, position }: Built,
): FormatInstance {
  const own = new Map(axes.map((a) => [a.name, a]))
  const listed = elementOf(arrays.list)
  const kept = part.order.flatMap((name) => own.get(name) ?? [])
  const list = listAxis(listed.buffer, (group ?? position).name, format.extent, position.extent)
  return {
    ...part,
    axes: kept,
    order: kept.map((a) => a.name),
    inverse: format.inverse(listed),
    queries: [],
    tables: [
      {
        name: listed.buffer,
        kind: 'positions',
        source: listed.buffer,
        under: listed.index.slice(0, -1).flatMap((e) => (e.kind === 'var' ? [e.name] : [])),
        length: position.extent,
        fill: format.extent,
      },
    ],
    lists: [{ axis: list, under: [], coordinate: variable(position.name), position: null }],
  }
}

/** Returns a statement after the lists, over each part. */
function consumer(
  s: Stmt1,
  {
    split,
    parts,
    buffer,
    start,
  }: Pick<SplitBuffer, 'buffer' | 'start'> & { split: Split; parts: readonly BuiltPart[] },
  unused: Unused,
): readonly Stmt1[] {
  const { over, leaving } = split
  if (s.kind !== 'iterate' || !enters(s, leaving)) return [inPart(s, split, null)]
  const isCopied = split.buffers.has(buffer.name)
  const own = (it: Iteration, k: number): Stmt1 => {
    const { format, where } = parts[k]!
    const isSingle = format.inner.length === 0 && buffer.axes.length === over.length
    const known = isSingle ? whereHeld(it, buffer, over) : it
    // Coordinates that are listed singly belong to the part; blocks may contain elements of other parts.
    const isMixed = format.inner.length > 0 && !isCopied
    return where && isMixed ? ofPart(known, where, { buffer, start, over }) : known
  }
  const isDistributed = parts.length > 1 && isNest(s, leaving)
  return (isDistributed ? inPieces : inParts)(s, split, unused, own)
}

/** Describes a built part for consumers after a run, which read the lengths of its lists. */
function runtimePartOf({ format, built, label, instance }: BuiltPart, buffer: string): RuntimePart {
  const { width, extent, outer, inner } = format
  const sizeOf = (axes: readonly StoredAxis[]): Expr => axes.map((a) => a.extent).reduce(mul, int(1))
  const axis = (built.group ?? built.position).name
  const own = { label, instance, buffer }
  const counts = built.arrays.counts.name
  const capacity = built.capacity && { counts, width, capacity: built.capacity }
  return { ...own, axis, counts, lists: sizeOf(outer), width, extent, slots: sizeOf(inner), capacity }
}

function endOf({ width }: LiveFormat, { group, position, count }: Built): Expr {
  const at = variable(position.name)
  return lt(group ? add(mul(variable(group.name), int(width)), at) : at, count)
}
