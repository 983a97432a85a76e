/** Statements of Stage I as closures. */
import { failWith, invariant, unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { isStored, parentOf } from '../../ir/coordinates/axis.ts'
import type { Iter, Iteration, RoundsEdge, Stmt1 } from '../../ir/coordinates/stage1.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { scalarType } from '../../ir/values/dtype.ts'
import { last, monotoneError } from '../error.ts'
import { coordinateOf, findNode, type Level } from '../tensors/axis-trees.ts'
import type { Cell, Context, OpenIterator, Scope, Thunk } from '../tensors/cells.ts'
import { innermost, withCell, withOpen } from '../tensors/cells.ts'
import { toStored } from '../tensors/reference-buffers.ts'
import { compileReduce, compileTarget, setElement } from '../updates.ts'
import { compileBounded, isExact } from './bounded.ts'

type Run = () => void

/** Restricts the listed iterators (or the first member of a fused one) to the marked coordinates. */
export interface Restriction {
  readonly iters: ReadonlySet<Iter>
  readonly mask: Uint8Array
  readonly coordinates: Int32Array
}

/** Runs `then` if all conditions hold; if some are undecided and none fails, it runs with `undecidedDepth` raised. */
const runIfAll = (conds: readonly Thunk[], then: Run, { undecidedDepth }: Context): Run =>
  conds.length === 0
    ? then
    : () => {
        let undecided = 0
        for (const c of conds) {
          const holds = c() !== 0
          if (last.error > 0) undecided = 1
          else if (!holds) return
        }
        undecidedDepth.v += undecided
        then()
        undecidedDepth.v -= undecided
      }

export function compileBody(
  body: readonly Stmt1[],
  scope: Scope,
  ctx: Context,
  restriction: Restriction | null,
): Run {
  const runs: Run[] = []
  let s = scope
  for (const stmt of body) {
    if (stmt.kind === 'let') {
      const value = compileBounded(stmt.value, s, ctx)
      const cell: Cell = isExact(stmt.value, s, ctx) ? { v: 0 } : { v: 0, error: 0 }
      runs.push(
        cell.error === undefined
          ? () => {
              cell.v = value()
            }
          : () => {
              cell.v = value()
              cell.error = last.error
            },
      )
      s = withCell(s, stmt.name, cell)
    } else if (stmt.kind !== 'rounds') runs.push(compileStmt(stmt, s, ctx, restriction))
  }
  const [single] = runs
  if (single && runs.length === 1) return single
  return () => {
    for (const run of runs) run()
  }
}

function compileStmt(
  s: Exclude<Stmt1, { kind: 'let' } | RoundsEdge>,
  scope: Scope,
  ctx: Context,
  restriction: Restriction | null,
): Run {
  switch (s.kind) {
    case 'iterate':
      return compileIteration(s, scope, ctx, restriction)
    case 'if': {
      const cond = compileBounded(s.cond, scope, ctx)
      const runThen = compileBody(s.then, scope, ctx, restriction)
      const runElse = compileBody(s.else, scope, ctx, restriction)
      return () => {
        const holds = cond() !== 0
        if (last.error === 0) return holds ? runThen() : runElse()
        ctx.undecidedDepth.v++
        runThen()
        runElse()
        ctx.undecidedDepth.v--
      }
    }
    case 'assign': {
      const values = s.values.map((e) => compileBounded(e, scope, ctx))
      const targets = s.targets.map((t) => compileTarget(t, scope, ctx))
      const store = s.targets.map((t) => toStored(scalarType(t.dtype)))
      const errors = values.map(() => 0)
      return () => {
        const results = values.map((v, k) => {
          const x = v()
          errors[k] = last.error
          return x
        })
        targets.forEach((t, k) => {
          const a = t.address(false)
          if (a < 0) return
          if (ctx.undecidedDepth.v > 0) {
            t.bounds.error[a] = Number.POSITIVE_INFINITY
            return
          }
          const y = store[k]!(results[k]!)
          t.data[a] = y
          setElement(t.bounds, a, y, monotoneError(store[k]!, results[k]!, errors[k]!, y))
        })
      }
    }
    case 'reduce':
      return compileReduce(s, scope, ctx)
    default:
      return unreachable(s)
  }
}

type Loop = (inner: Run) => Run

function compileIteration(s: Iteration, outer: Scope, ctx: Context, restriction: Restriction | null): Run {
  let scope = outer
  const loops: { loop: Loop; names: ReadonlySet<string> }[] = []
  for (const it of s.iters) {
    const iterRestriction = restriction?.iters.has(it) ? restriction : null
    const iterator = openIter(it, scope, ctx, iterRestriction)
    loops.push({ loop: iterator.loop, names: iterator.names })
    scope = iterator.scope
  }
  // Each condition is tested by the outermost loop that determines it.
  const depthOf = (cond: Expr): number => loops.findLastIndex((l) => mentionsSome(cond, l.names))
  const guards = (k: number): Thunk[] =>
    s.where.filter((c) => depthOf(c) === k).map((c) => compileBounded(c, scope, ctx))
  let run = compileBody(s.body, scope, ctx, null)
  for (let k = loops.length - 1; k >= 0; k--)
    run = loops[k]!.loop(limitVisits(runIfAll(guards(k), run, ctx), ctx))
  return runIfAll(guards(-1), run, ctx)
}

/** Limits the number of visits. @throws SptError `reference/too-long` */
function limitVisits(run: Run, { visits }: Context): Run {
  if (!visits) return run
  return () => {
    if (visits.v-- <= 0)
      failWith('reference/too-long', 'the reference has visited as many coordinates as it may', {
        hint: 'take smaller data, or allow more visits',
      })
    run()
  }
}

function openIter(
  it: Iter,
  scope: Scope,
  ctx: Context,
  iterRestriction: Restriction | null,
): { loop: Loop; scope: Scope; names: ReadonlySet<string> } {
  const axis = ctx.axes.get(it.axis)
  invariant(axis, `no axis ${it.axis}`)
  const levelOf = (name: string): Level => {
    const l = ctx.levels.get(name)
    invariant(l, `axis ${name} has no storage`)
    return l
  }
  const coord: Cell = { v: 0 }
  const node: Cell = { v: 0 }
  const base = { name: it.name, axis: it.axis, coord, node, parent: null, attached: false }
  const names = new Set([it.name])
  if (isStored(axis)) {
    const parentName = parentOf(axis)
    const parent = parentName === null ? null : innermost(scope, parentName)
    const open: OpenIterator = { ...base, level: levelOf(axis.name), parent }
    return { loop: segmentLoop(open, iterRestriction), scope: withOpen(scope, open), names }
  }
  switch (axis.kind) {
    case 'attached': {
      const parent = innermost(scope, axis.parent)
      const open: OpenIterator = { ...base, level: levelOf(axis.base), parent, attached: true }
      return { loop: segmentLoop(open, iterRestriction), scope: withOpen(scope, open), names }
    }
    case 'gathered': {
      const list = ctx.tensors.get(axis.buffer)
      invariant(list, `no buffer ${axis.buffer}`)
      const extent = levelOf(axis.base).extent
      const loop: Loop = (inner) => () => {
        for (const c of list.data)
          if (c >= 0 && c < extent) {
            coord.v = c
            inner()
          }
      }
      return { loop, scope: withOpen(scope, { ...base, level: null }), names }
    }
    case 'fused': {
      let memberScope = scope
      let parent: OpenIterator | null = null
      const loops: Loop[] = []
      for (const member of axis.members) {
        const own = { name: member, axis: member, coord: { v: 0 }, node: { v: 0 }, parent }
        const open: OpenIterator = { ...base, ...own, level: levelOf(member) }
        loops.push(segmentLoop(open, parent === null ? iterRestriction : null))
        names.add(member)
        memberScope = withOpen(memberScope, open)
        parent = open
      }
      return {
        loop: (inner) => loops.reduceRight((run, loop) => loop(run), inner),
        scope: memberScope,
        names,
      }
    }
  }
}

function segmentLoop(open: OpenIterator, iterRestriction: Restriction | null): Loop {
  const { level: levelOf, coord, node, parent } = open
  invariant(levelOf, `iterator ${open.name} has no level`)
  const { start, coord: coords, extent } = levelOf
  if (!start)
    return (inner) => {
      if (iterRestriction)
        return () => {
          for (const c of iterRestriction.coordinates) {
            coord.v = c
            node.v = c
            inner()
          }
        }
      return () => {
        for (let c = 0; c < extent; c++) {
          coord.v = c
          node.v = c
          inner()
        }
      }
    }
  const segments = start.length - 1
  const entry = parent ? (open.attached ? parent.coord : parent.node) : { v: 0 }
  const root = open.attached ? levelOf.parent : null
  return (inner) => {
    const segment = (p: number): void => {
      if (p < 0 || p >= segments) return
      const lo = start[p]!
      const hi = start[p + 1]!
      for (let q = lo; q < hi; q++) {
        const c = coords ? coords[q]! : q - lo
        if (iterRestriction && !iterRestriction.mask[c]) continue
        coord.v = c
        node.v = q
        inner()
      }
    }
    if (!root) return () => segment(entry.v)
    return () => {
      const c = entry.v
      let p = findNode(root, 0, c)
      if (p < 0) return
      // A nonunique root may have several adjacent nodes of one coordinate.
      for (; p < root.count && coordinateOf(root, 0, p) === c; p++) segment(p)
    }
  }
}
