/**
 * Stage I → II: each iteration becomes a loop nest over positions, and each coordinate an expression over loop variables and index arrays.
 * Expressions are not hoisted, so statements depend on loop variables only, and any schedule step can move them. Stage III shares common
 * subexpressions.
 */

import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import {
  countOf,
  hasHoles,
  hasIndices,
  hasIndptr,
  indicesOf,
  isStored,
  ownedNames,
  repeatsCoordinates,
} from '../../ir/coordinates/axis.ts'
import { withFills } from '../../ir/coordinates/rounds.ts'
import type { Access, Buffer1, Iteration, Kernel1, Param, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { Names } from '../../ir/expressions/bound-names.ts'
import { all, constant, type Expr, ge, int, load, variable } from '../../ir/expressions/expr.ts'
import { freeVars, readsSome, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { accessesOf, writesOf } from '../../ir/statements/accesses.ts'
import type { Fill, For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { fill, forLoop, reduction, store, when } from '../../ir/statements/statement-builders.ts'
import { stmt } from '../../ir/statements/tree.ts'
import { type ElementPosition, locate, whenPresent } from './access.ts'
import { openIterator } from './iterate.ts'
import { Copies, usedChanged } from './let-inlining.ts'
import { levelsOf } from './level-positions.ts'
import { emptyScope, type Scope, withFacts, withValue } from './nest-scope.ts'
import { buffersOf, deriveInitialisation, tableLength, valuesBelow } from './output-initialization.ts'

/** Lowers a Stage I kernel to loops over positions. */
export function lowerToPositions(kernel: Kernel1): Kernel2 {
  const first = positionLowering(kernel, new Set())
  const lowered = first.run()
  // Conditions may turn out not to depend on reduction loops. The second run initialises accordingly.
  return first.outsideOf.size === 0 ? lowered : positionLowering(kernel, first.outsideOf).run()
}

function positionLowering(kernel: Kernel1, outside: ReadonlySet<Expr>) {
  /** Conditions that initialisation expects inside reduction loops, but that ended up outside. */
  const outsideOf = new Set<Expr>()
  const levels = levelsOf(kernel.axes)
  const initOf = deriveInitialisation(kernel, outside)
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const names = new Names([
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...kernel.axes.flatMap((a) => ownedNames(a.name)),
  ])
  const copies = new Copies(names)
  const run = (): Kernel2 => {
    const fills = initOf.fills.map((f) => fill(f.buffer, f.value))
    const scope = emptyScope()
    for (const p of kernel.params) if (p.kind === 'size') scope.facts.holds(ge(variable(p.name), int(0)))
    const body = kernel.body.flatMap((s) => statement(s, scope, kernel.name))
    const permutations = kernel.buffers.flatMap((b) => (b.distinct ? [b.name] : []))
    return {
      stage: 2,
      name: kernel.name,
      params: params(),
      buffers: [...buffersOf(kernel, levels), ...copies.buffers],
      body: withFills<Stmt, Fill>(body, fills, (s) => accessesOf([s]).map((a) => a.buffer)),
      ascending: kernel.axes.flatMap((a) =>
        hasIndices(a) && a.parent === null && a.ordered ? [indicesOf(a.name)] : [],
      ),
      permutations,
      ...(kernel.runtimeLists && { runtimeLists: kernel.runtimeLists }),
      distinct: [
        ...permutations,
        ...kernel.axes.flatMap((a) =>
          hasIndices(a) && a.parent === null && !repeatsCoordinates(a) && !hasHoles(a)
            ? [indicesOf(a.name)]
            : [],
        ),
      ],
      span: kernel.span,
    }
  }
  const params = (): Param[] => {
    const counts = kernel.axes
      .filter((a) => isStored(a) && hasIndptr(a))
      .map(
        (a): Param => ({ name: countOf(a.name), kind: 'size', dtype: 'i32', measured: true, span: a.span }),
      )
    return [...kernel.params, ...counts]
  }
  const statement = (s: Stmt1, scope: Scope, nest: string): Stmt[] => {
    switch (s.kind) {
      case 'iterate':
        return iteration(s, scope)
      case 'assign': {
        // A multiple assignment evaluates all values and addresses before it stores the first value.
        const out: Stmt[] = []
        const written = new Set(s.targets.map((t) => t.buffer))
        const several = s.targets.length > 1
        const before = (e: Expr, name: string): Expr =>
          several && readsSome(e, written) ? copies.keep(e, name, out) : e
        const stores = s.targets.map((t, k) => {
          const { index, present } = place(t, scope)
          const at = index.map((e) => before(e, `${t.buffer}_index`))
          const value = before(expr(s.values[k]!, scope), `${t.buffer}_value`)
          return guarded(
            present.map((e) => before(e, `${t.buffer}_present`)),
            [store(t.buffer, at, value, { span: s.span })],
            t.buffer,
          )
        })
        return [...out, ...stores.flat()]
      }
      case 'reduce': {
        const places = s.targets.map((t) => place(t, scope))
        const targets = s.targets.map((t, k) => load(t.buffer, places[k]!.index, t.dtype, t.span))
        const values = s.values.map((v) => expr(v, scope))
        const init = initOf.inNest.has(s)
        return guarded(
          places.flatMap((p) => p.present),
          [reduction({ reducer: s.reducer, targets, values, init, atomic: false, span: s.span })],
          targets[places.findIndex((p) => p.present.length > 0)]?.buffer,
        )
      }
      case 'if': {
        const cond = expr(s.cond, scope)
        const inner = withFacts(scope)
        inner.facts.holds(cond, writtenBuffers1(s.then))
        const then = bodyOf(s.then, inner, nest)
        const otherwise = bodyOf(s.else, scope, nest)
        const out: Stmt[] = []
        const decided = copies.decided(cond, [...then, ...otherwise], out)
        return [...out, when(decided, then, otherwise, { span: s.span })]
      }
      case 'rounds':
        return [s.edge === 'begin' ? { ...s, carried: storedUnder(s.carried) } : s]
      case 'let':
        throw new InternalError('lets are bound where their body is lowered')
    }
  }
  /** The parts of buffers that formats replaced. */
  const storedUnder = (names: readonly string[]): string[] =>
    kernel.reformats
      .flatMap((r) => r.buffers)
      .reduce<string[]>((all, b) => all.flatMap((n) => (n === b.name ? b.parts : [n])), [...names])
  const bodyOf = (body: readonly Stmt1[], scope: Scope, nest: string): Stmt[] => {
    const out: Stmt[] = []
    let inner = scope
    for (const [k, s] of body.entries()) {
      if (s.kind !== 'let') out.push(...statement(s, inner, nest))
      else {
        const value = expr(s.value, inner)
        inner = withValue(
          inner,
          s.name,
          usedChanged(body.slice(k + 1), s.name, value) ? copies.keep(value, s.name, out) : value,
        )
      }
    }
    return out
  }
  const iteration = (it: Iteration, outer: Scope): Stmt[] => {
    let scope = withFacts(outer)
    const loops: For[] = []
    const implied: Expr[] = []
    for (const iter of it.iters) {
      const axis = levels.axis(iter.axis)
      const loopVar = names.fresh(iter.name)
      const opened = openIterator(
        levels,
        scope,
        axis,
        iter.name,
        loopVar,
        (b) => lengthOf(b),
        (e, inner) => expr(e, inner),
      )
      scope = opened.scope
      implied.push(...(opened.implied ?? []))
      for (const g of opened.guards) scope.facts.holds(g)
      loops.push(
        forLoop(loopVar, opened.extent, [], {
          name: iter.name,
          nest: it.name,
          reduce: iter.kind === 'R',
          guards: opened.guards,
          span: iter.span,
        }),
      )
    }
    const where = it.where.map((c) => expr(c, scope))
    const outside: Expr[] = []
    const written = writtenBuffers1(it.body)
    for (const [k, c] of where.entries()) {
      scope.facts.holds(c, written)
      if (implied.some((i) => sameExpr(i, c))) continue
      const at = loops.findLastIndex((l) => freeVars(c).has(l.var))
      if (initOf.inside.has(it.where[k]!) && !loops[at]?.reduce) outsideOf.add(it.where[k]!)
      if (at < 0) outside.push(c)
      else loops[at] = { ...loops[at]!, guards: [...loops[at]!.guards, c] }
    }
    copies.around += loops.length
    const innermost = bodyOf(it.body, scope, it.name)
    copies.around -= loops.length
    // Guards may be evaluated again elsewhere, so they must not read data that the loop writes. Others become `if` statements.
    const nest = loops.reduceRight<readonly Stmt[]>((body, loop) => {
      const written = writesOf(body)
      const once = loop.guards.filter((g) => readsSome(g, written))
      const guards = loop.guards.filter((g) => !readsSome(g, written))
      return [stmt<For>({ ...loop, guards, body: guarded(once, body) })]
    }, innermost)
    if (outside.length === 0) return [...nest]
    const out: Stmt[] = []
    const decided = copies.decided(all(outside), nest, out)
    return [...out, ...guarded([decided], nest)]
  }
  const lengthOf = (buffer: string): Expr => {
    const b = buffers.get(buffer)
    invariant(b, `no buffer ${buffer}`)
    return tableLength(levels.shape(b.axes))
  }
  const place = (access: Access, scope: Scope): ElementPosition => {
    const b = buffers.get(access.buffer)
    invariant(b, `no buffer ${access.buffer}`)
    const place = locate(
      levels,
      scope,
      b.axes,
      access.index.map((e) => expr(e, scope)),
    )
    return b.placed ? { ...place, present: [] } : place
  }
  const tableFacts = (b: Buffer1, value: Expr, scope: Scope): void => {
    const end = valuesBelow(b, levels.shape(b.axes))
    if (end) scope.facts.coordinate(value, end)
    else scope.facts.holds(ge(value, int(0)))
  }
  const expr = (e: Expr, scope: Scope): Expr =>
    rewriteExpr(e, (x) => {
      if (x.kind === 'var') return scope.values.get(x.name)
      if (x.kind === 'load') {
        const b = buffers.get(x.buffer)
        invariant(b, `no buffer ${x.buffer}`)
        const place = locate(levels, scope, b.axes, x.index)
        const value = load(x.buffer, place.index, x.dtype, x.span)
        if ((b.table || b.below) && place.present.length === 0) tableFacts(b, value, scope)
        return whenPresent(place, value, constant(b.fill, b.dtype))
      }
      return undefined
    })
  return { outsideOf, run }
}

/**
 * Returns `body` under conditions, each evaluated only if the earlier conditions hold. `absent`: the buffer whose element the conditions
 * test.
 */
function guarded(conditions: readonly Expr[], body: readonly Stmt[], absent?: string): Stmt[] {
  if (conditions.length === 0) return [...body]
  return [when(all(conditions), body, [], absent ? { absent } : {})]
}
