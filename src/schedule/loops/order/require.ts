/** Specialisation on sizes: assumptions that a schedule may rely on, and that runs check (`require`). */

import { Facts } from '../../../analysis/integers/facts.ts'
import { expectArgument, expectOptions } from '../../../ast/diagnostics/expect-argument.ts'
import { all, conjuncts, type Expr, int, select } from '../../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import { mapSame, reuseIfSame } from '../../../ir/lists.ts'
import type { Buffer, Fact, For, Stmt } from '../../../ir/statements/loops.ts'
import { type Body, bodiesOf, mapExprs, rewriteStmts, stmt, withBodies } from '../../../ir/statements/tree.ts'
import { rowSums } from '../../examples.ts'
import { primitive } from '../../primitive.ts'
import { among } from '../../refusals.ts'
import * as arg from '../../steps/arguments.ts'

// Implication of conditions (elimination of bounds checks): conditions that follow from facts about sizes.

/**
 * Returns the body without conditions that always hold, such as `v c + rest < n` over `n / c` tiles, where c divides n;
 * v may be a coordinate. Guards, existence tests around statements, and conditions in expressions are removed.
 * Values of the source may wrap, and count as data.
 */
function eliminateImpliedGuards(body: Body, buffers: readonly Buffer[], sizes: readonly Fact[]): Body {
  const under = (path: readonly For[]): Conditions =>
    new Conditions(
      new Facts({
        sizes,
        end: (leaf) =>
          leaf.kind === 'var'
            ? path.findLast((l) => l.var === leaf.name)?.extent
            : leaf.kind === 'load'
              ? buffers.find((b) => b.name === leaf.buffer)?.below
              : undefined,
      }),
    )
  const go = (list: Body, path: readonly For[], around: Conditions): Body => {
    const out = list.flatMap((s): Body => {
      if (s.kind === 'for') {
        const inside = [...path, s]
        const conditions = under(inside)
        const body = go(s.body, inside, conditions)
        const extent = around.without(s.extent)
        const guards = conditions.neededOf(s.guards)
        const same = extent === s.extent && guards === s.guards
        return [same ? withBodies(s, [body]) : stmt<For>({ ...s, extent, guards, body })]
      }
      const inner = bodiesOf(s).map((b) => go(b, path, around))
      const next = mapExprs(withBodies(s, inner), around.without)
      if (next.kind !== 'if') return [next]
      const cond = around.needed(next.cond)
      if (cond === undefined) return next.then
      return [cond === next.cond ? next : stmt<Stmt>({ ...next, cond })]
    })
    return reuseIfSame(list, out)
  }
  return go(body, [], under([]))
}

/** Conditions in one scope, under its facts. */
class Conditions {
  readonly #facts: Facts
  readonly #memo = new Map<Expr, Expr>()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /** Returns the part of a condition that is not implied; undefined if all of it is implied. */
  needed(cond: Expr): Expr | undefined {
    const terms = conjuncts(cond)
    const needed = terms.filter((c) => !this.#facts.implies(c))
    if (needed.length === terms.length) return cond
    return needed.length > 0 ? all(needed) : undefined
  }

  neededOf(guards: readonly Expr[]): readonly Expr[] {
    const own = mapSame(guards, this.without)
    const needed = own.filter((g) => this.needed(g) !== undefined)
    return needed.length === own.length ? own : needed
  }

  /** Returns an expression without `select`s whose conditions are implied. */
  readonly without = (e: Expr): Expr =>
    rewriteExpr(
      e,
      (x) => {
        if (x.kind !== 'select') return undefined
        const cond = this.needed(x.cond)
        if (cond === undefined) return x.then.dtype === x.dtype ? x.then : undefined
        return cond === x.cond ? undefined : select(cond, x.then, x.else, x.span)
      },
      this.#memo,
    )
}

type Requirement = { readonly multiple: number } | { readonly equal: number }

/**
 * `require d % 4 == 0`, `require d == 128`: the schedule is for such sizes. Later steps and lowering rely on it: splits
 * by a divisor have no remainder, neighbouring elements are aligned, an equal size is a constant. A run with other
 * sizes is rejected (`run/requirement`) before any launch. If steps on coordinates follow, the step is applied again
 * after them.
 */
export const require = primitive({
  word: 'require',
  call: "require('d', { multiple: 4 })",
  ofSizes: true,
  takes: arg.forms(
    [arg.size('size'), arg.word('%', 'multiple')('relation'), arg.operand('by'), '==', '0'],
    [arg.size('size'), arg.word('==', 'equal')('relation'), arg.integer('by')],
  ),
  given: (size: string, what: Requirement) => ({ size, ...relationOf(what) }),
  apply(cx, step) {
    const sizes = cx.kernel.params.filter((p) => p.kind === 'size').map((p) => p.name)
    if (!sizes.includes(step.size))
      cx.refuse('schedule/unknown-size', [], {
        message: `${cx.kernel.name} has no size ${step.size}`,
        ...among(step.size, sizes),
      })
    if (!Number.isInteger(step.by) || step.by < (step.relation === 'equal' ? 0 : 1) || step.by >= 2 ** 31)
      cx.refuse('schedule/bad-requirement', [], {
        message: `${step.size} cannot be required to be ${step.relation === 'equal' ? '' : 'a multiple of '}${step.by}`,
        expected: step.relation === 'equal' ? 'an integer from 0 on' : 'an integer from 1 on',
      })
    const { size, relation, by, span } = step
    const fact: Fact = { size, relation, by, ...(span ? { span } : {}) }
    const body = relation === 'equal' ? fixed(cx.kernel.body, size, by) : cx.kernel.body
    return {
      body: eliminateImpliedGuards(body, cx.kernel.buffers, [...(cx.kernel.facts ?? []), fact]),
      facts: [fact],
    }
  },
  example: { ...rowSums, steps: 'require m == 64' },
})

function fixed(body: Body, size: string, value: number): Body {
  const replace = (e: Expr): Expr | undefined =>
    e.kind === 'var' && e.name === size ? int(value) : undefined
  return rewriteStmts(body, { expr: (e) => rewriteExpr(e, replace) })
}

function relationOf(what: Requirement) {
  expectOptions('require', what as { multiple?: number; equal?: number }, ['multiple', 'equal'])
  const [, second] = Object.keys(what)
  expectArgument(
    Object.keys(what).length === 1,
    'what is required',
    second ?? what,
    '{ multiple } or { equal }',
  )
  return 'equal' in what
    ? ({ relation: 'equal', by: what.equal } as const)
    : ({ relation: 'multiple', by: what.multiple } as const)
}
