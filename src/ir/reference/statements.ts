/** Statements of Stage I as closures. */
import { invariant, unreachable } from '../../ast/diagnostic.ts'
import { isStored, parentOf } from '../axis.ts'
import type { Expr } from '../expr.ts'
import { freeVars } from '../expr-tree.ts'
import { isBuiltinReducer, type Monoid } from '../monoid.ts'
import type { Iter, Iteration, Reduce1, Stmt1 } from '../stage1.ts'
import { compileTarget, type Target } from './access.ts'
import { compileExpr, type Thunk } from './expressions.ts'
import { arithmetic, wrap } from './numeric.ts'
import { type Cell, type Context, innermost, type Open, type Scope, withCell, withOpen } from './scope.ts'
import { coordinateOf, findNode, type Level } from './structure.ts'

type Run = () => void

/** Restricts the iterators listed (or the first member of a fused one) to the coordinates marked. */
export interface Restriction {
  readonly iters: ReadonlySet<Iter>
  readonly mask: Uint8Array
  readonly coordinates: Int32Array
}

const isTrue = (conds: readonly Thunk[], then: Run): Run =>
  conds.length === 0
    ? then
    : () => {
        for (const c of conds) if (c() === 0) return
        then()
      }

export function compileBody(
  body: readonly Stmt1[],
  scope: Scope,
  ctx: Context,
  only: Restriction | null,
): Run {
  const runs: Run[] = []
  let s = scope
  for (const stmt of body) {
    if (stmt.kind === 'let') {
      const value = compileExpr(stmt.value, s, ctx)
      const cell: Cell = { v: 0 }
      runs.push(() => {
        cell.v = value()
      })
      s = withCell(s, stmt.name, cell)
    } else runs.push(compileStmt(stmt, s, ctx, only))
  }
  const [only1] = runs
  if (only1 && runs.length === 1) return only1
  return () => {
    for (const run of runs) run()
  }
}

function compileStmt(
  s: Exclude<Stmt1, { kind: 'let' }>,
  scope: Scope,
  ctx: Context,
  only: Restriction | null,
): Run {
  switch (s.kind) {
    case 'iterate':
      return compileIteration(s, scope, ctx, only)
    case 'if': {
      const cond = compileExpr(s.cond, scope, ctx)
      const yes = compileBody(s.then, scope, ctx, only)
      const no = compileBody(s.else, scope, ctx, only)
      return () => (cond() !== 0 ? yes() : no())
    }
    case 'assign': {
      const values = s.values.map((e) => compileExpr(e, scope, ctx))
      const targets = s.targets.map((t) => compileTarget(t, scope, ctx))
      const store = s.targets.map((t) => wrap(t.dtype))
      return () => {
        const now = values.map((v) => v())
        targets.forEach((t, k) => {
          t.data[t.address()] = store[k]!(now[k]!)
        })
      }
    }
    case 'reduce':
      return compileReduce(s, scope, ctx)
    default:
      return unreachable(s)
  }
}

function compileReduce(s: Reduce1, scope: Scope, ctx: Context): Run {
  const values = s.values.map((e) => compileExpr(e, scope, ctx))
  const targets = s.targets.map((t) => compileTarget(t, scope, ctx))
  const [value] = values
  const [target] = targets
  if (value && target && isBuiltinReducer(s.reducer.name)) {
    const { data, address } = target
    const dtype = s.targets[0]!.dtype
    switch (s.reducer.name) {
      case '+':
      case '*':
      case 'min':
      case 'max': {
        const op = ({ '+': 'add', '*': 'mul', min: 'min', max: 'max' } as const)[s.reducer.name]
        if (op === 'add' && (dtype === 'f32' || dtype === 'f64'))
          return () => {
            const v = value()
            data[address()]! += v
          }
        const f = arithmetic(op, dtype)
        return () => {
          const v = value()
          const a = address()
          data[a] = f(data[a]!, v)
        }
      }
      case 'and':
        return () => {
          const v = value()
          const a = address()
          data[a] = data[a] !== 0 && v !== 0 ? 1 : 0
        }
      case 'or':
        return () => {
          const v = value()
          const a = address()
          data[a] = data[a] !== 0 || v !== 0 ? 1 : 0
        }
    }
  }
  return compileMonoid(
    s.reducer,
    targets,
    values,
    s.targets.map((t) => wrap(t.dtype)),
    ctx,
  )
}

function compileMonoid(
  m: Monoid,
  targets: readonly Target[],
  values: readonly Thunk[],
  store: readonly ((x: number) => number)[],
  ctx: Context,
): Run {
  invariant(targets.length === m.fields.length, `monoid ${m.name} takes ${m.fields.length} components`)
  const left = m.left.map((): Cell => ({ v: 0 }))
  const right = m.right.map((): Cell => ({ v: 0 }))
  const cells = new Map<string, Cell>()
  m.left.forEach((v, k) => {
    cells.set(v.name, left[k]!)
  })
  m.right.forEach((v, k) => {
    cells.set(v.name, right[k]!)
  })
  const result = m.result.map((e) => compileExpr(e, { cells, open: [] }, ctx))
  return () => {
    values.forEach((v, k) => {
      right[k]!.v = v()
    })
    const at = targets.map((t) => t.address())
    targets.forEach((t, k) => {
      left[k]!.v = t.data[at[k]!]!
    })
    const next = result.map((r) => r())
    targets.forEach((t, k) => {
      t.data[at[k]!] = store[k]!(next[k]!)
    })
  }
}

/** One loop still to be closed over its body. */
type Loop = (inner: Run) => Run

function compileIteration(s: Iteration, outer: Scope, ctx: Context, only: Restriction | null): Run {
  let scope = outer
  const loops: { loop: Loop; names: ReadonlySet<string> }[] = []
  for (const it of s.iters) {
    const keep = only?.iters.has(it) ? only : null
    const opened = openIter(it, scope, ctx, keep)
    loops.push({ loop: opened.loop, names: opened.names })
    scope = opened.scope
  }
  // Each condition is tested by the outermost loop that decides it.
  const at = (cond: Expr): number =>
    loops.findLastIndex((l) => [...freeVars(cond)].some((v) => l.names.has(v)))
  const guards = (k: number): Thunk[] =>
    s.where.filter((c) => at(c) === k).map((c) => compileExpr(c, scope, ctx))
  let run = compileBody(s.body, scope, ctx, null)
  for (let k = loops.length - 1; k >= 0; k--) run = loops[k]!.loop(isTrue(guards(k), run))
  return isTrue(guards(-1), run)
}

function openIter(
  it: Iter,
  scope: Scope,
  ctx: Context,
  keep: Restriction | null,
): { loop: Loop; scope: Scope; names: ReadonlySet<string> } {
  const axis = ctx.axes.get(it.axis)
  invariant(axis, `no axis ${it.axis}`)
  const level = (name: string): Level => {
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
    const open: Open = { ...base, level: level(axis.name), parent }
    return { loop: segmentLoop(open, keep), scope: withOpen(scope, open), names }
  }
  switch (axis.kind) {
    case 'attached': {
      const open: Open = {
        ...base,
        level: level(axis.base),
        parent: innermost(scope, axis.parent),
        attached: true,
      }
      return { loop: segmentLoop(open, keep), scope: withOpen(scope, open), names }
    }
    case 'gathered': {
      const list = ctx.tensors.get(axis.buffer)
      invariant(list, `no buffer ${axis.buffer}`)
      const extent = level(axis.base).extent
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
      let inside = scope
      let parent: Open | null = null
      const loops: Loop[] = []
      for (const member of axis.members) {
        const open: Open = {
          name: member,
          axis: member,
          level: level(member),
          coord: { v: 0 },
          node: { v: 0 },
          parent,
          attached: false,
        }
        loops.push(segmentLoop(open, parent === null ? keep : null))
        names.add(member)
        inside = withOpen(inside, open)
        parent = open
      }
      return { loop: (inner) => loops.reduceRight((run, loop) => loop(run), inner), scope: inside, names }
    }
  }
}

/** Visits the nodes of one segment. */
function segmentLoop(open: Open, keep: Restriction | null): Loop {
  const { level, coord, node, parent } = open
  invariant(level, `iterator ${open.name} has no level`)
  const { start, coord: coords, extent } = level
  if (!start)
    return (inner) => {
      if (keep)
        return () => {
          for (const c of keep.coordinates) {
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
  const root = open.attached ? level.parent : null
  return (inner) => {
    const segment = (p: number): void => {
      if (p < 0 || p >= segments) return
      const lo = start[p]!
      const hi = start[p + 1]!
      for (let q = lo; q < hi; q++) {
        const c = coords ? coords[q]! : q - lo
        if (keep && !keep.mask[c]) continue
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
      // A nonunique root has several nodes of one coordinate, next to each other.
      for (; p < root.count && coordinateOf(root, 0, p) === c; p++) segment(p)
    }
  }
}
