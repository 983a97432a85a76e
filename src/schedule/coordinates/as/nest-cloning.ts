/**
 * Cloning of a nest of iterations for each part, without loop distribution. If the outer iterators alone determine the
 * part of an element (for example rows by their length), `row [i] { peak [j] …; scale [j] … }` runs once for each part,
 * for the rows in that part. A part may visit rows that it does not hold, but no other statement sees what is written
 * there: local buffers that only the nest uses are duplicated for each part.
 */
import { repeatsCoordinates } from '../../../ir/coordinates/axis.ts'
import type { Iteration, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  iterationsOf,
  readsIn,
  rewriteBody1,
  rewriteStmts1,
  writtenBuffers1,
} from '../../../ir/coordinates/stage1-tree.ts'
import { type Expr, load } from '../../../ir/expressions/expr.ts'
import { freeVars } from '../../../ir/expressions/expr-tree.ts'
import { childrenOf, type PartTree, selectorsOf } from '../../../ir/formats/part-tree.ts'
import { determiningExprs } from '../../../ir/formats/queries.ts'
import { type PartRewrite, rewriteStmt } from './format-rewrite.ts'
import type { Split } from './tensor-split.ts'

/** Names of a local buffer in each part, by its original name. */
export type Locals = Map<string, readonly string[]>

/**
 * Returns one nest for each part; undefined if rows are in several parts, or if other statements use buffers that the
 * nest writes.
 */
export function wholeNests(
  nest: Iteration,
  kernel: Kernel1,
  split: Split,
  locals: Locals,
  unused: (name: string, label?: string) => string,
): Stmt1[] | undefined {
  const { instance, over, buffers } = split
  const outer = new Set(nest.iters.map((x) => x.axis))
  const known = [...over.filter((a) => outer.has(a.name)), ...kernel.params].map((x) => x.name)
  if (instance.parts.length < 2 || !decidedBy(instance.tree, new Set(known))) return undefined
  if (instance.parts.some((p) => p.instance.axes.some(repeatsCoordinates))) return undefined
  const outside = kernel.body.filter((s) => s !== nest)
  const others = new Set([...writtenBuffers1(outside), ...readsIn(outside).map((l) => l.buffer)])
  const written = writtenBuffers1([nest])
  const mine = kernel.buffers.filter((b) => written.has(b.name) && !buffers.has(b.name))
  if (mine.some((b) => b.role !== 'local' || others.has(b.name))) return undefined
  const copies = instance.parts.map((_, part): Stmt1 | undefined => {
    const c: PartRewrite = { split, part, apart: true, problems: [] }
    const copy = rewriteStmt(nest, c)
    return c.problems.length === 0 ? copy : undefined
  })
  if (copies.some((c) => c === undefined)) return undefined
  const labels = instance.parts.map((p) => p.label)
  for (const b of mine)
    locals.set(
      b.name,
      labels.map((l) => unused(b.name, l)),
    )
  const names = iterationsOf([nest]).map((it) => it.name)
  return copies.flatMap((copy, part) => {
    const fresh = new Map(names.map((n) => [n, unused(n, labels[part])]))
    const renamed = rewriteBody1(copy ? [copy] : [], (e) => {
      const name = e.kind === 'load' ? locals.get(e.buffer)?.[part] : undefined
      return e.kind === 'load' && name !== undefined ? load(name, e.index, e.dtype, e.span) : undefined
    })
    return rewriteStmts1(renamed, (s) =>
      s.kind === 'iterate' ? { ...s, name: fresh.get(s.name)! } : undefined,
    )
  })
}

/** Returns whether the part of a coordinate is a function of these names. */
function decidedBy(tree: PartTree, names: ReadonlySet<string>): boolean {
  if (tree.kind === 'leaf') return true
  const known = new Set(names)
  for (const q of tree.queries) if (determiningExprs(q)?.every((e) => isOver(e, known))) known.add(q.name)
  return (
    selectorsOf(tree).every((e) => isOver(e, known)) && childrenOf(tree).every((c) => decidedBy(c, names))
  )
}

const isOver = (e: Expr, names: ReadonlySet<string>): boolean => [...freeVars(e)].every((v) => names.has(v))
