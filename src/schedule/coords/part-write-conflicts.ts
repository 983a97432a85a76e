/**
 * Whether iterations that `as` made of one write the same elements: what decides between running them at once, atomics,
 * and combining partial results.
 */

import { type Access, accessesOf } from '../../analysis/coordinate-accesses.ts'
import { dependsOn } from '../../analysis/query-dependence.ts'
import type { Axis } from '../../ir/axis.ts'
import type { Expr } from '../../ir/expr.ts'
import { substitute } from '../../ir/expr-tree.ts'
import type { PartTree } from '../../ir/format.ts'
import type { Apart } from '../../ir/loops.ts'
import type { Iter, Kernel1, Reformat, Stmt1 } from '../../ir/stage1.ts'
import { keyOf, sameExpr } from '../../ir/structural-equality.ts'
import { padsWithFill } from './padding.ts'

/** Of each buffer: iterations over different parts of a format that never write the same elements of it. */
export function partsApart(kernel: Kernel1): readonly Apart[] {
  const axes: Axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const all = alike(writesIn(kernel.body, [], kernel, axes))
  return all.flatMap((w, k) =>
    all.slice(k + 1).flatMap((o): Apart[] => {
      if (o.reformat !== w.reformat || o.part === w.part || o.buffer !== w.buffer) return []
      const by = apartBy(kernel.reformats[w.reformat]!, w, o)
      return by ? [{ buffer: w.buffer, nests: [w.iterations, o.iterations], by }] : []
    }),
  )
}

/** By the innermost iterations of nests that run over a part: what several do alike stands once. */
interface Write {
  readonly iterations: readonly string[]
  /** Which reformat of the kernel, and which of its parts. */
  readonly reformat: number
  readonly part: number
  readonly buffer: string
  /** Of each statement that writes the buffer. */
  readonly indices: readonly (readonly Expr[])[]
  /** The old coordinates, over the iterators. */
  readonly coordinates: readonly Expr[]
  /** The iteration comes to elements that the part does not hold, or to some repeatedly. */
  readonly padded: boolean
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
      ...here.flatMap((place) => writesOf(s.name, writes, place, kernel)),
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
  writes: readonly Access[],
  { reformat, part, coordinates }: Standing,
  kernel: Kernel1,
): Write[] {
  const { instance } = kernel.reformats[reformat]!
  const padded = padsWithFill(instance.parts[part]!.instance, instance)
  return [...new Set(writes.map((w) => w.buffer))].map((buffer) => {
    const indices = writes.filter((w) => w.buffer === buffer).map((w) => w.index)
    return { iterations: [iteration], reformat, part, buffer, indices, coordinates, padded }
  })
}

/** A hundred iterations over a format of many parts write alike in each: pairs are asked of the parts. */
function alike(writes: readonly Write[]): readonly Write[] {
  const out = new Map<string, Write>()
  for (const w of writes) {
    const at = (es: readonly Expr[]): string => es.map(keyOf).join(',')
    const key = [w.reformat, w.part, w.buffer, w.indices.map(at).join(';'), at(w.coordinates)].join(' ')
    const before = out.get(key)?.iterations ?? []
    out.set(key, { ...w, iterations: [...before, ...w.iterations] })
  }
  return [...out.values()]
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
 * Where two parts' selections part, nothing is asked but coordinates that an element has only one of: the dimensions of the
 * target that these are, none where statements differ in them. Nothing where more is asked.
 */
function apartBy(r: Reformat, x: Write, y: Write): readonly number[] | undefined {
  const { instance } = r
  const over = instance.over
  if (x.padded || y.padded) return undefined
  const at = (a: readonly Expr[], b: readonly Expr[], k: number): number[] =>
    a.flatMap((e, d) =>
      sameExpr(e, x.coordinates[k]!) && b[d] !== undefined && sameExpr(b[d], y.coordinates[k]!) ? [d] : [],
    )
  const dims = over.map((a) => a.name)
  const pairs = x.indices.flatMap((a) => y.indices.map((b) => [a, b] as const))
  const between = [...askedBetween(instance.tree, x.part, y.part, dims)].map((v) => dims.indexOf(v))
  const told = between.map((k) => (k < 0 ? [[]] : pairs.map(([a, b]) => at(a, b, k))))
  if (!told.every((of) => of.every((d) => d.length > 0))) return undefined
  const common = told.map((of) => of[0]?.find((d) => of.every((other) => other.includes(d))))
  return common.every((d) => d !== undefined) ? [...new Set(common)] : []
}

/** Dimensions that decide between two parts. */
function askedBetween(tree: PartTree, x: number, y: number, dims: readonly string[]): ReadonlySet<string> {
  if (tree.kind === 'leaf') return new Set()
  const both = childrenOf(tree).find((c) => partsIn(c).has(x) && partsIn(c).has(y))
  if (both) return askedBetween(both, x, y, dims)
  return askedBy(tree, dims)
}

// Trees belong to one instance, and its dimensions.
const asked = new WeakMap<PartTree, ReadonlySet<string>>()

function askedBy(tree: Exclude<PartTree, { kind: 'leaf' }>, dims: readonly string[]): ReadonlySet<string> {
  const before = asked.get(tree)
  if (before) return before
  const all = tree.kind === 'index' ? [tree.index] : tree.cases.flatMap((c) => (c.where ? [c.where] : []))
  const found = new Set(all.flatMap((e) => [...dependsOn(e, tree.queries, dims)]))
  asked.set(tree, found)
  return found
}

const childrenOf = (tree: Exclude<PartTree, { kind: 'leaf' }>): readonly PartTree[] =>
  tree.kind === 'index' ? tree.children : tree.cases.map((c) => c.child)

const parts = new WeakMap<PartTree, ReadonlySet<number>>()

function partsIn(tree: PartTree): ReadonlySet<number> {
  const before = parts.get(tree)
  if (before) return before
  const found =
    tree.kind === 'leaf' ? new Set([tree.part]) : new Set(childrenOf(tree).flatMap((c) => [...partsIn(c)]))
  parts.set(tree, found)
  return found
}
