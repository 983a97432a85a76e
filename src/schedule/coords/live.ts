/**
 * `A as panels(64, 64) live in place`: the structure of a format is found in each run, by nests of the kernel, from where A
 * differs from its fill; A stays where it is. Statements are rewritten as for any format, but that accesses to A are at the
 * coordinates that the inverse map gives. Lists are temporaries of the kernel, and each loop over one ends where that does: what
 * is visited is some of what the statement as written visits, so padding adds nothing (`live-groups.ts`). Where the kernel writes A, the nests stand
 * behind the last statement that does: what is before keeps the dense A, what is after reads A as it would an input.
 * `A as panels(64, 64) live`: positions have values of their own, copied behind the lists (`live-values.ts`).
 * `… for product`: iterations that may run where A holds anything alone go over the same lists (`live-carried.ts`).
 */
import { fail } from '../../ast/diagnostic.ts'
import { type InstantiateUse, instantiate } from '../../formats/instance/instantiate.ts'
import { isDense, listedAxis, type StoredAxis } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import { add, type Expr, int, lt, mul, variable } from '../../ir/expr.ts'
import { buffersRead, freeVars, walkExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance, Instance } from '../../ir/format.ts'
import type { Buffer1, Found, Kernel1, Stmt1 } from '../../ir/stage1.ts'
import { readsIn, writtenBy } from '../../ir/stage1-tree.ts'
import { Views } from './attached-axes.ts'
import { withKinds } from './format-iterator-kinds.ts'
import { type PartRewrite, rewriteStmt } from './format-rewrite.ts'
import { enters } from './iteration-fission.ts'
import { type Built, buildNests } from './live-build.ts'
import { carriedTo, withoutConditions } from './live-carried.ts'
import { type LiveFormat, liveFormat } from './live-format.ts'
import { ended, inGroups, type Positions } from './live-groups.ts'
import { goingAlong, whereHeld } from './live-locals.ts'
import { withOffsets } from './live-offsets.ts'
import { positionAt } from './live-positions.ts'
import { valuesOf } from './live-values.ts'
import { withOwnAxes } from './own-axes.ts'
import { checkPadding } from './padding.ts'
import {
  checkChildren,
  leavingOf,
  partBuffers,
  type Split,
  type StepSpan,
  splitBuffers,
} from './tensor-split.ts'

/** What is found, and how much room there is for it; `for`: iterations that go over it besides those that read the tensor. */
interface LiveUse extends InstantiateUse {
  readonly live?: 'live' | 'live in place' | undefined
  readonly capacity?: Expr | undefined
  readonly total?: Expr | undefined
  readonly for?: readonly string[] | undefined
}

/** `chosen`: the axes of the tensor that the format is over. @throws SptError `schedule/live-tensor`, `schedule/live-format`, `schedule/live-capacity`, and as `as` and `mask` do */
export function applyLive(
  shared: Kernel1,
  step: LiveUse,
  { tensor, chosen }: { readonly tensor: Buffer1; readonly chosen: readonly StoredAxis[] },
  unused: (name: string, label?: string) => string,
  at: StepSpan,
): Kernel1 {
  checkDense(shared, tensor, chosen, at)
  checkRoom(shared, step, at)
  const written = writtenUpTo(shared, tensor, at)
  const carried = new Set(step.for)
  const asked = [...carried].reduce((k, nest) => carriedTo(k, nest, { tensor, chosen }, at), shared)
  const { kernel, over } = withOwnAxes(asked, tensor.name, chosen, unused, asked.body.slice(written))
  const buffer = kernel.buffers.find((b) => b.name === tensor.name)!
  const leaving = leavingOf(over)
  const instance = instantiate(step, over, unused, at)
  const format = liveFormat(instance, chosen, at)
  checkChildren(kernel, leaving, instance.text, at)
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const readers: Kernel1 = {
    ...kernel,
    buffers: kernel.buffers.map((b) => (b === buffer ? { ...b, role: 'in' } : b)),
    body: kernel.body.slice(written),
  }
  const buffers = splitBuffers(readers, over, leaving, instance, unused, at)
  const views = new Views(unused)
  checkPadding(readers, { over, leaving, instance, buffers, axes, views, at })
  const part = instance.parts[0]!.instance
  const start = buffer.axes.indexOf(over[0]!.name)
  // One list is all of them.
  const { capacity, total } =
    format.outer.length > 0 ? step : { capacity: step.capacity ?? step.total, total: undefined }
  const source = { buffer, start, over, axes: kernel.axes }
  const built = buildNests(format, source, unused, at, { capacity, total })
  const live = overLists(part, format, built)
  const values =
    step.live === 'live'
      ? valuesOf(source, live, { built, held: endOf(format, built) }, unused, at)
      : undefined
  const alongside = goingAlong(kernel, { buffer, over, chosen, from: written })
  const split: Split = {
    over,
    leaving,
    instance: { ...instance, parts: [{ label: '', instance: live }] } satisfies Instance,
    buffers: new Map(
      [...alongside, ...(values ? [values.split] : [])].map((b) => [b.buffer.name, b] as const),
    ),
    axes: new Map([...axes, ...live.axes.map((a) => [a.name, a] as const)]),
    views,
    position: positionAt(format, built.ranks, live, over, endOf(format, built)),
    at,
  }
  const isSingle = format.inner.length === 0 && buffer.axes.length === over.length
  const body = withoutConditions(readers.body, carried).map((s) =>
    inPart(isSingle ? whereHeld(s, buffer, over) : s, split),
  )
  const positions: Positions = {
    axis: built.position.name,
    held: () => endOf(format, built),
    along: new Map([...split.buffers.values()].map((b) => [b.parts[0]!, b] as const)),
    order: live.order,
  }
  const next: Kernel1 = {
    ...kernel,
    axes: [...kernel.axes, ...built.axes],
    buffers: [
      ...kernel.buffers.flatMap((b) => {
        const along = alongside.find((s) => s.buffer === b)
        return along ? partBuffers(along, over.length, split.instance) : [b]
      }),
      ...(values ? [values.buffer] : []),
      ...built.buffers.map((b) => listedOnce(b, built)),
    ],
    body: [
      ...kernel.body.slice(0, written),
      ...built.nests,
      ...(values ? [values.nest] : []),
      ...(format.repeats ? inGroups : ended)(body, positions),
    ],
    ...(built.capacity ? { capacities: [...(kernel.capacities ?? []), built.capacity] } : {}),
    found: [...(kernel.found ?? []), { ...foundOf(step, tensor.name, format, built), ...at }],
    defaults: [...(kernel.defaults ?? []), ...built.defaults, ...(values?.defaults ?? [])],
  }
  const found = withKinds(next, live.axes, instance.text, at)
  // Room in all is for all lists where they lie one after the other.
  const lies = new Map(found.axes.map((a) => [a.name, a]))
  const chain = [...format.outer, built.group ?? built.position].map((a) => lies.get(a.name)!)
  return total ? withOffsets(found, chain, at) : found
}

/** What can be looked through in each run: a tensor that holds all coordinates. */
function checkDense(kernel: Kernel1, b: Buffer1, over: readonly StoredAxis[], at: StepSpan): void {
  const along = foundOver(kernel, b)
  if (along)
    fail({
      code: 'schedule/live-tensor',
      message: `${b.name} of ${kernel.name} holds elements of what is found in ${along.tensor} alone: it is over positions of lists, which end in each run`,
      ...at,
      expected: `a dense tensor, over axes as the text has them`,
      hint: `find the structure of ${b.name} first: its step before that of ${along.tensor}`,
    })
  const sparse = over.find((a) => !isDense(a))
  if (sparse)
    fail({
      code: 'schedule/live-tensor',
      message: `${b.name} of ${kernel.name} is over ${sparse.name}, which is ${sparse.kind}: where it holds anything is known before the run`,
      ...at,
      expected: 'a dense tensor',
      hint: 'leave out `live`',
    })
}

/** What was found before, where the tensor is over its positions: a temporary that only iterations over these write. */
function foundOver({ axes, found = [] }: Kernel1, b: Buffer1): Found | undefined {
  const ends = axes.flatMap((a) => (isDense(a) && a.counted && b.axes.includes(a.name) ? [a.counted] : []))
  const counts = new Set(ends.flatMap((e) => [...buffersRead(e)]))
  return found.find((f) => counts.has(f.counts))
}

/** What is below 0 for some sizes has room for nothing with them, and a run says so; for all sizes it is a mistake. */
function checkRoom({ name, params }: Kernel1, { capacity, total }: LiveUse, at: StepSpan): void {
  const room = capacity ?? total
  if (capacity && total)
    fail({
      code: 'schedule/live-capacity',
      message: 'there is room for each list or for all of them, not both',
      ...at,
      expected: 'one of capacity and total',
      hint: 'give `total` alone (`capacity E in all`): no list is longer than all of them together',
    })
  const used = [...(room ? freeVars(room) : [])]
  const sizes = params.flatMap((p) => (p.kind === 'size' ? [p.name] : []))
  const unknown = used.find((v) => !sizes.includes(v))
  if (unknown !== undefined)
    fail({
      code: 'schedule/live-capacity',
      message: `${name} has no size ${unknown}, of which the capacity is computed`,
      lookup: { name: unknown, candidates: sizes },
      ...at,
      expected: 'an expression over sizes of the kernel',
    })
  if (!room || used.length > 0) return
  const value = Number(evaluate(room, new Map()))
  if (value < 0)
    fail({
      code: 'schedule/live-capacity',
      message: `a capacity of ${value} is below 0`,
      ...at,
      expected: 'how many positions there is room for, over sizes and parameters',
      hint: 'leave out `capacity`: then there is room for all that there could be',
    })
}

/** How many statements there are up to the last one that writes the tensor: those that read it come after. */
function writtenUpTo(kernel: Kernel1, b: Buffer1, at: StepSpan): number {
  const refuse = (message: string, hint: string): never =>
    fail({
      code: 'schedule/live-tensor',
      message: `${b.name} of ${kernel.name} is ${message}`,
      ...at,
      expected: 'a dense tensor that is read, and that nothing writes from where it is first read',
      hint,
    })
  const { body } = kernel
  const writes = body.map((s) => writtenBy([s]).has(b.name))
  const last = writes.lastIndexOf(true)
  const reader = body.findIndex((s) => readsIn([s]).some((l) => l.buffer === b.name))
  if (last < 0) return 0
  const [by, writer] = [nameOf(body[reader]), nameOf(body[last])]
  if (reader < 0)
    refuse(`written by ${writer}, and nothing reads it after that`, 'choose a tensor that an iteration reads')
  if (writes[reader])
    refuse(
      `read and written by ${by}, so that nothing can be found in it in between`,
      `write it in an iteration of its own, before the one that reads it`,
    )
  if (reader < last)
    refuse(
      writes.indexOf(true) < reader
        ? `written again by ${writer} after ${by} reads it: what was found in it before would no longer hold`
        : `read by ${by} before ${writer} writes it: what is found in it after that comes too late`,
      `let ${writer} write a tensor of its own`,
    )
  return last + 1
}

const nameOf = (s: Stmt1 | undefined): string => (s?.kind === 'iterate' ? s.name : 'a statement')

/** The part's axes as dense ones, of which the list has the coordinates. */
function overLists(
  part: FormatInstance,
  format: LiveFormat,
  { axes, listed, group, position }: Built,
): FormatInstance {
  const own = new Map(axes.map((a) => [a.name, a]))
  const kept = part.order.flatMap((name) => own.get(name) ?? [])
  const list = listedAxis(listed.buffer, (group ?? position).name, format.extent, position.extent)
  return {
    ...part,
    axes: kept,
    order: kept.map((a) => a.name),
    inverse: format.inverse(listed),
    queries: [],
    tables: [
      {
        name: listed.buffer,
        of: 'positions',
        source: listed.buffer,
        under: listed.index.slice(0, -1).flatMap((e) => (e.kind === 'var' ? [e.name] : [])),
        length: position.extent,
        fill: format.extent,
      },
    ],
    lists: [{ axis: list, under: [], coordinate: variable(position.name), position: null }],
  }
}

/** What is visited of a list is each coordinate once. */
const listedOnce = (b: Buffer1, { listed, group }: Built): Buffer1 =>
  b.name === listed.buffer ? { ...b, listed: listed.index.length - (group ? 2 : 1) } : b

/** A statement over the part, or as it is where it does not visit the tensor. */
function inPart(s: Stmt1, split: Split): Stmt1 {
  const enter = s.kind === 'iterate' && enters(s, split.leaving)
  const c: PartRewrite = { split, part: enter ? 0 : null, problems: [] }
  const out = rewriteStmt(s, c)
  const [problem] = c.problems
  return problem ? fail(problem) : out
}

/** What is left of a run behind it: how long the lists are. */
function foundOf(
  { format, args }: InstantiateUse,
  tensor: string,
  { width, outer, inner }: LiveFormat,
  { count }: Built,
): Found {
  let counts = ''
  walkExpr(count, (e) => {
    if (e.kind === 'load') counts = e.buffer
  })
  const all = (axes: readonly StoredAxis[]): Expr => axes.reduce<Expr>((n, a) => mul(n, a.extent), int(1))
  return { tensor, format, args, counts, lists: all(outer), width, slots: all(inner) }
}

function endOf({ width }: LiveFormat, { group, position, count }: Built): Expr {
  const at = variable(position.name)
  return lt(group ? add(mul(variable(group.name), int(width)), at) : at, count)
}
