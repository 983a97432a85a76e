/**
 * Assignment of elements to the parts of a format that is built at run time, by conditions over coordinates and
 * tensors of the kernel; `held(M)` is true if M differs from its fill value. An element belongs to the first part
 * whose condition holds. The device evaluates the conditions when it marks coordinates, and where a block of one part
 * may contain elements of another.
 */

import { comesToNothing, writtenIn } from '../../../analysis/sparsity/fill-folding.ts'
import { failAs } from '../../../ast/diagnostics/diagnostic.ts'
import { isDense, isDenseRoot, type StoredAxis, sourceName } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import { readsOf1, rewriteBody1, walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import {
  all,
  conjuncts,
  constant,
  differs,
  type Expr,
  eq,
  int,
  load,
  not,
  select,
  variable,
} from '../../../ir/expressions/expr.ts'
import { buffersRead, freeVars, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { Instance, PartInstance } from '../../../ir/formats/format.ts'
import type { PartTree } from '../../../ir/formats/part-tree.ts'
import type { Query } from '../../../ir/formats/queries.ts'
import { among } from '../../refusals.ts'
import { QUERY_TEXTS } from '../as/lookup.ts'
import { refuseLive } from './format.ts'
import { atIterators } from './groups.ts'

export interface LivePart extends PartInstance {
  /** The condition on the part's elements, over the names of the tensor's axes; null if the part has all elements. */
  readonly where: Expr | null
}

export interface LiveParts {
  readonly parts: readonly LivePart[]
  /** Names of the tensors that the conditions read. */
  readonly masks: ReadonlySet<string>
  /**
   * The conditions of each list of cases without a default case. If no condition holds, the element is in no part.
   */
  readonly open: readonly (readonly Expr[])[]
}

/** The expected form and the hint of errors about unsupported conditions. */
const KNOWN = {
  expected: 'conditions over coordinates, sizes and held(M), where M is a tensor of the kernel',
  hint: 'compute a mask M in the kernel and use held(M)',
}

/** Returns the format's parts, each with the condition on its elements. @throws SptError `schedule/live-format` */
export function livePartsOf(kernel: Kernel1, instance: Instance): LiveParts {
  const found = new Map<number, Expr[]>()
  const open: Expr[][] = []
  const list = instance.given.find((g) => g.kind === 'list')
  if (list) refuseLive(instance.text, `the list ${list.name}, which comes with the data, decides it`, KNOWN)
  const visit = (tree: PartTree, path: readonly Expr[]): void => {
    if (tree.kind === 'leaf') {
      found.set(tree.part, [...path])
      return
    }
    const answers = new Map(tree.queries.map((q) => [q.name, answerOf(q, kernel, instance)]))
    const resolved = (e: Expr): Expr => substitute(e, answers)
    if (tree.kind === 'index') {
      const index = resolved(tree.index)
      for (const [k, child] of tree.children.entries()) visit(child, [...path, eq(index, int(k))])
      return
    }
    const before: Expr[] = []
    for (const { where, child } of tree.cases) {
      const own = where && resolved(where)
      visit(child, [...path, ...before.map((e) => not(e)), ...(own ? conjuncts(own) : [])])
      if (own) before.push(own)
    }
    if (tree.cases.every((c) => c.where)) open.push(before)
  }
  visit(instance.tree, [])
  const parts = instance.parts.map((p, k): LivePart => {
    const conditions = found.get(k) ?? []
    return { ...p, where: conditions.length > 0 ? all(conditions) : null }
  })
  return { parts, masks: new Set(parts.flatMap(({ where }) => (where ? [...buffersRead(where)] : []))), open }
}

/** 1 if the tensor of the kernel holds a value, otherwise 0. */
function answerOf(q: Query, kernel: Kernel1, instance: Instance): Expr {
  if (q.kind !== 'held')
    return refuseLive(
      instance.text,
      `a condition depends on ${QUERY_TEXTS[q.kind]}, which is not known before the format is built`,
      KNOWN,
    )
  const { over } = instance
  const mask = kernel.buffers.find((b) => b.name === q.set && !b.table && !b.filledAtRunTime)
  const names = kernel.buffers.flatMap((b) => (b.table || b.filledAtRunTime ? [] : [b.name]))
  if (!mask)
    return failAs('schedule/live-format', {
      message: `held(${q.set}) of ${instance.text} names a set that is bound with the data, and a format built at run time needs a tensor of the kernel`,
      ...among(q.set, names),
    })
  const axes = mask.axes.map((name) => kernel.axes.find((a) => a.name === name))
  const isAlike =
    axes.length === over.length &&
    axes.every((a, k) => isDense(a) && isDenseRoot(a) && sameExpr(a.extent, over[k]!.extent))
  if (!isAlike)
    return failAs('schedule/live-format', {
      message: `held(${q.set}) of ${instance.text} is evaluated at the coordinates of ${over.map(sourceName).join(', ')}, and ${q.set} is over [${mask.axes.join(', ')}]`,
      expected: 'a mask over dense axes of the same extents',
      hint: `compute a mask of the shape of the tensor from ${q.set} first`,
    })
  const element = load(
    mask.name,
    over.map((a) => variable(a.name)),
    mask.dtype,
  )
  return select(differs(element, mask.fill), int(1), int(0))
}

interface Visited {
  readonly buffer: Buffer1
  readonly start: number
  readonly over: readonly StoredAxis[]
}

/** Returns the statement with the fill value in place of each visited element that is not in the part. */
export function ofPart(s: Stmt1, where: Expr, { buffer, start, over }: Visited): Stmt1 {
  const isAt = atIterators(s, over)
  const fill = constant(buffer.fill, buffer.dtype)
  const [out] = rewriteBody1([s], (e) => {
    if (e.kind !== 'load' || e.buffer !== buffer.name) return undefined
    const at = e.index.slice(start, start + over.length)
    if (!at.every(isAt)) return undefined
    return select(substitute(where, new Map(over.map((a, k) => [a.name, at[k]!]))), e, fill)
  })
  return out!
}

interface Readers extends Visited {
  readonly kernel: Kernel1
  readonly leaving: ReadonlySet<string>
  readonly text: string
}

/**
 * Checks that elements which several parts visit are read at coordinates of iterators, and that no statement needs an
 * element outside of all parts: if no condition holds, the statement is skipped or combines its identity.
 * @throws SptError `schedule/live-format`
 */
export function checkParts({ parts, open }: LiveParts, r: Readers): void {
  if (parts.every((p) => p.where === null)) return
  walkStmts1(r.kernel.body, (s, around) => {
    const iters = around.iterations.flatMap((it) => it.iters)
    if (!iters.some((x) => r.leaving.has(x.axis))) return
    const names = new Set(around.lets.keys())
    const hidden = readsOf1(s).find(
      (l) => l.buffer === r.buffer.name && l.index.some((e) => [...freeVars(e)].some((v) => names.has(v))),
    )
    if (hidden)
      refuseLive(r.text, `${r.buffer.name} is read at a coordinate that is named by \`let\``, {
        expected: 'coordinates of iterators',
        hint: 'replace the `let` by the value',
        span: hidden.span,
      })
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const own = new Map(
      r.over.flatMap((a) => {
        const by = iters.findLast((x) => x.axis === a.name)
        return by ? [[a.name, variable(by.name)] as const] : []
      }),
    )
    if (own.size < r.over.length) return
    const written = writtenIn(s, around)
    const isIdle = (c: Expr): boolean => {
      const here = substitute(c, own)
      if (written.conditions.some((x) => conjuncts(x).some((y) => sameExpr(y, here)))) return true
      if (here.kind !== 'binary' || here.op !== 'ne' || here.a.kind !== 'load') return false
      const mask = keyOf(here.a)
      return comesToNothing(written, (l) => (keyOf(l) === mask ? here.b : undefined))
    }
    for (const cases of open)
      if (!cases.some((c) => conjuncts(c).every(isIdle)))
        failAs('schedule/live-format', {
          message: `${r.text} does not cover every coordinate, and ${s.targets[0]!.buffer} of ${r.kernel.name} may depend on the missing coordinates`,
          ...(s.span && { labels: [{ span: s.span, text: 'here' }] }),
          expected: 'statements without effect on elements outside the parts',
          hint: 'add a last part without a condition, or put the condition around the statement',
        })
  })
}
