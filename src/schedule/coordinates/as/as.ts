/**
 * `A as blocks(16)`, `A as by_length(5)`: stores the tensors that share A's structure (a dense A: itself,
 * `private-axes.ts`) in another format, or in several formats for different parts of the coordinates (SparseTIR's
 * decompose_format, section 3.2.2, with legality checks). The old axes leave the kernel. Every iteration over them
 * runs once for each part, over the part's axes, and the part's inverse map computes the old coordinates. A nest of
 * several such iterations is distributed first (`iteration-fission.ts`), unless each row is in a single part
 * (`nest-cloning.ts`). Outputs need no special case: the first writer of a buffer initialises it
 * (`lower/positions/output-initialization.ts`), whichever part the writer belongs to.
 */

import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { isRecord } from '../../../ast/diagnostics/expect-argument.ts'
import { orList } from '../../../ast/diagnostics/suggest.ts'
import { instantiate } from '../../../formats/instance/instantiate.ts'
import { provedOf } from '../../../formats/proof/prove.ts'
import {
  denseAxis,
  hasHoles,
  namesOfAxis,
  repeatsCoordinates,
  type StoredAxis,
  sizesOfAxis,
} from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Param, Reformat, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { unusedName } from '../../../ir/expressions/bound-names.ts'
import type { Const } from '../../../ir/expressions/expr.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import type { AnyFormat, FormatInstance, Table } from '../../../ir/formats/format.ts'
import { segmentsOf } from '../../../ir/formats/format-tables.ts'
import { coordPrimitive } from '../../primitive.ts'
import * as arg from '../../steps/arguments.ts'
import { maskBuffers, maskedBody, settled, withMasks } from '../legality/masked-statements.ts'
import { checkPadding, fillFactor, padsWithFill } from '../legality/padding.ts'
import { withKinds } from '../legality/part-write-conflicts.ts'
import type { Room } from '../live/checks.ts'
import { applyLive } from '../live/live.ts'
import { type PartRewrite, rewriteStmt } from './format-rewrite.ts'
import { enters, isNest } from './iteration-fission.ts'
import { checkGiven, takenNames } from './name-collisions.ts'
import { type Locals, wholeNests } from './nest-cloning.ts'
import { inPart, inParts, inPieces, type Unused } from './part-statements.ts'
import { withOwnAxes } from './private-axes.ts'
import { withTensorCopy } from './tensor-copy.ts'
import type { Split } from './tensor-split.ts'
import {
  checkChildren,
  chosenAxes,
  leavingOf,
  partBuffers,
  splitBuffers,
  Views,
  withAttached,
} from './tensor-split.ts'

/** The step as data. Format arguments are numbers, or names of lists and sets in the bound data. */
type AsStep = arg.StepOf<'as', typeof takes>

function applyAs(declared: Kernel1, step: AsStep): Kernel1 {
  checkFound(step)
  const named =
    declared.buffers.find((b) => b.name === step.buffer && !b.table) ?? unknownBuffer(declared, step)
  const taken = takenNames(declared)
  const unused: Unused = (name, label = '') => {
    const wanted = label === '' ? name : `${name}_${label}`
    const out = unusedName(wanted, (name) => namesOfAxis(name).some((x) => taken.has(x)))
    for (const x of namesOfAxis(out)) taken.add(x)
    return out
  }
  const copied = step.for && !step.live ? withTensorCopy(declared, named, step.for, unused) : undefined
  const shared = copied?.kernel ?? declared
  const buffer = shared.buffers.find((b) => b.name === (copied?.buffer ?? named.name))!
  const chosen = chosenAxes(buffer, new Map(shared.axes.map((a) => [a.name, a])), step.format)
  if (step.live) return applyLive(shared, step, { tensor: buffer, chosen }, unused)
  const { kernel, over } = withOwnAxes(shared, buffer.name, chosen, unused)
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const leaving = withAttached(kernel.axes, leavingOf(over))
  const instance = instantiate(step, over, unused, step)
  checkGiven(kernel, instance)
  // Lists are bound data like the parts, so parts must not have their names.
  for (const { name } of instance.given) taken.add(name)
  checkChildren(kernel, leaving, instance.text)
  const fresh = instance.parts.flatMap((p) => p.instance.axes)
  const buffers = splitBuffers(kernel, over, leaving, instance, unused)
  const split: Split = {
    over,
    leaving,
    instance,
    buffers,
    axes: new Map([...axes, ...fresh.map((a) => [a.name, a] as const)]),
    views: new Views(unused),
  }
  const padding = checkPadding(kernel, split)
  const factors = padding.factors.map((f) => fillFactor(kernel, over, f))
  const tables = tablesOf(split, unused)
  const locals: Locals = new Map()
  const masked = { ...kernel, body: maskedBody(kernel.body, padding.masked) }
  const within = withMasks(split, (part) => padsWithFill(part, instance))
  const body = settled(masked.body.flatMap((s) => splitStmt(s, masked, within, locals, unused)))
  const reformat: Reformat = {
    format: instance.text,
    from: over,
    instance,
    proved: instance.parts.map((p) => provedOf(p.instance, instance.over)),
    source: buffer.name,
    buffers: [...buffers.values()].map((b) => ({
      name: b.buffer.name,
      axes: b.buffer.axes,
      parts: b.parts,
    })),
    factors,
  }
  const views = split.views.in(body)
  const next: Kernel1 = {
    ...kernel,
    params: [...kernel.params, ...measuredSizes(kernel, split)],
    axes: [
      ...kernel.axes.filter((a) => !leaving.has(a.name)),
      ...tables.axes.filter((a) => a.parent === null),
      ...fresh,
      ...tables.axes.filter((a) => a.parent !== null),
      ...views,
    ],
    buffers: [
      ...kernel.buffers.flatMap((b) => {
        const s = buffers.get(b.name)
        return s ? partBuffers(s, over.length, instance) : ofParts(b, locals)
      }),
      ...tables.buffers,
      ...maskBuffers(split),
    ],
    body,
    reformats: [...kernel.reformats, reformat],
  }
  return withKinds(next, [...fresh, ...views], instance.text)
}

function unknownBuffer(kernel: Kernel1, step: AsStep): never {
  const parts = kernel.reformats.flatMap((r) => r.buffers.find((b) => b.name === step.buffer)?.parts ?? [])
  const candidates = kernel.buffers.filter((b) => !b.table).map((b) => b.name)
  return failAs('schedule/unknown-buffer', {
    message:
      parts.length > 0
        ? `${step.buffer} is stored in parts: ${parts.join(', ')}`
        : `there is no buffer ${step.buffer}`,
    ...(parts.length > 0 ? {} : { lookup: { name: step.buffer, candidates } }),
    expected: parts.length > 0 ? 'the buffer of a part' : orList(candidates),
  })
}

function measuredSizes(kernel: Kernel1, split: Split): Param[] {
  const { parts, given } = split.instance
  const open = parts.flatMap((p) => p.instance.measured)
  const lists = given.filter((g) => g.kind === 'list').map((g) => ({ name: segmentsOf(g.name) }))
  const mentioned = new Set(
    parts.flatMap(({ instance: f }) =>
      [...f.axes.flatMap(sizesOfAxis), ...f.tables.map((t) => t.length), ...f.map, ...f.inverse].flatMap(
        (e) => [...freeVars(e)],
      ),
    ),
  )
  const seen = new Set(kernel.params.map((p) => p.name))
  const out: Param[] = []
  for (const p of [...open, ...lists.filter((l) => mentioned.has(l.name))]) {
    if (seen.has(p.name)) continue
    seen.add(p.name)
    out.push({ ...p, kind: 'size', dtype: 'i32', measured: true })
  }
  return out
}

/** Returns the tables that inverse maps load as buffers over separate axes; a list is a table under its axes. */
function tablesOf(split: Split, unused: Unused) {
  const axes: StoredAxis[] = []
  const buffers: Buffer1[] = []
  for (const { instance } of split.instance.parts)
    for (const t of instance.tables) {
      if (buffers.some((b) => b.name === t.name)) continue
      const axis = unused(`${t.name}_x`)
      axes.push(denseAxis(axis, t.length, t.under.at(-1) ?? null))
      buffers.push({
        name: t.name,
        dtype: 'i32',
        axes: [...t.under, axis],
        role: 'in',
        fill: 0,
        accumulate: 'i32',
        table: true,
        ...(t.kind === 'sort' && { distinct: true }),
        ...(isFilled(t, instance) && { below: t.fill }),
      })
    }
  return { axes, buffers }
}

/** A list without holes: each entry is a coordinate. */
const isFilled = (t: Table, { lists }: FormatInstance): boolean =>
  lists.some(({ axis }) => axis.name === t.name && !hasHoles(axis))

/** Returns one local buffer for each part if the parts do not share the buffer; otherwise the buffer itself. */
const ofParts = (b: Buffer1, locals: Locals): Buffer1[] =>
  locals.get(b.name)?.map((name) => ({ ...b, name })) ?? [b]

function splitStmt(s: Stmt1, kernel: Kernel1, split: Split, locals: Locals, unused: Unused): Stmt1[] {
  const { leaving, instance } = split
  if (s.kind !== 'iterate' || !enters(s, leaving)) return [inPart(s, split, null)]
  if (!isNest(s, leaving)) return inParts(s, split, unused)
  const only = instance.parts.length === 1 ? instance.parts[0]!.instance : null
  if (only && !only.axes.some(repeatsCoordinates)) {
    const whole: PartRewrite = { split, part: 0, problems: [] }
    const nest = rewriteStmt(s, whole)
    if (whole.problems.length === 0) return [nest]
  }
  return wholeNests(s, kernel, split, locals, unused) ?? inPieces(s, split, unused)
}

/** Returns whether `x` is a format, also of another program: it has parameters, and axes, parts or members. */
function isFormat(x: unknown): boolean {
  const f = x as { [field in 'kind' | 'axes' | 'parts' | 'params' | 'withOrder']?: unknown } | null
  if (typeof f !== 'object' || f === null || !Array.isArray(f.params)) return false
  if (f.kind === 'family') return typeof f.withOrder === 'function'
  return Array.isArray(f.kind === 'composition' ? f.parts : f.axes)
}
const areArguments = (x: unknown): boolean =>
  Array.isArray(x) && x.every((a) => typeof a === 'string' || typeof a === 'number')

const areNames = (x: unknown): boolean => Array.isArray(x) && x.every((a) => typeof a === 'string')

const isLive = (x: unknown): boolean => x === 'live' || x === 'live in place'

/** An expression as `overSizes` builds it, without a division by the literal 0. */
function isOverSizes(x: unknown): boolean {
  if (!isRecord(x) || (x.dtype !== 'index' && x.dtype !== 'i32')) return false
  const { kind, op, name, value, a, b } = x
  if (kind === 'const') return Number.isInteger(value) && Math.abs(value as number) < 2 ** 31
  if (kind === 'var') return typeof name === 'string'
  const divides = op === 'div' || op === 'mod'
  const isOf = divides || ['add', 'sub', 'mul', 'min', 'max'].includes(String(op))
  return (
    kind === 'binary' && isOf && isOverSizes(a) && isOverSizes(b) && !(divides && (b as Const).value === 0)
  )
}

const isRoom = (x: unknown): boolean =>
  Array.isArray(x) ? x.length > 0 && x.every(isOverSizes) : isOverSizes(x)

function checkFound({ live, capacity, total }: AsStep): void {
  if (live || !(capacity || total)) return
  failAs('schedule/bad-step', {
    message: 'as has a capacity and no live',
    expected: "live: 'live', or 'live in place'",
  })
}

const OVER_SIZES =
  'an expression over sizes, or one for each part: integers, names of sizes, add, sub, mul, div, mod, min, max'

/** The arguments as data. The grammar has a rule for the text, in which the buffer comes first. */
const takes = arg.takes(
  arg.buffer('buffer'),
  arg.data<AnyFormat>(isFormat, 'a format')('format'),
  arg.data<readonly (number | string)[]>(areArguments, 'a list of numbers and names')('args'),
  arg.optional(arg.data<'live' | 'live in place'>(isLive, 'live, or live in place')('live')),
  arg.optional(arg.data<Room>(isRoom, OVER_SIZES)('capacity')),
  arg.optional(arg.data<Room>(isRoom, OVER_SIZES)('total')),
  arg.optional(arg.data<readonly string[]>(areNames, 'a list of names of iterations')('for')),
)

export const as = coordPrimitive({
  word: 'as',
  call: "as('A', 'bsr', 4)",
  takes,
  given: (buffer: string, format: AnyFormat, args: readonly (number | string)[]) => ({
    buffer,
    format,
    args,
  }),
  apply: applyAs,
})
