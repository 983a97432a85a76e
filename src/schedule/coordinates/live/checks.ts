/** Preconditions of `live`: a dense tensor that is not written after its first read, and a valid capacity. */
import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { quantity } from '../../../ast/print/quantity.ts'
import { isDense, isDenseRoot, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { RuntimeLists } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  readsIn,
  rewriteStmts1,
  someStmt1,
  writtenBuffers1,
} from '../../../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { buffersRead, freeVars } from '../../../ir/expressions/expr-tree.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { replaceIteration } from '../iterator-names.ts'
import { underMask } from '../mask.ts'

/** Throws `schedule/live-tensor` unless the tensor is dense: only a dense tensor can be scanned at every run. */
export function checkDense(kernel: Kernel1, b: Buffer1, over: readonly StoredAxis[]): void {
  const along = listsUnder(kernel, b)
  if (along)
    failAs('schedule/live-tensor', {
      message: `${b.name} of ${kernel.name} is stored over positions that are built at run time from ${along.tensor}, and is not dense any more`,
      expected: 'a dense tensor, over axes that the kernel declares',
      hint: `move the step of ${b.name} before the step of ${along.tensor}`,
    })
  const sparse = over.find((a) => !isDense(a))
  if (sparse)
    failAs('schedule/live-tensor', {
      message: `${b.name} of ${kernel.name} is over ${sparse.name}, which is ${sparse.kind}, so the structure is known before the run`,
      expected: 'a dense tensor',
      hint: 'leave out `live`',
    })
}

/** The structure that an earlier step builds at run time, if the tensor is a temporary over its positions. */
function listsUnder({ axes, runtimeLists: found = [] }: Kernel1, b: Buffer1): RuntimeLists | undefined {
  const ends = axes.flatMap((a) => (isDense(a) && a.count && b.axes.includes(a.name) ? [a.count] : []))
  const counts = new Set(ends.flatMap((e) => [...buffersRead(e)]))
  return found.find((f) => f.parts.some((p) => counts.has(p.counts)))
}

/** Returns whether the tensor is a temporary over positions of a format that is built at run time. */
export function isStoredOverLists(kernel: Kernel1, tensor: string): boolean {
  const b = kernel.buffers.find((x) => x.name === tensor)
  return b !== undefined && listsUnder(kernel, b) !== undefined
}

/** A capacity for all parts, or a list with a capacity for each part. */
export type Room = Expr | readonly Expr[]

/**
 * Returns the capacity of each part, over sizes; undefined if the step has no capacity. For sizes that make a capacity
 * negative, the capacity is 0, and the run reports it. Throws `schedule/live-capacity`, also for a negative constant.
 */
export function checkedRooms(
  { name, params }: Kernel1,
  { capacity, total }: { readonly capacity?: Room | undefined; readonly total?: Room | undefined },
  { parts, text }: Instance,
): readonly Expr[] | undefined {
  const given = capacity ?? total
  const refuse = (message: string, expected: string, hint?: string): never =>
    failAs('schedule/live-capacity', {
      message,
      expected,
      ...(hint && { hint }),
    })
  if (capacity && total)
    refuse(
      'both capacity and total are given',
      'one of capacity and total',
      'give `total` alone (`capacity E in all`): no list is longer than all of them together',
    )
  if (!given) return undefined
  const isEach = Array.isArray(given)
  const rooms: readonly Expr[] = isEach ? given : parts.map(() => given as Expr)
  if (rooms.length !== parts.length)
    refuse(
      `${text} has ${quantity(parts.length, 'part')}, and capacities for ${rooms.length} are given`,
      `one capacity for all parts, or one for each: ${parts.map((p) => p.instance.text).join(', ')}`,
    )
  const sizes = params.flatMap((p) => (p.kind === 'size' ? [p.name] : []))
  for (const room of new Set(rooms)) {
    const used = [...freeVars(room)]
    const unknown = used.find((v) => !sizes.includes(v))
    if (unknown !== undefined)
      failAs('schedule/live-capacity', {
        message: `the capacity depends on ${unknown}, which is not a size of ${name}`,
        lookup: { name: unknown, candidates: sizes },
        expected: 'an expression over sizes of the kernel',
      })
    const value = used.length > 0 ? 0 : Number(evaluate(room, new Map()))
    if (value < 0)
      refuse(
        `a capacity of ${value} is below 0`,
        'a number of positions, over sizes and parameters',
        'leave out `capacity` to allocate the maximum',
      )
  }
  return rooms
}

/**
 * Returns the number of statements up to the last write of the tensor; 0 if it is not written.
 * @throws SptError `schedule/live-tensor` if a read comes before
 */
export function writtenUpTo(kernel: Kernel1, b: Buffer1): number {
  const refuse = (message: string, hint: string): never =>
    failAs('schedule/live-tensor', {
      message: `${b.name} of ${kernel.name} is ${message}`,
      expected: 'a dense tensor that is complete before the first read',
      hint,
    })
  const { body } = kernel
  const writes = body.map((s) => writtenBuffers1([s]).has(b.name))
  const last = writes.lastIndexOf(true)
  const reader = body.findIndex((s) => readsIn([s]).some((l) => l.buffer === b.name))
  if (last < 0) return 0
  const [by, writer] = [nameOf(body[reader]), nameOf(body[last])]
  if (reader < 0)
    refuse(`written by ${writer}, and nothing reads it after that`, 'choose a tensor that an iteration reads')
  if (writes[reader])
    refuse(
      `read and written by ${by}, so no format can be built in between`,
      'write it in a separate iteration before its consumer',
    )
  if (reader < last)
    refuse(
      writes.indexOf(true) < reader
        ? `overwritten by ${writer} after ${by} reads it, which invalidates the format`
        : `read by ${by} before ${writer} writes it, so the format would be built too late`,
      `let ${writer} write a separate tensor`,
    )
  return last + 1
}

/**
 * Returns the number of statements up to the last write of `masks`, the tensors that conditions of the parts read.
 * @throws SptError `schedule/live-tensor` if the tensor is read before
 */
export function masksFrom(kernel: Kernel1, b: Buffer1, masks: ReadonlySet<string>): number {
  const { body } = kernel
  const last = body.findLastIndex((s) => [...writtenBuffers1([s])].some((name) => masks.has(name)))
  const early = body.slice(0, last + 1).find((s) => readsIn([s]).some((l) => l.buffer === b.name))
  if (early && !masks.has(b.name))
    failAs('schedule/live-tensor', {
      message: `${b.name} of ${kernel.name} is read by ${nameOf(early)} before ${nameOf(body[last])} writes the mask of the parts`,
      expected: 'masks that are computed before the first read of the tensor',
      hint: `compute the mask in an iteration before ${nameOf(early)}`,
    })
  return last + 1
}

/** Checks that an iteration with a read runs over the new axes. @throws SptError `schedule/live-tensor` */
export function checkVisited(
  { runtimeLists: found = [] }: Kernel1,
  b: Buffer1,
  body: Body1,
  axes: ReadonlySet<string>,
): void {
  const reader = body.find((s) => readsIn([s]).some((l) => l.buffer === b.name))
  const isOver = (s: Stmt1): boolean => s.kind === 'iterate' && s.iters.some((x) => axes.has(x.axis))
  if (!reader || someStmt1(body, isOver)) return
  const isAgain = found.some((f) => f.tensor === b.name)
  failAs('schedule/live-tensor', {
    message: isAgain
      ? `an earlier step already builds the structure of ${b.name} for every consumer`
      : `no iteration uses the structure of ${b.name}: the loops of ${nameOf(reader)} run over other axes as well`,
    expected: `an iteration that reads ${b.name} with a loop for each axis`,
    hint: isAgain
      ? 'remove a step'
      : 'move this step before the steps that store other tensors in formats, or leave out `live`',
  })
}

const nameOf = (s: Stmt1 | undefined): string => (s?.kind === 'iterate' ? s.name : 'a statement')

// Iterations over the structure of a `live` format that do not read its tensor. Where the tensor has its fill
// value, such an iteration changes nothing that is needed (`mask.ts`). Running there makes no difference, so all
// listed positions are visited without a check.

/**
 * Returns the kernel with the complete body of iteration `nest` under the condition that the tensor differs from its
 * fill value. Its iterators move to the tensor's axes `chosen`, which have the same extents.
 * @throws SptError `schedule/live-tensor`, and the errors of `mask`
 */
export function carriedTo(
  kernel: Kernel1,
  nest: string,
  { tensor, chosen }: { readonly tensor: Buffer1; readonly chosen: readonly StoredAxis[] },
): Kernel1 {
  const { kernel: under, index } = underMask(kernel, { nest, buffer: tensor.name })
  const it = iterationsOf(under.body).find((x) => x.name === nest)!
  const start = tensor.axes.indexOf(chosen[0]!.name)
  const over = new Map(
    chosen.flatMap((a, k) => [...freeVars(index[start + k]!)].map((name) => [name, a.name])),
  )
  const isRoot = (name: string): boolean => under.axes.some((a) => a.name === name && isDenseRoot(a))
  // An iterator under which another one enters a child of its axis must stay on that axis.
  const entered = new Set(iterationsOf([it]).flatMap((s) => s.iters.map((x) => x.axis)))
  const isParent = (name: string): boolean =>
    under.axes.some((a) => 'parent' in a && a.parent === name && entered.has(a.name))
  const own = it.iters.filter((x) => over.has(x.name) && isRoot(x.axis) && !isParent(x.axis))
  if (own.length < chosen.length)
    failAs('schedule/live-tensor', {
      message: `${nest} does not iterate over each dimension of ${tensor.name} that the format covers`,
      ...(it.span && { labels: [{ span: it.span, text: 'here' }] }),
      expected: 'an iteration that accesses a tensor by iterators of the same extents',
      hint: `leave out ${nest}, or mask ${nest} by ${tensor.name}`,
    })
  const iters = it.iters.map((x) => (own.includes(x) ? { ...x, axis: over.get(x.name)! } : x))
  return { ...under, body: replaceIteration(under.body, it, { ...it, iters }) }
}

/** Removes the condition from each of these iterations whose body is a single `if`. */
export const withoutConditions = (body: Body1, iterations: ReadonlySet<string>): Body1 =>
  rewriteStmts1(body, (s) => {
    const under = s.kind === 'iterate' && iterations.has(s.name) ? s.body[0] : undefined
    return s.kind === 'iterate' && under?.kind === 'if' ? { ...s, body: under.then } : undefined
  })
