/**
 * Nests cloned for each part, without loop distribution. A nest over formats of several parts, kept whole: where which
 * part an element goes to depends on the outer iterators alone (rows by their length, say), `row [i] { peak [j] …; scale
 * [j] … }` runs once for each part, for the rows that are stored in it. Rows that a part visits without holding them
 * write nothing that others see: local buffers that only the nest uses become one for each part.
 */
import { repeats } from '../../ir/axis.ts'
import { type Expr, load } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import { childrenOf, decidingIn, type PartTree } from '../../ir/part-tree.ts'
import { decidersOf } from '../../ir/queries.ts'
import type { Iteration, Kernel1, Stmt1 } from '../../ir/stage1.ts'
import { iterationsOf, readsIn, rewriteBody1, rewriteStmts1, writtenBy } from '../../ir/stage1-tree.ts'
import { type PartRewrite, rewriteStmt } from './format-rewrite.ts'
import type { Split } from './tensor-split.ts'

/** Names of a local buffer in each part, by the name it had. */
export type Locals = Map<string, readonly string[]>

/** One nest for each part; nothing where rows are in several parts, or others see what the nest writes. */
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
  if (instance.parts.some((p) => p.instance.axes.some(repeats))) return undefined
  const outside = kernel.body.filter((s) => s !== nest)
  const others = new Set([...writtenBy(outside), ...readsIn(outside).map((l) => l.buffer)])
  const written = writtenBy([nest])
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

/** Whether which part a coordinate goes to is a function of these names. */
function decidedBy(tree: PartTree, names: ReadonlySet<string>): boolean {
  if (tree.kind === 'leaf') return true
  const known = new Set(names)
  for (const q of tree.queries) if (decidersOf(q)?.every((e) => isOver(e, known))) known.add(q.name)
  return decidingIn(tree).every((e) => isOver(e, known)) && childrenOf(tree).every((c) => decidedBy(c, names))
}

const isOver = (e: Expr, names: ReadonlySet<string>): boolean => [...freeVars(e)].every((v) => names.has(v))
