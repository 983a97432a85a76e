/**
 * Who else writes an element: facts about the iterations that `as` made of one, which decide between parallel
 * loops as they are, atomics, and combining partial results.
 */
import type { Axis } from '../../ir/axis.ts'
import { type Access, accessesOf } from '../../ir/elaborate/accesses.ts'
import { type Determined, determined } from '../../ir/elaborate/injective.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars, substitute } from '../../ir/expr-tree.ts'
import type { PartTree } from '../../ir/format.ts'
import { sameExpr } from '../../ir/keys.ts'
import type { Iter, Kernel1, Reformat, Stmt1 } from '../../ir/stage1.ts'
import { dependsOn } from './depends.ts'
import { padsWithFill } from './padding.ts'

/** A buffer that an iteration over a part writes. */
export interface PartWrite {
  readonly iteration: string
  /** Which reformat of the kernel, and which of its parts. */
  readonly reformat: number
  readonly part: number
  readonly buffer: string
  /**
   * Iterations over other parts of the same reformat that may write the same elements. Empty: whether a
   * coordinate belongs to this part depends only on coordinates that tell the elements apart.
   */
  readonly meets: readonly string[]
  /** Others: the dimensions of the buffer that decide, by the name of the iteration; none where statements differ in them. */
  readonly told: ReadonlyMap<string, readonly number[]>
  /**
   * R iterators that come to an element again although the kernel does not reduce over what they stand for: a
   * nonunique axis, pieces of a row. Bound to threads they need atomics or partial results.
   */
  readonly repeats: readonly string[]
}

/** One entry for each iteration over a part (the innermost of a nest) and each buffer it writes, in the order of the kernel. */
export function sharing(kernel: Kernel1): readonly PartWrite[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const all = writesIn(kernel.body, [], kernel, axes)
  return all.map((w) => {
    const others = all
      .filter((o) => o.reformat === w.reformat && o.part !== w.part && o.buffer === w.buffer)
      .map((o) => ({ iteration: o.iteration, by: apartBy(kernel.reformats[w.reformat]!, w, o) }))
    return {
      iteration: w.iteration,
      reformat: w.reformat,
      part: w.part,
      buffer: w.buffer,
      meets: [...new Set(others.filter((o) => !o.by).map((o) => o.iteration))],
      told: new Map(others.flatMap((o) => (o.by ? [[o.iteration, o.by] as const] : []))),
      repeats: w.repeats,
    }
  })
}

interface Write {
  readonly iteration: string
  readonly reformat: number
  readonly part: number
  readonly buffer: string
  readonly repeats: readonly string[]
  /** Of each statement that writes the buffer. */
  readonly indices: readonly (readonly Expr[])[]
  /** The old coordinates, over the iterators. */
  readonly coordinates: readonly Expr[]
}

type Axes = ReadonlyMap<string, Axis>

/** Writes by the innermost iteration that, with those around it, runs over all axes of a part. */
function writesIn(body: readonly Stmt1[], around: readonly Iter[], kernel: Kernel1, axes: Axes): Write[] {
  return body.flatMap((s) => {
    if (s.kind === 'if') return writesIn([...s.then, ...s.else], around, kernel, axes)
    if (s.kind !== 'iterate') return []
    const iters = [...around, ...s.iters]
    const before = standsIn(kernel, opened(around, axes))
    const here = standsIn(kernel, opened(iters, axes)).filter(
      (x) => !before.some((y) => y.reformat === x.reformat && y.part === x.part),
    )
    const writes = accessesOf([s], axes).filter((a) => a.mode !== 'read')
    return [
      ...here.flatMap((place) => writesOf(s.name, iters, writes, place, kernel, axes)),
      ...writesIn(s.body, iters, kernel, axes),
    ]
  })
}

const opened = (iters: readonly Iter[], axes: Axes): string[] =>
  iters.flatMap((x) => {
    const axis = axes.get(x.axis)
    return axis?.kind === 'fused' ? axis.members : [x.axis]
  })

function writesOf(
  iteration: string,
  iters: readonly Iter[],
  writes: readonly Access[],
  { reformat, part, coordinates }: Standing,
  kernel: Kernel1,
  axes: Axes,
): Write[] {
  const permutations = new Set(kernel.buffers.filter((b) => b.distinct).map((b) => b.name))
  const own = new Set(kernel.reformats[reformat]!.instance.parts[part]!.instance.order)
  const mine = iters.filter((x) => own.has(x.axis))
  return [...new Set(writes.map((w) => w.buffer))].map((buffer) => {
    const accesses = writes.filter((w) => w.buffer === buffer)
    const over = kernel.buffers.find((b) => b.name === buffer)?.axes ?? []
    const repeats = mine.filter((x) =>
      accesses.some((w) => repeated(x, w, determined(w, over, axes, permutations), coordinates)),
    )
    return {
      iteration,
      reformat,
      part,
      buffer,
      indices: accesses.map((w) => w.index),
      coordinates,
      repeats: repeats.map((x) => x.name),
    }
  })
}

/** A part of a reformat whose axes are iterated, and the coordinates they stand for. */
interface Standing {
  readonly reformat: number
  readonly part: number
  readonly coordinates: readonly Expr[]
}

/** The parts whose axes are iterated, and the coordinates they stand for: through later formats of a part, too. */
function standsIn(kernel: Kernel1, iterated: readonly string[]): Standing[] {
  const known = new Set(iterated)
  const values = new Map<string, Expr>()
  const out: Standing[] = []
  for (let r = kernel.reformats.length - 1; r >= 0; r--) {
    const { instance, from } = kernel.reformats[r]!
    const part = instance.parts.findIndex((p) => p.instance.order.every((a) => known.has(a)))
    if (part < 0) continue
    const coordinates = instance.parts[part]!.instance.inverse.map((e) => substitute(e, values))
    out.push({ reformat: r, part, coordinates })
    from.forEach((a, k) => {
      known.add(a.name)
      values.set(a.name, coordinates[k]!)
    })
  }
  return out
}

/**
 * An R iterator that has a say only in coordinates that the target is indexed by, or in none, and whose steps the
 * target does not tell apart.
 */
const repeated = (x: Iter, w: Access, told: Determined, coordinates: readonly Expr[]): boolean =>
  x.kind === 'R' &&
  !told.has(x.name) &&
  coordinates.every((c) => !freeVars(c).has(x.name) || w.index.some((e) => sameExpr(e, c)))

type Sides = Pick<Write, 'part' | 'indices' | 'coordinates'>

/**
 * Where two parts' selections part, nothing is asked but coordinates that an element has only one of: the dimensions of the
 * target that these are, none where statements differ in them. Nothing where more is asked.
 */
function apartBy(r: Reformat, x: Sides, y: Sides): readonly number[] | undefined {
  const { instance } = r
  const over = instance.over
  const padded = [x, y].some((s) => padsWithFill(instance.parts[s.part]!.instance, instance))
  if (padded) return undefined
  const at = (a: readonly Expr[], b: readonly Expr[], k: number): number[] =>
    a.flatMap((e, d) =>
      sameExpr(e, x.coordinates[k]!) && b[d] !== undefined && sameExpr(b[d], y.coordinates[k]!) ? [d] : [],
    )
  const dims = over.map((a) => a.name)
  const pairs = x.indices.flatMap((a) => y.indices.map((b) => [a, b] as const))
  const asked = [...askedBetween(instance.tree, x.part, y.part, dims)].map((v) => dims.indexOf(v))
  const told = asked.map((k) => (k < 0 ? [[]] : pairs.map(([a, b]) => at(a, b, k))))
  if (!told.every((of) => of.every((d) => d.length > 0))) return undefined
  const common = told.map((of) => of[0]?.find((d) => of.every((other) => other.includes(d))))
  return common.every((d) => d !== undefined) ? [...new Set(common)] : []
}

/** Dimensions that decide between two parts. */
function askedBetween(tree: PartTree, x: number, y: number, dims: readonly string[]): ReadonlySet<string> {
  if (tree.kind === 'leaf') return new Set()
  const children = tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)
  const both = children.find((c) => holds(c, x) && holds(c, y))
  if (both) return askedBetween(both, x, y, dims)
  const asked = tree.kind === 'index' ? [tree.index] : tree.cases.flatMap((c) => (c.where ? [c.where] : []))
  return new Set(asked.flatMap((e) => [...dependsOn(e, tree.queries, dims)]))
}

const holds = (tree: PartTree, part: number): boolean =>
  tree.kind === 'leaf'
    ? tree.part === part
    : (tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)).some((c) => holds(c, part))
