/**
 * Write conflicts between iterations that `as` makes from one iteration. The conflicts decide between concurrent
 * execution, atomics, and combined partial results.
 */

import { type Access, accessesOf } from '../../../analysis/dependence/coordinate-accesses.ts'
import { determined, distinctIn } from '../../../analysis/dependence/coordinate-injectivity.ts'
import { checkKinds } from '../../../analysis/dependence/iterator-kinds.ts'
import { dependsOn } from '../../../analysis/dependence/query-dependence.ts'
import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { type Axis, isFused, repeatsCoordinates } from '../../../ir/coordinates/axis.ts'
import type { Iter, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { type Body1, rewriteStmts1, walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import { childrenOf, type PartTree, partsBelow, selectorsOf } from '../../../ir/formats/part-tree.ts'
import { getOrAdd, groupBy, memoize } from '../../../ir/memoize.ts'
import type { DisjointWrites } from '../../../ir/statements/loops.ts'
import { padsWithFill } from './padding.ts'

/** Returns, for each buffer, iterations over different parts that never write the same elements. */
export function partsApart(kernel: Kernel1): readonly DisjointWrites[] {
  const axes: Axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const together = groupBy(writesIn(kernel, axes), (w) => `${w.reformat} ${w.buffer}`)
  return [...together.values()].flatMap((writes) =>
    disjointWritesUnder(kernel.reformats[writes[0]!.reformat]!.instance.tree, writes, kernel),
  )
}

/** Writes to a buffer by the innermost iteration of a nest that runs over a part. */
interface Write {
  readonly iteration: string
  /** Index of the reformat in the kernel's list, and index of the part (`part`) in its instance. */
  readonly reformat: number
  readonly part: number
  readonly buffer: string
  readonly indices: readonly (readonly Expr[])[]
  readonly coordinates: readonly Expr[]
  /** True if the iteration visits coordinates that the part does not hold, or visits some repeatedly. */
  readonly padded: boolean
}

type Axes = ReadonlyMap<string, Axis>

/** Returns the writes by each innermost iteration that, with its enclosing iterations, runs over all axes of a part. */
function writesIn(kernel: Kernel1, axes: Axes): Write[] {
  const out: Write[] = []
  walkStmts1(kernel.body, (s, { iterations }) => {
    if (s.kind !== 'iterate') return
    const around = iterations.flatMap((it) => it.iters)
    const before = standsIn(kernel, opened(around, axes))
    const here = standsIn(kernel, opened([...around, ...s.iters], axes)).filter(
      (x) => !before.some((y) => y.reformat === x.reformat && y.part === x.part),
    )
    if (here.length === 0) return
    const writes = accessesOf([s], axes).filter((a) => a.mode !== 'read')
    for (const place of here) out.push(...writesOf(s.name, writes, place, kernel))
  })
  return out
}

const opened = (iters: readonly Iter[], axes: Axes): string[] =>
  iters.flatMap((x) => {
    const axis = axes.get(x.axis)
    return isFused(axis) ? axis.members : [x.axis]
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
    return { iteration, reformat, part, buffer, indices, coordinates, padded }
  })
}

/** A part of a reformat whose axes are iterated, and the old coordinates of the iteration. */
interface Standing {
  readonly reformat: number
  readonly part: number
  readonly coordinates: readonly Expr[]
}

/** Returns the parts whose axes are iterated, with the old coordinates; also through later formats of a part. */
function standsIn(kernel: Kernel1, iterated: readonly string[]): Standing[] {
  const known = new Set(iterated)
  const values = new Map<string, Expr>()
  const out: Standing[] = []
  for (let r = kernel.reformats.length - 1; r >= 0; r--) {
    const { instance, from } = kernel.reformats[r]!
    const part = partOver(instance, known)
    if (part === undefined) continue
    const coordinates = instance.parts[part]!.instance.inverse.map((e) => substitute(e, values))
    out.push({ reformat: r, part, coordinates })
    from.forEach((a, k) => {
      known.add(a.name)
      values.set(a.name, coordinates[k]!)
    })
  }
  return out
}

function partOver(instance: Instance, iterated: ReadonlySet<string>): number | undefined {
  const among = [...iterated, undefined].flatMap((axis) => partsFrom(instance).get(axis) ?? [])
  const over = among.filter((k) => instance.parts[k]!.instance.order.every((a) => iterated.has(a)))
  return over.length > 0 ? Math.min(...over) : undefined
}

/** Indices of parts by their outermost axis; by `undefined` for a part without axes. */
const partsFrom = memoize((instance: Instance): ReadonlyMap<string | undefined, readonly number[]> => {
  const out = new Map<string | undefined, number[]>()
  for (const [k, p] of instance.parts.entries()) {
    const [axis] = p.instance.order
    out.set(axis, [...(out.get(axis) ?? []), k])
  }
  return out
})

/**
 * Returns iterations under a node of a format's tree that never write the same elements. The node at which two parts
 * separate decides. Writes with the old coordinates in the same dimensions form one class, so most nodes give one fact.
 */
function disjointWritesUnder(tree: PartTree, writes: readonly Write[], kernel: Kernel1): DisjointWrites[] {
  if (tree.kind === 'leaf' || writes.length < 2) return []
  const { over } = kernel.reformats[writes[0]!.reformat]!.instance
  const dims = over.map((a) => a.name)
  const decide = selectorsOf(tree)
  const deciding = new Set(
    decide.flatMap((e) => [...dependsOn(e, tree.queries, dims)].map((v) => dims.indexOf(v))),
  )
  const below = childrenOf(tree).map((): Write[] => [])
  const childOf = new Map(childrenOf(tree).flatMap((c, k) => partsBelow(c).map((part) => [part, k] as const)))
  const classes = new Map<string, Class>()
  for (const w of writes) {
    const child = childOf.get(w.part)!
    below[child]!.push(w)
    const places = placesOf(w, deciding)
    const key = JSON.stringify(places)
    const { groups } = getOrAdd(classes, key, () => ({ places, groups: new Map<number, string[]>() }))
    getOrAdd(groups, child, () => []).push(w.iteration)
  }
  return [
    ...disjointClasses([...classes.values()]).map(
      (fact): DisjointWrites => ({ buffer: writes[0]!.buffer, ...fact }),
    ),
    ...childrenOf(tree).flatMap((c, k) => disjointWritesUnder(c, below[k]!, kernel)),
  ]
}

/** For each deciding coordinate, the dimensions of the target that have this coordinate as index, by statement. */
type Places = readonly (readonly (readonly number[])[])[]

/** Iterations with the same `places`, by their child of the node. */
interface Class {
  /** Null if data other than coordinates decide, or if the part visits coordinates that it does not hold. */
  readonly places: Places | null
  readonly groups: Map<number, string[]>
}

const placesOf = (w: Write, deciding: ReadonlySet<number>): Places | null =>
  w.padded || deciding.has(-1)
    ? null
    : [...deciding].map((k) =>
        w.indices.map((index) => index.flatMap((e, d) => (sameExpr(e, w.coordinates[k]!) ? [d] : []))),
      )

function disjointClasses(classes: readonly Class[]): readonly Omit<DisjointWrites, 'buffer'>[] {
  const pairs = classes.flatMap((a, k) =>
    classes.slice(k).flatMap((b) => {
      const by = dimensionsOf(a, b)
      return by ? [{ a, b, by }] : []
    }),
  )
  const fact = (
    nests: readonly (readonly string[])[],
    by: readonly number[],
  ): Omit<DisjointWrites, 'buffer'>[] =>
    nests.length > 1 && nests.every((group) => group.length > 0) ? [{ nests, by }] : []
  const told = classes.filter((c) => pairs.some(({ a, b }) => a === c || b === c))
  const isSame = pairs.every((p) => p.by.join() === pairs[0]!.by.join())
  if (pairs.length > 0 && isSame && pairs.length === (told.length * (told.length + 1)) / 2) {
    const groups = new Map<number, string[]>()
    for (const c of told)
      for (const [child, names] of c.groups) groups.set(child, [...(groups.get(child) ?? []), ...names])
    return fact([...groups.values()], pairs[0]!.by)
  }
  const except = (c: Class, child: number): readonly string[] =>
    [...c.groups].flatMap(([k, names]) => (k === child ? [] : names))
  return pairs.flatMap(({ a, b, by }) =>
    a === b
      ? fact([...a.groups.values()], by)
      : [...a.groups].flatMap(([child, names]) => fact([names, except(b, child)], by)),
  )
}

/**
 * Returns the dimensions of the target that have all deciding coordinates, in both classes; an empty list if statements
 * have them in different dimensions; undefined if other data decide or a coordinate is missing.
 */
function dimensionsOf(a: Class, b: Class): readonly number[] | undefined {
  if (!a.places || !b.places) return undefined
  const told = a.places.map((mine, k) =>
    mine.flatMap((x) => b.places![k]!.map((y) => x.filter((d) => y.includes(d)))),
  )
  if (!told.every((dims) => dims.every((d) => d.length > 0))) return undefined
  const common = told.map((dims) => dims[0]?.find((d) => dims.every((other) => other.includes(d))))
  return common.every((d) => d !== undefined) ? [...new Set(common)] : []
}

// Kinds of the iterators that a format adds. If different iterations may write the same element (a coordinate is
// stored several times, rows are split in pieces, another axis enters the rows of blocks), a spatial iterator
// becomes a reduction. If the kernel's semantics do not allow that, the format is rejected.

/** Returns the kernel with corrected kinds of iterators over `fresh`. @throws SptError `schedule/format-repeats` */
export function withKinds(kernel: Kernel1, fresh: readonly Axis[], text: string): Kernel1 {
  const combining = combiningIters(kernel, new Set(fresh.map((a) => a.name)))
  const next = combining.size === 0 ? kernel : { ...kernel, body: demoted(kernel.body, combining) }
  const [problem] = checkKinds(next)
  if (!problem) return next
  const repeated = fresh.filter(repeatsCoordinates).map((a) => a.name)
  return failAs('schedule/format-repeats', {
    message:
      repeated.length > 0
        ? `${text} may hold a coordinate of ${repeated.join(', ')} several times: ${problem.message}`
        : `iterations of ${text} may write the same elements of ${kernel.name}: ${problem.message}`,
    expected: 'sums over the repeated coordinates without earlier consumers',
    hint: 'choose a format in which each coordinate occurs once, such as csr',
  })
}

/** The spatial iterators over new axes that may write one element of a target in different iterations. */
function combiningIters(kernel: Kernel1, fresh: ReadonlySet<string>): ReadonlySet<Iter> {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const over = new Map(kernel.buffers.map((b) => [b.name, b.axes]))
  const distinct = distinctIn(kernel.buffers)
  const out = new Set<Iter>()
  for (const a of accessesOf(kernel.body, axes)) {
    if (a.mode === 'read') continue
    const by = determined(a, over.get(a.buffer) ?? [], axes, distinct)
    for (const { iter, coords } of a.around)
      if (iter.kind === 'S' && fresh.has(iter.axis) && coords.some((x) => !by.has(x.name))) out.add(iter)
  }
  return out
}

const demoted = (body: Body1, combining: ReadonlySet<Iter>): Body1 =>
  rewriteStmts1(body, (s) => {
    if (s.kind !== 'iterate') return undefined
    return { ...s, iters: s.iters.map((x) => (combining.has(x) ? { ...x, kind: 'R' as const } : x)) }
  })
