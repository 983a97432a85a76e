/**
 * Which part of a format that is found in each run has an element: conditions over coordinates and over tensors of the kernel,
 * `held(M)` of which is where M differs from its fill. The first part whose condition holds has it. The device asks them where it marks,
 * and where a block of one part may have elements of another.
 */

import { comesToNothing, writtenIn } from '../../analysis/fill-folding.ts'
import { fail } from '../../ast/diagnostic.ts'
import { axisInText, isDense, isDenseRoot, type StoredAxis } from '../../ir/axis.ts'
import {
  all,
  conjuncts,
  constant,
  differs,
  type Expr,
  eq,
  int,
  isZero,
  load,
  not,
  select,
  variable,
} from '../../ir/expr.ts'
import { buffersRead, freeVars, rewriteExpr, substitute } from '../../ir/expr-tree.ts'
import type { Instance, PartInstance } from '../../ir/format.ts'
import type { PartTree } from '../../ir/part-tree.ts'
import type { Query } from '../../ir/queries.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../ir/stage1.ts'
import { readsOf1, rewriteBody1, walkStmts1 } from '../../ir/stage1-tree.ts'
import { keyOf, sameExpr } from '../../ir/structural-equality.ts'
import { refuseLive } from './live-format.ts'
import { atIterators } from './live-locals.ts'
import { ASKED } from './lookup.ts'
import type { StepSpan } from './tensor-split.ts'

export interface LivePart extends PartInstance {
  /** What its elements fulfil, over the names of the tensor's axes; `null`: it has all. */
  readonly where: Expr | null
}

export interface LiveParts {
  readonly parts: readonly LivePart[]
  /** Tensors that the conditions read. */
  readonly masks: ReadonlySet<string>
  /** Of cases without a last one for the rest: their conditions, where none of which holds no part has an element. */
  readonly open: readonly (readonly Expr[])[]
}

/** What conditions may ask. */
const KNOWN = {
  expected: 'conditions over coordinates, sizes and held(M), where M is a tensor of the kernel',
  hint: 'compute a mask M in the kernel and use held(M)',
}

/** @throws SptError `schedule/live-format` */
export function livePartsOf(kernel: Kernel1, instance: Instance, at: StepSpan): LiveParts {
  const found = new Map<number, Expr[]>()
  const open: Expr[][] = []
  const list = instance.given.find((g) => g.kind === 'list')
  if (list)
    refuseLive(instance.text, `the list ${list.name}, which comes with the data, decides it`, at, KNOWN)
  const visit = (tree: PartTree, path: readonly Expr[]): void => {
    if (tree.kind === 'leaf') {
      found.set(tree.part, [...path])
      return
    }
    const answers = new Map(tree.queries.map((q) => [q.name, answerOf(q, kernel, instance, at)]))
    const asked = (e: Expr): Expr => asCondition(substitute(e, answers))
    if (tree.kind === 'index') {
      const index = asked(tree.index)
      for (const [k, child] of tree.children.entries()) visit(child, [...path, eq(index, int(k))])
      return
    }
    const before: Expr[] = []
    for (const { where, child } of tree.cases) {
      const own = where && asked(where)
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

/** 1 where a tensor of the kernel holds something, else 0. */
function answerOf(q: Query, kernel: Kernel1, instance: Instance, at: StepSpan): Expr {
  if (q.kind !== 'held')
    return refuseLive(
      instance.text,
      `a condition depends on ${ASKED[q.kind]}, which is not known before the format is built`,
      at,
      KNOWN,
    )
  const { over } = instance
  const mask = kernel.buffers.find((b) => b.name === q.set && !b.table && !b.made)
  const names = kernel.buffers.flatMap((b) => (b.table || b.made ? [] : [b.name]))
  if (!mask)
    return fail({
      code: 'schedule/live-format',
      message: `held(${q.set}) of ${instance.text} names a set that is bound with the data, and a format built at run time needs a tensor of the kernel`,
      ...at,
      lookup: { name: q.set, candidates: names },
      expected: `one of ${names.join(', ')}`,
    })
  const axes = mask.axes.map((name) => kernel.axes.find((a) => a.name === name))
  const isAlike =
    axes.length === over.length &&
    axes.every((a, k) => isDense(a) && isDenseRoot(a) && sameExpr(a.extent, over[k]!.extent))
  if (!isAlike)
    return fail({
      code: 'schedule/live-format',
      message: `held(${q.set}) of ${instance.text} is evaluated at the coordinates of ${over.map(axisInText).join(', ')}, and ${q.set} is over [${mask.axes.join(', ')}]`,
      ...at,
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

/** Answers that are asked for alone as what they answer. */
const asCondition = (e: Expr): Expr =>
  rewriteExpr(e, (x) => {
    if (x.kind !== 'binary' || (x.op !== 'ne' && x.op !== 'eq') || !isZero(x.b)) return undefined
    const is = x.a.kind === 'select' && keyOf(x.a.then) === keyOf(int(1)) && isZero(x.a.else)
    if (!is || x.a.kind !== 'select') return undefined
    return x.op === 'ne' ? x.a.cond : not(x.a.cond)
  })

interface Visited {
  readonly buffer: Buffer1
  readonly start: number
  readonly over: readonly StoredAxis[]
}

/** The statement with the fill where an element that it visits is none of the part's. */
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
 * What several parts visit is told apart by the coordinates of iterators, and what no part has must be needed by no statement: where
 * none of the conditions holds it is passed over, or combines its identity.
 *
 * @throws SptError `schedule/live-format`
 */
export function checkParts({ parts, open }: LiveParts, r: Readers, at: StepSpan): void {
  if (parts.every((p) => p.where === null)) return
  walkStmts1(r.kernel.body, (s, around) => {
    const iters = around.iterations.flatMap((it) => it.iters)
    if (!iters.some((x) => r.leaving.has(x.axis))) return
    const names = new Set(around.lets.keys())
    const hidden = readsOf1(s).find(
      (l) => l.buffer === r.buffer.name && l.index.some((e) => [...freeVars(e)].some((v) => names.has(v))),
    )
    if (hidden)
      refuseLive(
        r.text,
        `${r.buffer.name} is read at a coordinate that is named by \`let\``,
        hidden.span ? { span: hidden.span } : at,
        { expected: 'coordinates of iterators', hint: 'write the value of the `let` in its place' },
      )
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
        fail({
          code: 'schedule/live-format',
          message: `${r.text} does not cover all coordinates, and ${s.targets[0]!.buffer} of ${r.kernel.name} may depend on the others`,
          ...at,
          ...(s.span ? { labels: [{ span: s.span, text: 'here' }] } : {}),
          expected: 'statements without effect on elements outside all parts',
          hint: 'add a last part without a condition, or put the condition around the statement',
        })
  })
}
