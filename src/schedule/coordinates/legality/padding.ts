/**
 * Legality of padding. A format may store coordinates that the tensor does not have, or omit visited coordinates, only
 * if visiting such coordinates changes nothing: with the fill value in place of the tensor, every reduction combines
 * its identity, and the only other writes are to the tensor's own element there, which must not be read.
 */

import { givenBy, isIdentity, type KnownAt, writtenIn } from '../../../analysis/sparsity/fill-folding.ts'
import { knownValues } from '../../../analysis/sparsity/known-values.ts'
import { sparseInputsOf } from '../../../analysis/sparsity/writes.ts'
import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { type Axis, isAttached, isDense, isPadded, storesGaps } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, FillFactor, Iteration, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { readsIn, readsOf1, walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../../../ir/expressions/expr.ts'
import { walkExpr } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance, Instance } from '../../../ir/formats/format.ts'
import { printExpr1 } from '../../../ir/print/print-stage1.ts'
import { isFloat } from '../../../ir/values/dtype.ts'
import { originOf } from '../as/name-collisions.ts'
import type { Split } from '../as/tensor-split.ts'
import { fillOf, isElement, type Masked } from './masked-statements.ts'
import { type Visits, visits } from './visited-coordinates.ts'

const wholeVisits = (part: FormatInstance, instance: Instance): Visits =>
  visits(part, instance, new Set(instance.over.map((a) => a.name)), new Set(part.order))

/** Returns whether iterations over a part visit coordinates that the part does not hold, or visit some repeatedly. */
export function padsWithFill(part: FormatInstance, instance: Instance): boolean {
  const { adds, repeats } = wholeVisits(part, instance)
  return adds || repeats
}

/**
 * Returns whether the format may omit coordinates that were visited: dense coordinates under sparse axes or in parts,
 * or gaps between the elements of a ragged row, of which a format receives the elements only.
 */
const leavesOut = ({ instance }: Split): boolean =>
  instance.parts.some((p) => wholeVisits(p.instance, instance).misses)

/**
 * Checks that padding does not change results. Returns factors of the fill value that must be finite, and statements that
 * need a mask. @throws SptError `schedule/format-padding`, `schedule/format-output`
 */
export function checkPadding(kernel: Kernel1, split: Split) {
  const out = leavesOut(split)
  const padded = split.instance.parts.map((p) => p.instance).filter((p) => padsWithFill(p, split.instance))
  const factors: Factor[] = []
  const masked = new Map<Stmt1, Masked>()
  if (padded.length === 0 && !out) return { factors, masked }
  const changed = [...split.buffers.values()].map((b) => b.buffer)
  const kept = out ? changed.find((b) => b.role !== 'in') : undefined
  if (kept) refuseOutput(kernel, split, kept)
  const searched = searchedIn(kernel, split)
  const hasMask = !out && padded.every((p) => p.mask !== undefined)
  const clean = hasMask ? cleanBuffers(kernel, split, searched) : new Set<string>()
  // With a mask, results do not depend on infinite or NaN factors.
  const zeros = hasMask ? new Set<string>() : atFillBuffers(kernel, changed)
  const fills = new Map(
    changed.flatMap((b) =>
      b.role === 'in' || clean.has(b.name) || zeros.has(b.name)
        ? [[b.name, constant(b.fill, b.dtype)] as const]
        : [],
    ),
  )
  // Tensors of the format that have arbitrary values at coordinates which they do not hold.
  const scribbled = new Set<string>()
  walkStmts1(kernel.body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const { iterations } = around
    if (!iterations.some((it) => it.iters.some((x) => split.leaving.has(x.axis)))) return
    const iters = itersOf(iterations)
    const ways = waysIn(split, iters)
    const fillAt =
      (is: Way['is']): KnownAt =>
      (l) =>
        is(l) ? fills.get(l.buffer) : undefined
    // On each access path, the tensor may have padding, independently of the values on other paths.
    const written = writtenIn(s, around)
    const given = ways.map(({ is }) => givenBy(written, fillAt(is)))
    const restored = new Map<number, Expr>()
    let asked: string | undefined
    s.targets.forEach((t, k) => {
      const each = given.flatMap((g) => g[k] ?? [])
      const b = split.buffers.get(t.buffer)?.buffer
      const own = !out && b !== undefined && isOwn(t, split, iters)
      const isFill = own && zeros.has(b.name) && ways.length === 1
      if (isFill || each.every((g) => g.isIdentity)) {
        factors.push(...each.flatMap((g) => g.factors.map((factor) => ({ factor, iters }))))
        return
      }
      if (own && clean.has(b.name)) restored.set(k, fillOf(b, s.values[k]!))
      else if (own) scribbled.add(t.buffer)
      else asked = t.buffer
    })
    if (asked === undefined && restored.size === 0) return
    const places = hasMask ? ways.flatMap(({ at }) => (at ? [at] : [])) : []
    if (places.length < ways.length || places.length === 0)
      refuse(kernel, split, padded, asked ?? s.targets[0]!.buffer, out)
    const held = isElement(places)
    if (s.kind === 'reduce') masked.set(s, { how: 'combine', held })
    else masked.set(s, asked === undefined ? { how: 'restore', held, fills: restored } : { how: 'ask', held })
  })
  const read = [...scribbled].find((b) => searched.has(b))
  if (read !== undefined) refuse(kernel, split, padded, read, false)
  return { factors, masked }
}

type Iters = ReadonlyMap<string, string>

const itersOf = (iterations: readonly Iteration[]): Iters =>
  new Map(iterations.flatMap((it) => it.iters.map((x) => [x.name, x.axis] as const)))

/** Returns the tensors of the format that are read at coordinates other than those of the iterators. */
function searchedIn(kernel: Kernel1, split: Split): ReadonlySet<string> {
  const searched = new Set<string>()
  walkStmts1(kernel.body, (s, { iterations }) => {
    const ways = waysIn(split, itersOf(iterations))
    for (const l of readsOf1(s))
      if (split.buffers.has(l.buffer) && !ways.some(({ is }) => is(l))) searched.add(l.buffer)
  })
  return searched
}

/**
 * Returns the tensors that a mask keeps at their fill value where they have no coordinate: they are written at their
 * own elements only, and reductions into them start from the fill value. Other tensors may have arbitrary values there,
 * because each read is under the mask.
 */
function cleanBuffers(kernel: Kernel1, split: Split, searched: ReadonlySet<string>): ReadonlySet<string> {
  const read = new Set(readsIn(kernel.body).map((l) => l.buffer))
  const out = new Set(
    [...split.buffers.values()].flatMap(({ buffer: b }) =>
      b.role === 'inout' || (b.role !== 'in' && read.has(b.name)) ? [b.name] : [],
    ),
  )
  walkStmts1(kernel.body, (s, { iterations }) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    s.targets.forEach((t, k) => {
      const b = split.buffers.get(t.buffer)?.buffer
      if (!b) return
      const starts =
        b.role === 'inout' ||
        (searched.has(b.name) &&
          s.kind === 'reduce' &&
          isIdentity(constant(b.fill, b.dtype), s.reducer.identity[k]!))
      if (!isOwn(t, split, itersOf(iterations)) || (s.kind === 'reduce' && !starts)) out.delete(b.name)
    })
  })
  return out
}

/** The computed tensors that have their fill value wherever an input of the format has its fill value. */
const atFillBuffers = (kernel: Kernel1, changed: readonly Buffer1[]): ReadonlySet<string> =>
  new Set(
    sparseInputsOf(kernel)
      .filter((mask) => changed.some((b) => b.name === mask.name))
      .flatMap((mask) => knownValues(kernel, mask, false).all)
      .flatMap(({ tensor, value }) =>
        changed.some((b) => b.name === tensor && b.role !== 'in' && b.fill === value) ? [tensor] : [],
      ),
  )

/** A factor of the fill value 0, over these iterators. */
export interface Factor {
  readonly factor: Expr
  /** The axis of each iterator. */
  readonly iters: Iters
}

/** Returns whether an access to a split tensor is at the coordinates of the iterators over its axes. */
function isOwn(l: Load, { over, buffers }: Split, iters: Iters): boolean {
  const start = buffers.get(l.buffer)?.start ?? 0
  return over.every((a, k) => {
    const e = l.index[start + k]
    return e?.kind === 'var' && iters.get(e.name) === a.name
  })
}

/** An access path: `is` tests whether an access uses it; `at` has the iterators of its coordinates, if known. */
interface Way {
  readonly is: (l: Load) => boolean
  readonly at: readonly string[] | null
}

/** By the iterators over the tensor's axes, and by each iterator that enters its rows at a coordinate. */
function waysIn(split: Split, iters: Iters): readonly Way[] {
  const { over, axes, buffers } = split
  const names = new Set(over.map((a) => a.name))
  const entered = [...iters].flatMap(([name, axis]) => {
    const a = axes.get(axis)
    return isAttached(a) && names.has(a.base) ? [{ name, by: a.parent }] : []
  })
  const rows = entered.map(({ name, by }) => {
    // With several iterators over the axis, the coordinate of the row is unknown.
    const at = [...iters].filter(([x, axis]) => {
      const a = axes.get(axis)
      return x !== name && (axis === by || (isAttached(a) && a.base === by))
    })
    const known = over.length === 2 && at.length === 1
    const is = (l: Load): boolean => {
      const start = buffers.get(l.buffer)?.start
      if (start === undefined || !known) return false
      const [row, column] = l.index.slice(start, start + 2)
      return row?.kind === 'var' && row.name === at[0]![0] && column?.kind === 'var' && column.name === name
    }
    return { is, at: known ? [at[0]![0], name] : null }
  })
  const isVisited = rows.length === 0 || [...iters.values()].some((axis) => names.has(axis))
  const own = over.flatMap((a) => [...iters].find(([, axis]) => axis === a.name)?.[0] ?? [])
  const itself: Way = { is: (l) => isOwn(l, split, iters), at: own.length === over.length ? own : null }
  return isVisited ? [itself, ...rows] : rows
}

function refuseOutput(kernel: Kernel1, split: Split, b: Buffer1): never {
  failAs('schedule/format-output', {
    message: `${b.name} of ${kernel.name} is written at every coordinate of the dense axes, and ${split.instance.text} would omit some`,
    expected: 'a format of dense axes for a dense tensor that is written',
    hint: `declare ${b.name} over sparse axes, or leave out this step`,
  })
}

function refuse(
  kernel: Kernel1,
  split: Split,
  padded: readonly FormatInstance[],
  target: string,
  out: boolean,
): never {
  const names = [...split.buffers.keys()].join(', ')
  const { text } = split.instance
  if (out)
    failAs('schedule/format-padding', {
      message: `${text} skips coordinates of ${names} with the fill value, which would change ${target} of ${kernel.name}`,
      expected:
        'a reduction that padding (the fill value of the tensor) does not change, such as `+=` of products',
      hint: `leave out this step, declare ${names} over sparse axes, or mask the computation of ${target} first`,
    })
  const [first] = padded
  const padding = first?.axes.filter(isPadded) ?? []
  const dense = first?.axes.filter((a) => isDense(a) || storesGaps(a)) ?? []
  const which = first && first.text !== text ? `${first.text} in ${text}` : text
  failAs('schedule/format-padding', {
    message: `${which} stores coordinates that are absent from ${names}, and visits to these coordinates would change ${target} of ${kernel.name}`,
    expected: 'a reduction that combines the identity at fill values of the tensor',
    hint:
      padding.length > 0
        ? `axis ${padding[0]!.name} is padded with a coordinate of the tensor: use a format without padding, such as csr, or a format with a mask (\`mask held\`)`
        : `the padding comes from the dense axes ${dense.map((a) => a.name).join(', ')}: use a format that stores only elements, such as csr or ell, or a format with a mask (\`mask held\`)`,
  })
}

// Factors of a tensor's fill value 0. Steps replace `0 * factor` by 0, so the bound data of the factors are
// checked for infinity and NaN.

/**
 * Describes a factor of a fill value by its text and its loads. `by` has the dimension of `over` whose iterator is
 * the load's index, or null.
 */
export function fillFactor(kernel: Kernel1, over: readonly Axis[], { factor, iters }: Factor): FillFactor {
  const loads: FillFactor['loads'][number][] = []
  const dimension = (e: Expr): number | null => {
    const axis = e.kind === 'var' ? iters.get(e.name) : undefined
    const k = over.findIndex((a) => a.name === axis)
    return k < 0 ? null : k
  }
  walkExpr(factor, (x) => {
    if (x.kind === 'load' && isFloat(x.dtype))
      loads.push({ tensor: originOf(kernel, x.buffer), by: x.index.map(dimension) })
  })
  return { text: printExpr1(factor), element: factor.kind === 'load', loads }
}

/** Returns all factors of the tensor's fill value in a kernel. */
export function factorsOf(kernel: Kernel1, { name, fill, dtype }: Buffer1): readonly FillFactor[] {
  const out: FillFactor[] = []
  walkStmts1(kernel.body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const given = givenBy(writtenIn(s, around), (l) =>
      l.buffer === name ? constant(fill, dtype) : undefined,
    )
    for (const { factors } of given)
      for (const factor of factors) out.push(fillFactor(kernel, [], { factor, iters: new Map() }))
  })
  return out
}
