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
import type { Access, Buffer1, Iteration, Kernel1, Param, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../../ir/coordinates/stage1-tree.ts'
import { Names } from '../../ir/expressions/bound-names.ts'
import { all, constant, type Expr, ge, int, load, variable } from '../../ir/expressions/expr.ts'
import { freeVars, readsSome, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { fill, forLoop, reduction, store, when } from '../../ir/statements/statement-builders.ts'
import { stmt } from '../../ir/statements/tree.ts'
import { type ElementPosition, locate, whenPresent } from './access.ts'
import { openIterator } from './iterate.ts'
import { Copies, usedChanged } from './let-inlining.ts'
import { Levels } from './level-positions.ts'
import { emptyScope, type Scope, withFacts, withValue } from './nest-scope.ts'
import { buffersOf, deriveInitialisation, tableLength, valuesBelow } from './output-initialization.ts'

/** Lowers a Stage I kernel to loops over positions. */
export function lowerToPositions(kernel: Kernel1): Kernel2 {
  const first = new PositionLowering(kernel, new Set())
  const lowered = first.run()
  // Conditions may turn out not to depend on reduction loops. The second run initialises accordingly.
  return first.outside.size === 0 ? lowered : new PositionLowering(kernel, first.outside).run()
}

class PositionLowering {
  readonly #levels: Levels
  readonly #names: Names
  readonly #init: ReturnType<typeof deriveInitialisation>
  readonly #buffers: ReadonlyMap<string, Buffer1>
  readonly #copies: Copies
  /** Conditions that initialisation expects inside reduction loops, but that ended up outside. */
  readonly outside = new Set<Expr>()

  constructor(
    private readonly kernel: Kernel1,
    outside: ReadonlySet<Expr>,
  ) {
    this.#levels = new Levels(kernel.axes)
    this.#init = deriveInitialisation(kernel, outside)
    this.#buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
    this.#names = new Names([
      ...kernel.params.map((p) => p.name),
      ...kernel.buffers.map((b) => b.name),
      ...kernel.axes.flatMap((a) => ownedNames(a.name)),
    ])
    this.#copies = new Copies(this.#names)
  }

  run(): Kernel2 {
    const fills = this.#init.fills.map((f) => fill(f.buffer, f.value))
    const kernel = this.kernel
    const scope = emptyScope()
    for (const p of kernel.params) if (p.kind === 'size') scope.facts.holds(ge(variable(p.name), int(0)))
    const body = kernel.body.flatMap((s) => this.#statement(s, scope, kernel.name))
    const permutations = kernel.buffers.flatMap((b) => (b.distinct ? [b.name] : []))
    return {
      stage: 2,
      name: kernel.name,
      params: this.#params(),
      buffers: [...buffersOf(kernel, this.#levels), ...this.#copies.buffers],
      body: [...fills, ...body],
      ascending: kernel.axes.flatMap((a) =>
        hasIndices(a) && a.parent === null && a.ordered ? [indicesOf(a.name)] : [],
      ),
      permutations,
      ...(kernel.runtimeLists ? { runtimeLists: kernel.runtimeLists } : {}),
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

  #params(): Param[] {
    const counts = this.kernel.axes
      .filter((a) => isStored(a) && hasIndptr(a))
      .map(
        (a): Param => ({ name: countOf(a.name), kind: 'size', dtype: 'i32', measured: true, span: a.span }),
      )
    return [...this.kernel.params, ...counts]
  }

  #statement(s: Stmt1, scope: Scope, nest: string): Stmt[] {
    switch (s.kind) {
      case 'iterate':
        return this.#iteration(s, scope)
      case 'assign': {
        // A multiple assignment evaluates all values and addresses before it stores the first value.
        const out: Stmt[] = []
        const written = new Set(s.targets.map((t) => t.buffer))
        const several = s.targets.length > 1
        const before = (e: Expr, name: string): Expr =>
          several && readsSome(e, written) ? this.#copies.keep(e, name, out) : e
        const stores = s.targets.map((t, k) => {
          const { index, present } = this.#place(t, scope)
          const at = index.map((e) => before(e, `${t.buffer}_index`))
          const value = before(this.#expr(s.values[k]!, scope), `${t.buffer}_value`)
          return guarded(
            present.map((e) => before(e, `${t.buffer}_present`)),
            [store(t.buffer, at, value, { span: s.span })],
            t.buffer,
          )
        })
        return [...out, ...stores.flat()]
      }
      case 'reduce': {
        const places = s.targets.map((t) => this.#place(t, scope))
        const targets = s.targets.map((t, k) => load(t.buffer, places[k]!.index, t.dtype, t.span))
        const values = s.values.map((v) => this.#expr(v, scope))
        const init = this.#init.inNest.has(s)
        return guarded(
          places.flatMap((p) => p.present),
          [reduction({ reducer: s.reducer, targets, values, init, atomic: false, span: s.span })],
          targets[places.findIndex((p) => p.present.length > 0)]?.buffer,
        )
      }
      case 'if': {
        const cond = this.#expr(s.cond, scope)
        const inner = withFacts(scope)
        inner.facts.holds(cond, writtenBuffers1(s.then))
        const then = this.#body(s.then, inner, nest)
        const otherwise = this.#body(s.else, scope, nest)
        const out: Stmt[] = []
        const decided = this.#copies.decided(cond, [...then, ...otherwise], out)
        return [...out, when(decided, then, otherwise, { span: s.span })]
      }
      case 'let':
        throw new InternalError('lets are bound where their body is lowered')
    }
  }

  #body(body: readonly Stmt1[], scope: Scope, nest: string): Stmt[] {
    const out: Stmt[] = []
    let inner = scope
    for (const [k, s] of body.entries()) {
      if (s.kind !== 'let') out.push(...this.#statement(s, inner, nest))
      else {
        const value = this.#expr(s.value, inner)
        inner = withValue(
          inner,
          s.name,
          usedChanged(body.slice(k + 1), s.name, value) ? this.#copies.keep(value, s.name, out) : value,
        )
      }
    }
    return out
  }

  #iteration(it: Iteration, outer: Scope): Stmt[] {
    let scope = withFacts(outer)
    const loops: For[] = []
    const implied: Expr[] = []
    for (const iter of it.iters) {
      const axis = this.#levels.axis(iter.axis)
      const loopVar = this.#names.fresh(iter.name)
      const opened = openIterator(
        this.#levels,
        scope,
        axis,
        iter.name,
        loopVar,
        (b) => this.#lengthOf(b),
        (e, inner) => this.#expr(e, inner),
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
    const where = it.where.map((c) => this.#expr(c, scope))
    const outside: Expr[] = []
    const written = writtenBuffers1(it.body)
    for (const [k, c] of where.entries()) {
      scope.facts.holds(c, written)
      if (implied.some((i) => sameExpr(i, c))) continue
      const at = loops.findLastIndex((l) => freeVars(c).has(l.var))
      if (this.#init.inside.has(it.where[k]!) && !loops[at]?.reduce) this.outside.add(it.where[k]!)
      if (at < 0) outside.push(c)
      else loops[at] = { ...loops[at]!, guards: [...loops[at]!.guards, c] }
    }
    this.#copies.around += loops.length
    const innermost = this.#body(it.body, scope, it.name)
    this.#copies.around -= loops.length
    // Guards may be evaluated again elsewhere, so they must not read data that the loop writes. Others become `if` statements.
    const nest = loops.reduceRight<readonly Stmt[]>((body, loop) => {
      const written = writesOf(body)
      const once = loop.guards.filter((g) => readsSome(g, written))
      const guards = loop.guards.filter((g) => !readsSome(g, written))
      return [stmt<For>({ ...loop, guards, body: guarded(once, body) })]
    }, innermost)
    if (outside.length === 0) return [...nest]
    const out: Stmt[] = []
    const decided = this.#copies.decided(all(outside), nest, out)
    return [...out, ...guarded([decided], nest)]
  }

  #lengthOf(buffer: string): Expr {
    const b = this.#buffers.get(buffer)
    invariant(b, `no buffer ${buffer}`)
    return tableLength(this.#levels.shape(b.axes))
  }

  #place(access: Access, scope: Scope): ElementPosition {
    const b = this.#buffers.get(access.buffer)
    invariant(b, `no buffer ${access.buffer}`)
    const place = locate(
      this.#levels,
      scope,
      b.axes,
      access.index.map((e) => this.#expr(e, scope)),
    )
    return b.placed ? { ...place, present: [] } : place
  }

  #tableFacts(b: Buffer1, value: Expr, scope: Scope): void {
    const end = valuesBelow(b, this.#levels.shape(b.axes))
    if (end) scope.facts.coordinate(value, end)
    else scope.facts.holds(ge(value, int(0)))
  }

  #expr(e: Expr, scope: Scope): Expr {
    return rewriteExpr(e, (x) => {
      if (x.kind === 'var') return scope.values.get(x.name)
      if (x.kind === 'load') {
        const b = this.#buffers.get(x.buffer)
        invariant(b, `no buffer ${x.buffer}`)
        const place = locate(this.#levels, scope, b.axes, x.index)
        const value = load(x.buffer, place.index, x.dtype, x.span)
        if ((b.table || b.below) && place.present.length === 0) this.#tableFacts(b, value, scope)
        return whenPresent(place, value, constant(b.fill, b.dtype))
      }
      return undefined
    })
  }
}

/**
 * Returns `body` under conditions, each evaluated only if the earlier conditions hold. `absent`: the buffer whose element the conditions
 * test.
 */
function guarded(conditions: readonly Expr[], body: readonly Stmt[], absent?: string): Stmt[] {
  if (conditions.length === 0) return [...body]
  return [when(all(conditions), body, [], absent ? { absent } : {})]
}
