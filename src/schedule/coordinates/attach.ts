/**
 * `attach k to e`: if an iteration joins two structures by comparing coordinates (`if (p == e)`), iterator k enters
 * its axis directly at the coordinate of e. The comparison and the iterator p over the parent axis are removed
 * (SparseTIR's attach, as a step that cannot change the result).
 */
import { attachedAxis, isDenseRoot, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { If1, Iter, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { rewriteBody1 } from '../../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../../ir/expressions/bound-names.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { coordPrimitive } from '../primitive.ts'
import * as arg from '../steps/arguments.ts'
import { findIters, keepParents, parentsIn, refuse, replaceIteration } from './iterator-names.ts'

const takes = arg.takes(arg.iterator('loop'), 'to', arg.iterator('to'))

function applyAttach(kernel: Kernel1, step: arg.StepOf<'attach', typeof takes>): Kernel1 {
  const { iteration, iters } = findIters(kernel, [step.loop, step.to])
  const [k, e] = [iters[0]!, iters[1]!]
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const base = axes.get(k.axis)!
  const parent = !isStored(base) ? null : parentOf(base)
  const above = parentsIn(kernel, iteration).find((u) => u.iter === k)?.parent
  const p = iteration.iters.find((x) => x === above && x.axis === parent)
  if (!parent || !p)
    return refuse(kernel, 'schedule/no-parent', {
      message: `the axis of ${k.name} has no parent that this iteration runs over`,
      expected: 'an iterator over a child of an iterated axis',
    })
  const only = iteration.body.length === 1 ? iteration.body[0] : undefined
  const joined = only?.kind === 'if' && only.else.length === 0 ? join(only, p.name, e.name) : false
  if (!joined || only?.kind !== 'if')
    return refuse(kernel, 'schedule/no-join', {
      message: `no condition states that ${p.name} and ${e.name} are the same coordinate`,
      expected: `a body of the form if (${p.name} == ${e.name}) { … }`,
      hint: 'add the comparison that attach replaces',
    })
  const parentAxis = axes.get(parent)!
  const target = axes.get(e.axis)!
  if (
    !('extent' in parentAxis && 'extent' in target) ||
    !isDenseRoot(parentAxis) ||
    !sameExpr(parentAxis.extent, target.extent)
  )
    return refuse(kernel, 'schedule/extent-differs', {
      message: `coordinates of ${e.name} and positions of ${p.name} do not have the same extent`,
      expected: `${parent} a dense root with the extent of ${e.axis}`,
    })
  if (e.kind === 'R' && p.kind === 'S')
    return refuse(kernel, 'schedule/spatial-lost', {
      message: `${p.name} is spatial and ${e.name} is a reduction: elements indexed by ${p.name} would be combined`,
      expected: `${e.name} spatial, or ${p.name} a reduction`,
    })
  const name = unusedName(`${k.axis}_at_${e.name}`, (x) => axes.has(x))
  const attached = attachedAxis(name, base.name, e.axis)
  const entered: Iter = { ...k, axis: name }
  const isNow = new Map([[p.name, variable(e.name)]])
  const body = rewriteBody1(only.then, (x) => (x.kind === 'var' ? isNow.get(x.name) : undefined))
  const rest = iteration.iters.filter((x) => x !== p && x !== k)
  const at = rest.indexOf(e) + 1
  const by = {
    ...iteration,
    where: iteration.where.map((w) => substitute(w, isNow)),
    iters: [...rest.slice(0, at), entered, ...rest.slice(at)],
    body,
  }
  const next = {
    ...kernel,
    axes: [...kernel.axes, attached],
    body: replaceIteration(kernel.body, iteration, by),
  }
  return keepParents(kernel, iteration, next, by, (x) => (x === k ? entered : x === p ? e : x))
}

function join(s: If1, p: string, e: string): boolean {
  const c: Expr = s.cond
  const is = (x: Expr, name: string): boolean => x.kind === 'var' && x.name === name
  return (
    c.kind === 'binary' &&
    c.op === 'eq' &&
    mentions(c, p) &&
    ((is(c.a, p) && is(c.b, e)) || (is(c.a, e) && is(c.b, p)))
  )
}

export const attach = coordPrimitive({
  word: 'attach',
  call: "attach('p', 'j')",
  takes,
  given: (loop: string, to: string) => ({ loop, to }),
  apply: applyAttach,
})
